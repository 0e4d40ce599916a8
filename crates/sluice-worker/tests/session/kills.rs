//! Processes killed without warning: noticed within a second, and nothing is left.

use std::process::{Command, Stdio};
use std::time::Duration;

use sluice_worker::process::Identity;
use sluice_worker::session::{Cause, End, How, Keeper, Spec, Standing};

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
        assert_eq!(gone.how, How::Lost { why: format!("its shim (process {}) died", living.shim.pid) });
        assert!(left.iter().all(|process| !process.lives()), "{left:?}");
        assert_eq!(bench.sessions().adopt(&spec.id).unwrap(), Standing::Gone(gone));
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
        let How::Exited(exit) = gone.how else { panic!("{gone:?}") };
        assert_eq!((exit.end, exit.cause, gone.asked), (End::Signal(signal), Cause::TerminalGone, None));
    }
    for process in [&deaf.agent, &deaf.shim, &polite.agent, &polite.shim] {
        assert!(!process.lives());
    }
    // A new server comes up as if nothing had been, and is not taken for the old one.
    let again = bench.start(&bench.script("worker-2", "read x < never"));
    assert_ne!(again.pane.unwrap().server, server);
    assert!(bench.sessions().attach_command(&worker.id).unwrap_err().to_string().contains("has ended"));
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
    let How::Exited(exit) = gone.how else { panic!("{gone:?}") };
    assert_eq!((exit.end, exit.cause), (End::Signal(9), Cause::Itself));
    assert!(!living.shim.lives());
}

#[test]
fn an_agent_whose_keeper_stays_away_is_ended_and_one_that_is_kept_again_goes_on() {
    let bench = Bench::plain();
    let (ready, goes) = (bench.fifo("ready"), bench.fifo("goes"));
    let keeper = || {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        (Identity::of(child.id().cast_signed()).unwrap(), child)
    };
    let (first, mut first_child) = keeper();
    let (second, mut second_child) = keeper();
    let text = "echo $$ > ready; read x < goes; exit 7";
    let kept = |id: &str, away: Duration| {
        let file = bench.folder.path().join(format!("{id}.keeper"));
        std::fs::write(&file, serde_json::to_vec(&first).unwrap()).unwrap();
        let keeper = Keeper { file, away_ms: u64::try_from(away.as_millis()).unwrap() };
        Spec { keeper: Some(keeper), ..bench.headless(id, text, None) }
    };
    let (_, left_ended) = bench.start_watched(&kept("left", Duration::from_millis(300)));
    hear(&ready);
    let (_, kept_ended) = bench.start_watched(&kept("kept", Duration::from_millis(300)));
    hear(&ready);
    std::fs::write(bench.folder.path().join("kept.keeper"), serde_json::to_vec(&second).unwrap()).unwrap();
    first_child.kill().unwrap();
    first_child.wait().unwrap();
    let how = |gone: sluice_worker::session::Gone| match gone.how {
        How::Exited(exit) => (exit.end, exit.cause),
        How::Lost { why } => panic!("{why}"),
    };
    assert_eq!(how(left_ended.recv_timeout(LONG).unwrap()), (End::Signal(15), Cause::Unkept));
    assert!(kept_ended.recv_timeout(Duration::from_secs(1)).is_err(), "it is kept, and goes on");
    std::fs::write(&goes, "go\n").unwrap();
    assert_eq!(how(kept_ended.recv_timeout(LONG).unwrap()), (End::Code(7), Cause::Itself));
    second_child.kill().unwrap();
    second_child.wait().unwrap();
}
