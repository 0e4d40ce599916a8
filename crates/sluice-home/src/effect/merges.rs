//! Merges of tasks. What is to be merged is written down before anything is touched, so that an engine which is killed
//! in between is followed by one that finishes it: the same commit, and then the task is closed. It is forgotten only
//! when it is known that it was finished, or that nothing was merged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{TryLockError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_api::problem::Problem;
use sluice_core::id::TaskId;
use sluice_core::machine::RefusalCode;
use sluice_core::task::state::CommitId;
use sluice_core::task::{TaskAsker, TaskInput};
use sluice_engine::reactor::EventRange;
use sluice_os::file::{Durability, write_atomically};
use sluice_os::forge::Forge;
use sluice_os::git::{Git, GitError, GitErrorFamily, Repository};
use sluice_os::merge::{
    CompletedMerge, MergePush, MergeRecorder, MergeRequest, MergeStrategy, PriorMerge, contains, look, make_good,
};

use super::run_merges;
use crate::home::engine::{ask, refusal};
use crate::home::{Home, MERGING};
use crate::read::tasks::TaskSnapshot;
use crate::settings::projects::git;
use crate::undone::described;

/// How long a merge that could not be finished waits at first until it is tried again.
const PACE: Duration = Duration::from_secs(1);
/// How long at most, and how often it is looked whether there is one.
const LOOK: Duration = Duration::from_secs(60);

/// What a person has asked to be merged, and may. Its keys stay as they are: another version of this program may find
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeIntent {
    /// The commit; none if the branch is gone, and a pull request has merged it.
    pub(crate) commit: Option<String>,
    /// `ff`, `merge`, `squash` or `rebase`; whichever is possible unless given.
    pub(crate) strategy: Option<String>,
    /// Whatever a pull request says.
    pub(crate) local: bool,
    /// Against the verdict, or without what is not committed.
    pub(crate) forced: bool,
    /// The turn by which the task came to where it was then; older engines did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<u32>,
    /// Where the default branch was before; what it holds since then was merged for this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    /// As what it was to be merged, where its own commits were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<String>,
    /// What the person says about it, for TASK.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) feedback: Option<String>,
    /// It is merged, and its remote did not take it: of a run, whoever asks again has it pushed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unpushed: bool,
}

pub(crate) fn strategy(word: Option<&str>) -> Result<MergeStrategy, Problem> {
    match word {
        None => Ok(MergeStrategy::Auto),
        Some("ff") => Ok(MergeStrategy::FastForward),
        Some("merge") => Ok(MergeStrategy::MergeCommit),
        Some("squash") => Ok(MergeStrategy::Squash),
        Some("rebase") => Ok(MergeStrategy::Rebase),
        Some(other) => {
            let hint = "say ff, merge, squash or rebase";
            Err(Problem::bad_request(format!("`{other}` is no way to merge")).hint(hint))
        }
    }
}

/// Merges what was asked for and closes the task. With a base, an engine before this one was killed in the middle of it.
pub(crate) fn carry_out(
    home: &Home,
    seen: &TaskSnapshot,
    mut intent: MergeIntent,
) -> Result<(CompletedMerge, EventRange), Problem> {
    let (_, pool) = home.pool_of(seen)?;
    let about = &seen.state.about;
    let message = match about.summary.trim() {
        "" => format!("Merge branch '{}'", about.branch),
        summary => format!("{summary}\n\nMerge branch '{}' (task {})", about.branch, seen.id),
    };
    // Without `gh` there is no pull request to ask about, unless one is known.
    let forge = Forge::find(&std::env::var_os("PATH").unwrap_or_default(), Git::default()).ok();
    let (begun, made) = (intent.base.take(), intent.made.clone());
    intent.base = Some(match &begun {
        Some(base) => base.clone(),
        None => pool.repository().default_commit().map_err(|error| said(&error, seen))?,
    });
    let request = MergeRequest {
        branch: &about.branch,
        commit: intent.commit.as_deref(),
        strategy: strategy(intent.strategy.as_deref())?,
        local: intent.local,
        message: Some(&message),
        forge: forge.as_ref(),
        pull_request: seen.state.pull_request.as_deref(),
        begun: begun.as_deref().map(|base| PriorMerge { base, made: made.as_deref() }),
    };
    let note = home.merge_note(&seen.id);
    write(&note, &intent).map_err(|error| trouble("write", &note, &error))?;
    let (merged, made) = merge_noted(home, pool.repository(), &request, &note, &intent);
    let intent = MergeIntent { made, ..intent };
    let merged = match merged {
        Ok(merged) => merged,
        Err(error) => return Err(undone(home, pool.repository(), seen, &intent, &error)?),
    };
    let push_failed = match &merged.pushed {
        MergePush::Failed(why) => Some(why.clone()),
        MergePush::NoRemote | MergePush::Done => None,
    };
    let evidence = home.evidence(seen)?;
    let commit = merged.work.clone().map(CommitId);
    let (by, forced, feedback) = (TaskAsker::Person, intent.forced, intent.feedback);
    let input = TaskInput::Merged { by, commit, forced, push_failed, evidence, feedback };
    let recorded = ask(home, &seen.id, input)?;
    forget(&note)?;
    Ok((merged, recorded))
}

