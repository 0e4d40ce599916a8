//! What the engine does in a worktree that it has lent: committing what lies there, merging a branch into it, putting it back.
//!
//! Nothing that stands in the worktree says where that happens. git is told the folder, what it keeps for it and which
//! repository that is, and only the branch moves on which the worktree was lent, or one that was made there since. Work on
//! another branch is brought to the worktree's own, and the other stays where it is. A merge is made in memory. Only what is
//! merged without a conflict comes into the worktree, in the same way as into the user's checkout: what an engine that is
//! killed meanwhile leaves half done is made good at the next look. So no worktree ever holds conflict markers of ours, and
//! nothing that is half brought there is committed.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::furnish;
use super::keep;
use super::made::as_made;
use super::place;
use super::release::ENGINES;
use super::site::WorktreeSite;
use crate::git::{GitCall, GitError, Repository, shown};
use crate::merge::{BranchTurn, advance, commit_tree, merged_tree, unused_drivers};
use crate::process::lives_below;

const BRANCHES: &str = "refs/heads/";

/// A worktree that is lent on a branch, as the engine works in it.
#[derive(Debug)]
pub struct BoundWorktree {
    site: WorktreeSite,
    branch: String,
}

/// On what a worktree is.
enum CommitPlace {
    /// On its own branch, on one that was made there since, or in the middle of a rebase.
    Own,
    /// On another branch, by its name, or on none.
    Other(Option<String>),
}

impl BoundWorktree {
    /// The worktree at this folder. It must be the folder itself, and a worktree of this repository; what else leads elsewhere
    /// is put right. Without a branch, that counts which was noted when it was lent.
    pub fn at(repository: &Repository, folder: &Path, branch: Option<&str>) -> Result<BoundWorktree, GitError> {
        let not_ours = |why: &str| GitError::NotOurs { folder: folder.to_owned(), why: why.to_owned() };
        match fs::symlink_metadata(folder) {
            Ok(it) if it.is_symlink() => return Err(not_ours("a link stands in its place")),
            Ok(it) if it.is_dir() => {}
            Ok(_) | Err(_) => return Err(not_ours("there is no folder")),
        }
        let site = match WorktreeSite::find(repository, folder)? {
            Some(site) => Some(site),
            None => WorktreeSite::reunite(repository, folder)?,
        };
        let site = site.ok_or_else(|| not_ours("the repository knows no worktree there"))?;
        site.make_good()?;
        site.mend_link()?;
        drop_place_settings(&site)?;
        let branch = match branch {
            Some(branch) => Some(branch.to_owned()),
            None => match site.binding()? {
                Some(bound) => Some(bound.branch),
                None => site.branch()?,
            },
        };
        let branch = branch.ok_or_else(|| not_ours("it is on no branch"))?;
        Ok(BoundWorktree { site, branch })
    }

    fn call(&self) -> GitCall {
        self.site.call()
    }

    fn reference(&self) -> String {
        format!("{BRANCHES}{}", self.branch)
    }

    /// The commit that is checked out.
    pub fn head(&self) -> Result<String, GitError> {
        self.call().looking().args(["rev-parse", "HEAD"]).text()
    }

    /// The commit, and whether there is something that no commit holds.
    pub fn standing(&self) -> Result<(String, bool), GitError> {
        let dirty = self.call().looking().args(["status", "--porcelain", "--untracked-files=all"]).text()?;
        Ok((self.head()?, !dirty.is_empty()))
    }

    /// Commits everything, new files too; nothing if there is nothing to commit. Conflicts that were left there unresolved are
    /// refused. The user's own hooks are not run: this is bookkeeping.
    pub fn commit_all(&self, message: &str) -> Result<Option<String>, GitError> {
        self.break_locks_of_the_dead();
        let turn = BranchTurn::of(&self.site)?;
        let unmerged = self.call().args(["ls-files", "--unmerged", "-z"]).bytes()?;
        let path = |entry: &[u8]| entry.split(|byte| *byte == b'\t').nth(1).map(shown);
        let mut files: Vec<String> = unmerged.split(|byte| *byte == 0).filter_map(path).collect();
        files.dedup(); // one for each side
        if !files.is_empty() {
            return Err(GitError::Unresolved { folder: self.site.folder.clone(), files });
        }
        match self.place()? {
            CommitPlace::Own => self.commit_as_it_is(message),
            CommitPlace::Other(found) => self.bring_home(&turn, found, message),
        }
    }

    /// A git that was killed leaves its lock, and nothing could be committed any more. What lives there may hold one.
    fn break_locks_of_the_dead(&self) {
        if !lives_below(&self.site.folder) {
            place::break_stale_locks(&self.site.admin);
        }
    }

    fn add_all(&self) -> Result<(), GitError> {
        furnish::hide(&self.site)?;
        // What is reported as committed is there after a power cut, too.
        self.call().durable_with_index().args(["add", "--all"]).run()?;
        // What set-up made is not work while nothing has changed it; a file of the last commit stays as it is staged.
        let made = as_made(&self.site)?;
        if made.is_empty() {
            return Ok(());
        }
        let how = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let reset = self.call().option("--literal-pathspecs").args(["reset", "--quiet"]).args(how);
        reset.input(made.join(&0)).text().map(drop)
    }

