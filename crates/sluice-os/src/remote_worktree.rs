//! The worktree of a run on a machine that has no checkout of its own: made from the repository's remote, and brought back
//! there after every step. A step that writes while others do has one of its own; where the run has moved on meanwhile, both
//! are merged.
//!
//! A mirror of the remote is kept beside the worktrees, so that only news is fetched. Nothing is ever forced over commits
//! that were not seen, and what an earlier attempt left behind is kept as that of any worktree is: under
//! `refs/sluice/keep/`, and what git cannot hold in the folder `aside`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::git::{Git, GitCall, GitError, Repository, said};
use crate::merge::commit_tree;
use crate::workspace::{BoundWorktree, WorkspaceName, WorkspacePool, target};

#[derive(Debug)]
pub struct RemoteWorktree {
    pub folder: PathBuf,
    shared: Option<SharedBranch>,
}

#[derive(Debug)]
struct SharedBranch {
    repository: Repository,
    branch: String,
    /// Where the remote's branch was when it was last seen; nothing if it was not there.
    seen: Option<String>,
    /// The branch that a step has to itself.
    own: String,
    /// Of which run, and whether the worktree is its step's alone.
    run: String,
    is_own: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct RemoteWorktreeRequest<'a> {
    /// The folder with all mirrors and worktrees of this machine.
    pub root: &'a Path,
    pub run: &'a str,
    pub branch: &'a str,
    /// The name of the step's own worktree and branch.
    pub own: &'a str,
    /// Whether it works there, and not in the run's.
    pub is_own: bool,
    /// Where the repository is; a plain folder unless given.
    pub remote: Option<&'a str>,
    /// Where to start; where the remote's default branch is unless given.
    pub commit: Option<&'a str>,
    /// Whether an agent or a script is at work there since before: then nothing is touched.
    pub goes_on: bool,
}

impl RemoteWorktree {
    /// Where a worktree is, whether or not it is there.
    pub fn place(wanted: &RemoteWorktreeRequest<'_>) -> PathBuf {
        let name = match wanted.is_own {
            true => format!("part-{}", wanted.own),
            false => format!("mission-{}", wanted.run),
        };
        wanted.root.join("burrows").join(name)
    }

    /// Makes a worktree ready, or finds it.
    pub fn open(git: &Git, wanted: &RemoteWorktreeRequest<'_>) -> Result<RemoteWorktree, GitError> {
        let folder = RemoteWorktree::place(wanted);
        let Some(remote) = wanted.remote else {
            std::fs::create_dir_all(&folder).map_err(GitError::file("make", &folder))?;
            return Ok(RemoteWorktree { folder, shared: None });
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
        let RemoteWorktreeRequest { run, branch, own, is_own, .. } = *wanted;
        let (run, branch, own) = (run.to_owned(), branch.to_owned(), own_branch(own));
        Ok(RemoteWorktree { folder, shared: Some(SharedBranch { repository, branch, seen, own, run, is_own }) })
    }

    /// Commits everything. The commit that it stands at then; nothing without a remote.
    pub fn commit(&self, message: &str) -> Result<Option<String>, GitError> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let bound = self.bound(shared)?;
        bound.commit_all(message)?;
        bound.head().map(Some)
    }

    fn bound(&self, shared: &SharedBranch) -> Result<BoundWorktree, GitError> {
        let branch = if shared.is_own { &shared.own } else { &shared.branch };
        BoundWorktree::at(&shared.repository, &self.folder, Some(branch))
    }

