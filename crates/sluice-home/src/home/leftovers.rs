//! What is in the folders of worktrees besides those lent to tasks: the checkouts of runs and of their parts, and what removals,
//! crashes and removed projects left. Whether a checkout may go is decided here, for a person who asks and for retention alike.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_core::id::RunId;
use sluice_core::run::RunConclusion;
use sluice_engine::run_actor::PERFORM;
use sluice_os::git::{Repository, slug};
use sluice_os::remote_worktree::own_branch;
use sluice_os::workspace::{PoolLeftover, WorkspaceName, WorkspacePool, is_empty, leftovers};
use sluice_worker::names::run_of_branch;

use crate::home::Home;
use crate::home::reservations::is_over;
use crate::home::worktrees::{YOUNG, is_older};
use crate::read::runs::{RunSnapshot, stream};
use crate::read::tasks::unread;
use crate::settings::projects::open;

/// What stands aside in a pool and belongs to no keep begins with one of these.
const SET_ASIDE: [&str; 2] = ["lost-", "git-"];

pub(crate) const NO_GIT: &str = "git does not know it, so that its content cannot be kept; look at it, then remove it";

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
        let common = admin_of(place)?.ancestors().nth(2)?.to_owned();
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
    // What cannot be looked at is not taken for unknown.
    let pool = pool.filter(|pool| pool.knows(&name).unwrap_or(true));
    let lent = pool.as_ref().and_then(|pool| pool.lent_to(&name).ok().flatten());
    let of_part = || run_of_branch(&own_branch(name.as_str())).map(str::to_owned);
    let owner = lent.map(|binding| binding.task).or_else(of_part).unwrap_or_else(|| name.to_string());
    let run = CheckoutRun::of(home, &owner);
    FoundCheckout { name, place, pool, owner, run }
}

impl CheckoutRun {
    fn of(home: &Home, owner: &str) -> CheckoutRun {
        match home.tasks.run_named(owner) {
            Ok(Some(seen)) => CheckoutRun::Known(Box::new(seen)),
            Ok(None) => CheckoutRun::Unknown,
            Err(problem) => CheckoutRun::Unread(problem.message),
        }
    }
}

/// What becomes of a checkout when what may go is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckoutFate {
    Goes,
    /// Its task or run has it.
    Needed,
    /// It would go, but not yet, and this is why.
    Later(String),
    /// It cannot go, and this is why.
    Stuck(String),
}

impl FoundCheckout {
    /// Whether it may go.
    pub(crate) fn may_go(&self, home: &Home, rule: RemovalRule) -> bool {
        self.fate(home, rule) == CheckoutFate::Goes
    }

    /// Whether it may go now. One that git does not know may not: what is in it cannot be kept.
    pub(crate) fn fate(&self, home: &Home, rule: RemovalRule) -> CheckoutFate {
        match fate_of(home, &self.owner, &self.place, rule) {
            CheckoutFate::Goes if self.pool.is_none() && !self.is_empty() => CheckoutFate::Stuck(self.why_unkept()),
            fate => fate,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.place).is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Why the content of a folder cannot be kept that is in no pool.
    pub(crate) fn why_unkept(&self) -> String {
        match admin_of(&self.place)
            .filter(|admin| !admin.exists())
            .as_deref()
            .and_then(|admin| admin.ancestors().nth(3))
        {
            Some(repository) if !repository.join(".git").exists() => format!(
                "its repository is not at {} any more, so that its content cannot be kept; put the repository back, or look at \
                 the folder and remove it",
                repository.display()
            ),
            Some(_) | None => NO_GIT.to_owned(),
        }
    }
}

/// Whether a folder may go, as its task or run stands now: a run that failed may have been retried since the folder was found.
pub(crate) fn fate_of(home: &Home, owner: &str, place: &Path, rule: RemovalRule) -> CheckoutFate {
    match CheckoutRun::of(home, owner) {
        CheckoutRun::Known(seen) => match &seen.state.end {
            Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) => {}
            Some(RunConclusion::Failed { .. }) if rule.failed => {}
            Some(RunConclusion::Failed { .. }) | None => return CheckoutFate::Needed,
        },
        CheckoutRun::Unknown if !is_over(home, owner) => return CheckoutFate::Needed,
        CheckoutRun::Unknown if !is_older(place, rule.age) && !is_empty(place) => {
            let minutes = rule.age.as_secs() / 60;
            return CheckoutFate::Later(format!(
                "no task or run is known that has it, and one may just be starting there; it goes when it has not changed for \
                 {minutes} minutes"
            ));
        }
        CheckoutRun::Unknown => {}
        CheckoutRun::Unread(why) => return CheckoutFate::Stuck(why),
    }
    if home.context.sessions.at_work().iter().any(|(_, folder)| folder.starts_with(place)) {
        return CheckoutFate::Later("an agent works in it".into());
    }
    match owner.parse().map_or(Ok(false), |run| is_at_work(home, &run)) {
        Ok(false) => CheckoutFate::Goes,
        Ok(true) => CheckoutFate::Later("what its run has started there is not over".into()),
        Err(why) => CheckoutFate::Stuck(why),
    }
}

/// Whether a part of a step of a run is being carried out, though the run may have ended.
fn is_at_work(home: &Home, run: &RunId) -> Result<bool, String> {
    let stored = home.tasks.loader().reader().load(&stream(run)).map_err(unread).map_err(|problem| problem.message)?;
    Ok(stored.is_some_and(|stored| stored.effects.iter().any(|open| open.effect.kind == PERFORM)))
}

/// What git keeps for a worktree, as the worktree says: `REPOSITORY/.git/worktrees/NAME`.
fn admin_of(place: &Path) -> Option<PathBuf> {
    let link = std::fs::read_to_string(place.join(".git")).ok()?;
    Some(PathBuf::from(link.trim_end().strip_prefix("gitdir: ")?))
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
