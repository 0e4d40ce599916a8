//! What a person is told: nothing that others have written rules their terminal, an engine that does not answer is not waited
//! for in silence, and what is said has a way out that is there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::home::{Home, run};
use super::recipes::{begin, fresh, grimoire, until_status};

/// What a command shows on a terminal.
fn on_terminal(home: &Home, arguments: &[&str]) -> String {
    let words: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_sluice"), words.join(" "));
    let mut script = home.program("script");
    run(script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color")).stdout
}

#[test]
fn what_others_have_written_rules_no_terminal() {
    let home = fresh();
    home.sluice(&["project", "add"]).done();
    // `start` follows it, and shows it beside the lines that move.
    grimoire(
        &home,
        "loud",
        "steps:\n  - {name: one, type: script, command: 'printf \"\\033]0;owned\\007\\033[31mx\\n\" >&2; exit 3'}\n",
    );
    let started = on_terminal(&home, &["start", "loud"]);
    let id = begin(&home, &["loud"]);
    until_status(&home, &id, "failed");
    let red = "red \u{1b}[31mx\u{1b}]0;owned\u{7}\u{202e}";
    let task = home.json(&["task", "create", "brew", red, "--no-spawn"])["task"]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.task(&task)["summary"], red, "programs get it as it is");
    let mut shown = vec![started];
    for words in [
        &["run", "log", id.as_str()][..],
        &["run", "show", &id],
        &["run", "list", "--all"],
        &["task", "show", &task],
        &["task", "list"],
        &["task", "history", &task],
        &["events"],
        &["inbox"],
        &["task", "file", &task],
        &["task", "show", "\u{1b}[31mx"],
        &["task", "\u{1b}[31mx"],
        &["start", "\u{1b}[31mx"],
    ] {
        shown.push(on_terminal(&home, words));
    }
    for text in &shown {
        assert!(!text.contains("\u{1b}[31mx") && !text.contains("\u{1b}]0;") && !text.contains('\u{202e}'), "{text:?}");
    }
    assert!(shown[1].contains("^[[31mx"), "{:?}", shown[1]);
    assert!(home.sluice(&["run", "log", &id]).done().stdout.contains("\u{1b}[31mx"), "a pipe gets every byte");
}

#[test]
fn an_error_of_another_engine_rules_no_terminal() {
    let home = Home::empty();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            let body =
                r#"{"ok":false,"error":"no \u001b[31mx\u001b]0;owned\u0007","code":"\u001b[31m","hint":"\u001b[31mx"}"#;
            let head =
                "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    let mut script = home.program("script");
    let line = format!("'{}' task show x", env!("CARGO_BIN_EXE_sluice"));
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("SLUICE_URL", url).env("SLUICE_TOKEN", "slu_x");
    let shown = run(&mut script).stdout;
    assert!(shown.contains("error: no ^[[31mx^[]0;owned^G") && !shown.contains('\u{1b}'), "{shown:?}");
}

