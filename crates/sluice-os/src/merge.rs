//! Merging a commit of a branch into the default branch, and pushing the result.
//!
//! What is merged is a commit that the caller names, not what the branch happens to be at later. The merge is made
//! without a checkout. Where the default branch is checked out, that checkout goes along if it is clean, and nothing is
//! merged if it is not. A pull request that is not merged here is never bypassed. A refusal leaves everything as it was.
//! A push that fails leaves the merge.

mod advance;
mod content;
mod elsewhere;
mod note;
mod recover;
mod replay;

pub(crate) use advance::{BranchTurn, advance};
pub(crate) use content::{merged_tree, unused_drivers};

use self::elsewhere::elsewhere;
use crate::forge::{Forge, PullRequest};
use crate::git::{GitCall, GitError, Repository};

/// How often a merge starts again because the default branch was moved meanwhile.
const ATTEMPTS: usize = 3;
/// How many moves of a branch are looked through for a commit that was made on it.
const MOVES: &str = "--max-count=1000";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeStrategy {
    /// A fast-forward where possible, else a merge commit.
    #[default]
    Auto,
    /// A fast-forward or nothing.
    FastForward,
    /// A merge commit in any case.
    MergeCommit,
    Squash,
    /// Its commits one after the other, as if they had been made on the default branch.
    Rebase,
}

#[derive(Clone, Debug, Default)]
pub struct MergeRequest<'a> {
    pub branch: &'a str,
    /// The commit of it that is merged; its newest if none is given.
    pub commit: Option<&'a str>,
    pub strategy: MergeStrategy,
    /// Here, whatever a pull request says: none is looked for.
    pub local: bool,
    pub message: Option<&'a str>,
    pub forge: Option<&'a Forge>,
    /// The pull request that is known of: without a word about it, nothing is merged here.
    pub pull_request: Option<&'a str>,
    /// It was begun before, and may be done.
    pub begun: Option<PriorMerge<'a>>,
}

/// A merge that was begun before, as the one who asked for it has kept it. No repository is asked that: whoever works in
/// one of its worktrees can write there what they like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorMerge<'a> {
    /// The commit that the default branch was at.
    pub base: &'a str,
    /// As what the work was to be merged, where its own commits were not.
    pub made: Option<&'a str>,
}

/// Told as what commit the work is merged, where that is none of its own, before the default branch moves: whoever comes
/// after a power cut knows by it that it is done.
pub type MergeRecorder<'a> = &'a dyn Fn(&str) -> Result<(), GitError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    Already,
    PullRequest(PullRequest),
    FastForward,
    MergeCommit,
    Squash,
    Rebase,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergePush {
    NoRemote,
    Done,
    /// The remote does not have it; the merge stands. Why.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedMerge {
    pub how: MergeMethod,
    /// The commit of the branch that is merged; none if the branch is gone and a pull request says so.
    pub work: Option<String>,
    /// The commit that the default branch is at.
    pub commit: String,
    pub pushed: MergePush,
    pub notes: Vec<String>,
}

/// What is to be merged, after all who are elsewhere were asked: the forge, and the remote for its news.
#[derive(Debug)]
pub struct PreparedMerge<'a> {
    repository: &'a Repository,
    request: &'a MergeRequest<'a>,
    remote: Option<String>,
    work: Option<String>,
    pull_request: Option<PullRequest>,
    /// Whether it may be done since it was begun.
    may_be_done: bool,
    notes: Vec<String>,
}

#[derive(Debug)]
pub struct LocalMerge {
    how: MergeMethod,
    commit: String,
    note: Option<String>,
}

/// Merges a commit of a branch into the default branch and pushes it. Done again, it says that it is done, and tries a
/// push that failed again.
pub fn merge(repository: &Repository, request: &MergeRequest<'_>) -> Result<CompletedMerge, GitError> {
    let ready = look(repository, request)?;
    let made = ready.merge(&|_| Ok(()))?;
    Ok(ready.push(made))
}

