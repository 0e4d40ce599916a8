//! Spare worktrees: a worktree that is given back as it was lent is lent again, under another name and on another branch. That
//! saves git the work of writing every file once more.
//!
//! A spare stands beside the worktrees, with a name that none of them can have, on no branch. It holds nothing of those who
//! had it: a worktree in which anything is new, an ignored file or a setting of its own, never becomes one.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::create::id_of;
use super::keep;
use super::listed::IndexListing;
use super::place;
use super::risk::{self, WorkspaceRisk};
use super::site::{WorktreeSite, gone};
use super::unsynced::UNSYNCED;
use super::{WorkspaceBinding, WorkspaceName, WorkspacePool};
use crate::file::DRAFT;
use crate::git::{CheckoutChanges, GitError, remove_file};

/// What the name of a spare begins with.
pub const SPARE: &str = ".spare-";

/// The note that the files of a spare are being written or removed, so that what is missing or different is no work.
const IN_FLUX: &str = "sluice-in-flux";

/// What git keeps for a worktree that is as it was made. Anything else tells of something that was done there: a bisect, a
/// submodule, a setting.
const USUAL: [&str; 10] = [
    "HEAD",
    "ORIG_HEAD",
    "commondir",
    "gitdir",
    "index",
    "logs",
    "refs",
    "sluice-binding",
    "sluice-task-file-taken",
    UNSYNCED,
];

/// A worktree that is lent to no one. It is gone from git and from the disk only by [`WorkspacePool::discard`].
#[derive(Debug)]
pub struct SpareWorktree {
    site: WorktreeSite,
    commit: String,
}

impl WorkspacePool {
    /// Makes a spare at this commit.
    pub fn make_spare(&self, commit: &str) -> Result<SpareWorktree, GitError> {
        self.exclude_task_file()?;
        let folder = self.root().join(new_name());
        let site = WorktreeSite::create(self.repository(), &folder, commit)?;
        match site.fill(commit).and_then(|()| site.choose_task_file()) {
            Ok(()) => Ok(SpareWorktree { site, commit: commit.to_owned() }),
            Err(error) => {
                // What stays is removed by the next engine.
                drop(self.remove_spare(&site));
                Err(error)
            }
        }
    }

    /// Lends a worktree at this commit, on a new branch: the spare that is given, or a new one. What an earlier try has left in
    /// the place, or a branch that is there already, is looked at by [`WorkspacePool::acquire`].
    pub fn lend(
        &self,
        spare: Option<SpareWorktree>,
        name: &WorkspaceName,
        binding: &WorkspaceBinding,
        base: &str,
    ) -> Result<(), LendFailure> {
        if fs::symlink_metadata(self.folder(name)).is_err() {
            // One whose folder is gone is of no use; git forgets it.
            let spare = match spare {
                Some(spare) if spare.site.is_present() => spare,
                Some(gone) => {
                    self.discard(gone)?;
                    self.make_spare(base)?
                }
                None => self.make_spare(base)?,
            };
            match self.take_up(&spare, name, binding, base) {
                Ok(true) => return Ok(()),
                Ok(false) => self.discard(spare)?,
                // It has its place already, where the next try finds it.
                Err(error) if fs::symlink_metadata(self.folder(name)).is_ok() => return Err(error.into()),
                Err(error) => {
                    let left = self.discard(spare).err().and_then(|failure| failure.left);
                    return Err(LendFailure { error, left });
                }
            }
        } else if let Some(spare) = spare {
            self.discard(spare)?;
        }
        self.acquire(name, binding, Some(base)).map(drop).map_err(LendFailure::from)
    }

    /// Gives a spare a new branch at this commit, then this name, which no folder may have. False, and it is a spare still, if
    /// there is such a branch. Killed in between it is a spare that is on the branch, and [`WorkspacePool::discard_left`] leaves
    /// the branch.
    fn take_up(
        &self,
        spare: &SpareWorktree,
        name: &WorkspaceName,
        binding: &WorkspaceBinding,
        base: &str,
    ) -> Result<bool, GitError> {
        let _lock = self.lock(name)?;
        let site = &spare.site;
        let _writes = site.begin_writing()?;
        let switches = spare.commit != base;
        if switches {
            site.note_flux()?;
        }
        let call =
            site.call().args(["checkout", "--quiet", "--no-guess", "--no-track", "-b", &binding.branch, base, "--"]);
        let mut ended = call.answer()?;
        if ended.code != Some(0) && self.repository().drop_broken_branch(&binding.branch)? {
            ended = call.answer()?;
        }
        if ended.code != Some(0) {
            let is_there = self.repository().branch_commit(&binding.branch)?.is_some();
            return if is_there { Ok(false) } else { Err(call.failed(&ended)) };
        }
        if switches {
            site.choose_task_file()?;
            remove_file(&site.admin.join(IN_FLUX))?;
        }
        site.bind(binding, Some(base))?;
        spare.site.clone().renamed(self.folder(name)).map(|_| true)
    }

