//! Processes (seed 004): each operator, pattern and rule of the document, done by hand or by agents, and their files.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, Ran, run};

/// Puts a template where the repository has them.
pub(crate) fn template(home: &Home, name: &str, text: &str) {
    let folder = home.repository().join(".work/templates");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.toml")), format!("template = \"{name}\"\nversion = 1\n{text}")).unwrap();
}

/// A template whose steps are `name` or `name: need need`.
fn steps(home: &Home, name: &str, top: &str, steps: &[&str]) {
    let one = |line: &&str| {
        let (id, needs) = line.split_once(": ").unwrap_or((line, ""));
        let needs: Vec<String> = needs.split_whitespace().map(|need| format!("\"{need}\"")).collect();
        format!(
            "[[steps]]\nid = \"{id}\"\ntitle = \"Do {id}\"\ndescription = \"Do {id} well.\"\nneeds = [{}]\n",
            needs.join(", ")
        )
    };
    template(home, name, &format!("{top}\n{}", steps.iter().map(one).collect::<String>()));
}

/// Starts a process that is followed by hand.
fn start(home: &Home, name: &str) -> String {
    home.json(&["process", "start", name])["process"]["id"].as_str().unwrap().to_owned()
}

/// Says something about a step.
fn say(home: &Home, id: &str, step: &str, verb: &str) -> Ran {
    home.sluice(&["process", "step", id, step, verb, "--json"])
}

#[track_caller]
fn does(home: &Home, id: &str, said: &str) {
    for said in said.split(", ") {
        let (step, verb) = said.split_once(' ').unwrap();
        say(home, id, step, verb).done();
    }
}

/// `step status` of all steps.
fn statuses(home: &Home, id: &str) -> String {
    let steps = home.json(&["process", "steps", id])["steps"].as_array().unwrap().clone();
    let word = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
    steps.iter().map(|step| format!("{} {}", word(step, "id"), word(step, "status"))).collect::<Vec<_>>().join(", ")
}

pub(crate) fn file(home: &Home, name: &str) -> PathBuf {
    home.repository().join(".work/processes").join(name)
}

