//! What the engine holds: memory when idle, after many runs and after a rest; and what a run leaves on the disk.

use std::time::Duration;

use super::langgraph::Deed;
use super::restate::Restate;
use super::{CONNECTIONS, Stage, Workspace, start_of};
use crate::machine::{disk, rest};

/// Runs of a peer at most: they take longer for each.
const FEWER: usize = 2_000;

/// Memory and disk, beside what the durable peers take.
pub fn measure(stage: &Stage) {
    let (served, repository) = stage.furnish(1, "true");
    let workspace = *stage.workspaces(&served, "memory").last().unwrap_or(&Workspace::Outside);
    let start = start_of(workspace, &repository);
    rest(Duration::from_secs(2).min(stage.scale.rest));
    let idle = served.resident();
    stage.table.alone("memory, idle", &mebibytes(idle), "under 25 MiB");
    let (runs, before) = (stage.scale.memory, disk(&served.home()));
    let mut left = runs;
    while left > 0 {
        // In parts, so that the driver's own memory and the queue of the engine stay as they are.
        let part = left.min(1_000);
        served.runs(&start, part, CONNECTIONS);
        left -= part;
    }
    let (after, home) = (served.resident(), disk(&served.home()));
    let each = home.saturating_sub(before) as f64 / runs as f64;
    let row = format!("memory after {runs} runs, {} / idle", workspace.name());
    stage.table.values(&row, after, idle, mebibytes, "");
    rest(stage.scale.rest);
    let rested = served.resident();
    let row = format!("memory {} s later / idle", stage.scale.rest.as_secs());
    stage.table.values(&row, rested, idle, mebibytes, "under 40 MiB");
    stage.table.alone(&format!("disk of a run, {}", workspace.name()), &kibibytes(each), "");
    beside(stage, &Held { runs, rested, home }, each);
}

/// What the engine holds after so many runs.
struct Held {
    runs: usize,
    /// Its memory after a rest, in MiB.
    rested: f64,
    /// Bytes of the whole home.
    home: u64,
}

fn beside(stage: &Stage, held: &Held, each: f64) {
    let (table, runs, fewer) = (&stage.table, held.runs, held.runs.min(FEWER));
    let memory = |peer: &str, peers: f64| {
        table.values(&format!("memory after {runs} runs / {peer} after {fewer}"), held.rested, peers, mebibytes, "");
    };
    if let Some(langgraph) = &stage.peers.langgraph {
        let peer = langgraph.measure(stage.disk(), "runs", Deed::Spawn, fewer, CONNECTIONS);
        memory("LangGraph", peer.after);
        let row = format!("disk of a run / LangGraph, over {fewer} runs");
        table.values(&row, each, peer.disk as f64 / fewer as f64, kibibytes, "");
    }
    if let Some(restate) = &stage.peers.restate {
        let restate = Restate::start(restate, stage.disk());
        restate.runs(Deed::Spawn, fewer, CONNECTIONS);
        let (server, service) = restate.resident();
        memory("Restate's server", server);
        memory("its service in Node", service);
        // It reserves its files before it needs them: what one run adds cannot be seen.
        let row = format!("all files after {runs} runs / Restate's after {fewer}");
        let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        table.values(&row, mebi(held.home), mebi(restate.disk()), mebibytes, "");
    }
}

fn mebibytes(value: f64) -> String {
    format!("{value:.1} MiB")
}

fn kibibytes(bytes: f64) -> String {
    format!("{:.1} KiB", bytes / 1024.0)
}
