//! `workspace gc`: removing what may go now. What would be lost is kept first; what cannot be kept stays, and the answer says
//! why. A dry run takes the same way, and changes nothing.

use std::path::Path;

use sluice_api::problem::Problem;
use sluice_api::workspace::{CollectWorkspaces, Collected, CollectedItem, LeftoverForm, NotCollected};
use sluice_os::disk::{FolderSize, SizeBudget};
use sluice_os::git::GitError;
use sluice_os::workspace::{KeepRef, WorkspaceName, WorkspacePool, remove_empty, remove_leftover};

use crate::ask::checkouts::{budget, form, told, what};
use crate::home::Home;
use crate::home::leftovers::{self, CheckoutRun, FoundCheckout, OpenedRepositories, RemovalRule};
use crate::home::setup;
use crate::undone::described;

/// The kind of a worktree of a project's pool, in the answer.
const WORKTREE: &str = "worktree";
/// The kind of a checkout of a run, in the answer.
const RUN: &str = "run";

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
        // A repository that is gone hides no other.
        let Ok(pool) = home.projects.pool(&project) else { continue };
        repositories.push(pool.repository().common().to_owned());
        collection.pool(&pool);
    }
    let rule = RemovalRule::now(wanted.failed);
    let mut opened = OpenedRepositories::default();
    let found = leftovers::of_runs(home, &mut opened);
    for checkout in found.into_iter().chain(leftovers::of_removed_projects(home, &mut opened)) {
        let is_of = |pool: &WorkspacePool| repositories.iter().any(|common| common == pool.repository().common());
        if (wanted.project.is_none() || checkout.pool.as_ref().is_some_and(is_of)) && checkout.may_go(home, rule) {
            collection.checkout(&checkout);
        }
    }
    if wanted.project.is_none() {
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
        for name in made {
            // One that cannot be removed is in the way of no other.
            let Some(_held) = home.reservations.removal(home, pool, &name) else { continue };
            let owner = pool.lent_to(&name).ok().flatten().map(|binding| binding.task);
            let path = pool.folder(&name);
            let size = self.sizes.size(&path);
            let saved = self.take(pool, &name, |pool| pool.collect(&name));
            self.note(Candidate { kind: WORKTREE, path: &path, owner }, size, saved);
        }
    }

    /// The checkout of a run, or one that no run has.
    fn checkout(&mut self, checkout: &FoundCheckout) {
        let Some(pool) = &checkout.pool else { return };
        let size = self.sizes.size(&checkout.place);
        let saved = self.take(pool, &checkout.name, |pool| pool.destroy(&checkout.name, &checkout.owner));
        let kind = match &checkout.run {
            CheckoutRun::Known(_) => RUN,
            CheckoutRun::Unknown | CheckoutRun::Unread(_) => LeftoverForm::Checkout.word(),
        };
        let owner = Some(checkout.owner.clone());
        self.note(Candidate { kind, path: &checkout.place, owner }, size, saved);
    }

    /// Removes a worktree and says what was kept, or only what would be.
    fn take(
        &self,
        pool: &WorkspacePool,
        name: &WorkspaceName,
        remove: impl FnOnce(&WorkspacePool) -> Result<Option<KeepRef>, GitError>,
    ) -> Result<Saved, String> {
        if self.wanted.dry_run {
            let at_risk = pool.at_risk(name).map_err(|error| described(&error))?;
            let told = (!at_risk.is_empty()).then(|| what(&at_risk));
            return Ok(Saved { what: told, number: None });
        }
        let torn_down = setup::tear_down(self.home, pool.repository().folder(), &pool.folder(name));
        torn_down.map_err(|undone| undone.to_string())?;
        let kept = remove(pool).map_err(|error| described(&error))?;
        Ok(kept.map_or_else(Saved::default, |kept| Saved { what: Some(what(&kept.what)), number: Some(kept.number) }))
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
}
