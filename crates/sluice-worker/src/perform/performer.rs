//! Carrying out a step where its run works: the one policy for steps here and at a worker. What differs is where the
//! worktrees come from, and that stands behind [`StepWorktrees`].

use std::path::Path;

use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::StepWorkspace;
use sluice_core::run::{AttemptPart, CONFLICT, StepOutcome};
use sluice_os::git::GitError;

use crate::perform::PerformResult;
use crate::undone::described;
use crate::undone::{PerformError, PerformFailure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreeAccess {
    /// It goes on with the work, in the folder that the step shares with others.
    Shared,
    /// It writes while others may write: in a worktree of its own, whose work is brought in afterwards.
    Own,
    /// It judges the work, and sees a copy.
    Looks,
}

impl WorktreeAccess {
    /// How a script or a gate uses it. What it does beside others is brought in as an agent's work is.
    pub fn of_script(workspace: StepWorkspace) -> WorktreeAccess {
        match workspace {
            StepWorkspace::Own => WorktreeAccess::Own,
            StepWorkspace::Run | StepWorkspace::Scratch | StepWorkspace::Here => WorktreeAccess::Shared,
        }
    }

    /// How an agent uses it. Only one that may write disturbs others.
    pub fn of_agent(part: AttemptPart, workspace: StepWorkspace, permissions: AgentPermissions) -> WorktreeAccess {
        let is_beside_others = match workspace {
            StepWorkspace::Own => true,
            StepWorkspace::Run => matches!(part, AttemptPart::Item(_)),
            // Outside worktrees there is one folder for all of them.
            StepWorkspace::Scratch | StepWorkspace::Here => false,
        };
        match part {
            AttemptPart::Arbiter(_) => WorktreeAccess::Looks,
            AttemptPart::Whole | AttemptPart::Item(_) | AttemptPart::Turn(_) => {
                match is_beside_others && permissions == AgentPermissions::Full {
                    true => WorktreeAccess::Own,
                    false => WorktreeAccess::Shared,
                }
            }
        }
    }
}

pub trait StepWorktrees {
    /// A worktree while a step works there.
    type Lent;

    /// The worktree for a step. Asked for again after a crash it is found.
    fn open(&self, access: WorktreeAccess) -> Result<Self::Lent, PerformError>;

    fn folder<'a>(&self, lent: &'a Self::Lent) -> &'a Path;

    /// Brings what was done there into the work of the run. The commit at which that stands then, where it is known. What
    /// cannot be merged stays on a branch of its own, which the error names.
    fn merge(&self, lent: Self::Lent) -> Result<Option<String>, PerformError>;

    /// Gives a worktree back whose step has failed, or only looked. What would be lost is kept. The commit at which the
    /// work stands that was done there, where there is one; an error if one that only looked has changed the work.
    fn discard(&self, lent: Self::Lent) -> Result<Option<String>, PerformError>;
}

/// Carries a step out in a worktree: `act` does what is to be done, in this folder.
pub fn perform<W: StepWorktrees>(
    trees: &W,
    access: WorktreeAccess,
    act: impl FnOnce(&Path) -> PerformResult,
) -> PerformResult {
    let lent = trees.open(access)?;
    match (act(trees.folder(&lent)), access) {
        // It is asked for again, and then finds this worktree.
        (Err(PerformError::Unavailable(why)), _) => Err(PerformError::Unavailable(why)),
        (done, WorktreeAccess::Looks) => trees.discard(lent).and(done),
        (Ok(outcome), WorktreeAccess::Shared | WorktreeAccess::Own) => match trees.merge(lent) {
            Ok(commit) => Ok(StepOutcome { commit, ..outcome }),
            Err(PerformError::Failed(failed)) => Err(PerformFailure { outcome: Box::new(outcome), ..failed }.into()),
            Err(unavailable) => Err(unavailable),
        },
        (Err(PerformError::Failed(failed)), WorktreeAccess::Shared | WorktreeAccess::Own) => {
            let commit = trees.discard(lent)?;
            Err(PerformFailure { outcome: Box::new(StepOutcome { commit, ..*failed.outcome }), ..failed }.into())
        }
    }
}

/// The work of a step is on its own branch, and cannot be brought together with that of others. A person is asked.
pub fn in_conflict(branch: &str, why: &GitError) -> PerformError {
    let why = match why {
        GitError::Conflict { into, files, unused, .. } => format!(
            "it conflicts with `{into}` in {}{unused}; `retry` has the step done again on what is there now",
            files.join(", ")
        ),
        other => described(other),
    };
    format!("{CONFLICT}its work is on `{branch}` and cannot be merged: {why}").into()
}

