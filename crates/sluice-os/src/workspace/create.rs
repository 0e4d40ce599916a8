//! Making a worktree that git knows, whose files are still to be written.
//!
//! `git worktree add` makes what git keeps for a worktree file by file, in the place where every git of the repository looks: one
//! that looks meanwhile, a person's own, fails because `commondir` is still empty, and after a power cut it stays so for ever.
//! Here all of it is made elsewhere and gets its place at once.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::place;
use super::risk::is_id;
use super::site::{WorktreeSite, gone};
use super::unsynced::UNSYNCED;
use crate::file::{Durability, write_atomically};
use crate::git::{GitError, Repository};

/// Where a worktree's folder is made before git sees it, in our own part of what git keeps for a repository.
const DRAFTS: &str = "sluice/worktrees";
/// How often git may remove the folder of all worktrees under one that is being made.
const MOST_VANISHED: u32 = 1000;

impl WorktreeSite {
    /// Makes a worktree at this commit, on no branch, without its files. Nothing stands in its place.
    pub(crate) fn create(repository: &Repository, folder: &Path, commit: &str) -> Result<WorktreeSite, GitError> {
        let commit = if is_id(commit) { commit.to_owned() } else { commit_of(repository, commit)? };
        if needs_git(repository) {
            return WorktreeSite::create_by_git(repository, folder, &commit);
        }
        fs::create_dir_all(folder).map_err(GitError::file("cannot make", folder))?;
        let draft = AdminDraft::make(repository, folder, &commit)?;
        let admin = draft.place(repository, folder)?;
        Ok(WorktreeSite { repository: repository.clone(), folder: folder.to_owned(), admin })
    }

    /// In a repository that keeps more for a worktree than we know.
    fn create_by_git(repository: &Repository, folder: &Path, commit: &str) -> Result<WorktreeSite, GitError> {
        let call = repository.call().args(["worktree", "add", "--quiet", "--force", "--detach", "--no-checkout"]);
        call.arg(folder).arg(commit).run()?;
        let site = WorktreeSite::find(repository, folder)?;
        site.ok_or_else(|| place::call_is_odd(repository, folder))
    }

    /// Writes all files of what is checked out, where none has been written yet.
    pub(crate) fn fill(&self, commit: &str) -> Result<(), GitError> {
        let _writes = self.begin_writing()?;
        let filled = self.call().args(["read-tree", "--reset", "-u", "HEAD"]).run();
        filled.map_err(|error| commit_of(&self.repository, commit).err().unwrap_or(error))
    }
}

/// The commit of this name, which must be there.
fn commit_of(repository: &Repository, name: &str) -> Result<String, GitError> {
    repository.commit(name)?.ok_or_else(|| GitError::NoCommit { missing: format!("`{name}`") })
}

/// What git keeps for a worktree, before git sees it.
struct AdminDraft(PathBuf);

impl AdminDraft {
    fn make(repository: &Repository, folder: &Path, commit: &str) -> Result<AdminDraft, GitError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let all = repository.common().join(DRAFTS);
        remove_those_of_the_dead(&all);
        let draft = AdminDraft(all.join(format!("{}-{number}", std::process::id())));
        // One that a process with this number has left.
        gone(fs::remove_dir_all(&draft.0)).map_err(GitError::file("cannot remove", &draft.0))?;
        fs::create_dir_all(draft.0.join("refs")).map_err(GitError::file("cannot make", &draft.0))?;
        let link = [folder.join(".git").as_os_str().as_bytes(), b"\n"].concat();
        let head = format!("{commit}\n");
        let files: [(&str, &[u8], Durability); 4] = [
            (UNSYNCED, b"", Durability::Cached),
            ("HEAD", head.as_bytes(), Durability::Cached),
            ("gitdir", &link, Durability::Cached),
            // No git works in the repository while this one is empty; the others are made right when they are not.
            ("commondir", b"../..\n", Durability::Synced),
        ];
        for (name, bytes, durability) in files {
            let path = draft.0.join(name);
            write_atomically(&path, bytes, durability).map_err(GitError::file("cannot write", &path))?;
        }
        Ok(draft)
    }

    /// Gives it its place, under a name that no other worktree has. The folder leads there before git can ask.
    fn place(self, repository: &Repository, folder: &Path) -> Result<PathBuf, GitError> {
        let all = repository.common().join("worktrees");
        let link = folder.join(".git");
        let id = id_of(folder);
        let (mut number, mut vanished) = (0_u64, 0);
        loop {
            fs::create_dir_all(&all).map_err(GitError::file("cannot make", &all))?;
            let admin = all.join(if number == 0 { id.clone() } else { format!("{id}{number}") });
            if fs::symlink_metadata(&admin).is_ok() {
                number += 1;
                continue;
            }
            let line = [b"gitdir: ", admin.as_os_str().as_bytes(), b"\n"].concat();
            fs::write(&link, line).map_err(GitError::file("cannot write", &link))?;
            match fs::rename(&self.0, &admin) {
                Ok(()) => return Ok(admin),
                // Another has just taken the name.
                Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {}
                // A git that removes the last worktree removes the folder of all of them with it, at any moment.
                Err(error) if error.kind() == ErrorKind::NotFound && vanished < MOST_VANISHED => vanished += 1,
                Err(error) => return Err(GitError::file("cannot move", &self.0)(error)),
            }
        }
    }
}

impl Drop for AdminDraft {
    fn drop(&mut self) {
        drop(gone(fs::remove_dir_all(&self.0)));
    }
}

/// Removes what processes that were killed have left.
fn remove_those_of_the_dead(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name.split('-').next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        if maker.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            // What stays does no harm.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// What git would call a worktree: the name of its folder, as far as it can be part of a reference's.
pub(super) fn id_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let id: String = name.chars().map(|it| if fits(it) { it } else { '-' }).collect();
    if id.is_empty() { "worktree".to_owned() } else { id }
}

/// Whether a repository keeps more for a worktree than the files that are known here: references in another form, or settings
/// that each worktree gets a part of.
fn needs_git(repository: &Repository) -> bool {
    let config = fs::read_to_string(repository.common().join("config")).unwrap_or_default().to_lowercase();
    config.contains("refstorage") || repository.common().join("config.worktree").exists()
}
