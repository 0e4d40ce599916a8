//! Files that are right or wrong in one way, thousands of times over: each must come back at once, from bytes to
//! report. With one quadratic path in the checker this would take minutes. Nothing is timed.

use std::fmt::Write;

use sluice_dialect::prompts::{MOST_BYTES_TOGETHER, NoPrompts, PromptLookup, PromptSource};
use sluice_dialect::report::{self, ReportStyle};
use sluice_dialect::{DefinitionFile, LoadedDefinition, Sources, load};

fn check(text: &str, prompts: &mut dyn PromptSource) -> LoadedDefinition {
    let mut sources = Sources::new();
    let loaded = load(&DefinitionFile { path: "vast.yml", bytes: text.as_bytes() }, prompts, &mut sources);
    let shown = report::json(&sources, &loaded.problems).to_string();
    report::text(&sources, &loaded.problems, ReportStyle::Plain);
    assert!(shown.len() < 2_000_000, "the report is as long as a library");
    loaded
}

/// The codes that were found, each once.
fn codes(text: &str) -> Vec<&'static str> {
    let mut codes: Vec<_> = check(text, &mut NoPrompts).problems.iter().map(|it| it.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

/// `pending` → `s0` → `s1` → …, each move with `more`, and whatever follows the last state.
fn chain(count: usize, more: &str, end: &str) -> String {
    let states = lines(count, |n| format!("  s{n}: {{}}"));
    let moves = lines(count - 1, |n| format!("  - {{from: s{n}, to: s{}{more}}}", n + 1));
    format!(
        "name: t\nstates:\n  pending: {{}}\n{states}  done: {{terminal: true}}\n\
         transitions:\n  - {{from: pending, to: s0}}\n{moves}{end}"
    )
}

#[test]
fn long_lifecycles() {
    let last = |count: usize| format!("  - {{from: s{}, to: done}}\n", count - 1);
    let verdict = ", gate: {section: \"## Review\", verdict: PASS}";
    assert_eq!(codes(&chain(1_900, verdict, &last(1_900))), ["S0114"]);
    assert_eq!(codes(&chain(1_900, "", "  - {from: pending, to: done}\n")), ["S0112"]);
    assert_eq!(codes(&chain(8_000, verdict, &last(8_000))), ["S0004"]);
    let rules = |count: usize, states: usize| {
        let rule = |n: usize| {
            let state = n % states;
            format!("    - {{status: s{state}, has_artifact: {{section: \"## S{n}\"}}, then: s{}}}", state + 1)
        };
        format!("{}exit_monitoring:\n  rules:\n{}", chain(100, "", &last(100)), lines(count, rule))
    };
    assert_eq!(codes(&rules(5_000, 1)), [""; 0]);
    assert_eq!(codes(&rules(5_000, 90)), [""; 0]);
    assert_eq!(codes(&rules(8_000, 90)), ["S0004"]);
}

#[test]
fn lifecycles_full_of_states_that_nobody_reaches() {
    let all = |count: usize| {
        let states = lines(count, |n| format!("  s{n}: {{}}"));
        let round = |n: usize| format!("  - {{from: s{n}, to: s{}}}\n  - {{from: s{n}, to: done}}", (n + 1) % count);
        let moves = lines(count, round);
        format!(
            "name: t\nstates:\n  pending: {{}}\n  done: {{terminal: true}}\n{states}\
             transitions:\n  - {{from: pending, to: done}}\n{moves}"
        )
    };
    assert_eq!(codes(&all(1_900)), ["S0113"]);
    assert_eq!(codes(&all(6_000)), ["S0004"]);
}

#[test]
fn lifecycles_with_a_move_from_everywhere_to_everywhere() {
    let count = 80;
    let states = lines(count, |n| format!("  s{n}: {{}}"));
    let spawn = "gate: {section: \"## x\"}, hooks: [{action: spawn_agent, prompt: w, increment: review_round}]";
    let moves = lines(count * count, |n| {
        let (from, to) = (n / count, n % count);
        format!("  - {{from: s{from}, to: s{to}, when: \"review_round < 30\", {spawn}}}")
    });
    let text = format!(
        "name: t\nstates:\n  pending: {{}}\n{states}  done: {{terminal: true}}\ntransitions:\n{moves}\
         \x20 - {{from: pending, to: s0}}\n  - {{from: s0, to: done, hooks: [{{action: kill_session}}]}}\nprompts: {{w: x}}\n"
    );
    assert_eq!(codes(&text), ["S0904"]);
}

#[test]
fn guards_over_hundreds_of_fields() {
    let sets = (0..400).map(|n| format!("{{action: set_field, field: f{n}, value: 0}}")).collect::<Vec<_>>().join(", ");
    for joiner in [" && ", " || "] {
        let guard = (0..300).map(|n| format!("f{n} < 5")).collect::<Vec<_>>().join(joiner);
        let clauses = lines(64, |_| format!("        - {{when: \"{guard}\", then: done}}"));
        let text = format!(
            "name: t\nstates: {{pending: {{}}, a: {{}}, done: {{terminal: true}}}}\ntransitions:\n  \
             - {{from: pending, to: a, hooks: [{sets}]}}\n  - {{from: a, to: done}}\n\
             exit_monitoring:\n  rules:\n    - status: a\n      then_when:\n{clauses}"
        );
        assert!(codes(&text).contains(&"S0108"), "{joiner}");
    }
}

#[test]
fn recipes_with_names_that_lead_nowhere() {
    let script = "type: script, command: x";
    assert_eq!(
        codes(&format!(
            "name: a\nsteps:\n{}",
            lines(4_000, |n| format!("  - {{name: s{n}, needs: [t{n}], {script}}}"))
        )),
        ["S0202"]
    );
    let inputs = |count: usize| lines(count, |n| format!("  - {{name: i{n}}}"));
    let steps =
        lines(4_000, |n| format!("  - {{name: s{n}, type: script, command: \"echo ${{input.i{}}}\"}}", n % 1_000));
    assert_eq!(codes(&format!("name: a\ninputs:\n{}steps:\n{steps}", inputs(1_000))), [""; 0]);
    assert_eq!(codes(&format!("name: a\ninputs:\n{}steps:\n{steps}", inputs(20_000))), ["S0004"]);
}

#[test]
fn recipes_that_go_round() {
    let script = "type: script, command: x";
    let fan = (0..5_000).map(|n| format!("s{n}")).collect::<Vec<_>>().join(", ");
    let text = lines(5_000, |n| match n {
        4_999 => format!("  - {{name: s{n}, needs: [a], {script}}}"),
        _ => format!("  - {{name: s{n}, needs: [s{}], {script}}}", n + 1),
    });
    assert_eq!(codes(&format!("name: a\nsteps:\n  - {{name: a, needs: [{fan}], {script}}}\n{text}")), ["S0203"]);
    let loops = lines(3_000, |n| match n {
        0 => "  - {name: s0, prompt: x}".to_owned(),
        _ => format!("  - {{name: s{n}, prompt: x, loop: {{to: s{}, max: 2}}}}", n / 2),
    });
    assert_eq!(codes(&format!("name: a\nsteps:\n{loops}")), ["S0904"]);
}

#[test]
fn conditions_that_contradict_themselves_among_many_values() {
    let low = (0..150).map(|n| format!("input.p{n} < 5")).collect::<Vec<_>>().join(" && ");
    let steps = lines(100, |n| {
        format!("  - {{name: s{n}, type: script, command: x, when: \"{low} && z.output == 1 && z.output == 2\"}}")
    });
    let text = format!("name: a\nsteps:\n  - {{name: z, type: script, command: x}}\n{steps}");
    assert_eq!(codes(&text), ["S0207"]);
}

#[test]
fn texts_full_of_variables() {
    let prompt = |text: &str| format!("name: a\nsteps:\n  - name: s\n    prompt: \"{text}\"\n");
    assert_eq!(codes(&prompt(&"${input.a} ".repeat(60_000))), ["S0904"]);
    assert_eq!(codes(&prompt(&"${a ".repeat(100_000))), ["S0303"]);
    assert_eq!(codes(&prompt(&(0..50_000).map(|n| format!("${{v{n}}} ")).collect::<String>())), ["S0301"]);
}

/// One large prompt file, whatever it is called.
struct Large(Vec<u8>);

impl PromptSource for Large {
    fn find(&mut self, written: &str) -> PromptLookup {
        PromptLookup::File { shown: written.into(), bytes: self.0.clone() }
    }
}

#[test]
fn a_thousand_steps_share_a_prompt_file() {
    let mut large = Large("a word and another, and ${input.x} ".repeat(19_000).into_bytes());
    let steps = |name: &dyn Fn(usize) -> String| {
        format!("name: a\nsteps:\n{}", lines(1_000, |n| format!("  - {{name: s{n}, prompt_file: {}}}", name(n))))
    };
    let loaded = check(&steps(&|_| "p.md".into()), &mut large);
    assert!(loaded.is_usable() && loaded.prompts.len() == 1);
    let loaded = check(&steps(&|n| format!("{n}.md")), &mut large);
    let bytes: usize = loaded.prompts.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= MOST_BYTES_TOGETHER, "{bytes} bytes of prompts were read");
}
