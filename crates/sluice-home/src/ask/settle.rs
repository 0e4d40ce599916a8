//! Waiting until what follows from a change has been done, and telling what that was.

use std::sync::Arc;
use std::time::Duration;

use sluice_api::problem::Problem;
use sluice_api::task::{EffectReport, EffectStatus, TaskAnswer, Transition};
use sluice_core::id::TaskId;
use sluice_core::task::EffectKey;
use sluice_core::task::event::{Settlement, TaskEvent};
use sluice_engine::codec::task_event;
use sluice_engine::reactor::EventRange;
use sluice_os::workspace::KeepRef;

use super::checkouts::what;
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
    pub(super) fn settled(&self, who: &Requester, id: &TaskId, recorded: EventRange) -> Result<TaskAnswer, Problem> {
        let mut seen = self.since(id, recorded)?;
        let turns = seen.state.turns_taken;
        if who.is_person() {
            // What is tried again and again may last; unless others come behind it, for then it is given up.
            let waits = |seen: &TaskSnapshot| {
                seen.state.waits_for_worktree()
                    || (seen.state.turns.len() == 1 && self.home.waits.of(&stream(id)).is_some())
            };
            seen = self.until(SETTLE_WITHIN, seen, recorded, |seen| !is_under_way(seen, turns) || waits(seen))?;
        }
        let writings = open_writings(&seen);
        let is_done = |seen: &TaskSnapshot| !writings.iter().any(|effect| seen.open_effects.contains(effect));
        let seen = self.until(WRITE_WITHIN, seen, recorded, is_done)?;
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
            format!("kept: {}; `sluice workspace restore {which} --into FOLDER` brings it back", what(&keep.what))
        };
        kept.into_iter().filter(|keep| keep.task == id.as_str()).map(line).collect()
    }

    /// A task is shown as crashed as soon as its agent is gone. Waits until the task itself has heard of that.
    pub(super) fn until_end_is_heard(&self, id: &TaskId) -> Result<(), Problem> {
        let is_gone = || Ok(self.home.tasks.load(id)?.is_some_and(|seen| self.home.is_gone(&seen)));
        let is_heard = || is_gone().map(|is_gone| (!is_gone).then_some(())).transpose();
        self.home.tasks.wait_for(&stream(id), HEARD_WITHIN, is_heard).unwrap_or(Ok(()))
    }

    /// The task as it stands with what was recorded.
    pub(super) fn since(&self, id: &TaskId, recorded: EventRange) -> Result<Arc<TaskSnapshot>, Problem> {
        let gone = || Problem::not_found(format!("there is no task `{id}`"));
        self.home.tasks.since(id, recorded.last)?.ok_or_else(gone)
    }

    /// The task as it stands when something has become true of it, or when the time is up.
    fn until(
        &self,
        most: Duration,
        seen: Arc<TaskSnapshot>,
        recorded: EventRange,
        is_so: impl Fn(&TaskSnapshot) -> bool,
    ) -> Result<Arc<TaskSnapshot>, Problem> {
        if is_so(&seen) {
            return Ok(seen);
        }
        let id = &seen.id;
        let waited = self.home.tasks.wait_for(&stream(id), most, || match self.since(id, recorded) {
            Ok(seen) => is_so(&seen).then_some(Ok(seen)),
            Err(problem) => Some(Err(problem)),
        });
        waited.unwrap_or_else(|| self.since(id, recorded))
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use sluice_api::project::ProjectChange;
    use sluice_api::task::{CreateTask, UpdateTask};

    use super::*;
    use crate::ask::KeyedId;
    use crate::read::readers::LENT;
    use crate::settings::places::HomePaths;

    const LIFECYCLE: &str = "name: plain\nversion: 1\nstates: {a: {}, b: {}, c: {terminal: true}}\n\
        transitions: [{from: a, to: b}, {from: b, to: a}, {from: a, to: c}, {from: b, to: c}]\n";

    fn git(folder: &Path, arguments: &[&str]) {
        let done = Command::new("git").arg("-C").arg(folder).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn service(folder: &Path) -> Service {
        let (home, repository) = (folder.join("home"), folder.join("coffee"));
        std::fs::create_dir_all(home.join("workflows")).unwrap();
        std::fs::create_dir_all(&repository).unwrap();
        std::fs::write(home.join("workflows/plain.yml"), LIFECYCLE).unwrap();
        git(&repository, &["init", "--quiet", "--initial-branch", "main"]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(&repository, &[&author[..], &["commit", "--quiet", "--allow-empty", "--message", "first"]].concat());
        let service = Service::open(HomePaths::new(home), Some("memory:".into()), std::env::current_exe().unwrap());
        let service = service.unwrap();
        let path = Some(repository.display().to_string());
        service.add_project(&Requester::person("me"), ProjectChange { path, ..ProjectChange::default() }).unwrap();
        service
    }

    /// How often this thread reads something for what it does.
    fn reads<T>(work: impl FnOnce() -> T) -> (usize, T) {
        let before = LENT.get();
        let done = work();
        (LENT.get() - before, done)
    }

    #[test]
    fn a_command_reads_its_task_before_and_after_the_change_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let (service, me) = (service(folder.path()), Requester::person("me"));
        let wanted = CreateTask {
            project: Some("coffee".into()),
            workflow: Some("plain".into()),
            summary: "brew".into(),
            no_spawn: true,
            ..CreateTask::default()
        };
        let id = service.create(&me, &KeyedId::default(), &wanted).unwrap().task.id;
        for status in ["b", "a", "b", "c"] {
            let wanted = UpdateTask { status: Some(status.into()), ..UpdateTask::default() };
            let (count, answer) = reads(|| service.update(&me, &id, wanted).unwrap());
            let moved = answer.transition.unwrap();
            assert_eq!((answer.task.status.as_str(), moved.to.as_str()), (status, status));
            // The task, the task as it is then, and what was recorded. One that is over is not remembered, and is read
            // again when what follows from its end has been done.
            let most = if status == "c" { 7 } else { 3 };
            assert!(count <= most, "{count} reads to move it to {status}");
            let (count, listed) = reads(|| service.home().tasks.open());
            assert_eq!(count, 0);
            let found: Vec<&str> = listed.iter().map(|seen| seen.status()).collect();
            assert_eq!(found, if status == "c" { vec![] } else { vec![status] }, "a list shows what the command did");
        }
        assert_eq!(reads(|| service.show(&me, &id).unwrap()).0, 1);
        service.close().unwrap();
    }
}
