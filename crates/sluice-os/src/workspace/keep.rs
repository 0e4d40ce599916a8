//! Keeping what would be lost, as commits below `refs/sluice/keep/<task>/<n>`.
//!
//! A keep is one commit. Its tree is the worktree as it lay on disk. Its parents are, as far as there are such: the
//! commit that was checked out, the index, the files that differed byte for byte, the sides of conflicts, and commits
//! that nothing else reached. Its message says which is which. Neither the branch nor the user's index is altered, and
//! the same state kept twice is one keep.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::risk::{ScratchIndex, WorkspaceRisk, entry};
use super::site::WorktreeSite;
use crate::git::{GitError, Repository, quote, references_below, slug};
use crate::merge::commit_as;
use crate::passing::PassingError;

pub(crate) const KEEPS: &str = "refs/sluice/keep";
/// What git says of a file that it may not read: it does not go away by itself.
const UNREADABLE: &str = "Permission denied";
/// How often a state that changes while it is being kept is kept again.
const ATTEMPTS: usize = 3;

/// The references under which the work of a task or run is kept, as the files of the repository around this folder say it.
pub fn keeps_of(folder: &Path, task: &str) -> Vec<String> {
    references_below(folder, &format!("{KEEPS}/{}", slug(task)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepKind {
    Staged,
    Unstaged,
    Untracked,
    Conflict,
    /// Commits that no branch, remote or tag reached.
    Commits,
    /// Another git repository inside the workspace, moved aside as a whole.
    Repository,
    /// A branch that was deleted.
    Branch,
    /// Files that only the task's branch ignored, moved aside.
    Ignored,
}

/// What is kept, and as what it can be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepRef {
    pub task: String,
    pub number: u32,
    pub reference: String,
    pub commit: String,
    pub time: SystemTime,
    pub workspace: Option<String>,
    pub branch: Option<String>,
    pub head: Option<String>,
    pub what: Vec<KeepKind>,
}

/// A keep as it is stored. One that others made or that cannot be read has no note.
pub(crate) struct StoredKeep {
    pub(crate) kept: KeepRef,
    pub(crate) note: Option<KeepNote>,
    pub(crate) tree: String,
}

/// The message of a keep, after its first line. Its keys stay as they are: keeps live for long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeepNote {
    pub(crate) version: u32,
    pub(crate) task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    /// The commit whose tree is the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    /// The commit whose tree is the files that differed, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<String>,
    /// The commit whose tree has the sides of conflicts, in the folders `1`, `2` and `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sides: Option<String>,
    /// `MERGE_HEAD` and its like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) marks: BTreeMap<String, Vec<String>>,
    /// Commits that nothing else reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) commits: Vec<String>,
    /// Permissions that git does not remember, by quoted path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) permissions: BTreeMap<String, u32>,
    /// Files of which the index only said that they are to be added, as quoted paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) intended: Vec<String>,
    pub(crate) what: Vec<KeepKind>,
}

impl KeepNote {
    pub(crate) fn new(task: &str) -> KeepNote {
        KeepNote { version: 1, task: task.to_owned(), ..KeepNote::default() }
    }

    fn of(site: &WorktreeSite, task: &str, risk: &WorkspaceRisk) -> KeepNote {
        let (branch, head) = (risk.branch.clone(), risk.head.clone());
        KeepNote { workspace: Some(site.name()), branch, head, ..KeepNote::new(task) }
    }

    fn parents(&self) -> Vec<&str> {
        let named = self.head.iter().chain(&self.index).chain(&self.files).chain(&self.sides).chain(&self.commits);
        let mut parents: Vec<&str> = Vec::new();
        for commit in named {
            if !parents.contains(&commit.as_str()) {
                parents.push(commit);
            }
        }
        parents
    }
}

/// Keeps what would be lost in a worktree, if anything would, and makes sure that it is kept: what was stored is read
/// again and compared with what lies on disk.
pub(crate) fn keep(site: &WorktreeSite, task: &str) -> Result<(Option<KeepRef>, WorkspaceRisk), GitError> {
    for _ in 0..ATTEMPTS {
        let before = match WorkspaceRisk::of(site) {
            // A file that vanished between two looks; look again.
            Err(ref error @ GitError::Failed { ref what, ref said, .. })
                if what.contains("hash-object") && !error.is_passing() && !said.contains(UNREADABLE) =>
            {
                continue;
            }
            before => before?,
        };
        if before.is_empty() {
            return Ok((None, before));
        }
        let kept = store(site, task, &before)?;
        if before.again(site)? == before {
            return Ok((Some(kept), before));
        }
    }
    Err(GitError::Changing { folder: site.folder.clone() })
}

/// A keep for what is moved aside from a worktree in which nothing else would be lost.
pub(crate) fn keep_aside(site: &WorktreeSite, task: &str, risk: &WorkspaceRisk) -> Result<KeepRef, GitError> {
    let note = KeepNote { what: vec![KeepKind::Ignored], ..KeepNote::of(site, task, risk) };
    let tree = match &risk.head {
        Some(head) => site.repository.tree(head)?,
        None => ScratchIndex::new(site).tree(site, Vec::new())?,
    };
    write(&site.repository, &note, &tree)
}

fn store(site: &WorktreeSite, task: &str, risk: &WorkspaceRisk) -> Result<KeepRef, GitError> {
    let repository = &site.repository;
    let mut note = KeepNote::of(site, task, risk);
    note.marks = risk.marks.clone();
    note.commits = risk.lost.iter().cloned().collect();
    note.what = kinds(risk);
    let intended = risk.changes.tracked.iter().filter(|(_, change)| change.intended);
    note.intended = intended.map(|(path, _)| quote(path)).collect();
    let files: Vec<Vec<u8>> = risk.files.iter().map(|(path, file)| entry(file.mode, &file.id, path)).collect();
    if let Some(tree) = &risk.index {
        note.index = Some(part(repository, tree, note.head.as_ref())?);
    }
    if !files.is_empty() {
        note.files = Some(part(repository, &ScratchIndex::new(site).tree(site, files.clone())?, None)?);
    }
    if !risk.changes.unmerged.is_empty() {
        let sides = risk.changes.unmerged.iter().map(|side| {
            let path = [side.stage.to_string().as_bytes(), b"/", &side.path].concat();
            entry(&side.mode, &side.id, &path)
        });
        note.sides = Some(part(repository, &ScratchIndex::new(site).tree(site, sides.collect())?, None)?);
    }
    for (path, file) in &risk.files {
        if !matches!((file.mode, file.permissions), ("120000", _) | ("100644", 0o644) | ("100755", 0o755)) {
            note.permissions.insert(quote(path), file.permissions);
        }
    }
    let tree = worktree_tree(site, risk, files)?;
    let kept = write(repository, &note, &tree)?;
    verify(site, risk, &note, &tree, &kept)?;
    Ok(kept)
}

/// The worktree as it lies on disk. A folder that is gone has the index at most.
fn worktree_tree(site: &WorktreeSite, risk: &WorkspaceRisk, files: Vec<Vec<u8>>) -> Result<String, GitError> {
    if let (false, Some(index)) = (site.is_present(), &risk.index) {
        return Ok(index.clone());
    }
    let scratch = ScratchIndex::new(site);
    if let Some(head) = &risk.head {
        scratch.start(site, head)?;
    }
    let width = risk.head.as_ref().map_or(40, String::len);
    let nothing = "0".repeat(width);
    let mut entries: Vec<Vec<u8>> = risk.removed.iter().map(|path| entry("0", &nothing, path)).collect();
    entries.extend(files);
    scratch.tree(site, entries)
}

/// What there is to keep, in the order in which it is told.
pub(crate) fn kinds(risk: &WorkspaceRisk) -> Vec<KeepKind> {
    let changes = &risk.changes;
    let found = [
        (KeepKind::Staged, risk.index.is_some() || changes.tracked.iter().any(|(_, change)| change.staged)),
        (KeepKind::Unstaged, changes.tracked.iter().any(|(_, change)| change.unstaged)),
        (KeepKind::Untracked, !changes.untracked.is_empty()),
        (KeepKind::Conflict, !changes.unmerged.is_empty()),
        (KeepKind::Commits, risk.head_lost || !risk.lost.is_empty()),
        (KeepKind::Repository, !changes.nested.is_empty()),
    ];
    found.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect()
}

/// A part of a keep as a commit that is the same whenever it is made.
fn part(repository: &Repository, tree: &str, parent: Option<&String>) -> Result<String, GitError> {
    let parents: Vec<&str> = parent.into_iter().map(String::as_str).collect();
    commit(repository, tree, &parents, "A part of a keep\n", "@0 +0000")
}

fn commit(
    repository: &Repository,
    tree: &str,
    parents: &[&str],
    message: &str,
    date: &str,
) -> Result<String, GitError> {
    let mut call = repository.call();
    for who in ["AUTHOR", "COMMITTER"] {
        call = call.env(&format!("GIT_{who}_NAME"), "Sluice").env(&format!("GIT_{who}_EMAIL"), "sluice@localhost");
        call = call.env(&format!("GIT_{who}_DATE"), date);
    }
    commit_as(call, tree, parents, message)
}

/// Stores a keep under the task's next number, or finds the same one that is there.
pub(crate) fn write(repository: &Repository, note: &KeepNote, tree: &str) -> Result<KeepRef, GitError> {
    let own = stored(repository, Some(&note.task))?;
    if let Some(same) = own.iter().find(|it| it.note.as_ref() == Some(note) && it.tree == tree) {
        return Ok(same.kept.clone());
    }
    let body = serde_json::to_string(note)
        .map_err(|error| GitError::Answer { what: "writing the note of a keep".to_owned(), said: error.to_string() })?;
    let place = slug(&note.task);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (message, date) = (format!("Work kept for {place}\n\n{body}\n"), format!("@{since} +0000"));
    let commit = commit(repository, tree, &note.parents(), &message, &date)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(since);
    let nothing = "0".repeat(commit.len());
    let mut number = own.iter().map(|it| it.kept.number).max().unwrap_or(0);
    loop {
        number += 1;
        let reference = format!("{KEEPS}/{place}/{number}");
        let call = repository.call().durable();
        let ended = call.args(["update-ref", "-m", "sluice: keep", &reference, &commit, &nothing]).answer()?;
        if ended.code == Some(0) {
            return Ok(kept_of(reference, number, commit, time, note));
        }
        // Taken by another process in the meantime: the next number. Anything else is a failure.
        if repository.commit(&reference)?.is_none() {
            return Err(repository.call().args(["update-ref", &reference]).failed(&ended));
        }
    }
}

fn verify(
    site: &WorktreeSite,
    risk: &WorkspaceRisk,
    note: &KeepNote,
    tree: &str,
    kept: &KeepRef,
) -> Result<(), GitError> {
    let repository = &site.repository;
    let differs = |detail: &str| GitError::KeepDiffers {
        reference: kept.reference.clone(),
        folder: site.folder.clone(),
        detail: detail.to_owned(),
    };
    let (reference, content) = (&kept.reference, format!("{}^{{tree}}", kept.reference));
    let leads_to = repository.call().args(["rev-parse", reference, &content]).text()?;
    if leads_to != format!("{}\n{tree}", kept.commit) {
        return Err(differs("the reference does not lead to it"));
    }
    let stored = match &note.files {
        Some(commit) => list_tree(repository, commit)?,
        None => Vec::new(),
    };
    let wanted = risk.files.iter().map(|(path, file)| (file.mode.to_owned(), file.id.clone(), path.clone()));
    if stored != wanted.collect::<Vec<_>>() {
        return Err(differs("its files are others"));
    }
    let ids: String = risk.files.values().map(|file| format!("{}\n", file.id)).chain([kept.commit.clone()]).collect();
    let answer = repository.call().args(["cat-file", "--batch-check=%(objecttype)"]).input(ids).text()?;
    if answer.lines().any(|line| line.ends_with("missing")) {
        return Err(differs("an object is missing"));
    }
    Ok(())
}

/// All files of a tree: mode, blob and path, by path.
pub(crate) fn list_tree(repository: &Repository, tree: &str) -> Result<Vec<(String, String, Vec<u8>)>, GitError> {
    let call = repository.call().args(["ls-tree", "-r", "-z", "--full-tree", tree]);
    let bytes = call.bytes()?;
    let mut files = Vec::new();
    for line in bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(|| call.odd("a line without a path"))?;
        let words = String::from_utf8_lossy(&line[..tab]).into_owned();
        let mut words = words.split(' ');
        let (Some(mode), Some(_), Some(id)) = (words.next(), words.next(), words.next()) else {
            return Err(call.odd("a line without an id"));
        };
        files.push((mode.to_owned(), id.to_owned(), line[tab + 1..].to_vec()));
    }
    // git sorts a folder as if its name ended in `/`; the whole path decides here.
    files.sort_by(|one, other| one.2.cmp(&other.2));
    Ok(files)
}

