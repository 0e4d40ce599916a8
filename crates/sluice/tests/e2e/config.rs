//! `config.toml` and what sessions find in their environment, while an engine runs: what counts from when on, who is told
//! when a file cannot be used, and whose environment it is.

use std::path::Path;
use std::time::Instant;

use super::home::{Home, LONG, run};
use super::recipes::{fresh, grimoire, start, step, text};
use super::served::{Served, token};

fn put(home: &Home, text: &str) {
    let new = home.path("new.toml");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, home.place().join("config.toml")).unwrap();
}

/// A harness that tells what it has in its environment, and is not reviewed.
const TELLS: &str = "headless = [\"env\"]\nreduced = [\"env\"]\noutput = \"text\"\n";

#[test]
fn every_section_counts_for_the_next_start() {
    let home = fresh();
    home.sluice(&["run", "list"]).done();
    let engine = home.engine_pid();
    let hook = "on_complete: [{action: notify, message: it is over}]\n";
    grimoire(&home, "plain", &format!("{hook}steps:\n  - {{name: look, type: agent, prompt: x}}\n"));
    for (harness, value) in [("one", "first"), ("two", "second")] {
        let told = home.path(&format!("told-by-{harness}"));
        let line = format!("cat > {}.new; mv {0}.new {0}", told.display());
        // The harness exists from now on, is the usual one, and the other is not there any more.
        put(
            &home,
            &format!(
                "[defaults]\nharness = \"{harness}\"\n[env]\nset = {{ MY_PLACE = \"{value}\" }}\n\
                 [notify]\ncommand = [\"sh\", \"-c\", \"{line}\"]\n[harnesses.{harness}]\n{TELLS}"
            ),
        );
        let ended = start(&home, &["plain"]).done().json()["run"].take();
        let output = text(&step(&ended, "look")["output"]).to_owned();
        assert!(output.lines().any(|line| line == format!("MY_PLACE={value}")), "{output}");
        let mut settled = home.follow(&["--type", "effect.settled", "--correlation", text(&ended["id"])]);
        let event = settled.next(Instant::now() + LONG).unwrap();
        assert!(event["data"]["error"].is_null(), "{event:#}");
        assert!(std::fs::read_to_string(&told).unwrap().contains("it is over"));
    }
    assert_eq!(home.engine_pid(), engine, "it was one engine all the time");
}

#[test]
fn a_file_that_cannot_be_used_is_told_of_wherever_a_person_looks() {
    let home = Home::new();
    put(&home, "[env]\nset = { MY_PLACE = \"here\" }\n");
    let create =
        |branch: &str| home.sluice(&["task", "create", branch, "Do it", "--harness", "demo", "--no-spawn"]).done();
    assert_eq!(create("first").stderr.matches("warning").count(), 0);
    put(&home, "[env]\nset = { MY_PLACE = \"there\" }\n[workspaces]\nkeep = \"soon\"\n");
    let said = create("second").stderr;
    assert!(said.contains("warning: ") && said.contains("what it said before stays in force"), "{said}");
    assert!(said.contains("hint: `sluice config check`"), "{said}");
    let health = home.sluice(&["doctor", "--json"]).json();
    let found = health["checks"].as_array().unwrap().iter().find(|check| check["name"] == "config").unwrap();
    assert_eq!(found["status"], "broken");
    let place = format!("{}:4:8: `keep` is not a length of time", home.place().join("config.toml").display());
    assert!(text(&found["found"]).starts_with(&place), "{found}");
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("what it said before stays in force"), "{log}");
    // The answer for programs is as it was.
    home.sluice(&["task", "list", "--json"]).done().json();
    let mended = home.sluice(&["config", "set", "workspaces.keep", "7d"]).done();
    assert_eq!(mended.stderr, "");
    assert_eq!(create("third").stderr.matches("warning").count(), 0);
}

#[test]
fn settings_are_shown_and_changed_without_an_engine() {
    let home = Home::empty();
    let config = |arguments: &[&str]| home.sluice(&[&["config"], arguments].concat());
    assert_eq!(config(&["get", "retention.days"]).done().stdout, "90\n");
    config(&["set", "retention.days", "30"]).done();
    config(&["set", "env.set.MY_PLACE", "here"]).done();
    assert_eq!(config(&["get", "env.set.MY_PLACE"]).done().stdout, "here\n");
    let listed = config(&["list", "--json"]).done().json();
    let of = |key: &str| {
        let all = listed["settings"].as_array().unwrap();
        all.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("{key} in {listed:#}")).clone()
    };
    let days = of("retention.days");
    assert_eq!((&days["value"], &days["default"], &days["from"]), (&30.into(), &90.into(), &"file".into()));
    assert_eq!(of("retention.keeps")["from"], "default");
    assert!(text(&of("serve.burst")["about"]).len() > 10);
    let get = ["config", "get", "defaults.harness", "--json"];
    let of_shell = run(home.command(&get).env("SLUICE_HARNESS", "demo")).done().json()["setting"].take();
    assert_eq!((&of_shell["value"], &of_shell["from"]), (&"demo".into(), &"environment".into()));
    let refused = config(&["set", "retention.days", "ninety", "--json"]);
    assert_eq!(refused.refusal(), "1 bad_setting");
    let unknown = config(&["get", "retention.dayz", "--json"]);
    assert_eq!(unknown.refusal(), "3 not_found");
    assert!(unknown.stdout.contains("did you mean `retention.days`?"), "{unknown:?}");
    config(&["set", "retention.days", "--unset"]).done();
    let file = std::fs::read_to_string(home.place().join("config.toml")).unwrap();
    assert_eq!(file, "[env.set]\nMY_PLACE = \"here\"\n");
    assert!(!home.place().join("engine.lock").exists(), "none was started");
}

