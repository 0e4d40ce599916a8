//! `sluice workflow`: what there is, whose is nearest, and the pages.

use sluice_core::machine::RefusalCode;
use sluice_core::problem::Code;

use super::sluice::{bytes_in, folder, run, run_in, run_with};

const BUILT_IN: [(&str, &str); 13] = [
    ("default", "lifecycle"),
    ("minimal", "lifecycle"),
    ("reviewed", "lifecycle"),
    ("persistent", "lifecycle"),
    ("dev-task", "recipe"),
    ("spec-to-beads", "recipe"),
    ("implement-bead", "recipe"),
    ("review-loop", "recipe"),
    ("prepare-pr", "recipe"),
    ("supervisor-patrol", "recipe"),
    ("worker-execute", "recipe"),
    ("verify-pipeline", "recipe"),
    ("qa-merge", "recipe"),
];

fn recipe(name: &str, says: &str) -> String {
    format!("name: {name}\ndescription: {says}\nsteps:\n  - name: a\n    type: script\n    command: echo {says}\n")
}

#[test]
fn the_built_in_ones_are_listed_and_can_be_used() {
    let place = folder(&[]);
    let list = run_in(place.path(), &["workflow", "list", "--json"]).json();
    let listed: Vec<(&str, &str)> = list["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            assert_eq!(it["usable"], true, "{it}");
            assert_eq!(it["origin"], "built-in");
            (it["name"].as_str().unwrap(), it["kind"].as_str().unwrap())
        })
        .collect();
    assert_eq!(listed, BUILT_IN);
}

#[test]
fn shown_files_are_ready_to_copy() {
    let place = folder(&[]);
    for (name, _) in BUILT_IN {
        let text = run_in(place.path(), &["workflow", "show", name]).stdout;
        let file = if text.contains("\n[[steps]]") { "copy.toml" } else { "copy.yml" };
        std::fs::write(place.path().join(file), text).unwrap();
        let findings = run_in(place.path(), &["check", file, "--json"]).findings();
        // `minimal` keeps the one oddity that its users know.
        let expected: &[&str] = if name == "minimal" { &["S0117"] } else { &[] };
        let codes: Vec<&str> = findings.iter().map(|it| &it[..5]).collect();
        assert_eq!(codes, expected, "{name}");
    }
}

#[test]
fn the_nearest_wins() {
    let home = folder(&[
        ("workflows/mine.yml", recipe("mine", "home").as_bytes()),
        ("workflows/prepare-pr.yml", recipe("prepare-pr", "home").as_bytes()),
    ]);
    let place = folder(&[
        (".git/HEAD", b""),
        (".sluice/workflows/m.yml", recipe("mine", "repository").as_bytes()),
        (".coven/grimoires/review-loop.yaml", recipe("review-loop", "coven").as_bytes()),
        (".work/templates/patrol.toml", b"template = \"patrol\"\n[[steps]]\nid = \"look\"\n"),
        ("sub/folder/x", b""),
    ]);
    let show = |name: &str| run_with(&place.path().join("sub/folder"), home.path(), &["workflow", "show", name]).stdout;
    assert!(show("mine").contains("echo repository"));
    assert!(show("m").contains("echo repository"), "a name also matches the file's stem");
    assert!(show("prepare-pr").contains("echo home"));
    assert!(show("review-loop").contains("echo coven"));
    assert!(show("patrol").contains("look"));
    assert!(show("default").contains("agent-review"));
}

#[test]
fn a_broken_neighbour_hurts_nobody() {
    let place = folder(&[
        (".sluice/workflows/broken.yml", b"name: broken\nsteps: ["),
        (".sluice/workflows/fine.yml", recipe("fine", "fine").as_bytes()),
        (".sluice/workflows/binary.yml", b"\xff\xfe\x00"),
    ]);
    let list = run_in(place.path(), &["workflow", "list"]);
    assert_eq!(list.code, 0);
    assert!(list.stdout.contains("cannot be used: 1 error in"), "{}", list.stdout);
    assert!(list.stderr.contains("2 cannot be used"), "{}", list.stderr);
    assert_eq!(run_in(place.path(), &["workflow", "show", "fine"]).code, 0);
}

#[test]
fn a_file_is_shown_byte_for_byte() {
    let marked = format!("\u{feff}{}", recipe("marked", "x")).replace('\n', "\r\n").into_bytes();
    let latin = b"name: caf\xe9\nsteps: []\0\n".to_vec();
    let place = folder(&[(".sluice/workflows/marked.yml", &marked), (".sluice/workflows/latin.yml", &latin)]);
    assert_eq!(bytes_in(place.path(), &["workflow", "show", "marked"]), marked);
    assert_eq!(bytes_in(place.path(), &["workflow", "show", "latin"]), latin, "found by its file's name");
}

