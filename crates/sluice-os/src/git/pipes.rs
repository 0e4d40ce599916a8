//! Files of a checkout that git reads and that would keep it waiting without end: an agent can make one of them a pipe.

use std::fs::{FileType, read_dir};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The files that git reads in every folder.
const READ: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
const MOST_FOLDERS: usize = 100_000;

/// The first such file below a folder that is no file to read.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut looked = 0;
    while let Some(folder) = folders.pop().filter(|_| looked < MOST_FOLDERS) {
        looked += 1;
        for entry in read_dir(&folder).into_iter().flatten().flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            if kind.is_dir() && name != ".git" {
                folders.push(entry.path());
            } else if is_waited_for(kind) && READ.iter().any(|read| name == *read) {
                return Some(entry.path());
            }
        }
    }
    None
}

fn is_waited_for(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}