    /// Brings a commit of this worktree to the run's branch on the remote, merged with the commit at which the run's work
    /// stands. The commit that the branch is at then. Where something else was pushed meanwhile, `is_ours` says whether the
    /// turn is still ours: then that is kept here and replaced there.
    pub fn bring(
        &self,
        commit: &str,
        onto: Option<&str>,
        message: &str,
        is_ours: impl FnOnce() -> bool,
    ) -> Result<Option<String>, GitError> {
        let Some(shared @ SharedBranch { repository, branch, seen, .. }) = &self.shared else { return Ok(None) };
        let new = match onto {
            Some(onto) => self.merged(shared, commit, &known(repository, onto)?, message)?,
            None => commit.to_owned(),
        };
        let refspec = format!("{new}:refs/heads/{branch}");
        let push = |seen: &Option<String>| {
            let lease = format!("--force-with-lease=refs/heads/{branch}:{}", seen.as_deref().unwrap_or_default());
            repository.call().network().args(["push", "--quiet", &lease, "--", "origin", &refspec]).answer()
        };
        // What a lost attempt brought there is not where this one began, and would be gone.
        match seen {
            Some(theirs) if !repository.is_ancestor(theirs, &new)? => keep(repository, branch, theirs)?,
            Some(_) | None => {}
        }
        let mut ended = push(seen)?;
        if ended.code != Some(0) {
            fetch(repository.call(), branch)?;
            let now = repository.commit(&format!("refs/remotes/origin/{branch}"))?;
            if now != *seen && is_ours() {
                now.iter().try_for_each(|theirs| match repository.is_ancestor(theirs, &new)? {
                    true => Ok(()),
                    false => keep(repository, branch, theirs),
                })?;
                ended = push(&now)?;
            }
        }
        match ended.code {
            Some(0) => Ok(Some(new)),
            _ => Err(GitError::Push { remote: "origin".into(), what: format!("`{branch}`"), said: said(&ended) }),
        }
    }

    /// Two commits in one: that of the run first. Nothing is checked out.
    fn merged(&self, shared: &SharedBranch, commit: &str, onto: &str, message: &str) -> Result<String, GitError> {
        let SharedBranch { repository, branch, own, .. } = shared;
        if repository.is_ancestor(onto, commit)? {
            return Ok(commit.to_owned());
        }
        if repository.is_ancestor(commit, onto)? {
            return Ok(onto.to_owned());
        }
        let tree = self.bound(shared)?.merged((own, branch), onto, commit)?;
        commit_tree(repository, &tree, &[onto, commit], message)
    }

    /// Brings a commit to the step's own branch on the remote: it is not the run's, and is not to be lost either. The branch.
    pub fn put_apart(&self, commit: &str) -> Result<Option<String>, GitError> {
        let Some(SharedBranch { repository, own, .. }) = &self.shared else { return Ok(None) };
        let refspec = format!("+{commit}:refs/heads/{own}");
        let ended = repository.call().network().args(["push", "--quiet", "--", "origin", &refspec]).answer()?;
        match ended.code {
            Some(0) => Ok(Some(own.clone())),
            _ => Err(GitError::Push { remote: "origin".into(), what: format!("`{own}`"), said: said(&ended) }),
        }
    }

    /// Whether a commit holds nothing but where the step began.
    pub fn is_start(&self, commit: &str, start: Option<&str>) -> Result<bool, GitError> {
        let Some(SharedBranch { repository, .. }) = &self.shared else { return Ok(true) };
        let start = match start {
            Some(start) => start.to_owned(),
            None => repository.default_commit()?,
        };
        repository.is_ancestor(commit, &start)
    }

    /// Removes a worktree that was its step's alone. What would be lost is kept.
    pub fn discard(self) -> Result<(), GitError> {
        let Some(SharedBranch { repository, own, run, is_own: true, .. }) = self.shared else { return Ok(()) };
        let (pool, name) = pool(repository, &self.folder)?;
        pool.destroy(&name, &run)?;
        pool.delete_branch(&own, &run).map(drop)
    }
}

/// The branch that a step has to itself: where its work is while it is not the run's.
pub fn own_branch(own: &str) -> String {
    format!("sluice/part-{own}")
}

/// Removes the worktrees that `is_old` says so of and that hold nothing which their remote does not have. Gives their folders.
pub fn forget(git: &Git, root: &Path, is_old: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("burrows")).into_iter().flatten().flatten();
    let old = entries.map(|entry| entry.path()).filter(|folder| is_old(folder));
    old.filter(|folder| remove(git, folder).unwrap_or(false)).collect()
}

