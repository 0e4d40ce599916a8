//! Making good what a move left half done: forward where the branch has moved, else back.
//!
//! Where the branch is decides, and nothing else: an index that a power cut has spoiled is made anew. Only what the move
//! itself can have written is touched. A file that is neither as it was, nor as it was to become, nor the beginning of
//! that, is a person's or an agent's own and stays as it is. A lock is removed only if it is ours and its maker is dead: our
//! index locks carry a mark, and the turn is held by every git of ours as long as it lives.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::advance::{BranchTurn, MergeCheckout};
use super::note::{MergeNote, MergeNoteEntry};
use crate::git::{GitCall, GitError, Repository, path_of, quote, remove_empty_folders, remove_file};
use crate::passing::PassingError;

/// How long a git that may hold a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeSide {
    Old,
    New,
}

/// The entries of an index: mode and blob by path.
type IndexEntries = BTreeMap<Vec<u8>, (String, String)>;

enum PathContent {
    Nothing,
    File(String, String),
    /// A folder, or something else that is no file.
    Other,
}

/// Does what is left of a move that was under way when its process died.
pub(super) fn recover(turn: &BranchTurn<'_>) -> Result<(), GitError> {
    let repository = turn.repository;
    let Some((note, written)) = MergeNote::read(turn)? else {
        // The note goes before the lock.
        let (_, checkout) = turn.place()?;
        return checkout.map_or(Ok(()), |checkout| checkout.unlock_index(repository));
    };
    let checkout = note.checkout().filter(|checkout| checkout.folder.is_dir() && checkout.admin.is_dir());
    // Whoever works in a worktree can write such a note, and one that speaks of another checkout is none of ours.
    if turn.is_of_another(checkout.as_ref()) {
        return MergeNote::remove(turn);
    }
    let admin = checkout.as_ref().map_or(repository.common(), |checkout| &checkout.admin);
    for lock in [admin.join("HEAD.lock"), repository.common().join(format!("refs/heads/{}.lock", note.branch))] {
        break_stale(repository, &lock, &note, written)?;
    }
    let Some(checkout) = checkout else { return MergeNote::remove(turn) };
    if !checkout.is_locked_by_us(repository) {
        checkout.lock_index()?;
    }
    make_good(turn, &checkout, &note).map(drop)
}

/// Brings the checkout to the commit that its branch is at, the new or the old one, and lets go of everything.
/// Which of the two it is.
pub(super) fn make_good(
    turn: &BranchTurn<'_>,
    checkout: &MergeCheckout,
    note: &MergeNote,
) -> Result<MergeSide, GitError> {
    let repository = turn.repository;
    let has_moved = match note.tip(repository, Some(checkout))? {
        Some(tip) => tip == note.new || note.old.as_ref() != Some(&tip) && repository.is_ancestor(&note.new, &tip)?,
        None => false,
    };
    let side = if has_moved { MergeSide::New } else { MergeSide::Old };
    let half = HalfDoneMove { repository, checkout, note, side, entries: note.differing(repository)? };
    half.write_files(&half.index()?)?;
    finish(turn, checkout).map(|()| side)
}

/// The files are written: the index that knows them takes its place, and everything is let go of.
pub(super) fn finish(turn: &BranchTurn<'_>, checkout: &MergeCheckout) -> Result<(), GitError> {
    let own = checkout.own_index();
    remove_file(&own.with_extension("lock"))?;
    let replace = || {
        File::open(&own)?.sync_all()?;
        fs::rename(&own, checkout.index())?;
        File::open(&checkout.admin)?.sync_all()
    };
    if own.exists() {
        replace().map_err(GitError::file("cannot write", &checkout.index()))?;
    }
    // The note first: without it the lock says whose it is, without the lock the note would speak of files that are the
    // user's again.
    MergeNote::remove(turn)?;
    checkout.unlock_index(turn.repository)
}

struct HalfDoneMove<'a> {
    repository: &'a Repository,
    checkout: &'a MergeCheckout,
    note: &'a MergeNote,
    side: MergeSide,
    entries: Vec<MergeNoteEntry>,
}

