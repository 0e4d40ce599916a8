//! Worktrees whose files the disk need not have yet, and what a power cut has made of them.
//!
//! git brings neither the files of a checkout to the disk nor its index, its HEAD or a new branch, and to wait for that would cost
//! each start of a run. So a worktree that git writes to has a note, a thread brings the file system to the disk soon after, and
//! then the note goes. A note of an earlier start of the machine says that what is empty, cut off or full of zeros there may be
//! the power cut's doing: it is made right, and what an agent or a person has written stays.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::site::{WorktreeSite, gone};
use crate::file::{Durability, write_atomically};
use crate::git::{GitError, path_of, remove_file};
use crate::process::boot;

/// The note. What stands in it says by which start of the machine it was written.
pub(super) const UNSYNCED: &str = "sluice-unsynced";
/// The time between two times that the file system is brought to the disk: runs that follow each other share one.
const PAUSE: Duration = Duration::from_secs(1);
/// How many files are compared at a time.
const BATCH: usize = 64;

static WAITING: Mutex<WaitingWorktrees> =
    Mutex::new(WaitingWorktrees { written: BTreeMap::new(), being_written: BTreeMap::new(), is_tended: false });

/// Worktrees that are to be brought to the disk, by what git keeps for each.
struct WaitingWorktrees {
    /// Those to which nothing is written any more, with their folder.
    written: BTreeMap<PathBuf, PathBuf>,
    /// How many write to each at the moment: what is brought to the disk now is not all of it.
    being_written: BTreeMap<PathBuf, usize>,
    /// A thread sees to it, until none waits.
    is_tended: bool,
}

/// git writes to a worktree until this is dropped. Then the disk gets it.
pub(crate) struct UnsyncedWrites {
    admin: PathBuf,
    folder: PathBuf,
}

impl Drop for UnsyncedWrites {
    fn drop(&mut self) {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.being_written.get_mut(&self.admin) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(waiting.being_written.remove(&self.admin)),
        }
        waiting.written.insert(self.admin.clone(), self.folder.clone());
        if !std::mem::replace(&mut waiting.is_tended, true) {
            drop(waiting);
            // Without a thread the note stays, and the worktree is looked at after the next start of the machine.
            drop(std::thread::Builder::new().name("sync".into()).spawn(sync_what_waits));
        }
    }
}

impl WorktreeSite {
    /// Notes that git is about to write here. The disk gets it when the answer is dropped.
    pub(super) fn begin_writing(&self) -> Result<UnsyncedWrites, GitError> {
        let path = self.admin.join(UNSYNCED);
        // With the lock, so that no note goes that stands for what is written now.
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        fs::write(&path, note_text()).map_err(GitError::file("cannot write", &path))?;
        *waiting.being_written.entry(self.admin.clone()).or_default() += 1;
        Ok(UnsyncedWrites { admin: self.admin.clone(), folder: self.folder.clone() })
    }

    /// All of it has been brought to the disk.
    pub(super) fn forget_unsynced(&self) {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.written.remove(&self.admin);
        drop(gone(fs::remove_file(self.admin.join(UNSYNCED))));
    }

    /// Whether an earlier start of the machine has written here what the disk may not have.
    pub(super) fn may_have_lost(&self) -> bool {
        match fs::read_to_string(self.admin.join(UNSYNCED)) {
            Ok(text) => text.split_whitespace().next() != Some(boot()) || boot().is_empty(),
            Err(_) => false,
        }
    }

    /// Makes right what a power cut has left of a worktree that is lent: git can read it, it is on its branch, and files that git
    /// had written are whole.
    pub(super) fn make_good(&self) -> Result<(), GitError> {
        if !self.is_present() || !self.may_have_lost() {
            return Ok(());
        }
        // What is lent to none holds no work, and is made anew when it is lent.
        let Some(bound) = self.binding()? else { return Ok(()) };
        super::place::break_stale_locks(&self.admin);
        let is_broken = self.repository.drop_broken_branch(&bound.branch)?;
        let has_branch = self.repository.branch_commit(&bound.branch)?.is_some();
        let is_head_lost = self.mend_after_cut(has_branch.then_some(&bound.branch))?;
        self.refill()?;
        if (is_broken || is_head_lost) && !has_branch {
            // The next lending makes the branch again.
            self.unbind()?;
        }
        self.begin_writing().map(drop)
    }

    /// A HEAD that cannot be read is made anew, and so is the index. What only the index had is on the disk as a file, or kept.
    /// Whether HEAD was lost.
    fn mend_after_cut(&self, branch: Option<&String>) -> Result<bool, GitError> {
        let is_head_lost = !self.head().is_ok_and(|head| head.is_some());
        if is_head_lost {
            let text = match (branch, self.lent_at()) {
                (Some(branch), _) => format!("ref: refs/heads/{branch}\n"),
                (None, Some(commit)) => format!("{commit}\n"),
                (None, None) => format!("{}\n", self.repository.default_commit()?),
            };
            let path = self.admin.join("HEAD");
            fs::write(&path, text).map_err(GitError::file("cannot write", &path))?;
        }
        let own_log = self.admin.join("logs/HEAD");
        let logs = branch.map(|branch| self.repository.common().join("logs/refs/heads").join(branch));
        logs.iter().chain([&own_log]).try_for_each(|log| mend_log(log))?;
        // git does not look at the sum of an index: one that is cut off can look whole.
        remove_file(&self.admin.join("index"))?;
        self.call().args(["read-tree", "HEAD"]).run()?;
        Ok(is_head_lost)
    }