/// What is kept, with the notes and trees; of one task, or of all.
pub(crate) fn stored(repository: &Repository, task: Option<&str>) -> Result<Vec<StoredKeep>, GitError> {
    let below = task.map_or_else(|| KEEPS.to_owned(), |task| format!("{KEEPS}/{}", slug(task)));
    let format = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(tree)%00%(contents:body)%00";
    let bytes = repository.call().args(["for-each-ref", format, &below]).bytes()?;
    let mut found = Vec::new();
    let fields: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|it| String::from_utf8_lossy(it).into_owned()).collect();
    for record in fields.chunks_exact(5) {
        let [reference, commit, time, tree, body] = record else { continue };
        let reference = reference.trim_start().to_owned();
        let Some((place, number)) = reference.strip_prefix(KEEPS).and_then(|it| it.trim_matches('/').rsplit_once('/'))
        else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        let note: Option<KeepNote> = serde_json::from_str(body.trim()).ok();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time.parse().unwrap_or(0));
        let shown = note.clone().unwrap_or_else(|| KeepNote::new(place));
        let kept = kept_of(reference, number, commit.clone(), time, &shown);
        found.push(StoredKeep { kept, note, tree: tree.clone() });
    }
    found.sort_by(|one, other| (&one.kept.task, one.kept.number).cmp(&(&other.kept.task, other.kept.number)));
    Ok(found)
}

fn kept_of(reference: String, number: u32, commit: String, time: SystemTime, note: &KeepNote) -> KeepRef {
    KeepRef {
        task: note.task.clone(),
        number,
        reference,
        commit,
        time,
        workspace: note.workspace.clone(),
        branch: note.branch.clone(),
        head: note.head.clone(),
        what: note.what.clone(),
    }
}