/// The name of the worktree and of the branch that a step has to itself.
pub fn own_name(performance: &str) -> String {
    performance.replace('.', "-")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;
    use crate::undone::UnavailableReason;

    #[derive(Default)]
    struct RecordingWorktrees {
        said: RefCell<Vec<String>>,
        conflicts: bool,
        was_changed: bool,
    }

    impl StepWorktrees for RecordingWorktrees {
        type Lent = PathBuf;

        fn open(&self, access: WorktreeAccess) -> Result<PathBuf, PerformError> {
            self.said.borrow_mut().push(format!("open {access:?}"));
            Ok(PathBuf::from("/there"))
        }

        fn folder<'a>(&self, lent: &'a PathBuf) -> &'a Path {
            lent
        }

        fn merge(&self, _: PathBuf) -> Result<Option<String>, PerformError> {
            self.said.borrow_mut().push("merge".into());
            if self.conflicts { Err("both changed it".into()) } else { Ok(Some("c1".into())) }
        }

        fn discard(&self, _: PathBuf) -> Result<Option<String>, PerformError> {
            self.said.borrow_mut().push("discard".into());
            if self.was_changed { Err("it changed the work".into()) } else { Ok(Some("c2".into())) }
        }
    }

    fn told(trees: &RecordingWorktrees, access: WorktreeAccess, done: PerformResult) -> String {
        trees.said.borrow_mut().clear();
        let performed = perform(trees, access, |folder| {
            trees.said.borrow_mut().push(folder.display().to_string());
            done
        });
        let end = match performed {
            Ok(outcome) => format!("{} at {:?}", outcome.summary, outcome.commit),
            Err(PerformError::Failed(failed)) => {
                format!("failed: {}; {} at {:?}", failed.error, failed.outcome.summary, failed.outcome.commit)
            }
            Err(PerformError::Unavailable(UnavailableReason(why))) => format!("again: {why}"),
        };
        format!("{}: {end}", trees.said.borrow().join(", "))
    }

    fn did() -> PerformResult {
        Ok(StepOutcome { summary: "did".into(), ..StepOutcome::default() })
    }

    #[test]
    fn what_succeeds_is_merged_and_what_fails_or_looks_is_not() {
        let trees = RecordingWorktrees::default();
        assert_eq!(told(&trees, WorktreeAccess::Own, did()), "open Own, /there, merge: did at Some(\"c1\")");
        assert_eq!(told(&trees, WorktreeAccess::Shared, did()), "open Shared, /there, merge: did at Some(\"c1\")");
        assert_eq!(
            told(&trees, WorktreeAccess::Own, Err("no".into())),
            "open Own, /there, discard: failed: no;  at Some(\"c2\")"
        );
        assert_eq!(told(&trees, WorktreeAccess::Looks, did()), "open Looks, /there, discard: did at None");
        let later = Err(UnavailableReason("later".into()).into());
        assert_eq!(told(&trees, WorktreeAccess::Own, later), "open Own, /there: again: later");
        let in_conflict = RecordingWorktrees { conflicts: true, ..RecordingWorktrees::default() };
        assert_eq!(
            told(&in_conflict, WorktreeAccess::Own, did()),
            "open Own, /there, merge: failed: both changed it; did at None"
        );
        let touched = RecordingWorktrees { was_changed: true, ..RecordingWorktrees::default() };
        assert_eq!(
            told(&touched, WorktreeAccess::Looks, did()),
            "open Looks, /there, discard: failed: it changed the work;  at None"
        );
    }

    #[test]
    fn only_an_agent_that_may_write_beside_others_gets_a_worktree_of_its_own() {
        let of = WorktreeAccess::of_agent;
        let (run, own) = (StepWorkspace::Run, StepWorkspace::Own);
        assert_eq!(of(AttemptPart::Item(0), run, AgentPermissions::Full), WorktreeAccess::Own);
        assert_eq!(of(AttemptPart::Item(0), run, AgentPermissions::Reduced), WorktreeAccess::Shared);
        assert_eq!(of(AttemptPart::Whole, own, AgentPermissions::Full), WorktreeAccess::Own);
        assert_eq!(of(AttemptPart::Turn(1), run, AgentPermissions::Full), WorktreeAccess::Shared);
        for workspace in [StepWorkspace::Scratch, StepWorkspace::Here] {
            assert_eq!(of(AttemptPart::Item(0), workspace, AgentPermissions::Full), WorktreeAccess::Shared);
            assert_eq!(of(AttemptPart::Arbiter(1), workspace, AgentPermissions::Full), WorktreeAccess::Looks);
        }
        assert_eq!(of(AttemptPart::Arbiter(1), own, AgentPermissions::Full), WorktreeAccess::Looks);
        assert_eq!(WorktreeAccess::of_script(own), WorktreeAccess::Own);
        for workspace in [run, StepWorkspace::Scratch, StepWorkspace::Here] {
            assert_eq!(WorktreeAccess::of_script(workspace), WorktreeAccess::Shared);
        }
    }
}
