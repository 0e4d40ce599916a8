//! What git says about a checkout: which files differ from the last commit and how.
//!
//! It only reads. Paths are bytes, renames are a removal and an addition, and ignored files are not named.

use std::collections::BTreeSet;

use super::{GitCall, GitError, shown};

/// What git says of a folder that it cannot look into.
const UNOPENED: &str = "could not open directory";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckoutChange {
    pub(crate) staged: bool,
    pub(crate) unstaged: bool,
    /// The index only says that the file is to be added.
    pub(crate) intended: bool,
    pub(crate) submodule: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnmergedEntry {
    /// 1 the common ancestor, 2 ours, 3 theirs.
    pub(crate) stage: u8,
    /// git's mode, in octal digits.
    pub(crate) mode: String,
    pub(crate) id: String,
    pub(crate) path: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckoutChanges {
    /// The commit that is checked out; none before the first one.
    pub(crate) head: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) tracked: Vec<(Vec<u8>, CheckoutChange)>,
    pub(crate) unmerged: Vec<UnmergedEntry>,
    /// Files that git does not know and does not ignore.
    pub(crate) untracked: BTreeSet<Vec<u8>>,
    /// Folders that are git repositories of their own.
    pub(crate) nested: BTreeSet<Vec<u8>>,
    /// Whether there are files that git ignores; not known unless it was asked for.
    pub(crate) has_ignored: bool,
}

impl CheckoutChanges {
    /// Asks git. The call stands in the checkout.
    pub(crate) fn of(call: GitCall) -> Result<CheckoutChanges, GitError> {
        CheckoutChanges::ask(call.arg("status").arg("--ignored=no"))
    }

    /// The same, and whether there are ignored files.
    pub(crate) fn with_ignored(call: GitCall) -> Result<CheckoutChanges, GitError> {
        CheckoutChanges::ask(call.arg("status").arg("--ignored=matching"))
    }

    fn ask(call: GitCall) -> Result<CheckoutChanges, GitError> {
        let call = call.looking().args(["--porcelain=v2", "--branch", "-z", "--untracked-files=all"]);
        let call = call.args(["--no-renames", "--ignore-submodules=none", "--no-ahead-behind"]);
        let ended = call.answer()?;
        if ended.code != Some(0) {
            return Err(call.failed(&ended));
        }
        // A folder that it cannot open it takes for an empty one, and ends with 0.
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        if let Some(line) = said.lines().find(|line| line.contains(UNOPENED)) {
            return Err(GitError::Unlisted { said: line.trim_start_matches("warning: ").to_owned() });
        }
        parse(&ended.stdout).ok_or_else(|| call.odd(String::from_utf8_lossy(&ended.stdout)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tracked.is_empty() && self.unmerged.is_empty() && self.untracked.is_empty() && self.nested.is_empty()
    }

    /// The paths of all that differs, once each, for a message.
    pub(crate) fn names(&self) -> Vec<String> {
        let known = self.tracked.iter().map(|(path, _)| path).chain(self.unmerged.iter().map(|it| &it.path));
        let mut paths: Vec<&Vec<u8>> = known.chain(&self.untracked).chain(&self.nested).collect();
        paths.sort();
        paths.dedup();
        paths.into_iter().map(|path| shown(path)).collect()
    }

    pub(crate) fn forget(&mut self, path: &[u8]) {
        self.tracked.retain(|(it, _)| it != path);
        self.unmerged.retain(|it| it.path != path);
        self.untracked.remove(path);
    }
}

fn parse(bytes: &[u8]) -> Option<CheckoutChanges> {
    let mut changes = CheckoutChanges::default();
    for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        if let Some(head) = record.strip_prefix(b"# branch.oid ") {
            changes.head = Some(std::str::from_utf8(head).ok()?.to_owned()).filter(|it| it != "(initial)");
            continue;
        }
        if let Some(branch) = record.strip_prefix(b"# branch.head ") {
            changes.branch = Some(std::str::from_utf8(branch).ok()?.to_owned()).filter(|it| it != "(detached)");
            continue;
        }
        let (kind, rest) = (record.first()?, record.get(2..)?);
        match kind {
            b'1' => {
                let (words, path) = words::<7>(rest)?;
                let [code, submodule, ..] = words;
                let (staged, unstaged) = (code.as_bytes().first()?, code.as_bytes().get(1)?);
                let submodule = submodule.starts_with('S');
                let change = CheckoutChange {
                    staged: *staged != b'.',
                    unstaged: *unstaged != b'.',
                    intended: *unstaged == b'A',
                    submodule,
                };
                changes.tracked.push((path.to_vec(), change));
            }
            b'u' => {
                let (words, path) = words::<9>(rest)?;
                let [_, submodule, one, two, three, _, id_one, id_two, id_three] = words;
                if submodule.starts_with('S') {
                    let change = CheckoutChange { staged: false, unstaged: true, intended: false, submodule: true };
                    changes.tracked.push((path.to_vec(), change));
                }
                for (stage, mode, id) in [(1, one, id_one), (2, two, id_two), (3, three, id_three)] {
                    if mode != "000000" {
                        let (mode, id, path) = (mode.to_owned(), id.to_owned(), path.to_vec());
                        changes.unmerged.push(UnmergedEntry { stage, mode, id, path });
                    }
                }
            }
            b'?' => match rest.strip_suffix(b"/") {
                Some(folder) => drop(changes.nested.insert(folder.to_vec())),
                None => drop(changes.untracked.insert(rest.to_vec())),
            },
            b'!' => changes.has_ignored = true,
            b'#' => {}
            _ => return None,
        }
    }
    Some(changes)
}

/// The first words of a record, and the rest of it, which is a path.
fn words<const COUNT: usize>(record: &[u8]) -> Option<([&str; COUNT], &[u8])> {
    let mut words = [""; COUNT];
    let mut rest = record;
    for word in &mut words {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        *word = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end + 1..];
    }
    Some((words, rest))
}