/// Merges, and writes into the note as what, before the default branch moves. That is given as well.
pub(super) fn merge_noted(
    home: &Home,
    repository: &Repository,
    request: &MergeRequest<'_>,
    note: &Path,
    intent: &MergeIntent,
) -> (Result<CompletedMerge, GitError>, Option<String>) {
    let made_now = RefCell::new(intent.made.clone());
    let keep = |made: &str| {
        *made_now.borrow_mut() = Some(made.to_owned());
        let file = |source| GitError::File { what: "cannot write", path: note.to_owned(), source };
        write(note, &MergeIntent { made: Some(made.to_owned()), ..intent.clone() }).map_err(file)
    };
    let merged = merge(home, repository, request, &keep);
    (merged, made_now.into_inner())
}

/// Merges, and says whose doing it was. Only what stays on this machine keeps others from comparing.
fn merge(
    home: &Home,
    repository: &Repository,
    request: &MergeRequest<'_>,
    keep: MergeRecorder<'_>,
) -> Result<CompletedMerge, GitError> {
    let ready = look(repository, request)?;
    let made = home.checkouts.change(repository, || ready.merge(keep))?;
    Ok(ready.push(made))
}

/// What is said of a merge that ended with an error. It is forgotten if nothing was merged; else it is finished later.
fn undone(
    home: &Home,
    repository: &Repository,
    seen: &TaskSnapshot,
    intent: &MergeIntent,
    error: &GitError,
) -> Result<Problem, Problem> {
    let (problem, task) = (said(error, seen), &seen.id);
    if let Ok(false) = is_merged(home, repository, intent) {
        return forget(&home.merge_note(task)).map(|()| problem);
    }
    Ok(problem.hint(format!("what was begun is finished by itself; `sluice task merge {task}` tries it at once")))
}

/// Makes good what was left half done, and says whether what was asked for is merged since it was asked for.
pub(super) fn is_merged(home: &Home, repository: &Repository, intent: &MergeIntent) -> Result<bool, GitError> {
    let has = |commit: Option<&str>| contains(repository, intent.commit.as_deref(), intent.made.as_deref(), commit);
    home.checkouts.change(repository, || {
        make_good(repository)?;
        // Where the default branch has not moved nothing was merged, however little of the rest can be read.
        if intent.base.is_some() && repository.branch_commit(repository.default_branch())? == intent.base {
            return Ok(false);
        }
        Ok(has(None)? && !has(intent.base.as_deref())?)
    })
}

/// Finishes what was interrupted, by the end of an engine or by something that passes, until the home is closed.
pub(crate) fn keep_finishing(home: &Weak<Home>) {
    let (mut again, mut told, mut told_runs) = (PACE, BTreeMap::new(), BTreeMap::new());
    loop {
        let Some(strong) = home.upgrade() else { return };
        let (tasks, runs) = (finish_all(&strong, &mut told), run_merges::finish_all(&strong, &mut told_runs));
        let is_done = tasks && runs;
        drop(strong);
        std::thread::park_timeout(if is_done { LOOK } else { again });
        again = if is_done { PACE } else { LOOK.min(again * 2) };
    }
}

/// Finishes what it can, once. Whether nothing is left.
fn finish_all(home: &Home, told: &mut BTreeMap<TaskId, String>) -> bool {
    let open = open(home);
    told.retain(|task, _| open.contains(task));
    for task in open {
        let turn = home.merges.of(task.as_str());
        let _turn = match turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The thread that has it is at work on it.
            Err(TryLockError::WouldBlock) => continue,
        };
        match finish(home, &task) {
            Ok(_) => drop(told.remove(&task)),
            Err(Problem { message: why, .. }) if told.get(&task) != Some(&why) => {
                tracing::warn!(task = task.as_str(), "the merge was interrupted, and is not finished: {why}");
                told.insert(task, why);
            }
            Err(_) => {}
        }
    }
    told.is_empty()
}

