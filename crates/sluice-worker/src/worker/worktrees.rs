//! The worktrees of a run on a worker's machine: clones of the repository's remote, whose work is brought back there. What
//! was done while others brought in theirs is merged with that, when it is this step's turn. A scratch folder is no clone:
//! what is in it stays on this machine.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sluice_api::Problem;
use sluice_api::work::{AskMergeTurn, MERGES, MergeTurn, StepProgress};
use sluice_core::recipe::{FailureKind, StepWorkspace};
use sluice_os::git::{Git, GitError};
use sluice_os::remote_worktree::{RemoteWorktree, RemoteWorktreeRequest};
use sluice_os::session::{SessionFailure, SessionId};

use super::job::{WorkerAssignment, not_ours};
use super::{FIRST_PAUSE, WorkerRuntime};
use crate::names::run_branch;
use crate::perform::outside::{self, WatchedFolder};
use crate::perform::performer::{StepWorktrees, WorktreeAccess, in_conflict, own_name};
use crate::undone::described;
use crate::undone::{PerformError, PerformFailure, UnavailableReason};

/// How long it is waited at most before the turn is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct RemoteWorktrees<'a> {
    worker: &'a WorkerRuntime,
    job: &'a WorkerAssignment,
    /// What was brought in, until the engine has taken the report: its worktree stays for as long.
    brought: RefCell<Option<BroughtWork>>,
}

/// Where a step works on this machine.
pub(super) enum RemoteLent {
    Tree(Box<RemoteWorktree>),
    Scratch(PathBuf),
    /// A scratch folder in which nothing may differ afterwards.
    Watched(WatchedFolder),
}

struct BroughtWork {
    lent: RemoteWorktree,
    commit: String,
    /// The commit with which it was merged.
    onto: Option<String>,
}

