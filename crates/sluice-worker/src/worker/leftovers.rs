//! What is left on a worker's machine of work that is not its any more: agents and scripts that outlived a worker that was
//! killed, and worktrees and sessions that nobody has touched for long.
//!
//! An agent is ended as soon as the engine has said that its step is not this worker's; before that nobody knows. Of a
//! repository nothing is removed that the remote does not have; a scratch folder goes when no step has come for long.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sluice_api::work::{HeartbeatAnswer, HeldSteps};
use sluice_os::git::Git;
use sluice_os::remote_worktree;
use sluice_os::session::{SessionId, boot_ms};

use super::WorkerRuntime;
use super::job::WorkerAssignment;
use crate::perform::performer::own_name;

/// What no step has touched for so long is removed.
const OLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl WorkerRuntime {
    /// Compares what it is at with what the engine says that it holds: keeps that, and ends the rest.
    pub(super) fn compare(&self, held: HeldSteps) {
        let HeldSteps { dispatches, performances, answers } = held;
        // An engine that does not say which sign it answers has heard all, and just now.
        let HeartbeatAnswer { dispatches: signed, sent_ms } =
            answers.unwrap_or_else(|| HeartbeatAnswer { dispatches: dispatches.clone(), sent_ms: None });
        let sent_ms = sent_ms.unwrap_or_else(boot_ms);
        let (lost, kept, own, has_tidied) = {
            let mut inner = self.inner();
            let (held, lost): (Vec<_>, Vec<_>) =
                inner.jobs.clone().into_iter().partition(|(dispatch, _)| dispatches.contains(&dispatch.0));
            let kept: Vec<_> = held.into_iter().filter(|(dispatch, _)| signed.contains(&dispatch.0)).collect();
            let own: Vec<String> = inner.jobs.values().map(|job| job.order.name.clone()).collect();
            (lost, kept, own, std::mem::replace(&mut inner.has_tidied, true))
        };
        kept.iter().for_each(|(_, job)| job.keep(&self.bench, sent_ms));
        self.wake();
        for (_, job) in lost {
            tracing::info!("{} is not this worker's any more", job.order.name);
            job.give_back(&self.bench);
            self.wake();
        }
        if !has_tidied {
            self.end_leftovers(|name| performances.iter().chain(&own).any(|wanted| wanted == name));
        }
    }

    /// Ends agents and scripts that an earlier worker of this name began, and that nobody wants any more.
    fn end_leftovers(&self, is_wanted: impl Fn(&str) -> bool) {
        let ids = self.bench.sessions.list().unwrap_or_default();
        for id in ids.iter().filter(|id| !is_wanted(id.as_str()) && self.bench.sessions.is_living(id)) {
            tracing::info!("{id} is ended: its step is not this worker's any more");
            self.end_session(id);
        }
    }

    fn end_session(&self, id: &SessionId) {
        if let Err(why) = self.bench.stop(id.as_str()) {
            tracing::warn!("{id} cannot be ended: {why}");
        }
        self.bench.performed(id.as_str());
    }

    /// A step has been reported: the scratch folder of its run goes if it is empty, and no other step of the run is here.
    pub(super) fn leave_scratch(&self, job: &WorkerAssignment) {
        let inner = self.inner();
        let is_other = |other: &WorkerAssignment| other.mission == job.mission && other.order.name != job.order.name;
        if !inner.jobs.values().any(|other| is_other(other)) {
            // One with files in it stays, and so does one that is not there.
            let _ = std::fs::remove_dir(self.bench.places.scratch(&job.mission));
        }
    }

    /// Removes worktrees whose work the remote has, scratch folders, and sessions that are over, once nobody has touched them for long.
    pub(super) fn forget_what_is_old(&self) {
        let ids = self.bench.sessions.list().unwrap_or_default();
        let living: Vec<&SessionId> = ids.iter().filter(|id| self.bench.sessions.is_living(id)).collect();
        let is_free = |folder: &Path| {
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_at = |id: &SessionId| match (name.strip_prefix("mission-"), name.strip_prefix("part-")) {
                (Some(run), _) => id.as_str().starts_with(&format!("{run}.")),
                (None, Some(own)) => own_name(id.as_str()) == own,
                (None, None) => true,
            };
            !living.iter().any(|id| is_at(id))
        };
        let removed = remote_worktree::forget(&Git::default(), self.bench.places.home(), |folder| {
            is_old(folder) && is_free(folder)
        });
        removed.iter().for_each(|folder| tracing::info!("{} is removed", folder.display()));
        for folder in folders(&self.bench.places.scratches()) {
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_at = |id: &&SessionId| id.as_str().starts_with(&format!("{name}."));
            if is_old(&folder) && !living.iter().any(is_at) {
                match std::fs::remove_dir_all(&folder) {
                    Ok(()) => tracing::info!("{} is removed", folder.display()),
                    Err(error) => tracing::warn!("{} stays: {error}", folder.display()),
                }
            }
        }
        let is_over = |id: &&SessionId| !self.bench.sessions.is_living(id);
        for id in ids.iter().filter(is_over) {
            if is_old(&self.bench.places.sessions().join("live").join(id.as_str())) {
                // One that lives all the same says no, and stays.
                let _ = self.bench.sessions.forget(id);
            }
        }
    }
}

fn folders(place: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(place).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn is_old(path: &Path) -> bool {
    let touched = std::fs::metadata(path).and_then(|it| it.modified());
    touched.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > OLD))
}
