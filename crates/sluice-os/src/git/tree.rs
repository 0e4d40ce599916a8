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
        let ids: Vec<&str> = files.iter().map(|file| file.blob.as_str()).collect();
        self.blobs(&ids, |at| format!("{} is not in it as a file", shown(files[at].path.as_bytes())))
    }

    /// The contents of blobs, in the same order. `unread` is what to say of one that is not there.
    pub(crate) fn blobs(&self, ids: &[&str], unread: impl Fn(usize) -> String) -> Result<Vec<Vec<u8>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let call =
            self.call().option("--no-replace-objects").args(["cat-file", "--batch"]).input(ids.join("\n") + "\n");
        let bytes = call.bytes()?;
        let mut rest = bytes.as_slice();
        let mut contents = Vec::with_capacity(ids.len());
        for (at, id) in ids.iter().enumerate() {
            let odd = || call.odd(unread(at));
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(odd)?;
            let header = std::str::from_utf8(&rest[..end]).map_err(|_| odd())?;
            let size = header.strip_prefix(&format!("{id} blob ")).and_then(|size| size.parse::<usize>().ok());
            let (content, after) = rest[end + 1..].split_at_checked(size.ok_or_else(odd)?).ok_or_else(odd)?;
            rest = after.strip_prefix(b"\n").ok_or_else(odd)?;
            contents.push(content.to_vec());
        }
        Ok(contents)
    }
}
