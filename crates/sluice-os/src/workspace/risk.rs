//! What would be lost if a worktree were reset or removed.
//!
//! It looks and stores blobs, and changes neither the branch nor the index nor a file. Ignored files are not counted:
//! those that only the task's branch ignores are found when it is left. TASK.md at the root is not counted either,
//! because it is the engine's, nor is what the worktree got from the main checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::furnish;
use super::listed::IndexListing;
use super::site::{WorktreeSite, gone};
use crate::git::{CheckoutChanges, GitError, Repository, path_of, quote, shown};

/// How many lines of the worktree's own history are looked through for commits that were left behind.
const HISTORY_LINES: usize = 1000;
/// What is kept already, for git.
pub(crate) const KEPT: &str = "--glob=refs/sluice/keep";

/// A file as it lies on disk, without git's conversions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskFile {
    /// git's mode, in octal digits.
    pub(crate) mode: &'static str,
    /// The blob of exactly these bytes.
    pub(crate) id: String,
    /// The permission bits; git itself remembers only one of them.
    pub(crate) permissions: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceRisk {
    pub(crate) head: Option<String>,
    /// The branch that is checked out, or is being rebased.
    pub(crate) branch: Option<String>,
    pub(crate) changes: CheckoutChanges,
    /// What the index says and git's answer leaves out. The repositories stand among the changes, too.
    pub(crate) listed: IndexListing,
    /// Files that differ from the last commit or from the index, and those git does not know.
    pub(crate) files: BTreeMap<Vec<u8>, DiskFile>,
    /// Files that the last commit has and the disk has not.
    pub(crate) removed: BTreeSet<Vec<u8>>,
    /// The tree of the index, where it differs from the last commit's.
    pub(crate) index: Option<String>,
    /// The other commits of a merge, a cherry-pick or a revert that is under way.
    pub(crate) marks: BTreeMap<String, Vec<String>>,
    /// Whether no branch, remote or tag reaches the commit that is checked out.
    pub(crate) head_lost: bool,
    /// Further commits that only this worktree knows.
    pub(crate) lost: BTreeSet<String>,
}

impl WorkspaceRisk {
    /// Looks, and stores the blobs.
    pub(crate) fn of(site: &WorktreeSite) -> Result<WorkspaceRisk, GitError> {
        WorkspaceRisk::look(site, None)
    }

    /// Looks again, without storing. Commits that were lost are taken for lost still: by now a keep reaches them.
    pub(crate) fn again(&self, site: &WorktreeSite) -> Result<WorkspaceRisk, GitError> {
        WorkspaceRisk::look(site, Some(self))
    }

    /// Looks at what there is, and at no file's content; and whether something is staged. Nothing is stored, and of a folder
    /// that is gone only commits are seen.
    pub(crate) fn glance(site: &WorktreeSite) -> Result<(WorkspaceRisk, bool), GitError> {
        let mut risk = WorkspaceRisk::seen(site)?;
        let is_staged = risk.is_staged();
        risk.take_repositories(site)?;
        risk.marks = marks(site)?;
        risk.find_lost(site)?;
        Ok((risk, is_staged))
    }

    fn is_staged(&self) -> bool {
        !self.changes.unmerged.is_empty() || self.changes.tracked.iter().any(|(_, it)| it.staged)
    }

    fn seen(site: &WorktreeSite) -> Result<WorkspaceRisk, GitError> {
        if site.is_present() {
            let listed = IndexListing::of(site)?;
            let changes = changes(site, &listed)?;
            return Ok(WorkspaceRisk::told(listed, changes));
        }
        let changes = CheckoutChanges { head: site.head()?, branch: site.branch()?, ..CheckoutChanges::default() };
        Ok(WorkspaceRisk::told(IndexListing::default(), changes))
    }

    fn told(listed: IndexListing, changes: CheckoutChanges) -> WorkspaceRisk {
        WorkspaceRisk { head: changes.head.clone(), listed, changes, ..WorkspaceRisk::default() }
    }

    fn look(site: &WorktreeSite, before: Option<&WorkspaceRisk>) -> Result<WorkspaceRisk, GitError> {
        WorkspaceRisk::seen(site)?.completed(site, before)
    }

    /// The same, where git has said about the index and the files what it says.
    pub(super) fn with(
        site: &WorktreeSite,
        listed: IndexListing,
        changes: CheckoutChanges,
    ) -> Result<WorkspaceRisk, GitError> {
        WorkspaceRisk::told(listed, changes).completed(site, None)
    }

