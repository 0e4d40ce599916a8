//! The one way by which a workspace is emptied or removed and a branch is deleted.
//!
//! It fails closed: what would be lost is kept first, and only what is known to be kept is removed. Files that the
//! default branch ignores too are caches: they stay where they are while the workspace does. Those that only the task's
//! branch ignores may be work, and are moved aside. The branch itself stays.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::furnish;
use super::keep::{self, KeepKind, KeepNote, KeepRef};
use super::risk::{self, KEPT, WorkspaceRisk, unreached};
use super::site::{WorkspaceBinding, WorktreeSite, gone};
use super::sweep::MODULES;
use super::{WorkspaceName, WorkspacePool};
use super::{made, place};
use crate::file::{Durability, write_atomically};
use crate::git::{GitError, Repository, path_of, remove_empty_folders, remove_file};
use crate::merge::BranchTurn;
use crate::passing::PassingError;

/// Branches that begin with this are the engine's.
pub(super) const ENGINES: &str = "sluice/";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchDeletion {
    NotThere,
    /// It is gone; its commits are reachable from elsewhere.
    Deleted,
    /// It is gone; its commits are kept.
    Kept(KeepRef),
}

impl WorkspacePool {
    /// Takes a workspace back: keeps what would be lost for this task, resets it to the default branch, and unbinds it.
    /// TASK.md is removed; whoever needs it has copied it before. What is lent to another task by now is left alone.
    pub fn release(&self, name: &WorkspaceName, task: &str) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)? else { return Ok(None) };
        if site.binding()?.is_some_and(|bound| bound.task != task) {
            return Ok(None);
        }
        if !site.is_present() {
            return self.forget(&site, name, task);
        }
        let (kept, risk, _) = self.clear(&site, task)?;
        site.forget_settings()?;
        let kept = self.leave(&site, task, kept, &risk, &self.repository().default_commit()?)?;
        site.forget_moves()?;
        site.unbind()?;
        Ok(kept)
    }

    /// Removes a workspace altogether, and keeps what would be lost for this task first. What is lent to another task
    /// is refused.
    pub fn destroy(&self, name: &WorkspaceName, task: &str) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock(name)?;
        let bound = self.known(name)?.map(|site| site.binding()).transpose()?.flatten();
        if let Some(WorkspaceBinding { task, branch }) = bound.filter(|bound| bound.task != task) {
            return Err(GitError::Bound { workspace: name.to_string(), branch, task });
        }
        let kept = self.destroy_locked(name, task)?;
        Ok(kept)
    }

    pub(super) fn destroy_locked(&self, name: &WorkspaceName, task: &str) -> Result<Option<KeepRef>, GitError> {
        let Some(site) = self.known(name)? else { return Ok(None) };
        if !site.is_present() {
            return self.forget(&site, name, task);
        }
        let (kept, risk, _) = self.clear(&site, task)?;
        let commit = self.repository().default_commit()?;
        let kept = match ignores_otherwise(&site, &risk, &commit)? {
            true => self.leave(&site, task, kept, &risk, &commit)?,
            false => kept,
        };
        // Renamed first: what is removed half-way can then never be taken for a workspace with deleted files.
        let lock = self.lock_all()?;
        let doomed = place::free_name(&self.root().join(format!("{}{name}", place::REMOVED)));
        fs::rename(&site.folder, &doomed).map_err(GitError::file("cannot move", &site.folder))?;
        // The repositories of submodules lie in what git keeps for the worktree, perhaps with commits of their own.
        let modules = site.admin.join("modules");
        if modules.exists() {
            let project = self.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
            move_to(&modules, &self.repository().common().join("sluice").join(format!("{MODULES}{project}-{name}")))?;
        }
        place::unregister(&site)?;
        drop(lock);
        // Others need not wait for this: it is known to be removed by its name.
        place::remove_tree(&doomed).map_err(GitError::file("cannot remove", &doomed))?;
        Ok(kept)
    }

    /// Keeps what would be lost with a workspace, for this task, and leaves it as it is. Nothing, if nothing would be lost.
    pub fn keep(&self, name: &WorkspaceName, task: &str) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)?.filter(WorktreeSite::is_present) else { return Ok(None) };
        keep::keep(&site, task).map(|(kept, _)| kept)
    }

    /// Puts a worktree on a branch at this commit, whatever it is at: keeps what would be lost for this task first, the
    /// branch's own commits too.
    pub(crate) fn restart(&self, name: &WorkspaceName, task: &str, branch: &str, commit: &str) -> Result<(), GitError> {
        let _lock = self.lock(name)?;
        let site = self.present(name)?;
        let (kept, risk, _) = self.clear(&site, task)?;
        self.leave(&site, task, kept, &risk, commit)?;
        if let Some(tip) = self.repository().branch_commit(branch)?.filter(|tip| tip != commit) {
            keep_tip(self.repository(), &format!("refs/heads/{branch}"), branch, &tip, task)?;
        }
        site.call().args(["checkout", "--quiet", "--no-track", "-B", branch, commit]).run()
    }

    /// Whether a worktree holds nothing that would be lost with it.
    pub(crate) fn is_safe(&self, name: &WorkspaceName) -> Result<bool, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)?.filter(WorktreeSite::is_present) else { return Ok(false) };
        Ok(WorkspaceRisk::of(&site)?.is_empty())
    }

    /// Deletes a local branch that is at this commit, which something else reaches, and no other. It costs the same however
    /// many worktrees and branches there are: the caller knows that the branch is checked out nowhere.
    pub fn drop_branch(&self, branch: &str, commit: &str) -> Result<(), GitError> {
        let (repository, reference) = (self.repository(), format!("refs/heads/{branch}"));
        let ended = repository.call().args(["update-ref", "--no-deref", "-d", &reference, commit]).answer()?;
        match ended.code != Some(0) && repository.commit(&reference)?.is_some() {
            true => Err(GitError::Moved { branch: branch.to_owned() }),
            false => Ok(()),
        }
    }

    /// Deletes a local branch. Commits that nothing else reaches are kept for this task first.
    pub fn delete_branch(&self, branch: &str, task: &str) -> Result<BranchDeletion, GitError> {
        let repository = self.repository();
        repository.drop_broken_branch(branch)?;
        let Some(tip) = repository.branch_commit(branch)? else { return Ok(BranchDeletion::NotThere) };
        if branch == repository.default_branch() {
            return Err(GitError::DefaultBranch { branch: branch.to_owned() });
        }
        if let Some(folder) = repository.checked_out(branch)? {
            return Err(GitError::BranchElsewhere { branch: branch.to_owned(), folder });
        }
        let reference = format!("refs/heads/{branch}");
        if branch.starts_with(ENGINES) {
            self.keep_reset(branch, task)?;
        }
        let kept = keep_tip(repository, &reference, branch, &tip, task)?;
        // Only if it is still where it was when its commits were found to be safe. A branch that is another's name goes alone.
        self.drop_branch(branch, &tip)?;
        forget_settings_of(repository, branch)?;
        Ok(kept.map_or(BranchDeletion::Deleted, BranchDeletion::Kept))
    }

    /// Keeps commits that a branch was put back from, as its log says, and that nothing else reaches: they would go with it.
    pub fn keep_reset(&self, branch: &str, task: &str) -> Result<(), GitError> {
        let left = risk::left_by(self.repository(), branch)?;
        self.keep_commits(&left.into_iter().collect(), None, branch, task)
    }

    /// Keeps those of a task's commits that nothing reaches any more. What was merged is not lost, even if the commits
    /// were made anew for that.
    pub fn keep_commits(
        &self,
        commits: &BTreeSet<String>,
        merged: Option<&str>,
        branch: &str,
        task: &str,
    ) -> Result<(), GitError> {
        let repository = self.repository();
        if commits.is_empty() {
            return Ok(());
        }
        let others: Vec<&str> = merged.into_iter().chain([KEPT]).collect();
        for commit in unreached(repository, commits, &others)? {
            // One that was just kept may reach it.
            if !unreached(repository, &BTreeSet::from([commit.clone()]), &[KEPT])?.is_empty() {
                keep_commit(repository, branch, &commit, task, KeepKind::Commits)?;
            }
        }
        Ok(())
    }

    /// Keeps, and makes sure that any branch can be checked out.
    pub(super) fn make_ready(&self, site: &WorktreeSite, task: &str) -> Result<Option<KeepRef>, GitError> {
        let (kept, risk, was_touched) = self.clear(site, task)?;
        let commit = self.repository().default_commit()?;
        if was_touched { self.leave(site, task, kept, &risk, &commit) } else { Ok(kept) }
    }

    pub(super) fn detach(&self, site: &WorktreeSite, commit: &str) -> Result<(), GitError> {
        let _writes = site.begin_writing()?;
        if site.admin.join("BISECT_START").exists() {
            site.call().args(["bisect", "reset", commit]).run()?;
        }
        site.call().args(["checkout", "--quiet", "--force", "--detach", commit]).run()
    }

    /// Puts it on this commit, without what only the branch ignored that is checked out now: it would be overwritten
    /// where the commit has a file of that name, and be in the next task's way elsewhere.
    pub(super) fn leave(
        &self,
        site: &WorktreeSite,
        task: &str,
        kept: Option<KeepRef>,
        risk: &WorkspaceRisk,
        commit: &str,
    ) -> Result<Option<KeepRef>, GitError> {
        let in_the_way = overwritten(site, risk, commit)?;
        let kept = self.set_apart(site, task, kept, risk, in_the_way)?;
        self.detach(site, commit)?;
        self.set_apart(site, task, kept, risk, unknown(site)?)
    }

    /// Moves aside what only a branch ignored; for that there is a keep, if need be a new one.
    fn set_apart(
        &self,
        site: &WorktreeSite,
        task: &str,
        kept: Option<KeepRef>,
        risk: &WorkspaceRisk,
        paths: Vec<Vec<u8>>,
    ) -> Result<Option<KeepRef>, GitError> {
        if paths.is_empty() {
            return Ok(kept);
        }
        let kept = kept.map_or_else(|| keep::keep_aside(site, task, risk), Ok)?;
        self.set_aside(site, paths, &kept)?;
        Ok(Some(kept))
    }

    /// Keeps, then removes what is kept from the workspace. What was at risk, and whether there was anything to do.
    pub(super) fn clear(
        &self,
        site: &WorktreeSite,
        task: &str,
    ) -> Result<(Option<KeepRef>, WorkspaceRisk, bool), GitError> {
        site.mend_link()?;
        BranchTurn::make_good(site)?;
        place::break_stale_locks(&site.admin);
        let (kept, risk) = match keep::keep(site, task) {
            Err(error) if !error.is_passing() && site.mend_damage()? => keep::keep(site, task)?,
            kept => kept?,
        };
        remove_task_file(site)?;
        risk.listed.show(site, None)?;
        if kept.is_none() && risk.is_untouched(site) {
            return Ok((None, risk, false));
        }
        if let Some(kept) = &kept {
            remove_untracked(site, &risk)?;
            self.set_aside(site, &risk.changes.nested, kept)?;
        }
        let _writes = site.begin_writing()?;
        for path in site.under_way().filter(|path| path.is_dir()) {
            gone(fs::remove_dir_all(&path)).map_err(GitError::file("cannot remove", &path))?;
        }
        if risk.head.is_some() {
            site.call().args(["reset", "--hard", "--quiet"]).run()?;
        }
        if let Some(kept) = &kept {
            // Now the committed rules hold. What only uncommitted rules ignored was perhaps meant to be work.
            self.set_aside(site, unknown(site)?, kept)?;
        }
        Ok((kept, risk, true))
    }

    /// The folder is gone; what git still knows of it is kept and forgotten.
    fn forget(&self, site: &WorktreeSite, name: &WorkspaceName, task: &str) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock_all()?;
        let (kept, _) = keep::keep(site, task)?;
        self.clear_place(name)?;
        place::unregister(site)?;
        Ok(kept)
    }

    /// Moves what git cannot hold to the folder that belongs to a keep.
    fn set_aside<P: AsRef<[u8]>>(
        &self,
        site: &WorktreeSite,
        paths: impl IntoIterator<Item = P>,
        kept: &KeepRef,
    ) -> Result<(), GitError> {
        for path in paths {
            let from = path_of(&site.folder, path.as_ref());
            let to = path_of(&self.aside(kept), path.as_ref());
            move_to(&from, &to)?;
            // A worktree of the same repository must be told where it is now.
            if to.join(".git").is_file() {
                drop(self.repository().call().args(["worktree", "repair"]).arg(&to).answer());
            }
        }
        Ok(())
    }

    /// What belongs to a keep and is not in git.
    pub(super) fn aside(&self, kept: &KeepRef) -> PathBuf {
        self.root().join("aside").join(crate::git::slug(&kept.task)).join(kept.number.to_string())
    }
}

