//! What the set-up of a worktree has made there that git does not track: none of it is work for as long as it is unchanged.
//!
//! It is noted in what git keeps for the worktree, with what each file held. What has changed since then is work, and what lay
//! there before a set-up began is none of its doing. That is noted first: what one that was killed has left is known for what it
//! is, as nothing works in a worktree before its set-up has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::furnish::rule;
use super::setup::content_of;
use super::site::{WorktreeSite, admin_of};
use crate::file::{Durability, write_atomically};
use crate::git::{CheckoutChanges, GitError, Repository, path_of, quote, remove_file, unquote};

/// The note of what the set-up made.
const MADE: &str = "sluice-made";
/// The note of what lay there before a set-up that has begun and not ended.
const BEFORE: &str = "sluice-made-before";
/// What was made as rules for git, for a moment.
const RULES: &str = "sluice-made-rules";
/// So many files are noted at most; of more, all count as work.
const MOST_MADE: usize = 50_000;

/// What lay in a worktree when its set-up began.
#[derive(Clone, Debug)]
pub struct SetupTraces {
    site: WorktreeSite,
    work: BTreeSet<Vec<u8>>,
}

impl SetupTraces {
    /// Looks at a worktree before its set-up; nothing where it is none.
    pub fn before(repository: &Repository, worktree: &Path) -> Result<Option<SetupTraces>, GitError> {
        let Some(admin) = admin_of(worktree) else { return Ok(None) };
        let site = WorktreeSite { repository: repository.clone(), folder: worktree.to_owned(), admin };
        // An earlier one was killed.
        if let Some(traces) = SetupTraces::unended(&site) {
            return Ok(Some(traces));
        }
        let work = untracked(&site)?;
        let text: String = work.iter().map(|path| quote(path) + "\n").collect();
        let note = site.admin.join(BEFORE);
        write_atomically(&note, text.as_bytes(), Durability::Synced).map_err(GitError::file("cannot write", &note))?;
        Ok(Some(SetupTraces { site, work }))
    }

    /// What lay there before a set-up that has begun and not ended; nothing if there is none.
    fn unended(site: &WorktreeSite) -> Option<SetupTraces> {
        let text = fs::read_to_string(site.admin.join(BEFORE)).ok()?;
        Some(SetupTraces { site: site.clone(), work: text.lines().filter_map(unquote).collect() })
    }

    /// Notes what is new since then, when the set-up has ended.
    pub fn note(&self) -> Result<(), GitError> {
        self.note_new()?;
        remove_file(&self.site.admin.join(BEFORE))
    }

    fn note_new(&self) -> Result<(), GitError> {
        let admin = &self.site.admin;
        let mut made = noted(admin);
        let new = CheckoutChanges::of(self.site.call())?.untracked;
        for path in new.into_iter().filter(|path| !self.work.contains(path)) {
            if let Some(content) = content(&self.site.folder, &path) {
                made.insert(path, content);
            }
        }
        if made.is_empty() || made.len() > MOST_MADE {
            return Ok(());
        }
        let text: String = made.iter().map(|(path, content)| format!("{content} {}\n", quote(path))).collect();
        let note = admin.join(MADE);
        write_atomically(&note, text.as_bytes(), Durability::Synced).map_err(GitError::file("cannot write", &note))
    }
}

/// What git does not track in a worktree, without what its set-up made and nothing has changed since.
fn untracked(site: &WorktreeSite) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let mut changes = CheckoutChanges::of(site.call())?;
    forget(site, &mut changes)?;
    Ok(changes.untracked)
}

/// Takes what the set-up made, and nothing has changed since, out of what has changed in a worktree.
pub(super) fn forget(site: &WorktreeSite, changes: &mut CheckoutChanges) -> Result<(), GitError> {
    let made = made_in(site)?;
    changes.untracked.retain(|path| !is_as_made(&made, &site.folder, path));
    Ok(())
}

/// What the set-up of a worktree made and nothing has changed since, of what is there.
pub(crate) fn as_made(site: &WorktreeSite) -> Result<Vec<Vec<u8>>, GitError> {
    let made = made_in(site)?;
    Ok(made.keys().filter(|path| is_as_made(&made, &site.folder, path)).cloned().collect())
}

/// What was noted. What a set-up that was killed has left is noted now.
fn made_in(site: &WorktreeSite) -> Result<BTreeMap<Vec<u8>, String>, GitError> {
    if let Some(traces) = SetupTraces::unended(site).filter(|_| site.is_present()) {
        traces.note_new()?;
    }
    Ok(noted(&site.admin))
}

/// The option by which `git ls-files` leaves out what the set-up made and nothing has changed since.
pub(super) fn exclusion(site: &WorktreeSite) -> Result<Option<String>, GitError> {
    let rules: String = as_made(site)?.iter().map(|path| rule(path) + "\n").collect();
    let file = site.admin.join(RULES);
    // What cannot be left out is kept.
    let is_written = !rules.is_empty() && fs::write(&file, rules).is_ok();
    Ok(is_written.then(|| format!("--exclude-from={}", file.display())))
}

fn is_as_made(made: &BTreeMap<Vec<u8>, String>, folder: &Path, path: &[u8]) -> bool {
    made.get(path).is_some_and(|before| content(folder, path).as_ref() == Some(before))
}

fn content(folder: &Path, path: &[u8]) -> Option<String> {
    let bytes = content_of(&path_of(folder, path)).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What was noted. A note that cannot be read is none: then what it names counts as work, and is kept.
fn noted(admin: &Path) -> BTreeMap<Vec<u8>, String> {
    let text = fs::read_to_string(admin.join(MADE)).unwrap_or_default();
    let line = |line: &str| {
        let (content, path) = line.split_once(' ')?;
        Some((unquote(path)?, content.to_owned()))
    };
    text.lines().filter_map(line).collect()
}