    fn completed(self, site: &WorktreeSite, before: Option<&WorkspaceRisk>) -> Result<WorkspaceRisk, GitError> {
        let mut risk = self;
        let is_staged = risk.is_staged();
        risk.take_repositories(site)?;
        if is_staged || !site.is_present() {
            risk.index = index(site, &risk)?;
        }
        risk.marks = marks(site)?;
        risk.find_lost(site)?;
        if let Some(before) = before {
            risk.lost.extend(before.lost.iter().cloned());
        }
        if !risk.is_empty() && site.is_present() {
            risk.find_files(site, before.is_none())?;
        }
        Ok(risk)
    }

    /// Whether the worktree is as a checkout leaves it, with nothing under way.
    pub(crate) fn is_untouched(&self, site: &WorktreeSite) -> bool {
        let changes = &self.changes;
        changes.is_empty() && self.head.is_some() && self.marks.is_empty() && site.under_way().next().is_none()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.index.is_none() && !self.head_lost && self.lost.is_empty()
    }

    /// Repositories inside are moved away as a whole, whatever git says of them. What has changed in a submodule cannot
    /// be kept.
    fn take_repositories(&mut self, site: &WorktreeSite) -> Result<(), GitError> {
        let repositories = &self.listed.repositories;
        self.changes.tracked.retain(|(path, change)| !(change.submodule && repositories.contains(path)));
        self.changes.nested.extend(repositories.iter().cloned());
        match self.changes.tracked.iter().find(|(_, change)| change.submodule) {
            Some((path, _)) => Err(GitError::Submodule { folder: site.folder.clone(), path: shown(path) }),
            None => Ok(()),
        }
    }

