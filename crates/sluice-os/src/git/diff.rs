//! What a branch adds to the default branch, and what lies uncommitted in a worktree, as patches for people.
//!
//! It only looks: no index but a scratch one is touched, and no program that a repository names for showing differences is
//! run. What is too long is cut, and says so.

use std::path::Path;

use super::{GitCall, GitError, Repository};
use crate::workspace::{ScratchIndex, WorktreeSite};

/// How much of a difference is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLimits {
    /// Bytes of the patch; none: no patch is wanted.
    pub bytes: usize,
    pub files: usize,
}

/// A file that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffedFile {
    pub path: String,
    /// Its path before it was renamed, if it was.
    pub before: Option<String>,
    /// Lines; nothing for a file that is no text.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

/// A difference, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffRead {
    pub files: Vec<DiffedFile>,
    /// How many files differ, whether or not they are all named.
    pub count: usize,
    pub patch: String,
    /// Whether the patch goes on.
    pub is_cut: bool,
}

/// A commit of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchCommit {
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    pub author: String,
    /// When it was made, in RFC 3339.
    pub at: String,
}

impl Repository {
    /// Whether the repository has a commit of this id.
    pub fn has_commit(&self, id: &str) -> Result<bool, GitError> {
        let name = format!("{id}^{{commit}}");
        Ok(self
            .call()
            .looking()
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
            .maybe()?
            .is_some())
    }

    /// The commits that one has over another, the newest first, at most so many.
    pub fn commits(&self, from: &str, to: &str, most: usize) -> Result<Vec<BranchCommit>, GitError> {
        let (range, most) = (format!("{from}..{to}"), format!("--max-count={most}"));
        let form = "--format=%H%x1f%an%x1f%aI%x1f%s";
        let listed = self.call().looking().args(["log", "-z", "--no-color", &most, form, &range, "--"]).bytes()?;
        let commit = |it: &[u8]| {
            let text = String::from_utf8_lossy(it);
            let mut fields = text.splitn(4, '\u{1f}').map(str::to_owned);
            let (id, author, at) = (fields.next()?, fields.next()?, fields.next()?);
            Some(BranchCommit { id, author, at, subject: fields.next().unwrap_or_default() })
        };
        Ok(listed.split(|byte| *byte == 0).filter(|it| !it.is_empty()).filter_map(commit).collect())
    }

    /// Where a commit left the default branch, if the two have anything in common.
    pub fn fork_point(&self, commit: &str) -> Result<Option<String>, GitError> {
        let default = self.default_commit()?;
        self.call().looking().args(["merge-base", &default, commit]).maybe()
    }

    /// What one commit has over another.
    pub fn committed_diff(&self, from: &str, to: &str, limits: DiffLimits) -> Result<DiffRead, GitError> {
        read(|| diff(self.call().looking()), &[from, to], limits)
    }

    /// What a worktree has that its commit has not, new files too. Nothing if it is no worktree of this repository, or gone.
    pub fn uncommitted_diff(&self, worktree: &Path, limits: DiffLimits) -> Result<Option<DiffRead>, GitError> {
        let Some(site) = WorktreeSite::find(self, worktree)?.filter(WorktreeSite::is_present) else { return Ok(None) };
        let scratch = ScratchIndex::copy(&site)?;
        let call = || site.call().looking().env("GIT_INDEX_FILE", scratch.path());
        // So that new files are told of as well.
        call().args(["add", "--intent-to-add", "--all", "--", "."]).run()?;
        read(|| diff(call()), &["HEAD"], limits).map(Some)
    }
}

fn diff(call: GitCall) -> GitCall {
    call.args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--submodule=short"])
}

fn read(call: impl Fn() -> GitCall, ends: &[&str], limits: DiffLimits) -> Result<DiffRead, GitError> {
    let listed = call().args(["--numstat", "-z"]).args(ends).arg("--").bytes()?;
    let mut files = numbers(&listed);
    let count = files.len();
    files.truncate(limits.files);
    let mut read = DiffRead { files, count, ..DiffRead::default() };
    if limits.bytes > 0 && count > 0 {
        let forms = ["--patch", "--src-prefix=a/", "--dst-prefix=b/"];
        // One more, by which it is seen that it goes on.
        let bytes = call().args(forms).args(ends).arg("--").first(limits.bytes as u64 + 1).bytes()?;
        read.is_cut = bytes.len() > limits.bytes;
        let end = bytes.len().min(limits.bytes);
        let whole = if read.is_cut { bytes[..end].iter().rposition(|byte| *byte == b'\n') } else { None };
        read.patch = String::from_utf8_lossy(&bytes[..whole.map_or(end, |at| at + 1)]).into_owned();
    }
    Ok(read)
}

/// The files of `--numstat -z`: `added TAB removed TAB path NUL`, of a renamed one `added TAB removed TAB NUL old NUL new NUL`.
fn numbers(listed: &[u8]) -> Vec<DiffedFile> {
    let mut parts = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files = Vec::new();
    while let Some(part) = parts.next() {
        let mut fields = part.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (before, path) = match path {
            "" => (parts.next().map(|old| old.into_owned()), parts.next().unwrap_or_default().into_owned()),
            path => (None, path.to_owned()),
        };
        files.push(DiffedFile { path, before, added: added.parse().ok(), removed: removed.parse().ok() });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn files_are_read_with_their_old_names() {
        let listed = b"1\t2\ta b\n\0-\t-\tpicture\x000\t3\t\0old\0new\0";
        let files: Vec<String> = numbers(listed)
            .iter()
            .map(|it| format!("{:?} {:?} {:?} {:?}", it.path, it.before, it.added, it.removed))
            .collect();
        assert_eq!(
            files,
            [r#""a b\n" None Some(1) Some(2)"#, r#""picture" None None None"#, r#""new" Some("old") Some(0) Some(3)"#,]
        );
    }
}
