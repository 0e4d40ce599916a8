//! How an agent ends, and what is left of it: the record, the output, no process.

use std::time::Duration;

use sluice_os::session::{
    AgentEnd, AgentEndCause, SayDelivery, SayRequest, SessionEnding, SessionId, SessionLimits, SessionPlace,
    SessionStream,
};

use crate::bench::{Bench, LONG, PROMISED, hear, hear_pid};

fn how(gone: sluice_os::session::EndedSession) -> (AgentEnd, AgentEndCause) {
    match gone.how {
        SessionEnding::Exited(exit) => (exit.end, exit.cause),
        SessionEnding::Lost { why } => panic!("lost: {why}"),
    }
}

#[test]
fn exit_codes_signals_and_failed_starts_are_recorded() {
    let bench = Bench::plain();
    assert_eq!(how(bench.run(&bench.script("zero", "exit 0"))), (AgentEnd::Code(0), AgentEndCause::Itself));
    assert_eq!(how(bench.run(&bench.script("seven", "exit 7"))), (AgentEnd::Code(7), AgentEndCause::Itself));
    assert_eq!(how(bench.run(&bench.script("killed", "kill -9 $$"))), (AgentEnd::Signal(9), AgentEndCause::Itself));
    let mut absent = bench.script("absent", "");
    absent.arguments = vec!["no-such-agent".to_owned()];
    let (end, _) = how(bench.run(&absent));
    let AgentEnd::NotStarted(why) = end else { panic!("{end:?}") };
    insta::assert_snapshot!(why, @"no-such-agent cannot be started: No such file or directory (os error 2)");
    let mut nowhere = bench.script("nowhere", "");
    nowhere.folder = "/no/such/folder".into();
    let (end, _) = how(bench.run(&nowhere));
    assert_eq!(end, AgentEnd::NotStarted("/no/such/folder is not a folder".to_owned()));
}

