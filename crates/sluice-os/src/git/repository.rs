//! A repository of a user: where it is, which branch work starts from, what is checked out where.
//!
//! It only looks. What changes a repository stands where it is done: workspaces, merge, forge.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::quote::path_of;
use super::{CommandEnd, Git, GitCall, GitError, break_dead_lock, remove_file, said};
use crate::file::{Durability, write_atomically};
use crate::passing::{PassingError as _, tells_of_own_shortage};

/// How old what git keeps for a worktree must be not to be just being made.
const BEING_MADE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Repository {
    git: Git,
    folder: PathBuf,
    common: PathBuf,
    default_branch: String,
}

/// A checkout that the repository knows: its main one, or a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegisteredCheckout {
    pub(crate) folder: PathBuf,
    pub(crate) branch: Option<String>,
    pub(crate) bare: bool,
    pub(crate) locked: Option<String>,
}

impl Repository {
    /// Opens the repository that this folder is in. Without a default branch one is found: the remote's, `main`,
    /// `master`, or the one that is checked out.
    pub fn open(git: Git, folder: &Path, default_branch: Option<&str>) -> Result<Repository, GitError> {
        let call = git.at(folder).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let ended = call.answer()?;
        let common = match ended.code {
            Some(0) => ended.stdout,
            // A git that only could not look has not said that there is none.
            code => match call.failed(&ended) {
                GitError::Failed { said, .. } if code.is_some() && !tells_of_own_shortage(&said) => {
                    return Err(GitError::NoRepository { path: folder.to_owned(), said });
                }
                failed => return Err(failed),
            },
        };
        let common = path_of(Path::new(""), common.strip_suffix(b"\n").unwrap_or(&common));
        // Left by a git of ours that was killed, it is in the way of a person's git as well.
        break_dead_lock(&common.join("packed-refs.lock"));
        let mut found = Repository { git, folder: common.clone(), common, default_branch: String::new() };
        if let Some(main) = found.registered()?.into_iter().next().filter(|main| !main.bare && main.folder.is_dir()) {
            found.folder = main.folder;
        }
        found.default_branch = match default_branch {
            Some(name) => {
                found.check_branch(name)?;
                name.to_owned()
            }
            None => found.find_default_branch()?,
        };
        Ok(found)
    }

    /// The main checkout; the repository itself if it is bare.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder with what all checkouts share.
    pub fn common(&self) -> &Path {
        &self.common
    }

    /// The branch that work starts from and is merged into.
    pub fn default_branch(&self) -> &str {
        &self.default_branch
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// A call in the main checkout.
    pub(crate) fn call(&self) -> GitCall {
        self.git.at(&self.folder)
    }

    /// The commit to start from: of the local default branch, else of the remote's.
    pub fn default_commit(&self) -> Result<String, GitError> {
        let missing = || GitError::NoCommit { missing: format!("the branch `{}`", self.default_branch) };
        self.newest_commit(&self.default_branch)?.ok_or_else(missing)
    }

    /// The commit that a branch is at here, else on the remote as last seen.
    fn newest_commit(&self, branch: &str) -> Result<Option<String>, GitError> {
        match self.commit(&format!("refs/heads/{branch}"))? {
            Some(commit) => Ok(Some(commit)),
            None => self.tracking(branch)?.map_or(Ok(None), |(_, reference)| self.commit(&reference)),
        }
    }

    pub fn branch_commit(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.check_branch(branch)?;
        self.commit(&format!("refs/heads/{branch}"))
    }

    /// The newest commit of a branch and its content, as git calls them: the local branch's, else the remote's as last
    /// seen. Nothing if there is no such branch.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<(String, String)>, GitError> {
        self.check_branch(branch)?;
        let Some(commit) = self.newest_commit(branch)? else { return Ok(None) };
        let tree = self.tree(&commit)?;
        Ok(Some((commit, tree)))
    }