impl<'a> RemoteWorktrees<'a> {
    pub(super) fn new(worker: &'a WorkerRuntime, job: &'a WorkerAssignment) -> RemoteWorktrees<'a> {
        RemoteWorktrees { worker, job, brought: RefCell::default() }
    }

    /// The commit with which its work was merged, once it was.
    pub(super) fn merged_with(&self) -> Option<String> {
        self.brought.borrow().as_ref().and_then(|brought| brought.onto.clone())
    }

    /// Brings in again what was brought in, because the work of the run has moved on since.
    pub(super) fn merge_again(&self) -> Result<Option<String>, PerformError> {
        match self.brought.take() {
            Some(BroughtWork { lent, commit, .. }) => self.bring_in(lent, commit),
            None => Ok(None),
        }
    }

    /// The engine has taken the report: the worktree is not needed any more.
    pub(super) fn finish(&self) {
        self.worker.leave_scratch(self.job);
        let Some(BroughtWork { lent, .. }) = self.brought.take() else { return };
        if let Err(error) = lent.discard() {
            tracing::warn!(step = self.job.task, "the worktree stays: {}", described(&error));
        }
    }

    /// Brings a commit of a worktree into the branch of the run, when it is its turn. Where the run has moved on before it was
    /// pushed, it is merged with that.
    fn bring_in(&self, lent: RemoteWorktree, commit: String) -> Result<Option<String>, PerformError> {
        let message = self.message();
        loop {
            let onto = self.wait_for_turn(&lent, &commit)?;
            let has_moved = Cell::new(false);
            let is_ours = || {
                has_moved.set(!self.is_still_ours(onto.as_ref()));
                !has_moved.get()
            };
            let pushed =
                self.worker.patiently(self.job, || match lent.bring(&commit, onto.as_deref(), &message, is_ours) {
                    Err(GitError::Push { .. }) if has_moved.get() => Ok(None),
                    brought => brought.map(Some),
                });
            match pushed {
                Ok(Some(new)) => {
                    *self.brought.borrow_mut() = Some(BroughtWork { lent, commit, onto });
                    return Ok(new);
                }
                Ok(None) if self.job.is_given_back() => return Err(not_ours().into()),
                Ok(None) => {}
                Err(error @ GitError::Conflict { .. }) => {
                    let branch = self.put_apart(&lent, &commit).map_err(|error| self.failed(&error))?;
                    return Err(in_conflict(&branch.unwrap_or_default(), &error));
                }
                Err(error) => return Err(self.left_apart(&lent, &commit, &described(&error))),
            }
        }
    }

    /// Work that cannot be brought in is on a branch of its own, if it can be brought there.
    fn left_apart(&self, lent: &RemoteWorktree, commit: &str, why: &str) -> PerformError {
        if self.job.is_given_back() {
            return not_ours().into();
        }
        match self.put_apart(lent, commit) {
            Ok(Some(branch)) => format!("its work is on `{branch}` and cannot be handed on: {why}").into(),
            Ok(None) | Err(_) => format!("its work cannot be handed on: {why}").into(),
        }
    }

    fn message(&self) -> String {
        format!("{}: {}", self.job.mission, self.job.title)
    }

    /// Waits until it is this step's turn. The commit at which the work of the run stands then. An engine of an earlier
    /// version knows of no turns.
    fn wait_for_turn(&self, lent: &RemoteWorktree, commit: &str) -> Result<Option<String>, PerformError> {
        if self.worker.engine_speaks.load(Ordering::Relaxed) < MERGES {
            return Ok(None);
        }
        let mut wait = FIRST_PAUSE;
        loop {
            match self.ask_turn()? {
                MergeTurn { ready: true, commit, .. } => return Ok(commit),
                MergeTurn { .. } if self.job.is_given_back() => return Err(not_ours().into()),
                MergeTurn { .. } if self.job.is_stopped() => {
                    return Err(self.left_apart(lent, commit, "it was ended before it was its turn"));
                }
                MergeTurn { .. } => self.worker.pause(wait),
            }
            wait = (wait * 2).min(ASK_AGAIN);
        }
    }

    fn ask_turn(&self) -> Result<MergeTurn, UnavailableReason> {
        let asked = AskMergeTurn { run_id: self.job.run_id(&self.worker.id) };
        let no = |problem: Problem| UnavailableReason(format!("it is not brought in: {}", problem.message));
        self.worker.insist_on(self.job, "/v1/runs/merge-turn", &asked).map_err(no)
    }

    /// Asked before something that was pushed meanwhile is replaced.
    fn is_still_ours(&self, onto: Option<&String>) -> bool {
        if self.worker.engine_speaks.load(Ordering::Relaxed) < MERGES {
            let sign = StepProgress { run_id: self.job.run_id(&self.worker.id), ..StepProgress::default() };
            return self.worker.insist_on::<Value>(self.job, "/v1/runs/update", &sign).is_ok();
        }
        self.ask_turn().is_ok_and(|turn| turn.ready && turn.commit.as_ref() == onto)
    }

    fn failed(&self, error: &GitError) -> PerformError {
        match self.job.is_given_back() {
            true => not_ours().into(),
            false => format!("its work cannot be handed on: {}", described(error)).into(),
        }
    }

    fn commit(&self, worktree: &RemoteWorktree) -> Result<Option<String>, GitError> {
        self.worker.patiently(self.job, || worktree.commit(&self.message()))
    }

    /// What is not the run's is brought to a branch of its own.
    fn put_apart(&self, worktree: &RemoteWorktree, commit: &str) -> Result<Option<String>, GitError> {
        self.worker.patiently(self.job, || worktree.put_apart(commit))
    }
}

