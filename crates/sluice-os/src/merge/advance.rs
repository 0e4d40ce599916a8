//! Moving a branch together with the checkout it is in, so that a power cut at any moment is made good: the default
//! branch with the user's checkout, or the branch of a run with its worktree.
//!
//! The order: a note of what is to be done, durable; the checkout's `index.lock`, with our mark in it, so that no other
//! git comes in between; the files, with an index of our own beside the checkout's; the branch, compared and swapped;
//! the new index in place of the old; the note and the lock away. Whoever comes next and finds a note does what is left:
//! see [`recover`]. One at a time for a branch, whatever home it is asked from.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::note::{MergeNote, NOTE, OLDER_NOTE};
use super::recover::{self, MergeSide};
use crate::git::{CheckoutChanges, GitCall, GitError, Repository, first_of, path_of, remove_file, shown};
use crate::lock::FileLock;
use crate::passing::PassingError;
use crate::workspace::{self, WorktreeSite};

/// How long another git may hold the checkout's index.
const PATIENCE: Duration = Duration::from_secs(10);
const NAMED_FILES: usize = 5;
/// What our `index.lock` begins with; git's own is an index and begins with `DIRC`, or is empty.
const MARK: &str = "sluice merges here";

/// The right to move a branch. What a move before it left half done has been made good.
pub(crate) struct BranchTurn<'a> {
    pub(super) repository: &'a Repository,
    pub(super) notes: PathBuf,
    /// The worktree that goes along; the default branch's, which is the user's, if none is named.
    worktree: Option<MergeCheckout>,
    lock: FileLock,
}

impl<'a> BranchTurn<'a> {
    /// The turn of the default branch. Waits for those before, and makes good what they left.
    pub(crate) fn take(repository: &'a Repository) -> Result<BranchTurn<'a>, GitError> {
        BranchTurn::taken(repository, repository.common(), None)
    }

    /// The turn of what is checked out in a worktree of ours.
    pub(crate) fn of(site: &'a WorktreeSite) -> Result<BranchTurn<'a>, GitError> {
        let repository = &site.repository;
        let checkout = MergeCheckout { folder: site.folder.clone(), admin: site.admin.clone() };
        BranchTurn::taken(repository, &site.admin, Some(checkout))
    }

    /// Makes good what a move in a worktree has left half done, if one has.
    pub(crate) fn make_good(site: &WorktreeSite) -> Result<(), GitError> {
        let notes = [site.admin.join("sluice").join(NOTE), site.admin.join(OLDER_NOTE)];
        if notes.iter().any(|note| note.exists()) { BranchTurn::of(site).map(drop) } else { Ok(()) }
    }

    fn taken(
        repository: &'a Repository,
        admin: &Path,
        worktree: Option<MergeCheckout>,
    ) -> Result<BranchTurn<'a>, GitError> {
        let notes = admin.join("sluice");
        fs::create_dir_all(&notes).map_err(GitError::file("cannot make", &notes))?;
        let what = worktree.as_ref().map_or_else(|| "the default branch".into(), |it| it.folder.display().to_string());
        let lock = workspace::lock(&notes.join("merge.lock"), &what)?;
        let turn = BranchTurn { repository, notes, worktree, lock };
        if let Some(checkout) = &turn.worktree {
            MergeNote::inherit(&turn, checkout)?;
        }
        recover::recover(&turn)?;
        Ok(turn)
    }

    /// The branch that moves, and the checkout that goes along.
    pub(super) fn place(&self) -> Result<(String, Option<MergeCheckout>), GitError> {
        let repository = self.repository;
        match &self.worktree {
            Some(checkout) => Ok((checkout.branch(repository)?, Some(checkout.clone()))),
            None => {
                let branch = repository.default_branch();
                let folder = repository.checked_out(branch)?.filter(|folder| folder.is_dir());
                let checkout = folder.map(|folder| MergeCheckout::at(repository, &folder)).transpose()?;
                Ok((branch.to_owned(), checkout))
            }
        }
    }

    /// Whether this is another checkout than that of the worktree whose turn it is.
    pub(super) fn is_of_another(&self, checkout: Option<&MergeCheckout>) -> bool {
        self.worktree
            .as_ref()
            .is_some_and(|own| checkout.is_some_and(|it| it.folder != own.folder || it.admin != own.admin))
    }

    /// The call holds this turn too: if we die, the next process waits for it as well.
    fn hold(&self, call: GitCall) -> Result<GitCall, GitError> {
        let held = self.lock.handle();
        Ok(call.holding(held.map_err(|source| GitError::NoProgram { program: "git".to_owned(), source })?))
    }
}

/// A checkout, and where git keeps what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct MergeCheckout {
    pub(super) folder: PathBuf,
    pub(super) admin: PathBuf,
}