/// Removes a worktree whose work its remote has. Whether it did. What only its branch ignores is set aside.
fn remove(git: &Git, folder: &Path) -> Result<bool, GitError> {
    if !folder.join(".git").exists() {
        return Ok(false);
    }
    let common = git.at(folder).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]).text()?;
    let repository = Repository::open(git.clone(), Path::new(&common), None)?;
    let (head, is_dirty) = repository.standing(folder)?;
    if is_dirty {
        return Ok(false);
    }
    // What other runs ask the remote for makes the mirror forget where it has this branch.
    let branch = git.at(folder).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
    if let Some(branch) = &branch {
        fetch(repository.call(), branch)?;
    }
    if repository.reaching(&head, &["refs/remotes/origin"])?.is_empty() {
        return Ok(false);
    }
    let (pool, name) = pool(repository, folder)?;
    if !pool.is_safe(&name)? {
        return Ok(false);
    }
    pool.destroy(&name, name.as_str())?;
    branch.map_or(Ok(()), |branch| pool.delete_branch(&branch, name.as_str()).map(drop)).map(|()| true)
}

/// Burrows are worktrees of a pool as those of tasks are, and so is what would be lost with them.
fn pool(repository: Repository, folder: &Path) -> Result<(WorkspacePool, WorkspaceName), GitError> {
    let name = WorkspaceName::new(&folder.file_name().unwrap_or_default().to_string_lossy())?;
    Ok((WorkspacePool::at(repository, folder.parent().unwrap_or(folder))?, name))
}

/// The mirror of a remote, with its news: all branches but those of other runs.
fn mirror(git: &Git, wanted: &RemoteWorktreeRequest<'_>, remote: &str) -> Result<Repository, GitError> {
    let RemoteWorktreeRequest { root, branch, .. } = wanted;
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
    let others = ["^refs/heads/sluice/run-*", "^refs/heads/sluice/part-*"];
    call.arg("+refs/heads/*:refs/remotes/origin/*").args(others).run()?;
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
fn fetch(call: GitCall, branch: &str) -> Result<(), GitError> {
    let news = format!("+refs/heads/{branch}*:refs/remotes/origin/{branch}*");
    call.network().args(["fetch", "--quiet", "--prune", "--no-tags", "--", "origin", &news]).run()
}

/// Puts the worktree where the step is to start. What is there is kept.
fn place(
    repository: &Repository,
    folder: &Path,
    wanted: &RemoteWorktreeRequest<'_>,
    start: &str,
) -> Result<(), GitError> {
    let RemoteWorktreeRequest { run, .. } = wanted;
    let own = own_branch(wanted.own);
    let branch = if wanted.is_own { own.as_str() } else { wanted.branch };
    if folder.join(".git").exists() {
        let (pool, name) = pool(repository.clone(), folder)?;
        if pool.knows(&name)? {
            return pool.restart(&name, run, branch, start);
        }
        // In a home that was copied it leads to the mirror of the other home, and the mirror knows the worktrees of that one.
        pool.set_lost_aside(&name)?;
        forget_others(repository, pool.root());
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

/// Makes a mirror forget worktrees that are not in this folder. The mirror has no others of its own.
fn forget_others(repository: &Repository, root: &Path) {
    for entry in std::fs::read_dir(repository.common().join("worktrees")).into_iter().flatten().flatten() {
        let is_own = |folder: PathBuf| folder.parent() == Some(root);
        if !target(&entry.path()).is_some_and(is_own) {
            // What stays is in the way, and git says so.
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// Keeps a commit that nothing else may reach.
fn keep(repository: &Repository, branch: &str, commit: &str) -> Result<(), GitError> {
    let short: String = commit.chars().take(12).collect();
    repository.call().args(["update-ref", &format!("refs/sluice/keep/{branch}/{short}"), commit]).run()
}
