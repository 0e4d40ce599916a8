//! Why something with git was not done. Messages say what happened, to what, and the way out.
//!
//! Never a panic and never half a deed without a word: what was kept or done before the failure stays as it is, and the
//! same call may be made again.

use std::path::PathBuf;
use std::time::Duration;

use crate::passing::{PassingError, tells_of_own_shortage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitErrorFamily {
    /// The one who asks can mend it.
    Refused,
    /// The same call may succeed later.
    Unavailable,
    /// The fault is git's or ours.
    Fault,
}

/// Why something with git was not done. The message of a variant is what it means.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{program}` cannot be started; {}", start_again(source))]
    NoProgram { program: String, source: std::io::Error },
    #[error("{what} did not end within {} s and was ended; look at the network and at the repository, then try again", limit.as_secs())]
    Late { what: String, limit: Duration },
    #[error("{what} failed: {said}")]
    Failed { what: String, said: String },
    #[error("{what} gave an answer that cannot be understood: {said}")]
    Answer { what: String, said: String },
    #[error("{what} {}", path.display())]
    File { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} is not in a git repository ({said}); give the folder of one, or run `git init` there", path.display())]
    NoRepository { path: PathBuf, said: String },
    #[error(
        "there is no commit to start from: {missing} is not there; make a first commit, or name another default branch"
    )]
    NoCommit { missing: String },
    #[error("{name:?} cannot be the name of a branch; use letters, digits, `-`, `_` and `/`, without a `-` in front")]
    BranchName { name: String },
    #[error("{name:?} cannot be the name of a workspace; use letters, digits and `-`, 64 at most")]
    WorkspaceName { name: String },
    #[error("there is no branch `{branch}`; look at `git branch --all`")]
    NoBranch { branch: String },
    #[error("there is a branch `{branch}` already; choose another name")]
    BranchThere { branch: String },
    #[error(
        "the branch `{branch}` is checked out in {}; switch that checkout to another branch (`git switch --detach`), or, if the folder is gone, run `git worktree prune`", folder.display()
    )]
    BranchElsewhere { branch: String, folder: PathBuf },
    #[error("`{branch}` is the default branch and is not deleted; name the branch of a task")]
    DefaultBranch { branch: String },
    #[error("the workspace {workspace} is bound to `{branch}` of {task}; release it first")]
    Bound { workspace: String, branch: String, task: String },
    #[error("there is no workspace {workspace}; `sluice workspace list` shows those there are")]
    NoWorkspace { workspace: String },
    #[error("{what} is in use by process {pid}; wait for it, then try again")]
    Busy {
        what: String,
        /// By whom; empty if that cannot be told.
        pid: String,
    },
    #[error("the files in {} change while they are being kept, so nothing was removed; end what writes there, then try again", folder.display())]
    Changing { folder: PathBuf },
    #[error("the submodule {path} in {} has changes of its own, so nothing was removed; commit and push them in the submodule, or undo them", folder.display())]
    Submodule { folder: PathBuf, path: String },
    #[error("conflicts are unresolved in {}: {}; resolve them there and commit", folder.display(), files.join(", "))]
    Unresolved { folder: PathBuf, files: Vec<String> },
    #[error("{} is not the worktree that was made there: {why}; nothing was committed there; put it back, then retry", folder.display())]
    NotOurs { folder: PathBuf, why: String },
    #[error("the work in {} cannot be brought to `{branch}`: {why}; bring it there yourself, then retry", folder.display())]
    OffBranch { folder: PathBuf, branch: String, why: String },
    #[error("what was stored in {reference} is not what lies in {} ({detail}), so nothing was removed; look at the disk and at `git fsck`", folder.display())]
    KeepDiffers { reference: String, folder: PathBuf, detail: String },
    #[error("nothing is kept as {task}/{number}; `sluice workspace list` shows what is kept")]
    NoKeep { task: String, number: u32 },
    #[error("{} is there already; name a folder that does not exist", folder.display())]
    FolderThere { folder: PathBuf },
    #[error("`{branch}` is checked out in {} with changes ({files}); {cure}, then merge again", folder.display())]
    Dirty { branch: String, folder: PathBuf, files: String, cure: &'static str },
    #[error("`{branch}` and `{into}` conflict in {}; merge `{into}` into `{branch}` in its workspace, then merge again{unused}", files.join(", "))]
    Conflict {
        branch: String,
        into: String,
        files: Vec<String>,
        /// What to tell of merge drivers that were not used, with what parts it from the rest.
        unused: String,
    },
    #[error(
        "`{into}` has commits that `{branch}` lacks, so it cannot be fast-forwarded; rebase `{branch}`, or merge with a merge commit"
    )]
    NotFastForward { branch: String, into: String },
    #[error("`{branch}` was moved by something else at the same time; try again")]
    Moved { branch: String },
    #[error("`{branch}` has no commit of its own: everything on it was in `{into}` before")]
    NothingToMerge { branch: String, into: String },
    #[error("{} is a pipe or a device, and git would wait for it without end; remove it", path.display())]
    Pipe { path: PathBuf },
    #[error("git cannot read every folder of the worktree, and what is in there may be work: {said}; make it readable")]
    Unlisted { said: String },
    #[error("git cannot read all of {commit}: {said}")]
    Incomplete { commit: String, said: String },
    #[error(
        "the commits of `{branch}`, made anew one by one on `{into}`, give other content than merging them; merge them with the strategy `squash` or `merge`"
    )]
    OtherContent { branch: String, into: String },
    #[error("the pull request {url} is open; merge or close it there")]
    PrOpen { url: String },
    /// A pull request has not brought this work into the default branch.
    #[error("the pull request {url} {why}")]
    PrElsewhere { url: String, why: String },
    #[error("another git is at work in {}, or was killed there and has left {}; wait for it, or remove that file, then merge again", folder.display(), lock.display())]
    Locked { lock: PathBuf, folder: PathBuf },
    #[error("`{path}` cannot be brought into worktrees: {why}")]
    OutsidePath { path: String, why: String },
    #[error("more than {most} files are to be copied into a worktree; copy less, or link the folder")]
    TooManyFiles { most: usize },
    #[error("the repository has no remote; add one with `git remote add origin URL`, or merge locally")]
    NoRemote,
    #[error("`{remote}` did not take {what}: {said}")]
    Push { remote: String, what: String, said: String },
    #[error(
        "pull requests need GitHub's command line, and `gh` is not on the PATH; install it and run `gh auth login`, or merge locally"
    )]
    NoForge,
    #[error("`gh` could not {what}: {said}; look at `gh auth status`")]
    Forge { what: &'static str, said: String },
}

