//! Processes killed without warning: noticed within a second, and nothing is left.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sluice_os::process::ProcessIdentity;
use sluice_os::session::{
    AgentEnd, AgentEndCause, EndedSession, KeeperTerm, LeaseFolder, SessionEnding, SessionKeeper, SessionSpec,
    SessionStanding, boot_ms,
};

use crate::bench::{Bench, LONG, PROMISED, hear, hear_pid, kill};

#[test]
fn a_killed_shim_is_noticed_and_its_agent_ended_with_all_it_started() {
    let bench = Bench::plain();
    let (ready, child, daemon) = (bench.fifo("ready"), bench.fifo("child"), bench.fifo("daemon"));
    bench.fifo("never");
    let deaf = "trap \"\" TERM HUP; ";
    let stay = |fifo: &str| format!("{deaf} echo $$ > {fifo}; while :; do read x < never; done");
    for headless in [false, true] {
        let id = if headless { "headless" } else { "terminal" };
        let text = format!("sh -c '{}' & setsid sh -c '{}' & {}", stay("child"), stay("daemon"), stay("ready"));
        let spec = if headless { bench.headless(id, &text, None) } else { bench.script(id, &text) };
        let (living, ended) = bench.start_watched(&spec);
        let left = [hear_pid(&child), hear_pid(&daemon), hear_pid(&ready)];
        kill(&living.shim);
        let gone = ended.recv_timeout(LONG).unwrap();
        assert_eq!(gone.how, SessionEnding::Lost { why: format!("its shim (process {}) died", living.shim.pid) });
        assert!(left.iter().all(|process| !process.lives()), "{left:?}");
        assert_eq!(bench.sessions().adopt(&spec.id).unwrap(), SessionStanding::Gone(gone));
    }
}

#[test]
fn a_killed_tmux_server_ends_the_sessions_in_it_and_they_say_so() {
    let bench = Bench::tmux();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let text = |traps: &str| format!("{traps}; echo $$ > ready; while :; do read x < never; done");
    let worker = bench.script("worker", &text("trap '' TERM HUP"));
    let (deaf, deaf_ended) = bench.start_watched(&worker);
    hear(&ready);
    let reviewer = bench.script("review-1", &text("true"));
    let (polite, polite_ended) = bench.start_watched(&reviewer);
    hear(&ready);
    let server = polite.pane.as_ref().unwrap().server.clone();
    assert_eq!(deaf.pane.as_ref().unwrap().server, server);
    kill(&server);
    // One that does not listen has half a second before it is killed, and on a busy machine that is soon a second.
    for (ended, signal, within) in [(polite_ended, 15, PROMISED), (deaf_ended, 9, LONG)] {
        let gone = ended.recv_timeout(within).expect("noticed in time");
        let SessionEnding::Exited(exit) = gone.how else { panic!("{gone:?}") };
        assert_eq!((exit.end, exit.cause, gone.asked), (AgentEnd::Signal(signal), AgentEndCause::TerminalGone, None));
    }
    for process in [&deaf.agent, &deaf.shim, &polite.agent, &polite.shim] {
        assert!(!process.lives());
    }
    // A new server comes up as if nothing had been, and is not taken for the old one.
    let again = bench.start(&bench.script("worker-2", "read x < never"));
    assert_ne!(again.pane.unwrap().server, server);
    assert!(bench.sessions().pane(&worker.id).unwrap_err().to_string().contains("has ended"));
}

#[test]
fn a_killed_agent_in_a_window_closes_it() {
    let bench = Bench::tmux();
    let ready = bench.fifo("ready");
    bench.fifo("never");
    let spec = bench.script("worker", "echo > ready; read x < never");
    let (living, ended) = bench.start_watched(&spec);
    hear(&ready);
    kill(&living.agent);
    let gone = ended.recv_timeout(PROMISED).expect("noticed within a second");
    let SessionEnding::Exited(exit) = gone.how else { panic!("{gone:?}") };
    assert_eq!((exit.end, exit.cause), (AgentEnd::Signal(9), AgentEndCause::Itself));
    assert!(!living.shim.lives());
}

