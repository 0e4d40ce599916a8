//! Moving the default branch together with the checkout it is in, so that a power cut at any moment is made good.
//!
//! The order: a note of what is to be done, durable; the checkout's `index.lock`, with our mark in it, so that no git of
//! the user's comes in between; the files, with an index of our own beside the user's; the branch, compared and swapped;
//! the new index in place of the old; the note and the lock away. Whoever comes next and finds a note does what is left:
//! see [`recover`]. One at a time in a repository, whatever home it is asked from.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::note::Note;
use super::recover::{self, Side};
use crate::git::{Call, Changes, GitError, Repository, path_of, shown};
use crate::workspace::Lock;

/// How long another git may hold the checkout's index.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many changed files a refusal names.
const NAMED_FILES: usize = 5;
/// What our `index.lock` begins with; git's own is an index and begins with `DIRC`, or is empty.
const MARK: &str = "sluice merges here";

/// The right to move the default branch of a repository. What a merge before it left half done has been made good.
pub(crate) struct Turn {
    lock: Lock,
}

impl Turn {
    /// Waits for those before, and makes good what they left.
    pub(crate) fn take(repository: &Repository) -> Result<Turn, GitError> {
        let folder = Note::folder(repository);
        fs::create_dir_all(&folder).map_err(GitError::file("cannot make", &folder))?;
        let lock = Lock::take(&folder.join("merge.lock"), "the default branch")?;
        let turn = Turn { lock };
        recover::recover(repository, &turn)?;
        Ok(turn)
    }

    /// The call holds this turn too: if we die, whoever is next waits for it as well.
    pub(super) fn hold(&self, call: Call) -> Result<Call, GitError> {
        Ok(call.holding(self.lock.handle()?))
    }
}

/// A checkout of the default branch, and where git keeps what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Checkout {
    pub(super) folder: PathBuf,
    pub(super) admin: PathBuf,
}

impl Checkout {
    /// Where the branch is checked out.
    pub(super) fn of(repository: &Repository, branch: &str) -> Result<Option<Checkout>, GitError> {
        let Some(folder) = repository.checked_out(branch)?.filter(|folder| folder.is_dir()) else { return Ok(None) };
        let bytes = repository.git().at(&folder).args(["rev-parse", "--absolute-git-dir"]).bytes()?;
        let admin = path_of(Path::new(""), bytes.strip_suffix(b"\n").unwrap_or(&bytes));
        Ok(Some(Checkout { folder, admin }))
    }

    pub(super) fn index(&self) -> PathBuf {
        self.admin.join("index")
    }

    /// The index that our git writes, beside the user's.
    pub(super) fn own_index(&self) -> PathBuf {
        self.admin.join("sluice-index")
    }

    fn lock(&self) -> PathBuf {
        self.admin.join("index.lock")
    }

    /// Whether the lock of the index is one of ours. Whoever has the turn knows that its maker is dead.
    pub(super) fn is_locked_by_us(&self) -> bool {
        fs::read(self.lock()).is_ok_and(|bytes| bytes.starts_with(MARK.as_bytes()))
    }

    /// Takes the lock of the index, as git would. Another git is waited for, for a bounded time.
    pub(super) fn lock_index(&self) -> Result<(), GitError> {
        let path = self.lock();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match File::create_new(&path) {
                Ok(mut file) => {
                    let written =
                        writeln!(file, "{MARK}: process {}", std::process::id()).and_then(|()| file.sync_all());
                    return written.map_err(GitError::file("cannot write", &path));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && Instant::now() < deadline => {
                    // git does not say when it lets go of a lock, so one asks again.
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(GitError::Locked { lock: path, folder: self.folder.clone() });
                }
                Err(error) => return Err(GitError::file("cannot make", &path)(error)),
            }
        }
    }

    /// Lets go of the lock, if it is ours.
    pub(super) fn unlock_index(&self) -> Result<(), GitError> {
        if !self.is_locked_by_us() {
            return Ok(());
        }
        remove(&self.lock())
    }
}

