//! Merges of the branches of runs. As with tasks, what is to be merged is written down before anything is touched, so that an
//! engine which is killed in between is followed by one that finishes it. A run is not closed by it: there is nothing to record.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::TryLockError;

use sluice_api::problem::Problem;
use sluice_core::id::RunId;
use sluice_core::machine::RefusalCode;
use sluice_os::forge::Forge;
use sluice_os::git::{Git, GitError, Repository};
use sluice_os::merge::{CompletedMerge, MergePush, MergeRequest, PriorMerge};
use sluice_worker::names::run_branch;

use super::merges::{MergeIntent, forget, is_merged, merge_noted, read, strategy, trouble, write};
use crate::home::engine::refusal;
use crate::home::worktrees::{NO_WORKSPACE, pool_of};
use crate::home::{Home, MERGING};
use crate::read::runs::RunSnapshot;
use crate::settings::projects::git;
use crate::undone::described;

/// What a refusal to merge begins with.
pub(crate) const REFUSED: &str = "Merge not allowed: ";

fn folder(home: &Home) -> PathBuf {
    home.context.places.home().join(MERGING).join("runs")
}

fn note_of(home: &Home, run: &RunId) -> PathBuf {
    folder(home).join(format!("{run}.json"))
}

/// Merges what was asked for; the caller has its turn. With a base, it was begun before.
pub(crate) fn carry_out(
    home: &Home,
    seen: &RunSnapshot,
    repository: &Repository,
    mut intent: MergeIntent,
) -> Result<CompletedMerge, Problem> {
    let (note, branch) = (note_of(home, &seen.id), run_branch(&seen.id));
    let message = format!("Merge branch '{branch}'\n\nRun {} of {}\n", seen.id, seen.plan.recipe.name);
    let forge = Forge::find(&std::env::var_os("PATH").unwrap_or_default(), Git::default()).ok();
    let begun = intent.base.clone();
    if begun.is_none() {
        intent.base = Some(repository.default_commit().map_err(|error| not_merged(&error, seen, &branch))?);
    }
    let request = MergeRequest {
        branch: &branch,
        commit: intent.commit.as_deref(),
        strategy: strategy(intent.strategy.as_deref())?,
        local: intent.local,
        message: Some(&message),
        forge: forge.as_ref(),
        begun: begun.as_deref().map(|base| PriorMerge { base, made: intent.made.as_deref() }),
        ..MergeRequest::default()
    };
    write(&note, &intent).map_err(|error| trouble("write", &note, &error))?;
    let (merged, made) = merge_noted(home, repository, &request, &note, &intent);
    let intent = MergeIntent { made, ..intent.clone() };
    let merged = match merged {
        Ok(merged) => merged,
        Err(error) => {
            let problem = not_merged(&error, seen, &branch);
            return Err(match is_merged(home, repository, &intent) {
                Ok(false) => forget(&note).map_or_else(|trouble| trouble, |()| problem),
                Ok(true) | Err(_) => {
                    let way = format!("`sluice run merge {}` tries it at once", seen.id);
                    problem.hint(format!("what was begun is finished by itself; {way}"))
                }
            });
        }
    };
    match merged.pushed {
        MergePush::NoRemote | MergePush::Done => forget(&note)?,
        MergePush::Failed(_) => {
            let unpushed = MergeIntent { unpushed: true, ..intent };
            write(&note, &unpushed).map_err(|error| trouble("write", &note, &error))?;
        }
    }
    Ok(merged)
}

/// Finishes the merge of a run that was begun; the caller has its turn. What its remote did not take is pushed again when a
/// person asks for it.
pub(crate) fn finish(home: &Home, run: &RunId, is_asked: bool) -> Result<Option<CompletedMerge>, Problem> {
    let note = note_of(home, run);
    let Some(intent) = read(&note)?.filter(|intent| is_asked || !intent.unpushed) else { return Ok(None) };
    let Some(seen) = home.tasks.load_run(run)? else { return forget(&note).map(|()| None) };
    let pool = pool_of(home, &seen.state.given).map_err(|undone| undone.refusal(NO_WORKSPACE))?;
    carry_out(home, &seen, pool.repository(), intent).map(Some)
}

/// Finishes what it can, once. Whether nothing is left.
pub(super) fn finish_all(home: &Home, told: &mut BTreeMap<RunId, String>) -> bool {
    let entries = fs::read_dir(folder(home)).into_iter().flatten().flatten();
    let open: Vec<RunId> =
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()).collect();
    told.retain(|run, _| open.contains(run));
    for run in open {
        let turn = home.merges.of(run.as_str());
        let _turn = match turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The thread that has it is at work on it.
            Err(TryLockError::WouldBlock) => continue,
        };
        match finish(home, &run, false) {
            Ok(_) => drop(told.remove(&run)),
            Err(Problem { message: why, .. }) if told.get(&run) != Some(&why) => {
                tracing::warn!(run = run.as_str(), "the merge was interrupted, and is not finished: {why}");
                told.insert(run, why);
            }
            Err(_) => {}
        }
    }
    told.is_empty()
}

/// What a merge that was not made says.
fn not_merged(error: &GitError, seen: &RunSnapshot, branch: &str) -> Problem {
    let folder = &seen.state.given.workspace;
    let (code, hint) = match error {
        GitError::NothingToMerge { .. } | GitError::NoBranch { .. } => {
            (RefusalCode::NothingToMerge, format!("`sluice run diff {}` shows what it has changed", seen.id))
        }
        GitError::Dirty { folder, .. } => {
            (RefusalCode::CheckoutChanged, format!("`git -C {} status` shows it", folder.display()))
        }
        GitError::Conflict { into, .. } => {
            let way = match Path::new(folder).exists() {
                true => format!("`git -C {folder} merge {into}` shows the conflict"),
                false => format!("`git worktree add {folder} {branch}` makes its worktree again: merge `{into}` there"),
            };
            (RefusalCode::MergeConflict, way)
        }
        GitError::NotFastForward { .. } => {
            (RefusalCode::NotFastForward, "without `strategy=ff` it is merged as it can be".to_owned())
        }
        GitError::PrOpen { .. } => (RefusalCode::PrOpen, "`local=true` merges here all the same".to_owned()),
        GitError::PrElsewhere { .. } => (RefusalCode::PrElsewhere, "`local=true` merges here all the same".to_owned()),
        other => return git(other),
    };
    refusal(code, format!("{REFUSED}{}", described(error))).hint(hint)
}
