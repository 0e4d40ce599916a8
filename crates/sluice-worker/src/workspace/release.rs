//! The one way by which a workspace is emptied or removed and a branch is deleted.
//!
//! It fails closed: what would be lost is kept first, and only what is known to be kept is removed. Files that the
//! default branch ignores too stay where they are, so that caches stay warm; those that only the task's branch ignores
//! are removed. The branch itself stays.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::keep::{self, Kept, Kind, Note};
use super::place;
use super::risk::Risk;
use super::site::{Binding, Site, gone};
use super::{Pool, TASK_FILE, WorkspaceName};
use crate::git::{GitError, path_of};

/// What became of a branch that was to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There was none.
    NotThere,
    /// It is gone; its commits are reachable from elsewhere.
    Deleted,
    /// It is gone; its commits are kept.
    Kept(Kept),
}

impl Pool {
    /// Takes a workspace back: keeps what would be lost for this task, resets it to the default branch, and unbinds it.
    /// TASK.md is removed; whoever needs it has copied it before. What is lent to another task by now is left alone.
    pub fn release(&self, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)? else { return Ok(None) };
        if site.binding()?.is_some_and(|bound| bound.task != task) {
            return Ok(None);
        }
        if !site.is_present() {
            return self.forget(&site, name, task);
        }
        let kept = self.empty(&site, name, task)?;
        site.unbind()?;
        Ok(kept)
    }

    /// Removes a workspace altogether, and keeps what would be lost for this task first. What is lent to another task
    /// is refused.
    pub fn destroy(&self, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let _lock = self.lock(name)?;
        let bound = self.known(name)?.map(|site| site.binding()).transpose()?.flatten();
        if let Some(Binding { task, branch }) = bound.filter(|bound| bound.task != task) {
            return Err(GitError::Bound { workspace: name.to_string(), branch, task });
        }
        self.destroy_locked(name, task)
    }

    pub(super) fn destroy_locked(&self, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let Some(site) = self.known(name)? else { return Ok(None) };
        if !site.is_present() {
            return self.forget(&site, name, task);
        }
        let (kept, _) = self.clear(&site, name, task)?;
        // Renamed first: what is removed half-way can then never be taken for a workspace with deleted files.
        let _lock = self.lock_all()?;
        let doomed = place::free_name(&self.root().join(format!(".removed-{name}")));
        fs::rename(&site.folder, &doomed).map_err(GitError::file("cannot move", &site.folder))?;
        // The repositories of submodules lie in what git keeps for the worktree, perhaps with commits of their own.
        let modules = site.admin.join("modules");
        if modules.exists() {
            let project = self.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
            move_to(&modules, &self.repository().common().join("sluice").join(format!("modules-{project}-{name}")))?;
        }
        place::unregister(&site)?;
        fs::remove_dir_all(&doomed).map_err(GitError::file("cannot remove", &doomed))?;
        Ok(kept)
    }

    /// Deletes a local branch. Commits that nothing else reaches are kept for this task first.
    pub fn delete_branch(&self, branch: &str, task: &str) -> Result<Deleted, GitError> {
        let repository = self.repository();
        let Some(tip) = repository.branch_commit(branch)? else { return Ok(Deleted::NotThere) };
        if branch == repository.default_branch() {
            return Err(GitError::DefaultBranch { branch: branch.to_owned() });
        }
        if let Some(folder) = repository.checked_out(branch)? {
            return Err(GitError::BranchElsewhere { branch: branch.to_owned(), folder });
        }
        let reference = format!("refs/heads/{branch}");
        let kept = keep_tip(repository, &reference, branch, &tip, task)?;
        // Only if it is still where it was when its commits were found to be safe.
        let ended = repository.call().args(["update-ref", "-d", &reference, &tip]).answer()?;
        if ended.code != Some(0) && repository.commit(&reference)?.is_some() {
            return Err(GitError::Moved { branch: branch.to_owned() });
        }
        // What the settings say about a branch that is gone; most branches have none.
        repository.call().args(["config", "--remove-section", &format!("branch.{branch}")]).answer()?;
        Ok(kept.map_or(Deleted::Deleted, Deleted::Kept))
    }

    /// Keeps, then resets to the default branch.
    pub(super) fn empty(&self, site: &Site, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let (kept, _) = self.clear(site, name, task)?;
        self.detach(site)?;
        Ok(kept)
    }

    /// Keeps, and makes sure that any branch can be checked out.
    pub(super) fn make_ready(&self, site: &Site, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let (kept, was_touched) = self.clear(site, name, task)?;
        if was_touched {
            self.detach(site)?;
        }
        Ok(kept)
    }

    /// Puts it on the default branch's commit.
    pub(super) fn detach(&self, site: &Site) -> Result<(), GitError> {
        let commit = self.repository().default_commit()?;
        if site.admin.join("BISECT_START").exists() {
            site.call().args(["bisect", "reset", &commit]).run()?;
        }
        site.call().args(["checkout", "--quiet", "--force", "--detach", &commit]).run()?;
        // What only the task's branch ignored.
        site.call().args(["clean", "-ffdq"]).run()
    }

    /// Keeps, then removes what is kept from the workspace. Whether there was anything to do.
    fn clear(&self, site: &Site, name: &WorkspaceName, task: &str) -> Result<(Option<Kept>, bool), GitError> {
        site.mend_link()?;
        place::break_stale_locks(site);
        let (kept, risk) = keep::keep(site, task, name.as_str())?;
        remove_task_file(site)?;
        if kept.is_none() && risk.is_untouched(site) {
            return Ok((None, false));
        }
        if let Some(kept) = &kept {
            remove_untracked(site, &risk)?;
            self.set_aside(site, &risk.changes.nested, kept)?;
        }
        for path in site.under_way().filter(|path| path.is_dir()) {
            gone(fs::remove_dir_all(&path)).map_err(GitError::file("cannot remove", &path))?;
        }
        if risk.head.is_some() {
            site.call().args(["reset", "--hard", "--quiet"]).run()?;
        }
        if let Some(kept) = &kept {
            // Now the committed rules hold. What only uncommitted rules ignored was perhaps meant to be work.
            let call = site.call().args(["ls-files", "--others", "--exclude-standard", "--directory", "-z"]);
            let left = call.bytes()?;
            let left = left.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            self.set_aside(site, left.map(|path| path.strip_suffix(b"/").unwrap_or(path)), kept)?;
        }
        Ok((kept, true))
    }

    /// The folder is gone; what git still knows of it is kept and forgotten.
    fn forget(&self, site: &Site, name: &WorkspaceName, task: &str) -> Result<Option<Kept>, GitError> {
        let _lock = self.lock_all()?;
        let (kept, _) = keep::keep(site, task, name.as_str())?;
        place::unregister(site)?;
        Ok(kept)
    }

    /// Moves what git cannot hold to the folder that belongs to a keep.
    fn set_aside<P: AsRef<[u8]>>(
        &self,
        site: &Site,
        paths: impl IntoIterator<Item = P>,
        kept: &Kept,
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
    pub(super) fn aside(&self, kept: &Kept) -> PathBuf {
        self.root().join("aside").join(crate::git::slug(&kept.task)).join(kept.number.to_string())
    }
}

