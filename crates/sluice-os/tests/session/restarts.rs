//! What a new engine makes of the sessions of the old one, whenever that was killed.

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use sluice_os::process::HomeNesting;
use sluice_os::session::{AgentEnd, AgentEndCause, ProcessAsker, SessionEnding, SessionId, SessionStanding};

use crate::bench::{Bench, LONG, hear, kill};

#[test]
fn living_sessions_are_adopted_and_the_records_of_ended_ones_read() {
    let mut bench = Bench::plain();
    let ready = bench.fifo("ready");
    bench.fifo("go");
    let lives = bench.script("lives", "echo > ready; read x < go; exit 5");
    let living = bench.start(&lives);
    hear(&ready);
    let ends = bench.script("ends", "exit 6");
    bench.sessions().start(&ends).unwrap();
    // The old engine is gone before the second session's end is seen by anybody.
    bench.sessions = None;
    bench.restart();
    let within = HomeNesting::enter(&bench.path("home"));
    assert_eq!(bench.sessions().asker(&living.agent, &within), ProcessAsker::Session(lives.id.clone()));
    assert_eq!(bench.sessions().list().unwrap(), [ends.id.clone(), lives.id.clone()]);
    assert_eq!(bench.sessions().adopt(&lives.id).unwrap(), SessionStanding::Living(living));
    let gone = bench.watch(&ends.id).recv_timeout(LONG).unwrap();
    assert!(matches!(gone.how, SessionEnding::Exited(exit) if exit.end == AgentEnd::Code(6)));
    let ended = bench.watch(&lives.id);
    std::fs::write(bench.path("go"), "\n").unwrap();
    let gone = ended.recv_timeout(LONG).unwrap();
    assert!(
        matches!(gone.how, SessionEnding::Exited(exit) if exit.end == AgentEnd::Code(5) && exit.cause == AgentEndCause::Itself)
    );
    bench.sessions().forget(&lives.id).unwrap();
    assert_eq!(bench.sessions().list().unwrap(), [ends.id]);
}

#[test]
fn however_often_it_is_started_it_runs_once() {
    let bench = Bench::plain();
    let ready = bench.fifo("ready");
    bench.fifo("go");
    let spec = bench.script("once", "echo ran >> runs; echo > ready; read x < go");
    let sessions = bench.sessions();
    let all: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| sessions.start(&spec).unwrap())).collect();
        hear(&ready);
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(all.iter().any(|started| started.fresh));
    assert!(all.iter().all(|started| started.standing == all[0].standing), "{all:?}");
    let again = sessions.start(&spec).unwrap();
    assert!(!again.fresh);
    let ended = bench.watch(&spec.id);
    std::fs::write(bench.path("go"), "\n").unwrap();
    let gone = ended.recv_timeout(LONG).unwrap();
    let after = sessions.start(&spec).unwrap();
    assert_eq!((after.fresh, after.standing), (false, SessionStanding::Gone(gone)));
    assert_eq!(std::fs::read_to_string(bench.path("runs")).unwrap(), "ran\n");
}

#[test]
fn a_session_whose_engine_died_before_its_shim_came_is_given_up_or_started() {
    let bench = Bench::plain();
    // A folder and nothing in it, as after `mkdir` and a kill.
    let spec = bench.script("begun", "echo ran > ran");
    std::fs::create_dir(bench.folder_of(&spec)).unwrap();
    let SessionStanding::Gone(gone) = bench.sessions().adopt(&spec.id).unwrap() else { panic!() };
    assert_eq!(gone.how, SessionEnding::Lost { why: "it was never started".to_owned() });
    // Once given up it stays so: a shim that is still on its way finds the claim taken.
    assert_eq!(bench.sessions().start(&spec).unwrap().standing, SessionStanding::Gone(gone));
    assert!(!bench.path("ran").exists());
    // Nobody gave up this one, and the effect is performed again.
    let spec = bench.script("begun-too", "echo ran > ran");
    std::fs::create_dir(bench.folder_of(&spec)).unwrap();
    let gone = bench.run(&spec);
    assert!(matches!(gone.how, SessionEnding::Exited(exit) if exit.end == AgentEnd::Code(0)));
    assert!(bench.path("ran").exists());
}