#[test]
fn a_headless_agent_has_its_input_and_two_outputs_and_only_the_given_environment() {
    let bench = Bench::plain();
    std::fs::write(bench.path("prompt"), "the prompt\n").unwrap();
    let mut spec =
        bench.headless("headless", "cat; env | sort | cut -d= -f1; echo oops >&2; tty", Some(bench.path("prompt")));
    spec.environment.insert("GIVEN".to_owned(), "yes".to_owned());
    bench.run(&spec);
    let output = bench.sessions().output_tail(&spec.id, SessionStream::Output, 1000).unwrap();
    insta::assert_snapshot!(String::from_utf8(output.bytes).unwrap(), @r"
    the prompt
    GIVEN
    PATH
    PWD
    SLUICE_SESSION
    not a tty
    ");
    let errors = bench.sessions().output_tail(&spec.id, SessionStream::Errors, 1000).unwrap();
    assert_eq!(errors.bytes, b"oops\n");
    let delivery = bench.sessions().say(&spec.id, &SayRequest::new("hello")).unwrap();
    assert_eq!(delivery, SayDelivery::NotDelivered { reason: "the session has ended".to_owned() });
}

#[test]
fn output_beyond_its_limit_keeps_beginning_and_end_and_says_where() {
    let bench = Bench::plain();
    let mut spec = bench.headless("talker", "echo first; head -c 1000000 /dev/zero; printf last", None);
    spec.limits = SessionLimits { output_head: 1000, output_tail: 2000, run_for_ms: None };
    bench.run(&spec);
    let sessions = bench.sessions();
    let first = sessions.output_from(&spec.id, SessionStream::Output, 0, 1 << 20).unwrap();
    assert_eq!((first.start, first.bytes.len(), &first.bytes[..6]), (0, 1000, &b"first\n"[..]));
    let next = sessions.output_from(&spec.id, SessionStream::Output, first.next(), 1 << 20).unwrap();
    assert!(next.start > 998_000 && next.start < 1_000_010, "{}", next.start);
    let tail = sessions.output_tail(&spec.id, SessionStream::Output, 500).unwrap();
    assert_eq!((tail.next(), tail.bytes.len()), (1_000_010, 500));
    assert!(tail.bytes.ends_with(b"last"));
    let whole = sessions.output_tail(&spec.id, SessionStream::Output, 1 << 20).unwrap();
    assert!(whole.bytes.len() >= 1000 && whole.bytes.len() <= 2000, "{}", whole.bytes.len());
    assert_eq!(sessions.idle_seconds(&spec.id).unwrap() / 60, 0);
}

#[test]
fn being_ended_is_told_from_ending_and_can_be_said_twice() {
    let bench = Bench::plain();
    let (ready, _never) = (bench.fifo("ready"), bench.fifo("never"));
    let polite = bench.script("polite", "trap 'exit 3' TERM; echo > ready; read x < never");
    let (_, ended) = bench.start_watched(&polite);
    hear(&ready);
    let gone = bench.sessions().end(&polite.id, Duration::from_secs(30), "cancelled").unwrap();
    assert_eq!(gone.asked.as_ref().unwrap().why, "cancelled");
    assert_eq!(how(gone.clone()), (AgentEnd::Code(3), AgentEndCause::Asked));
    assert_eq!(ended.recv_timeout(LONG).unwrap(), gone);
    assert_eq!(bench.sessions().end(&polite.id, Duration::ZERO, "again").unwrap(), gone);

    let deaf = bench.script("deaf", "trap '' TERM HUP; echo > ready; while :; do read x < never; done");
    let (living, _) = bench.start_watched(&deaf);
    hear(&ready);
    let gone = bench.sessions().end(&deaf.id, Duration::from_millis(100), "cancelled").unwrap();
    assert_eq!(how(gone), (AgentEnd::Signal(9), AgentEndCause::Asked));
    assert!(!living.agent.lives() && !living.shim.lives());

    let itself = bench.script("itself", "exit 0");
    assert_eq!(bench.run(&itself).asked, None);
    let gone = bench.sessions().end(&itself.id, Duration::ZERO, "too late").unwrap();
    assert_eq!(gone.asked, None);
}

#[test]
fn what_an_agent_leaves_running_ends_with_it_also_what_became_a_daemon() {
    let bench = Bench::plain();
    let (child, daemon, _never) = (bench.fifo("child"), bench.fifo("daemon"), bench.fifo("never"));
    let stay = |fifo: &str| format!("trap \"\" TERM HUP; echo $$ > {fifo}; while :; do read x < never; done");
    let text = format!(
        "sh -c '{}' & setsid sh -c 'env -i PATH=$PATH setsid sh -c '\\''{}'\\'' & exit 0' & read x < go; exit 0",
        stay("child"),
        stay("daemon")
    );
    bench.fifo("go");
    let spec = bench.script("parent", &text);
    let (living, ended) = bench.start_watched(&spec);
    let left = [hear_pid(&child), hear_pid(&daemon)];
    assert!(left.iter().all(|process| *process != living.agent));
    std::fs::write(bench.path("go"), "\n").unwrap();
    assert_eq!(how(ended.recv_timeout(LONG).unwrap()), (AgentEnd::Code(0), AgentEndCause::Itself));
    for process in left.iter().chain([&living.agent, &living.shim]) {
        assert!(!process.lives(), "{process:?}");
    }
}

#[test]
fn what_must_outlive_a_session_does() {
    let bench = Bench::plain();
    let (engine, below) = (bench.fifo("engine"), bench.fifo("below"));
    bench.fifo("never");
    // As an engine that a command of the agent started, with something it runs itself.
    std::fs::write(bench.path("start"), "echo $$ > engine; env -i sh -c 'echo $$ > below; read x < never'").unwrap();
    let spec = bench.script("starter", "(setsid env SLUICE_KEPT=1 sh start > /dev/null &); read x < never");
    let (living, ended) = bench.start_watched(&spec);
    let kept = [hear_pid(&engine), hear_pid(&below)];
    bench.sessions().end(&spec.id, LONG, "over").unwrap();
    ended.recv_timeout(LONG).unwrap();
    assert!(!living.agent.lives() && kept.iter().all(sluice_os::process::ProcessIdentity::lives));
    kept.iter().for_each(crate::bench::kill);
}

#[test]
fn a_time_limit_is_kept_without_an_engine() {
    let bench = Bench::plain();
    bench.fifo("never");
    let mut spec = bench.script("late", "read x < never");
    spec.limits.run_for_ms = Some(50);
    assert_eq!(how(bench.run(&spec)), (AgentEnd::Signal(15), AgentEndCause::TimeLimit));
}

#[test]
fn the_end_is_noticed_at_once() {
    let bench = Bench::plain();
    let (ready, _never) = (bench.fifo("ready"), bench.fifo("never"));
    let spec = bench.script("short", "echo > ready; read x < never");
    let (living, ended) = bench.start_watched(&spec);
    hear(&ready);
    crate::bench::kill(&living.agent);
    let gone = ended.recv_timeout(PROMISED).expect("noticed within a second");
    assert_eq!(how(gone), (AgentEnd::Signal(9), AgentEndCause::Itself));
    let spec = bench.script("shimless", "echo > ready; read x < never");
    let (living, ended) = bench.start_watched(&spec);
    hear(&ready);
    crate::bench::kill(&living.shim);
    let gone = ended.recv_timeout(PROMISED).expect("noticed within a second");
    assert!(matches!(gone.how, SessionEnding::Lost { .. }) && !living.agent.lives());
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_made() {
    let bench = Bench::plain();
    let mut spec = bench.script("huge", "");
    spec.arguments.push("x".repeat(1 << 20));
    let failure = bench.sessions().start(&spec).unwrap_err();
    insta::assert_snapshot!(failure, @"session huge cannot be started: an argument has 1048576 bytes and a program can be given 131071: pass it in a file or as input");
    assert!(!bench.folder_of(&spec).exists());
    let unknown = SessionId::new("unknown").unwrap();
    assert_eq!(bench.sessions().adopt(&unknown).unwrap_err().to_string(), "there is no session unknown");
    for name in ["", ".hidden", "a/b", "..", "a b", "\u{1f980}"] {
        assert!(SessionId::new(name).is_err(), "{name}");
    }
    spec.arguments.pop();
    spec.place = SessionPlace::Headless { input: Some("/no/such/prompt".into()) };
    let (AgentEnd::NotStarted(why), _) = how(bench.run(&spec)) else { panic!() };
    insta::assert_snapshot!(why, @"its input /no/such/prompt cannot be read: No such file or directory (os error 2)");
}