/// Asks those who are elsewhere. Nothing but what is known of them changes.
pub fn look<'a>(repository: &'a Repository, request: &'a MergeRequest<'a>) -> Result<PreparedMerge<'a>, GitError> {
    let remote = repository.remote()?;
    let work = match request.commit {
        Some(name) => {
            let missing = || GitError::NoCommit { missing: format!("`{name}`") };
            Some(repository.commit(name)?.ok_or_else(missing)?)
        }
        None => repository.branch_tip(request.branch)?.map(|(commit, _)| commit),
    };
    let may_be_done = match request.begun {
        Some(PriorMerge { base, made }) => work.is_some() && !contains(repository, work.as_deref(), made, Some(base))?,
        None => false,
    };
    let mut ready =
        PreparedMerge { repository, request, remote, work, pull_request: None, may_be_done, notes: Vec::new() };
    // What was merged here is no matter of a pull request any more.
    let is_done = may_be_done && contains(repository, ready.work.as_deref(), ready.made(), None)?;
    if !request.local && !is_done {
        let (remote, work) = (ready.remote.as_deref(), ready.work.as_deref());
        ready.pull_request = elsewhere(repository, request, remote, work, &mut ready.notes)?;
    }
    if ready.pull_request.is_none() && ready.work.is_none() {
        return Err(GitError::NoBranch { branch: request.branch.to_owned() });
    }
    if let Some(remote) = &ready.remote {
        repository.refresh(remote, repository.default_branch())?;
    }
    Ok(ready)
}