/// Moves the default branch from where it was seen to its new commit, with the checkout it is in.
pub(super) fn advance(repository: &Repository, turn: &Turn, old: Option<&str>, new: &str) -> Result<(), GitError> {
    if old == Some(new) {
        return Ok(());
    }
    let branch = repository.default_branch();
    let Some(checkout) = Checkout::of(repository, branch)? else {
        let note = Note::new(repository, None, old, new)?;
        note.write(repository)?;
        swap(repository, turn, repository.folder(), old, new)?;
        return Note::remove(repository);
    };
    let note = Note::new(repository, Some(&checkout), old, new)?;
    refuse_changes(repository, &checkout, &note)?;
    note.write(repository)?;
    if let Err(error) = checkout.lock_index() {
        Note::remove(repository)?;
        return Err(error);
    }
    let moved =
        go_along(repository, turn, &checkout, &note).and_then(|()| swap(repository, turn, &checkout.folder, old, new));
    if let Err(error) = moved {
        recover::make_good(repository, &checkout, &note, Side::Old)?;
        return Err(error);
    }
    recover::finish(repository, &checkout, Side::New)?;
    // As a merge by hand does: what a person may go back to, and the hook that fetches what belongs to new files.
    let call = || repository.git().at(&checkout.folder);
    if let Some(old) = old {
        drop(call().args(["update-ref", "ORIG_HEAD", old]).answer());
    }
    drop(call().hooks().args(["hook", "run", "--ignore-missing", "post-merge", "--", "0"]).answer());
    Ok(())
}

/// Writes the files of the new commit, and an index of our own that knows them. git itself refuses to touch a file that
/// somebody has changed meanwhile.
fn go_along(repository: &Repository, turn: &Turn, checkout: &Checkout, note: &Note) -> Result<(), GitError> {
    let own = checkout.own_index();
    match fs::copy(checkout.index(), &own) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(GitError::file("cannot write", &own)(error)),
        Ok(_) | Err(_) => {}
    }
    let call = || repository.git().at(&checkout.folder).env("GIT_INDEX_FILE", &own);
    // A file that was touched and not changed is no change.
    call().args(["update-index", "-q", "--refresh"]).answer()?;
    let call = turn.hold(call().args(["read-tree", "-m", "-u", &note.from, &note.new]))?;
    let ended = call.answer()?;
    if ended.code == Some(0) {
        return Ok(());
    }
    // What changed since it was looked at is named, if that was the reason.
    refuse_changes(repository, checkout, note).and_then(|()| Err(call.failed(&ended)))
}

/// Compares and swaps the branch.
fn swap(repository: &Repository, turn: &Turn, at: &Path, old: Option<&str>, new: &str) -> Result<(), GitError> {
    let branch = repository.default_branch();
    let nothing = "0".repeat(new.len());
    let reference = format!("refs/heads/{branch}");
    let call = repository.git().at(at).hooks();
    let call = call.args(["update-ref", "-m", "sluice: merge", &reference, new, old.unwrap_or(&nothing)]);
    let call = turn.hold(call)?;
    let ended = call.answer()?;
    match ended.code {
        Some(0) => Ok(()),
        _ if repository.branch_commit(branch)?.as_deref() == old => Err(call.failed(&ended)),
        _ => Err(GitError::Moved { branch: branch.to_owned() }),
    }
}

/// Nothing is begun in a checkout with changes, nor where a file lies in the way of a new one.
fn refuse_changes(repository: &Repository, checkout: &Checkout, note: &Note) -> Result<(), GitError> {
    let changes = Changes::of(repository.git().at(&checkout.folder))?;
    let changed = changes.tracked.iter().map(|(path, _)| path).chain(changes.unmerged.iter().map(|it| &it.path));
    let mut files: Vec<String> = changed.map(|path| shown(path)).collect();
    if checkout.admin.join("MERGE_HEAD").exists() {
        files.push("a merge that is under way".to_owned());
    }
    let new = note.differing(repository)?.into_iter().filter(|entry| entry.old.is_none());
    // A folder may have been known until now; git finds out.
    let lies = |path: &[u8]| fs::symlink_metadata(path_of(&checkout.folder, path)).is_ok_and(|it| !it.is_dir());
    let in_the_way = new.filter(|entry| lies(&entry.path));
    files.extend(in_the_way.map(|entry| format!("{} in the way", shown(&entry.path))));
    files.dedup();
    if files.is_empty() {
        return Ok(());
    }
    let more = files.len().saturating_sub(NAMED_FILES);
    files.truncate(NAMED_FILES);
    let mut named = files.join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    let (branch, folder) = (repository.default_branch().to_owned(), checkout.folder.clone());
    Err(GitError::Dirty { branch, folder, files: named })
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(GitError::file("cannot remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
