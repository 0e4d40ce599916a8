//! An agent whose prompt is typed into its terminal, and that never reads there: nothing else waits for that.

use super::home::Home;
use super::process;

/// A home with the harness `deaf`: it says that it has begun, and then it hears nothing.
fn with_deaf_agents() -> (Home, super::home::Pipe) {
    let home = Home::empty();
    let here = home.pipe("here");
    std::fs::create_dir(home.place()).unwrap();
    let line = format!("echo x > {}; exec sleep 3600", here.path());
    let config = format!("[harnesses.deaf]\ninteractive = [\"sh\", \"-c\", {line:?}]\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    home.sluice(&["project", "add", "--pool-size", "3"]).done();
    (home, here)
}

#[test]
fn an_agent_that_never_reads_its_prompt_holds_up_nobody() {
    let (home, here) = with_deaf_agents();
    let create = |branch: &str| {
        let answer = home.json(&["task", "create", branch, "Do it", "--harness", "deaf"]);
        here.hear();
        // It is at work as soon as it is started: that it reads is no part of that.
        let id = answer["task"]["id"].as_str().unwrap().to_owned();
        home.until_status(&id, "working");
        id
    };
    let first = create("first");
    let agent = home.path("home/sessions/live").join(format!("{first}.1/started.json"));
    let agent: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(agent).unwrap()).unwrap();
    // Whoever says something more is told why it does not arrive.
    let nudged = home.sluice(&["task", "nudge", &first, "hello", "--json"]);
    assert_eq!(nudged.refusal(), "1 not_delivered", "{nudged:?}");
    assert!(nudged.stdout.contains("has not read yet what was typed before"), "{nudged:?}");
    let cancelled = home.json(&["task", "cancel", &first, "--yes"]);
    assert_eq!((&cancelled["task"]["status"], &cancelled["still_running"]), (&"cancelled".into(), &false.into()));
    assert_eq!(cancelled["task"]["session"], "inactive");
    assert!(!process::lives(i32::try_from(agent["agent"]["pid"].as_i64().unwrap()).unwrap()));
    let second = create("second");
    home.sluice(&["task", "delete", &second, "--yes"]).done();
    assert_eq!(home.json(&["task", "list"])["tasks"].as_array().unwrap().len(), 0);
}