/// Whoever knows the address of a webhook can post to it.
#[test]
fn of_a_webhook_only_the_host_is_shown_and_an_address_that_cannot_be_used_is_a_problem() {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let file = home.place().join("config.toml");
    std::fs::write(&file, "[[notify.webhook]]\nurl = \"https://ntfy.sh/my-secret-topic\"\nkind = \"ntfy\"\n").unwrap();
    for arguments in [&["config", "list"][..], &["config", "get", "notify.webhook"]] {
        for more in [&[][..], &["--json"]] {
            let shown = home.sluice(&[arguments, more].concat()).done().stdout;
            assert!(shown.contains("ntfy.sh") && !shown.contains("my-secret-topic"), "{shown}");
        }
    }
    home.sluice(&["config", "check"]).done();
    std::fs::write(&file, "[[notify.webhook]]\nurl = \"ftp://ntfy.sh/topic\"\n").unwrap();
    let checked = home.sluice(&["config", "check", "--json"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.contains("the address of a webhook cannot be used"), "{checked:?}");
}

/// A home whose workers do this, and whose reviewers write `OPENAI_MODEL` as they have it to a pipe.
fn with_shells(home: &Home, worker: &str, seen: &Path) {
    let (work, look) = (home.path("worker.sh"), home.path("reviewer.sh"));
    std::fs::write(&work, worker).unwrap();
    std::fs::write(&look, format!("echo \"[$OPENAI_MODEL]\" > {}\nexec sleep 3600\n", seen.display())).unwrap();
    let harness = |name: &str, file: &Path| {
        format!("[harnesses.{name}]\ninteractive = [\"/bin/sh\", {:?}, \"{{prompt}}\"]\n", file.display().to_string())
    };
    std::fs::create_dir_all(home.place()).unwrap();
    put(home, &(harness("work", &work) + &harness("look", &look)));
}

const CREATE: [&str; 9] = ["task", "create", "brew", "Brew", "--harness", "work", "--review-harness", "look", "--json"];

/// Hands over with another environment than it was given.
const HANDS_OVER: &str = "export OPENAI_MODEL=agent\nsluice task update --summary Brewed\n\
    printf '\\n## Handoff\\n\\nDONE: it\\n' >> TASK.md\nsluice task update --status agent-review\nexec sleep 3600\n";

#[test]
fn an_agent_and_a_person_elsewhere_change_no_environment() {
    let home = Home::empty();
    let (here, on, seen) = (home.pipe("here"), home.pipe("on"), home.pipe("seen"));
    let worker = format!("echo x > {}\nread x < {}\n{HANDS_OVER}", here.path(), on.path());
    with_shells(&home, &worker, Path::new(seen.path()));
    let served = Served::with(&home, &[], &[("OPENAI_MODEL", "served")]);
    home.sluice(&["project", "add"]).done();
    let (_, secret) = token(&home, &["--scope", "person"]);
    let created = run(home.command(&CREATE).env("OPENAI_MODEL", "person")).done().json();
    let id = text(&created["task"]["id"]).to_owned();
    here.hear();
    let mut elsewhere = home.command(&["task", "update", &id, "--summary", "Brew it hot"]);
    elsewhere.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", &secret).env("OPENAI_MODEL", "network");
    run(&mut elsewhere).done();
    on.let_go();
    assert_eq!(seen.heard(), "[person]\n");
    assert_eq!(home.task(&id)["summary"], "Brewed");
}

#[test]
fn an_engine_that_an_agent_starts_has_the_environment_of_a_person() {
    let home = Home::empty();
    let (here, on, seen) = (home.pipe("here"), home.pipe("on"), home.pipe("seen"));
    let worker = format!("echo x > {}\nread x < {}\n{HANDS_OVER}", here.path(), on.path());
    with_shells(&home, &worker, Path::new(seen.path()));
    home.sluice(&["project", "add"]).done();
    run(home.command(&CREATE).env("OPENAI_MODEL", "person")).done();
    here.hear();
    let before = home.engine_pid();
    home.kill_engine();
    on.let_go();
    assert_eq!(seen.heard(), "[person]\n");
    assert_ne!(home.engine_pid(), before);
}