impl HalfDoneMove<'_> {
    fn call(&self, index: &Path) -> GitCall {
        self.checkout.call(self.repository).env("GIT_INDEX_FILE", index)
    }

    /// An index that knows this side: the checkout's own with what the move concerns made right, or a new one if that
    /// cannot be read. What a person or an agent has staged otherwise stays. The one that was being made may be anything.
    fn index(&self) -> Result<PathBuf, GitError> {
        let HalfDoneMove { checkout, note, side, .. } = *self;
        let own = checkout.own_index();
        remove_file(&own.with_extension("lock"))?;
        remove_file(&own)?;
        let there = checkout.index();
        let known = if there.exists() { self.known(&there)? } else { None };
        let Some(known) = known else {
            let commit = if side == MergeSide::New { &note.new } else { &note.from };
            return self.call(&own).args(["read-tree", commit]).run().map(|()| own);
        };
        let is_behind = |entry: &&MergeNoteEntry| known.get(&entry.path) == entry.other(side);
        let nothing = ("0".to_owned(), "0".repeat(note.new.len()));
        let lines = self.entries.iter().filter(is_behind).flat_map(|entry| {
            let (mode, id) = entry.wanted(side).unwrap_or(&nothing);
            crate::workspace::entry(mode, id, &entry.path)
        });
        let lines: Vec<u8> = lines.collect();
        if lines.is_empty() {
            return Ok(there);
        }
        fs::copy(&there, &own).map_err(GitError::file("cannot write", &own))?;
        self.call(&own).args(["update-index", "--replace", "-z", "--index-info"]).input(lines).run().map(|()| own)
    }

    /// Writes the files that the move has left half-way, and removes those that this side does not have.
    fn write_files(&self, index: &Path) -> Result<(), GitError> {
        let HalfDoneMove { checkout, side, .. } = *self;
        let lying = self.look(index)?;
        let known = self.known(index)?.unwrap_or_default();
        let (mut to_write, mut to_remove) = (Vec::new(), Vec::new());
        for (entry, lies) in self.entries.iter().zip(lying) {
            let wanted = entry.wanted(side);
            let is_ours = match lies {
                PathContent::Other => false,
                PathContent::Nothing => wanted.is_some(),
                PathContent::File(mode, id) => {
                    let found = (mode, id);
                    let is_other = entry.other(side) == Some(&found);
                    wanted != Some(&found) && (is_other || self.is_begun(index, entry)?)
                }
            };
            // What the index has otherwise was changed by somebody since.
            match wanted {
                Some(_) if is_ours && known.get(&entry.path) == wanted => to_write.push(entry),
                None if is_ours && !known.contains_key(&entry.path) => to_remove.push(entry),
                Some(_) | None => {}
            }
        }
        for entry in to_remove {
            let path = path_of(&checkout.folder, &entry.path);
            remove_file(&path)?;
            remove_empty_folders(&path, &checkout.folder);
        }
        if to_write.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> = to_write.iter().flat_map(|entry| entry.path.iter().copied().chain([0])).collect();
        self.call(index).args(["checkout-index", "--force", "--quiet", "-z", "--stdin"]).input(paths).run()
    }

    fn look(&self, index: &Path) -> Result<Vec<PathContent>, GitError> {
        let mut lying = Vec::new();
        let (mut files, mut places) = (String::new(), Vec::new());
        for (place, entry) in self.entries.iter().enumerate() {
            let path = path_of(&self.checkout.folder, &entry.path);
            lying.push(match fs::symlink_metadata(&path) {
                Ok(it) if it.is_file() => {
                    files.push_str(&format!("{}\n", quote(&entry.path)));
                    places.push(place);
                    let mode = if it.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
                    PathContent::File(mode.to_owned(), String::new())
                }
                Ok(it) if it.is_symlink() => {
                    let target = fs::read_link(&path).map_err(GitError::file("cannot read", &path))?;
                    let target = target.as_os_str().as_bytes().to_vec();
                    PathContent::File(
                        "120000".to_owned(),
                        self.call(index).args(["hash-object", "--stdin"]).input(target).text()?,
                    )
                }
                Ok(_) => PathContent::Other,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    PathContent::Nothing
                }
                Err(error) => return Err(GitError::file("cannot read", &path)(error)),
            });
        }
        if !places.is_empty() {
            let ids = self.call(index).args(["hash-object", "--stdin-paths"]).input(files).text()?;
            for (place, id) in places.into_iter().zip(ids.lines()) {
                if let PathContent::File(_, blob) = &mut lying[place] {
                    id.clone_into(blob);
                }
            }
        }
        Ok(lying)
    }

    /// The entries of an index: mode and blob by path. Nothing if it is spoiled: git takes what was cut off for zeros. A
    /// git that only could not read it now has not said that it is.
    fn known(&self, index: &Path) -> Result<Option<IndexEntries>, GitError> {
        let call = self.call(index).args(["ls-files", "--stage", "-z"]);
        let ended = call.answer()?;
        if ended.code != Some(0) {
            let failed = call.failed(&ended);
            let is_spoiled = ended.code.is_some() && !failed.is_passing();
            return if is_spoiled { Ok(None) } else { Err(failed) };
        }
        let mut known = IndexEntries::new();
        for line in ended.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { return Ok(None) };
            let about = String::from_utf8_lossy(&line[..tab]).into_owned();
            match about.split(' ').collect::<Vec<_>>()[..] {
                [mode, id, stage] if tab + 1 < line.len() && id.bytes().any(|digit| digit != b'0') => {
                    if stage == "0" {
                        known.insert(line[tab + 1..].to_vec(), (mode.to_owned(), id.to_owned()));
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(known))
    }

    /// Whether a file is the beginning of what the merge was writing there.
    fn is_begun(&self, index: &Path, entry: &MergeNoteEntry) -> Result<bool, GitError> {
        let path = path_of(&self.checkout.folder, &entry.path);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
        if entry.new.is_none() || !is_file {
            return Ok(false);
        }
        let begun = fs::read(&path).map_err(GitError::file("cannot read", &path))?;
        let mut name = format!("{}:", self.note.new).into_bytes();
        name.extend(&entry.path);
        let call = self.call(index).args(["cat-file", "--filters"]);
        Ok(call.arg(std::ffi::OsStr::from_bytes(&name)).bytes()?.starts_with(&begun))
    }
}

/// Removes the lock of a reference that our git has left: it is as new as the note, holds nothing but our commit, and
/// no git lives in the repository that could have made it.
fn break_stale(repository: &Repository, lock: &Path, note: &MergeNote, since: SystemTime) -> Result<(), GitError> {
    let is_ours = || {
        let Ok(written) = fs::metadata(lock).and_then(|it| it.modified()) else { return false };
        let text = fs::read_to_string(lock).unwrap_or_default();
        written >= since && (text.is_empty() || text.trim() == note.new)
    };
    let deadline = Instant::now() + PATIENCE;
    while is_ours() {
        if !git_lives(repository, note.checkout().map(|checkout| checkout.folder).as_deref()) {
            return remove_file(lock);
        }
        if Instant::now() >= deadline {
            break;
        }
        // A git does not say when it ends, so one looks again.
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether a git works somewhere in the repository, or in this checkout of it.
pub(super) fn git_lives(repository: &Repository, checkout: Option<&Path>) -> bool {
    let folders: Vec<&Path> = [repository.folder(), repository.common()].into_iter().chain(checkout).collect();
    let is_git = |process: &Path| {
        // One that cannot be looked at may be one.
        let may_be = |error: &std::io::Error| error.is_passing();
        let named = fs::read_to_string(process.join("comm")).map_or_else(|it| may_be(&it), |it| it.starts_with("git"));
        let stands = || {
            let cwd = fs::read_link(process.join("cwd"));
            cwd.map_or_else(|it| may_be(&it), |cwd| folders.iter().any(|folder| cwd.starts_with(folder)))
        };
        named && stands()
    };
    fs::read_dir("/proc").map_or(true, |all| all.flatten().any(|process| is_git(&process.path())))
}