pub(crate) fn read(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// `type step status` of the events of a process, those of the document.
fn events(home: &Home, id: &str) -> Vec<String> {
    let told = home.sluice(&["events", "--correlation", id, "--json"]).done().stdout;
    let told = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let words = told.filter(|event| event["type"].as_str().unwrap().starts_with("process.")).map(|event| {
        assert_eq!(event["data"]["process_id"], id, "{event}");
        assert_eq!(event["correlation_id"], id, "{event}");
        let word = |key: &str| event["data"][key].as_str().map(|word| format!(" {word}")).unwrap_or_default();
        format!("{}{}{}", event["type"].as_str().unwrap(), word("step_id"), word("status"))
    });
    words.filter(|line| !line.starts_with("process.step.ready")).collect()
}

#[test]
fn compile_start_complete() {
    let home = Home::empty();
    steps(&home, "brew", "description = \"Make coffee\"", &["grind", "pour: grind"]);
    let compiled = home.json(&["process", "compile", "brew"]);
    assert_eq!(compiled["process"]["status"], "ready", "{compiled:#}");
    assert_eq!(home.json(&["process", "list"])["processes"].as_array().unwrap().len(), 0, "compiled is in memory only");

    let started = home.json(&["process", "start", "brew", "--work-order", "wo-7"]);
    let id = started["process"]["id"].as_str().unwrap();
    assert_eq!((&started["process"]["status"], &started["process"]["wo_id"]), (&"active".into(), &"wo-7".into()));
    assert_eq!(read(file(&home, &format!("{id}.json"))), home.json(&["process", "show", id])["process"]);
    assert_eq!(home.json(&["process", "list"])["processes"][0]["id"], id);

    does(&home, id, "grind start");
    assert_eq!(read(file(&home, &format!("{id}.json")))["steps"][0]["status"], "in_progress");
    home.sluice(&["process", "step", id, "grind", "complete", "--summary", "fine grounds"]).done();
    does(&home, id, "pour start, pour complete");
    assert_eq!(home.json(&["process", "show", id])["process"]["status"], "active", "it ends when somebody says so");
    home.sluice(&["process", "complete", id, "--summary", "a good cup"]).done();

    assert!(!file(&home, &format!("{id}.json")).exists());
    let archive = read(file(&home, &format!("{id}.archive.json")));
    assert_eq!((&archive["status"], &archive["summary"]), (&"completed".into(), &"a good cup".into()));
    assert_eq!((&archive["wo_id"], &archive["steps"][0]["summary"]), (&"wo-7".into(), &"fine grounds".into()));
    assert!(
        archive["steps"].as_array().unwrap().iter().all(|step| step["duration_seconds"].is_number()),
        "{archive:#}"
    );
    assert_eq!(home.json(&["process", "list"])["processes"].as_array().unwrap().len(), 0);
    assert_eq!(home.json(&["process", "list", "--all"])["processes"][0]["id"], id);
    assert_eq!(home.refused(&["process", "complete", id]), "1 finished");
    assert_eq!(
        home.git(&["status", "--porcelain", "--untracked-files=all"]),
        "?? .work/templates/brew.toml",
        "git does not see the files"
    );
    assert_eq!(
        events(&home, id),
        [
            "process.created",
            "process.step_started grind",
            "process.step_completed grind completed",
            "process.step_started pour",
            "process.step_completed pour completed",
            "process.completed completed",
        ]
    );
}

#[test]
fn cancel_leaves_no_trace_but_the_event() {
    let home = Home::empty();
    steps(&home, "brew", "", &["grind", "pour: grind"]);
    let id = start(&home, "brew");
    assert!(file(&home, &format!("{id}.json")).exists());
    home.sluice(&["process", "cancel", &id, "--reason", "no beans"]).done();
    assert_eq!(std::fs::read_dir(file(&home, "")).unwrap().count(), 0);
    for list in
        [&["process", "list", "--all"][..], &["run", "list", "--all"], &["run", "list", "--status", "cancelled"]]
    {
        let listed = home.json(list);
        let listed = listed.as_object().unwrap().values().next().unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 0, "{list:?}: {listed:#}");
    }
    assert_eq!(home.refused(&["process", "show", &id]), "3 not_found");
    let told = home.sluice(&["events", "--type", "process.cancelled", "--json"]).done().json();
    assert_eq!((&told["data"]["process_id"], &told["data"]["reason"]), (&id.clone().into(), &"no beans".into()));
}

#[test]
fn sequential_pipeline() {
    let home = Home::empty();
    steps(&home, "line", "", &["a", "b: a", "c: b", "d: c"]);
    let id = start(&home, "line");
    assert_eq!(statuses(&home, &id), "a ready, b pending, c pending, d pending");
    does(&home, &id, "a complete, b complete");
    assert_eq!(statuses(&home, &id), "a completed, b completed, c ready, d pending");
}

#[test]
fn fork_join() {
    let home = Home::empty();
    steps(&home, "fork", "max_parallel = 2", &["a", "b: a", "c: a", "d: b c"]);
    let id = start(&home, "fork");
    does(&home, &id, "a complete, b start, c start");
    assert_eq!(statuses(&home, &id), "a completed, b in_progress, c in_progress, d pending");
    does(&home, &id, "c complete");
    assert_eq!(statuses(&home, &id), "a completed, b in_progress, c completed, d pending");
    does(&home, &id, "b complete, d complete");
    home.sluice(&["process", "complete", &id]).done();
}

