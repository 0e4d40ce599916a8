//! Who asks: a process of a session is known as that, however it hides.

use std::time::Duration;

use sluice_os::process::{HomeNesting, ProcessIdentity};
use sluice_os::session::{AgentEnd, AgentEndCause, ProcessAsker, SessionEnding};

use crate::bench::{Bench, LONG, hear_pid};

#[test]
fn a_process_is_known_through_double_forks_new_sessions_and_without_environment() {
    let bench = Bench::plain();
    let within = HomeNesting::enter(&bench.path("home"));
    bench.fifo("never");
    let write = |name: &str, text: &str| std::fs::write(bench.path(name), text).unwrap();
    write("hide", "echo $$ > $1; read x < never");
    write("hide-twice", "(setsid env -i PATH=$PATH sh hide $1 &)");
    let ways = [
        ("child", "env -i PATH=$PATH sh hide child & wait"),
        ("orphan", "(env -i PATH=$PATH sh hide orphan &); read x < never"),
        ("daemon", "(setsid env -i PATH=$PATH sh hide daemon &); read x < never"),
        ("far", "(setsid env -i PATH=$PATH sh hide-twice far &); read x < never"),
    ];
    for (name, text) in ways {
        let fifo = bench.fifo(name);
        let spec = bench.script(name, text);
        bench.sessions().start(&spec).unwrap();
        let process = hear_pid(&fifo);
        assert_eq!(bench.sessions().asker(&process, &within), ProcessAsker::Session(spec.id), "{name}");
    }
    let own = ProcessIdentity::own().unwrap();
    assert_eq!(bench.sessions().asker(&own, &within), ProcessAsker::Started);
    assert_eq!(bench.sessions().asker(&ProcessIdentity::of(1).unwrap(), &within), ProcessAsker::Outside);
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let brief = ProcessIdentity::of(child.id().cast_signed()).unwrap();
    assert_eq!(bench.sessions().asker(&brief, &within), ProcessAsker::Started);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(bench.sessions().asker(&brief, &within), ProcessAsker::Gone);
    // The number may be used again: it is another process then.
    let other = ProcessIdentity { start: own.start + 1, ..own };
    assert_eq!(bench.sessions().asker(&other, &within), ProcessAsker::Gone);
}

#[test]
fn a_process_with_the_mark_of_another_session_is_of_its_own() {
    let bench = Bench::plain();
    let within = HomeNesting::enter(&bench.path("home"));
    bench.fifo("never");
    let own = bench.fifo("own");
    let text = "echo $SLUICE_SESSION > mark; echo $$ > own; read x < never";
    let victim = bench.script("victim", text);
    bench.sessions().start(&victim).unwrap();
    let process = hear_pid(&own);
    assert_eq!(bench.sessions().asker(&process, &within), ProcessAsker::Session(victim.id));
    let mark = std::fs::read_to_string(bench.path("mark")).unwrap();
    std::fs::write(bench.path("hide"), "echo $$ > $1; read x < never").unwrap();
    for (name, way) in [("child", "env"), ("daemon", "setsid env -i PATH=$PATH")] {
        let fifo = bench.fifo(name);
        let spec =
            bench.script(name, &format!("({way} SLUICE_SESSION={} sh hide {name} &); read x < never", mark.trim()));
        bench.sessions().start(&spec).unwrap();
        assert_eq!(bench.sessions().asker(&hear_pid(&fifo), &within), ProcessAsker::Session(spec.id), "{name}");
    }
}

#[test]
fn a_process_is_known_from_its_first_instruction() {
    let bench = Bench::plain();
    let within = HomeNesting::enter(&bench.path("home"));
    bench.fifo("never");
    for round in 0..20 {
        let (name, sessions) = (format!("early-{round}"), bench.sessions());
        let fifo = bench.fifo(&name);
        let spec = bench.script(&name, &format!("echo $$ > {name}; read x < never"));
        let asker = std::thread::scope(|scope| {
            // Whoever starts it may not have heard of it yet.
            scope.spawn(|| sessions.start(&spec).unwrap());
            sessions.asker(&hear_pid(&fifo), &within)
        });
        assert_eq!(asker, ProcessAsker::Session(spec.id.clone()), "{name}");
        sessions.end(&spec.id, Duration::ZERO, "next").unwrap();
    }
}

#[test]
fn who_asks_for_its_own_end_sees_its_answer_first() {
    let bench = Bench::plain();
    let (asker, answer) = (bench.fifo("asker"), bench.fifo("answer"));
    bench.fifo("never");
    // The asker is a child of the agent; it ends with what it was answered, and the agent writes that down.
    let text = "sh -c 'echo $$ > asker; read x < answer; echo got $x > result'; echo after >> result; read x < never";
    let spec = bench.script("asking", text);
    let (living, ended) = bench.start_watched(&spec);
    let asker = hear_pid(&asker);
    let sessions = bench.sessions();
    let gone = std::thread::scope(|scope| {
        let ending = scope.spawn(|| sessions.end_when_gone(&spec.id, &asker, Duration::from_secs(5), "moved on"));
        std::fs::write(&answer, "it\n").unwrap();
        ending.join().unwrap().unwrap()
    });
    assert!(std::fs::read_to_string(bench.path("result")).unwrap().starts_with("got it\n"));
    assert_eq!(ended.recv_timeout(LONG).unwrap(), gone);
    assert!(!living.agent.lives());
    let SessionEnding::Exited(exit) = gone.how else { panic!("{gone:?}") };
    assert_eq!((exit.end, exit.cause), (AgentEnd::Signal(15), AgentEndCause::Asked));
}

#[test]
fn an_asker_that_does_not_exit_is_not_waited_for_for_ever() {
    let bench = Bench::plain();
    let asker = bench.fifo("asker");
    bench.fifo("never");
    let spec = bench.script("asking", "echo $$ > asker; read x < never");
    bench.start(&spec);
    let asker = hear_pid(&asker);
    let gone = bench.sessions().end_when_gone(&spec.id, &asker, Duration::from_secs(5), "moved on").unwrap();
    assert!(gone.asked.is_some() && !asker.lives());
    // One that is gone already is not waited for at all.
    let spec = bench.script("asked", "read x < never");
    let living = bench.start(&spec);
    bench.sessions().end_when_gone(&spec.id, &asker, Duration::from_secs(5), "moved on").unwrap();
    assert!(!living.agent.lives());
}

#[test]
fn a_stopped_shim_is_ended_all_the_same() {
    let bench = Bench::plain();
    bench.fifo("never");
    let spec = bench.script("stopped", "read x < never");
    let living = bench.start(&spec);
    let pid = rustix::process::Pid::from_raw(living.shim.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let gone = bench.sessions().end(&spec.id, Duration::from_secs(5), "cancelled").unwrap();
    assert!(matches!(gone.how, SessionEnding::Exited(exit) if exit.cause == AgentEndCause::Asked));
    assert!(!living.agent.lives() && !living.shim.lives());
}
