//! Why something with git was not done. Messages say what happened, to what, and the way out.
//!
//! Never a panic and never half a deed without a word: what was kept or done before the failure stays as it is, and the
//! same call may be made again.

use std::path::PathBuf;
use std::time::Duration;

use crate::passing::{PassingError, tells_of_own_shortage};

/// What kind of "no" it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitErrorFamily {
    /// The one who asks can mend it.
    Refused,
    /// The same call may succeed later.
    Unavailable,
    /// The fault is git's or ours.
    Fault,
}

/// Why something with git was not done.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A program that is needed is not there, or cannot be started at the moment.
    #[error("`{program}` cannot be started; {}", start_again(source))]
    NoProgram {
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program did not end in time.
    #[error("{what} did not end within {} s and was ended; look at the network and at the repository, then try again", limit.as_secs())]
    Late {
        what: String,
        /// How long it was given.
        limit: Duration,
    },
    /// A program said no.
    #[error("{what} failed: {said}")]
    Failed { what: String, said: String },
    /// A program's answer cannot be read.
    #[error("{what} gave an answer that cannot be understood: {said}")]
    Answer {
        what: String,
        /// The answer, or what is wrong with it.
        said: String,
    },
    /// A file or folder could not be read or written.
    #[error("{what} {}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no git repository.
    #[error("{} is not in a git repository ({said}); give the folder of one, or run `git init` there", path.display())]
    NoRepository {
        /// Where one was looked for.
        path: PathBuf,
        said: String,
    },
    /// The repository has no commit to start from.
    #[error(
        "there is no commit to start from: {missing} is not there; make a first commit, or name another default branch"
    )]
    NoCommit {
        /// What was looked for.
        missing: String,
    },
    /// Not a name for a branch.
    #[error("{name:?} cannot be the name of a branch; use letters, digits, `-`, `_` and `/`, without a `-` in front")]
    BranchName { name: String },
    /// Not a name for a workspace.
    #[error("{name:?} cannot be the name of a workspace; use letters, digits and `-`, 64 at most")]
    WorkspaceName { name: String },
    /// There is no such branch.
    #[error("there is no branch `{branch}`; look at `git branch --all`")]
    NoBranch { branch: String },
    /// A branch of this name is already there.
    #[error("there is a branch `{branch}` already; choose another name")]
    BranchThere { branch: String },
    /// The branch is checked out in another place.
    #[error(
        "the branch `{branch}` is checked out in {}; switch that checkout to another branch (`git switch --detach`), or, if the folder is gone, run `git worktree prune`", folder.display()
    )]
    BranchElsewhere {
        branch: String,
        /// Where it is checked out.
        folder: PathBuf,
    },
    /// The default branch is not deleted.
    #[error("`{branch}` is the default branch and is not deleted; name the branch of a task")]
    DefaultBranch { branch: String },
    /// The workspace belongs to other work.
    #[error("the workspace {workspace} is bound to `{branch}` of {task}; release it first")]
    Bound {
        workspace: String,
        /// Which branch it is bound to.
        branch: String,
        /// Which task it is bound to.
        task: String,
    },
    /// There is no such workspace.
    #[error("there is no workspace {workspace}; `sluice workspace list` shows those there are")]
    NoWorkspace { workspace: String },
    /// Another process works on it.
    #[error("{what} is in use by process {pid}; wait for it, then try again")]
    Busy {
        /// What is in use.
        what: String,
        /// By whom; empty if that cannot be told.
        pid: String,
    },
    /// The files change while they are being kept.
    #[error("the files in {} change while they are being kept, so nothing was removed; end what writes there, then try again", folder.display())]
    Changing {
        /// The folder of the workspace.
        folder: PathBuf,
    },
    /// A submodule holds changes, which a keep cannot hold.
    #[error("the submodule {path} in {} has changes of its own, so nothing was removed; commit and push them in the submodule, or undo them", folder.display())]
    Submodule {
        /// The folder of the workspace.
        folder: PathBuf,
        /// The path of the submodule.
        path: String,
    },
    /// Somebody left conflicts in a worktree.
    #[error("conflicts are unresolved in {}: {}; resolve them there and commit", folder.display(), files.join(", "))]
    Unresolved {
        /// The folder of the worktree.
        folder: PathBuf,
        files: Vec<String>,
    },
    /// What was stored for a keep is not what lies on disk.
    #[error("what was stored in {reference} is not what lies in {} ({detail}), so nothing was removed; look at the disk and at `git fsck`", folder.display())]
    KeepDiffers {
        /// The reference of the keep.
        reference: String,
        /// The folder of the workspace.
        folder: PathBuf,
        detail: String,
    },
    /// There is no such keep.
    #[error("nothing is kept as {task}/{number}; `sluice workspace list` shows what is kept")]
    NoKeep { task: String, number: u32 },
    /// A folder that should be new is there.
    #[error("{} is there already; name a folder that does not exist", folder.display())]
    FolderThere { folder: PathBuf },
    /// The checkout of the default branch has changes.
    #[error("`{branch}` is checked out in {} with changes ({files}); {cure}, then merge again", folder.display())]
    Dirty {
        branch: String,
        /// Where it is checked out.
        folder: PathBuf,
        /// Some of the changed files.
        files: String,
        /// What to do about them.
        cure: &'static str,
    },
    /// The branch cannot be merged without a person.
    #[error("`{branch}` and `{into}` conflict in {}; merge `{into}` into `{branch}` in its workspace, then merge again{unused}", files.join(", "))]
    Conflict {
        /// The branch that was to be merged.
        branch: String,
        /// The branch to merge into.
        into: String,
        /// The files in conflict.
        files: Vec<String>,
        /// What to tell of merge drivers that were not used, with what parts it from the rest.
        unused: String,
    },
    /// A fast-forward was asked for and is not possible.
    #[error(
        "`{into}` has commits that `{branch}` lacks, so it cannot be fast-forwarded; rebase `{branch}`, or merge with a merge commit"
    )]
    NotFastForward {
        /// The branch that was to be merged.
        branch: String,
        /// The branch to merge into.
        into: String,
    },
    /// A branch moved while it was being worked with.
    #[error("`{branch}` was moved by something else at the same time; try again")]
    Moved { branch: String },
    /// The branch has nothing of its own.
    #[error("`{branch}` has no commit of its own: everything on it was in `{into}` before")]
    NothingToMerge {
        /// The branch that was to be merged.
        branch: String,
        /// The branch to merge into.
        into: String,
    },
    /// A file that git reads would keep it waiting without end.
    #[error("{} is a pipe or a device, and git would wait for it without end; remove it", path.display())]
    Pipe { path: PathBuf },
    /// A folder cannot be looked into: what is in it may be work.
    #[error("git cannot read every folder of the worktree, and what is in there may be work: {said}; make it readable")]
    Unlisted { said: String },
    /// Something of a commit is missing or damaged.
    #[error("git cannot read all of {commit}: {said}")]
    Incomplete { commit: String, said: String },
    /// Its commits, made anew one by one, are not what merging them is.
    #[error(
        "the commits of `{branch}`, made anew one by one on `{into}`, give other content than merging them; merge them with the strategy `squash` or `merge`"
    )]
    OtherContent {
        /// The branch to merge.
        branch: String,
        /// The branch to merge into.
        into: String,
    },
    /// A pull request is open, and is not bypassed.
    #[error("the pull request {url} is open; merge or close it there")]
    PrOpen { url: String },
    /// A pull request has not brought this work into the default branch.
    #[error("the pull request {url} {why}")]
    PrElsewhere {
        url: String,
        /// What became of it.
        why: String,
    },
    /// Another git holds the checkout of the default branch.
    #[error("another git is at work in {}, or was killed there and has left {}; wait for it, or remove that file, then merge again", folder.display(), lock.display())]
    Locked { lock: PathBuf, folder: PathBuf },
    /// There is no remote.
    #[error("the repository has no remote; add one with `git remote add origin URL`, or merge locally")]
    NoRemote,
    /// The remote did not take a push.
    #[error("`{remote}` did not take {what}: {said}")]
    Push { remote: String, what: String, said: String },
    /// The program for pull requests is not there.
    #[error(
        "pull requests need GitHub's command line, and `gh` is not on the PATH; install it and run `gh auth login`, or merge locally"
    )]
    NoForge,
    /// The program for pull requests said no.
    #[error("`gh` could not {what}: {said}; look at `gh auth status`")]
    Forge {
        /// What it was to do.
        what: &'static str,
        said: String,
    },
}

/// What to do about a program that could not be started.
fn start_again(source: &std::io::Error) -> &'static str {
    match source.is_passing() {
        true => "the machine has too little left for it, so try again later",
        false => "install it, or put it on the PATH",
    }
}

impl GitError {
    /// What kind of "no" it is.
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

    /// For `map_err` on what the system says about a file.
    pub(crate) fn file(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> GitError {
        let path = path.to_owned();
        move |source| GitError::File { what, path, source }
    }
}
