//! Merging the branch of a run, and deleting a run. What a run has changed is no task's: there is nothing to close.

use std::path::Path;

use sluice_api::diff::{MergeRun, RunDeleteAnswer, RunMergeAnswer};
use sluice_api::event::EventShown;
use sluice_api::problem::Problem;
use sluice_core::event_name::EventName;
use sluice_core::machine::RefusalCode;
use sluice_core::run::RunConclusion;
use sluice_engine::actor::{ActorInput, Remark};
use sluice_os::git::Repository;
use sluice_os::merge::{CompletedMerge, MergePush};
use sluice_worker::names::run_branch;

use super::merge::how_merged;
use super::{Requester, Service};
use crate::background::locked;
use crate::effect::merges::{self, MergeIntent};
use crate::effect::run_merges::{self, REFUSED};
use crate::home::engine::{refusal, say_to};
use crate::home::leftovers::{self, OpenedRepositories, RemovalRule};
use crate::home::worktrees::{self, pool_of};
use crate::read::runs::{RunSnapshot, stream};
use crate::read::view_run;
use crate::settings::projects::git;
use crate::undone::described;

impl Service {
    /// Merges the branch of a run that has ended into the default branch. Asked again, it finds what was merged.
    pub fn merge_run(&self, who: &Requester, id: &str, wanted: &MergeRun) -> Result<RunMergeAnswer, Problem> {
        who.must_be_person("merging")?;
        merges::strategy(wanted.strategy.as_deref())?;
        let seen = self.run(id)?;
        let turn = self.home.merges.of(seen.id.as_str());
        let _turn = locked(&turn);
        must_have_ended(&seen, wanted.force)?;
        let repository = self.repository_of(&seen)?;
        // What was begun before is finished first: an engine was killed, or the remote did not take it.
        if let Some(merged) = run_merges::finish(&self.home, &seen.id, true)? {
            return self.merged_run(&seen, merged);
        }
        if !wanted.force {
            must_be_committed(&seen, &repository)?;
        }
        let intent = MergeIntent {
            commit: repository.branch_commit(&run_branch(&seen.id)).map_err(|error| git(&error))?,
            strategy: wanted.strategy.clone(),
            local: wanted.local,
            forced: wanted.force,
            turn: None,
            base: None,
            made: None,
            feedback: None,
            unpushed: false,
        };
        let merged = run_merges::carry_out(&self.home, &seen, &repository, intent)?;
        self.merged_run(&seen, merged)
    }

    /// The answer to a merge that stands.
    fn merged_run(&self, seen: &RunSnapshot, merged: CompletedMerge) -> Result<RunMergeAnswer, Problem> {
        let mut notes = vec![how_merged(&merged)];
        match &merged.pushed {
            MergePush::Failed(why) => {
                notes.push(format!("merged, not pushed: {why}"));
                notes.push(format!("`sluice run merge {}` pushes it again", seen.id));
            }
            MergePush::NoRemote | MergePush::Done => {}
        }
        notes.extend(merged.notes);
        self.remember_merge(seen, &run_branch(&seen.id), &merged.commit)?;
        Ok(RunMergeAnswer { run: self.shown_run(seen.id.as_str())?, commit: merged.commit, notes })
    }
}

impl Service {
    /// Writes down that the branch of a run was merged, unless the history of the run ends with that.
    fn remember_merge(&self, seen: &RunSnapshot, branch: &str, commit: &str) -> Result<(), Problem> {
        let last = self.run_events(&seen.id, seen.version.saturating_sub(1), 1)?;
        let is_known = |event: &EventShown| {
            EventName::read(&event.kind) == Some(EventName::RunMerged) && event.data["commit"] == commit
        };
        if last.iter().any(|(_, event)| is_known(event)) {
            return Ok(());
        }
        let remark = Remark::Merged { branch: branch.to_owned(), commit: commit.to_owned() };
        say_to(&self.home, stream(&seen.id), seen.id.as_str(), ActorInput::Remark(remark)).map(drop)
    }

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
        let run = view_run::run(&seen);
        say_to(&self.home, stream(&seen.id), seen.id.as_str(), ActorInput::Remark(Remark::Deleted))?;
        Ok(RunDeleteAnswer { run, notes: self.clear_away(&seen) })
    }

    /// Removes the checkouts of a run that was deleted, and its branch unless that holds work. What would be lost is kept first.
    /// What cannot be removed now goes when it is old, and the answer says so.
    fn clear_away(&self, seen: &RunSnapshot) -> Vec<String> {
        let (mut notes, rule) = (Vec::new(), RemovalRule::now(true));
        let found = leftovers::of_runs(&self.home, &mut OpenedRepositories::default());
        for checkout in found.iter().filter(|checkout| checkout.owner == seen.id.as_str()) {
            let Some(pool) = &checkout.pool else { continue };
            let may_go = || checkout.may_go(&self.home, rule);
            if let Err(undone) = worktrees::remove(&self.home, pool, &checkout.name, &checkout.owner, may_go) {
                notes.push(format!("{} stays: {undone}", checkout.place.display()));
            }
        }
        let Ok(pool) = pool_of(&self.home, &seen.state.given) else { return notes };
        let branch = run_branch(&seen.id);
        match pool.repository().unmerged(&branch) {
            Ok(0) => {
                let deleted = pool.delete_branch(&branch, seen.id.as_str());
                notes.extend(deleted.err().map(|error| format!("`{branch}` stays: {}", described(&error))));
            }
            Ok(1) => notes.push(format!("1 commit on `{branch}` is not merged; it stays there")),
            Ok(count) => notes.push(format!("{count} commits on `{branch}` are not merged; they stay there")),
            // There is no such branch.
            Err(_) => {}
        }
        notes
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
