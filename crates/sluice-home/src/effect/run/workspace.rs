//! The worktrees of runs on this machine: what an agent did is committed when it has ended, and those that write beside each
//! other get worktrees of their own, which are merged in the order of the items. A script in the run's worktree is not followed
//! by a commit: it would cost more than most of them do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::run::{AttemptPart, Perform};
use sluice_os::git::GitError;
use sluice_os::passing::PassingError;
use sluice_os::remote_worktree::own_branch;
use sluice_os::session::{SessionFailure, SessionId};
use sluice_os::workspace::{BoundWorktree, WorkspaceBinding, WorkspaceName, WorkspacePool};
use sluice_worker::names::run_branch;

use super::label;
use crate::home::worktrees::pool_of;
use crate::home::{Home, room, scratch, setup};
use crate::perform::outside::WatchedFolder;
use crate::perform::performer::{StepWorktrees, WorktreeAccess, in_conflict, own_name};
use crate::read::runs::{RunSnapshot, stream};
use crate::undone::PerformError;
use crate::undone::described;

/// How long an item waits for those before it to be merged, between two looks.
const LOOK: Duration = Duration::from_secs(600);

pub(super) struct LocalWorktrees<'a> {
    pub(super) home: &'a Arc<Home>,
    pub(super) seen: &'a RunSnapshot,
    pub(super) wanted: &'a Perform,
    pub(super) name: &'a str,
}

pub(super) enum LentWorktree {
    /// In the run's own worktree, in its scratch folder, or where the run was started.
    Run(PathBuf),
    Own(OwnWorktree),
    /// In a copy of the work, which stood so before.
    Copy(OwnWorktree, CopyBaseline),
    /// Outside worktrees, and nothing may differ afterwards.
    Watched(WatchedFolder),
}

/// The work as it was when an arbiter began to look at a copy of it.
pub(super) struct CopyBaseline {
    standing: (String, bool),
    /// The commit to go back to if an arbiter that an earlier engine sent has changed it by now.
    touched: Option<String>,
}

pub(super) struct OwnWorktree {
    pool: WorkspacePool,
    name: WorkspaceName,
    branch: String,
    folder: PathBuf,
}

impl StepWorktrees for LocalWorktrees<'_> {
    type Lent = LentWorktree;

    fn open(&self, access: WorktreeAccess) -> Result<LentWorktree, PerformError> {
        let folder = scratch::folder(&self.seen.setting(), self.wanted.workspace)?;
        match (access, self.has_worktree()) {
            (WorktreeAccess::Shared, _) | (WorktreeAccess::Own, false) => Ok(LentWorktree::Run(folder)),
            (WorktreeAccess::Own, true) => self.own().map(LentWorktree::Own),
            (WorktreeAccess::Looks, true) => self.copy(),
            (WorktreeAccess::Looks, false) => {
                WatchedFolder::of(folder, self.home.context.places.home()).map(LentWorktree::Watched)
            }
        }
    }

    fn folder<'a>(&self, lent: &'a LentWorktree) -> &'a Path {
        match lent {
            LentWorktree::Run(folder) => folder,
            LentWorktree::Watched(watched) => &watched.folder,
            LentWorktree::Own(own) | LentWorktree::Copy(own, _) => &own.folder,
        }
    }

    fn merge(&self, lent: LentWorktree) -> Result<Option<String>, PerformError> {
        match lent {
            LentWorktree::Run(_) => self.save()?,
            LentWorktree::Own(own) => self.bring_in(own)?,
            LentWorktree::Copy(..) | LentWorktree::Watched(_) => {}
        }
        Ok(None)
    }

    fn discard(&self, lent: LentWorktree) -> Result<Option<String>, PerformError> {
        match lent {
            LentWorktree::Run(_) => match self.save() {
                // What failed is told as it failed.
                Err(PerformError::Failed(failed)) => tracing::warn!(run = self.seen.id.as_str(), "{}", failed.error),
                saved => saved?,
            },
            LentWorktree::Own(own) => self.give_back(own),
            LentWorktree::Copy(own, before) => {
                self.give_back(own);
                self.must_be_as_before(before)?;
            }
            LentWorktree::Watched(watched) => watched.must_be_as_before()?,
        }
        Ok(None)
    }
}

