//! Carrying out a step where its run works: the one policy for steps here and at a worker. What differs is where the
//! worktrees come from, and that stands behind [`Worktrees`].

use std::path::Path;

use sluice_core::lifecycle::Permissions;
use sluice_core::run::{CONFLICT, Outcome, Part};
use sluice_worker::git::GitError;

use crate::projects::described;
use crate::undone::{Failed, Undone};
use crate::workbench::Performed;

/// How a step uses the work of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It goes on with the work, in the run's own worktree.
    Shared,
    /// It writes while others may write: in a worktree of its own, whose work is brought in afterwards.
    Own,
    /// It judges the work, and sees a copy.
    Looks,
}

impl Access {
    /// How an agent uses it. Only one that may write disturbs others.
    pub(crate) fn of_agent(part: Part, wants_own: bool, permissions: Permissions) -> Access {
        let is_beside_others = wants_own || matches!(part, Part::Item(_));
        match part {
            Part::Arbiter(_) => Access::Looks,
            Part::Whole | Part::Item(_) | Part::Turn(_) => match is_beside_others && permissions == Permissions::Full {
                true => Access::Own,
                false => Access::Shared,
            },
        }
    }
}

/// Where the steps of a run work.
pub(crate) trait Worktrees {
    /// A worktree while a step works there.
    type Lent;

    /// The worktree for a step. Asked for again after a crash it is found.
    fn open(&self, access: Access) -> Result<Self::Lent, Undone>;

    /// Its folder.
    fn folder<'a>(&self, lent: &'a Self::Lent) -> &'a Path;

    /// Brings what was done there into the work of the run. The commit at which that stands then, where it is known. What
    /// cannot be merged stays on a branch of its own, which the error names.
    fn merge(&self, lent: Self::Lent) -> Result<Option<String>, Undone>;

    /// Gives a worktree back whose step has failed, or only looked. What would be lost is kept. The commit at which the
    /// work stands that was done there, where there is one; an error if one that only looked has changed the work.
    fn discard(&self, lent: Self::Lent) -> Result<Option<String>, Undone>;
}

/// Carries a step out in a worktree: `act` does what is to be done, in this folder.
pub(crate) fn perform<W: Worktrees>(trees: &W, access: Access, act: impl FnOnce(&Path) -> Performed) -> Performed {
    let lent = trees.open(access)?;
    match (act(trees.folder(&lent)), access) {
        // It is asked for again, and then finds this worktree.
        (Err(Undone::Unavailable(why)), _) => Err(Undone::Unavailable(why)),
        (done, Access::Looks) => trees.discard(lent).and(done),
        (Ok(outcome), Access::Shared | Access::Own) => match trees.merge(lent) {
            Ok(commit) => Ok(Outcome { commit, ..outcome }),
            Err(Undone::Failed(failed)) => Err(Failed { outcome: Box::new(outcome), ..failed }.into()),
            Err(unavailable) => Err(unavailable),
        },
        (Err(Undone::Failed(failed)), Access::Shared | Access::Own) => {
            let commit = trees.discard(lent)?;
            Err(Failed { outcome: Box::new(Outcome { commit, ..*failed.outcome }), ..failed }.into())
        }
    }
}

/// The work of a step is on its own branch, and cannot be brought together with that of others. A person is asked.
pub(crate) fn in_conflict(branch: &str, why: &GitError) -> Undone {
    format!("{CONFLICT}its work is on `{branch}` and cannot be merged: {}", described(why)).into()
}

/// The name of the worktree and of the branch that a step has to itself.
pub(crate) fn own_name(performance: &str) -> String {
    performance.replace('.', "-")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;
    use crate::undone::Unavailable;

    /// Worktrees that write down what is asked of them.
    #[derive(Default)]
    struct Told {
        said: RefCell<Vec<String>>,
        conflicts: bool,
        was_changed: bool,
    }

    impl Worktrees for Told {
        type Lent = PathBuf;

        fn open(&self, access: Access) -> Result<PathBuf, Undone> {
            self.said.borrow_mut().push(format!("open {access:?}"));
            Ok(PathBuf::from("/there"))
        }

        fn folder<'a>(&self, lent: &'a PathBuf) -> &'a Path {
            lent
        }

        fn merge(&self, _: PathBuf) -> Result<Option<String>, Undone> {
            self.said.borrow_mut().push("merge".into());
            if self.conflicts { Err("both changed it".into()) } else { Ok(Some("c1".into())) }
        }

        fn discard(&self, _: PathBuf) -> Result<Option<String>, Undone> {
            self.said.borrow_mut().push("discard".into());
            if self.was_changed { Err("it changed the work".into()) } else { Ok(Some("c2".into())) }
        }
    }

    fn told(trees: &Told, access: Access, done: Performed) -> String {
        trees.said.borrow_mut().clear();
        let performed = perform(trees, access, |folder| {
            trees.said.borrow_mut().push(folder.display().to_string());
            done
        });
        let end = match performed {
            Ok(outcome) => format!("{} at {:?}", outcome.summary, outcome.commit),
            Err(Undone::Failed(failed)) => {
                format!("failed: {}; {} at {:?}", failed.error, failed.outcome.summary, failed.outcome.commit)
            }
            Err(Undone::Unavailable(Unavailable(why))) => format!("again: {why}"),
        };
        format!("{}: {end}", trees.said.borrow().join(", "))
    }

    fn did() -> Performed {
        Ok(Outcome { summary: "did".into(), ..Outcome::default() })
    }

    #[test]
    fn what_succeeds_is_merged_and_what_fails_or_looks_is_not() {
        let trees = Told::default();
        assert_eq!(told(&trees, Access::Own, did()), "open Own, /there, merge: did at Some(\"c1\")");
        assert_eq!(told(&trees, Access::Shared, did()), "open Shared, /there, merge: did at Some(\"c1\")");
        assert_eq!(
            told(&trees, Access::Own, Err("no".into())),
            "open Own, /there, discard: failed: no;  at Some(\"c2\")"
        );
        assert_eq!(told(&trees, Access::Looks, did()), "open Looks, /there, discard: did at None");
        let later = Err(Unavailable("later".into()).into());
        assert_eq!(told(&trees, Access::Own, later), "open Own, /there: again: later");
        let in_conflict = Told { conflicts: true, ..Told::default() };
        assert_eq!(
            told(&in_conflict, Access::Own, did()),
            "open Own, /there, merge: failed: both changed it; did at None"
        );
        let touched = Told { was_changed: true, ..Told::default() };
        assert_eq!(
            told(&touched, Access::Looks, did()),
            "open Looks, /there, discard: failed: it changed the work;  at None"
        );
    }

    #[test]
    fn only_an_agent_that_may_write_beside_others_gets_a_worktree_of_its_own() {
        let of = Access::of_agent;
        assert_eq!(of(Part::Item(0), false, Permissions::Full), Access::Own);
        assert_eq!(of(Part::Item(0), false, Permissions::Reduced), Access::Shared);
        assert_eq!(of(Part::Whole, true, Permissions::Full), Access::Own);
        assert_eq!(of(Part::Turn(1), false, Permissions::Full), Access::Shared);
        assert_eq!(of(Part::Arbiter(1), true, Permissions::Full), Access::Looks);
    }
}
