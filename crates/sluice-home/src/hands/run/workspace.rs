//! The worktrees of runs on this machine: what an agent did is committed when it has ended, and those that write beside each
//! other get worktrees of their own, which are merged in the order of the items. Scripts are not followed by a commit: it
//! would cost more than most of them do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::run::{Given, Part, Perform};
use sluice_worker::burrow::own_branch;
use sluice_worker::git::GitError;
use sluice_worker::listing::Listing;
use sluice_worker::passing::Passing;
use sluice_worker::session::{Failure, SessionId};
use sluice_worker::workspace::{Binding, Pool, WorkspaceName};

use super::label;
use crate::ground::Ground;
use crate::perform::{Access, Worktrees, in_conflict, own_name};
use crate::projects::{described, open};
use crate::runs::SeenRun;
use crate::undone::Undone;

/// How long an item waits for those before it to be merged, between two looks.
const LOOK: Duration = Duration::from_secs(600);

/// The branch that a run's work is on.
pub(crate) fn branch(run: &str) -> String {
    format!("sluice/run-{run}")
}

/// Where the worktrees are of runs that are started here.
pub(crate) fn pool(ground: &Ground, root: &Path) -> Result<Pool, Undone> {
    Pool::at(open(root, None)?, &folder(ground)).map_err(Undone::by)
}

/// Where the worktree of this run is, with those of its parts. The engine of another home may have started it: then its
/// work is there, and its branches are checked out there.
pub(crate) fn pool_of(ground: &Ground, given: &Given) -> Result<Pool, Undone> {
    let repository = open(Path::new(&given.origin.root), None)?;
    let own = Path::new(&given.workspace).parent().filter(|_| !given.origin.base.is_empty());
    Pool::at(repository, own.unwrap_or(&folder(ground))).map_err(Undone::by)
}

fn folder(ground: &Ground) -> PathBuf {
    ground.places.home().join("runs")
}

/// The worktrees of a run on this machine, for one performance of it.
pub(super) struct LocalWorktrees<'a> {
    pub(super) ground: &'a Arc<Ground>,
    pub(super) seen: &'a SeenRun,
    pub(super) wanted: &'a Perform,
    pub(super) name: &'a str,
}

/// Where a performance works.
pub(super) enum Lent {
    /// In the run's own worktree, or where the run was started.
    Run(PathBuf),
    /// In one of its own.
    Own(Own),
    /// In a copy of the work, which stood so before.
    Copy(Own, Before),
    /// Where the run was started, and nothing may differ afterwards.
    Watched(PathBuf, Listing),
}

/// The work as it was when an arbiter began to look at a copy of it.
pub(super) struct Before {
    standing: (String, bool),
    /// The commit to go back to if an arbiter that an earlier engine sent has changed it by now.
    touched: Option<String>,
}

/// A worktree of a performance's own.
pub(super) struct Own {
    pool: Pool,
    name: WorkspaceName,
    branch: String,
    folder: PathBuf,
}

impl Worktrees for LocalWorktrees<'_> {
    type Lent = Lent;

    fn open(&self, access: Access) -> Result<Lent, Undone> {
        let folder = PathBuf::from(self.seen.folder());
        match (access, self.has_worktree()) {
            (Access::Shared, _) | (Access::Own, false) => Ok(Lent::Run(folder)),
            (Access::Own, true) => self.own().map(Lent::Own),
            (Access::Looks, true) => self.copy(),
            (Access::Looks, false) => self.listed(&folder).map(|listing| Lent::Watched(folder, listing)),
        }
    }

    fn folder<'a>(&self, lent: &'a Lent) -> &'a Path {
        match lent {
            Lent::Run(folder) | Lent::Watched(folder, _) => folder,
            Lent::Own(own) | Lent::Copy(own, _) => &own.folder,
        }
    }

    fn merge(&self, lent: Lent) -> Result<Option<String>, Undone> {
        match lent {
            Lent::Run(_) => self.save()?,
            Lent::Own(own) => self.bring_in(own)?,
            Lent::Copy(..) | Lent::Watched(..) => {}
        }
        Ok(None)
    }

    fn discard(&self, lent: Lent) -> Result<Option<String>, Undone> {
        match lent {
            Lent::Run(_) => self.save()?,
            Lent::Own(own) => self.give_back(own),
            Lent::Copy(own, before) => {
                self.give_back(own);
                self.must_be_as_before(before)?;
            }
            Lent::Watched(folder, before) => self.must_be_listed(&folder, &before)?,
        }
        Ok(None)
    }
}

