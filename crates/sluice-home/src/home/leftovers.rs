//! What is in the folders of worktrees besides those lent to tasks: the checkouts of runs and of their parts, and what removals,
//! crashes and removed projects left. Whether a checkout may go is decided here, for a person who asks and for retention alike.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_core::run::RunConclusion;
use sluice_os::git::{Repository, slug};
use sluice_os::workspace::{PoolLeftover, WorkspaceName, WorkspacePool, is_empty, leftovers};

use crate::home::Home;
use crate::home::reservations::is_over;
use crate::home::worktrees::{YOUNG, is_older};
use crate::read::runs::RunSnapshot;
use crate::settings::projects::open;

/// What stands aside in a pool and belongs to no keep begins with one of these.
const SET_ASIDE: [&str; 2] = ["lost-", "git-"];

/// A checkout that is no worktree of a project's pool.
pub(crate) struct FoundCheckout {
    pub(crate) name: WorkspaceName,
    pub(crate) place: PathBuf,
    /// The pool that it is in; none: git does not know it.
    pub(crate) pool: Option<WorkspacePool>,
    /// The task or run that it is lent to, or that has its name.
    pub(crate) owner: String,
    /// The run that it is of.
    pub(crate) run: CheckoutRun,
}

pub(crate) enum CheckoutRun {
    Known(Box<RunSnapshot>),
    /// The store does not know one.
    Unknown,
    /// The store cannot be asked.
    Unread(String),
}

/// Which checkouts may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovalRule {
    /// Whether those of failed runs may go.
    pub(crate) failed: bool,
    /// How old one must be whose run is not known.
    pub(crate) age: Duration,
}

impl RemovalRule {
    /// As a person asks for it: at once, but nothing that may just be beginning.
    pub(crate) fn now(failed: bool) -> RemovalRule {
        RemovalRule { failed, age: YOUNG }
    }
}

/// Repositories by the folder that git keeps for each: opening one asks git, and most checkouts are of the same few.
#[derive(Default)]
pub(crate) struct OpenedRepositories(BTreeMap<PathBuf, Repository>);

impl OpenedRepositories {
    fn of(&mut self, place: &Path) -> Option<Repository> {
        let link = std::fs::read_to_string(place.join(".git")).ok()?;
        // `REPOSITORY/.git/worktrees/NAME`
        let common = Path::new(link.trim_end().strip_prefix("gitdir: ")?).ancestors().nth(2)?.to_owned();
        if let Some(known) = self.0.get(&common) {
            return Some(known.clone());
        }
        // One checkout that cannot be opened says nothing about the others.
        let repository = open(place, None).ok()?;
        Some(self.0.entry(common).or_insert(repository).clone())
    }
}

/// The checkouts of runs and of their parts, those that no run has any more among them.
pub(crate) fn of_runs(home: &Home, opened: &mut OpenedRepositories) -> Vec<FoundCheckout> {
    checkouts(home, &home.context.places.runs(), opened)
}

/// The worktrees of projects that were removed.
pub(crate) fn of_removed_projects(home: &Home, opened: &mut OpenedRepositories) -> Vec<FoundCheckout> {
    let pools = removed_pools(home);
    pools.iter().flat_map(|pool| checkouts(home, pool, opened)).collect()
}

fn removed_pools(home: &Home) -> Vec<PathBuf> {
    let all = home.context.places.workspaces();
    let projects: Vec<String> = home.projects.list().iter().map(|project| slug(&project.name)).collect();
    let mut removed: Vec<String> = names(&all).filter(|name| !projects.contains(name)).collect();
    removed.sort();
    removed.into_iter().map(|name| all.join(name)).filter(|pool| pool.is_dir()).collect()
}

fn checkouts(home: &Home, root: &Path, opened: &mut OpenedRepositories) -> Vec<FoundCheckout> {
    // As git knows it.
    let Ok(root) = root.canonicalize() else { return Vec::new() };
    let mut found: Vec<WorkspaceName> = names(&root).filter_map(|name| WorkspaceName::new(&name).ok()).collect();
    found.sort();
    let folders = found.into_iter().filter(|name| root.join(name.as_str()).is_dir());
    folders.map(|name| checkout(home, &root, name, opened)).collect()
}

fn checkout(home: &Home, root: &Path, name: WorkspaceName, opened: &mut OpenedRepositories) -> FoundCheckout {
    let place = root.join(name.as_str());
    let pool = opened.of(&place).and_then(|repository| WorkspacePool::at(repository, root).ok());
    let lent = pool.as_ref().and_then(|pool| pool.lent_to(&name).ok().flatten());
    let owner = lent.map_or_else(|| name.to_string(), |binding| binding.task);
    let run = match home.tasks.run_named(&owner) {
        Ok(Some(seen)) => CheckoutRun::Known(Box::new(seen)),
        Ok(None) => CheckoutRun::Unknown,
        Err(problem) => CheckoutRun::Unread(problem.message),
    };
    FoundCheckout { name, place, pool, owner, run }
}

impl FoundCheckout {
    /// Whether it may go. One that git does not know may not: what is in it cannot be kept.
    pub(crate) fn may_go(&self, home: &Home, rule: RemovalRule) -> bool {
        let is_done = match &self.run {
            CheckoutRun::Known(seen) => match &seen.state.end {
                Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) => true,
                Some(RunConclusion::Failed { .. }) => rule.failed,
                None => false,
            },
            CheckoutRun::Unknown => is_older(&self.place, rule.age) && is_over(home, &self.owner),
            CheckoutRun::Unread(_) => false,
        };
        let has_agent = || home.context.sessions.at_work().iter().any(|(_, folder)| folder.starts_with(&self.place));
        is_done && self.pool.is_some() && !has_agent()
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The folder of every pool, with what can go from it at once.
pub(crate) fn dead(home: &Home) -> Vec<(PathBuf, Vec<PoolLeftover>)> {
    roots(home).into_iter().map(|root| (root.clone(), leftovers(&root))).collect()
}

/// The folders that hold worktrees: those of projects, of projects that were removed, and of runs.
pub(crate) fn roots(home: &Home) -> Vec<PathBuf> {
    let of_projects = home.projects.list().into_iter().map(|project| home.projects.workspaces(&project));
    let all = of_projects.chain(removed_pools(home)).chain([home.context.places.runs()]);
    all.filter(|root| root.is_dir()).collect()
}

/// Folders that were set aside and belong to no kept work: of runs, and of removed projects. Those of projects are among their
/// worktrees.
pub(crate) fn set_aside(home: &Home) -> Vec<PathBuf> {
    let pools = removed_pools(home).into_iter().chain([home.context.places.runs()]);
    let asides = pools.map(|pool| pool.join("aside"));
    let is_it = |name: &String| SET_ASIDE.iter().any(|begins| name.starts_with(begins));
    asides.flat_map(|aside| names(&aside).filter(is_it).map(move |name| aside.join(name)).collect::<Vec<_>>()).collect()
}

/// Empty folders of tasks, and of projects and pools that are no more.
pub(crate) fn empty_folders(home: &Home) -> Vec<PathBuf> {
    let all = home.context.places.home().join("tasks");
    let projects: Vec<PathBuf> = names(&all).map(|name| all.join(name)).collect();
    let tasks = projects.iter().flat_map(|project| names(project).map(|name| project.join(name)).collect::<Vec<_>>());
    // A folder that was just made is about to hold something.
    let folders = tasks.chain(projects.iter().cloned()).chain(removed_pools(home));
    let mut found: Vec<PathBuf> = folders.filter(|folder| is_empty(folder) && is_older(folder, YOUNG)).collect();
    found.sort();
    found
}