#[test]
fn diamond() {
    let home = Home::empty();
    steps(&home, "diamond", "max_parallel = 2", &["a", "b: a", "c: a", "d: b c", "e: c"]);
    let id = start(&home, "diamond");
    does(&home, &id, "a complete, c complete");
    assert_eq!(statuses(&home, &id), "a completed, b ready, c completed, d pending, e ready");
    does(&home, &id, "e start, b start");
    assert_eq!(statuses(&home, &id), "a completed, b in_progress, c completed, d pending, e in_progress");
}

/// Each step needs both of the pair before it: there are as many ways back to the first as there are grains of sand.
#[test]
fn a_ladder_of_diamonds() {
    let home = Home::empty();
    let mut lines = vec!["a0".to_owned(), "b0".to_owned()];
    for level in 1..48 {
        lines.extend(["a", "b"].map(|side| format!("{side}{level}: a{0} b{0}", level - 1)));
    }
    steps(&home, "ladder", "max_parallel = 2", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let id = start(&home, "ladder");
    does(&home, &id, "a0 complete, b0 start, b0 fail");
    let all = statuses(&home, &id);
    assert!(all.starts_with("a0 completed, b0 failed, a1 blocked, b1 blocked"), "{all}");
    assert!(all.ends_with("a47 blocked, b47 blocked"), "{all}");
}

#[test]
fn ready_check_and_why_a_step_waits() {
    let home = Home::empty();
    steps(&home, "line", "", &["a", "b: a"]);
    let id = start(&home, "line");
    assert_eq!(say(&home, &id, "b", "start").refusal(), "1 not_ready");
    assert_eq!(say(&home, &id, "b", "complete").refusal(), "1 not_ready");
    let told = home.sluice(&["process", "steps", &id]).done().stdout;
    assert!(told.contains("waits: a is ready"), "{told}");
}

#[test]
fn one_at_a_time() {
    let home = Home::empty();
    steps(&home, "two", "", &["a", "b"]);
    let id = start(&home, "two");
    assert_eq!(statuses(&home, &id), "a ready, b ready");
    does(&home, &id, "a start");
    assert_eq!(say(&home, &id, "b", "start").refusal(), "1 not_ready");
    does(&home, &id, "a complete, b start");
}

#[test]
fn no_backtrack() {
    let home = Home::empty();
    steps(&home, "line", "", &["a", "b: a"]);
    let id = start(&home, "line");
    does(&home, &id, "a complete");
    for verb in ["start", "complete", "fail", "skip"] {
        assert_eq!(say(&home, &id, "a", verb).refusal(), "1 not_ready", "{verb}");
    }
    assert_eq!(statuses(&home, &id), "a completed, b ready");
}

#[test]
fn fail_fast_and_a_failed_process_stays_active() {
    let home = Home::empty();
    steps(&home, "line", "", &["a", "b: a", "c: b"]);
    let id = start(&home, "line");
    does(&home, &id, "a fail");
    assert_eq!(statuses(&home, &id), "a failed, b blocked, c blocked");
    assert_eq!(home.json(&["process", "list"])["processes"][0]["status"], "active");
    assert_eq!(home.refused(&["process", "complete", &id]), "1 step_open");
    let told = home.sluice(&["process", "steps", &id]).done().stdout;
    assert!(told.contains("waits: a is failed") && told.contains("waits: b is blocked"), "{told}");
    // Its supervisor has it done again.
    home.sluice(&["run", "retry", &id]).done();
    assert_eq!(statuses(&home, &id), "a ready, b pending, c pending");
    does(&home, &id, "a complete, b complete, c complete");
    home.sluice(&["process", "complete", &id]).done();
    let ended: Vec<String> = events(&home, &id).into_iter().filter(|line| line.contains("step_completed")).collect();
    assert_eq!(ended[..2], ["process.step_completed a failed", "process.step_completed a completed"]);
}

#[test]
fn complete_is_refused_while_a_step_is_open_and_a_skipped_need_is_satisfied() {
    let home = Home::empty();
    steps(&home, "line", "", &["a", "b: a", "c: b"]);
    let id = start(&home, "line");
    does(&home, &id, "a complete");
    assert_eq!(home.refused(&["process", "complete", &id]), "1 step_open");
    let no = home.sluice(&["process", "complete", &id]).stderr;
    assert!(no.contains("`b` is ready") && no.contains("complete or skip every step first"), "{no}");
    does(&home, &id, "b skip");
    assert_eq!(statuses(&home, &id), "a completed, b skipped, c ready");
    does(&home, &id, "c complete");
    home.sluice(&["process", "complete", &id]).done();
    assert!(events(&home, &id).contains(&"process.step_completed b skipped".to_owned()));
}

#[test]
fn circular_needs_are_an_error_when_the_file_loads() {
    let home = Home::empty();
    steps(&home, "ring", "", &["a: b", "b: a"]);
    assert_eq!(home.refused(&["process", "compile", "ring"]), "1 invalid_definition");
    assert_eq!(home.refused(&["process", "start", "ring"]), "1 unusable_recipe");
}

#[test]
fn called_as_wo() {
    let home = Home::empty();
    steps(&home, "brew", "", &["grind"]);
    let id = start(&home, "brew");
    let wo = home.path("wo");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), &wo).unwrap();
    let said = |arguments: &[&str]| run(home.program(&wo).args(arguments)).done().stdout;
    assert!(said(&["process", "list"]).contains(&id));
    assert!(said(&["process", "show", &id]).contains("brew"));
    assert!(said(&["process", "steps", &id]).contains("ready"));
}

