//! What a stranger finds who has nothing but the contract, and takes it by the letter.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::{Value, json};

use super::home::{Home, LONG, run};
use super::recipes::{first, fresh, grimoire, start, write};

/// A template of three steps, the last of which needs both others.
const TEMPLATE: &str = r#"template = "brew"
description = "Make coffee"
version = 1

[[steps]]
id = "grind"
title = "Grind"
description = "Grind the beans"

[[steps]]
id = "boil"
title = "Boil"
description = "Boil the water"

[[steps]]
id = "pour"
title = "Pour"
description = "Pour it"
needs = ["grind", "boil"]
"#;

/// A program of a person's own, which writes down every time it is started and then waits to be let go.
fn own_agent(home: &Home) {
    let program = home.path("my-agent");
    let log = home.path("started").display().to_string();
    std::fs::write(&program, format!("#!/bin/sh\nprintf 'started %s\\n' \"$*\" >> '{log}'\ncat > /dev/null\n"))
        .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(home.place()).unwrap();
    let config = format!("[harnesses.mine]\nheadless = [\"{}\", \"--print\"]\n", program.display());
    std::fs::write(home.place().join("config.toml"), config).unwrap();
}

#[test]
fn an_agent_of_ones_own_is_started_for_its_work_and_for_nothing_else() {
    let home = Home::empty();
    own_agent(&home);
    grimoire(&home, "once", "steps:\n  - name: work\n    type: agent\n    prompt: Work\n");
    let ran = start(&home, &["once", "--harness", "mine"]).done();
    assert_eq!(ran.json()["run"]["status"], "completed");
    let doctor = home.json(&["doctor"]);
    let about = doctor["checks"].as_array().unwrap().iter().find(|it| it["name"] == "mine").unwrap();
    // It is found, and it cannot reduce what an arbiter may do.
    assert_eq!((&about["status"], &about["found"]), (&"warning".into(), &json!(home.path("my-agent"))), "{about}");
    assert_eq!(std::fs::read_to_string(home.path("started")).unwrap(), "started --print\n");
}

#[test]
fn a_session_is_called_as_the_task_says_also_when_its_branch_has_another_name() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    assert_eq!(home.windows(), ["coffee/brew:worker"]);
    let renamed = home.json(&["task", "update", &id, "--branch", "better.name"]);
    assert_eq!(renamed["task"]["tmux_session"], "coffee/better_name");
    assert_eq!(home.windows(), ["coffee/better_name:worker"]);
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(home.windows(), Vec::<String>::new());
}

#[test]
fn the_file_of_a_task_is_below_the_name_of_its_project() {
    let home = Home::empty();
    home.json(&["project", "add", "--name", "My Coffee.rs"]);
    let id = home.create("brew", "worker: hang", &["--no-spawn"]);
    let file = home.place().join("tasks/My Coffee.rs").join(&id).join("TASK.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("id: {id}\n")) || text.contains(&format!("id: \"{id}\"\n")), "{text}");
}

#[test]
fn a_process_says_what_was_done_and_the_way_on() {
    let home = Home::empty();
    write(&home, ".work/templates/brew.toml", TEMPLATE);
    let begin = || home.json(&["process", "start", "brew"])["process"]["id"].as_str().unwrap().to_owned();
    let hint = |arguments: &[&str]| {
        let ran = home.sluice(&[arguments, &["--json"]].concat());
        format!("{}: {}", ran.refusal(), ran.json()["error"]["hint"].as_str().unwrap())
    };
    let id = begin();
    home.json(&["process", "step", &id, "grind", "fail", "--summary", "no beans"]);
    let told = home.json(&["process", "step", &id, "boil", "skip"]);
    let step = |index: usize| told["process"]["steps"][index].clone();
    assert!(step(0)["completed_at"].is_string() && step(1)["completed_at"].is_string(), "{told:#}");
    assert_eq!((&step(2)["status"], &step(2)["completed_at"]), (&"blocked".into(), &Value::Null), "{told:#}");
    insta::assert_snapshot!([
        hint(&["process", "complete", &id]),
        hint(&["process", "step", &id, "grind", "skip"]),
        hint(&["process", "step", &id, "grind", "start"]),
        hint(&["process", "step", &id, "boil", "start"]),
    ].join("\n"), @r"
    1 step_open: `run retry` tries it again, `process cancel` discards the whole process
    1 not_ready: `run retry` tries it again, `process cancel` discards the whole process
    1 not_ready: `run retry` tries it again, `process cancel` discards the whole process
    1 not_ready: what has been done or left out stays so
    ");
    home.json(&["run", "retry", &id, "grind"]);
    for step in ["grind", "pour"] {
        home.json(&["process", "step", &id, step, "complete"]);
    }
    // Nobody summed it up, and no step said anything.
    let completed = home.json(&["process", "complete", &id]);
    assert_eq!(completed["process"]["summary"], "2 steps completed, 1 skipped");
    let gone = home.json(&["process", "cancel", &begin()]);
    let ends = gone["process"]["steps"].as_array().unwrap().iter().map(|step| &step["completed_at"]);
    assert!(ends.into_iter().all(Value::is_null), "{gone:#}");
}

#[test]
fn the_way_out_of_a_broken_recipe_can_be_taken() {
    let home = fresh();
    grimoire(&home, "torn", "steps:\n  - name: a\n    type: script\n    comand: echo\n");
    let hint = |name: &str| start(&home, &[name]).json()["error"]["hint"].as_str().unwrap().to_owned();
    let file = home.repository().join(".coven/grimoires/torn.yml");
    assert_eq!(hint("torn"), format!("`sluice check {}` shows every problem", file.display()));
    assert_eq!(home.sluice(&["check", file.to_str().unwrap()]).code, 1);
    assert_eq!(hint("default"), "`sluice task create --workflow default` makes a task of it");
}

#[test]
fn what_is_not_there_is_not_found() {
    let home = Home::empty();
    assert_eq!(home.refused(&["project", "add", "nowhere"]), "3 not_found");
    assert_eq!(home.refused(&["project", "import", "nowhere.json"]), "3 not_found");
    let ran = home.sluice(&["check", "nowhere.yml", "--format", "json"]);
    assert_eq!((ran.refusal().as_str(), ran.stderr.as_str()), ("3 not_found", ""));
    let ran = run(home.command(&["check", "nowhere.yml"]).current_dir(home.path("user")));
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
}

#[test]
fn what_a_command_answers_has_settled() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    home.json(&["task", "update", &id, "--status", "stuck"]);
    // The agent lives, and is ended before the next one starts.
    let answer = home.json(&["task", "update", &id, "--status", "working"]);
    let effects = answer["transition"]["effects"].as_array().unwrap();
    let told: Vec<String> = effects
        .iter()
        .map(|it| format!("{} {}", it["action"].as_str().unwrap(), it["status"].as_str().unwrap()))
        .collect();
    assert_eq!(told, ["kill_session done", "spawn_agent done"], "{answer:#}");
    assert_eq!(answer["still_running"], false);
}

