//! Definitions to measure with, as files: large ones for the checker, small ones for the engine.

use std::fmt::Write;

/// A recipe of `count` scripts, one after the other.
pub fn sequence(count: usize) -> String {
    let mut file = String::from("name: long\nsteps:\n");
    for step in 0..count {
        let before = step.saturating_sub(1);
        let _ = writeln!(file, "  - name: step-{step}\n    type: script\n    output: out_{step}");
        match step {
            0 => file.push_str("    command: echo start\n"),
            _ => drop(writeln!(file, "    command: echo ${{step-{before}.output}} \"${{out_{before}}}\"")),
        }
    }
    file
}

/// A recipe of `count` agents in a graph: each needs up to five earlier ones and reads two of them in its condition.
pub fn graph(count: usize) -> String {
    let mut file = String::from("name: wide\nmax_parallel: 8\nsteps:\n");
    for step in 0..count {
        let needs: Vec<String> = [1usize, 2, 3, 50, 700]
            .iter()
            .filter_map(|back| step.checked_sub(*back))
            .map(|it| format!("s{it}"))
            .collect();
        let _ = writeln!(
            file,
            "  - name: s{step}\n    needs: [{}]\n    prompt: \"Do part {step} of ${{run.prompt}}\"",
            needs.join(", ")
        );
        if let [first, .., last] = needs.as_slice() {
            let _ = writeln!(file, "    when: \"{first}.result != 'FAIL' || {last}.status == 'completed'\"");
        }
    }
    file
}

/// A lifecycle of `count` states in a row, each with a review, a bounded way back, and a way to the end.
pub fn lifecycle(count: usize) -> String {
    let mut file = String::from("name: vast\nversion: 1\nstates:\n  pending: {}\n");
    for state in 0..count {
        let _ = writeln!(file, "  s{state}: {{respawn_prompt: worker}}");
    }
    file.push_str("  stuck: {}\n  done: {terminal: true}\n  cancelled: {terminal: true}\ntransitions:\n");
    let spawn = "{action: spawn_agent, prompt: worker, increment: review_round}";
    let _ = writeln!(file, "  - {{from: pending, to: s0, hooks: [{{action: acquire_workspace}}, {spawn}]}}");
    let end = "{action: kill_session}, {action: release_workspace}";
    for state in 0..count {
        let next = if state + 1 == count { "done".to_owned() } else { format!("s{}", state + 1) };
        let after = if state + 1 == count { end } else { "{action: kill_session}" };
        let gate = |verdict: &str| format!("gate: {{section: \"## Review\", verdict: {verdict}}}");
        let _ = writeln!(file, "  - {{from: s{state}, to: {next}, {}, hooks: [{after}]}}", gate("PASS"));
        let back = state.saturating_sub(1);
        let _ = writeln!(
            file,
            "  - {{from: s{state}, to: s{back}, {}, when: \"review_round < 3\", hooks: [{spawn}]}}",
            gate("FAIL")
        );
        let _ = writeln!(file, "  - {{from: s{state}, to: stuck, {}, when: \"review_round >= 3\"}}", gate("FAIL"));
        let _ = writeln!(file, "  - {{from: s{state}, to: cancelled, hooks: [{end}]}}");
    }
    let _ = writeln!(file, "  - {{from: stuck, to: cancelled, hooks: [{end}]}}");
    file.push_str("prompts:\n  worker: \"Do {summary}\"\n");
    file
}

/// A recipe of `count` scripts that do nothing, one after the other.
pub fn steps(count: usize) -> String {
    let mut file = String::from("name: bench\nsteps:\n");
    for step in 0..count {
        let _ = writeln!(file, "  - {{name: s{step}, type: script, command: 'true'}}");
    }
    file
}

/// A recipe of one script, `count` scripts that all need it, and one that needs them all.
pub fn fan(count: usize) -> String {
    let mut file = format!("name: bench\nmax_parallel: {count}\nsteps:\n");
    file.push_str("  - {name: a, type: script, needs: [], command: 'true'}\n");
    let names: Vec<String> = (0..count).map(|step| format!("s{step}")).collect();
    for name in &names {
        let _ = writeln!(file, "  - {{name: {name}, type: script, needs: [a], command: 'true'}}");
    }
    let _ = writeln!(file, "  - {{name: join, type: script, needs: [{}], command: 'true'}}", names.join(", "));
    file
}

/// A lifecycle in which a task goes from `working` to `checking` and back for as long as one likes, with a hook each
/// time.
pub const RING: &str = "
name: ring
version: 1
states:
  pending: {}
  working: {}
  checking: {}
  stuck: {}
  done: {terminal: true}
  cancelled: {terminal: true}
transitions:
  - {from: pending, to: working, hooks: [{action: notify, message: begin}]}
  - {from: pending, to: cancelled}
  - {from: working, to: checking, hooks: [{action: notify, message: look}]}
  - {from: working, to: cancelled}
  - {from: working, to: stuck}
  - {from: checking, to: working, hooks: [{action: notify, message: go on}]}
  - {from: checking, to: done}
  - {from: checking, to: cancelled}
  - {from: stuck, to: working}
  - {from: stuck, to: cancelled}
";

#[cfg(test)]
mod tests {
    use sluice_dialect::prompts::NoPrompts;
    use sluice_dialect::{DefinitionFile, Sources, load};

    #[test]
    fn they_are_definitions() {
        let large = [super::sequence(50), super::graph(800), super::lifecycle(50)];
        let small = [super::steps(5), super::fan(5), super::RING.to_owned()];
        for file in large.into_iter().chain(small) {
            let source = DefinitionFile { path: "x.yml", bytes: file.as_bytes() };
            let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
            assert!(loaded.is_usable(), "{:#?}", loaded.problems.first());
        }
    }
}
