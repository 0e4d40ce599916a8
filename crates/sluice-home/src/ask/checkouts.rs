//! The list of what is on disk besides the worktrees of projects: checkouts of runs, what is left over, what is kept where, and
//! how much room all of it takes. It only looks.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use sluice_api::problem::Problem;
use sluice_api::workspace::{Kept, Leftover, LeftoverForm, RunScratch, RunWorktree, WorkspaceList};
use sluice_core::machine::Moment;
use sluice_core::run::RunConclusion;
use sluice_os::disk::{FolderSize, SizeBudget};
use sluice_os::workspace::{KeepKind, KeepRef, LeftoverKind, WorkspaceHead, WorkspaceState, is_empty};

use crate::home::leftovers::{self, CheckoutRun, FoundCheckout, OpenedRepositories};
use crate::home::repositories::{KnownRepository, known};
use crate::home::{Home, room, scratch};
use crate::read::runs::{self, RunSnapshot};
use crate::read::{tasks, view_run};
use crate::settings::clock::written;
use crate::settings::projects::git;
use crate::undone::described;

/// So many files are looked at to tell the sizes in one list; what is left then is said to be larger.
const MOST_FILES_SIZED: usize = 1_000_000;

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
    for checkout in found.into_iter().chain(leftovers::of_removed_projects(home, &mut opened)).filter(is_of) {
        if checkout.pool.is_none() && checkout.is_empty() {
            list.leftovers.push(leftover(LeftoverForm::Empty, &checkout.place, None, EMPTY));
            continue;
        }
        match &checkout.run {
            CheckoutRun::Known(seen) => list.runs.push(of_run(home, &checkout, seen)),
            CheckoutRun::Unknown => list.leftovers.push(orphan(&checkout, UNKNOWN)),
            CheckoutRun::Unread(why) => list.leftovers.push(orphan(&checkout, why)),
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

fn of_run(home: &Home, checkout: &FoundCheckout, seen: &RunSnapshot) -> RunWorktree {
    let (state, unseen) = match checkout.pool.as_ref().map(|pool| pool.status(&checkout.name)) {
        Some(Ok(state)) => (state, None),
        Some(Err(error)) => (None, Some(described(&error))),
        None => (None, Some(checkout.why_unkept())),
    };
    let is_part = checkout.name.as_str() != seen.id.as_str();
    RunWorktree {
        run: seen.id.to_string(),
        part: is_part.then(|| checkout.name.to_string()),
        status: view_run::status(seen.state.phase()),
        repository: checkout.pool.as_ref().map_or_else(String::new, |pool| shown_path(pool.repository().folder())),
        path: shown_path(&checkout.place),
        branch: state.as_ref().and_then(branch),
        dirty: state.is_some_and(|state| state.dirty),
        // What cannot be kept does not go by itself.
        goes_at: goes_at(home, seen).filter(|_| unseen.is_none()).map(|at| written(at.0)),
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

fn shown(known: &KnownRepository, kept: &KeepRef) -> Kept {
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
