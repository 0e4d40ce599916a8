//! Merging the branch of a run, and deleting a run. What a run has changed is no task's: there is nothing to close.

use std::path::Path;

use sluice_api::diff::{MergeRun, RunDeleteAnswer, RunMergeAnswer};
use sluice_api::problem::Problem;
use sluice_core::machine::RefusalCode;
use sluice_core::run::RunConclusion;
use sluice_engine::actor::{ActorInput, Remark};
use sluice_os::forge::Forge;
use sluice_os::git::{Git, GitError, Repository};
use sluice_os::merge::{MergePush, MergeRequest};
use sluice_worker::names::run_branch;

use super::merge::how_merged;
use super::{Requester, Service};
use crate::background::locked;
use crate::effect::merges;
use crate::home::engine::{refusal, say_to};
use crate::read::runs::{RunSnapshot, stream};
use crate::read::view_run;
use crate::settings::projects::git;
use crate::undone::described;

const REFUSED: &str = "Merge not allowed: ";

impl Service {
    /// Merges the branch of a run that has ended into the default branch. Asked again, it finds what was merged.
    pub fn merge_run(&self, who: &Requester, id: &str, wanted: &MergeRun) -> Result<RunMergeAnswer, Problem> {
        who.must_be_person("merging")?;
        let strategy = merges::strategy(wanted.strategy.as_deref())?;
        let seen = self.run(id)?;
        let turn = self.home.merges.of(seen.id.as_str());
        let _turn = locked(&turn);
        must_have_ended(&seen, wanted.force)?;
        let repository = self.repository_of(&seen)?;
        let branch = run_branch(&seen.id);
        if !wanted.force {
            must_be_committed(&seen, &repository)?;
        }
        let recipe = &seen.plan.recipe.name;
        let message = format!("Merge branch '{branch}'\n\nRun {} of {recipe}\n", seen.id);
        let forge = Forge::find(&std::env::var_os("PATH").unwrap_or_default(), Git::default()).ok();
        let request = MergeRequest {
            branch: &branch,
            strategy,
            local: wanted.local,
            message: Some(&message),
            forge: forge.as_ref(),
            ..MergeRequest::default()
        };
        let merged = merges::merge(&self.home, &repository, &request, &|_| Ok(()))
            .map_err(|error| not_merged(&error, &seen, &branch))?;
        let mut notes = vec![how_merged(&merged)];
        match &merged.pushed {
            MergePush::Failed(why) => notes.push(format!("merged, not pushed: {why}")),
            MergePush::NoRemote | MergePush::Done => {}
        }
        notes.extend(merged.notes);
        Ok(RunMergeAnswer { run: self.shown_run(seen.id.as_str())?, commit: merged.commit, notes })
    }
}

impl Service {
    /// Cancels a run if it is open, and removes it from every list. Its branch stays where it holds work.
    pub fn delete_run(&self, who: &Requester, id: &str) -> Result<RunDeleteAnswer, Problem> {
        who.must_be_person("deleting a run")?;
        let mut seen = self.run(id)?;
        if seen.state.end.is_none() || seen.next_turn.is_some() {
            self.cancel_run(who, seen.id.as_str(), "it was deleted".to_owned())?;
            seen = self.run(seen.id.as_str())?;
        }
        if seen.state.end.is_none() {
            let message = format!("run {} is cancelled, and has not settled yet", seen.id);
            return Err(refusal(RefusalCode::NotReady, message).hint("delete it again in a moment"));
        }
        let branch = run_branch(&seen.id);
        let unmerged = self.repository_of(&seen).ok().and_then(|repository| repository.unmerged(&branch).ok());
        let notes = match unmerged.unwrap_or_default() {
            0 => Vec::new(),
            1 => vec![format!("1 commit on `{branch}` is not merged; it stays there")],
            count => vec![format!("{count} commits on `{branch}` are not merged; they stay there")],
        };
        let run = view_run::run(&seen);
        say_to(&self.home, stream(&seen.id), seen.id.as_str(), ActorInput::Remark(Remark::Deleted))?;
        Ok(RunDeleteAnswer { run, notes })
    }
}

/// What is still changing is not merged; what failed or was cancelled only with force.
fn must_have_ended(seen: &RunSnapshot, force: bool) -> Result<(), Problem> {
    let (why, hint) = match &seen.state.end {
        Some(RunConclusion::Completed { .. }) => return Ok(()),
        Some(RunConclusion::Failed { .. } | RunConclusion::Cancelled { .. }) if force => return Ok(()),
        Some(RunConclusion::Failed { .. }) => ("has failed", "`force=true` merges what it has done".to_owned()),
        Some(RunConclusion::Cancelled { .. }) => ("was cancelled", "`force=true` merges what it has done".to_owned()),
        None => ("has not ended", format!("`sluice run follow {}` waits for its end", seen.id)),
    };
    Err(refusal(RefusalCode::NotReady, format!("{REFUSED}run {} {why}", seen.id)).hint(hint))
}

fn must_be_committed(seen: &RunSnapshot, repository: &Repository) -> Result<(), Problem> {
    let folder = Path::new(&seen.state.given.workspace);
    if !folder.join(".git").exists() {
        return Ok(());
    }
    let (_, is_dirty) = repository.standing(folder).map_err(|error| git(&error))?;
    if !is_dirty {
        return Ok(());
    }
    let place = folder.display();
    let message = format!("{REFUSED}the worktree of run {} holds changes that no commit has", seen.id);
    let hint = format!("commit them in {place}; `force=true` merges without them, and they are kept");
    Err(refusal(RefusalCode::Uncommitted, message).hint(hint))
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
