//! Commands that follow or wait go on with the next engine: nothing is lost between the two, and nothing is told twice.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::home::{Home, LONG};
use super::recipes::text;

/// A command that goes on: what it prints, line by line, and what it says beside that.
struct FollowedCommand {
    child: Child,
    output: Receiver<String>,
    errors: Receiver<String>,
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    let stream = BufReader::new(stream);
    std::thread::spawn(move || stream.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

impl FollowedCommand {
    fn of(command: &mut Command) -> FollowedCommand {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (output, errors) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        FollowedCommand { child, output, errors }
    }

    #[track_caller]
    fn until(&self, wanted: &str) {
        while self.output.recv_timeout(LONG).unwrap_or_else(|error| panic!("{error}: no {wanted}")) != wanted {}
    }

    /// Waits until it has noticed that the engine is gone.
    #[track_caller]
    fn is_left_alone(&self) {
        while !self.errors.recv_timeout(LONG).unwrap().starts_with("engine away") {}
    }

    /// What else it prints until it ends, and its exit code.
    #[track_caller]
    fn rest(mut self) -> (Vec<String>, Option<i32>) {
        let rest: Vec<String> = std::iter::from_fn(|| self.output.recv_timeout(LONG).ok()).collect();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for FollowedCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_are_followed_from_one_engine_to_the_next() {
    let home = Home::new();
    let first = home.create("first", "worker: hang", &["--no-spawn"]);
    let following =
        FollowedCommand::of(&mut home.command(&["events", "--follow", "--all", "--json", "--type", "task.created"]));
    let next = || {
        let event: Value = serde_json::from_str(&following.output.recv_timeout(LONG).unwrap()).unwrap();
        text(&event["data"]["task_id"]).to_owned()
    };
    assert_eq!(next(), first);
    for round in 0..2 {
        home.kill_engine();
        following.is_left_alone();
        // The command starts the next engine.
        let created = home.create(&format!("later-{round}"), "worker: hang", &["--no-spawn"]);
        assert_eq!(next(), created);
    }
}

#[test]
fn a_log_is_followed_from_one_engine_to_the_next() {
    let home = Home::new();
    let (here, go) = (home.pipe("here"), home.pipe("go"));
    let script = format!("worker: say one; tell {}; wait for {}; say two; say three; exit 3", here.path(), go.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    let following = FollowedCommand::of(&mut home.command(&["task", "log", &id, "--follow"]));
    following.until("one");
    home.kill_engine();
    following.is_left_alone();
    // What is printed while no engine runs is not lost.
    go.let_go();
    home.task(&id);
    let (rest, code) = following.rest();
    assert_eq!((rest, code), (vec!["two".to_owned(), "three".to_owned()], Some(0)));
}

#[test]
fn a_wait_goes_on_with_the_next_engine() {
    let home = Home::new();
    let (here, go) = (home.pipe("here"), home.pipe("go"));
    let script = format!("worker: tell {}; wait for {}; work\nreviewer: review pass", here.path(), go.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    let waiting = FollowedCommand::of(&mut home.command(&["task", "wait", &id, "--status", "reviewing", "--json"]));
    // It waits when an engine is killed, or asks it for the first time then: either way the next one answers.
    home.kill_engine();
    home.task(&id);
    go.let_go();
    let (rest, code) = waiting.rest();
    assert_eq!(code, Some(0), "{rest:?}");
    let answer: Value = serde_json::from_str(&rest.join("\n")).unwrap();
    assert_eq!(answer["task"]["status"], "reviewing", "{answer:#}");
}