    /// Commits everything, conflicts too: for what is only put away.
    fn commit_as_it_is(&self, message: &str) -> Result<Option<String>, GitError> {
        self.add_all()?;
        if self.call().args(["diff", "--cached", "--quiet", "--no-ext-diff"]).answer()?.code == Some(0) {
            return Ok(None);
        }
        let call = self.call().durable_with_index();
        let call = call.args(["commit", "--quiet", "--no-verify", "--message", message]);
        self.site.repository.signed(call)?.run()?;
        self.head().map(Some)
    }

    fn place(&self) -> Result<CommitPlace, GitError> {
        // Of a branch that is only another name, git says whose.
        let Some(on) = self.call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()? else {
            let is_under_way = self.site.under_way().next().is_some();
            return Ok(if is_under_way { CommitPlace::Own } else { CommitPlace::Other(None) });
        };
        let is_own = on == self.reference() || self.is_made_here(&on)?;
        Ok(if is_own { CommitPlace::Own } else { CommitPlace::Other(Some(on)) })
    }

    /// Whether a branch is one that whoever works here has made: it is younger than the loan, and checked out nowhere else.
    fn is_made_here(&self, reference: &str) -> Result<bool, GitError> {
        let repository = &self.site.repository;
        let Some(branch) = reference.strip_prefix(BRANCHES) else { return Ok(false) };
        if branch == repository.default_branch() || branch.starts_with(ENGINES) {
            return Ok(false);
        }
        let is_elsewhere =
            |it: &crate::git::RegisteredCheckout| it.branch.as_deref() == Some(branch) && it.folder != self.site.folder;
        if repository.registered()?.iter().any(is_elsewhere) {
            return Ok(false);
        }
        if repository.commit(reference)?.is_none() {
            return Ok(true); // it is about to get its first commit
        }
        let since = repository.branch_since(branch)?.and_then(|since| u64::try_from(since).ok());
        let (Some(since), Some(lent)) = (since, self.lent_since()) else { return Ok(false) };
        Ok(Duration::from_secs(since) >= lent)
    }