/// A shim is killed at every moment of its start: the agent runs at most once, and whoever comes next knows it.
#[test]
fn a_shim_killed_while_it_starts_leaves_nothing_and_nothing_starts_twice() {
    let bench = Bench::plain();
    let (_never, nothing) = (bench.fifo("never"), channel::<()>());
    let mut ran = 0;
    for moment in 0..40 {
        let text = format!("echo ran >> runs-{moment}; read x < never");
        let spec = bench.script(&format!("start-{moment}"), &text);
        std::fs::create_dir(bench.folder_of(&spec)).unwrap();
        std::fs::write(bench.folder_of(&spec).join("spec.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
        let mut shim = Command::new(env!("CARGO_BIN_EXE_shim-under-test"));
        let mut shim = shim.arg("shim").arg(bench.folder_of(&spec)).spawn().unwrap();
        // Not to wait for something, but to kill at another moment each time.
        let _ = nothing.1.recv_timeout(Duration::from_micros(moment * moment * 100));
        shim.kill().unwrap();
        shim.wait().unwrap();
        let unclaimed = !bench.folder_of(&spec).join("claim.json").exists();
        let started = bench.sessions().start(&spec).unwrap();
        assert_eq!(started.fresh, unclaimed);
        assert_eq!(matches!(started.standing, SessionStanding::Living(_)), unclaimed, "{started:?}");
        bench.sessions().end(&spec.id, Duration::ZERO, "the next").unwrap();
        let runs = std::fs::read_to_string(bench.path(&format!("runs-{moment}"))).unwrap_or_default();
        assert!(runs.lines().count() <= 1, "{runs}");
        ran += usize::from(!unclaimed && !runs.is_empty());
    }
    assert!(ran > 0, "no kill came after the agent's start: kill later");
}

#[test]
fn one_that_is_ended_before_its_shim_comes_never_runs() {
    let bench = Bench::plain();
    let spec = bench.script("unwanted", "echo ran > ran");
    std::fs::create_dir(bench.folder_of(&spec)).unwrap();
    let gone = bench.sessions().end(&spec.id, Duration::ZERO, "cancelled").unwrap();
    assert_eq!(gone.asked.unwrap().why, "cancelled");
    bench.sessions().start(&spec).unwrap();
    // The wish alone keeps a shim from starting it, also when nobody took the claim.
    let spec = bench.script("unwanted-too", "echo ran > ran");
    std::fs::create_dir(bench.folder_of(&spec)).unwrap();
    let asked = r#"{"at_ms": 1, "grace_ms": 1, "why": "cancelled"}"#;
    std::fs::write(bench.folder_of(&spec).join("ended.json"), asked).unwrap();
    let gone = bench.run(&spec);
    let SessionEnding::Exited(exit) = gone.how else { panic!("{gone:?}") };
    assert_eq!(exit.end, AgentEnd::NotStarted("it was ended before it started".to_owned()));
    assert!(!bench.path("ran").exists());
}

#[test]
fn a_shim_that_was_killed_while_nobody_watched_is_settled_by_the_next_engine() {
    let mut bench = Bench::plain();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let spec = bench.script("orphan", "trap '' TERM HUP; echo > ready; while :; do read x < never; done");
    let living = bench.start(&spec);
    hear(&ready);
    bench.sessions = None;
    kill(&living.shim);
    bench.restart();
    let SessionStanding::Gone(gone) = bench.sessions().adopt(&spec.id).unwrap() else { panic!() };
    assert_eq!(gone.how, SessionEnding::Lost { why: format!("its shim (process {}) died", living.shim.pid) });
    assert!(!living.agent.lives());
    assert_eq!(bench.sessions().end(&spec.id, Duration::ZERO, "again").unwrap().how, gone.how);
    let unknown = SessionId::new("orphan-2").unwrap();
    assert!(bench.sessions().end(&unknown, Duration::ZERO, "never was").is_err());
}