#[test]
fn a_deleted_task_is_gone_and_its_history_stays() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &["--no-spawn"]);
    home.json(&["task", "delete", &id, "--yes"]);
    assert_eq!(home.refused(&["task", "show", &id]), "3 not_found");
    assert_eq!(home.json(&["task", "list", "--all"])["tasks"], json!([]));
    let history = home.history(&id);
    let deleted = history.iter().find(|event| event["type"] == "task.deleted").unwrap();
    assert!(deleted["actor"].as_str().unwrap().starts_with("person"), "{deleted:#}");
}

#[test]
fn a_workflow_that_waits_for_a_person_says_so_in_its_own_words() {
    let home = fresh();
    grimoire(&home, "gated", "steps:\n  - name: check\n    type: gate\n    command: \"false\"\n");
    let ran = start(&home, &["gated"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    let id = ran.json()["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(first(&home, &id, "workflow.blocked")["data"]["status"], "blocked");
}

#[test]
fn a_fan_out_goes_over_a_list_that_was_typed_or_printed() {
    let home = fresh();
    let steps = "steps:
  - name: list
    type: script
    output: listed
    command: |
      printf '[ \"a\", \"b c\",\\n3]\\n'
  - name: printed
    type: parallel-agents
    for_each: ${listed}
    output: one
    prompt: 'demo: json {\"saw\": \"${item}\"}'
  - name: typed
    type: parallel-agents
    for_each: ${input.names}
    output: two
    prompt: 'demo: json {\"met\": \"${item}\"}'
  - name: text
    type: script
    output: three
    command: printf %s \"${input.other}\"
";
    grimoire(&home, "each", steps);
    let given = ["each", "--input", "names=[\"x\", \"y\"]", "--input", "other=[ \"x\" ]"];
    let run = start(&home, &given).done().json()["run"].take();
    let found = &run["variables"];
    assert_eq!(found["one"], json!([{ "saw": "a" }, { "saw": "b c" }, { "saw": "3" }]));
    assert_eq!(found["two"], json!([{ "met": "x" }, { "met": "y" }]));
    assert_eq!(found["three"], "[ \"x\" ]", "what no fan-out goes over is left as it is");
    let wrong = ["each", "--input", "names=nobody", "--input", "other="];
    let run = start(&home, &wrong).json()["run"].take();
    let error = "`typed` failed: `input.names` is not a list, and `for_each` goes over one";
    assert_eq!((&run["status"], &run["error"]), (&"failed".into(), &error.into()), "{run:#}");
}

/// Asks the engine again and again until something has become true that no event tells of.
fn by_and_by(home: &Home, what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        home.sluice(&["task", "list"]);
    }
}

#[test]
fn what_a_session_leaves_holds_no_secrets_and_goes_with_its_task() {
    let home = Home::new();
    let id = home.create("brew", "worker: write Handoff; update agent-review\nreviewer: hang", &[]);
    home.until_status(&id, "agent-review");
    let folders =
        |number: u32| ["live", "attempts"].map(|it| home.place().join(format!("sessions/{it}/{id}.{number}")));
    let [worker, _] = folders(1);
    let spec = || std::fs::read_to_string(worker.join("spec.json")).unwrap();
    by_and_by(&home, "its environment stays on disk", || !spec().contains("SLUICE_TOKEN"));
    assert!(spec().contains("arguments"), "{}", spec());
    home.json(&["task", "cancel", &id, "--yes"]);
    home.json(&["task", "delete", &id, "--yes"]);
    assert!(folders(1).iter().chain(&folders(2)).all(|folder| folder.is_dir()));
    home.sluice(&["stop"]).done();
    by_and_by(&home, "its folders stay", || !folders(1).iter().chain(&folders(2)).any(|folder| folder.exists()));
}
