//! What a merge makes: in memory, and in a repository of our own that has the objects of the user's and nothing else of it.
//!
//! Whoever works in a worktree can write the configuration and the attributes that lie in the user's repository, and so
//! have a command of theirs decide what is merged (a merge driver, or a filter with `merge.renormalize`). Here git's own
//! ways of merging count, the drivers of the person's own configuration, and the attributes that stand in the commit
//! merged into.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::BranchTurn;
use crate::git::{GitCall, GitError, Repository, shown};

const MERGE: [&str; 5] = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];

/// The merge in memory; no file and no branch is touched.
pub(crate) fn merged_tree(
    turn: &BranchTurn<'_>,
    (branch, into): (&str, &str),
    base: Option<&str>,
    ours: &str,
    theirs: &str,
) -> Result<String, GitError> {
    let repository = turn.repository;
    let base = base.map(|base| format!("--merge-base={base}"));
    let asked = |call: GitCall| call.durable().args(MERGE).args(base.as_deref()).args([ours, theirs]);
    let room = MergeRepository::new(&turn.notes, ours)?;
    let call = asked(room.call(repository, ours));
    let mut ended = call.answer()?;
    if !matches!(ended.code, Some(0 | 1)) && is_partial(repository)? {
        // What a partial clone has not fetched yet comes with a merge in the repository itself, which is thrown away.
        asked(repository.call().network()).answer()?;
        ended = call.answer()?;
    }
    let fields = ended.stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut fields: Vec<String> = fields.map(shown).collect();
    match ended.code {
        Some(0) if !fields.is_empty() => Ok(fields.swap_remove(0)),
        Some(1) if fields.len() > 1 => {
            let unused = unused_drivers(repository, ours, theirs).map(|note| format!("; {note}")).unwrap_or_default();
            let files = fields.split_off(1);
            Err(GitError::Conflict { branch: branch.to_owned(), into: into.to_owned(), files, unused })
        }
        _ => Err(call.failed(&ended)),
    }
}

struct MergeRepository {
    folder: PathBuf,
}

impl MergeRepository {
    /// Made anew; the holder of the turn is the only one here. `commit` tells how the objects are named.
    fn new(notes: &Path, commit: &str) -> Result<MergeRepository, GitError> {
        let folder = notes.join("merge.git");
        let room = MergeRepository { folder: folder.clone() };
        room.clear();
        let format = if commit.len() == 64 { "sha256" } else { "sha1" };
        let config =
            format!("[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = {format}\n");
        fs::create_dir(&folder)
            .and_then(|()| fs::create_dir(folder.join("refs")))
            .map_err(GitError::file("cannot make", &folder))?;
        for (name, content) in [("HEAD", "ref: refs/heads/none\n"), ("config", config.as_str())] {
            let path = folder.join(name);
            fs::write(&path, content).map_err(GitError::file("cannot write", &path))?;
        }
        Ok(room)
    }

    /// A call that sees the objects of the user's repository, and the attributes of a commit.
    fn call(&self, repository: &Repository, attributes: &str) -> GitCall {
        let common = repository.common();
        let call = repository.git().at(&self.folder).env("GIT_DIR", &self.folder).env("GIT_ATTR_SOURCE", attributes);
        let call = call.env("GIT_OBJECT_DIRECTORY", common.join("objects"));
        let shallow = common.join("shallow");
        if shallow.exists() { call.env("GIT_SHALLOW_FILE", shallow) } else { call }
    }

    fn clear(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for MergeRepository {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether the repository has not all of its objects, and fetches them as they are needed.
fn is_partial(repository: &Repository) -> Result<bool, GitError> {
    let call = repository.call().args(["config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"]);
    Ok(call.maybe()?.is_some())
}

/// What to tell of the merge drivers that the repository's attributes name for a file which both sides have changed, and
/// that stand in its own configuration alone: they were not used. Telling it never stops a merge.
pub(crate) fn unused_drivers(repository: &Repository, ours: &str, theirs: &str) -> Option<String> {
    let names = unused(repository, ours, theirs).ok()?;
    let named: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let first = names.first()?;
    let (drivers, stand, were) = match names.len() {
        1 => ("driver", "stands", "was"),
        _ => ("drivers", "stand", "were"),
    };
    Some(format!(
        "the merge {drivers} {} {stand} only in the repository's own configuration, which every agent can write, and {were} \
         not used; `git config --global merge.{first}.driver COMMAND` makes it count",
        named.join(", ")
    ))
}

fn unused(repository: &Repository, ours: &str, theirs: &str) -> Result<BTreeSet<String>, GitError> {
    let call = repository.call().args(["config", "--null", "--show-scope", "--get-regexp", r"^merge\..*\.driver$"]);
    let (mut here, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    let text = call.maybe()?.unwrap_or_default();
    let mut fields = text.split('\0');
    while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
        let key = setting.split('\n').next().unwrap_or_default();
        let Some(name) = key.strip_prefix("merge.").and_then(|key| key.strip_suffix(".driver")) else { continue };
        let is_own = matches!(scope, "local" | "worktree");
        if is_own {
            here.insert(name.to_owned())
        } else {
            elsewhere.insert(name.to_owned())
        };
    }
    here.retain(|name| !elsewhere.contains(name));
    if here.is_empty() {
        return Ok(here);
    }
    let Some(base) = repository.call().args(["merge-base", ours, theirs]).maybe()? else { return Ok(BTreeSet::new()) };
    let changed = |commit: &str| -> Result<BTreeSet<Vec<u8>>, GitError> {
        let call = repository.call().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", &base, commit]);
        Ok(call.bytes()?.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    };
    let theirs = changed(theirs)?;
    let both: Vec<Vec<u8>> = changed(ours)?.into_iter().filter(|path| theirs.contains(path)).collect();
    let said = repository.call().args(["check-attr", "-z", "--stdin", "merge"]).input(both.join(&0)).bytes()?;
    let said: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    let default = repository.setting("merge.default")?.unwrap_or_default();
    let meant = |value: &[u8]| if value == b"unspecified" { default.clone() } else { shown(value) };
    let meant: BTreeSet<String> = said.chunks_exact(3).map(|answer| meant(answer[2])).collect();
    here.retain(|name| meant.contains(name));
    Ok(here)
}
