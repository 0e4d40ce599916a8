//! Processes killed without warning: noticed within a second, and nothing is left.

use sluice_worker::session::{Cause, End, How, Standing};

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
