//! What is left on a worker's machine of work that is not its any more: agents and commands that outlived a worker that
//! was killed, and worktrees and sessions that nobody has touched for long.
//!
//! An agent is ended as soon as the engine has said that its step is not this worker's; before that nobody knows. Nothing is
//! removed that the remote does not have.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sluice_worker::burrow;
use sluice_worker::git::Git;
use sluice_worker::process::kill_leftover;
use sluice_worker::session::SessionId;

use super::Worker;

/// What nobody has touched for so long is removed.
const OLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Worker {
    /// Compares what it is at with what the engine says that it holds, and ends the rest.
    pub(super) fn compare(&self, held: &Value) {
        let dispatches: Vec<u64> = numbers(&held["dispatches"]);
        let names: Vec<&str> =
            held["performances"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (lost, own, has_tidied) = {
            let mut inner = self.inner();
            let lost: Vec<_> = inner.jobs.iter().filter(|(dispatch, _)| !dispatches.contains(dispatch)).collect();
            let lost: Vec<_> = lost.into_iter().map(|(_, job)| job.clone()).collect();
            let own: Vec<String> = inner.jobs.values().map(|job| job.order.name.clone()).collect();
            (lost, own, std::mem::replace(&mut inner.has_tidied, true))
        };
        for job in lost {
            self.bench.log.line(&format!("{} is not this worker's any more", job.order.name));
            job.give_back(&self.bench);
        }
        if !has_tidied {
            self.end_leftovers(|name| names.contains(&name) || own.iter().any(|own| own == name));
        }
    }

    /// Ends agents and commands that an earlier worker of this name began, and that nobody wants any more.
    fn end_leftovers(&self, is_wanted: impl Fn(&str) -> bool) {
        let ids = self.bench.sessions.list().unwrap_or_default();
        for id in ids.iter().filter(|id| !is_wanted(id.as_str()) && self.bench.sessions.is_living(id)) {
            self.bench.log.line(&format!("{id} is ended: its step is not this worker's any more"));
            self.end_session(id);
        }
        for entry in std::fs::read_dir(self.bench.commands()).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let of = name.to_str().and_then(|name| name.strip_suffix("-step.json"));
            if of.is_some_and(|of| !is_wanted(of))
                && let Err(failure) = kill_leftover(&path)
            {
                self.bench.log.line(&format!("what {} names cannot be ended: {failure}", path.display()));
            }
        }
    }

    fn end_session(&self, id: &SessionId) {
        if let Err(why) = self.bench.stop(id.as_str()) {
            self.bench.log.line(&format!("{id} cannot be ended: {why}"));
        }
        self.bench.performed(id.as_str());
    }

    /// Removes worktrees whose work the remote has, and sessions that are over, once nobody has touched them for long.
    pub(super) fn forget_what_is_old(&self) {
        let ids = self.bench.sessions.list().unwrap_or_default();
        let living: Vec<&SessionId> = ids.iter().filter(|id| self.bench.sessions.is_living(id)).collect();
        let is_free = |folder: &Path| {
            let name = folder.file_name().and_then(|name| name.to_str()?.strip_prefix("mission-"));
            name.is_some_and(|run| !living.iter().any(|id| id.as_str().starts_with(&format!("{run}."))))
        };
        let removed =
            burrow::forget(&Git::default(), self.bench.places.home(), |folder| is_old(folder) && is_free(folder));
        removed.iter().for_each(|folder| self.bench.log.line(&format!("{} is removed", folder.display())));
        let is_over = |id: &&SessionId| !self.bench.sessions.is_living(id);
        for id in ids.iter().filter(is_over) {
            if is_old(&self.bench.places.sessions().join("live").join(id.as_str())) {
                // One that lives all the same says no, and stays.
                let _ = self.bench.sessions.forget(id);
            }
        }
    }
}

fn is_old(path: &Path) -> bool {
    let touched = std::fs::metadata(path).and_then(|it| it.modified());
    touched.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > OLD))
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}