impl LocalWorktrees<'_> {
    /// Whether the run has a worktree of its own, and does not work in the folder it was started in.
    fn has_worktree(&self) -> bool {
        self.seen.state.given.workspace.starts_with('/')
    }

    fn pool(&self) -> Result<Pool, Undone> {
        pool_of(self.ground, &self.seen.state.given)
    }

    fn message(&self) -> String {
        format!("{}: {}", self.seen.plan.recipe.name, label(self.seen, self.wanted))
    }

    /// Commits what was done in the run's worktree, after an agent. In a task's worktree nothing is committed for its
    /// agents: what belongs on the branch is for those to say who work there.
    fn save(&self) -> Result<(), Undone> {
        if self.seen.state.given.origin.task.is_empty() { self.commit() } else { Ok(()) }
    }

    /// Commits what lies in the run's worktree, before others start from there. What cannot be committed stays there; what
    /// only cannot be committed now is an error.
    fn commit(&self) -> Result<(), Undone> {
        if !self.has_worktree() {
            return Ok(());
        }
        let folder = Path::new(self.seen.folder());
        let committed = self
            .pool()
            .and_then(|pool| pool.repository().commit_all(folder, &self.message()).map(drop).map_err(Undone::by));
        match committed {
            Ok(()) | Err(Undone::Failed(_)) => Ok(()),
            Err(unavailable) => Err(unavailable),
        }
    }

    /// A worktree that starts where the run's own is now.
    fn own(&self) -> Result<Own, Undone> {
        self.commit()?;
        let pool = self.pool()?;
        let head = pool.repository().head(Path::new(self.seen.folder())).map_err(Undone::by)?;
        let name = own_name(self.name);
        let branch = own_branch(&name);
        let name = WorkspaceName::new(&name).map_err(Undone::by)?;
        let binding = Binding { task: self.seen.id.clone(), branch: branch.clone() };
        let lent = pool.acquire(&name, &binding, Some(&head)).map_err(Undone::by)?;
        Ok(Own { pool, name, branch, folder: lent.folder })
    }

    /// Commits what was done there and brings it into the run's worktree, after all items before it. A conflict leaves
    /// both as they are.
    fn bring_in(&self, own: Own) -> Result<(), Undone> {
        let repository = own.pool.repository();
        let unmerged = |error: GitError| match error.is_passing() {
            true => Undone::by(error),
            false => in_conflict(&own.branch, &error),
        };
        match repository.commit_all(&own.folder, &self.message()) {
            Err(error @ GitError::Unresolved { .. }) => return Err(unmerged(error)),
            done => done.map_err(Undone::by)?,
        };
        if !self.wait_for_those_before() {
            return Err(format!("the run has ended; its work is on `{}`", own.branch).into());
        }
        let folder = Path::new(self.seen.folder());
        let told = repository.merge_into(folder, &own.branch, &self.message()).map_err(unmerged)?;
        if let Some(told) = told {
            self.ground.log.line(&format!("{} of {}: {told}", label(self.seen, self.wanted), self.seen.id));
        }
        self.give_back(own);
        Ok(())
    }

    /// Removes the worktree; what is at risk is kept.
    fn give_back(&self, own: Own) {
        let _ = own.pool.destroy(&own.name, &self.seen.id);
        let _ = own.pool.delete_branch(&own.branch, &self.seen.id);
    }

    /// Waits until every item before this one has ended; false if the run ended first.
    fn wait_for_those_before(&self) -> bool {
        let own = if let Part::Item(item) = self.wanted.part { item } else { 0 };
        let have_ended = || {
            let now = self.ground.tasks.load_run(&self.seen.id).ok().flatten()?;
            match (&now.state.end, now.state.has_open_before(self.wanted.step, own)) {
                (Some(_), _) => Some(false),
                (None, false) => Some(true),
                (None, true) => None,
            }
        };
        loop {
            if let Some(goes_on) = self.ground.tasks.wait(LOOK, have_ended) {
                return goes_on;
            }
        }
    }

    fn standing(&self) -> Result<(String, bool), Undone> {
        self.pool()?.repository().standing(Path::new(self.seen.folder())).map_err(Undone::by)
    }

    /// A copy of the work for an arbiter. That the work itself is as it was is looked at afterwards.
    fn copy(&self) -> Result<Lent, Undone> {
        // One that an earlier engine sent may have touched the work by now: the work was committed before it began.
        let is_adopted = !matches!(self.ground.sessions.adopt(&SessionId::new(self.name)?), Err(Failure::Unknown(_)));
        let (found, is_dirty) = self.standing()?;
        let copy = self.own()?;
        let touched = Some(found).filter(|_| is_adopted && is_dirty);
        Ok(Lent::Copy(copy, Before { standing: self.standing()?, touched }))
    }

    fn must_be_as_before(&self, before: Before) -> Result<(), Undone> {
        if self.standing()? == before.standing && before.touched.is_none() {
            return Ok(());
        }
        let branch = format!("sluice/arbiter-{}", own_name(self.name));
        let work = before.touched.unwrap_or(before.standing.0);
        let put_back = self.pool()?.repository().put_back(Path::new(self.seen.folder()), &work, &branch);
        Err(Undone::from(match put_back {
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

    /// Outside git there is no copy, but whether the folder is as it was is looked at afterwards.
    fn listed(&self, folder: &Path) -> Result<Listing, Undone> {
        Listing::of(folder, self.ground.places.home()).map_err(Undone::at("cannot look at", folder))
    }

    fn must_be_listed(&self, folder: &Path, before: &Listing) -> Result<(), Undone> {
        let differs = before.differs(&self.listed(folder)?);
        match differs.first() {
            None => Ok(()),
            Some(first) => Err(Undone::from(format!(
                "the arbiter changed the work, which it may not: {} ({} in all); outside git it cannot be put back",
                first.display(),
                differs.len()
            ))),
        }
    }
}