/// Starts a command; gives its exit code and what it said on stderr once it has ended.
fn ending(command: &mut Command) -> std::thread::JoinHandle<(i32, String)> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::spawn(move || {
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

#[test]
fn an_engine_that_is_stopped_is_not_waited_for_for_ever() {
    let home = Home::new();
    let id = home.create("brew", "worker: wait for notification", &[]);
    // It follows before the engine is stopped.
    let mut follower =
        home.command(&["events", "--follow", "--all"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    BufReader::new(follower.stdout.as_mut().unwrap()).lines().next().unwrap().unwrap();
    let engine = Pid::from_raw(home.engine_pid()).unwrap();
    kill_process(engine, Signal::STOP).unwrap();
    let asked = [
        ending(&mut home.command(&["task", "list"])),
        ending(&mut home.command(&["task", "update", &id, "--summary", "Brew it"])),
        ending(&mut home.command(&["stop"])),
    ];
    let examined = home.sluice(&["doctor"]);
    let told: Vec<(i32, String)> = asked.into_iter().map(|it| it.join().unwrap()).collect();
    let followed = follower.wait_with_output().unwrap();
    kill_process(engine, Signal::CONT).unwrap();
    assert!(examined.code == 1 && examined.stdout.contains("runs and does not answer"), "{examined:?}");
    assert!(examined.stdout.contains("isolation"), "the rest is looked at: {examined:?}");
    for (code, said) in
        told.iter().chain([&(followed.status.code().unwrap(), String::from_utf8_lossy(&followed.stderr).into_owned())])
    {
        assert_eq!(*code, 6, "{said}");
        assert!(said.contains("does not answer; waiting for it") && said.contains("error: the engine at"), "{said}");
    }
}

#[test]
fn who_waits_for_a_task_hears_when_a_person_is_needed_and_when_the_time_is_over() {
    let home = Home::new();
    let id = home.create("brew", "worker: wait for notification", &[]);
    let wrong = home.sluice(&["task", "wait", &id, "--status", "bogus"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("one of: pending, clarification, working"), "{wrong:?}");
    assert_eq!(home.sluice(&["task", "wait", &id, "--timeout", "soon"]).code, 2);
    assert_eq!(home.refused(&["task", "wait", &id, "--timeout", "10ms"]), "6 timeout");
    // The way it is meant to go, and then only a person goes on.
    let id = home.create("tea", "worker: work\nreviewer: review pass", &[]);
    assert_eq!(home.json(&["task", "wait", &id, "--status", "reviewing"])["task"]["status"], "reviewing");
    assert_eq!(home.refused(&["task", "wait", &id]), "10 needs_person");
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(home.refused(&["task", "wait", &id, "--status", "done"]), "1 not_there");
    assert_eq!(home.refused(&["task", "wait", &id]), "1 not_there", "it was given up");
}

#[test]
fn what_a_dead_agent_printed_last_is_shown() {
    let home = Home::new();
    let id = home.create("brew", "say \"\u{1b}[31mno such bean\"\ncrash", &[]);
    home.until(&id, "crashed", |task| task["crash_count"] == 1);
    let shown = home.sluice(&["task", "show", &id]).done().stdout;
    assert!(shown.contains("its agent died, and printed last") && shown.contains("no such bean"), "{shown}");
    // Nothing goes on before a person starts another.
    let waited = home.sluice(&["task", "wait", &id, "--status", "reviewing"]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stderr.contains(&format!("`sluice answer {id}/1 respawn`")), "{waited:?}");
}

#[test]
fn hints_lead_somewhere() {
    let home = Home::new();
    assert!(home.sluice(&["task", "list"]).done().stderr.contains("no tasks; `sluice task create"));
    let id = home.json(&["task", "create", "brew", "Brew it", "--no-spawn"])["task"]["id"].as_str().unwrap().to_owned();
    home.json(&["task", "cancel", &id, "--yes"]);
    let listed = home.sluice(&["task", "list"]).done().stderr;
    assert!(listed.contains("1 that has ended: `sluice task list --all`"), "{listed}");
    let known = home.sluice(&["start", "nope"]).stderr;
    assert!(known.contains("review-loop") && !known.contains("persistent"), "{known}");
    let twice = home.sluice(&["project", "add", "--name", "tea"]);
    assert!(twice.stderr.contains("`sluice project update coffee"), "{}", twice.stderr);
    assert_eq!(home.sluice(&["workspace", "restore", &id]).code, 2);
    // A refusal says what it is called, and where that stands.
    let refused = home.sluice(&["task", "respawn", &id]).stderr;
    assert!(refused.contains("`sluice workflow explain finished`"), "{refused}");
}

#[test]
fn a_second_review_in_the_same_words_is_a_second_review() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review fail \"Verdict: FAIL, it leaks\"", &[]);
    let task = home.until_status(&id, "stuck");
    assert_eq!((&task["review_round"], &task["crash_count"]), (&2.into(), &0.into()), "{task:#}");
}