    pub(crate) fn tree(&self, commit: &str) -> Result<String, GitError> {
        self.call().args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).text()
    }

    /// The same in the user's name, or in ours if the user has none.
    pub(crate) fn signed(&self, mut call: GitCall) -> Result<GitCall, GitError> {
        for (key, part, fallback) in [("user.name", "NAME", "Sluice"), ("user.email", "EMAIL", "sluice@localhost")] {
            let is_set = self.setting(key)?.is_some();
            for who in ["AUTHOR", "COMMITTER"] {
                let variable = format!("GIT_{who}_{part}");
                if !is_set && std::env::var_os(&variable).is_none() {
                    call = call.env(&variable, fallback);
                }
            }
        }
        Ok(call)
    }

    /// The commit and the content of a worktree, and whether there is something that no commit holds.
    pub fn standing(&self, worktree: &Path) -> Result<(String, bool), GitError> {
        let head = self.head(worktree)?;
        let call = self.git.at(worktree).looking();
        let dirty = !call.args(["status", "--porcelain", "--untracked-files=all"]).text()?.is_empty();
        Ok((head, dirty))
    }

    pub fn head(&self, worktree: &Path) -> Result<String, GitError> {
        self.git.at(worktree).looking().args(["rev-parse", "HEAD"]).text()
    }

    /// Since when a branch is here, in seconds since 1970, as its log says; nothing if it has none.
    pub fn branch_since(&self, branch: &str) -> Result<Option<i64>, GitError> {
        let log = self.log_of(branch, "%gd")?;
        let oldest = log.lines().last().and_then(|line| line.rsplit_once("@{")?.1.strip_suffix('}'));
        Ok(oldest.and_then(|seconds| seconds.parse().ok()))
    }

    /// Whether a branch had another name before, as its log says.
    pub fn is_renamed_from(&self, branch: &str, old: &str) -> Result<bool, GitError> {
        let renamed = format!("Branch: renamed refs/heads/{old} to refs/heads/{branch}");
        Ok(self.log_of(branch, "%gs")?.lines().any(|line| line == renamed))
    }

    /// The log of a branch, newest first, a line each in this form; empty if it has none.
    fn log_of(&self, branch: &str, form: &str) -> Result<String, GitError> {
        self.check_branch(branch)?;
        let (form, name) = (format!("--format={form}"), format!("refs/heads/{branch}"));
        self.call().args(["reflog", "show", &form, "--date=unix", &name, "--"]).text()
    }

    /// Whether a remote has a branch of this name, as last seen.
    pub fn is_on_remote(&self, branch: &str) -> Result<bool, GitError> {
        Ok(self.tracking(branch)?.is_some())
    }

    /// Gives a branch another name, wherever it is checked out.
    pub fn rename_branch(&self, old: &str, new: &str) -> Result<(), GitError> {
        self.check_branch(old)?;
        self.check_branch(new)?;
        self.call().args(["branch", "-m", "--", old, new]).text().map(drop)
    }

    /// The commit that a name means, if it means one.
    pub fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        self.call().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).maybe()
    }

    pub fn check_branch(&self, name: &str) -> Result<(), GitError> {
        check_branch_name(&self.git, &self.common, name)
    }

    /// Whether one commit is an ancestor of the other, or the same.
    pub(crate) fn is_ancestor(&self, of: &str, commit: &str) -> Result<bool, GitError> {
        self.call().args(["merge-base", "--is-ancestor", of, commit]).says_yes()
    }

    /// Everything that a commit adds to another one must be there and be what its name says: a branch that is moved needs
    /// none of it, and the next who reads it finds it missing.
    pub(crate) fn must_be_whole(&self, commit: &str, beside: &str) -> Result<(), GitError> {
        let call =
            self.call().args(["rev-list", "--objects", "--verify-objects", "--quiet", commit, "--not", beside, "--"]);
        let ended = call.answer()?;
        // Some damage it only tells of, and ends with 0. So it does with what is no damage: an alternate that is gone, say;
        // that is told whatever is read.
        let told = errors(&ended);
        let is_harmless = || {
            let ended = self.call().args(["cat-file", "-e", commit]).answer()?;
            let always = errors(&ended);
            Ok::<bool, GitError>(told.iter().all(|line| always.contains(line)))
        };
        if ended.code == Some(0) && (told.is_empty() || is_harmless()?) {
            return Ok(());
        }
        match call.failed(&ended) {
            error if error.is_passing() => Err(error),
            _ => Err(GitError::Incomplete { commit: commit.to_owned(), said: said(&ended) }),
        }
    }

    /// How many commits of a branch the default branch has neither here nor, as far as is known, on the remote.
    pub fn unmerged(&self, branch: &str) -> Result<u64, GitError> {
        let Some(tip) = self.branch_commit(branch)? else { return Ok(0) };
        let default = self.default_branch();
        let mut into = vec![format!("refs/heads/{default}")];
        into.extend(self.remote()?.map(|remote| format!("refs/remotes/{remote}/{default}")));
        let call = self.call().args(["rev-list", "--count", "--ignore-missing", &tip, "--not"]);
        let call = into.iter().fold(call, |call, name| call.arg(name)).arg("--");
        let count = call.text()?;
        count.parse().map_err(|_| call.odd(count))
    }

    /// The references below these prefixes from which the commit can be reached.
    pub(crate) fn reaching(&self, commit: &str, below: &[&str]) -> Result<Vec<String>, GitError> {
        let call = self.call().args(["for-each-ref", "--format=%(refname)", "--contains", commit]).args(below);
        Ok(call.text()?.lines().map(str::to_owned).collect())
    }

    /// Removes a branch whose file holds no commit: a power cut has left it empty, or the beginning of it. Whether there was one.
    /// git neither reads such a branch nor makes one of its name.
    pub(crate) fn drop_broken_branch(&self, branch: &str) -> Result<bool, GitError> {
        let path = self.common.join("refs/heads").join(branch);
        break_dead_lock(&self.common.join("refs/heads").join(format!("{branch}.lock")));
        let Ok(text) = std::fs::read(&path) else { return Ok(false) };
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let is_id = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
        if is_id || text.starts_with(b"ref: refs/") {
            return Ok(false);
        }
        remove_file(&path)?;
        // What its log says, cut off as it may be, would be another branch's.
        remove_file(&self.common.join("logs/refs/heads").join(branch))?;
        Ok(true)
    }

    /// Makes `commondir` of worktrees right that a power cut has left empty, or a git that was killed: no git that looks at all
    /// worktrees works while one is so. Whether there was one.
    fn mend_common(&self) -> bool {
        let worktrees = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let mut is_mended = false;
        for path in worktrees.map(|entry| entry.path().join("commondir")) {
            let Ok(about) = std::fs::symlink_metadata(&path) else { continue };
            let is_old = about.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= BEING_MADE));
            let text = std::fs::read(&path).unwrap_or_else(|_| b"../..".to_vec());
            if is_old && text.iter().all(|byte| *byte == 0) {
                is_mended |= write_atomically(&path, b"../..\n", Durability::Synced).is_ok();
            }
        }
        is_mended
    }

    /// All checkouts, the main one first.
    pub(crate) fn registered(&self) -> Result<Vec<RegisteredCheckout>, GitError> {
        self.must_be_files()?;
        let call = self.git.at(&self.common).looking().args(["worktree", "list", "--porcelain", "-z"]);
        let bytes = match call.bytes() {
            Err(GitError::Failed { said, .. }) if said.contains("commondir") && self.mend_common() => call.bytes()?,
            bytes => bytes?,
        };
        let mut all: Vec<RegisteredCheckout> = Vec::new();
        for line in bytes.split(|byte| *byte == 0) {
            if let Some(folder) = line.strip_prefix(b"worktree ") {
                all.push(RegisteredCheckout {
                    folder: path_of(Path::new(""), folder),
                    ..RegisteredCheckout::default()
                });
            }
            let Some(last) = all.last_mut() else { continue };
            let text = String::from_utf8_lossy(line);
            if let Some(reference) = text.strip_prefix("branch ") {
                last.branch = reference.strip_prefix("refs/heads/").map(str::to_owned);
            } else if let Some(reason) = text.strip_prefix("locked") {
                last.locked = Some(reason.trim().to_owned());
            } else if text == "bare" {
                last.bare = true;
            }
        }
        Ok(all)
    }

    /// Refuses what git would wait for without end: a pipe in the place of a file by which a checkout is known.
    fn must_be_files(&self) -> Result<(), GitError> {
        let checkouts = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        for folder in checkouts.map(|entry| entry.path()).chain([self.common.clone()]) {
            for path in ["HEAD", "gitdir", "commondir", "locked"].map(|name| folder.join(name)) {
                if path.metadata().is_ok_and(|about| !about.is_file()) {
                    let odd = std::io::Error::other("it is no regular file");
                    return Err(GitError::file("cannot read", &path)(odd));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn checked_out(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let found = self.registered()?.into_iter().find(|it| it.branch.as_deref() == Some(branch) && !it.bare);
        Ok(found.map(|it| it.folder))
    }

    pub fn remotes(&self) -> Result<Vec<String>, GitError> {
        Ok(self.call().arg("remote").text()?.lines().map(str::to_owned).collect())
    }

    /// The remote to push to: `origin`, or the only one.
    pub fn remote(&self) -> Result<Option<String>, GitError> {
        let mut remotes = self.remotes()?;
        match remotes.iter().position(|name| name == "origin") {
            Some(origin) => Ok(Some(remotes.swap_remove(origin))),
            None if remotes.len() == 1 => Ok(remotes.pop()),
            None => Ok(None),
        }
    }

    /// Where the remote to push to is, as another machine reaches it: a path of this machine is told whole, and an address
    /// without the name and password that it may hold. Who reaches it from elsewhere has credentials of their own.
    pub fn remote_address(&self) -> Result<Option<String>, GitError> {
        let Some(remote) = self.remote()? else { return Ok(None) };
        let address = self.call().args(["remote", "get-url", "--", &remote]).text()?;
        let address = address.trim_end();
        let is_relative = address.starts_with("./") || address.starts_with("../");
        if is_relative {
            return Ok(Some(self.folder().join(address).display().to_string()));
        }
        Ok(Some(without_credentials(address)))
    }

    /// Whether a remote has a commit, as last seen.
    pub fn is_pushed_to(&self, remote: &str, commit: &str) -> Result<bool, GitError> {
        let (contains, all) = (format!("--contains={commit}"), format!("refs/remotes/{remote}/"));
        let found =
            self.call().args(["for-each-ref", "--count=1", "--format=%(refname)", &contains, "--", &all]).text()?;
        Ok(!found.trim().is_empty())
    }

    /// The remote that has a branch of this name, as last seen, and the reference that remembers it: `origin` if it
    /// has one, else the first that does.
    pub(crate) fn tracking(&self, branch: &str) -> Result<Option<(String, String)>, GitError> {
        let mut remotes = self.remotes()?;
        remotes.sort_by_key(|name| name != "origin");
        for remote in remotes {
            let reference = format!("refs/remotes/{remote}/{branch}");
            if self.commit(&reference)?.is_some() {
                return Ok(Some((remote, reference)));
            }
        }
        Ok(None)
    }

    pub(crate) fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        self.call().args(["config", "--get", key]).maybe()
    }

    fn find_default_branch(&self) -> Result<String, GitError> {
        if let Some(remote) = self.remote()? {
            let head = format!("refs/remotes/{remote}/HEAD");
            let target = self.call().args(["symbolic-ref", "--quiet", &head]).maybe()?;
            let prefix = format!("refs/remotes/{remote}/");
            if let Some(branch) = target.and_then(|target| target.strip_prefix(&prefix).map(str::to_owned)) {
                return Ok(branch);
            }
        }
        for branch in ["main", "master"] {
            if self.commit(&format!("refs/heads/{branch}"))?.is_some() {
                return Ok(branch.to_owned());
            }
        }
        let head = self.call().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
        head.ok_or_else(|| GitError::NoCommit { missing: "a default branch".to_owned() })
    }
}

/// Refuses what git would not take as the name of a branch, or would take for something else.
pub(crate) fn check_branch_name(git: &Git, folder: &Path, name: &str) -> Result<(), GitError> {
    let refused = || GitError::BranchName { name: name.chars().take(200).collect() };
    // An argument cannot hold a NUL, and the file of a reference has a longest name. `refs/heads/main` as the name of a
    // branch would make `main` mean two things to git.
    let is_whole = name.starts_with("refs/");
    if is_whole || name.is_empty() || name == "@" || name.starts_with('-') || name.contains('\0') || name.len() > 200 {
        return Err(refused());
    }
    // git expands `@{-1}`; what it gives back must be what was said.
    let ended = git.at(folder).args(["check-ref-format", "--branch", name]).answer()?;
    let said = ended.stdout.strip_suffix(b"\n");
    if ended.code == Some(0) && said == Some(name.as_bytes()) { Ok(()) } else { Err(refused()) }
}

fn errors(ended: &CommandEnd) -> Vec<String> {
    let is_error = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
    String::from_utf8_lossy(&ended.stderr).lines().filter(is_error).map(str::to_owned).collect()
}

/// An address of the web without the name and password that it may hold.
fn without_credentials(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or(host))
        }
        // The name in `git@host:path` or `ssh://git@host` is part of the address.
        Some(_) | None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_no_password() {
        assert_eq!(without_credentials("https://ann:slu@x@host:8/a@b.git"), "https://host:8/a@b.git");
        assert_eq!(without_credentials("http://token@host"), "http://host");
        for same in ["https://host/shop.git", "git@host:shop.git", "ssh://git@host/shop.git", "/srv/shop.git"] {
            assert_eq!(without_credentials(same), same);
        }
    }
}
