//! Which home this is, on which start of which machine. The name of a machine says nothing: there may be two of it.
//!
//! A home has a random id, made once. The file that holds it knows which file it is, so that a copy of it, on this machine
//! or another, is another home with another id; and a machine that was copied with everything on it starts by itself, and
//! so has another boot.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sluice_api::Problem;

use crate::clock::new_id;

/// The file in a home.
const FILE: &str = "home.id";

/// A home on a start of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The home.
    pub(crate) home: String,
    /// The start of the machine.
    pub(crate) boot: String,
    /// The machine was started again since this was last asked: one of this home that seems to live may be of before.
    pub(crate) is_restarted: bool,
}

impl Identity {
    /// Of this home, which is given one if it has none or is a copy.
    pub(crate) fn of(home: &Path) -> Result<Identity, Problem> {
        let path = home.join(FILE);
        let unusable = |error: io::Error| Problem::fault(format!("{} cannot be used: {error}", path.display()));
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(unusable)?.trim().to_owned();
        let (id, last_boot) = match read(&path).map_err(unusable)? {
            Some((id, last_boot)) => (id, Some(last_boot)),
            None => (new_id().map_err(Problem::fault)?, None),
        };
        let is_restarted = last_boot.as_ref().is_some_and(|last| *last != boot);
        if is_restarted || last_boot.is_none() {
            write(&path, &id, &boot).map_err(unusable)?;
        }
        Ok(Identity { home: id, boot, is_restarted })
    }

    /// Both, as others are told it.
    pub(crate) fn name(&self) -> String {
        format!("{}@{}", self.home, self.boot)
    }
}

/// The id and the boot in a file, if the file is the one that was written.
fn read(path: &Path) -> io::Result<Option<(String, String)>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let own = std::fs::metadata(path)?.ino().to_string();
    Ok(match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [id, inode, boot] if *inode == own => Some(((*id).to_owned(), (*boot).to_owned())),
        _ => None,
    })
}

/// Written whole, with the number of the file itself in it.
fn write(path: &Path, id: &str, boot: &str) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let file = std::fs::File::create(&draft)?;
    let inode = file.metadata()?.ino();
    io::Write::write_all(&mut &file, format!("{id} {inode} {boot}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_stays_itself_and_a_copy_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, copy) = (folder.path().join("home"), folder.path().join("copy"));
        [&home, &copy].iter().for_each(|path| std::fs::create_dir(path).expect("a folder"));
        let first = Identity::of(&home).expect("an identity");
        let again = Identity::of(&home).expect("an identity");
        assert_eq!((again.name(), first.is_restarted, again.is_restarted), (first.name(), false, false));
        write(&home.join(FILE), &first.home, "an-earlier-boot").expect("written");
        let restarted = Identity::of(&home).expect("an identity");
        assert_eq!((restarted.name(), restarted.is_restarted), (first.name(), true));
        assert!(!Identity::of(&home).expect("an identity").is_restarted);
        std::fs::copy(home.join(FILE), copy.join(FILE)).expect("copied");
        let other = Identity::of(&copy).expect("an identity");
        assert_ne!(other.home, first.home);
        assert_eq!(Identity::of(&home).expect("an identity").home, first.home);
        let moved = folder.path().join("moved");
        std::fs::rename(&home, &moved).expect("moved");
        assert_eq!(Identity::of(&moved).expect("an identity").home, first.home);
    }
}