    fn find_files(&mut self, site: &WorktreeSite, store: bool) -> Result<(), GitError> {
        let changes = &self.changes;
        let known = changes.tracked.iter().map(|(path, _)| path).chain(changes.unmerged.iter().map(|it| &it.path));
        let task_file = site.task_file().to_vec();
        let mut paths: BTreeSet<&Vec<u8>> = known.chain(&changes.untracked).collect();
        // It goes along with what is kept, for whoever looks at that later.
        if fs::symlink_metadata(path_of(&site.folder, &task_file)).is_ok_and(|it| !it.is_dir()) {
            paths.insert(&task_file);
        }
        let (mut regular, mut removed) = (Vec::new(), BTreeSet::new());
        for path in paths {
            let full = path_of(&site.folder, path);
            let failed = GitError::file("cannot read", &full);
            match fs::symlink_metadata(&full) {
                Ok(it) if it.is_symlink() => {
                    let target = fs::read_link(&full).map_err(failed)?;
                    let id = hash(site, store, &["--stdin"], target.as_os_str().as_bytes().to_vec())?;
                    let id = id.into_iter().next().unwrap_or_default();
                    self.files.insert(path.clone(), DiskFile { mode: "120000", id, permissions: 0o777 });
                }
                Ok(it) if it.is_file() => {
                    let permissions = it.permissions().mode() & 0o7777;
                    let mode = if permissions & 0o100 == 0 { "100644" } else { "100755" };
                    regular.push((path.clone(), mode, permissions));
                }
                // A folder stands where the file was.
                Ok(_) => drop(removed.insert(path.clone())),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    removed.insert(path.clone());
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let list: String = regular.iter().map(|(path, ..)| quote(path) + "\n").collect();
        let ids = if regular.is_empty() { Vec::new() } else { hash(site, store, &["--stdin-paths"], list.into())? };
        if ids.len() != regular.len() {
            return Err(GitError::Changing { folder: site.folder.clone() });
        }
        for ((path, mode, permissions), id) in regular.into_iter().zip(ids) {
            self.files.insert(path, DiskFile { mode, id, permissions });
        }
        self.removed = removed;
        Ok(())
    }

    fn find_lost(&mut self, site: &WorktreeSite) -> Result<(), GitError> {
        // What a branch is at is reached by it.
        if let (Some(head), None) = (&self.head, &self.changes.branch) {
            self.head_lost = !unreached(&site.repository, &BTreeSet::from([head.clone()]), &[])?.is_empty();
        }
        self.branch = self.changes.branch.clone().or_else(|| site.rebased());
        let mut candidates: BTreeSet<String> = self.marks.values().flatten().cloned().collect();
        for name in ["MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"] {
            candidates.extend(commits_in(site, name)?);
        }
        let places = ["refs/worktree", "refs/rewritten", "reftable"];
        if places.iter().any(|place| site.admin.join(place).exists()) {
            let call = site.call().args(["for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/rewritten"]);
            candidates.extend(call.text()?.lines().map(str::to_owned));
        }
        candidates.extend(left_behind(site)?);
        // Its branch is gone or damaged, or another name of another one, and with it the way to its commits.
        let named = contents(&site.admin.join("HEAD"))?;
        let named = String::from_utf8_lossy(&named).trim().strip_prefix("ref: refs/heads/").map(str::to_owned);
        if self.head.is_none() || named.is_some_and(|branch| is_symbolic(site, &branch)) {
            candidates.extend(stood_at(site)?);
        }
        if let Some(head) = &self.head {
            candidates.remove(head);
        }
        if !candidates.is_empty() {
            self.lost = unreached(&site.repository, &candidates, &[KEPT])?.into_iter().collect();
        }
        Ok(())
    }
}

/// What git says about the files, with what it was told not to see.
pub(crate) fn changes(site: &WorktreeSite, listed: &IndexListing) -> Result<CheckoutChanges, GitError> {
    let mut changes = if listed.hidden.is_empty() {
        CheckoutChanges::of(site.call())?
    } else {
        let scratch = ScratchIndex::copy(site)?;
        listed.show(site, Some(&scratch.path))?;
        CheckoutChanges::of(site.call().env("GIT_INDEX_FILE", &scratch.path))?
    };
    changes.forget(site.task_file());
    furnish::forget(site, &mut changes)?;
    Ok(changes)
}

/// Those of the commits that no branch, remote or tag reaches, nor anything of `others`. The newest come first.
pub(crate) fn unreached(
    repository: &Repository,
    commits: &BTreeSet<String>,
    others: &[&str],
) -> Result<Vec<String>, GitError> {
    let how = ["--topo-order", "--ignore-missing", "--stdin", "--not", "--branches", "--remotes", "--tags"];
    let list: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
    let found = repository.call().arg("rev-list").args(how).args(others).input(list).text()?;
    Ok(found.lines().filter(|it| commits.contains(*it)).map(str::to_owned).collect())
}

/// The worktree's own history, the newest first.
fn history(site: &WorktreeSite) -> Result<Vec<String>, GitError> {
    let history = contents(&site.admin.join("logs/HEAD"))?;
    Ok(String::from_utf8_lossy(&history).lines().rev().take(HISTORY_LINES).map(str::to_owned).collect())
}

fn stood_at(site: &WorktreeSite) -> Result<Vec<String>, GitError> {
    let to = |line: String| line.split(' ').nth(1).filter(|id| is_id(id) && !is_nothing(id)).map(str::to_owned);
    Ok(history(site)?.into_iter().filter_map(to).collect())
}

/// Commits that were checked out without a branch and then left, or on one that is not there any more.
fn left_behind(site: &WorktreeSite) -> Result<Vec<String>, GitError> {
    let left = |line: &String| {
        let (ids, action) = line.split_once("\tcheckout: moving from ")?;
        let (from, _) = action.split_once(" to ")?;
        let stood = ids.split(' ').next().filter(|id| is_id(id) && !is_nothing(id))?;
        Some((from.to_owned(), stood.to_owned()))
    };
    let (mut found, mut known) = (Vec::new(), BTreeMap::new());
    for (from, stood) in history(site)?.iter().filter_map(left) {
        let is_gone = match (is_id(&from), known.get(&from)) {
            (true, _) => true,
            (false, Some(is_gone)) => *is_gone,
            (false, None) => {
                let tip = match site.repository.branch_commit(&from) {
                    Err(GitError::BranchName { .. }) => None, // a power cut has left a part of a line
                    tip => tip?,
                };
                let is_gone = is_symbolic(site, &from) || tip.is_none();
                *known.entry(from.clone()).or_insert(is_gone)
            }
        };
        if is_gone {
            found.push(stood);
        }
    }
    Ok(found)
}

/// Commits that a branch was at before it was put back, as its log says; none where it has no log in a file of its own. What
/// was amended or rebased is there in another form. Of a branch that never moved it costs one file.
pub(super) fn left_by(repository: &Repository, branch: &str) -> Result<Vec<String>, GitError> {
    let log = contents(&repository.common().join("logs/refs/heads").join(branch))?;
    let log = String::from_utf8_lossy(&log);
    let left = |line: &str| {
        let (ids, action) = line.split_once('\t').unwrap_or((line, ""));
        let mut ids = ids.split(' ');
        let (from, to) = (ids.next()?, ids.next()?);
        let goes_on = ["commit", "rebase", "cherry-pick", "revert", "am:", "branch: Created"].iter();
        let is_left =
            from != to && is_id(from) && !is_nothing(from) && !goes_on.clone().any(|it| action.starts_with(it));
        is_left.then(|| from.to_owned())
    };
    Ok(log.lines().rev().take(HISTORY_LINES).filter_map(left).collect())
}

/// Whether a branch is only another name of a branch.
fn is_symbolic(site: &WorktreeSite, branch: &str) -> bool {
    let reference = site.repository.common().join("refs/heads").join(branch);
    fs::read(reference).is_ok_and(|bytes| bytes.starts_with(b"ref:"))
}

fn marks(site: &WorktreeSite) -> Result<BTreeMap<String, Vec<String>>, GitError> {
    let mut found = BTreeMap::new();
    for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
        let commits = commits_in(site, name)?;
        if !commits.is_empty() {
            found.insert(name.to_owned(), commits);
        }
    }
    Ok(found)
}

fn commits_in(site: &WorktreeSite, name: &str) -> Result<Vec<String>, GitError> {
    let text = contents(&site.admin.join(name))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter(|line| is_id(line)).map(str::to_owned).collect())
}