impl PreparedMerge<'_> {
    /// Merges. Everything stays on this machine, so that it does not last.
    pub fn merge(&self, keep: MergeRecorder<'_>) -> Result<LocalMerge, GitError> {
        let repository = self.repository;
        let (Some(work), None) = (&self.work, &self.pull_request) else { return self.follow() };
        for _ in 0..ATTEMPTS {
            match self.attempt(work, keep) {
                Err(GitError::Moved { .. }) => {}
                done => return done,
            }
        }
        Err(GitError::Moved { branch: repository.default_branch().to_owned() })
    }

    /// As what the work was merged, if it was begun before.
    fn made(&self) -> Option<&str> {
        self.request.begun.filter(|_| self.may_be_done)?.made
    }

    /// It is merged on the remote; the local default branch follows where it can.
    fn follow(&self) -> Result<LocalMerge, GitError> {
        let repository = self.repository;
        let follow = || {
            let turn = BranchTurn::take(repository)?;
            let old = repository.branch_commit(repository.default_branch())?;
            let start = start(repository, self.remote.as_deref(), old.as_deref())?;
            advance(&turn, old.as_deref(), &start)
        };
        let branch = repository.default_branch();
        let note = follow().err().map(|error| format!("`{branch}` could not follow its remote: {error}"));
        let none = || GitError::NoBranch { branch: self.request.branch.to_owned() };
        let how = MergeMethod::PullRequest(self.pull_request.clone().ok_or_else(none)?);
        Ok(LocalMerge { how, commit: repository.default_commit()?, note })
    }

    fn attempt(&self, work: &str, keep: MergeRecorder<'_>) -> Result<LocalMerge, GitError> {
        let (repository, request, made) = (self.repository, self.request, self.made());
        let (branch, into) = (request.branch, repository.default_branch());
        let turn = BranchTurn::take(repository)?;
        let old = repository.branch_commit(into)?;
        let start = start(repository, self.remote.as_deref(), old.as_deref())?;
        repository.must_be_whole(work, &start)?;
        if replay::holds(repository, work, made, &start)? {
            if !self.may_be_done && !is_work(repository, branch, work, &start)? {
                return Err(GitError::NothingToMerge { branch: branch.to_owned(), into: into.to_owned() });
            }
            if old.as_deref().is_none_or(|old| !replay::holds(repository, work, made, old).unwrap_or(false)) {
                advance(&turn, old.as_deref(), &start)?;
                return Ok(LocalMerge { how: MergeMethod::Already, commit: start, note: None });
            }
            return Ok(LocalMerge { how: MergeMethod::Already, commit: old.unwrap_or(start), note: None });
        }
        let is_forward = repository.is_ancestor(&start, work)?;
        let default_message = format!("Merge branch '{branch}'\n");
        let message = request.message.unwrap_or(&default_message);
        let merged = || merged_tree(&turn, (branch, into), None, &start, work);
        let (how, new) = match request.strategy {
            MergeStrategy::Auto | MergeStrategy::FastForward | MergeStrategy::Rebase if is_forward => {
                (MergeMethod::FastForward, work.to_owned())
            }
            MergeStrategy::FastForward => {
                return Err(GitError::NotFastForward { branch: branch.to_owned(), into: into.to_owned() });
            }
            MergeStrategy::Auto | MergeStrategy::MergeCommit => {
                (MergeMethod::MergeCommit, commit_tree(repository, &merged()?, &[&start, work], message)?)
            }
            MergeStrategy::Squash => (MergeMethod::Squash, commit_tree(repository, &merged()?, &[&start], message)?),
            MergeStrategy::Rebase => {
                let new = replay::replayed(&turn, (branch, into), &start, work)?;
                if repository.tree(&new)? != merged()? {
                    return Err(GitError::OtherContent { branch: branch.to_owned(), into: into.to_owned() });
                }
                (MergeMethod::Rebase, new)
            }
        };
        if matches!(how, MergeMethod::Squash | MergeMethod::Rebase) {
            if repository.tree(&new)? == repository.tree(&start)? {
                return Err(GitError::NothingToMerge { branch: branch.to_owned(), into: into.to_owned() });
            }
            keep(&new)?;
        }
        let note = if how == MergeMethod::FastForward { None } else { unused_drivers(repository, &start, work) };
        advance(&turn, old.as_deref(), &new)?;
        Ok(LocalMerge { how, commit: new, note })
    }

    /// Pushes what was merged. Whatever goes wrong now does not change that it is.
    pub fn push(self, made: LocalMerge) -> CompletedMerge {
        let LocalMerge { how, commit, note } = made;
        let mut notes = self.notes;
        notes.extend(note);
        let pushed = match how {
            MergeMethod::PullRequest(_) => MergePush::Done,
            MergeMethod::Already
            | MergeMethod::FastForward
            | MergeMethod::MergeCommit
            | MergeMethod::Squash
            | MergeMethod::Rebase => push(self.repository, self.remote.as_deref(), &commit),
        };
        let (branch, is_here) =
            (self.repository.default_branch(), !matches!(how, MergeMethod::PullRequest(_) | MergeMethod::Already));
        match self.repository.branch_commit(branch) {
            Ok(Some(now)) if is_here && now != commit => notes.push(format!(
                "`{branch}` is at {} by now, and not at the merge: a hook or another process moved it; the next merge pushes that too",
                now.get(..12).unwrap_or(&now)
            )),
            Ok(_) | Err(_) => {}
        }
        CompletedMerge { how, work: self.work, commit, pushed, notes }
    }
}

/// Whether a commit of the default branch, its newest unless given, holds this work, as it is or as what it was merged.
pub fn contains(
    repository: &Repository,
    work: Option<&str>,
    made: Option<&str>,
    commit: Option<&str>,
) -> Result<bool, GitError> {
    let commit = match commit {
        Some(commit) => Some(commit.to_owned()),
        None => repository.branch_commit(repository.default_branch())?,
    };
    match (work, commit) {
        (Some(work), Some(commit)) => replay::holds(repository, work, made, &commit),
        (Some(_) | None, _) => Ok(false),
    }
}

/// Finishes or puts back what a merge into this repository has left half done, if one has.
pub fn make_good(repository: &Repository) -> Result<(), GitError> {
    BranchTurn::take(repository).map(drop)
}

/// What is on the branch and was not merged: its worker went on. Asked when that worker has ended.
pub fn left(repository: &Repository, branch: &str, work: &str) -> Result<Option<String>, GitError> {
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(None) };
    if repository.is_ancestor(&tip, work)? {
        return Ok(None);
    }
    let into = repository.default_branch();
    let count = repository.call().args(["rev-list", "--count", &tip, "--not", work, into, "--"]).text()?;
    Ok((count != "0").then(|| format!("`{branch}` has commits that were not merged ({count}); they stay there")))
}

