//! The runs that the states of simulated tasks start. Of each there is only its beginning and its end: what happens in
//! between is a life of its own.

use sluice_core::id::RunId;
use sluice_core::task::TaskInput;
use sluice_core::task::input::{RunEnd, TaskEffectOutcome, TaskEffectProduct};
use sluice_core::task::state::{WorkSnapshot, WorktreePath};
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::ground::run_of;
use crate::watch::TaskWatch;
use crate::world::{SimEvent, SimLife};

impl SimLife {
    /// Starts the run of a state, named after the effect that asks for it; asked for again it is there already.
    pub(crate) fn starts_run(
        &mut self,
        stream: &StreamId,
        effect: &str,
        workspace: Option<&WorktreePath>,
    ) -> Result<TaskEffectOutcome, String> {
        let id = run_of(effect)?;
        let run = (stream.clone(), id.clone());
        if !self.ground.runs.contains_key(&run) {
            self.ground.run(stream, &id, workspace)?;
            let began = WorkSnapshot::of(&self.ground.sheet(stream).evidence().work);
            if self.watch.tasks.get(stream).is_some_and(TaskWatch::starts_a_check) {
                self.ground.checks.insert(stream.clone(), id.clone());
            }
            self.ground.begun.insert(run.clone(), began);
            self.note(&format!("{stream}: the run {id} goes"));
            self.is_in_peril(40, 6_000);
            let wait = self.soon(6_000);
            self.at(wait, SimEvent::RunEnds { stream: stream.clone(), run: id.clone() });
        }
        Ok(TaskEffectOutcome::Ok(TaskEffectProduct::Run { id, began: self.ground.begun.get(&run).cloned() }))
    }

    /// It ends, unless it was cancelled, as it must have been when its task is over.
    pub(crate) fn run_ends(&mut self, stream: StreamId, run: RunId) -> Result<(), String> {
        let is_over = self.watch.tasks.get(&stream).is_some_and(TaskWatch::is_finished);
        let goes_on = self.ground.going(&stream).any(|going| *going == run);
        if goes_on && is_over && !self.ground.clinging.contains(&stream) {
            return Err(format!("{stream}: it is over, and the run {run} was not cancelled"));
        }
        let end = match self.chance.below(10) {
            0 => RunEnd::Cancelled,
            1..=3 => RunEnd::Failed,
            _ => RunEnd::Completed,
        };
        if goes_on && self.chance.percent(40) {
            self.note(&format!("{stream}: somebody commits beside the run {run}"));
            self.ground.sheet(&stream).commit();
        }
        self.note(&format!("{stream}: the run {run} has {}", end.word()));
        if let Some(known) = self.ground.runs.get_mut(&(stream.clone(), run)) {
            known.get_or_insert(end);
        }
        let wait = self.soon(300);
        self.at(wait, SimEvent::LooksAtRun(stream));
        Ok(())
    }

    /// The engine looks at what a task and its run say, and tells the task what it does not know.
    pub(crate) fn looks_at_run(&mut self, stream: &StreamId) {
        let Some(mine) = self.watch.tasks.get(stream).and_then(|task| task.state.run_here()) else { return };
        let end = self.ground.runs.get(&(stream.clone(), mine.id.clone())).copied().flatten();
        let Some(end) = end.filter(|end| mine.end != Some(*end) && self.is_heard()) else { return };
        let (run, why) = (mine.id.clone(), String::new());
        let evidence = self.ground.sheet(stream).evidence();
        // The runs of this world commit nothing themselves.
        let began = self.ground.begun.get(&(stream.clone(), run.clone()));
        let own =
            began == Some(&WorkSnapshot::of(&evidence.work)) || self.bug == Some(SimBug::TakesAllCommitsForTheRuns);
        for _ in 0..=usize::from(self.chance.percent(10)) {
            let evidence = evidence.clone();
            self.say(stream, None, TaskInput::RunEnded { run: run.clone(), end, why: why.clone(), own, evidence });
        }
    }

    pub(crate) fn looks_at_run_again(&mut self, stream: &StreamId) {
        if self.bug != Some(SimBug::ForgetsRunEnds) {
            self.looks_at_run(stream);
        }
    }
}
