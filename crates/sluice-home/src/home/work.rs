//! What git says about a task's work: which commit of which branch, and what lies beside it.
//!
//! It only looks. What cannot be read is said to be unreadable, and never taken for nothing; what only cannot be read now
//! is asked for again.

use std::path::Path;

use sluice_api::Problem;
use sluice_core::task::input::{WorkEvidence, WorkHead, WorkStanding};
use sluice_core::task::state::{CommitId, TreeId};
use sluice_os::git::GitError;
use sluice_os::passing::PassingError;
use sluice_os::workspace::{self, WorkspacePool};

use crate::home::{Home, pool_name};
use crate::read::tasks::TaskSnapshot;
use crate::settings::projects::git;
use crate::undone::described;

const NAMED_FILES: usize = 5;

/// The work of a task: in its worktree, or where its branch is.
pub(crate) fn of(home: &Home, seen: &TaskSnapshot) -> Result<WorkEvidence, Problem> {
    let pool = match home.pool_of(seen) {
        Ok((_, pool)) => pool,
        Err(problem) if problem.is_passing() => return Err(problem),
        Err(problem) => return Ok(WorkEvidence::Unreadable(problem.message)),
    };
    let read = match seen.state.workspace.bound() {
        Some(name) if std::fs::symlink_metadata(&name.0).is_ok_and(|it| !it.is_dir()) => {
            let name = &name.0;
            let why = format!("something else stands where the folder {name} was; remove it, and put the folder back");
            return Ok(WorkEvidence::Unreadable(why));
        }
        Some(name) if !Path::new(&name.0).exists() => {
            let (root, branch, name) = (pool.repository().folder().display(), &seen.state.about.branch, &name.0);
            return Ok(WorkEvidence::Unreadable(format!(
                "the folder {name} is gone; put it back, or make it again from its branch: `git -C {root} worktree prune`, \
                 then `git -C {root} worktree add {name} {branch}`"
            )));
        }
        Some(name) => match pool_name(&name.0) {
            Ok(number) => pool.tree(&number).map(|tree| Some(standing(tree))),
            Err(why) => return Ok(WorkEvidence::Unreadable(why)),
        },
        None => branch(&pool, &seen.state.about.branch),
    };
    match read {
        Ok(read) => Ok(read.map_or(WorkEvidence::Unseen, WorkEvidence::Read)),
        Err(error) if error.is_passing() => Err(git(&error)),
        Err(error) => Ok(WorkEvidence::Unreadable(described(&error))),
    }
}

fn standing(tree: workspace::WorkspaceTree) -> WorkStanding {
    let head = match tree.head {
        workspace::WorkspaceHead::Branch(name) => WorkHead::Branch(name),
        workspace::WorkspaceHead::Rebasing(name) => WorkHead::Rebasing(name),
        workspace::WorkspaceHead::Detached => WorkHead::Detached,
    };
    let mut changed = tree.changed;
    let more = changed.len().saturating_sub(NAMED_FILES);
    changed.truncate(NAMED_FILES);
    let mut dirty = changed.join(", ");
    if more > 0 {
        dirty.push_str(&format!(" and {more} more"));
    }
    WorkStanding { head, commit: CommitId(tree.commit), tree: TreeId(tree.id), dirty }
}

/// A branch that is in no worktree of the task: the local one, else the remote's as last seen.
fn branch(pool: &WorkspacePool, name: &str) -> Result<Option<WorkStanding>, GitError> {
    let Some((commit, tree)) = pool.repository().branch_tip(name)? else { return Ok(None) };
    let head = WorkHead::Branch(name.to_owned());
    Ok(Some(WorkStanding { head, commit: CommitId(commit), tree: TreeId(tree), dirty: String::new() }))
}
