//! Making good what a merge left half done: forward where the branch has moved, else back.
//!
//! Only what the merge itself can have written is touched. A file that is neither as it was, nor as it was to become,
//! nor the beginning of that, is somebody's own and stays as it is. A lock is removed only if it is ours and whoever
//! made it is dead: our index locks carry a mark, and the turn is held by every git of ours as long as it lives.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::advance::{Checkout, Turn, remove};
use super::note::{Entry, Note};
use crate::git::{GitError, Repository, path_of, quote};

/// How long a git that may hold a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which of the two commits a checkout is brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

/// What lies at a path.
enum Lies {
    Nothing,
    /// The mode and the blob of it.
    File(String, String),
    /// A folder, or something else that is no file.
    Other,
}

/// Does what is left of a move that was under way when its process died.
pub(super) fn recover(repository: &Repository, _turn: &Turn) -> Result<(), GitError> {
    let Some((note, written)) = Note::read(repository)? else {
        // The note goes before the lock.
        let checkout = Checkout::of(repository, repository.default_branch())?;
        return checkout.map_or(Ok(()), |checkout| checkout.unlock_index());
    };
    let checkout = note.checkout().filter(|checkout| checkout.folder.is_dir() && checkout.admin.is_dir());
    let admin = checkout.as_ref().map_or(repository.common(), |checkout| &checkout.admin);
    for lock in [admin.join("HEAD.lock"), repository.common().join(format!("refs/heads/{}.lock", note.branch))] {
        break_stale(repository, &lock, &note, written)?;
    }
    let Some(checkout) = checkout else { return Note::remove(repository) };
    if !checkout.is_locked_by_us() {
        checkout.lock_index()?;
    }
    let branch = repository.commit(&format!("refs/heads/{}", note.branch))?;
    let has_moved = branch.as_deref() == Some(&note.new) && is_whole(repository, &checkout, &note)?;
    make_good(repository, &checkout, &note, if has_moved { Side::New } else { Side::Old })
}

/// Whether an index that knows the new commit is there, ours or already the user's.
fn is_whole(repository: &Repository, checkout: &Checkout, note: &Note) -> Result<bool, GitError> {
    let index = if checkout.own_index().exists() { checkout.own_index() } else { checkout.index() };
    let call = repository.git().at(&checkout.folder).env("GIT_INDEX_FILE", index).looking();
    Ok(call.args(["diff-index", "--cached", "--quiet", &note.new, "--"]).answer()?.code == Some(0))
}

/// Brings the checkout to one of the two commits, whose index is there, and lets go of everything.
pub(super) fn make_good(repository: &Repository, checkout: &Checkout, note: &Note, side: Side) -> Result<(), GitError> {
    let own = checkout.own_index();
    let index = if side == Side::New && own.exists() { own } else { checkout.index() };
    write_files(repository, checkout, note, side, &index)?;
    finish(repository, checkout, side)
}

/// The files are those of this side: its index takes its place, and everything is let go of.
pub(super) fn finish(repository: &Repository, checkout: &Checkout, side: Side) -> Result<(), GitError> {
    let own = checkout.own_index();
    remove(&own.with_extension("lock"))?;
    match side {
        Side::New if own.exists() => {
            fs::rename(&own, checkout.index()).map_err(GitError::file("cannot write", &checkout.index()))?;
        }
        Side::New => {}
        Side::Old => remove(&own)?,
    }
    // The note first: without it the lock says whose it is, without the lock the note would speak of files that are the
    // user's again.
    Note::remove(repository)?;
    checkout.unlock_index()
}

/// Writes the files that the merge has left half-way, and removes those that this side does not have.
fn write_files(
    repository: &Repository,
    checkout: &Checkout,
    note: &Note,
    side: Side,
    index: &Path,
) -> Result<(), GitError> {
    let entries = note.differing(repository)?;
    let lying = look(repository, checkout, &entries)?;
    let known = known(repository, checkout, index)?;
    let (mut to_write, mut to_remove) = (Vec::new(), Vec::new());
    for (entry, lies) in entries.iter().zip(lying) {
        let (wanted, other) = match side {
            Side::Old => (&entry.old, &entry.new),
            Side::New => (&entry.new, &entry.old),
        };
        let is_ours = match lies {
            Lies::Other => false,
            Lies::Nothing => wanted.is_some(),
            Lies::File(mode, id) => {
                let found = Some((mode, id));
                found != *wanted && (found == *other || is_begun(repository, checkout, note, entry)?)
            }
        };
        // What the index has otherwise was changed by somebody since.
        match wanted {
            Some(_) if is_ours && known.get(&entry.path) == wanted.as_ref() => to_write.push(entry),
            None if is_ours && !known.contains_key(&entry.path) => to_remove.push(entry),
            Some(_) | None => {}
        }
    }
    for entry in to_remove {
        let path = path_of(&checkout.folder, &entry.path);
        remove(&path)?;
        let mut folder = path.parent();
        while let Some(empty) = folder.filter(|it| *it != checkout.folder && fs::remove_dir(it).is_ok()) {
            folder = empty.parent();
        }
    }
    if to_write.is_empty() {
        return Ok(());
    }
    let paths: Vec<u8> = to_write.iter().flat_map(|entry| entry.path.iter().copied().chain([0])).collect();
    let call = repository.git().at(&checkout.folder).env("GIT_INDEX_FILE", index);
    call.args(["checkout-index", "--force", "--quiet", "-z", "--stdin"]).input(paths).run()
}

