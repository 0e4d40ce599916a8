//! The list of what is on disk besides the worktrees of projects: checkouts of runs, what is left over, what is kept where, and
//! how much room all of it takes. It only looks.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sluice_api::problem::Problem;
use sluice_api::workspace::{Kept, Leftover, LeftoverForm, RunScratch, RunWorktree, WorkspaceList};
use sluice_core::machine::Moment;
use sluice_core::run::RunConclusion;
use sluice_os::disk::{FolderSize, SizeBudget};
use sluice_os::workspace::{KeepKind, KeepRef, LeftoverKind, WorkspaceHead, WorkspaceState, is_empty};

use crate::background::locked;
use crate::home::leftovers::{self, CheckoutRun, FoundCheckout, OpenedRepositories};
use crate::home::repositories::{KnownRepository, known};
use crate::home::{Home, room, scratch};
use crate::read::runs::{self, RunSnapshot};
use crate::read::tasks::TaskSnapshot;
use crate::read::{tasks, view_run};
use crate::settings::clock::written;
use crate::settings::projects::git;
use crate::undone::described;

/// So many files are looked at to tell the sizes in one list; what is left then is said to be larger.
const MOST_FILES_SIZED: usize = 1_000_000;

/// The most copies of kept work that are shown with a task.
const KEPT_OF_TASK: usize = 20;

/// git is asked about so many checkouts of runs for one list, and so many at a time.
const MOST_LOOKED_AT: usize = 500;
const LOOKS_AT_ONCE: usize = 8;

const NOT_LOOKED_AT: &str = "it is not looked at: more runs have a checkout than are looked at for one list";
const UNKNOWN: &str = "no task or run is known that has it; `sluice workspace gc` keeps its work and removes it";
const HALF: &str = "its work was kept; `sluice workspace gc` removes the rest";
const SET_ASIDE: &str = "it stood where a worktree was made, and git did not know it; look at it, then remove it";
const LOCK: &str = "its worktree is gone; `sluice workspace gc` removes it";
const EMPTY: &str = "it is empty; `sluice workspace gc` removes it";

/// Fills in what lies beside the pools of projects. With the name of a project, only what is of its repository.
pub(super) fn list(home: &Home, project: Option<&str>, list: &mut WorkspaceList) -> Result<(), Problem> {
    let repositories = known(home);
    let is_asked =
        |it: &&KnownRepository| project.is_none_or(|name| it.project.as_ref().is_some_and(|p| p.name == name));
    for known in repositories.iter().filter(is_asked) {
        let kept = known.repository.kept().map_err(|error| git(&error))?;
        list.kept.extend(kept.iter().map(|kept| shown(known, kept)));
    }
    let mut opened = OpenedRepositories::default();
    let is_of = |checkout: &FoundCheckout| {
        let common = checkout.pool.as_ref().map(|pool| pool.repository().common());
        project.is_none() || repositories.iter().filter(is_asked).any(|it| Some(it.repository.common()) == common)
    };
    let found = leftovers::of_runs(home, &mut opened);
    let found = found.into_iter().chain(leftovers::of_removed_projects(home, &mut opened)).filter(is_of);
    let found: Vec<FoundCheckout> = found.collect();
    for (checkout, seen_by_git) in found.iter().zip(look_at(&found)) {
        if checkout.pool.is_none() && checkout.is_empty() {
            list.leftovers.push(leftover(LeftoverForm::Empty, &checkout.place, None, EMPTY));
            continue;
        }
        match &checkout.run {
            CheckoutRun::Known(seen) => list.runs.push(of_run(home, checkout, seen, seen_by_git)),
            CheckoutRun::Unknown => list.leftovers.push(orphan(checkout, UNKNOWN)),
            CheckoutRun::Unread(why) => list.leftovers.push(orphan(checkout, why)),
        }
    }
    if project.is_none() {
        list.leftovers.extend(dead(home));
        list.scratch = scratch::found(home).into_iter().map(|(run, place)| of_scratch(home, run, &place)).collect();
    }
    list.disk = room::rooms(home);
    Ok(())
}

