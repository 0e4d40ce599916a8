//! Settings that are changed while an engine runs, and what its sessions find around them.

use super::recipes::{fresh, grimoire, start, step, text};

#[test]
fn a_changed_config_counts_at_once_and_a_broken_one_changes_nothing() {
    let home = fresh();
    home.sluice(&["run", "list"]).done();
    let engine = home.engine_pid();
    let config = home.place().join("config.toml");
    grimoire(&home, "mine", "steps:\n  - {name: look, type: agent, harness: mine, prompt: x}\n");
    assert_ne!(start(&home, &["mine"]).code, 0, "nobody knows this harness yet");
    let harness = "[harnesses.mine]\nheadless = [\"env\"]\nreduced = [\"env\"]\noutput = \"text\"\n";
    std::fs::write(&config, harness).unwrap();
    let run = start(&home, &["mine"]).done().json()["run"].take();
    // What a session is told of its folder is true, also for programs that do not look for themselves.
    let output = text(&step(&run, "look")["output"]).to_owned();
    let folder = output.lines().find_map(|line| line.strip_prefix("PWD=")).unwrap();
    assert_eq!(folder, text(&run["workspace"]), "{output}");
    std::fs::write(&config, "[harnesses").unwrap();
    start(&home, &["mine"]).done();
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("what it said before stays in force"), "{log}");
    assert_eq!(home.engine_pid(), engine, "it was one engine all the time");
}