impl LocalWorktrees<'_> {
    /// Whether the step works in a worktree of the run, and not in its scratch folder or where it was started.
    fn has_worktree(&self) -> bool {
        self.wanted.workspace.is_worktree() && self.seen.state.given.workspace.starts_with('/')
    }

    fn pool(&self) -> Result<WorkspacePool, PerformError> {
        pool_of(self.home, &self.seen.state.given)
    }

    fn message(&self) -> String {
        format!("{}: {}", self.seen.plan.recipe.name, label(self.seen, self.wanted))
    }

    /// Commits what was done in the run's worktree, after an agent. In a task's worktree nothing is committed for its
    /// agents: what belongs on the branch is for those to say who work there.
    fn save(&self) -> Result<(), PerformError> {
        if self.seen.state.given.origin.task.is_none() { self.commit() } else { Ok(()) }
    }

    /// The run's worktree, in which the engine commits. That of a task says itself on which branch it is lent.
    fn bound(&self) -> Result<BoundWorktree, PerformError> {
        let branch = Some(run_branch(&self.seen.id)).filter(|_| !self.seen.state.given.origin.base.is_empty());
        let bound = BoundWorktree::at(self.pool()?.repository(), Path::new(self.seen.folder()), branch.as_deref());
        bound.map_err(PerformError::by)
    }

    /// Commits what lies in the run's worktree, before others start from there. What cannot be committed stays there; what
    /// only cannot be committed now is an error, and so is a worktree that is not as it was lent.
    fn commit(&self) -> Result<(), PerformError> {
        // One that is gone is made again from its branch.
        if !self.has_worktree() || std::fs::symlink_metadata(self.seen.folder()).is_err() {
            return Ok(());
        }
        match self.bound()?.commit_all(&self.message()) {
            Ok(_) => Ok(()),
            Err(error) if error.is_of_place() || error.is_passing() => Err(PerformError::by(error)),
            Err(_) => Ok(()),
        }
    }

    /// A worktree that starts where the run's own is now.
    fn own(&self) -> Result<OwnWorktree, PerformError> {
        self.commit()?;
        let pool = self.pool()?;
        let head = self.bound()?.head().map_err(PerformError::by)?;
        let name = own_name(self.name);
        let branch = own_branch(&name);
        let name = WorkspaceName::new(&name).map_err(PerformError::by)?;
        let binding = WorkspaceBinding { task: self.seen.id.to_string(), branch: branch.clone() };
        room::must_be_there(self.home, &pool.folder(&name))?;
        let lent = pool.acquire(&name, &binding, Some(&head)).map_err(PerformError::by)?;
        setup::of_run(self.home, &self.seen.state.given, &lent.folder, self.name)?;
        Ok(OwnWorktree { pool, name, branch, folder: lent.folder })
    }

    /// Commits what was done there and brings it into the run's worktree, after all items before it. A conflict leaves
    /// both as they are.
    fn bring_in(&self, own: OwnWorktree) -> Result<(), PerformError> {
        let bound =
            BoundWorktree::at(own.pool.repository(), &own.folder, Some(&own.branch)).map_err(PerformError::by)?;
        let unmerged = |error: GitError| match error.is_passing() {
            true => PerformError::by(error),
            false => in_conflict(&own.branch, &error),
        };
        match bound.commit_all(&self.message()) {
            Err(error @ GitError::Unresolved { .. }) => return Err(unmerged(error)),
            done => done.map_err(PerformError::by)?,
        };
        if !self.wait_for_those_before() {
            return Err(format!("the run has ended; its work is on `{}`", own.branch).into());
        }
        let told = self.bound()?.merge_in(&own.branch, &self.message()).map_err(unmerged)?;
        if let Some(told) = told {
            tracing::warn!(run = self.seen.id.as_str(), step = label(self.seen, self.wanted), "{told}");
        }
        self.give_back(own);
        Ok(())
    }

    /// Removes the worktree; what is at risk is kept.
    fn give_back(&self, own: OwnWorktree) {
        if let Err(undone) = setup::tear_down(self.home, own.pool.repository().folder(), &own.folder) {
            return tracing::warn!(
                run = self.seen.id.as_str(),
                "the checkout {} stays: {undone}",
                own.folder.display()
            );
        }
        let run = self.seen.id.as_str();
        let removed = own.pool.destroy(&own.name, run).and_then(|_| own.pool.delete_branch(&own.branch, run));
        if let Err(error) = removed {
            tracing::warn!(run, "{} stays: {}", own.folder.display(), described(&error));
        }
    }

    /// Waits until every item before this one has ended; false if the run ended first.
    fn wait_for_those_before(&self) -> bool {
        let own = if let AttemptPart::Item(item) = self.wanted.part { item } else { 0 };
        let have_ended = || {
            let now = self.home.tasks.load_run(&self.seen.id).ok().flatten()?;
            match (&now.state.end, now.state.has_open_before(self.wanted.step, own)) {
                (Some(_), _) => Some(false),
                (None, false) => Some(true),
                (None, true) => None,
            }
        };
        loop {
            if let Some(goes_on) = self.home.tasks.wait_for(&stream(&self.seen.id), LOOK, have_ended) {
                return goes_on;
            }
        }
    }

    fn standing(&self) -> Result<(String, bool), PerformError> {
        self.bound()?.standing().map_err(PerformError::by)
    }

    /// A copy of the work for an arbiter. That the work itself is as it was is looked at afterwards.
    fn copy(&self) -> Result<LentWorktree, PerformError> {
        // One that an earlier engine sent may have touched the work by now: the work was committed before it began.
        let is_adopted =
            !matches!(self.home.context.sessions.adopt(&SessionId::new(self.name)?), Err(SessionFailure::Unknown(_)));
        let (found, is_dirty) = self.standing()?;
        let copy = self.own()?;
        let touched = Some(found).filter(|_| is_adopted && is_dirty);
        Ok(LentWorktree::Copy(copy, CopyBaseline { standing: self.standing()?, touched }))
    }

    fn must_be_as_before(&self, before: CopyBaseline) -> Result<(), PerformError> {
        if self.standing()? == before.standing && before.touched.is_none() {
            return Ok(());
        }
        let branch = format!("sluice/arbiter-{}", own_name(self.name));
        let work = before.touched.unwrap_or(before.standing.0);
        let put_back = self.bound()?.put_back(&work, &branch);
        Err(PerformError::from(match put_back {
            Ok(()) => format!(
                "the arbiter changed the work, which it may not; the work was put back, and what it changed is on `{branch}`"
            ),
            Err(error) => {
                format!(
                    "the arbiter changed the work, which it may not, and it cannot be put back: {}",
                    described(&error)
                )
            }
        }))
    }
}
