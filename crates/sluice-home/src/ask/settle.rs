//! Waiting until what follows from a change has been done, and telling what that was.

use std::time::Duration;

use sluice_api::problem::Problem;
use sluice_api::task::{EffectReport, EffectStatus, TaskAnswer, Transition};
use sluice_core::task::EffectKey;
use sluice_core::task::event::{Settlement, TaskEvent};
use sluice_engine::codec::task_event;
use sluice_engine::reactor::EventRange;
use sluice_os::workspace::KeepRef;

use super::workspaces::what;
use super::{Requester, Service};
use crate::home::judged;
use crate::read::tasks::{TaskSnapshot, stream};

/// How long a person waits for what follows from a command.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);
/// How long a task may take to hear that its agent is gone.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// How long a command waits for TASK.md to tell of it.
const WRITE_WITHIN: Duration = Duration::from_secs(2);

impl Service {
    /// The answer to a command that changed a task: for a person when everything has settled, for a session at once,
    /// because it may be what the change ends. Either finds the change in TASK.md, and may write there again.
    pub(super) fn settled(&self, who: &Requester, id: &str, recorded: EventRange) -> Result<TaskAnswer, Problem> {
        let gone = || Problem::not_found(format!("there is no task `{id}`"));
        let load = || self.home.tasks.load(id)?.ok_or_else(gone);
        let turns = load()?.state.turns_taken;
        if who.is_person() {
            // What is tried again and again may last; unless others come behind it, for then it is given up.
            let waits = |seen: &TaskSnapshot| {
                seen.state.waits_for_worktree() || (seen.state.turns.len() == 1 && self.home.waits.of(id).is_some())
            };
            self.wait_until(SETTLE_WITHIN, || load().map(|seen| !is_under_way(&seen, turns) || waits(&seen)))?;
        }
        let writings = open_writings(&load()?);
        self.wait_until(WRITE_WITHIN, || {
            let open = load()?.open_effects;
            Ok(!writings.iter().any(|effect| open.contains(effect)))
        })?;
        let seen = load()?;
        let still_running = is_under_way(&seen, turns);
        let transition = self.transition(&seen, recorded)?;
        let mut notes = Vec::new();
        if transition.is_some() && !seen.card.open && who.is_person() {
            notes.extend(self.unmerged(&seen));
            // A worktree that was given back has seen to it already. Not every task that ends has one.
            let not_kept = "commits that were judged and are on no branch any more could not be kept";
            notes.extend(judged::keep(&self.home, &seen).err().map(|why| format!("{not_kept}: {}", why.message)));
            notes.extend(self.put_away(&seen));
        }
        Ok(TaskAnswer { task: self.home.shown(&seen), transition, notes, still_running })
    }

    fn unmerged(&self, seen: &TaskSnapshot) -> Option<String> {
        let (_, pool) = self.home.pool_of(seen).ok().filter(|_| seen.state.merged.is_none())?;
        let branch = &seen.state.about.branch;
        match pool.repository().unmerged(branch).ok()? {
            0 => None,
            1 => Some(format!("1 commit on `{branch}` is not merged; it stays there")),
            count => Some(format!("{count} commits on `{branch}` are not merged; they stay there")),
        }
    }

    /// What was put away of a task's work, and how to get it back.
    pub(super) fn put_away(&self, seen: &TaskSnapshot) -> Vec<String> {
        let id = &seen.id;
        let kept = self.home.pool_of(seen).ok().and_then(|(_, pool)| pool.kept().ok()).unwrap_or_default();
        let line = |keep: KeepRef| {
            let which = format!("{id} --number {}", keep.number);
            format!("kept: {}; `sluice workspace restore {which} --into FOLDER` brings it back", what(&keep))
        };
        kept.into_iter().filter(|keep| keep.task == *id).map(line).collect()
    }

    /// A task is shown as crashed as soon as its agent is gone. Waits until the task itself has heard of that.
    pub(super) fn until_end_is_heard(&self, id: &str) -> Result<(), Problem> {
        let is_gone = || Ok(self.home.tasks.load(id)?.is_some_and(|seen| self.home.is_gone(&seen)));
        self.wait_until(HEARD_WITHIN, || is_gone().map(|is_gone| !is_gone))
    }

    fn wait_until(&self, most: Duration, is_so: impl Fn() -> Result<bool, Problem>) -> Result<(), Problem> {
        let waited = self.home.tasks.wait(most, || is_so().map(|is_so| is_so.then_some(())).transpose());
        waited.unwrap_or(Ok(()))
    }

    /// The change of status that was recorded, and what has become of its hooks.
    fn transition(&self, seen: &TaskSnapshot, recorded: EventRange) -> Result<Option<Transition>, Problem> {
        if recorded.last == recorded.after {
            return Ok(None);
        }
        let limit = usize::try_from(seen.version.saturating_sub(recorded.after)).unwrap_or(usize::MAX >> 1);
        let history = self.home.tasks.history(&stream(&seen.id), recorded.after, limit)?;
        let events: Vec<(u64, TaskEvent)> = history
            .iter()
            .filter_map(|(number, event)| Some((*number, task_event::read(event.version, &event.data).ok()?)))
            .collect();
        let moved = events.iter().find_map(|(number, event)| match event {
            TaskEvent::Moved(moved) if *number <= recorded.last => Some(moved),
            _ => None,
        });
        let Some(moved) = moved else { return Ok(None) };
        let name = |state| seen.lifecycle.state_name(state).to_owned();
        let effects = reports(&events, moved.turn);
        Ok(Some(Transition { from: name(moved.from), to: name(moved.to), effects }))
    }
}

/// Whether something that was set going by then is not done.
fn is_under_way(seen: &TaskSnapshot, turns: u32) -> bool {
    seen.state.turns.iter().any(|turn| turn.number <= turns)
}

/// The writings of TASK.md that are not done.
fn open_writings(seen: &TaskSnapshot) -> Vec<String> {
    let is_writing = |id: &&String| matches!(EffectKey::read(id), Some(EffectKey::Write { .. }));
    seen.open_effects.iter().filter(is_writing).cloned().collect()
}

fn reports(events: &[(u64, TaskEvent)], of: u32) -> Vec<EffectReport> {
    let mut reports: Vec<EffectReport> = Vec::new();
    for (_, event) in events {
        let (step, action, status, error) = match event {
            TaskEvent::HookAsked { turn, step, action } if *turn == of => (step, action, EffectStatus::Running, None),
            TaskEvent::HookSettled { turn, step, action, settlement } if *turn == of => match settlement {
                Settlement::Done => (step, action, EffectStatus::Done, None),
                Settlement::Idle => (step, action, EffectStatus::Idle, None),
                Settlement::Skipped(why) => (step, action, EffectStatus::Skipped, Some(why.clone())),
                Settlement::Failed(why) => (step, action, EffectStatus::Failed, Some(why.clone())),
            },
            _ => continue,
        };
        let report =
            EffectReport { id: format!("turn-{of}/{step} {action}"), action: action.to_string(), status, error };
        // A hook that asks for several things, like ending a session before another is started, asks for the next when
        // the one before has been done.
        let of_step = format!("turn-{of}/{step} ");
        let before = reports.iter_mut().filter(|other| other.id.starts_with(&of_step) && other.id != report.id);
        let running = before.filter(|other| other.status == EffectStatus::Running);
        running.for_each(|other| other.status = EffectStatus::Done);
        match reports.iter_mut().find(|other| other.id == report.id) {
            Some(other) => *other = report,
            None => reports.push(report),
        }
    }
    reports
}