/// Forgets what the settings say about a branch that is gone; most branches have none. git writes the whole file anew for it, and
/// brings it nowhere: after a power cut a person's repository would be without settings. So it is written whole here.
fn forget_settings_of(repository: &Repository, branch: &str) -> Result<(), GitError> {
    let config = repository.common().join("config");
    let Ok(before) = fs::read(&config) else { return Ok(()) };
    if !String::from_utf8_lossy(&before).contains(&format!("[branch \"{branch}\"]")) {
        return Ok(());
    }
    let own = repository.common().join("sluice");
    let copy = own.join(format!("config-{}", std::process::id()));
    fs::create_dir_all(&own).and_then(|()| fs::write(&copy, &before)).map_err(GitError::file("cannot write", &copy))?;
    let call = repository.call().args(["config", "--file"]).arg(&copy);
    call.args(["--remove-section", &format!("branch.{branch}")]).answer()?;
    let after = fs::read(&copy).map_err(GitError::file("cannot read", &copy));
    drop(gone(fs::remove_file(&copy)));
    let after = after?;
    // Another process that has changed it meanwhile goes first; what is said about a branch that is gone does no harm.
    if fs::read(&config).is_ok_and(|now| now == before) {
        write_atomically(&config, &after, Durability::Synced).map_err(GitError::file("cannot write", &config))?;
    }
    Ok(())
}