impl StepWorktrees for RemoteWorktrees<'_> {
    type Lent = RemoteLent;

    fn open(&self, access: WorktreeAccess) -> Result<RemoteLent, PerformError> {
        match self.job.workspace {
            StepWorkspace::Run | StepWorkspace::Own => {
                self.worktree(access).map(|tree| RemoteLent::Tree(Box::new(tree)))
            }
            StepWorkspace::Scratch => self.scratch(access),
            StepWorkspace::Here => {
                Err("it works in the checkout that its run was started in; a worker has none".into())
            }
        }
    }

    fn folder<'a>(&self, lent: &'a RemoteLent) -> &'a Path {
        match lent {
            RemoteLent::Tree(tree) => &tree.folder,
            RemoteLent::Scratch(folder) => folder,
            RemoteLent::Watched(watched) => &watched.folder,
        }
    }

    fn merge(&self, lent: RemoteLent) -> Result<Option<String>, PerformError> {
        let RemoteLent::Tree(tree) = lent else { return Ok(None) };
        match self.commit(&tree).map_err(|error| self.failed(&error))? {
            Some(commit) => self.bring_in(*tree, commit),
            None => Ok(None),
        }
    }

    fn discard(&self, lent: RemoteLent) -> Result<Option<String>, PerformError> {
        let lent = match lent {
            RemoteLent::Tree(tree) => tree,
            RemoteLent::Scratch(_) => return Ok(None),
            RemoteLent::Watched(watched) => return watched.must_be_as_before().map(|()| None),
        };
        if self.job.access == WorktreeAccess::Looks {
            // What an arbiter changed is not where the next step starts.
            let _ = lent.discard();
            return Ok(None);
        }
        let Ok(Some(commit)) = self.commit(&lent) else { return Ok(None) };
        let is_start = lent.is_start(&commit, self.job.commit.as_deref()).unwrap_or(false);
        // What failed is told as it failed, also if it cannot be brought anywhere: the worktree has it.
        if is_start || self.put_apart(&lent, &commit).is_ok() {
            let _ = lent.discard();
        }
        Ok(Some(commit).filter(|_| !is_start))
    }
}

impl RemoteWorktrees<'_> {
    /// The scratch folder of the run. That a step has come keeps it from being swept for a while.
    fn scratch(&self, access: WorktreeAccess) -> Result<RemoteLent, PerformError> {
        let places = &self.worker.bench.places;
        let folder = places.scratch(&self.job.mission);
        outside::make(&folder)?;
        let touched = std::fs::File::open(&folder).and_then(|it| it.set_modified(SystemTime::now()));
        touched.map_err(PerformError::at("cannot use", &folder))?;
        match access {
            WorktreeAccess::Shared | WorktreeAccess::Own => Ok(RemoteLent::Scratch(folder)),
            WorktreeAccess::Looks => WatchedFolder::of(folder, places.home()).map(RemoteLent::Watched),
        }
    }

    fn worktree(&self, access: WorktreeAccess) -> Result<RemoteWorktree, PerformError> {
        let (worker, job) = (self.worker, self.job);
        let id = SessionId::new(&job.order.name)?;
        let goes_on = !matches!(worker.bench.sessions.adopt(&id), Err(SessionFailure::Unknown(_)));
        let (branch, own) = (run_branch(&job.mission), own_name(&job.order.name));
        let wanted = RemoteWorktreeRequest {
            root: worker.bench.places.home(),
            run: job.mission.as_str(),
            branch: &branch,
            own: &own,
            is_own: access != WorktreeAccess::Shared && job.repository.is_some(),
            remote: job.repository.as_deref(),
            commit: job.commit.as_deref(),
            goes_on,
        };
        // What its agent has done was there: an empty one in its place would be taken for its work.
        if goes_on && wanted.is_own && !RemoteWorktree::place(&wanted).is_dir() {
            return Err(
                PerformFailure { kind: FailureKind::Lost, ..PerformFailure::because("its worktree is gone") }.into()
            );
        }
        worker.patiently(job, || RemoteWorktree::open(&Git::default(), &wanted)).map_err(|error| {
            match job.is_given_back() {
                true => not_ours().into(),
                false => PerformError::from(described(&error)),
            }
        })
    }
}