/// What lies at each of the paths.
fn look(repository: &Repository, checkout: &Checkout, entries: &[Entry]) -> Result<Vec<Lies>, GitError> {
    let mut lying = Vec::new();
    let (mut files, mut places) = (String::new(), Vec::new());
    for (place, entry) in entries.iter().enumerate() {
        let path = path_of(&checkout.folder, &entry.path);
        lying.push(match fs::symlink_metadata(&path) {
            Ok(it) if it.is_file() => {
                files.push_str(&format!("{}\n", quote(&entry.path)));
                places.push(place);
                let mode = if it.permissions().mode() & 0o100 == 0 { "100644" } else { "100755" };
                Lies::File(mode.to_owned(), String::new())
            }
            Ok(it) if it.is_symlink() => {
                let target = fs::read_link(&path).map_err(GitError::file("cannot read", &path))?;
                let target = target.as_os_str().as_bytes().to_vec();
                let call = repository.git().at(&checkout.folder).args(["hash-object", "--stdin"]);
                Lies::File("120000".to_owned(), call.input(target).text()?)
            }
            Ok(_) => Lies::Other,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Lies::Nothing,
            Err(error) => return Err(GitError::file("cannot read", &path)(error)),
        });
    }
    if !places.is_empty() {
        let call = repository.git().at(&checkout.folder).args(["hash-object", "--stdin-paths"]).input(files);
        let ids = call.text()?;
        for (place, id) in places.into_iter().zip(ids.lines()) {
            if let Lies::File(_, blob) = &mut lying[place] {
                id.clone_into(blob);
            }
        }
    }
    Ok(lying)
}

/// The entries of an index: mode and blob by path.
fn known(
    repository: &Repository,
    checkout: &Checkout,
    index: &Path,
) -> Result<BTreeMap<Vec<u8>, (String, String)>, GitError> {
    let call = repository.git().at(&checkout.folder).env("GIT_INDEX_FILE", index);
    let bytes = call.args(["ls-files", "--stage", "-z"]).bytes()?;
    let mut known = BTreeMap::new();
    for line in bytes.split(|byte| *byte == 0) {
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
        let about = String::from_utf8_lossy(&line[..tab]).into_owned();
        if let [mode, id, "0"] = about.split(' ').collect::<Vec<_>>()[..] {
            known.insert(line[tab + 1..].to_vec(), (mode.to_owned(), id.to_owned()));
        }
    }
    Ok(known)
}

/// Whether a file is the beginning of what the merge was writing there.
fn is_begun(repository: &Repository, checkout: &Checkout, note: &Note, entry: &Entry) -> Result<bool, GitError> {
    let path = path_of(&checkout.folder, &entry.path);
    let is_file = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
    if entry.new.is_none() || !is_file {
        return Ok(false);
    }
    let begun = fs::read(&path).map_err(GitError::file("cannot read", &path))?;
    let mut name = format!("{}:", note.new).into_bytes();
    name.extend(&entry.path);
    let call = repository.git().at(&checkout.folder).args(["cat-file", "--filters"]);
    Ok(call.arg(std::ffi::OsStr::from_bytes(&name)).bytes()?.starts_with(&begun))
}

/// Removes the lock of a reference that our git has left: it is as new as the note, holds nothing but our commit, and
/// no git lives in the repository that could have made it.
fn break_stale(repository: &Repository, lock: &Path, note: &Note, since: SystemTime) -> Result<(), GitError> {
    let is_ours = || {
        let Ok(written) = fs::metadata(lock).and_then(|it| it.modified()) else { return false };
        let text = fs::read_to_string(lock).unwrap_or_default();
        written >= since && (text.is_empty() || text.trim() == note.new)
    };
    let deadline = Instant::now() + PATIENCE;
    while is_ours() {
        if !git_lives(repository, note) {
            return remove(lock);
        }
        if Instant::now() >= deadline {
            break;
        }
        // A git does not say when it ends, so one looks again.
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether a git works somewhere in the repository.
fn git_lives(repository: &Repository, note: &Note) -> bool {
    let checkout = note.checkout().map(|checkout| checkout.folder);
    let folders: Vec<PathBuf> =
        [repository.folder().to_owned(), repository.common().to_owned()].into_iter().chain(checkout).collect();
    let is_git = |process: &Path| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let stands = fs::read_link(process.join("cwd"));
        name.starts_with("git") && stands.is_ok_and(|cwd| folders.iter().any(|folder| cwd.starts_with(folder)))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(|process| is_git(&process.path()))
}