#[test]
fn an_agent_whose_keeper_stays_away_is_ended_and_one_that_is_kept_again_goes_on() {
    let bench = Bench::plain();
    let (ready, goes) = (bench.fifo("ready"), bench.fifo("goes"));
    let keeper = || {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        (ProcessIdentity::of(child.id().cast_signed()).unwrap(), child)
    };
    let (first, mut first_child) = keeper();
    let (second, mut second_child) = keeper();
    let text = "echo $$ > ready; read x < goes; exit 7";
    let kept = |id: &str| {
        let file = bench.folder.path().join(format!("{id}.keeper"));
        std::fs::write(&file, serde_json::to_vec(&first).unwrap()).unwrap();
        let keeper = SessionKeeper { file, away_ms: 300, until_ms: u64::MAX };
        SessionSpec { keeper: Some(keeper), ..bench.headless(id, text, None) }
    };
    let left = kept("left");
    let (_, left_ended) = bench.start_watched(&left);
    hear(&ready);
    bench.sessions().keep(&left.id, boot_ms()).unwrap();
    let (_, kept_ended) = bench.start_watched(&kept("kept"));
    hear(&ready);
    std::fs::write(bench.folder.path().join("kept.keeper"), serde_json::to_vec(&second).unwrap()).unwrap();
    first_child.kill().unwrap();
    first_child.wait().unwrap();
    assert_eq!(how(left_ended.recv_timeout(LONG).unwrap()), (AgentEnd::Signal(9), AgentEndCause::Unkept));
    assert!(kept_ended.recv_timeout(Duration::from_secs(1)).is_err(), "it is kept, and goes on");
    std::fs::write(&goes, "go\n").unwrap();
    assert_eq!(how(kept_ended.recv_timeout(LONG).unwrap()), (AgentEnd::Code(7), AgentEndCause::Itself));
    second_child.kill().unwrap();
    second_child.wait().unwrap();
}

fn how(gone: EndedSession) -> (AgentEnd, AgentEndCause) {
    match gone.how {
        SessionEnding::Exited(exit) => (exit.end, exit.cause),
        SessionEnding::Lost { why } => panic!("{why}"),
    }
}

/// The letter by which the kernel says what a process is at.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).unwrap_or('-')
}