/// Fills in how much room everything in a list takes.
pub(super) fn measure(home: &Home, list: &mut WorkspaceList) {
    let mut budget = SizeBudget::new(MOST_FILES_SIZED);
    for it in &mut list.workspaces {
        (it.size_bytes, it.size_over_bytes) = told(budget.size(Path::new(&it.path)));
    }
    for it in &mut list.runs {
        (it.size_bytes, it.size_over_bytes) = told(budget.size(Path::new(&it.path)));
    }
    for it in &mut list.scratch {
        (it.size_bytes, it.size_over_bytes) = told(budget.size(Path::new(&it.path)));
    }
    for it in &mut list.leftovers {
        (it.size_bytes, it.size_over_bytes) = told(budget.size(Path::new(&it.path)));
    }
    let in_git: u64 = known(home).iter().filter_map(|it| it.repository.kept_bytes().ok()).sum();
    let asides = leftovers::roots(home).into_iter().map(|root| root.join("aside"));
    let beside: u64 = asides.filter(|aside| aside.exists()).map(|aside| budget.size(&aside).bytes).sum();
    list.kept_bytes = Some(in_git.saturating_add(beside));
}

/// A budget for the sizes of what is removed at once.
pub(super) fn budget() -> SizeBudget {
    SizeBudget::new(MOST_FILES_SIZED)
}

/// A size as the API tells it: the bytes where all was counted, else the least that it can be.
pub(super) fn told(size: FolderSize) -> (Option<u64>, Option<u64>) {
    if size.is_whole { (Some(size.bytes), None) } else { (None, Some(size.bytes)) }
}

/// What git says of a checkout: its state, or why that is not known.
type SeenByGit = (Option<WorkspaceState>, Option<String>);

/// Asks git about the checkouts of runs, several at a time, and of many only about those whose run changed last.
fn look_at(found: &[FoundCheckout]) -> Vec<SeenByGit> {
    let updated = |checkout: &FoundCheckout| match &checkout.run {
        CheckoutRun::Known(seen) => Some(seen.card.updated),
        CheckoutRun::Unknown | CheckoutRun::Unread(_) => None,
    };
    let mut wanted: Vec<usize> = (0..found.len()).filter(|at| updated(&found[*at]).is_some()).collect();
    wanted.sort_by_key(|at| Reverse(updated(&found[*at])));
    wanted.truncate(MOST_LOOKED_AT);
    let seen = Mutex::new(vec![(None, Some(NOT_LOOKED_AT.to_owned())); found.len()]);
    let next = AtomicUsize::new(0);
    let look = || {
        while let Some(at) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let one = one_look(&found[*at]);
            locked(&seen)[*at] = one;
        }
    };
    std::thread::scope(|scope| {
        (1..LOOKS_AT_ONCE.min(wanted.len())).for_each(|_| {
            // A thread that cannot be had leaves its part to the others.
            drop(std::thread::Builder::new().spawn_scoped(scope, look));
        });
        look();
    });
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn one_look(checkout: &FoundCheckout) -> SeenByGit {
    match checkout.pool.as_ref().map(|pool| pool.status(&checkout.name)) {
        Some(Ok(state)) => (state, None),
        Some(Err(error)) => (None, Some(described(&error))),
        None => (None, Some(checkout.why_unkept())),
    }
}

fn of_run(home: &Home, checkout: &FoundCheckout, seen: &RunSnapshot, (state, unseen): SeenByGit) -> RunWorktree {
    let is_part = checkout.name.as_str() != seen.id.as_str();
    let is_keepable = unseen.as_deref().is_none_or(|why| why == NOT_LOOKED_AT);
    RunWorktree {
        run: seen.id.to_string(),
        part: is_part.then(|| checkout.name.to_string()),
        status: view_run::status(seen.state.phase()),
        repository: checkout.pool.as_ref().map_or_else(String::new, |pool| shown_path(pool.repository().folder())),
        path: shown_path(&checkout.place),
        branch: state.as_ref().and_then(branch),
        dirty: state.is_some_and(|state| state.dirty),
        // What cannot be kept does not go by itself.
        goes_at: goes_at(home, seen).filter(|_| is_keepable).map(|at| written(at.0)),
        doubt: unseen,
        size_bytes: None,
        size_over_bytes: None,
    }
}

