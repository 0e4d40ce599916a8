//! Making the worktrees of the pool, and making them right when someone has moved or removed one.
//!
//! Nothing is deleted here that could be work: a folder that cannot be understood is moved aside, and what git still
//! knows of a folder that is gone is kept.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::keep::{self, KeepRef};
use super::site::{WorktreeSite, gone};
use super::{OTHER_TASK_FILE, TASK_FILE, WorkspaceName, WorkspacePool};
use crate::file::DRAFT;
use crate::git::{GitError, Repository};
use crate::lock::FileLock;

/// How old a lock in a workspace must be to be a dead program's: whoever worked there has been ended before it is
/// emptied.
const STALE: Duration = Duration::from_secs(2);

/// What the name of something begins with that stood where a worktree was to be.
pub(super) const LOST: &str = "lost-";
/// The folder of a worktree that is being removed begins with this.
pub(super) const REMOVED: &str = ".removed-";

/// A worktree that is there, and what had to be done for it.
pub(super) struct PlacedWorktree {
    pub(super) site: WorktreeSite,
    /// Its files are still to be written.
    pub(super) is_new: bool,
    /// Work of a worktree whose folder was gone.
    pub(super) kept: Option<KeepRef>,
    /// A folder that was in the way and could not be understood, where it is now.
    pub(super) set_aside: Option<PathBuf>,
}

impl WorkspacePool {
    /// The worktree of this name, mended if it was moved; nothing if there is none.
    pub(super) fn known(&self, name: &WorkspaceName) -> Result<Option<WorktreeSite>, GitError> {
        let folder = self.folder(name);
        let site = match WorktreeSite::find(self.repository(), &folder)? {
            Some(site) => Some(site),
            None => WorktreeSite::reunite(self.repository(), &folder)?,
        };
        site.map(|site| site.make_good().map(|()| site)).transpose()
    }

    /// The worktree of this name, whose folder must be there.
    pub(super) fn present(&self, name: &WorkspaceName) -> Result<WorktreeSite, GitError> {
        let missing = || GitError::NoWorkspace { workspace: name.to_string() };
        self.known(name)?.filter(WorktreeSite::is_present).ok_or_else(missing)
    }

    /// The worktree of this name, made if need be.
    pub(super) fn place(&self, name: &WorkspaceName) -> Result<PlacedWorktree, GitError> {
        let _lock = self.lock_all()?;
        self.exclude_task_file()?;
        let folder = self.folder(name);
        let (mut kept, mut set_aside) = (None, None);
        if let Some(site) = self.known(name)? {
            if site.is_present() {
                site.mend_link()?;
                let is_lost = site.binding()?.is_none() && site.may_have_lost();
                if is_lost {
                    site.start_over()?;
                }
                let is_new = is_lost || site.is_unfinished()?;
                return Ok(PlacedWorktree { site, is_new, kept, set_aside });
            }
            let task = site.binding()?.map_or_else(|| name.as_owner(), |binding| binding.task);
            (kept, _) = keep::keep(&site, &task)?;
            set_aside = self.clear_place(name)?;
            unregister(&site)?;
        } else {
            set_aside = self.clear_place(name)?;
        }
        let commit = self.repository().default_commit()?;
        // The files are written later, when others need not wait for it.
        let site = WorktreeSite::create(self.repository(), &folder, &commit)?;
        site.begin()?;
        Ok(PlacedWorktree { site, is_new: true, kept, set_aside })
    }

    /// Moves away a folder of which git knows nothing any more, when its task gives it back: where it is now. What is in it may be
    /// work, and no keep can hold it.
    pub fn set_lost_aside(&self, name: &WorkspaceName) -> Result<Option<PathBuf>, GitError> {
        let _lock = self.lock(name)?;
        if self.known(name)?.is_some() {
            return Ok(None);
        }
        let _all = self.lock_all()?;
        self.clear_place(name)
    }

    /// Moves away what stands where a worktree is to be: where it is now. An empty folder is removed, and of a link only the
    /// link is moved.
    pub(super) fn clear_place(&self, name: &WorkspaceName) -> Result<Option<PathBuf>, GitError> {
        let folder = self.folder(name);
        if fs::symlink_metadata(&folder).is_err() || fs::remove_dir(&folder).is_ok() {
            return Ok(None);
        }
        let to = free_name(&self.root().join("aside").join(format!("{LOST}{name}")));
        super::release::move_to(&folder, &to)?;
        Ok(Some(to))
    }

