//! How many runs of five steps complete in a second when a thousand are posted at once.

use std::time::{Duration, Instant};

use super::langgraph::Deed;
use super::restate::Restate;
use super::{CONNECTIONS, STEPS, Stage, Workspace, start_of};
use crate::steps::bare_beside_each_other;

/// Something that gets through so many runs, and how long it took each time.
struct Contender<'a> {
    name: String,
    run: Box<dyn Fn() -> Duration + 'a>,
    took: Vec<Duration>,
}

impl<'a> Contender<'a> {
    fn new(name: impl Into<String>, run: impl Fn() -> Duration + 'a) -> Contender<'a> {
        Contender { name: name.into(), run: Box::new(run), took: Vec::new() }
    }

    fn rate(&self, runs: usize) -> f64 {
        runs as f64 / super::median(&self.took).as_secs_f64()
    }
}

/// Runs a second: with a worktree beside git alone, without beside bare starts and the peers. All take turns.
pub fn measure(stage: &Stage) {
    let runs = stage.scale.runs;
    let restate = stage.peers.restate.as_ref().map(|program| Restate::start(program, stage.disk()));
    let (served, repository) = stage.furnish(stage.scale.files[1], "true");
    let mut ours = stage.workspaces(&served, "runs of 5 `true`");
    ours.push(Workspace::Run);
    let run = |workspace: Workspace| {
        let (served, start) = (&served, start_of(workspace, &repository));
        Contender::new(workspace.name(), move || served.runs(&start, runs, CONNECTIONS))
    };
    let mut ours: Vec<(Workspace, Contender<'_>)> = ours.into_iter().map(|it| (it, run(it))).collect();
    let mut beside = vec![Contender::new("bare starts, 8 at once", || {
        let began = Instant::now();
        bare_beside_each_other(stage.disk(), runs * STEPS, CONNECTIONS).unwrap();
        began.elapsed()
    })];
    for deed in [Deed::Spawn, Deed::Noop] {
        if let Some(langgraph) = &stage.peers.langgraph {
            let measured = move || langgraph.measure(stage.disk(), "runs", deed, runs, CONNECTIONS).took;
            beside.push(Contender::new(format!("LangGraph, {}", deed.word()), measured));
        }
        if let Some(restate) = &restate {
            let measured = move || restate.runs(deed, runs, CONNECTIONS);
            beside.push(Contender::new(format!("Restate, {}", deed.word()), measured));
        }
    }
    // A tenth of the worktrees: they come one after the other, and each takes as long as the next.
    let mut git = Contender::new("git worktree add and remove", || {
        let once = |_| repository.worktree();
        (0..runs.div_ceil(10)).map(once).map(|(made, gone)| made + gone).sum::<Duration>() * 10
    });
    for _ in 0..stage.scale.rounds {
        let all = ours.iter_mut().map(|(_, ours)| ours).chain(&mut beside).chain([&mut git]);
        for contender in all {
            let took = (contender.run)();
            contender.took.push(took);
        }
    }
    for (workspace, ours) in &ours {
        let (beside, aim) = match workspace {
            Workspace::Outside => (beside.as_slice(), ""),
            Workspace::None => (beside.as_slice(), "at least 200/s"),
            Workspace::Run => (std::slice::from_ref(&git), "at least 40/s"),
        };
        for peer in beside {
            let row = format!("{runs} runs of 5 `true`, {} / {}", ours.name, peer.name);
            stage.table.rates(&row, ours.rate(runs), peer.rate(runs), aim);
        }
    }
}
