//! Settings that are changed while an engine runs, and what its sessions find around them.

use super::home::{Home, run};
use super::recipes::{fresh, grimoire, settled, start, step, text};

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

#[test]
fn sessions_have_what_the_shell_of_the_last_command_has() {
    let home = fresh();
    let go = home.place().join("go");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    let look = "{name: look, type: script, needs: [wait], command: 'echo \"[$OPENAI_MODEL]\"'}";
    grimoire(
        &home,
        "mine",
        &format!("steps:\n  - {{name: wait, type: script, needs: [], command: '{waits}'}}\n  - {look}\n"),
    );
    let begin = |set: Option<&str>| {
        let mut command = home.command(&["start", "mine", "--detach", "--json"]);
        set.map(|value| command.env("OPENAI_MODEL", value));
        text(&run(&mut command).done().json()["run"]["id"]).to_owned()
    };
    let seen = |id: &str| text(&step(&settled(&home, id), "look")["output"]).trim().to_owned();
    let first = begin(Some("first"));
    let engine = home.engine_pid();
    // Who only looks is no example.
    run(home.command(&["inbox"]).env("OPENAI_MODEL", "looked")).done();
    std::fs::write(&go, "").unwrap();
    assert_eq!(seen(&first), "[first]");
    assert_eq!(seen(&begin(Some("second"))), "[second]");
    let config = home.place().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}\n[env]\ndeny = [\"OPENAI_*\"]\n")).unwrap();
    assert_eq!(seen(&begin(Some("third"))), "[]");
    std::fs::write(&config, before).unwrap();
    // Without a terminal little may be set, and nothing is taken away.
    assert_eq!(seen(&begin(None)), "[third]");
    assert_eq!(home.engine_pid(), engine, "it was one engine all the time");
}

#[test]
fn how_the_memory_of_an_engine_is_laid_out_is_nothing_for_its_scripts() {
    let home = fresh();
    let look = "{name: look, type: script, needs: [], command: 'echo \"[$MALLOC_ARENA_MAX]\"'}";
    grimoire(&home, "mine", &format!("steps:\n  - {look}\n"));
    let id =
        text(&run(&mut home.command(&["start", "mine", "--detach", "--json"])).done().json()["run"]["id"]).to_owned();
    assert_eq!(text(&step(&settled(&home, &id), "look")["output"]).trim(), "[]");
    let environment = std::fs::read(format!("/proc/{}/environ", home.engine_pid())).unwrap();
    assert!(environment.split(|byte| *byte == 0).any(|it| it == b"MALLOC_ARENA_MAX=2"), "it keeps many heaps");
}

/// A job that takes a lock and calls `sluice` would keep it for as long as the engine runs that this starts.
#[test]
fn an_engine_holds_nothing_open_of_the_command_that_started_it() {
    let home = fresh();
    let locked = home.path("lock");
    let program = env!("CARGO_BIN_EXE_sluice");
    let command = home.command(&[]);
    let shell = format!("exec 9> {0}; exec {program} task list", locked.display());
    let mut shell_command = std::process::Command::new("sh");
    shell_command
        .args(["-c", &shell])
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell_command.current_dir(home.repository());
    assert!(shell_command.output().unwrap().status.success());
    let open = std::fs::read_dir(format!("/proc/{}/fd", home.engine_pid())).unwrap();
    let open: Vec<_> = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()).collect();
    assert!(!open.contains(&locked), "{open:?}");
}

#[test]
fn what_is_misspelt_is_refused_with_what_can_be_said() {
    let home = Home::empty();
    let refused = home.sluice(&["project", "add", "--workflow", "reviewd"]);
    assert!(refused.code == 3 && refused.stderr.contains("reviewed"), "{refused:?}");
    assert_eq!(home.json(&["project", "list"])["projects"], serde_json::json!([]));
    home.sluice(&["project", "add", "--workflow", "reviewed"]).done();
    // A key of a list of tables cannot be set by itself: the hint leads on.
    for key in ["notify.webhook[].url", "notify.webhook.url"] {
        let refused = home.sluice(&["config", "set", key, "https://example.com/hook"]);
        assert!(refused.code == 3 && refused.stderr.contains("`sluice config set notify.webhook '["), "{refused:?}");
    }
    let whole = r#"[{ url = "https://example.com/hook" }]"#;
    home.sluice(&["config", "set", "notify.webhook", whole]).done();
}