/// Keeps the commits of a reference that is to go, unless something else reaches them.
pub(crate) fn keep_tip(
    repository: &crate::git::Repository,
    reference: &str,
    branch: &str,
    tip: &str,
    task: &str,
) -> Result<Option<Kept>, GitError> {
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
    let mut note = Note::new(task);
    note.branch = Some(branch.to_owned());
    note.head = Some(tip.to_owned());
    note.what = vec![Kind::Branch];
    let tree = repository.call().args(["rev-parse", "--verify", &format!("{tip}^{{tree}}")]).text()?;
    keep::write(repository, &note, &tree).map(Some)
}

/// Removes TASK.md, unless the repository has a file of that name, which a reset brings back.
fn remove_task_file(site: &Site) -> Result<(), GitError> {
    let path = path_of(&site.folder, TASK_FILE);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(());
    }
    let tracked =
        site.call().option("--literal-pathspecs").args(["ls-files", "-z", "--"]).arg(OsStr::from_bytes(TASK_FILE));
    if tracked.bytes()?.is_empty() {
        gone(fs::remove_file(&path)).map_err(GitError::file("cannot remove", &path))?;
    }
    Ok(())
}

/// Removes exactly the files that are kept, and folders that become empty by it.
fn remove_untracked(site: &Site, risk: &Risk) -> Result<(), GitError> {
    for path in &risk.changes.untracked {
        let full = path_of(&site.folder, path);
        gone(fs::remove_file(&full)).map_err(GitError::file("cannot remove", &full))?;
        let mut folder = full.parent();
        while let Some(empty) = folder.filter(|it| *it != site.folder && fs::remove_dir(it).is_ok()) {
            folder = empty.parent();
        }
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
