//! The worktree of a mission on a machine that has no checkout of its own: made from the repository's remote, and brought
//! back there after every step.
//!
//! A mirror of the remote is kept beside the worktrees, so that only news is fetched. Nothing is ever forced over commits
//! that were not seen, and what an earlier attempt left behind is kept as that of any worktree is: under
//! `refs/sluice/keep/`, and what git cannot hold in the folder `aside`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::git::{Call, Git, GitError, Repository, said};
use crate::workspace::{Pool, WorkspaceName};

/// A folder to work in.
#[derive(Debug)]
pub struct Burrow {
    /// Where it is.
    pub folder: PathBuf,
    shared: Option<Shared>,
}

/// What a burrow shares with others, through a remote.
#[derive(Debug)]
struct Shared {
    repository: Repository,
    branch: String,
    /// Where the remote's branch was when it was last seen; nothing if it was not there.
    seen: Option<String>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The folder with all mirrors and burrows of this machine.
    pub root: &'a Path,
    /// The name of the run.
    pub run: &'a str,
    /// The branch that its work is on.
    pub branch: &'a str,
    /// Where the repository is; a plain folder unless given.
    pub remote: Option<&'a str>,
    /// Where to start; where the remote's default branch is unless given.
    pub commit: Option<&'a str>,
    /// Whether somebody is at work there since before: then nothing is touched.
    pub goes_on: bool,
}

impl Burrow {
    /// Makes a burrow ready, or finds it.
    pub fn open(git: &Git, wanted: &Wanted<'_>) -> Result<Burrow, GitError> {
        let folder = wanted.root.join("burrows").join(format!("mission-{}", wanted.run));
        let Some(remote) = wanted.remote else {
            std::fs::create_dir_all(&folder).map_err(GitError::file("make", &folder))?;
            return Ok(Burrow { folder, shared: None });
        };
        let repository = mirror(git, wanted, remote)?;
        let tracking = format!("refs/remotes/origin/{}", wanted.branch);
        let seen = repository.commit(&tracking)?;
        if !(wanted.goes_on && folder.is_dir()) {
            let start = match wanted.commit {
                Some(commit) => known(&repository, commit)?,
                None => repository.default_commit()?,
            };
            place(&repository, &folder, wanted, &start)?;
        }
        Ok(Burrow { folder, shared: Some(Shared { repository, branch: wanted.branch.to_owned(), seen }) })
    }

    /// Commits everything and brings it to the remote. The commit that it stands at then. Where somebody else has pushed
    /// meanwhile, `is_ours` says whether the work is still ours: then what they pushed is kept here and replaced there.
    pub fn save(&self, message: &str, is_ours: impl FnOnce() -> bool) -> Result<Option<String>, GitError> {
        let Some(Shared { repository, branch, seen }) = &self.shared else { return Ok(None) };
        repository.commit_all(&self.folder, message)?;
        let head = repository.head(&self.folder)?;
        let refspec = format!("{head}:refs/heads/{branch}");
        let push = |seen: &Option<String>| {
            let lease = format!("--force-with-lease=refs/heads/{branch}:{}", seen.as_deref().unwrap_or_default());
            repository.call().network().args(["push", "--quiet", &lease, "--", "origin", &refspec]).answer()
        };
        // What a lost attempt brought there is not where this one began, and would be gone.
        match seen {
            Some(theirs) if !repository.is_ancestor(theirs, &head)? => keep(repository, branch, theirs)?,
            Some(_) | None => {}
        }
        let mut ended = push(seen)?;
        if ended.code != Some(0) {
            fetch(repository.call(), branch)?;
            let now = repository.commit(&format!("refs/remotes/origin/{branch}"))?;
            if now != *seen && is_ours() {
                now.iter().try_for_each(|theirs| keep(repository, branch, theirs))?;
                ended = push(&now)?;
            }
        }
        match ended.code {
            Some(0) => Ok(Some(head)),
            _ => Err(GitError::Push { remote: "origin".into(), what: format!("`{branch}`"), said: said(&ended) }),
        }
    }
}

/// Removes the burrows that `is_old` says so of and that hold nothing which their remote does not have. Gives their folders.
pub fn forget(git: &Git, root: &Path, is_old: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("burrows")).into_iter().flatten().flatten();
    let old = entries.map(|entry| entry.path()).filter(|folder| is_old(folder));
    old.filter(|folder| remove(git, folder).unwrap_or(false)).collect()
}

