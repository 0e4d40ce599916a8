//! `sluice check`: exit codes, formats, folders, positions.

use super::sluice::{folder, run, run_in};

const GOOD: &[u8] = b"name: hello\nsteps:\n  - name: greet\n    type: script\n    command: echo hello\n";
const BAD: &[u8] = b"name: hello\nsteps:\n  - name: greet\n    type: script\n    comand: echo hello\n";

#[test]
fn exit_codes() {
    let place = folder(&[("good.yml", GOOD), ("bad.yml", BAD)]);
    let code = |arguments: &[&str]| run_in(place.path(), arguments).code;
    assert_eq!(code(&["check", "good.yml"]), 0);
    assert_eq!(code(&["check", "bad.yml"]), 1);
    assert_eq!(code(&["check", "good.yml", "bad.yml"]), 1);
    assert_eq!(code(&["check", "missing.yml"]), 3);
    assert_eq!(code(&["check"]), 2);
    assert_eq!(code(&["check", "good.yml", "--format", "xml"]), 2);
}

#[test]
fn a_missing_file_is_named_with_the_way_out() {
    let place = folder(&[]);
    insta::assert_snapshot!(run_in(place.path(), &["check", "missing.yml"]).shown(), @r"
    --- stderr
    error: cannot check `missing.yml`: No such file or directory (os error 2)
    hint: name a file or a folder that exists
    --- exit 3
    ");
    insta::assert_snapshot!(run_in(place.path(), &["check", "missing.yml", "--json"]).shown(), @r#"
    {
      "error": {
        "code": "not_found",
        "message": "cannot check `missing.yml`: No such file or directory (os error 2)",
        "hint": "name a file or a folder that exists"
      }
    }
    --- exit 3
    "#);
}

#[test]
fn a_missing_path_does_not_hide_what_the_others_have() {
    let place = folder(&[("good.yml", GOOD), ("bad.yml", BAD)]);
    let check = |arguments: &[&str]| run_in(place.path(), &[&["check"], arguments].concat());
    insta::assert_snapshot!(check(&["good.yml", "nope.yml", "no/where"]).shown(), @"
    good.yml: recipe `hello`, 1 step
    --- stderr
    no problems in 1 file
    error: cannot check `nope.yml`: No such file or directory (os error 2)
    hint: name a file or a folder that exists
    error: cannot check `no/where`: No such file or directory (os error 2)
    hint: name a file or a folder that exists
    --- exit 3
    ");
    let answer = check(&["nope.yml", "bad.yml", "good.yml"]);
    assert_eq!(answer.code, 1, "an error weighs more than a missing path");
    assert!(answer.stdout.contains("bad.yml:5:5") && answer.stderr.contains("cannot check `nope.yml`"));

    let answer = check(&["nope.yml", "bad.yml", "--json"]);
    assert_eq!((answer.code, answer.findings().len(), answer.stderr.as_str()), (1, 1, ""));
    insta::assert_snapshot!(answer.json()["missing"], @r#"[{"path":"nope.yml","message":"cannot check `nope.yml`: No such file or directory (os error 2)"}]"#);
    assert_eq!(check(&["nope.yml", "good.yml", "--json"]).code, 3);
    assert!(check(&["good.yml", "--json"]).json().get("missing").is_none());

    let answer = check(&["nope.yml", "good.yml", "--format", "sarif"]);
    assert_eq!((answer.code, answer.json()["version"].as_str()), (3, Some("2.1.0")));
    assert!(answer.stderr.contains("cannot check `nope.yml`"), "{}", answer.stderr);

    let answer = check(&["nope.yml", "no/where", "--json"]);
    assert_eq!(answer.code, 3);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("`nope.yml`") && message.contains("`no/where`"), "{message}");
}

#[test]
fn there_is_one_answer_in_one_format() {
    let place = folder(&[("good.yml", GOOD)]);
    let run = |arguments: &[&str]| run_in(place.path(), arguments);
    insta::assert_snapshot!(run(&["check", "good.yml", "--format", "sarif", "--json"]).shown(), @r#"
    {
      "error": {
        "code": "usage",
        "message": "`--json` and `--format sarif` exclude each other",
        "hint": "see `sluice --help`"
      }
    }
    --- exit 2
    "#);
    assert_eq!(run(&["--json", "check", "good.yml", "--format=text"]).code, 2);
    assert_eq!(run(&["graph", "good.yml", "--format", "svg", "--json"]).code, 2);
    assert_eq!(run(&["check", "good.yml", "--format", "json", "--json"]).code, 0);
    assert_eq!(run(&["check", "good.yml", "--json"]).code, 0);
    assert_eq!(run(&["workflow", "list", "--json"]).code, 0);
}

#[test]
fn one_of_a_thing_is_not_many() {
    let lifecycle =
        b"name: one\nstates: {pending: {}, done: {terminal: true}}\ntransitions: [{from: pending, to: done}]\n";
    let place = folder(&[("good.yml", GOOD), ("one.yml", lifecycle)]);
    insta::assert_snapshot!(run_in(place.path(), &["check", "good.yml", "one.yml"]).shown(), @"
    good.yml: recipe `hello`, 1 step
    one.yml: lifecycle `one`, 2 states, 1 transition
    --- stderr
    no problems in 2 files
    --- exit 0
    ");
}

#[test]
fn json_has_the_place_and_the_way_out() {
    let place = folder(&[("bad.yml", BAD)]);
    let report = run_in(place.path(), &["check", "bad.yml", "--format", "json"]).json();
    let problem = &report["problems"][0];
    for (key, value) in [("line", 5), ("column", 5), ("end_line", 5), ("end_column", 11)] {
        assert_eq!(problem[key], value, "{key} of {problem}");
    }
    for (key, value) in [
        ("code", "S0007"),
        ("severity", "error"),
        ("file", "bad.yml"),
        ("message", "a step has no key `comand`"),
        ("help", "did you mean `command`?"),
    ] {
        assert_eq!(problem[key], value, "{key} of {problem}");
    }
    assert_eq!(report["problems"].as_array().unwrap().len(), 1, "a misspelt key is one mistake: {report}");
}

#[test]
fn sarif_is_a_log_of_version_2_1_0() {
    let report = run(&["check", "examples/broken/S0107.yml", "--format", "sarif"]).json();
    assert_eq!(report["version"], "2.1.0");
    let run = &report["runs"][0];
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "S0107");
    assert_eq!(result["level"], "error");
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "S0107");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "examples/broken/S0107.yml");
    assert!(place["region"]["startLine"].as_u64().unwrap() > 1);
    assert_eq!(run["results"].as_array().unwrap().len(), 1, "notes are not results");
}

/// Code hosts refuse rules without them. `cargo xtask sarif` asks a program that knows all of their rules.
#[test]
fn every_rule_of_a_sarif_log_is_described() {
    let report = run(&["check", "examples/broken", "--format", "sarif"]).json();
    let rules = report["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().clone();
    assert!(rules.len() > 50, "{}", rules.len());
    for rule in rules {
        let text = |key: &str| rule[key]["text"].as_str().unwrap_or_default().to_owned();
        assert!(text("fullDescription").len() > 20 && text("fullDescription") != text("shortDescription"), "{rule:#}");
    }
}

#[test]
fn a_folder_is_searched_for_definitions_only() {
    let place = folder(&[
        (".sluice/workflows/bad.yml", BAD),
        (".git/config.yml", b"a: ["),
        ("Cargo.toml", b"[package]\nname = \"x\"\n"),
        ("deep/er/good.yml", GOOD),
        ("node_modules/x/bad.yml", BAD),
        ("notes.md", b"# steps"),
    ]);
    let answer = run_in(place.path(), &["check", "."]);
    assert!(answer.stdout.contains("./.sluice/workflows/bad.yml:5:5"), "{}", answer.stdout);
    assert!(answer.stdout.contains("./deep/er/good.yml: recipe `hello`"), "{}", answer.stdout);
    assert!(answer.stderr.contains("in 2 files"), "{}", answer.stderr);
    assert_eq!(run_in(place.path(), &["check", "deep"]).code, 0);
    assert_eq!(run_in(folder(&[]).path(), &["check", "."]).code, 3);
}

#[test]
fn yaml_and_toml_are_read_alike() {
    let toml = b"name = \"hello\"\n[[steps]]\nname = \"greet\"\ntype = \"script\"\ncommand = \"echo hello\"\n";
    let manifest = b"workflow: {name: dev}\nsteps:\n  - id: a\n    prompt: do it\n  - id: b\n    depends_on: [a]\n    prompt: more\n";
    let template = b"template: t\nversion: 1\nsteps:\n  - id: a\n    title: A\n  - id: b\n    needs: [a]\n";
    let lifecycle = b"name = \"tiny\"\n[states.pending]\n[states.done]\nterminal = true\n[[transitions]]\nfrom = \"pending\"\nto = \"done\"\n";
    let place =
        folder(&[("r.toml", toml), ("m.yml", manifest), ("t.yaml", template), ("l.toml", lifecycle), ("plain", toml)]);
    for file in ["r.toml", "m.yml", "t.yaml", "l.toml", "plain"] {
        let answer = run_in(place.path(), &["check", file, "--json"]);
        assert_eq!(answer.findings(), [""; 0], "{file}");
    }
}

#[test]
fn prompt_files_are_found_checked_and_kept_below_their_root() {
    let manifest = |path: &str| format!("[workflow]\nname = \"w\"\n[[steps]]\nid = \"a\"\nprompt_file = \"{path}\"\n");
    let place = folder(&[
        ("p/workflows/ok.toml", manifest("do/plan.md").as_bytes()),
        ("p/workflows/unknown.toml", manifest("do/unknown.md").as_bytes()),
        ("p/workflows/up.toml", manifest("../secret.md").as_bytes()),
        ("p/workflows/absolute.toml", manifest("/etc/passwd").as_bytes()),
        ("p/workflows/link.toml", manifest("do/link.md").as_bytes()),
        ("p/do/plan.md", b"Do {{mission_prompt}} with {{context}}.\n"),
        ("p/do/unknown.md", b"line one\nDo {{mision_prompt}}.\n"),
        ("secret.md", b"secret"),
    ]);
    std::os::unix::fs::symlink(place.path().join("secret.md"), place.path().join("p/do/link.md")).unwrap();
    let findings = |file: &str| run_in(place.path(), &["check", &format!("p/workflows/{file}"), "--json"]).findings();
    assert_eq!(findings("ok.toml"), [""; 0]);
    assert_eq!(findings("unknown.toml"), ["S0301 2:4"], "the place is in the prompt file");
    assert_eq!(findings("up.toml"), ["S0305 5:15"]);
    assert_eq!(findings("absolute.toml"), ["S0305 5:15"]);
    assert_eq!(findings("link.toml"), ["S0305 5:15"]);
}

#[test]
fn one_mistake_is_one_finding() {
    let cases = [
        ("{from: pending, to: dnoe}", "S0101 4:25"),
        ("{from: pending, too: done}", "S0007 4:21"),
        ("{from: pending}", "S0009 4:6"),
        ("{from: pendign, to: done}", "S0102 4:12"),
        ("{from: pending, to: done, when: \"review_round < two\"}", "S0108 4:37"),
        ("{from: pending, to: done, when: 2}", "S0008 4:37"),
        ("{from: pending, to: done, when: 'rounds < 2'}", "S0111 4:37"),
        ("{from: pending, to: done, hooks: [{action: spawn_agnet, prompt: x}]}", "S0010 4:48"),
    ];
    for (transition, expected) in cases {
        let file = format!(
            "name: tiny\nstates: {{pending: {{}}, done: {{terminal: true}}}}\ntransitions:\n  - {transition}\n"
        );
        let place = folder(&[("tiny.yml", file.as_bytes())]);
        assert_eq!(run_in(place.path(), &["check", "tiny.yml", "--json"]).findings(), [expected], "{transition}");
    }
}

/// Asserts that the one finding of a manifest with `step` (of a recipe if it has a `name`) is `code`, at the `^`.
#[track_caller]
fn step_is_told(step: &str, code: &str) {
    let mark = step.find('^');
    let step = step.replace('^', "");
    let head = if step.starts_with("name") { "name: tiny\n" } else { "workflow: {name: tiny}\n" };
    let needed = if step.contains("depends_on") { "  - {id: review, prompt: look}\n" } else { "" };
    let file = format!("{head}steps:\n{needed}  - {{{step}}}\n");
    let place = folder(&[("tiny.yml", file.as_bytes())]);
    let line = 3 + needed.lines().count();
    let expected: Vec<String> = mark.iter().map(|mark| format!("{code} {line}:{}", mark + 6)).collect();
    assert_eq!(run_in(place.path(), &["check", "tiny.yml", "--json"]).findings(), expected, "{step}");
}

#[test]
fn values_that_cannot_work_are_found() {
    let looping = "id: a, prompt: x, depends_on: [review], condition: \"review.result == 'FAIL'\"";
    for (step, code) in [
        ("id: a, prompt: x, timeout: ^0", "S0012"),
        ("id: a, prompt: x, timeout: ^0s", "S0012"),
        ("id: a, prompt: x, depends_on: [review], loop_to: review, max_retries: ^0", "S0012"),
        (&format!("{looping}, max_retries: ^0"), "S0012"),
        ("id: a, prompt: ^''", "S0009"),
        ("id: a, prompt: ^' \n\n  '", "S0009"),
        ("id: a, prompt_file: ^''", "S0009"),
        ("id: a, type: script, command: ^\" \\t\"", "S0009"),
        ("id: a, type: gate, command: ^''", "S0009"),
        ("name: a, type: task, summary: ^''", "S0009"),
        ("id: a, prompt: x, ^max_retries: 1, retry: {max: 2}", "S0013"),
        ("id: a, prompt: x, max_retries: 0", "nothing"),
        ("id: a, prompt: x, retry: {max: 2, backoff: 0s}", "nothing"),
        (&format!("{looping}, max_retries: 2, retry: {{max: 2}}"), "nothing"),
        ("id: a, prompt: x, depends_on: [review], loop_to: review, max_retries: 1, retry: {max: 2}", "nothing"),
    ] {
        step_is_told(step, code);
    }
    let lifecycle = b"name: tiny\nstates: {pending: {}, done: {terminal: true}}\ntransitions:\n  - {from: pending, to: done, hooks: [{action: run_command, command: ''}]}\nprompts: {worker: ' '}\n";
    let place = folder(&[("tiny.yml", lifecycle)]);
    assert_eq!(run_in(place.path(), &["check", "tiny.yml", "--json"]).findings(), ["S0009 4:70", "S0009 5:19"]);
}

#[test]
fn a_misspelt_or_misplaced_prompt_is_one_finding() {
    for (step, code) in [
        ("id: a, ^promt: hi", "S0007"),
        ("name: a, ^promt: hi", "S0007"),
        ("id: a, ^promt_file: hi.md", "S0007"),
        ("id: a, ^comand: make", "S0007"),
        ("id: a, ^command: make", "S0013"),
        ("id: a, type: agent, ^command: make", "S0013"),
        ("id: a, type: script, ^prompt: do it", "S0013"),
        ("id: ^a, role: worker", "S0009"),
    ] {
        step_is_told(step, code);
    }
}

#[test]
fn places_in_quoted_texts_are_exact_and_each_is_counted() {
    let file =
        "name: tiny\nsteps:\n  - name: a\n    prompt: \"line\\nsecond ${foo}, \\u00e9 ${foo}\\t\\\n      ${foo}\"\n";
    let toml =
        "name = \"tiny\"\n[[steps]]\nname = \"a\"\nprompt = \"\"\"\nline\\tone ${foo}\n\\\"two\\\" ${foo}\"\"\"\n";
    let place = folder(&[("tiny.yml", file.as_bytes()), ("tiny.toml", toml.as_bytes())]);
    let findings = |name: &str| run_in(place.path(), &["check", name, "--json"]).findings();
    assert_eq!(findings("tiny.yml"), ["S0301 4:27", "S0301 4:42", "S0301 5:7"]);
    assert_eq!(findings("tiny.toml"), ["S0301 5:11", "S0301 6:9"]);
}

#[test]
fn what_is_written_once_and_used_twice_is_one_mistake() {
    let file = b"name: tiny\nsteps:\n  - {name: a, prompt: &p \"do ${foo}\"}\n  - {name: b, prompt: *p}\n";
    let shared = b"name: tiny\nsteps:\n  - {name: a, prompt_file: p.md}\n  - {name: b, prompt_file: p.md}\n";
    let place = folder(&[("alias.yml", file), ("shared.yml", shared), ("p.md", b"do ${foo}")]);
    for name in ["alias.yml", "shared.yml"] {
        assert_eq!(run_in(place.path(), &["check", name, "--json"]).findings().len(), 1, "{name}");
    }
}

#[test]
fn durations_say_what_is_wrong_with_them() {
    for (written, reason) in
        [("soon", "it is not a number with a unit"), ("-5m", "it is negative"), ("9000h", "it is longer than 366 days")]
    {
        let file = format!("name: tiny\nsteps:\n  - {{name: a, prompt: x, timeout: {written}}}\n");
        let place = folder(&[("tiny.yml", file.as_bytes())]);
        let report = run_in(place.path(), &["check", "tiny.yml", "--json"]).json();
        assert_eq!(report["problems"][0]["message"], format!("`timeout` is not a length of time: {reason}"));
    }
}

#[test]
fn a_lifecycle_without_states_is_none() {
    for states in ["{}", ""] {
        let file = format!("name: x\nstates: {states}\ntransitions: []\n");
        let place = folder(&[("x.yml", file.as_bytes())]);
        assert_eq!(run_in(place.path(), &["check", "x.yml", "--json"]).findings(), ["S0009 2:1"]);
    }
}

#[test]
fn a_loop_without_a_guard_is_found_however_far_the_counters_go() {
    let file = r###"name: far
states: {pending: {}, s0: {}, s1: {}, done: {terminal: true}}
transitions:
  - {from: pending, to: s0, hooks: [{action: acquire_workspace}, {action: spawn_agent, prompt: w}]}
  - {from: s0, to: s1, gate: {section: "## H"}, hooks: [{action: spawn_agent, prompt: w, increment: c0}]}
  - {from: s0, to: done, gate: {section: "## H"}, when: "c0 < 300000", hooks: [{action: kill_session}, {action: release_workspace}]}
  - {from: s1, to: s0, gate: {section: "## H"}, hooks: [{action: spawn_agent, prompt: w, increment: c1}]}
  - {from: s1, to: done, gate: {section: "## H"}, when: "c1 < 300000", hooks: [{action: kill_session}, {action: release_workspace}]}
prompts: {w: hi}
"###;
    let place = folder(&[("far.yml", file.as_bytes())]);
    let findings = run_in(place.path(), &["check", "far.yml", "--json"]).findings();
    assert_eq!(findings.iter().map(|it| &it[..5]).collect::<Vec<_>>(), ["S0116"]);
}

#[test]
fn a_crash_rule_that_never_fires_makes_no_state_reachable() {
    let file = "name: x\nstates: {pending: {}, stuck: {}, done: {terminal: true}}\ntransitions:\n  \
                - {from: pending, to: done}\n  - {from: stuck, to: done}\nexit_monitoring:\n  rules:\n    \
                - {status: pending, action: mark_dead}\n    - {status: pending, action: crash, stuck_after: 2}\n";
    let place = folder(&[("x.yml", file.as_bytes())]);
    assert_eq!(run_in(place.path(), &["check", "x.yml", "--json"]).findings(), ["S0113 2:23"]);
}
