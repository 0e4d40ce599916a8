//! Merging without the commits themselves: all of them as one, or each made anew on the default branch.
//!
//! The default branch then has the work and not its commits. As what it was merged is told to the one who asked for it
//! before the branch moves.

use super::{BranchTurn, commit_as, merged_tree};
use crate::git::{GitError, Repository};

/// Whether a commit holds this work, as it is or as what it was merged.
pub(super) fn holds(repository: &Repository, work: &str, made: Option<&str>, commit: &str) -> Result<bool, GitError> {
    if repository.is_ancestor(work, commit)? {
        return Ok(true);
    }
    // What was not merged after all may have been cleared away.
    match made.map(|made| repository.commit(made)).transpose()?.flatten() {
        Some(made) => repository.is_ancestor(&made, commit),
        None => Ok(false),
    }
}

/// Makes the commits of the work anew, one after the other, in memory. Merges among them are left out.
pub(super) fn replayed(
    turn: &BranchTurn<'_>,
    names: (&str, &str),
    start: &str,
    work: &str,
) -> Result<String, GitError> {
    let repository = turn.repository;
    let call = repository.call().args(["rev-list", "--reverse", "--topo-order", "--no-merges", work, "--not", start]);
    let mut onto = start.to_owned();
    for commit in call.text()?.lines() {
        let parent = format!("{commit}^");
        let made = merged_tree(turn, names, Some(&parent), &onto, commit)?;
        if made != repository.tree(&onto)? {
            onto = anew(repository, commit, &made, &onto)?;
        }
    }
    Ok(onto)
}

fn anew(repository: &Repository, commit: &str, tree: &str, parent: &str) -> Result<String, GitError> {
    let how = ["log", "-1", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B"];
    let call = repository.call().args(how).args([commit, "--"]);
    let text = call.text()?;
    let [name, email, date, message] = text.splitn(4, '\0').collect::<Vec<_>>()[..] else {
        return Err(call.odd(text));
    };
    let by = repository.signed(repository.call())?.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
    commit_as(by.env("GIT_AUTHOR_DATE", format!("@{date}")), tree, &[parent], message)
}