/// What stands in a file of git's; nothing if it is not there. One that cannot be read may name work.
fn contents(path: &Path) -> Result<Vec<u8>, GitError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(GitError::file("cannot read", path)),
    }
}

/// The name of no commit: what a branch was at before it was made.
fn is_nothing(id: &str) -> bool {
    id.bytes().all(|it| it == b'0')
}

pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit())
}

fn hash(site: &WorktreeSite, store: bool, how: &[&str], input: Vec<u8>) -> Result<Vec<String>, GitError> {
    // An empty input would be no input, and that of a terminal.
    let mut call = site.call().arg("hash-object").args(how).arg("--no-filters").input(input);
    if store {
        call = call.arg("-w").durable();
    }
    Ok(call.text()?.lines().map(str::to_owned).collect())
}

/// The tree of the index, if it differs from the last commit's. Of a file in conflict it has our side.
fn index(site: &WorktreeSite, risk: &WorkspaceRisk) -> Result<Option<String>, GitError> {
    let real = site.admin.join("index");
    let scratch = ScratchIndex::copy(site)?;
    let mut lines = Vec::new();
    for side in &risk.changes.unmerged {
        lines.push(entry("0", &"0".repeat(side.id.len()), &side.path));
    }
    for ours in risk.changes.unmerged.iter().filter(|side| side.stage == 2) {
        lines.push(entry(&ours.mode, &ours.id, &ours.path));
    }
    let tree = scratch.tree(site, lines)?;
    let head = site.call().args(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).maybe()?;
    let nothing = head.is_none() && !real.exists();
    Ok((head.as_ref() != Some(&tree) && !nothing).then_some(tree))
}

/// A line for `git update-index --index-info`.
pub(crate) fn entry(mode: &str, id: &str, path: &[u8]) -> Vec<u8> {
    let mut line = format!("{mode} {id} 0\t").into_bytes();
    line.extend_from_slice(path);
    line.push(0);
    line
}

/// An index of our own, so that the user's is never altered.
pub(crate) struct ScratchIndex {
    path: PathBuf,
}

impl ScratchIndex {
    pub(crate) fn new(site: &WorktreeSite) -> ScratchIndex {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        ScratchIndex { path: site.admin.join(format!("sluice-index-{}-{number}", std::process::id())) }
    }

    pub(crate) fn copy(site: &WorktreeSite) -> Result<ScratchIndex, GitError> {
        let (scratch, real) = (ScratchIndex::new(site), site.admin.join("index"));
        match fs::copy(&real, &scratch.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(GitError::file("cannot read", &real)(error)),
            Ok(_) | Err(_) => Ok(scratch),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn start(&self, site: &WorktreeSite, commit: &str) -> Result<(), GitError> {
        site.call().env("GIT_INDEX_FILE", &self.path).args(["read-tree", commit]).run()
    }

    /// Takes the entries in and stores the tree.
    pub(crate) fn tree(&self, site: &WorktreeSite, entries: Vec<Vec<u8>>) -> Result<String, GitError> {
        let call = || site.call().env("GIT_INDEX_FILE", &self.path).durable();
        if !entries.is_empty() {
            let input = entries.concat();
            call().args(["update-index", "--replace", "-z", "--index-info"]).input(input).run()?;
        }
        call().arg("write-tree").text()
    }
}

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        drop(gone(fs::remove_file(&self.path)));
    }
}
