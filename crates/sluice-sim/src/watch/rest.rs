//! What is promised of tasks when everything has settled: nothing lives that nobody knows of, nothing is kept that
//! nobody needs, and nothing waits without being seen to.

use sluice_core::lifecycle::FieldValue;
use sluice_core::task::TaskAsker;
use sluice_core::task::session::{TaskSession, TaskSessionPlace};
use sluice_core::task::state::TaskWorkspace;
use sluice_store::StreamId;

use super::{SimWatch, TaskWatch};
use crate::ground::SimTaskWorld;

impl SimWatch {
    /// Nothing is under way any more, neither in the engine nor in the world.
    pub(crate) fn at_rest(&self, ground: &SimTaskWorld) -> Result<(), String> {
        for (stream, task) in &self.tasks {
            let status = task.status();
            let wrong = |what: String| Err(format!("{stream} in `{status}`: {what}"));
            if !task.is_idle() {
                return wrong(format!("nobody is at {:?}", task.left()));
            }
            let checked = match task.is_finished() {
                true => task.left_nothing(stream, ground),
                false => task
                    .knows_who_lives(stream, ground)
                    .and_then(|()| task.is_seen_to(stream, ground))
                    .and_then(|()| task.tells_a_person()),
            };
            if let Err(what) = checked.and_then(|()| task.is_written(stream, ground)) {
                return wrong(what);
            }
        }
        Ok(())
    }
}

impl TaskWatch {
    /// A task that is over has no process and no worktree, unless the world withstood.
    fn left_nothing(&self, stream: &StreamId, ground: &SimTaskWorld) -> Result<(), String> {
        for id in ground.living(stream) {
            if !ground.processes.get(&(stream.clone(), id)).is_some_and(|process| process.withstood) {
                return Err(format!("it is over, and {id} lives on"));
            }
        }
        if ground.clinging.contains(stream) {
            return Ok(());
        }
        // What was lent on when an engine was killed is given back when the next task wants it.
        if let Some(name) = ground.bound_to(stream).filter(|name| self.left_behind().as_ref() != Some(name)) {
            return Err(format!("it is over, and {} is still its", name.0));
        }
        match &self.state.workspace {
            TaskWorkspace::Unbound => Ok(()),
            TaskWorkspace::Reserved(name) | TaskWorkspace::Bound(name) => {
                Err(format!("it is over, and keeps {}", name.0))
            }
        }
    }

    /// The processes that live are those that the task knows of, and the other way round.
    fn knows_who_lives(&self, stream: &StreamId, ground: &SimTaskWorld) -> Result<(), String> {
        let known = |place: TaskSessionPlace| {
            let session = self.state.session(place);
            session.agent().filter(|_| session.is_living()).map(|agent| agent.id)
        };
        let known = [known(TaskSessionPlace::Main), known(TaskSessionPlace::Beside)];
        for id in ground.living(stream) {
            if !known.contains(&Some(id)) {
                return Err(format!("{id} lives, and the task does not know of it"));
            }
        }
        for id in known.into_iter().flatten() {
            if !ground.living(stream).any(|living| living == id) {
                return Err(format!("{id} is gone, and the task does not know"));
            }
        }
        if let Some(mine) = self.state.run_here() {
            let end = ground.runs.get(&(stream.clone(), mine.id.clone())).copied().flatten();
            if mine.end != end {
                return Err(format!("its run has {end:?}, and the task knows of {:?}", mine.end));
            }
        }
        match (&self.state.workspace, ground.bound_to(stream)) {
            (TaskWorkspace::Bound(name), Some(bound)) if name == bound => Ok(()),
            (TaskWorkspace::Unbound, None) => Ok(()),
            (TaskWorkspace::Unbound, Some(bound)) if self.left_behind().as_ref() == Some(bound) => Ok(()),
            (known, bound) => Err(format!("it has {known:?}, and the disk says {bound:?}")),
        }
    }

    /// Either an agent is at it, or a person can see that none is.
    fn is_seen_to(&self, stream: &StreamId, ground: &SimTaskWorld) -> Result<(), String> {
        // One that could not be ended may have moved the task past the one that waits.
        let is_haunted = match self.state.visit.by {
            TaskAsker::Session(id) => ground.processes.get(&(stream.clone(), id)).is_some_and(|it| it.withstood),
            TaskAsker::Person | TaskAsker::Engine | TaskAsker::Stranger => false,
        };
        let silent = self.is_driven() && self.state.attention.is_none() && !self.is_looked_at && !is_haunted;
        match self.state.session(self.state.visit.watch) {
            TaskSession::Absent if silent => Err("no agent is at it, and nobody is told".into()),
            // Everything rests, so it waits for a word that did not reach it.
            TaskSession::Alive(agent) if silent => Err(format!("{} waits, and nobody is told", agent.id)),
            TaskSession::Ending(agent) if silent => {
                Err(format!("{} should have been ended, and nobody is told", agent.id))
            }
            TaskSession::Starting(agent) => Err(format!("{} starts for ever", agent.id)),
            TaskSession::Absent | TaskSession::Ending(_) | TaskSession::Alive(_) | TaskSession::Dead(..) => Ok(()),
        }
    }

    fn is_written(&self, stream: &StreamId, ground: &SimTaskWorld) -> Result<(), String> {
        let Some(sheet) = ground.sheets.get(stream).filter(|sheet| !sheet.is_behind) else { return Ok(()) };
        match sheet.frontmatter.get("status") {
            Some(FieldValue::Text(text)) if text == self.status() => Ok(()),
            other => Err(format!("TASK.md says {other:?}")),
        }
    }
}
