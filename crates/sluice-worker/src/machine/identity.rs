//! Which home this is, on which start of which machine. The name of a machine says nothing: there may be two of it.
//!
//! A home has a random id, made once. The file that holds it knows which file it is, so that a copy of it, on this machine
//! or another, is another home with another id; and a machine that was copied with everything on it starts by itself, and
//! so has another boot. It also knows where it lies: a copy knows the sessions and worktrees of the home that it was copied
//! from, and is not opened while that is still there.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sluice_api::Problem;
use sluice_os::file::{Durability, FileDraft};

use crate::names::new_id;

const FILE: &str = "home.id";

/// A home on a start of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeIdentity {
    pub home: String,
    pub boot: String,
    /// The machine was started again since this was last asked: one of this home that seems to live may be of before.
    pub is_restarted: bool,
}

impl HomeIdentity {
    /// Of this home, which is given one if it has none or is a copy.
    pub fn of(home: &Path) -> Result<HomeIdentity, Problem> {
        let path = home.join(FILE);
        let unusable = |error: io::Error| Problem::fault(format!("{} cannot be used: {error}", path.display()));
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(unusable)?.trim().to_owned();
        let place = home.canonicalize().map_err(unusable)?;
        let own = read(&path).map_err(unusable)?.filter(|it| it.is_own);
        let is_restarted = own.as_ref().is_some_and(|own| own.boot != boot);
        let is_as_written = own.as_ref().is_some_and(|own| own.boot == boot && own.place == place);
        let id = own.map_or_else(new_id, |own| Ok(own.id)).map_err(Problem::fault)?;
        if !is_as_written {
            write(&path, &id, &boot, &place).map_err(unusable)?;
        }
        Ok(HomeIdentity { home: id, boot, is_restarted })
    }

    /// Of this home, if it is not a copy of one that is still there.
    pub fn of_original(home: &Path) -> Result<HomeIdentity, Problem> {
        let copied = read(&home.join(FILE)).ok().flatten().filter(|it| !it.is_own);
        match copied.and_then(|copied| original(&copied, home)) {
            Some(first) => Err(is_copy(home, &first)),
            None => HomeIdentity::of(home),
        }
    }

    pub fn name(&self) -> String {
        format!("{}@{}", self.home, self.boot)
    }
}

struct IdentityFile {
    id: String,
    boot: String,
    /// Where the home was; nothing in files of earlier versions.
    place: PathBuf,
    /// The file is the one that was written, not a copy of it.
    is_own: bool,
}

/// What a file says, if it says something.
fn read(path: &Path) -> io::Result<Option<IdentityFile>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let own = std::fs::metadata(path)?.ino().to_string();
    let mut words = text.trim_end().splitn(4, ' ');
    let (Some(id), Some(inode), Some(boot)) = (words.next(), words.next(), words.next()) else { return Ok(None) };
    let place = words.next().unwrap_or_default().into();
    Ok(Some(IdentityFile { id: id.to_owned(), boot: boot.to_owned(), place, is_own: inode == own }))
}

/// The home that a home was copied from, if it is still where it was.
fn original(copied: &IdentityFile, copy: &Path) -> Option<PathBuf> {
    let there = read(&copied.place.join(FILE)).ok().flatten()?;
    let is_it = there.is_own && there.id == copied.id && copy.canonicalize().is_ok_and(|copy| copy != copied.place);
    is_it.then(|| copied.place.clone())
}

fn is_copy(home: &Path, first: &Path) -> Problem {
    let message = format!(
        "{} is a copy of the home {}, which is still there: both know the same agents and worktrees",
        home.display(),
        first.display()
    );
    Problem::unavailable(message).hint("use that home, or move it away first")
}

/// Written whole, with the number of the file itself in it.
fn write(path: &Path, id: &str, boot: &str, place: &Path) -> io::Result<()> {
    let draft = FileDraft::of(path, Durability::Synced)?;
    let inode = draft.file().metadata()?.ino();
    draft.write(format!("{id} {inode} {boot} {}\n", place.display()).as_bytes())?;
    draft.place()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_stays_itself_and_a_copy_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, copy) = (folder.path().join("home"), folder.path().join("copy"));
        [&home, &copy].iter().for_each(|path| std::fs::create_dir(path).expect("a folder"));
        let first = HomeIdentity::of(&home).expect("an identity");
        let again = HomeIdentity::of(&home).expect("an identity");
        assert_eq!((again.name(), first.is_restarted, again.is_restarted), (first.name(), false, false));
        write(&home.join(FILE), &first.home, "an-earlier-boot", &home).expect("written");
        let restarted = HomeIdentity::of(&home).expect("an identity");
        assert_eq!((restarted.name(), restarted.is_restarted), (first.name(), true));
        assert!(!HomeIdentity::of(&home).expect("an identity").is_restarted);
        std::fs::copy(home.join(FILE), copy.join(FILE)).expect("copied");
        let refused = HomeIdentity::of_original(&copy).expect_err("the first is there");
        assert!(refused.message.contains("is a copy of the home"), "{}", refused.message);
        assert_eq!(HomeIdentity::of(&home).expect("an identity").home, first.home);
        let moved = folder.path().join("moved");
        std::fs::rename(&home, &moved).expect("moved");
        assert_eq!(HomeIdentity::of(&moved).expect("an identity").home, first.home);
        assert_ne!(HomeIdentity::of_original(&copy).expect("an identity").home, first.home);
    }
}