/// Removes a burrow whose work its remote has. Whether it did. What only its branch ignores is set aside.
fn remove(git: &Git, folder: &Path) -> Result<bool, GitError> {
    if !folder.join(".git").exists() {
        return Ok(false);
    }
    let common = git.at(folder).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]).text()?;
    let repository = Repository::open(git.clone(), Path::new(&common), None)?;
    let (head, is_dirty) = repository.standing(folder)?;
    if is_dirty || repository.reaching(&head, &["refs/remotes/origin"])?.is_empty() {
        return Ok(false);
    }
    let (pool, name) = pool(repository, folder)?;
    if !pool.is_safe(&name)? {
        return Ok(false);
    }
    pool.destroy(&name, name.as_str()).map(|_| true)
}

/// Burrows are worktrees of a pool as those of tasks are, and so is what would be lost with them.
fn pool(repository: Repository, folder: &Path) -> Result<(Pool, WorkspaceName), GitError> {
    let name = WorkspaceName::new(&folder.file_name().unwrap_or_default().to_string_lossy())?;
    Ok((Pool::at(repository, folder.parent().unwrap_or(folder))?, name))
}

/// The mirror of a remote, with its news: all branches but those of other runs.
fn mirror(git: &Git, wanted: &Wanted<'_>, remote: &str) -> Result<Repository, GitError> {
    let Wanted { root, branch, .. } = wanted;
    let name: String = Sha256::digest(remote.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let repositories = root.join("repositories");
    let folder = repositories.join(format!("{name}.git"));
    if !folder.is_dir() {
        std::fs::create_dir_all(&repositories).map_err(GitError::file("make", &repositories))?;
        let draft = repositories.join(format!(".{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&draft);
        git.at(&repositories).args(["init", "--quiet", "--bare"]).arg(&draft).run()?;
        git.at(&draft).args(["remote", "add", "--", "origin", remote]).run()?;
        std::fs::rename(&draft, &folder).map_err(GitError::file("put in place", &folder))?;
    }
    let call = git.at(&folder).network().args(["fetch", "--quiet", "--prune", "--no-tags", "--", "origin"]);
    call.args(["+refs/heads/*:refs/remotes/origin/*", "^refs/heads/sluice/run-*"]).run()?;
    fetch(git.at(&folder), branch)?;
    if wanted.commit.is_none() {
        // Without a default branch of the remote's, `main` or `master` is taken.
        let _ = git.at(&folder).network().args(["remote", "set-head", "origin", "--auto"]).answer();
    }
    Repository::open(git.clone(), &folder, None)
}

/// A commit that may only be known to the remote, and on no branch of it.
fn known(repository: &Repository, commit: &str) -> Result<String, GitError> {
    if let Some(found) = repository.commit(commit)? {
        return Ok(found);
    }
    let _ = repository.call().network().args(["fetch", "--quiet", "--no-tags", "--", "origin", commit]).answer()?;
    let missing = || GitError::NoCommit { missing: format!("the commit {commit}, where the step before ended,") };
    repository.commit(commit)?.ok_or_else(missing)
}

/// The news of one branch, which may not be there: therefore the star.
fn fetch(call: Call, branch: &str) -> Result<(), GitError> {
    let news = format!("+refs/heads/{branch}*:refs/remotes/origin/{branch}*");
    call.network().args(["fetch", "--quiet", "--prune", "--no-tags", "--", "origin", &news]).run()
}

/// Puts the worktree where the step is to start. What is there is kept.
fn place(repository: &Repository, folder: &Path, wanted: &Wanted<'_>, start: &str) -> Result<(), GitError> {
    let Wanted { run, branch, .. } = wanted;
    if folder.join(".git").exists() {
        let (pool, name) = pool(repository.clone(), folder)?;
        return pool.restart(&name, run, branch, start);
    }
    let _ = std::fs::remove_dir(folder); // an empty one is in the way
    repository.call().args(["worktree", "prune"]).run()?;
    if let Some(before) = repository.branch_commit(branch)?.filter(|before| before != start) {
        keep(repository, branch, &before)?;
    }
    let reason = format!("sluice: mission {run}");
    let call = repository.call().args(["worktree", "add", "--quiet", "--lock", "--reason", &reason, "-B", branch]);
    call.arg(folder).arg(start).run()
}

/// Keeps a commit that nothing else may reach.
fn keep(repository: &Repository, branch: &str, commit: &str) -> Result<(), GitError> {
    let short: String = commit.chars().take(12).collect();
    repository.call().args(["update-ref", &format!("refs/sluice/keep/{branch}/{short}"), commit]).run()
}