    /// Tells git, once for all worktrees of the repository, that the file of a task is not part of the work, nor is a draft of it
    /// that stands beside it for a moment: an agent that commits everything would take it along.
    pub(super) fn exclude_task_file(&self) -> Result<(), GitError> {
        let names = [TASK_FILE, OTHER_TASK_FILE].map(String::from_utf8_lossy);
        let lines = names.iter().flat_map(|name| [format!("/{name}"), format!("/.{name}{DRAFT}*")]);
        exclude(self.repository(), &lines.collect::<Vec<String>>())
    }
}

/// Adds rules to what git ignores in all worktrees of a repository, unless they are there. Several processes may do so at the
/// same time: each looks again when it is its turn.
pub(super) fn exclude(repository: &Repository, lines: &[String]) -> Result<(), GitError> {
    let path = repository.common().join("info/exclude");
    if missing(&path, lines)?.1.is_empty() {
        return Ok(());
    }
    let _turn = exclude_turn(repository)?;
    let folder = repository.common().join("info");
    fs::create_dir_all(&folder).map_err(GitError::file("cannot make", &folder))?;
    let (start, missing) = missing(&path, lines)?;
    if missing.is_empty() {
        return Ok(());
    }
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("{start}{missing}").as_bytes()));
    written.map_err(GitError::file("cannot write", &path))
}

/// The turn to change what git ignores in a repository.
pub(super) fn exclude_turn(repository: &Repository) -> Result<FileLock, GitError> {
    let own = repository.common().join("sluice");
    fs::create_dir_all(&own).map_err(GitError::file("cannot make", &own))?;
    super::lock(&own.join("exclude.lock"), "what git ignores in the repository")
}

/// The lines that a file does not have, and what must stand before them.
fn missing(path: &Path, lines: &[String]) -> Result<(&'static str, String), GitError> {
    let there = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(GitError::file("cannot read", path)(error)),
    };
    let known: BTreeSet<&str> = there.lines().map(str::trim_end).collect();
    let is_missing = |line: &&String| !known.contains(line.as_str());
    let missing = lines.iter().filter(is_missing).map(|line| format!("{line}\n")).collect();
    Ok((if there.is_empty() || there.ends_with('\n') { "" } else { "\n" }, missing))
}

pub(super) fn call_is_odd(repository: &Repository, folder: &Path) -> GitError {
    repository.call().args(["worktree", "add"]).arg(folder).odd("the worktree is not registered")
}

/// Makes git forget a worktree whose folder is gone. What it knew has been kept.
pub(super) fn unregister(site: &WorktreeSite) -> Result<(), GitError> {
    let call = site.repository.call().args(["worktree", "remove", "--force", "--force"]).arg(&site.folder);
    let mut ended = call.answer()?;
    if ended.code != Some(0) && site.is_present() && open_folders(&site.folder) {
        ended = call.answer()?;
    }
    if ended.code != Some(0) && site.admin.exists() { Err(call.failed(&ended)) } else { Ok(()) }
}

/// Removes a folder with all that is in it. What could be work has been kept: folders of our own that were made read-only, as
/// some caches are, go as well.
pub(crate) fn remove_tree(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && open_folders(folder) => fs::remove_dir_all(folder),
        removed => removed,
    }
}

/// Lets us write in all folders below this one that do not let us. Whether there was one.
fn open_folders(folder: &Path) -> bool {
    let mut was_closed = false;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(about) = fs::symlink_metadata(&folder) else { continue };
        if about.is_dir() && about.permissions().mode() & 0o700 != 0o700 {
            let mode = about.permissions().mode() | 0o700;
            was_closed |= fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).is_ok();
        }
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(below.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|entry| entry.path()));
    }
    was_closed
}

/// Removes locks that a killed git has left in a worktree of ours; those of the shared repository are not ours. A lock
/// that is not old yet is given the time to become so, or to go.
pub(crate) fn break_stale_locks(admin: &Path) {
    let entries = fs::read_dir(admin).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.extension().is_some_and(|it| it == "lock")) {
        while let Ok(written) = fs::metadata(&path).and_then(|it| it.modified()) {
            let age = SystemTime::now().duration_since(written).unwrap_or(STALE);
            if age >= STALE {
                drop(gone(fs::remove_file(&path)));
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
    // git locks a worktree while it makes it, and a kill leaves that lock.
    let locked = admin.join("locked");
    if fs::read_to_string(&locked).is_ok_and(|reason| reason.trim() == "initializing") {
        drop(gone(fs::remove_file(&locked)));
    }
}

/// The path, or the same with the first number that makes it new.
pub(super) fn free_name(path: &Path) -> PathBuf {
    let mut name = path.to_owned();
    let mut number = 1;
    while fs::symlink_metadata(&name).is_ok() {
        number += 1;
        name = path.with_file_name(format!("{}-{number}", path.file_name().unwrap_or_default().to_string_lossy()));
    }
    name
}