/// Where the merge starts: the local default branch, or the remote's if that is merely ahead of it.
fn start(repository: &Repository, remote: Option<&str>, old: Option<&str>) -> Result<String, GitError> {
    let default = repository.default_branch();
    let seen = match remote {
        Some(remote) => repository.commit(&format!("refs/remotes/{remote}/{default}"))?,
        None => None,
    };
    match (old, seen) {
        (Some(old), Some(seen)) if repository.is_ancestor(old, &seen)? => Ok(seen),
        (Some(old), _) => Ok(old.to_owned()),
        (None, _) => repository.default_commit(),
    }
}

/// Whether what the default branch holds already was work of this branch, and not merely what the branch started from:
/// it came in by a merge commit, or one of its commits was made while the branch stood there.
fn is_work(repository: &Repository, branch: &str, work: &str, start: &str) -> Result<bool, GitError> {
    let call = repository.call().args(["rev-list", "--first-parent", start, "--not", &format!("{work}^@"), "--"]);
    if !call.text()?.lines().any(|line| line == work) {
        return Ok(true);
    }
    let reference = format!("refs/heads/{branch}");
    let call = repository.call().args(["log", "--walk-reflogs", MOVES, "--format=%H %gs", &reference, "--"]);
    let ended = call.answer()?;
    // Without a history of its moves, nothing speaks for work.
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let makes = ["commit", "cherry-pick", "revert", "rebase", "am"];
    for (commit, how) in text.lines().filter_map(|line| line.split_once(' ')) {
        let is_made = makes.iter().any(|make| how.starts_with(make)) || how.contains("Merge made by");
        if is_made && repository.is_ancestor(commit, start)? && repository.is_ancestor(commit, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub const PUSHED_LATER: &str = "pushes it later";

/// What git says of a push to a branch that has other commits.
const BEHIND: [&str; 2] = ["(fetch first)", "(non-fast-forward)"];

fn push(repository: &Repository, remote: Option<&str>, commit: &str) -> MergePush {
    let Some(remote) = remote else { return MergePush::NoRemote };
    let default = repository.default_branch();
    let known = repository.commit(&format!("refs/remotes/{remote}/{default}")).ok().flatten();
    // Another merge that came after this one may have taken it along.
    if known.is_some_and(|known| repository.is_ancestor(commit, &known).unwrap_or(false)) {
        return MergePush::Done;
    }
    match repository.push_commit(remote, commit, default) {
        Ok(()) => MergePush::Done,
        Err(GitError::Push { said, .. }) if BEHIND.iter().any(|sign| said.contains(sign)) => {
            MergePush::Failed(format!(
                "`{remote}` has commits that `{default}` does not have here; after `git pull --no-rebase {remote} {default}`, \
             `git push {remote} {default}` {PUSHED_LATER}"
            ))
        }
        Err(error) => MergePush::Failed(format!("{error}; `git push {remote} {default}` {PUSHED_LATER}")),
    }
}

/// Pushes the default branch as it is here, as `git push` does it: after a merge that could not be pushed.
pub fn push_default(repository: &Repository) -> Result<MergePush, GitError> {
    let remote = repository.remote()?;
    Ok(push(repository, remote.as_deref(), &repository.default_commit()?))
}

/// A commit in the user's name, or in ours if the user has none.
pub(crate) fn commit_tree(
    repository: &Repository,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String, GitError> {
    commit_as(repository.signed(repository.call())?, tree, parents, message)
}

pub(crate) fn commit_as(call: GitCall, tree: &str, parents: &[&str], message: &str) -> Result<String, GitError> {
    let mut call = call.durable().args(["commit-tree", tree]);
    for parent in parents {
        call = call.args(["-p", parent]);
    }
    let mut message = message.to_owned();
    if !message.ends_with('\n') {
        message.push('\n');
    }
    call.args(["-F", "-"]).input(message).text()
}
