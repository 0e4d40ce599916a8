//! What stands in a commit, whatever lies in a checkout.

use super::{GitError, Repository, shown};

/// The mode of a file, and of one that can be run. What else a commit can hold (links, other repositories) is no file.
const FILES: [&str; 2] = ["100644", "100755"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    /// Its path, from the root of the repository.
    pub path: String,
    pub size: u64,
    blob: String,
}

impl Repository {
    /// The files of a commit below these folders. What replaces objects in the eyes of git is not looked at: whoever can
    /// write into the repository could make a commit look like another one.
    pub fn committed_files(&self, commit: &str, below: &[&str]) -> Result<Vec<CommittedFile>, GitError> {
        let call = self.call().option("--no-replace-objects");
        let call = call.args(["ls-tree", "-r", "-z", "--long", "--full-tree", commit, "--"]).args(below);
        let listed = call.bytes()?;
        let mut found = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let Ok(line) = std::str::from_utf8(line) else { continue }; // no name that a definition can have
            let (about, path) = line.split_once('\t').ok_or_else(|| call.odd(shown(line.as_bytes())))?;
            let [mode, _, blob, size] = about.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(call.odd(shown(line.as_bytes())));
            };
            if let (true, Ok(size)) = (FILES.contains(&mode), size.parse()) {
                found.push(CommittedFile { path: path.to_owned(), size, blob: blob.to_owned() });
            }
        }
        Ok(found)
    }

    /// What stands in these files of a commit, in the same order.
    pub fn committed_bytes(&self, files: &[&CommittedFile]) -> Result<Vec<Vec<u8>>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: String = files.iter().map(|file| format!("{}\n", file.blob)).collect();
        let call = self.call().option("--no-replace-objects").args(["cat-file", "--batch"]).input(wanted);
        let answer = call.bytes()?;
        let mut rest = answer.as_slice();
        let mut found = Vec::with_capacity(files.len());
        for file in files {
            let cut = || call.odd(format!("{} is not in it as a file", shown(file.path.as_bytes())));
            let head = format!("{} blob {}\n", file.blob, file.size);
            rest = rest.strip_prefix(head.as_bytes()).ok_or_else(cut)?;
            let size = usize::try_from(file.size).map_err(|_| cut())?;
            let (bytes, after) = rest.split_at_checked(size).ok_or_else(cut)?;
            rest = after.strip_prefix(b"\n").ok_or_else(cut)?;
            found.push(bytes.to_vec());
        }
        Ok(found)
    }
}
