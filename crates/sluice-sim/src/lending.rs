//! Worktrees that are lent on while their tasks wait for a person, and taken up again: what the host does for that, step by
//! step, with a kill between any two.

use sluice_core::task::TaskInput;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::{TaskWorkspace, WorktreePath};
use sluice_store::StreamId;

use crate::watch::TaskWatch;
use crate::world::{SimLife, SimRequest};

impl SimLife {
    /// Asks a task that stands still to leave its worktree to another. It has it until the answer is on the disk.
    pub(crate) fn lends_one(&mut self) {
        let stands = |stream: &StreamId, task: &TaskWatch| {
            let state = &task.state;
            let is_still = task.is_idle() && !state.has_living_agent() && state.run.is_none() && !task.is_finished();
            let bound = state.workspace.bound().filter(|_| is_still && self.ground.living(stream).next().is_none());
            Some((stream.clone(), bound?.clone(), state.events))
        };
        let lenders: Vec<_> = self.watch.tasks.iter().filter_map(|(stream, task)| stands(stream, task)).collect();
        if lenders.is_empty() {
            return;
        }
        let (stream, workspace, events) = self.chance.pick(&lenders).clone();
        self.note(&format!("{stream}: is asked to lend {} on", workspace.0));
        let work = self.ground.sheet(&stream).evidence().work;
        self.is_in_peril(20, 300);
        self.say(&stream, Some(SimRequest::Lends), TaskInput::Lend { workspace, events, work });
    }

    /// Gives back every worktree that its task has left: what was lent on just now, or before an engine was killed.
    pub(crate) fn hands_on(&mut self) -> Result<(), String> {
        if !self.may_act() || !self.is_owner(self.here) {
            return Ok(());
        }
        let left = self.watch.tasks.iter().filter_map(|(stream, task)| Some((stream.clone(), task.left_behind()?)));
        let bound = left.filter(|(stream, name)| self.ground.bound_to(stream) == Some(name));
        for (stream, name) in bound.collect::<Vec<_>>() {
            self.note(&format!("{stream}: {} is lent on", name.0));
            self.ground.release(&stream, &name)?;
        }
        Ok(())
    }

    /// A task that waits for a worktree gets one, if there is one.
    pub(crate) fn lets_go_on(&mut self, stream: &StreamId) {
        let (room, kept) = self.room();
        if let WorkspaceReservation::Reserved(name) = &room {
            self.note(&format!("{stream}: goes on in {}", name.0));
        }
        self.say(stream, Some(SimRequest::Goes(kept)), TaskInput::TakeUp { room });
    }

    /// A broken engine takes a worktree from whichever task has one.
    pub(crate) fn takes_from_somebody(&mut self) -> Option<WorktreePath> {
        let tasks = self.watch.tasks.iter().filter(|(_, task)| !task.is_finished());
        let bound = tasks.filter_map(|(stream, task)| Some((stream, task.state.workspace.bound()?)));
        let (stream, name) = bound.map(|(stream, name)| (stream.clone(), name.clone())).next()?;
        self.note(&format!("{stream}: loses {}", name.0));
        Some(name)
    }
}

impl TaskWatch {
    /// The worktree that the task has lent on.
    pub(crate) fn left_behind(&self) -> Option<WorktreePath> {
        let lent = self.state.lent.as_ref().filter(|_| self.state.workspace == TaskWorkspace::Unbound);
        lent.map(|lent| lent.workspace.clone())
    }
}
