//! tmux as the place where a person looks and types.

use std::process::Command;

use sluice_os::session::{AgentEndCause, EndedSession, SessionEnding, SessionPlace, SessionStream, SessionWindow};

use crate::bench::{Bench, LONG, hear};

#[test]
fn worker_and_reviewers_are_windows_of_one_session_and_end_one_by_one() {
    let bench = Bench::tmux();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let text = "echo > ready; read x < never";
    let worker = bench.start(&bench.script("worker", text));
    hear(&ready);
    let spec = bench.script("review-1", text);
    let (reviewer, ended) = bench.start_watched(&spec);
    hear(&ready);
    let tmux = bench.sessions().tmux().unwrap();
    let panes = tmux.list().unwrap();
    let names: Vec<&str> = panes.iter().map(|pane| pane.name.as_str()).collect();
    assert_eq!(names, ["worker", "review-1"]);
    assert!(panes.iter().all(|pane| pane.session == panes[0].session && pane.key == "task-1"));
    assert_eq!(panes[1].pid, reviewer.shim.pid);
    assert_eq!(Some(&panes[1].pane), reviewer.pane.as_ref().map(|pane| &pane.pane));
    assert_eq!(Some(&panes[1].session), reviewer.pane.as_ref().map(|pane| &pane.session));
    bench.sessions().end(&spec.id, LONG, "the review is over").unwrap();
    ended.recv_timeout(LONG).unwrap();
    assert!(worker.agent.lives() && !reviewer.agent.lives());
    assert_eq!(tmux.list().unwrap().len(), 1);
}