    /// Takes back a worktree whose branch is still where it began, and makes a spare of it; the branch goes. Nothing, and nothing
    /// is changed, if anything is new in it.
    pub fn park(
        &self,
        name: &WorkspaceName,
        binding: &WorkspaceBinding,
        base: &str,
    ) -> Result<Option<SpareWorktree>, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)?.filter(WorktreeSite::is_present) else { return Ok(None) };
        let is_lent_on = site.binding()?.is_some_and(|bound| bound.task != binding.task);
        if is_lent_on || !is_as_lent(&site, &binding.branch, base)? {
            return Ok(None);
        }
        let _writes = site.begin_writing()?;
        site.call().args(["update-ref", "--no-deref", "HEAD", base]).run()?;
        match self.drop_branch(&binding.branch, base) {
            Ok(()) => {}
            Err(GitError::Moved { .. }) => return Ok(None), // at this moment
            Err(error) => return Err(error),
        }
        site.unbind()?;
        // What it says of other branches would be looked through by the next who gives it back.
        remove_file(&site.admin.join("logs/HEAD"))?;
        let site = site.renamed(self.root().join(new_name()))?;
        Ok(Some(SpareWorktree { site, commit: base.to_owned() }))
    }

    /// Removes a spare from git and from the disk.
    pub fn discard(&self, spare: SpareWorktree) -> Result<(), LendFailure> {
        self.remove_spare(&spare.site).map_err(|error| LendFailure { error, left: Some(Box::new(spare)) })
    }

    /// Removes a spare that an earlier process has left. It was killed in the middle of something, so that what could be work is
    /// kept first.
    pub fn discard_left(&self, folder: &Path) -> Result<(), GitError> {
        let site = match WorktreeSite::find(self.repository(), folder)? {
            Some(site) => Some(site),
            None => WorktreeSite::reunite(self.repository(), folder)?,
        };
        let Some(site) = site else {
            gone(place::remove_tree(folder)).map_err(GitError::file("cannot remove", folder))?;
            // A power cut has left both without what leads to the other.
            let admin = self.repository().common().join("worktrees").join(id_of(folder));
            let is_its = admin.is_dir() && super::site::target(&admin).is_none();
            let removed = if is_its { place::remove_tree(&admin) } else { Ok(()) };
            return gone(removed).map_err(GitError::file("cannot remove", &admin));
        };
        place::break_stale_locks(&site.admin);
        // One whose files were not all written when it was made has no index. It was lent to no one; nor was one that was being
        // removed. In one of an earlier start of the machine nothing lives on that could have written there.
        let is_safe = site.may_have_lost() || site.admin.join(IN_FLUX).exists();
        if site.admin.join("index").exists() && !is_safe {
            keep::keep(&site, &site.binding()?.map_or_else(|| "spare".to_owned(), |bound| bound.task))?;
        }
        self.remove_spare(&site)
    }

    /// Killed in the middle of it, [`WorkspacePool::discard_left`] goes on.
    fn remove_spare(&self, site: &WorktreeSite) -> Result<(), GitError> {
        if !site.admin.exists() {
            let removed = if site.is_present() { place::remove_tree(&site.folder) } else { Ok(()) };
            return gone(removed).map_err(GitError::file("cannot remove", &site.folder));
        }
        if !site.is_present() {
            // Of a link that stands in its place only the link goes.
            remove_file(&site.folder)?;
        }
        // A full disk has no room for the note, and the removal makes room.
        drop(site.note_flux());
        match place::unregister(site) {
            // git does not remove one of which a power cut has left it no HEAD. Nothing in a spare is work.
            Err(_) if site.may_have_lost() => [&site.folder, &site.admin].into_iter().try_for_each(|folder| {
                gone(place::remove_tree(folder)).map_err(GitError::file("cannot remove", folder))
            }),
            removed => removed,
        }
    }
}

impl WorktreeSite {
    fn note_flux(&self) -> Result<(), GitError> {
        let path = self.admin.join(IN_FLUX);
        fs::write(&path, "").map_err(GitError::file("cannot write", &path))
    }
}

/// Why a worktree was not lent or a spare not removed.
#[derive(Debug)]
pub struct LendFailure {
    pub error: GitError,
    /// A spare that could not be removed, to be tried again.
    pub left: Option<Box<SpareWorktree>>,
}

impl From<GitError> for LendFailure {
    fn from(error: GitError) -> LendFailure {
        LendFailure { error, left: None }
    }
}

/// Whether this process made the spare of this name, or parked it.
pub fn is_own_spare(name: &str) -> bool {
    name.starts_with(&format!("{SPARE}{}-", *PROCESS))
}

/// What tells the spares of this process from those of earlier ones.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}x{}", std::process::id(), since.as_micros())
});

fn new_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{SPARE}{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a worktree is as it was lent: nothing of its own in it, on its branch or on none, at this commit.
fn is_as_lent(site: &WorktreeSite, branch: &str, base: &str) -> Result<bool, GitError> {
    let entries = fs::read_dir(&site.admin).map_err(GitError::file("cannot read", &site.admin))?;
    // A draft is of a file that was being written when its process was killed.
    let is_usual = |name: String| USUAL.contains(&name.as_str()) || (name.starts_with('.') && name.contains(DRAFT));
    if !entries.filter_map(Result::ok).all(|entry| is_usual(entry.file_name().to_string_lossy().into_owned())) {
        return Ok(false);
    }
    // A branch that was put back has left commits, and a reference of the worktree's own would be the next one's.
    if !risk::left_by(&site.repository, branch)?.is_empty() || site.has_own_references() {
        return Ok(false);
    }
    let listed = IndexListing::of(site)?;
    let changes = CheckoutChanges::with_ignored(site.call())?;
    let is_there = changes.branch.as_deref().is_none_or(|it| it == branch) && changes.head.as_deref() == Some(base);
    if !is_there || changes.has_ignored || !changes.is_empty() || listed != IndexListing::default() {
        return Ok(false);
    }
    let risk = WorkspaceRisk::with(site, listed, changes)?;
    Ok(risk.is_empty() && risk.is_untouched(site))
}