/// Keeps the commits of a reference that is to go, unless something else reaches them.
pub(crate) fn keep_tip(
    repository: &Repository,
    reference: &str,
    branch: &str,
    tip: &str,
    task: &str,
) -> Result<Option<KeepRef>, GitError> {
    let reaching = repository.reaching(tip, &["refs/heads", "refs/remotes", "refs/tags"])?;
    if reaching.iter().any(|it| it != reference && !it.ends_with("/HEAD")) {
        return Ok(None);
    }
    // A keep of the whole worktree holds more than its branch. A later one of the branch alone would stand before it.
    let own = keep::stored(repository, Some(task))?;
    for kept in own.into_iter().rev().map(|stored| stored.kept) {
        if repository.is_ancestor(tip, &kept.commit)? {
            return Ok(Some(kept));
        }
    }
    keep_commit(repository, branch, tip, task, KeepKind::Branch).map(Some)
}

fn keep_commit(
    repository: &Repository,
    branch: &str,
    tip: &str,
    task: &str,
    what: KeepKind,
) -> Result<KeepRef, GitError> {
    let (branch, head) = (Some(branch.to_owned()), Some(tip.to_owned()));
    let note = KeepNote { branch, head, what: vec![what], ..KeepNote::new(task) };
    keep::write(repository, &note, &repository.tree(tip)?)
}

