//! `sluice graph`: every definition in every format.

use super::sluice::{folder, run, run_in};

const FORMATS: [(&str, &str); 4] =
    [("text", " · "), ("mermaid", "---"), ("dot", "digraph"), ("svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"")];

#[test]
fn every_built_in_definition_can_be_drawn_in_every_format() {
    let place = folder(&[]);
    let list = run_in(place.path(), &["workflow", "list", "--json"]).json();
    for entry in list["workflows"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        for (format, beginning) in FORMATS {
            let answer = run_in(place.path(), &["graph", name, "--format", format]);
            assert_eq!(answer.code, 0, "{name} as {format}");
            assert!(answer.stdout.contains(beginning), "{name} as {format}:\n{}", answer.stdout);
        }
        let graph = run_in(place.path(), &["graph", name, "--json"]).json();
        assert_eq!(graph["graph"]["name"], name);
    }
}

#[test]
fn the_default_lifecycle_in_a_terminal() {
    insta::assert_snapshot!("graph-default", run_in(folder(&[]).path(), &["graph", "default"]).stdout);
}

#[test]
fn a_terminal_without_box_characters_gets_a_picture_too() {
    for name in ["default", "dev-task", "verify-pipeline"] {
        let drawn = run_in(folder(&[]).path(), &["graph", name, "--format", "ascii"]).stdout;
        assert!(drawn.lines().count() > 5 && drawn.is_ascii(), "{name}:\n{drawn}");
    }
}

#[test]
fn a_loop_is_visible() {
    insta::assert_snapshot!("graph-dev-task", run_in(folder(&[]).path(), &["graph", "dev-task"]).stdout);
}

#[test]
fn a_fork_and_its_join_are_visible() {
    insta::assert_snapshot!("graph-verify-pipeline", run_in(folder(&[]).path(), &["graph", "verify-pipeline"]).stdout);
}

#[test]
fn a_file_with_errors_is_not_drawn_and_says_why() {
    let answer = run(&["graph", "examples/broken/S0101.yml"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("error[S0101]"), "{}", answer.stderr);
    assert!(answer.stdout.is_empty(), "{}", answer.stdout);
    assert_eq!(run(&["graph", "examples/broken/S0101.yml", "--json"]).json()["error"]["code"], "invalid_definition");
}

#[test]
fn what_does_not_exist_is_not_found() {
    assert_eq!(run(&["graph", "no-such-thing"]).code, 3);
    assert_eq!(run(&["graph", "no/such/thing.yml"]).code, 3);
}

#[test]
fn blank_and_endless_titles_and_many_steps_are_drawn() {
    let titles = format!(
        "name: t\nsteps:\n  - {{name: a, prompt: x, title: ''}}\n  - {{name: b, prompt: x, title: ' '}}\n  - {{name: c, prompt: x, title: {}}}\n",
        "y".repeat(300_000)
    );
    let many: String = (0..3_000).map(|step| format!("  - {{name: s{step}, type: script, command: x}}\n")).collect();
    let place = folder(&[("t.yml", titles.as_bytes()), ("m.yml", format!("name: m\nsteps:\n{many}").as_bytes())]);
    for (format, beginning) in FORMATS {
        let answer = run_in(place.path(), &["graph", "t.yml", "--format", format]);
        assert_eq!(answer.code, 0, "{format}");
        assert!(answer.stdout.len() < 16_384 && !answer.stdout.contains("></font>"), "{format}");
        assert!(!answer.stdout.contains("<br/><br/>"), "{format}");
        let answer = run_in(place.path(), &["graph", "m.yml", "--format", format]);
        assert!(answer.code == 0 && answer.stdout.contains(beginning), "{format}");
    }
}