/// Finishes the merge of a task that was begun; the caller has its turn. Nothing if none was, or if nothing of it is
/// merged and somebody has moved the task since: what they decided counts.
pub(crate) fn finish(home: &Home, task: &TaskId) -> Result<Option<(CompletedMerge, EventRange)>, Problem> {
    let note = home.merge_note(task);
    let Some(intent) = read(&note)? else { return Ok(None) };
    let Some(seen) = home.tasks.load(task)?.filter(|seen| seen.card.open) else {
        return forget(&note).map(|()| None);
    };
    let (_, pool) = home.pool_of(&seen)?;
    let is_merged = is_merged(home, pool.repository(), &intent).map_err(|error| said(&error, &seen))?;
    if !is_merged && intent.turn.is_some_and(|turn| turn != seen.state.visit.turn) {
        return forget(&note).map(|()| None);
    }
    carry_out(home, &seen, intent).map(Some)
}

/// What a merge that was not made says.
fn said(error: &GitError, seen: &TaskSnapshot) -> Problem {
    let task = &seen.id;
    let place = seen.state.workspace.bound().map_or("WORKTREE", |bound| bound.0.as_str());
    let (code, hint) = match error {
        GitError::NothingToMerge { .. } | GitError::NoBranch { .. } => {
            let close = format!("`sluice task update {task} --status done` closes the task");
            (RefusalCode::NothingToMerge, format!("{close}, `sluice task cancel {task}` gives it up"))
        }
        GitError::Dirty { folder, .. } => {
            (RefusalCode::CheckoutChanged, format!("`git -C {} status` shows it", folder.display()))
        }
        GitError::Conflict { into, .. } => {
            let merge = format!("`git -C {place} merge {into}`");
            let lent = match seen.state.lent_on() {
                Some(_) => {
                    format!("; it was lent on, and `git worktree add {place} {}` makes one", seen.state.about.branch)
                }
                None => String::new(),
            };
            (RefusalCode::MergeConflict, format!("{merge} shows the conflict in the task's workspace{lent}"))
        }
        GitError::NotFastForward { into, .. } => {
            let rebase = format!("`git -C {place} rebase {into}` does it in the task's workspace");
            (RefusalCode::NotFastForward, format!("{rebase}; without `strategy=ff` it is merged as it can be"))
        }
        GitError::Incomplete { .. } => {
            let fsck = "`git fsck` there names everything that is";
            (RefusalCode::NotReady, format!("the files may still be in {place}; {fsck} missing or damaged"))
        }
        GitError::PrOpen { .. } => (RefusalCode::PrOpen, "`local=true` merges here all the same".to_owned()),
        GitError::PrElsewhere { .. } => {
            let create = format!("`sluice task create-pr {task}` opens another");
            (RefusalCode::PrElsewhere, format!("{create}; `local=true` merges here all the same"))
        }
        other => {
            return match other.family() {
                GitErrorFamily::Refused => git(other),
                GitErrorFamily::Unavailable if matches!(other, GitError::Forge { .. }) => {
                    Problem::unavailable(described(other))
                        .hint("`local=true` merges here without asking for pull requests")
                }
                GitErrorFamily::Unavailable => Problem::unavailable(described(other)),
                GitErrorFamily::Fault => Problem::fault(described(other)),
            };
        }
    };
    refusal(code, format!("Merge not allowed: {}", described(error))).hint(hint)
}

fn folder(home: &Home) -> PathBuf {
    home.context.places.home().join(MERGING)
}

/// The tasks whose merge was begun and is not known to have ended.
fn open(home: &Home) -> Vec<TaskId> {
    let entries = fs::read_dir(folder(home)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()).collect()
}

/// Whether the merge of a task was begun and is not known to have ended.
pub(crate) fn is_open(home: &Home, task: &TaskId) -> bool {
    home.merge_note(task).exists()
}

pub(super) fn trouble(what: &str, path: &Path, error: &io::Error) -> Problem {
    let problem = Problem::unavailable(format!("cannot {what} {}: {error}", path.display()));
    problem.hint(match what {
        "read" => "it tells of a merge that was begun; move it away and merge again: what was merged is found",
        _ => "make room on its disk, or make its folder writable, then try again",
    })
}

/// Writes down what is to be merged, durably.
pub(super) fn write(note: &Path, intent: &MergeIntent) -> io::Result<()> {
    note.parent().map_or(Ok(()), fs::create_dir_all)?;
    write_atomically(note, &serde_json::to_vec(intent)?, Durability::Synced)
}

pub(super) fn read(note: &Path) -> Result<Option<MergeIntent>, Problem> {
    match fs::read(note) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| trouble("read", note, &error.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(trouble("read", note, &error)),
    }
}

pub(super) fn forget(note: &Path) -> Result<(), Problem> {
    match fs::remove_file(note) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(trouble("remove", note, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
