//! Merging a task's branch, and pull requests for it.

use std::path::Path;

use sluice_api::problem::Problem;
use sluice_api::task::{MergeTask, TaskAnswer};
use sluice_core::id::TaskId;
use sluice_core::machine::RefusalCode;
use sluice_core::task::input::TaskUpdate;
use sluice_core::task::state::CommitId;
use sluice_core::task::{Evidence, TaskAsker, TaskInput};
use sluice_engine::reactor::EventRange;
use sluice_os::git::GitError;
use sluice_os::merge::{CompletedMerge, MergeMethod, MergePush, left};
use sluice_os::workspace::BoundWorktree;

use super::change::nothing;
use super::{Requester, Service};
use crate::background::locked;
use crate::effect;
use crate::effect::merges::{self, MergeIntent};
use crate::home::engine::{ask, refusal};
use crate::read::tasks::TaskSnapshot;
use crate::undone::described;

impl Service {
    /// Merges the commit of a task's branch that was judged into the default branch, and closes the task. What is to
    /// be merged is written down first: an engine that is killed meanwhile is followed by one that finishes it.
    pub fn merge(&self, who: &Requester, id: &str, wanted: &MergeTask) -> Result<TaskAnswer, Problem> {
        self.merge_saying(who, id, wanted, None)
    }

    /// The same, with words of the person that TASK.md keeps.
    pub(super) fn merge_saying(
        &self,
        who: &Requester,
        id: &str,
        wanted: &MergeTask,
        feedback: Option<String>,
    ) -> Result<TaskAnswer, Problem> {
        who.must_be_person("merging")?;
        let seen = self.home.tasks.find(id)?;
        merges::strategy(wanted.strategy.as_deref())?;
        let was_begun = merges::is_open(&self.home, &seen.id);
        let turn = self.home.merges.of(seen.id.as_str());
        let _turn = locked(&turn);
        if was_begun {
            let finished = merges::finish(&self.home, &seen.id)?;
            if let Some((merged, recorded)) = finished {
                return self.told(who, &seen.id, merged, recorded);
            }
            let now = self.home.tasks.find(seen.id.as_str())?;
            if now.state.merged.is_some() {
                return self.settled(who, &seen.id, nothing(&now));
            }
        }
        let seen = self.home.tasks.find(seen.id.as_str())?;
        let by = who.to(&seen.id);
        let mut evidence = self.home.evidence(&seen)?;
        let before = evidence.work.standing().map(|standing| standing.commit.clone());
        if wanted.commit {
            evidence = self.committed(&seen, by, evidence)?;
        }
        let standing = evidence.work.standing().map(|standing| standing.commit.clone());
        // A caller who is refused now knows at least what has been done.
        let made = standing.clone().filter(|commit| before.as_ref() != Some(commit));
        let told = |problem: Problem| match &made {
            None => problem,
            Some(CommitId(commit)) => {
                let message = format!("{}; Sluice has committed the uncommitted files as {commit}", problem.message);
                Problem { message, ..problem }
            }
        };
        let checked = seen.state.checked.as_ref().map(|checked| &checked.work);
        let judged = seen.state.judged.as_ref().map(|judged| &judged.work).or(checked);
        let judged = judged.and_then(|work| work.commit.clone());
        ask(&self.home, &seen.id, TaskInput::Merge { by, force: wanted.force, evidence }).map_err(told)?;
        let intent = MergeIntent {
            commit: standing.or(judged).map(|commit| commit.0),
            strategy: wanted.strategy.clone(),
            local: wanted.local,
            forced: wanted.force,
            turn: Some(seen.state.visit.turn),
            base: None,
            made: None,
            feedback,
            unpushed: false,
        };
        let (merged, recorded) = merges::carry_out(&self.home, &seen, intent).map_err(told)?;
        self.told(who, &seen.id, merged, recorded)
    }

    /// Commits what lies in a task's worktree, if the task could be merged then. What it looks like afterwards.
    fn committed(&self, seen: &TaskSnapshot, by: TaskAsker, evidence: Evidence) -> Result<Evidence, Problem> {
        if evidence.work.standing().is_none_or(|standing| standing.dirty.is_empty()) {
            return Ok(evidence);
        }
        // Nothing is committed for a caller who may not merge, or on another branch.
        ask(&self.home, &seen.id, TaskInput::Merge { by, force: true, evidence: evidence.clone() })?;
        let Some(bound) = seen.state.workspace.bound() else { return Ok(evidence) };
        let (_, pool) = self.home.pool_of(seen)?;
        let about = &seen.state.about;
        let message = if about.summary.trim().is_empty() { &about.branch } else { &about.summary };
        let done = BoundWorktree::at(pool.repository(), Path::new(&bound.0), Some(&about.branch))
            .and_then(|worktree| worktree.commit_all(message));
        done.map_err(|error| match error {
            GitError::Unresolved { .. } | GitError::NotOurs { .. } | GitError::OffBranch { .. } => {
                refusal(RefusalCode::Uncommitted, format!("Merge not allowed: {}", described(&error)))
            }
            error => Problem::fault(described(&error)),
        })?;
        self.home.evidence(seen)
    }

    /// The answer to a merge that stands.
    fn told(
        &self,
        who: &Requester,
        id: &TaskId,
        merged: CompletedMerge,
        recorded: EventRange,
    ) -> Result<TaskAnswer, Problem> {
        let mut answer = self.settled(who, id, recorded)?;
        let kept = std::mem::take(&mut answer.notes);
        answer.notes.push(how_merged(&merged));
        match &merged.pushed {
            MergePush::Failed(why) => answer.notes.push(format!("merged, not pushed: {why}")),
            MergePush::NoRemote | MergePush::Done => {}
        }
        answer.notes.extend(merged.notes);
        answer.notes.extend(self.left(id, merged.work.as_deref()));
        answer.notes.extend(kept);
        Ok(answer)
    }

    /// What is on the branch of a task and was not merged. A repository that cannot be asked says nothing of it.
    fn left(&self, id: &TaskId, work: Option<&str>) -> Option<String> {
        let seen = self.home.tasks.find(id.as_str()).ok()?;
        let (_, pool) = self.home.pool_of(&seen).ok()?;
        left(pool.repository(), &seen.state.about.branch, work?).ok()?
    }

    /// Pushes a task's branch and opens a pull request, or finds the one there is.
    pub fn create_pr(&self, who: &Requester, id: &str) -> Result<TaskAnswer, Problem> {
        who.must_be_person("opening a pull request")?;
        let seen = self.home.tasks.find(id)?;
        let url = effect::create_pr(&self.home, &seen).map_err(|undone| undone.refusal("no_pull_request"))?;
        let update = TaskUpdate::PullRequest(url);
        let recorded = ask(&self.home, &seen.id, TaskInput::Update { by: who.to(&seen.id), update })?;
        self.settled(who, &seen.id, recorded)
    }
}

/// How something was merged, in words.
pub(super) fn how_merged(merged: &CompletedMerge) -> String {
    match &merged.how {
        MergeMethod::Already => format!("the branch was merged already, at {}", merged.commit),
        MergeMethod::PullRequest(found) => format!("merged by {}", found.url),
        MergeMethod::FastForward => format!("fast-forward to {}", merged.commit),
        MergeMethod::MergeCommit => format!("merge commit {}", merged.commit),
        MergeMethod::Squash => format!("one commit with all of it: {}", merged.commit),
        MergeMethod::Rebase => format!("its commits were made anew, up to {}", merged.commit),
    }
}
