//! `workspace gc`: removing what may go now. What would be lost is kept first; what cannot be kept stays, and the answer says
//! why. A dry run takes the same way, and changes nothing.

use std::path::Path;

use sluice_api::problem::Problem;
use sluice_api::workspace::{CollectWorkspaces, Collected, CollectedItem, LeftoverForm, NotCollected};
use sluice_os::disk::{FolderSize, SizeBudget};
use sluice_os::workspace::{
    KeepRef, WorkspaceName, WorkspacePool, WorkspaceRemoval, is_empty, remove_empty, remove_leftover,
};

use crate::ask::checkouts::{budget, form, told, what};
use crate::home::Home;
use crate::home::leftovers::{self, CheckoutFate, CheckoutRun, FoundCheckout, OpenedRepositories, RemovalRule};
use crate::home::{scratch, setup, worktrees};
use crate::undone::described;

/// The kind of a worktree of a project's pool, in the answer.
const WORKTREE: &str = "worktree";
/// The kind of a checkout of a run, in the answer.
const RUN: &str = "run";

/// The kind of a scratch folder, in the answer.
const SCRATCH: &str = "scratch";

/// What is collected, and what has come of it so far.
struct Collection<'a> {
    home: &'a Home,
    wanted: &'a CollectWorkspaces,
    sizes: SizeBudget,
    told: Collected,
}

/// Something that may go.
struct Candidate<'a> {
    kind: &'a str,
    path: &'a Path,
    owner: Option<String>,
}

/// What was kept of something, or would be.
#[derive(Default)]
struct Saved {
    what: Option<String>,
    number: Option<u32>,
}

/// Removes what may go now, or says what that would be.
pub(super) fn collect(home: &Home, wanted: &CollectWorkspaces) -> Result<Collected, Problem> {
    let told = Collected { dry_run: wanted.dry_run, ..Collected::default() };
    let mut collection = Collection { home, wanted, sizes: budget(), told };
    let projects = match &wanted.project {
        Some(name) => vec![home.projects.get(name)?],
        None => home.projects.list(),
    };
    let mut repositories = Vec::new();
    for project in projects {
        let pool = match home.projects.pool(&project) {
            Ok(pool) => pool,
            // It hides no other.
            Err(problem) => {
                collection.unopened(&home.projects.workspaces(&project), &problem);
                continue;
            }
        };
        repositories.push(pool.repository().common().to_owned());
        collection.pool(&pool);
    }
    let rule = RemovalRule::now(wanted.failed);
    let mut opened = OpenedRepositories::default();
    let found = leftovers::of_runs(home, &mut opened);
    for checkout in found.into_iter().chain(leftovers::of_removed_projects(home, &mut opened)) {
        let is_of = |pool: &WorkspacePool| repositories.iter().any(|common| common == pool.repository().common());
        if wanted.project.is_none() || checkout.pool.as_ref().is_some_and(is_of) {
            collection.checkout(&checkout, rule);
        }
    }
    if wanted.project.is_none() {
        for (run, place) in scratch::found(home) {
            collection.scratch(run, &place, rule);
        }
        collection.leftovers();
    }
    Ok(collection.told)
}

