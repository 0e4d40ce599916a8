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