/// What to do about a program that could not be started.
fn start_again(source: &std::io::Error) -> &'static str {
    match source.is_passing() {
        true => "the machine has too little left for it, so try again later",
        false => "install it, or put it on the PATH",
    }
}

/// What git says of a remote that cannot be reached. What one that is reached refuses is not among it.
const AWAY: [&str; 16] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Connection closed",
    "Operation timed out",
    "Network is unreachable",
    "No route to host",
    "Failed to connect",
    "Couldn't connect to server",
    "hung up unexpectedly",
    "early EOF",
    "The requested URL returned error: 5",
    "does not appear to be a git repository",
];

impl GitError {
    /// Whether a remote could not be reached: the same call may succeed when it is back, and nothing here has to change for it.
    pub fn is_away(&self) -> bool {
        let (GitError::Failed { said, .. } | GitError::Push { said, .. }) = self else {
            return matches!(self, GitError::Late { .. });
        };
        AWAY.iter().any(|words| said.contains(words))
    }

    pub fn family(&self) -> GitErrorFamily {
        match self {
            GitError::NoProgram { source, .. } | GitError::File { source, .. } if source.is_passing() => {
                GitErrorFamily::Unavailable
            }
            GitError::Failed { said, .. } if tells_of_own_shortage(said) => GitErrorFamily::Unavailable,
            GitError::NoProgram { .. }
            | GitError::NoRepository { .. }
            | GitError::NoCommit { .. }
            | GitError::BranchName { .. }
            | GitError::WorkspaceName { .. }
            | GitError::NoBranch { .. }
            | GitError::BranchThere { .. }
            | GitError::BranchElsewhere { .. }
            | GitError::DefaultBranch { .. }
            | GitError::Bound { .. }
            | GitError::NoWorkspace { .. }
            | GitError::Submodule { .. }
            | GitError::Unresolved { .. }
            | GitError::NotOurs { .. }
            | GitError::OffBranch { .. }
            | GitError::NoKeep { .. }
            | GitError::FolderThere { .. }
            | GitError::Dirty { .. }
            | GitError::Conflict { .. }
            | GitError::NotFastForward { .. }
            | GitError::NothingToMerge { .. }
            | GitError::Pipe { .. }
            | GitError::Unlisted { .. }
            | GitError::Incomplete { .. }
            | GitError::OtherContent { .. }
            | GitError::PrOpen { .. }
            | GitError::PrElsewhere { .. }
            | GitError::OutsidePath { .. }
            | GitError::TooManyFiles { .. }
            | GitError::NoRemote
            | GitError::NoForge => GitErrorFamily::Refused,
            GitError::Late { .. }
            | GitError::Busy { .. }
            | GitError::Locked { .. }
            | GitError::Changing { .. }
            | GitError::Moved { .. }
            | GitError::Push { .. }
            | GitError::Forge { .. } => GitErrorFamily::Unavailable,
            GitError::Failed { .. }
            | GitError::Answer { .. }
            | GitError::File { .. }
            | GitError::KeepDiffers { .. } => GitErrorFamily::Fault,
        }
    }

    /// Whether a worktree is not as it was lent, so that nothing is committed there.
    pub fn is_of_place(&self) -> bool {
        matches!(self, GitError::NotOurs { .. } | GitError::OffBranch { .. })
    }

    /// For `map_err` on what the system says about a file.
    pub(crate) fn file(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> GitError {
        let path = path.to_owned();
        move |source| GitError::File { what, path, source }
    }
}