fn of_scratch(home: &Home, run: String, place: &Path) -> RunScratch {
    let seen = home.tasks.run_named(&run).ok().flatten();
    RunScratch {
        status: seen.as_ref().map(|seen| view_run::status(seen.state.phase())),
        path: shown_path(place),
        goes_at: seen.as_ref().and_then(|seen| goes_at(home, seen)).map(|at| written(at.0)),
        run,
        size_bytes: None,
        size_over_bytes: None,
    }
}

/// When the folder of a run goes by itself: some time after the run has ended; of one that failed, when it is forgotten.
fn goes_at(home: &Home, seen: &RunSnapshot) -> Option<Moment> {
    let config = home.context.config();
    let after = match seen.state.end.as_ref()? {
        RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. } => config.workspaces.keep,
        RunConclusion::Failed { .. } => config.retention.keep()?,
    };
    Some(Moment(seen.card.updated).after(after))
}

/// The worktrees of a project whose repository cannot be opened, as far as there are any.
pub(super) fn unopened(root: &Path, problem: &Problem) -> Option<Leftover> {
    let note = format!("its repository cannot be opened: {}", problem.message);
    (root.is_dir() && !is_empty(root)).then(|| leftover(LeftoverForm::Checkout, root, None, &note))
}

pub(super) fn branch(state: &WorkspaceState) -> Option<String> {
    match &state.head {
        WorkspaceHead::Branch(branch) | WorkspaceHead::Rebasing(branch) => Some(branch.clone()),
        WorkspaceHead::Detached => None,
    }
}

fn orphan(checkout: &FoundCheckout, note: &str) -> Leftover {
    let note = if checkout.pool.is_some() { note.to_owned() } else { checkout.why_unkept() };
    leftover(LeftoverForm::Checkout, &checkout.place, Some(checkout.owner.clone()), &note)
}

fn dead(home: &Home) -> Vec<Leftover> {
    let in_pools = leftovers::dead(home).into_iter().flat_map(|(_, found)| found);
    let in_pools = in_pools.map(|it| {
        let (form, note) = form(it.kind);
        leftover(form, &it.path, None, note)
    });
    let aside = leftovers::set_aside(home);
    let aside = aside.iter().map(|path| leftover(LeftoverForm::Aside, path, None, SET_ASIDE));
    let empty = leftovers::empty_folders(home);
    let empty = empty.iter().map(|path| leftover(LeftoverForm::Empty, path, None, EMPTY));
    in_pools.chain(aside).chain(empty).collect()
}

pub(super) fn form(kind: LeftoverKind) -> (LeftoverForm, &'static str) {
    match kind {
        LeftoverKind::Removed => (LeftoverForm::Removed, HALF),
        LeftoverKind::Lock => (LeftoverForm::Lock, LOCK),
        LeftoverKind::Empty => (LeftoverForm::Empty, EMPTY),
    }
}

fn leftover(kind: LeftoverForm, path: &Path, owner: Option<String>, note: &str) -> Leftover {
    let note = note.to_owned();
    Leftover { kind, path: shown_path(path), owner, note, size_bytes: None, size_over_bytes: None }
}