    /// Makes a worktree ready that is lent to none, so that nothing in it is work: as if it had just been made.
    pub(super) fn start_over(&self) -> Result<(), GitError> {
        super::place::break_stale_locks(&self.admin);
        self.mend_after_cut(None)?;
        // On no branch, as one that was just made: otherwise the next lending finds its branch checked out here.
        if let Some(commit) = self.head()? {
            let path = self.admin.join("HEAD");
            fs::write(&path, commit + "\n").map_err(GitError::file("cannot write", &path))?;
        }
        self.begin_writing().map(drop)
    }

    /// Writes files again of which the disk has nothing, the beginning, or zeros.
    fn refill(&self) -> Result<(), GitError> {
        let call = self.call().args(["diff-files", "-z", "--no-renames", "--diff-filter=M"]);
        let bytes = call.bytes()?;
        let mut words = bytes.split(|byte| *byte == 0);
        let mut changed: Vec<(String, Vec<u8>)> = Vec::new();
        while let (Some(about), Some(path)) = (words.next(), words.next()) {
            // `:MODE MODE ID ID STATUS`
            let about = String::from_utf8_lossy(about).into_owned();
            let Some(id) = about.split(' ').nth(2) else { continue };
            changed.push((id.to_owned(), path.to_vec()));
        }
        let mut lost: Vec<Vec<u8>> = Vec::new();
        for batch in changed.chunks(BATCH) {
            let ids: Vec<&str> = batch.iter().map(|(id, _)| id.as_str()).collect();
            let whole = self.repository.blobs(&ids, |at| format!("the blob {} cannot be read", ids[at]))?;
            let is_lost = |path: &[u8], whole: &[u8]| {
                let full = path_of(&self.folder, path);
                fs::symlink_metadata(&full).is_ok_and(|it| it.is_file())
                    && fs::read(&full).is_ok_and(|there| is_rest_of(&there, whole))
            };
            let pairs = batch.iter().zip(whole);
            lost.extend(pairs.filter(|((_, path), whole)| is_lost(path, whole)).map(|((_, path), _)| path.clone()));
        }
        if lost.is_empty() {
            return Ok(());
        }
        let call = self.call().args(["checkout-index", "--force", "--quiet", "-z", "--stdin"]);
        call.input(lost.join(&0)).run()
    }
}

/// Removes what a power cut has left of lines in a log of a reference: git writes the next one behind it, as if it were its end.
fn mend_log(path: &Path) -> Result<(), GitError> {
    let Ok(text) = fs::read(path) else { return Ok(()) };
    let is_whole = |line: &&[u8]| line.ends_with(b"\n") && !line.contains(&0);
    let whole: Vec<u8> = text.split_inclusive(|byte| *byte == b'\n').filter(is_whole).flatten().copied().collect();
    if whole == text {
        return Ok(());
    }
    write_atomically(path, &whole, Durability::Cached).map_err(GitError::file("cannot write", path))
}

fn note_text() -> String {
    format!("{}\n", boot())
}

/// Whether this is what a power cut leaves of a file: nothing, zeros, or its beginning.
fn is_rest_of(there: &[u8], whole: &[u8]) -> bool {
    there.len() <= whole.len() && there != whole && (there.iter().all(|byte| *byte == 0) || whole.starts_with(there))
}

/// Brings the file systems of waiting worktrees to the disk, until none waits.
fn sync_what_waits() {
    loop {
        let worktrees = {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.is_tended = !waiting.written.is_empty();
            std::mem::take(&mut waiting.written)
        };
        if worktrees.is_empty() {
            return;
        }
        let devices = worktrees.iter().flat_map(|(admin, folder)| [admin, folder]);
        let devices: BTreeMap<u64, &PathBuf> =
            devices.filter_map(|path| Some((fs::metadata(path).ok()?.dev(), path))).collect();
        if devices.values().all(|path| sync_around(path)) {
            let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            let is_over =
                |admin: &&PathBuf| !waiting.written.contains_key(*admin) && !waiting.being_written.contains_key(*admin);
            // A note of another start of the machine says something else.
            let is_own = |note: &PathBuf| fs::read_to_string(note).is_ok_and(|text| text == note_text());
            let notes = worktrees.keys().filter(is_over).map(|admin| admin.join(UNSYNCED));
            notes.filter(is_own).for_each(|note| drop(gone(fs::remove_file(note))));
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Brings all of the file system that a folder is in to the disk. Whether that was done.
pub(super) fn sync_around(folder: &Path) -> bool {
    let mut command = Command::new("sync");
    command.arg("-f").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