    /// Since when it is lent, as far as its notes say, in whole seconds since 1970.
    fn lent_since(&self) -> Option<Duration> {
        let notes = [super::site::BINDING, "commondir"].map(|name| self.site.admin.join(name));
        let written = notes.iter().find_map(|note| fs::metadata(note).and_then(|it| it.modified()).ok())?;
        let since = written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Duration::from_secs(since.as_secs()))
    }

    /// Brings what lies here to the worktree's own branch, and the worktree back to it. The branch on which it lies stays where
    /// it is. What cannot be brought there is kept. Broken off at any moment, it comes to the same when it is done again.
    fn bring_home(
        &self,
        turn: &BranchTurn<'_>,
        found: Option<String>,
        message: &str,
    ) -> Result<Option<String>, GitError> {
        let (repository, reference) = (&self.site.repository, self.reference());
        let shown = found.as_deref().map(|on| format!("`{}`", on.strip_prefix(BRANCHES).unwrap_or(on)));
        let shown = shown.unwrap_or_else(|| "no branch".to_owned());
        let folder = repository.checked_out(&self.branch)?.filter(|folder| *folder != self.site.folder);
        if let Some(folder) = folder {
            let why = format!("`{}` is checked out in {}", self.branch, folder.display());
            return Err(self.kept_apart(shown, why));
        }
        let _writes = self.site.begin_writing()?;
        self.add_all()?;
        let lying = self.call().durable().arg("write-tree").text()?;
        let (head, tip) = (self.site.head()?, repository.commit(&reference)?);
        let new = match self.brought(turn, (head.as_deref(), found.is_none()), tip.as_deref(), &lying, message) {
            Err(GitError::Conflict { files, .. }) => {
                return Err(self.kept_apart(shown, format!("they conflict in {}", files.join(", "))));
            }
            new => new?,
        };
        if tip.as_ref() != Some(&new) {
            let nothing = "0".repeat(new.len());
            let call = repository.call().durable().args(["update-ref", "--no-deref", "--create-reflog"]);
            let call = call.args(["-m", "sluice: brought here", &reference, &new, tip.as_deref().unwrap_or(&nothing)]);
            let ended = call.answer()?;
            if ended.code != Some(0) {
                let is_moved = repository.commit(&reference)? != tip;
                let moved = GitError::Moved { branch: self.branch.clone() };
                return Err(if is_moved { moved } else { call.failed(&ended) });
            }
        }
        if repository.tree(&new)? != lying {
            self.call().args(["read-tree", "-m", "-u", &lying, &new]).run()?;
        }
        // As git itself writes it down, so that commits which were made on no branch are found.
        let from = match &found {
            Some(on) => on.strip_prefix(BRANCHES).unwrap_or(on),
            None => head.as_deref().unwrap_or_default(),
        };
        let moved = format!("checkout: moving from {from} to {}", self.branch);
        self.call().args(["symbolic-ref", "-m", &moved, "HEAD", &reference]).run()?;
        Ok(Some(new).filter(|new| tip.as_ref() != Some(new)))
    }

    /// The commit that the worktree's own branch comes to: what lies here, as a change of what is checked out, on its tip.
    fn brought(
        &self,
        turn: &BranchTurn<'_>,
        (head, is_detached): (Option<&str>, bool),
        tip: Option<&str>,
        lying: &str,
        message: &str,
    ) -> Result<String, GitError> {
        let repository = &self.site.repository;
        let on = |parent: &str, tree: &str| match repository.tree(parent)? == tree {
            true => Ok(parent.to_owned()),
            false => commit_tree(repository, tree, &[parent], message),
        };
        let (head, tip) = match (head, tip) {
            (Some(head), Some(tip)) => (head, tip),
            (Some(only), None) | (None, Some(only)) => return on(only, lying),
            (None, None) => return commit_tree(repository, lying, &[], message),
        };
        // Commits that were made on no branch go along.
        if is_detached && repository.is_ancestor(tip, head)? {
            return on(head, lying);
        }
        if head == tip {
            return on(tip, lying);
        }
        let work = on(head, lying)?;
        if work == head {
            return Ok(tip.to_owned());
        }
        on(tip, &merged_tree(turn, ("the work", &self.branch), Some(head), tip, &work)?)
    }

    /// Keeps what lies here. The error that says so.
    fn kept_apart(&self, found: String, why: String) -> GitError {
        let kept = || {
            let owner = self.site.binding()?.map_or_else(|| self.site.name(), |bound| bound.task);
            keep::keep(&self.site, &owner)
        };
        match kept() {
            Err(error) => error,
            Ok((kept, _)) => {
                let kept =
                    kept.map_or_else(|| "it lies there".to_owned(), |kept| format!("it is kept as {}", kept.reference));
                let why = format!("it is on {found}, and {why}; {kept}");
                GitError::OffBranch { folder: self.site.folder.clone(), branch: self.branch.clone(), why }
            }
        }
    }

    /// Puts it back to a commit. What was changed since then is kept on `branch`.
    pub fn put_back(&self, commit: &str, branch: &str) -> Result<(), GitError> {
        self.site.repository.check_branch(branch)?;
        let message = "changed by a step that may not";
        let _writes = self.site.begin_writing()?;
        if let CommitPlace::Other(_) = self.place()? {
            // What it was changed on is no matter: the content is what is kept.
            self.add_all()?;
            let lying = self.call().durable().arg("write-tree").text()?;
            let changed = commit_tree(&self.site.repository, &lying, &[commit], message)?;
            self.call().durable().args(["branch", "--force", "--", branch, &changed]).run()?;
            self.call().args(["checkout", "--quiet", "--force", "--no-track", "-B", &self.branch, commit]).run()?;
            return Ok(());
        }
        self.commit_as_it_is(message)?;
        self.call().durable().args(["branch", "--force", "--", branch, "HEAD"]).run()?;
        self.call().args(["reset", "--quiet", "--hard", commit, "--"]).run()
    }

    /// Merges a branch into what is checked out; the error names the files that are in conflict, and then nothing is changed.
    /// What else one should know of it.
    pub fn merge_in(&self, branch: &str, message: &str) -> Result<Option<String>, GitError> {
        let turn = BranchTurn::of(&self.site)?;
        let repository = &self.site.repository;
        if let CommitPlace::Other(found) = self.place()? {
            self.bring_home(&turn, found, message)?;
        }
        let gone = || GitError::NoBranch { branch: branch.to_owned() };
        let theirs = repository.branch_commit(branch)?.ok_or_else(gone)?;
        let ours = self.call().args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        if repository.is_ancestor(&theirs, &ours)? {
            return Ok(None);
        }
        let (new, note) = if repository.is_ancestor(&ours, &theirs)? {
            (theirs, None)
        } else {
            let into = self.call().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
            let into = into.unwrap_or_else(|| self.site.folder.display().to_string());
            let tree = merged_tree(&turn, (branch, &into), None, &ours, &theirs)?;
            let new = commit_tree(repository, &tree, &[&ours, &theirs], message)?;
            (new, unused_drivers(repository, &ours, &theirs))
        };
        advance(&turn, Some(&ours), &new).map(|()| note)
    }

    /// The tree of two commits merged in memory.
    pub(crate) fn merged(&self, names: (&str, &str), ours: &str, theirs: &str) -> Result<String, GitError> {
        merged_tree(&BranchTurn::of(&self.site)?, names, None, ours, theirs)
    }
}

/// Forgets what the settings of a worktree itself say about where its files are: the steps after it would work there.
fn drop_place_settings(site: &WorktreeSite) -> Result<(), GitError> {
    let settings = site.admin.join("config.worktree");
    if !settings.exists() {
        return Ok(());
    }
    for name in ["core.worktree", "core.bare"] {
        // It says by its exit code that there was none.
        site.repository.call().args(["config", "--file"]).arg(&settings).args(["--unset-all", name]).answer()?;
    }
    Ok(())
}