fn shown_path(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn shown(known: &KnownRepository, kept: &KeepRef) -> Kept {
    let since = kept.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Kept {
        project: known.project.as_ref().map_or_else(String::new, |project| project.name.clone()),
        task: kept.task.clone(),
        repository: shown_path(known.repository.folder()),
        number: kept.number,
        reference: kept.reference.clone(),
        what: what(&kept.what),
        at: written(i64::try_from(since.as_millis()).unwrap_or(0)),
    }
}

/// What is kept, in words.
pub(super) fn what(kinds: &[KeepKind]) -> String {
    let word = |kind: &KeepKind| match kind {
        KeepKind::Staged => "staged changes",
        KeepKind::Unstaged => "changes",
        KeepKind::Untracked => "new files",
        KeepKind::Conflict => "conflicts",
        KeepKind::Commits => "commits",
        KeepKind::Repository => "a repository inside",
        KeepKind::Branch => "a branch",
        KeepKind::Ignored => "ignored files",
    };
    kinds.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What is kept in every repository that can be read, the newest first.
pub(super) fn all_kept(home: &Home) -> Vec<Kept> {
    let of = |known: &KnownRepository| -> Vec<Kept> {
        let kept = known.repository.kept().unwrap_or_default();
        kept.iter().map(|kept| shown(known, kept)).collect()
    };
    let mut all: Vec<Kept> = known(home).iter().flat_map(of).collect();
    all.sort_by(|one, other| (&other.at, other.number).cmp(&(&one.at, one.number)));
    all
}

/// The kept work of one task, the newest first; nothing where its repository cannot be read.
pub(super) fn kept_of(home: &Home, seen: &TaskSnapshot) -> Vec<Kept> {
    let Ok((project, pool)) = home.pool_of(seen) else { return Vec::new() };
    let repository = pool.repository().clone();
    let kept = repository.kept().unwrap_or_default();
    let known = KnownRepository { project: Some(project), repository, pools: Vec::new() };
    let of_task = kept.iter().filter(|it| it.task == seen.id.as_str());
    let mut found: Vec<Kept> = of_task.map(|kept| shown(&known, kept)).collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.number));
    found.truncate(KEPT_OF_TASK);
    found
}

/// The kept work of a task or run, by the beginning of its id: that with this number, else the newest.
pub(super) fn find_kept(
    home: &Home,
    begins: &str,
    number: Option<u32>,
) -> Result<Option<(KnownRepository, KeepRef)>, Problem> {
    let mut all = Vec::new();
    for known in known(home) {
        let kept = known.repository.kept().map_err(|error| git(&error))?;
        all.push((known, kept));
    }
    let ids = all.iter().flat_map(|(_, kept)| kept.iter().map(|it| it.task.clone()));
    let Some(id) = owner_of(home, ids.collect(), begins)? else { return Ok(None) };
    let is_it = |it: &KeepRef| it.task == id && number.is_none_or(|number| it.number == number);
    let found = all.into_iter().flat_map(|(known, kept)| {
        let newest = kept.into_iter().filter(is_it).max_by_key(|it| (it.time, it.number));
        newest.map(|newest| (known, newest))
    });
    Ok(found.max_by_key(|(_, kept)| (kept.time, kept.number)))
}

/// The task or run that is meant by the beginning of its id, of those that something is kept for and those that the store
/// knows. Work of another is not given for what could be either.
fn owner_of(home: &Home, mut ids: BTreeSet<String>, begins: &str) -> Result<Option<String>, Problem> {
    if begins.is_empty() {
        return Err(Problem::bad_request("the task or run is not named").hint("`sluice workspace list` shows the ids"));
    }
    if ids.contains(begins) || home.tasks.run_named(begins)?.is_some() || home.tasks.named(begins)?.is_some() {
        return Ok(Some(begins.to_owned()));
    }
    let known = [home.tasks.only(runs::KIND, begins)?, home.tasks.only(tasks::KIND, begins)?];
    ids.retain(|id| id.starts_with(begins));
    ids.extend(known.into_iter().flatten());
    match ids.len() {
        0 | 1 => Ok(ids.pop_first()),
        _ => {
            let several = ids.into_iter().collect::<Vec<_>>().join(", ");
            Err(Problem::bad_request(format!("`{begins}` could be any of: {several}")).hint("say more of it"))
        }
    }
}