impl MergeCheckout {
    fn at(repository: &Repository, folder: &Path) -> Result<MergeCheckout, GitError> {
        let bytes = repository.git().at(folder).args(["rev-parse", "--absolute-git-dir"]).bytes()?;
        let admin = path_of(Path::new(""), bytes.strip_suffix(b"\n").unwrap_or(&bytes));
        Ok(MergeCheckout { folder: folder.to_owned(), admin })
    }

    /// A call in this checkout. In a worktree git is told which it is: what stands there may lead elsewhere by now.
    pub(super) fn call(&self, repository: &Repository) -> GitCall {
        if self.admin.parent() != Some(&repository.common().join("worktrees")) {
            return repository.git().at(&self.folder);
        }
        let (folder, admin) = (self.folder.clone(), self.admin.clone());
        WorktreeSite { repository: repository.clone(), folder, admin }.call()
    }

    /// The branch that is checked out; `HEAD` if none is.
    pub(super) fn branch(&self, repository: &Repository) -> Result<String, GitError> {
        let call = self.call(repository).args(["symbolic-ref", "--quiet", "HEAD"]);
        let name = call.maybe()?.unwrap_or_default();
        Ok(name.strip_prefix("refs/heads/").unwrap_or("HEAD").to_owned())
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

    /// Whether the lock of the index is one of ours. The holder of the turn knows that its maker is dead. A lock that is only
    /// begun is ours if no git lives that could have made it; one that lives is waited for, for a bounded time.
    pub(super) fn is_locked_by_us(&self, repository: &Repository) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.is_begun() {
            if !recover::git_lives(repository, Some(&self.folder)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            // A git does not say when it ends, so one looks again.
            std::thread::park_timeout(Duration::from_millis(20));
        }
        fs::read(self.lock()).is_ok_and(|bytes| bytes.starts_with(MARK.as_bytes()))
    }

    /// Whether the lock may be one that we were writing where there are no links: the beginning of our mark is in it, which
    /// may be nothing, and the mark stands beside it.
    fn is_begun(&self) -> bool {
        let is_beginning = |bytes: Vec<u8>| bytes.len() < MARK.len() && MARK.as_bytes().starts_with(&bytes);
        fs::read(self.lock()).is_ok_and(is_beginning) && self.mark().exists()
    }

    /// Our mark, before it is the lock.
    fn mark(&self) -> PathBuf {
        self.admin.join("sluice-mark")
    }

    /// Takes the lock of the index, as git would. Another git is waited for, for a bounded time. The lock is never there
    /// without our mark, in it or beside it, so that recovery after a power cut or a full disk knows whose it is.
    pub(super) fn lock_index(&self) -> Result<(), GitError> {
        self.lock_index_by(|mark, lock| fs::hard_link(mark, lock))
    }

    fn lock_index_by(&self, link: fn(&Path, &Path) -> io::Result<()>) -> Result<(), GitError> {
        let mark = self.mark();
        let marked = self.write_mark().map_err(GitError::file("cannot write", &mark));
        let locked =
            marked.and_then(|()| self.wait_for_lock(|| link(&mark, &self.lock()).or_else(|no| self.make_lock(no))));
        remove_file(&mark).and(locked)
    }

    fn write_mark(&self) -> io::Result<()> {
        match fs::remove_file(self.mark()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::create_new(self.mark())?;
        writeln!(file, "{MARK}: process {}", std::process::id())?;
        file.sync_all()
    }

    /// Makes the lock where a link cannot be made: not every file system has them, and each says so in its own way.
    fn make_lock(&self, no_link: io::Error) -> io::Result<()> {
        if no_link.kind() == ErrorKind::AlreadyExists {
            return Err(no_link);
        }
        let mark = fs::read(self.mark())?;
        let mut file = File::create_new(self.lock())?;
        let written = file.write_all(&mark).and_then(|()| file.sync_all());
        if written.is_err() {
            fs::remove_file(self.lock())?;
        }
        written
    }

    /// Takes the lock. A link, unlike a rename, is refused while another git has it, and so is a new file.
    fn wait_for_lock(&self, take: impl Fn() -> io::Result<()>) -> Result<(), GitError> {
        let path = self.lock();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match take() {
                Ok(()) => return Ok(()),
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
    pub(super) fn unlock_index(&self, repository: &Repository) -> Result<(), GitError> {
        if self.is_locked_by_us(repository) {
            remove_file(&self.lock())?;
        }
        // After the lock, and not before it is known whose that is.
        if self.is_begun() { Ok(()) } else { remove_file(&self.mark()) }
    }
}

/// Moves the branch from where it was seen to its new commit, with the checkout it is in.
pub(crate) fn advance(turn: &BranchTurn<'_>, old: Option<&str>, new: &str) -> Result<(), GitError> {
    if old == Some(new) {
        return Ok(());
    }
    let repository = turn.repository;
    let (branch, checkout) = turn.place()?;
    let note = MergeNote::new(repository, (&branch, checkout.as_ref()), old, new)?;
    let Some(checkout) = checkout else {
        note.write(turn)?;
        swap(turn, &note, None)?;
        return MergeNote::remove(turn);
    };
    refuse_changes(turn, &checkout, &note)?;
    note.write(turn)?;
    if let Err(error) = checkout.lock_index() {
        MergeNote::remove(turn)?;
        return Err(error);
    }
    let moved = go_along(turn, &checkout, &note).and_then(|()| swap(turn, &note, Some(&checkout)));
    match moved {
        Ok(()) => recover::finish(turn, &checkout)?,
        // A git that took too long may have moved it all the same.
        Err(error) if recover::make_good(turn, &checkout, &note)? == MergeSide::Old => return Err(error),
        Err(_) => {}
    }
    if turn.worktree.is_none() {
        // As a merge by hand does: what a person may go back to, and the hook that fetches what belongs to new files.
        let call = || checkout.call(repository);
        if let Some(old) = old {
            drop(call().args(["update-ref", "ORIG_HEAD", old]).answer());
        }
        drop(call().hooks().args(["hook", "run", "--ignore-missing", "post-merge", "--", "0"]).answer());
    }
    Ok(())
}

/// Writes the files of the new commit, and an index of our own that knows them. git itself refuses to touch a file that
/// somebody has changed meanwhile.
fn go_along(turn: &BranchTurn<'_>, checkout: &MergeCheckout, note: &MergeNote) -> Result<(), GitError> {
    let own = checkout.own_index();
    match fs::copy(checkout.index(), &own) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(GitError::file("cannot write", &own)(error)),
        Ok(_) | Err(_) => {}
    }
    let call = || checkout.call(turn.repository).env("GIT_INDEX_FILE", &own);
    // A file that was touched and not changed is no change.
    call().args(["update-index", "-q", "--refresh"]).answer()?;
    let call = turn.hold(call().args(["read-tree", "-m", "-u", &note.from, &note.new]))?;
    let ended = call.answer()?;
    if ended.code == Some(0) {
        return Ok(());
    }
    let failed = call.failed(&ended);
    if failed.is_passing() {
        return Err(failed); // files that lie there now are what git has written of the new commit
    }
    // What changed since it was looked at is named, if that was the reason.
    refuse_changes(turn, checkout, note).and(Err(failed))
}

fn swap(turn: &BranchTurn<'_>, note: &MergeNote, at: Option<&MergeCheckout>) -> Result<(), GitError> {
    let nothing = "0".repeat(note.new.len());
    let old = note.old.as_deref();
    let call = at.map_or_else(|| turn.repository.call(), |at| at.call(turn.repository)).durable();
    let call = if turn.worktree.is_none() { call.hooks() } else { call };
    let call = call.args(["update-ref", "-m", "sluice: merge", &note.reference(), &note.new, old.unwrap_or(&nothing)]);
    let call = turn.hold(call)?;
    let ended = call.answer()?;
    match ended.code {
        Some(0) => Ok(()),
        _ if note.tip(turn.repository, at)?.as_deref() == old => Err(call.failed(&ended)),
        _ => Err(GitError::Moved { branch: note.branch.clone() }),
    }
}

/// Nothing is begun in a checkout of the user's with changes, nor in any whose changes are in the way, nor where a file
/// lies in the way of a new one.
fn refuse_changes(turn: &BranchTurn<'_>, checkout: &MergeCheckout, note: &MergeNote) -> Result<(), GitError> {
    let changes = CheckoutChanges::of(checkout.call(turn.repository))?;
    let differing = note.differing(turn.repository)?;
    let is_in_the_way = |path: &&Vec<u8>| turn.worktree.is_none() || differing.iter().any(|it| it.path == **path);
    let changed = changes.tracked.iter().map(|(path, _)| path).filter(is_in_the_way);
    let changed = changed.chain(changes.unmerged.iter().map(|it| &it.path));
    let mut files: Vec<String> = changed.map(|path| shown(path)).collect();
    let is_known = |path: &[u8]| changes.tracked.iter().any(|(known, _)| known == path);
    if checkout.admin.join("MERGE_HEAD").exists() {
        files.push("a merge that is under way".to_owned());
    }
    // A folder may have been known until now; git finds out.
    let lies = |path: &[u8]| fs::symlink_metadata(path_of(&checkout.folder, path)).is_ok_and(|it| !it.is_dir());
    let in_the_way =
        differing.iter().filter(|entry| entry.old.is_none() && lies(&entry.path) && !is_known(&entry.path));
    let in_the_way: Vec<String> = in_the_way.map(|entry| format!("{} in the way", shown(&entry.path))).collect();
    let cure = match (files.is_empty(), in_the_way.is_empty()) {
        (true, _) => "move or rename what is in the way",
        (false, true) => "commit or stash them",
        (false, false) => "commit or stash the changes, move or rename what is in the way",
    };
    files.extend(in_the_way);
    files.dedup();
    if files.is_empty() {
        return Ok(());
    }
    let files = first_of(files, NAMED_FILES);
    Err(GitError::Dirty { branch: note.branch.clone(), folder: checkout.folder.clone(), files, cure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_links_the_lock_is_made_and_never_without_our_mark() {
        let folder = tempfile::tempdir().unwrap();
        let checkout = MergeCheckout { folder: folder.path().to_owned(), admin: folder.path().to_owned() };
        checkout.lock_index_by(|_, _| Err(io::Error::from_raw_os_error(1))).unwrap();
        let text = fs::read_to_string(checkout.lock()).unwrap();
        assert!(text.starts_with(MARK) && text.ends_with('\n') && !checkout.mark().exists(), "{text}");
        // What was begun is ours only beside our mark.
        let is_begun = |bytes: &str| {
            fs::write(checkout.lock(), bytes).unwrap();
            checkout.is_begun()
        };
        assert!(!is_begun("") && !is_begun("sluice mer"));
        checkout.write_mark().unwrap();
        assert!(is_begun("") && is_begun("sluice mer") && !is_begun("DIRC") && !is_begun(MARK));
    }
}
