//! Merging a branch into the default branch, and pushing the result.
//!
//! The merge is made without a checkout. Where the default branch is checked out, that checkout goes along if it is
//! clean, and nothing is merged if it is not. A conflict is a refusal, and leaves everything as it was. A push that
//! fails leaves the merge.

use std::path::Path;

use crate::forge::{Forge, PullRequest, PullRequestState};
use crate::git::{Changes, GitError, Repository, shown};

/// How often a merge starts again because the default branch was moved meanwhile.
const ATTEMPTS: usize = 3;
/// How many changed files a refusal names.
const NAMED_FILES: usize = 5;

/// How to merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// A fast-forward where possible, else a merge commit.
    #[default]
    Auto,
    /// A fast-forward or nothing.
    FastForward,
    /// A merge commit in any case.
    MergeCommit,
}

/// What to merge.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// The branch.
    pub branch: &'a str,
    /// How to merge it.
    pub strategy: Strategy,
    /// Here, whatever a pull request says: none is looked for.
    pub local: bool,
    /// The message of a merge commit.
    pub message: Option<&'a str>,
    /// Where to look for a pull request that is merged already.
    pub forge: Option<&'a Forge>,
}

/// How the branch came to be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It was.
    Already,
    /// By this pull request.
    PullRequest(PullRequest),
    /// The default branch was moved forward to it.
    FastForward,
    /// By a merge commit.
    MergeCommit,
}

/// What became of the push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// There is no remote.
    NoRemote,
    /// The remote has it.
    Done,
    /// The remote does not have it; the merge stands. Why.
    Failed(String),
}

/// A merge that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// How it was done.
    pub how: How,
    /// The commit that the default branch is at.
    pub commit: String,
    /// What became of the push.
    pub pushed: Pushed,
    /// What else one should know.
    pub notes: Vec<String>,
}

/// Merges a branch into the default branch. Done again, it says that it is done, and tries a push that failed again.
pub fn merge(repository: &Repository, request: &Request<'_>) -> Result<Merged, GitError> {
    let remote = repository.remote()?;
    let mut notes = Vec::new();
    let tip = tip(repository, request.branch)?;
    if let (Some(forge), Some(_), false) = (request.forge, &remote, request.local) {
        match forge.pull_request(repository, request.branch) {
            Ok(Some(found)) if found.state == PullRequestState::Merged => {
                if covers(repository, &found, tip.as_deref())? {
                    return by_pull_request(repository, remote.as_deref(), found, notes);
                }
                notes.push(format!("{} was merged without the newest commits of `{}`", found.url, request.branch));
            }
            Ok(_) => {}
            // Perhaps the remote is no forge at all. What was merged there comes in with the default branch.
            Err(error) => notes.push(format!("no pull request could be looked for: {error}")),
        }
    }
    let tip = tip.ok_or_else(|| GitError::NoBranch { branch: request.branch.to_owned() })?;
    if let Some(remote) = &remote {
        repository.refresh(remote, repository.default_branch())?;
    }
    for _ in 0..ATTEMPTS {
        let (how, commit) = match attempt(repository, request, remote.as_deref(), &tip) {
            Err(GitError::Moved { .. }) => continue,
            done => done?,
        };
        let pushed = push(repository, remote.as_deref(), &commit)?;
        return Ok(Merged { how, commit, pushed, notes });
    }
    Err(GitError::Moved { branch: repository.default_branch().to_owned() })
}

/// The newest commit of a branch: the local one's, else the remote's as last seen.
fn tip(repository: &Repository, branch: &str) -> Result<Option<String>, GitError> {
    if let Some(commit) = repository.branch_commit(branch)? {
        return Ok(Some(commit));
    }
    let tracking = repository.tracking(branch)?;
    Ok(tracking.map(|(_, reference)| repository.commit(&reference)).transpose()?.flatten())
}

/// Whether what the pull request merged is all that the branch has.
fn covers(repository: &Repository, found: &PullRequest, tip: Option<&str>) -> Result<bool, GitError> {
    match tip {
        None => Ok(true),
        Some(tip) if tip == found.head => Ok(true),
        Some(tip) => Ok(repository.commit(&found.head)?.is_some() && repository.is_ancestor(tip, &found.head)?),
    }
}