#[test]
fn names_that_people_chose_are_shown_and_never_run() {
    let bench = Bench::tmux();
    bench.fifo("never");
    let broken = bench.path("broken");
    let touch = format!("touch {}", broken.display());
    let names = [
        format!("p/#({touch})"),
        format!("p/$({touch});"),
        "p/a.b:c".to_owned(),
        "p/a_b_c".to_owned(),
        "-x".to_owned(),
        "p/\u{1f980} '\"#{session_name}".to_owned(),
        "p/;".to_owned(),
    ];
    for (index, name) in names.iter().enumerate() {
        let mut spec = bench.script(&format!("s{index}"), "read x < never");
        let window = SessionWindow { key: format!("k{index}"), session: name.clone(), name: "worker".to_owned() };
        spec.place = SessionPlace::Terminal { rows: 50, columns: 200, window: Some(window) };
        bench.start(&spec);
    }
    let socket = bench.path("tmux.sock");
    let output =
        Command::new("tmux").args(["-u", "-S"]).arg(&socket).args(["list-sessions", "-F", "#{session_name}"]).output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    let shown = shown.replace(&bench.folder.path().display().to_string().replace('.', "_"), "FOLDER");
    let mut shown: Vec<&str> = shown.lines().collect();
    shown.sort_unstable();
    insta::assert_snapshot!(shown.join("\n"), @r##"
    -x
    p/#(touch FOLDER/broken)
    p/$(touch FOLDER/broken);
    p/;
    p/a_b_c
    p/a_b_c~2
    p/🦀 '"#{session_name}
    "##);
    assert!(!broken.exists());
}

#[test]
fn what_is_typed_in_the_window_reaches_the_agent_and_its_output_the_window_and_the_log() {
    let bench = Bench::tmux();
    let (ready, got) = (bench.fifo("ready"), bench.fifo("got"));
    bench.fifo("never");
    let spec = bench.script("worker", "stty size > ready; read x; echo \"I was told: $x\"; echo $x > got");
    let (living, ended) = bench.start_watched(&spec);
    assert_eq!(hear(&ready), b"50 200\n", "the agent's terminal has the size of the window");
    let pane = living.pane.unwrap().pane;
    let socket = bench.path("tmux.sock");
    let tmux = |arguments: &[&str]| {
        let status = Command::new("tmux").arg("-S").arg(&socket).args(arguments).status().unwrap();
        assert!(status.success());
    };
    tmux(&["send-keys", "-t", &pane, "-l", "go on"]);
    tmux(&["send-keys", "-t", &pane, "Enter"]);
    assert_eq!(hear(&got), b"go on\n");
    ended.recv_timeout(LONG).unwrap();
    let log = bench.sessions().output_tail(&spec.id, SessionStream::Output, 1000).unwrap();
    assert!(String::from_utf8_lossy(&log.bytes).contains("I was told: go on"));
}

#[test]
fn another_size_of_the_window_is_told_to_the_agent() {
    let bench = Bench::tmux();
    let (ready, size) = (bench.fifo("ready"), bench.fifo("size"));
    bench.fifo("never");
    let text = "trap 'stty size > size; exit' WINCH; echo > ready; while :; do read x < never; done";
    let spec = bench.script("worker", text);
    let living = bench.start(&spec);
    hear(&ready);
    let pane = living.pane.unwrap().pane;
    let socket = bench.path("tmux.sock");
    let resize = ["resize-window", "-x", "100", "-y", "30", "-t", &pane];
    assert!(Command::new("tmux").arg("-S").arg(&socket).args(resize).status().unwrap().success());
    assert_eq!(hear(&size), b"30 100\n");
}

#[test]
fn a_person_attaches_and_closing_the_window_ends_the_agent() {
    let bench = Bench::tmux();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let spec = bench.script("worker", "printf 'here I am'; echo > ready; read x < never");
    let (living, ended) = bench.start_watched(&spec);
    hear(&ready);
    let pane = living.pane.clone().unwrap().pane;
    assert_eq!(bench.sessions().pane(&spec.id).unwrap().1, pane);
    let command = bench.sessions().tmux().unwrap().attach_command(&pane);
    assert_eq!(command[command.len() - 3..], ["attach-session", "-t", pane.as_str()]);
    // `script` gives the client a terminal; the client ends when the window does.
    let line: Vec<String> = command.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut client = Command::new("script")
        .args(["-q", "-e", "-c", &line.join(" "), "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("TMUX")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let mut stdout = client.stdout.take().unwrap();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("here I am") {
        let count = std::io::Read::read(&mut stdout, &mut buffer).unwrap();
        assert_ne!(count, 0, "the client ended: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&buffer[..count]);
    }
    bench.tell_tmux(&["kill-window", "-t", &pane]);
    let EndedSession { how: SessionEnding::Exited(exit), asked: None } = ended.recv_timeout(LONG).unwrap() else {
        panic!()
    };
    assert_eq!(exit.cause, AgentEndCause::TerminalGone);
    std::io::Read::read_to_end(&mut stdout, &mut shown).unwrap();
    client.wait().unwrap();
}

#[test]
fn without_tmux_it_runs_all_the_same_and_attaching_says_why_not() {
    let bench = Bench::plain();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let spec = bench.script("worker", "stty size > ready; echo $TERM; read x < never");
    let living = bench.start(&spec);
    assert_eq!(living.pane, None);
    assert_eq!(hear(&ready), b"50 200\n");
    let refused = bench.sessions().pane(&spec.id).unwrap_err();
    insta::assert_snapshot!(refused, @"there is no tmux to look at session worker with; what it prints is in its log");
}

#[test]
fn a_server_that_goes_with_its_last_window_comes_again() {
    let bench = Bench::tmux();
    for index in 0..20 {
        bench.run(&bench.script(&format!("brief-{index}"), "exit 0"));
    }
}

/// The dashboard asks for the screen of a session as soon as its task says that one starts.
#[test]
fn a_look_at_a_session_that_is_about_to_start_does_not_give_it_up() {
    let bench = Bench::tmux();
    bench.fifo("never");
    let spec = bench.script("worker", "read x < never");
    std::fs::create_dir_all(bench.path("sessions").join(spec.id.as_str())).unwrap();
    drop(bench.sessions().look(&spec.id));
    assert!(bench.sessions().screen(&spec.id).is_err());
    assert!(bench.start(&spec).agent.lives());
}
