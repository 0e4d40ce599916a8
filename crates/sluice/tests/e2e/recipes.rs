//! What tests of runs share: recipes written into the scratch repository, started with the scripted agent, and looked at
//! after everything that happens to them.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::home::{Home, LONG, Ran};

/// A grimoire that the repository has, with these steps (and whatever else stands above them).
pub(crate) fn grimoire(home: &Home, name: &str, rest: &str) {
    let text = format!("name: {name}\ndescription: A test\ntrigger: manual\n{rest}");
    write(home, &format!(".coven/grimoires/{name}.yml"), &text);
}

/// Writes a file of the main checkout.
pub(crate) fn write(home: &Home, path: &str, text: &str) {
    let path = home.repository().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Makes every step without a harness one of the scripted agent, and adds a harness `shell` for which the prompt is a
/// script of the shell.
pub(crate) fn with_shell(home: &Home) {
    std::fs::create_dir_all(home.place()).unwrap();
    let config = "[defaults]\nharness = \"demo\"\n\n[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n";
    std::fs::write(home.place().join("config.toml"), config).unwrap();
}

/// A home with a repository that nobody has set up for anything but the scripted agent.
pub(crate) fn fresh() -> Home {
    let home = Home::empty();
    with_shell(&home);
    home
}

/// `sluice start`, followed to the end.
#[track_caller]
pub(crate) fn start(home: &Home, arguments: &[&str]) -> Ran {
    home.sluice(&[&["start"], arguments, &["--json"]].concat())
}

/// Starts a recipe and goes on; gives the id of the run.
#[track_caller]
pub(crate) fn begin(home: &Home, arguments: &[&str]) -> String {
    let answer = home.json(&[&["start"], arguments, &["--detach"]].concat());
    answer["run"]["id"].as_str().unwrap().to_owned()
}

/// A run as `run show` has it.
#[track_caller]
pub(crate) fn show(home: &Home, id: &str) -> Value {
    home.json(&["run", "show", id])["run"].take()
}

/// Waits until a run has ended or waits for a person.
#[track_caller]
pub(crate) fn settled(home: &Home, id: &str) -> Value {
    let ran = home.sluice(&["run", "follow", id, "--json"]);
    assert!([0, 1, 10].contains(&ran.code), "{ran:?}");
    ran.json()["run"].take()
}

/// Waits until a run has this status.
#[track_caller]
pub(crate) fn until_status(home: &Home, id: &str, status: &str) -> Value {
    let run = settled(home, id);
    assert_eq!(run["status"], status, "{run:#}");
    run
}

/// Waits until something is so about a run, looking after everything that happens to it.
#[track_caller]
pub(crate) fn until(home: &Home, id: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
    let mut happening = home.follow(&["--correlation", id]);
    let give_up = Instant::now() + LONG;
    loop {
        let run = show(home, id);
        if is_so(&run) {
            return run;
        }
        assert!(happening.next(give_up).is_some(), "{run:#}");
    }
}

/// One step of a run as it was shown.
#[track_caller]
pub(crate) fn step<'a>(run: &'a Value, name: &str) -> &'a Value {
    let steps = run["steps"].as_array().unwrap();
    steps.iter().find(|step| step["id"] == name).unwrap_or_else(|| panic!("no {name} in {run:#}"))
}

/// The steps of a run with where each stands: `plan completed, implement running`.
pub(crate) fn standing(run: &Value) -> String {
    let steps = run["steps"].as_array().unwrap();
    let words: Vec<String> =
        steps.iter().map(|step| format!("{} {}", text(&step["id"]), text(&step["status"]))).collect();
    words.join(", ")
}

/// A text of an answer.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Everything that happened to a run.
#[track_caller]
pub(crate) fn events(home: &Home, id: &str) -> Vec<Value> {
    let ran = home.sluice(&["events", "--json", "--correlation", id]).done();
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of a run in words: their type and their step.
pub(crate) fn told(home: &Home, id: &str, begins: &str) -> Vec<String> {
    let all = events(home, id);
    let wanted = all.iter().filter(|event| text(&event["type"]).starts_with(begins));
    wanted
        .map(|event| match event["data"]["step_id"].as_str() {
            Some(step) => format!("{} {step}", text(&event["type"])),
            None => text(&event["type"]).to_owned(),
        })
        .collect()
}

/// The first event of a run of this type.
#[track_caller]
pub(crate) fn first(home: &Home, id: &str, kind: &str) -> Value {
    let found = events(home, id).into_iter().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} among {:?}", told(home, id, "")))
}

/// The question of a run that waits for a person.
#[track_caller]
pub(crate) fn question(home: &Home, id: &str) -> Value {
    let inbox = home.json(&["inbox"]);
    let questions = inbox["questions"].as_array().unwrap();
    questions.iter().find(|it| it["run"] == id).unwrap_or_else(|| panic!("{inbox:#}")).clone()
}

/// Waits until nothing that belongs to a run lives any more, and says how long that took.
#[track_caller]
pub(crate) fn all_gone(pids: &[i32]) -> Duration {
    let began = Instant::now();
    for pid in pids {
        let Some(pid) = rustix::process::Pid::from_raw(*pid) else { continue };
        let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { continue };
        let within = rustix::event::Timespec { tv_sec: i64::try_from(LONG.as_secs()).unwrap(), tv_nsec: 0 };
        let waiting = &mut [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(waiting, Some(&within)), Ok(1), "{pid:?} lives on");
    }
    began.elapsed()
}