impl Collection<'_> {
    /// The worktrees of a project that no task has, is about to have, or lives in.
    fn pool(&mut self, pool: &WorkspacePool) {
        let made = match pool.made() {
            Ok(made) => made,
            Err(error) => return self.failed(pool.root(), described(&error)),
        };
        let home = self.home;
        for name in made.clone() {
            // One that cannot be removed is in the way of no other.
            let Some(_held) = home.reservations.removal(home, pool, &name) else { continue };
            let owner = pool.lent_to(&name).ok().flatten().map(|binding| binding.task);
            let path = pool.folder(&name);
            let size = self.sizes.size(&path);
            let saved = self.take(pool, &name, |pool| {
                let torn_down = setup::tear_down(home, pool.repository().folder(), &pool.folder(&name));
                torn_down.map_err(|undone| undone.to_string())?;
                pool.collect(&name).map(WorkspaceRemoval::Gone).map_err(|error| described(&error))
            });
            if let Some(saved) = saved.transpose() {
                self.note(Candidate { kind: WORKTREE, path: &path, owner }, size, saved);
            }
        }
        self.unknown(pool, &made);
    }

    /// The worktrees of a project whose repository cannot be opened: nothing of them can be kept.
    fn unopened(&mut self, root: &Path, problem: &Problem) {
        if root.is_dir() && !is_empty(root) {
            self.failed(root, format!("its repository cannot be opened: {}", problem.message));
        }
    }

    /// Folders of a project's pool that git does not know. An empty one goes.
    fn unknown(&mut self, pool: &WorkspacePool, made: &[WorkspaceName]) {
        let home = self.home;
        for name in pool.names().unwrap_or_default().into_iter().filter(|name| !made.contains(name)) {
            let path = pool.folder(&name);
            let Some(_held) = home.reservations.removal(home, pool, &name).filter(|_| path.is_dir()) else { continue };
            match std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none()) {
                true => self.empty(pool.root(), &name),
                false => self.failed(&path, leftovers::NO_GIT.to_owned()),
            }
        }
    }

    /// An empty folder where a worktree could be.
    fn empty(&mut self, root: &Path, name: &WorkspaceName) {
        let path = root.join(name.as_str());
        let size = self.sizes.size(&path);
        if self.wanted.dry_run || WorkspacePool::remove_empty_place(root, name) {
            let candidate = Candidate { kind: LeftoverForm::Empty.word(), path: &path, owner: None };
            self.note(candidate, size, Ok(Saved::default()));
        }
    }

    /// The checkout of a run, or one that no run has.
    fn checkout(&mut self, checkout: &FoundCheckout, rule: RemovalRule) {
        match checkout.fate(self.home, rule) {
            CheckoutFate::Goes => {}
            CheckoutFate::Needed => return,
            CheckoutFate::Later(why) => return self.later(&checkout.place, why),
            CheckoutFate::Stuck(why) => return self.failed(&checkout.place, why),
        }
        let Some(pool) = &checkout.pool else {
            let Some(root) = checkout.place.parent() else { return };
            return self.empty(root, &checkout.name);
        };
        let (home, size) = (self.home, self.sizes.size(&checkout.place));
        let mut later = None;
        let saved = self.take(pool, &checkout.name, |pool| {
            // Its run may be retried at any moment until now.
            let may_go = || match checkout.fate(home, rule) {
                CheckoutFate::Goes => true,
                CheckoutFate::Needed => false,
                CheckoutFate::Later(why) | CheckoutFate::Stuck(why) => {
                    later = Some(why);
                    false
                }
            };
            let removed = worktrees::remove(home, pool, &checkout.name, &checkout.owner, may_go);
            removed.map_err(|undone| undone.to_string())
        });
        let kind = match &checkout.run {
            CheckoutRun::Known(_) => RUN,
            CheckoutRun::Unknown | CheckoutRun::Unread(_) => LeftoverForm::Checkout.word(),
        };
        let owner = Some(checkout.owner.clone());
        match (saved.transpose(), later) {
            (Some(saved), _) => self.note(Candidate { kind, path: &checkout.place, owner }, size, saved),
            (None, Some(why)) => self.later(&checkout.place, why),
            (None, None) => {} // its run goes on
        }
    }

    /// The scratch folder of a run. Nothing of it is kept: what a run writes there is not to last.
    fn scratch(&mut self, run: String, place: &Path, rule: RemovalRule) {
        let (home, fate) = (self.home, leftovers::fate_of(self.home, &run, place, rule));
        match fate {
            CheckoutFate::Goes => {}
            CheckoutFate::Needed => return,
            CheckoutFate::Later(why) => return self.later(place, why),
            CheckoutFate::Stuck(why) => return self.failed(place, why),
        }
        let size = self.sizes.size(place);
        let may_go = || leftovers::fate_of(home, &run, place, rule) == CheckoutFate::Goes;
        let removed = if self.wanted.dry_run { Ok(true) } else { scratch::remove(place, may_go) };
        let saved = match removed {
            Ok(false) => return, // its run goes on
            Ok(true) => Ok(Saved::default()),
            Err(undone) => Err(undone.to_string()),
        };
        self.note(Candidate { kind: SCRATCH, path: place, owner: Some(run) }, size, saved);
    }

    /// Removes a worktree and says what was kept, or only what would be; nothing if it may not go any more.
    fn take(
        &self,
        pool: &WorkspacePool,
        name: &WorkspaceName,
        remove: impl FnOnce(&WorkspacePool) -> Result<WorkspaceRemoval, String>,
    ) -> Result<Option<Saved>, String> {
        if self.wanted.dry_run {
            let at_risk = pool.at_risk(name).map_err(|error| described(&error))?;
            let told = (!at_risk.is_empty()).then(|| what(&at_risk));
            return Ok(Some(Saved { what: told, number: None }));
        }
        let WorkspaceRemoval::Gone(kept) = remove(pool)? else { return Ok(None) };
        if pool.folder(name).symlink_metadata().is_ok() {
            return Err(leftovers::NO_GIT.to_owned());
        }
        let saved = |kept: KeepRef| Saved { what: Some(what(&kept.what)), number: Some(kept.number) };
        Ok(Some(kept.map_or_else(Saved::default, saved)))
    }

    /// Half-removed checkouts, stale locks and empty folders: nothing of them can be lost.
    fn leftovers(&mut self) {
        for (root, found) in leftovers::dead(self.home) {
            for it in found {
                let size = self.sizes.size(&it.path);
                let (form, _) = form(it.kind);
                let removed = if self.wanted.dry_run { Ok(true) } else { remove_leftover(&root, &it) };
                if removed.as_ref().is_ok_and(|is_gone| !is_gone) {
                    continue; // it is in use again
                }
                let candidate = Candidate { kind: form.word(), path: &it.path, owner: None };
                self.note(candidate, size, removed.map(|_| Saved::default()).map_err(|error| described(&error)));
            }
        }
        for path in leftovers::empty_folders(self.home) {
            let size = self.sizes.size(&path);
            if self.wanted.dry_run || remove_empty(&path) {
                let candidate = Candidate { kind: LeftoverForm::Empty.word(), path: &path, owner: None };
                self.note(candidate, size, Ok(Saved::default()));
            }
        }
    }

    fn note(&mut self, candidate: Candidate<'_>, size: FolderSize, saved: Result<Saved, String>) {
        let Saved { what, number } = match saved {
            Ok(saved) => saved,
            Err(why) => return self.failed(candidate.path, why),
        };
        let (size_bytes, size_over_bytes) = told(size);
        self.told.freed_bytes = self.told.freed_bytes.saturating_add(size.bytes);
        self.told.removed.push(CollectedItem {
            kind: candidate.kind.to_owned(),
            path: candidate.path.display().to_string(),
            owner: candidate.owner,
            kept: what,
            number,
            size_bytes,
            size_over_bytes,
        });
    }

    fn failed(&mut self, path: &Path, why: String) {
        self.told.failed.push(NotCollected { path: path.display().to_string(), why });
    }

    fn later(&mut self, path: &Path, why: String) {
        self.told.later.push(NotCollected { path: path.display().to_string(), why });
    }
}