#[test]
fn a_neighbour_is_not_checked_to_show_another() {
    // Checking this one finds a thousand mistakes; its name is all that `show` and `graph` want of it.
    let steps: String =
        (0..2000).map(|n| format!("  - {{name: s{n}, needs: [t{n}], type: script, command: x}}\n")).collect();
    let place = folder(&[
        (".sluice/workflows/slow.yml", format!("name: slow\nsteps:\n{steps}").as_bytes()),
        (".sluice/workflows/fine.yml", recipe("fine", "fine").as_bytes()),
    ]);
    assert_eq!(run_in(place.path(), &["graph", "fine"]).code, 0);
    assert!(run_in(place.path(), &["workflow", "show", "slow"]).stdout.starts_with("name: slow"));
    assert_eq!(run_in(place.path(), &["graph", "slow"]).code, 1);
}

#[test]
fn unknown_names_and_codes_are_not_found() {
    let place = folder(&[]);
    insta::assert_snapshot!(run_in(place.path(), &["workflow", "show", "defualt"]).shown(), @r"
    --- stderr
    error: there is no definition called `defualt`
    hint: did you mean `default`?
    --- exit 3
    ");
    insta::assert_snapshot!(run_in(place.path(), &["workflow", "explain", "S9999"]).shown(), @r"
    --- stderr
    error: there is no code `S9999`
    hint: a problem's code looks like S0107 and stands in the brackets of a report, a refusal's like no_transition
    --- exit 3
    ");
    insta::assert_snapshot!(run_in(place.path(), &["workflow", "explain", "gate-failed"]).shown(), @r"
    --- stderr
    error: there is no code `gate-failed`
    hint: did you mean `gate_failed`?
    --- exit 3
    ");
}

#[test]
fn every_code_is_explained() {
    for code in Code::ALL {
        let answer = run(&["workflow", "explain", &code.as_str().to_lowercase()]);
        assert_eq!(answer.code, 0);
        assert!(answer.stdout.starts_with(&format!("# {}: ", code.as_str())));
    }
    for code in RefusalCode::ALL {
        let answer = run(&["workflow", "explain", &code.as_str().to_uppercase()]);
        assert_eq!(answer.code, 0);
        assert!(answer.stdout.starts_with(&format!("# {}: ", code.as_str())));
    }
    let answer = run(&["workflow", "explain", "not_yours", "--json"]).json();
    assert_eq!(answer["refusal"]["title"], RefusalCode::NotYours.title());
}

#[test]
fn schemas_are_printed_for_every_format() {
    for format in ["lifecycle", "manifest", "recipe", "grimoire", "template"] {
        let schema = run(&["workflow", "schema", format]).json();
        assert_eq!(schema["type"], "object", "{format}");
    }
    assert_eq!(run(&["workflow", "schema", "xml"]).code, 3);
}

#[test]
fn wrong_arguments_are_answered_in_json_when_asked() {
    let answer = run(&["workflow", "show", "--json"]);
    assert_eq!(answer.code, 2);
    assert_eq!(answer.json()["error"]["code"], "usage");
    let said = |arguments: &[&str]| {
        let error = run(&[arguments, &["--json"]].concat()).json()["error"].take();
        format!("{}\n  {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap())
    };
    let wrong =
        [said(&["task", "show"]), said(&["check", "a.yml", "--format", "xml"]), said(&["tsk"]), said(&["--huh"])];
    insta::assert_snapshot!(wrong.join("\n"), @r"
    the following required arguments were not provided: <ID>
      see `sluice task show --help`
    invalid value 'xml' for '--format <FORMAT>' [possible values: text, json, sarif]
      see `sluice --help`
    unrecognized subcommand 'tsk'
      a similar subcommand exists: 'task'; see `sluice --help`
    unexpected argument '--huh' found
      see `sluice --help`
    ");
}

#[test]
fn completions_are_one_json_document_too() {
    let answer = run(&["completions", "bash", "--json"]).json();
    assert_eq!(answer["completions"]["shell"], "bash");
    let script = run(&["completions", "bash"]).stdout;
    assert_eq!(answer["completions"]["script"], script.as_str());
}

#[test]
fn a_recipe_hides_no_lifecycle() {
    let place = folder(&[(".sluice/workflows/d.yml", recipe("default", "mine").as_bytes())]);
    let list = run_in(place.path(), &["workflow", "list", "--json"]).json();
    let kinds: Vec<&str> = list["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["name"] == "default")
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["recipe", "lifecycle"]);
}
