//! `cargo xtask pictures`: makes the pictures of README and docs from a real run of the real program. `--check` makes them in
//! the target folder only, so that `./test` sees that they still can be made, and leaves those of the documents alone.

use std::path::Path;
use std::process::ExitCode;

use crate::page_scripts::play;
use crate::served_home::{built, target};
use crate::{root, said};

/// Every picture of the documents.
const PICTURES: [&str; 5] = ["dashboard.svg", "dashboard-diff.svg", "page-board.png", "page-task.png", "page-run.png"];
/// The most bytes of one.
const LARGEST: u64 = 200_000;

pub fn main(rest: &[&str]) -> ExitCode {
    match rest {
        [] => said(make(true)),
        ["--check"] => said(make(false)),
        _ => said(Err("pictures: it takes no argument but `--check`".to_owned())),
    }
}

fn make(is_kept: bool) -> Result<(), String> {
    let folder = target().join("pictures");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    play("pictures.mjs", built()?, &folder, &[])?;
    for name in PICTURES {
        let path = folder.join(name);
        let size = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        if size > LARGEST {
            return Err(format!("{} has {size} bytes: a picture has at most {LARGEST}", path.display()));
        }
    }
    if is_kept { keep(&folder) } else { Ok(()) }
}

fn keep(folder: &Path) -> Result<(), String> {
    let documents = root().join("docs/pictures");
    for name in PICTURES {
        std::fs::copy(folder.join(name), documents.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_have_the_pictures_that_are_made_and_no_others() {
        let there = std::fs::read_dir(root().join("docs/pictures")).expect("pictures");
        let mut there: Vec<_> = there.map(|entry| entry.expect("an entry").file_name()).collect();
        there.sort();
        let mut made = PICTURES.map(std::ffi::OsString::from);
        made.sort();
        assert_eq!(there, made);
    }
}