/// Waits until a process is at this. There is no event to wait for that the kernel would tell to a stranger.
fn until(pid: i32, wanted: char) {
    let give_up = Instant::now() + LONG;
    while state(pid) != wanted {
        assert!(Instant::now() < give_up, "{pid} is {} and not {wanted}", state(pid));
        let _ = rustix::event::poll(&mut [], Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
    }
}

#[test]
fn an_agent_that_is_not_kept_is_paused_with_all_that_it_started_and_goes_on_when_it_is_kept_again() {
    let bench = Bench::plain();
    let (ready, goes) = (bench.fifo("ready"), bench.fifo("goes"));
    let file = bench.folder.path().join("keeper");
    std::fs::write(&file, serde_json::to_vec(&ProcessIdentity::own().unwrap()).unwrap()).unwrap();
    // One in the agent's group, one that has left its session and lost its parent, and one that was stopped before.
    let text = "sleep 1000 & a=$!; (setsid sleep 1000 & echo $! > far); sleep 1000 & kill -STOP $!; \
                echo $$ $a $(cat far) $! > ready; read x < goes; exit 7";
    let keeper = SessionKeeper { file, away_ms: 300_000, until_ms: boot_ms() + 300_000 };
    let spec = SessionSpec { keeper: Some(keeper), ..bench.headless("worker", text, None) };
    let (living, ended) = bench.start_watched(&spec);
    let heard = String::from_utf8(hear(&ready)).unwrap();
    let pids: Vec<i32> = heard.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    until(pids[3], 'T');
    assert!(pids[..3].iter().all(|pid| state(*pid) != 'T'), "{heard}");
    assert!(!bench.sessions().is_paused(&spec.id));

    bench.sessions().keep(&spec.id, boot_ms()).unwrap();
    pids.iter().for_each(|pid| until(*pid, 'T'));
    assert!(bench.sessions().is_paused(&spec.id));
    assert!(state(living.shim.pid) != 'T', "the shim itself goes on");

    bench.sessions().keep(&spec.id, boot_ms() + 300_000).unwrap();
    pids[..3].iter().for_each(|pid| until(*pid, 'S'));
    assert_eq!(state(pids[3]), 'T', "what was stopped before stays so");

    std::fs::write(&goes, "go\n").unwrap();
    assert_eq!(how(ended.recv_timeout(LONG).unwrap()), (AgentEnd::Code(7), AgentEndCause::Itself));
    assert!(pids.iter().all(|pid| ProcessIdentity::of(*pid).is_none()), "nothing is left");
}

#[test]
fn an_agent_that_is_paused_hears_nothing_of_its_end() {
    let bench = Bench::plain();
    let ready = bench.fifo("ready");
    let file = bench.folder.path().join("keeper");
    std::fs::write(&file, serde_json::to_vec(&ProcessIdentity::own().unwrap()).unwrap()).unwrap();
    let text = "trap 'echo heard > trapped; exit 0' TERM; sleep 1000 & echo $$ > ready; while true; do wait; done";
    let keeper = SessionKeeper { file, away_ms: 300_000, until_ms: boot_ms() + 300_000 };
    let spec = SessionSpec { keeper: Some(keeper), ..bench.headless("worker", text, None) };
    let (living, ended) = bench.start_watched(&spec);
    hear(&ready);
    bench.sessions().keep(&spec.id, boot_ms()).unwrap();
    until(living.agent.pid, 'T');
    bench.sessions().end(&spec.id, LONG, "it is somebody else's").unwrap();
    assert_eq!(how(ended.recv_timeout(LONG).unwrap()), (AgentEnd::Signal(9), AgentEndCause::Asked));
    assert!(!bench.path("trapped").exists(), "it would have run beside another");
}

/// Of a home on a store that another engine can own: all that it has started goes on, or none.
#[test]
fn what_a_home_has_started_goes_on_only_while_its_store_is_its_own() {
    let bench = Bench::plain();
    let ready = bench.fifo("ready");
    let leases = LeaseFolder::new(bench.path("fence")).unwrap();
    let say = |until_ms, since| leases.say(KeeperTerm { until_ms, since, epoch: since }).unwrap();
    let later = || boot_ms() + 300_000;
    let spec = |id: &str, epoch| {
        let text = format!("echo {id} >> begun; sleep 1000 & echo $$ > ready; while true; do wait; done");
        SessionSpec { lease: Some(leases.of(epoch)), ..bench.headless(id, &text, None) }
    };
    say(later(), 3);
    let (living, ended) = bench.start_watched(&spec("first", 3));
    hear(&ready);
    say(boot_ms(), 3);
    until(living.agent.pid, 'T');
    assert!(bench.sessions().is_paused(&spec("first", 3).id));
    say(later(), 3);
    until(living.agent.pid, 'S');

    // Another owned the store: what was started before ends, and nothing begins under what was before.
    say(later(), 5);
    assert_eq!(how(ended.recv_timeout(LONG).unwrap()), (AgentEnd::Signal(9), AgentEndCause::Unkept));
    let late = bench.sessions().start(&spec("late", 4)).unwrap().standing;
    let SessionStanding::Gone(EndedSession { how: SessionEnding::Exited(exit), .. }) = late else { panic!("{late:?}") };
    assert_eq!((matches!(exit.end, AgentEnd::NotStarted(_)), exit.cause), (true, AgentEndCause::Unkept));
    let (second, _) = bench.start_watched(&spec("second", 5));
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("begun")).unwrap(), "first\nsecond\n");
    kill(&second.shim);
}

#[test]
fn what_has_left_may_go_on_if_that_is_wanted_and_the_agent_has_ended_by_itself() {
    let bench = Bench::plain();
    // It ends when the one has left: until then that is in the agent's own group, and would be ended.
    let text = "setsid sh -c 'echo $$ > far; exec sleep 1000' > /dev/null 2>&1 & sleep 1000 > /dev/null 2>&1 & \
                echo $! > near; while ! test -s far; do :; done";
    let spec = SessionSpec { may_leave: true, ..bench.headless("script", text, None) };
    let gone = bench.run(&spec);
    assert_eq!(how(gone), (AgentEnd::Code(0), AgentEndCause::Itself));
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap().trim().parse::<i32>().unwrap();
    let far = ProcessIdentity::of(read("far"));
    kill(far.as_ref().expect("the server goes on"));
    assert!(ProcessIdentity::of(read("near")).is_none(), "what stayed is ended");
}