/// What git neither knows nor ignores, folders as a whole where nothing in them is known.
fn unknown(site: &WorktreeSite) -> Result<Vec<Vec<u8>>, GitError> {
    // What cannot be hidden is kept.
    drop(furnish::hide(site));
    let how = ["--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z"];
    let bytes = site.call().arg("ls-files").args(how).args(made::exclusion(site)?).bytes()?;
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec()).collect())
}

/// What lies where the commit has files and what is checked out has none. All changes have been kept, so git ignores it.
pub(super) fn overwritten(site: &WorktreeSite, risk: &WorkspaceRisk, commit: &str) -> Result<Vec<Vec<u8>>, GitError> {
    let Some(head) = &risk.head else { return Ok(Vec::new()) };
    let how = ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", "--name-only"];
    let bytes = site.call().args(how).args([head, commit]).bytes()?;
    let mut found: Vec<Vec<u8>> = Vec::new();
    for path in bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let ends = (0..path.len()).filter(|at| path[*at] == b'/').chain([path.len()]);
        // The file itself, or a file where one of its folders is to be.
        let there = ends.map(|end| &path[..end]).find(|part| {
            let full = path_of(&site.folder, part);
            fs::symlink_metadata(&full).is_ok_and(|it| *part == path || !it.is_dir())
        });
        if let Some(part) = there.filter(|part| !found.iter().any(|it| it == part)) {
            found.push(part.to_vec());
        }
    }
    Ok(found)
}

/// Whether what is checked out has other rules for what is ignored than this commit.
pub(super) fn ignores_otherwise(site: &WorktreeSite, risk: &WorkspaceRisk, commit: &str) -> Result<bool, GitError> {
    let Some(head) = &risk.head else { return Ok(true) };
    let call = site.call().args(["diff", "--quiet", "--no-ext-diff", head, commit, "--", ":(top,glob)**/.gitignore"]);
    Ok(!call.says_yes()?)
}

/// Removes the task's file, unless the repository has a file of that name, which a reset brings back.
fn remove_task_file(site: &WorktreeSite) -> Result<(), GitError> {
    let path = path_of(&site.folder, site.task_file());
    if fs::symlink_metadata(&path).is_err() {
        return Ok(());
    }
    let tracked = site
        .call()
        .option("--literal-pathspecs")
        .args(["ls-files", "-z", "--"])
        .arg(OsStr::from_bytes(site.task_file()));
    if tracked.bytes()?.is_empty() {
        remove_file(&path)?;
    }
    Ok(())
}

/// Removes exactly the files that are kept, and folders that become empty by it.
fn remove_untracked(site: &WorktreeSite, risk: &WorkspaceRisk) -> Result<(), GitError> {
    for path in &risk.changes.untracked {
        let full = path_of(&site.folder, path);
        remove_file(&full)?;
        remove_empty_folders(&full, &site.folder);
    }
    Ok(())
}

/// Moves a file or folder, and makes the folders on the way.
pub(super) fn move_to(from: &Path, to: &Path) -> Result<(), GitError> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(GitError::file("cannot make", parent))?;
    }
    match fs::symlink_metadata(from) {
        Ok(_) => fs::rename(from, place::free_name(to)).map_err(GitError::file("cannot move", from)),
        Err(_) => Ok(()),
    }
}