/// It is merged on the remote; the local default branch follows where it can.
fn by_pull_request(
    repository: &Repository,
    remote: Option<&str>,
    found: PullRequest,
    mut notes: Vec<String>,
) -> Result<Merged, GitError> {
    if let Some(remote) = remote {
        repository.refresh(remote, repository.default_branch())?;
    }
    let old = repository.branch_commit(repository.default_branch())?;
    let start = start(repository, remote, old.as_deref())?;
    if let Err(error) = advance(repository, old.as_deref(), &start) {
        notes.push(format!("`{}` could not follow its remote: {error}", repository.default_branch()));
    }
    let commit = repository.default_commit()?;
    Ok(Merged { how: How::PullRequest(found), commit, pushed: Pushed::Done, notes })
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

fn attempt(
    repository: &Repository,
    request: &Request<'_>,
    remote: Option<&str>,
    tip: &str,
) -> Result<(How, String), GitError> {
    let (branch, into) = (request.branch, repository.default_branch());
    let old = repository.branch_commit(into)?;
    let start = start(repository, remote, old.as_deref())?;
    if repository.is_ancestor(tip, &start)? {
        if old.as_deref().is_none_or(|old| !repository.is_ancestor(tip, old).unwrap_or(false)) {
            advance(repository, old.as_deref(), &start)?;
            return Ok((How::Already, start));
        }
        return Ok((How::Already, old.unwrap_or(start)));
    }
    let is_forward = repository.is_ancestor(&start, tip)?;
    let (how, new) = match request.strategy {
        Strategy::Auto | Strategy::FastForward if is_forward => (How::FastForward, tip.to_owned()),
        Strategy::FastForward => {
            return Err(GitError::NotFastForward { branch: branch.to_owned(), into: into.to_owned() });
        }
        Strategy::Auto | Strategy::MergeCommit => {
            let tree = merged_tree(repository, branch, into, &start, tip)?;
            let default_message = format!("Merge branch '{branch}'\n");
            let message = request.message.unwrap_or(&default_message);
            (How::MergeCommit, commit_tree(repository, &tree, &[&start, tip], message)?)
        }
    };
    advance(repository, old.as_deref(), &new)?;
    Ok((how, new))
}

/// The merge in memory; no file and no branch is touched.
pub(crate) fn merged_tree(
    repository: &Repository,
    branch: &str,
    into: &str,
    ours: &str,
    theirs: &str,
) -> Result<String, GitError> {
    let call =
        repository.call().args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs]);
    let ended = call.answer()?;
    let fields = ended.stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut fields: Vec<String> = fields.map(shown).collect();
    match ended.code {
        Some(0) if !fields.is_empty() => Ok(fields.swap_remove(0)),
        Some(1) if fields.len() > 1 => {
            Err(GitError::Conflict { branch: branch.to_owned(), into: into.to_owned(), files: fields.split_off(1) })
        }
        _ => Err(call.failed(&ended)),
    }
}

/// Moves the default branch from where it was seen to its new commit, with the checkout it is in.
fn advance(repository: &Repository, old: Option<&str>, new: &str) -> Result<(), GitError> {
    let branch = repository.default_branch();
    if old == Some(new) {
        return Ok(());
    }
    let moved = || GitError::Moved { branch: branch.to_owned() };
    if let Some(folder) = repository.checked_out(branch)?.filter(|folder| folder.is_dir()) {
        refuse_changes(repository, &folder)?;
        let call = repository.git().at(&folder).hooks().args(["merge", "--ff-only", "--quiet", "--no-autostash", new]);
        let ended = call.answer()?;
        if repository.branch_commit(branch)?.as_deref() == Some(new) {
            return Ok(());
        }
        let is_same = repository.branch_commit(branch)?.as_deref() == old;
        return Err(if is_same { call.failed(&ended) } else { moved() });
    }
    let nothing = "0".repeat(new.len());
    let reference = format!("refs/heads/{branch}");
    let call = repository.call().args(["update-ref", "-m", "sluice: merge", &reference, new, old.unwrap_or(&nothing)]);
    let ended = call.answer()?;
    match ended.code {
        Some(0) => Ok(()),
        _ if repository.branch_commit(branch)?.as_deref() == old => Err(call.failed(&ended)),
        _ => Err(moved()),
    }
}

fn refuse_changes(repository: &Repository, folder: &Path) -> Result<(), GitError> {
    let changes = Changes::of(repository.git().at(folder))?;
    let changed = changes.tracked.iter().map(|(path, _)| path).chain(changes.unmerged.iter().map(|it| &it.path));
    let mut files: Vec<String> = changed.map(|path| shown(path)).collect();
    files.dedup();
    if files.is_empty() {
        return Ok(());
    }
    let more = files.len().saturating_sub(NAMED_FILES);
    files.truncate(NAMED_FILES);
    let mut named = files.join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let (branch, folder) = (repository.default_branch().to_owned(), folder.to_owned());
    Err(GitError::Dirty { branch, folder, files: named })
}

fn push(repository: &Repository, remote: Option<&str>, commit: &str) -> Result<Pushed, GitError> {
    let Some(remote) = remote else { return Ok(Pushed::NoRemote) };
    let default = repository.default_branch();
    if repository.commit(&format!("refs/remotes/{remote}/{default}"))?.as_deref() == Some(commit) {
        return Ok(Pushed::Done);
    }
    match repository.push(remote, default, false) {
        Ok(()) => Ok(Pushed::Done),
        Err(error) => Ok(Pushed::Failed(error.to_string())),
    }
}

/// A commit in the user's name, or in ours if the user has none.
pub(crate) fn commit_tree(
    repository: &Repository,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String, GitError> {
    let mut call = repository.call().args(["commit-tree", tree]);
    for parent in parents {
        call = call.args(["-p", parent]);
    }
    call = repository.signed(call)?;
    let mut message = message.to_owned();
    if !message.ends_with('\n') {
        message.push('\n');
    }
    call.args(["-F", "-"]).input(message).text()
}