#[test]
fn step_durations_from_events() {
    let home = Home::empty();
    steps(&home, "brew", "", &["grind", "pour: grind"]);
    let id = start(&home, "brew");
    does(&home, &id, "grind start, grind complete, pour complete");
    let told = home.sluice(&["events", "--correlation", &id, "--json"]).done().stdout;
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = |kind: &str, step: &str| {
        let found = told.iter().find(|event| event["type"] == kind && event["data"]["step_id"] == step);
        found.unwrap()["time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let shown = home.json(&["process", "steps", &id]);
    for (index, step) in ["grind", "pour"].into_iter().enumerate() {
        let took = time("process.step_completed", step).duration_since(time("process.step_started", step));
        assert_eq!(shown["steps"][index]["duration_seconds"].as_f64().unwrap(), took.as_secs_f64(), "{step}");
    }
}

#[test]
fn agents_do_the_steps_of_a_template_and_it_completes_by_itself() {
    let home = Home::empty();
    let told = "[[steps]]\nid = \"grind\"\ntitle = \"Grind\"\ndescription = 'demo: json {\"summary\": \"ground\", \"result\": \"PASS\"}'\n\
        [[steps]]\nid = \"pour\"\ntitle = \"Pour\"\nneeds = [\"grind\"]\ndescription = 'demo: json {\"summary\": \"poured\"}'\n";
    template(&home, "brew", told);
    let done = home.json(&["start", "brew", "--harness", "demo", "--work-order", "wo-9"]);
    let id = done["run"]["id"].as_str().unwrap();
    assert_eq!((&done["run"]["kind"], &done["run"]["status"]), (&"process".into(), &"completed".into()), "{done:#}");
    let archive = read(file(&home, &format!("{id}.archive.json")));
    assert_eq!((&archive["summary"], &archive["wo_id"]), (&"grind: ground\npour: poured".into(), &"wo-9".into()));
    assert!(!file(&home, &format!("{id}.json")).exists());
    assert_eq!(events(&home, id).last().unwrap(), "process.completed completed");
}

#[test]
fn a_process_that_failed_can_be_discarded() {
    let home = Home::empty();
    template(&home, "brew", "[[steps]]\nid = \"grind\"\ntype = \"script\"\ncommand = \"exit 3\"\n");
    let ran = home.sluice(&["start", "brew", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let id = ran.json()["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(read(file(&home, &format!("{id}.json")))["status"], "active");
    assert_eq!(home.json(&["process", "list"])["processes"][0]["id"], id.as_str());
    home.sluice(&["process", "cancel", &id]).done();
    assert!(!file(&home, &format!("{id}.json")).exists());
    assert_eq!(home.json(&["process", "list", "--all"])["processes"].as_array().unwrap().len(), 0);
}

#[test]
fn files_are_made_up_for_after_a_crash() {
    let home = Home::empty();
    steps(&home, "brew", "", &["grind", "pour: grind"]);
    let (open, over) = (start(&home, "brew"), start(&home, "brew"));
    does(&home, &over, "grind complete, pour complete");
    home.sluice(&["process", "complete", &over]).done();
    home.kill_engine();
    // As if it had died before it wrote them.
    std::fs::remove_dir_all(file(&home, "")).unwrap();
    std::fs::write(home.place().join("followed"), "0\n").unwrap();
    home.sluice(&["process", "list"]).done();
    assert_eq!(read(file(&home, &format!("{open}.json")))["status"], "active", "open ones are there from the start");
    // What had ended is written while the log is read again; whoever looks at it finds it.
    home.sluice(&["process", "show", &over]).done();
    assert_eq!(read(file(&home, &format!("{over}.archive.json")))["status"], "completed");
}

#[test]
fn a_file_that_cannot_be_written_fails_nothing() {
    let home = Home::empty();
    steps(&home, "brew", "", &["grind"]);
    let outside = home.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, home.repository().join(".work/processes")).unwrap();
    let id = start(&home, "brew");
    does(&home, &id, "grind complete");
    home.sluice(&["process", "complete", &id]).done();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "a link leads out of the repository");
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("has no file of its own") && log.contains("leads out of"), "{log}");
}

/// Waits until a process of this id has been created.
fn until_created(home: &Home, id: &str) {
    let mut happening = home.follow(&["--type", "process.created", "--correlation", id]);
    assert!(happening.next(Instant::now() + LONG).is_some(), "{id} does not begin");
}

/// A patrol of one script step.
fn patrol(home: &Home, repeat: &str) {
    template(
        home,
        "patrol",
        &format!("repeat = {{ {repeat} }}\n[[steps]]\nid = \"look\"\ntype = \"script\"\ncommand = \"true\"\n"),
    );
}

#[test]
fn a_patrol_starts_again_and_its_archives_are_bounded() {
    let home = Home::empty();
    patrol(&home, "every = \"20ms\", keep = 2");
    let done = home.json(&["start", "patrol"]);
    let id = done["run"]["id"].as_str().unwrap();
    assert_eq!(done["run"]["status"], "completed");
    until_created(&home, &format!("{id}-r6"));
    // The sixth began after the fifth was tidied for; of those before it two are left.
    let listed = home.json(&["process", "list", "--all"]);
    let ids: Vec<&str> = listed["processes"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(ids.len() <= 5 && !ids.contains(&id), "{ids:?}");
    assert!(!file(&home, &format!("{id}.archive.json")).exists());
    assert!(!home.place().join("evidence").join(format!("{id}.jsonl")).exists());
    assert!(!home.place().join("runs").join(id).exists());
}

#[test]
fn a_patrol_survives_a_crash_at_rest_and_is_ended_at_rest() {
    let home = Home::empty();
    patrol(&home, "every = \"2s\", keep = 5");
    let first = home.json(&["start", "patrol"])["run"]["id"].as_str().unwrap().to_owned();
    home.kill_engine();
    home.sluice(&["process", "list"]).done();
    until_created(&home, &format!("{first}-r1"));

    patrol(&home, "every = \"1h\", keep = 5");
    let resting = home.json(&["start", "patrol"])["run"]["id"].as_str().unwrap().to_owned();
    home.sluice(&["process", "cancel", &resting]).done();
    assert_eq!(home.refused(&["process", "cancel", &resting]), "1 finished");
    assert_eq!(home.refused(&["run", "cancel", &first]), "1 finished");
}
