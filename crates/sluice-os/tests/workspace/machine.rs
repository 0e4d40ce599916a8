//! A machine whose power goes in the middle of something, and what its disk has then: [`machine.c`](machine.c) stands before
//! the system's library in a process of its own and in every git that it starts.
//!
//! What a file system promises, and no more: names change in the order in which programs changed them, and what of a file was
//! not brought to the disk may be there, missing, cut off, or zeros.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::ground::Ground;

/// Which life a process of its own is to live, and where.
const LIFE: &str = "POWER_LIFE";
const GROUND: &str = "POWER_GROUND";
/// What a life says begins with this.
const SAYS: &str = "says: ";
/// More changes than any life makes.
const NEVER: u64 = 1 << 40;

/// What becomes of a file that is not on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLoss {
    /// The system had written it by chance.
    Whole,
    Empty,
    Half,
    Zeros,
    /// One of these, file by file.
    Mixed,
}

pub(crate) const LOSSES: [FileLoss; 5] =
    [FileLoss::Empty, FileLoss::Mixed, FileLoss::Zeros, FileLoss::Whole, FileLoss::Half];

/// How far a life came.
#[derive(Debug)]
pub(crate) struct LivedLife {
    /// The changes of the disk that it made.
    pub(crate) changes: u64,
    /// What it said it had done, before the power went.
    pub(crate) said: Vec<String>,
}

/// The life that this process is to live, and on what ground; none, in a process that runs tests.
pub(crate) fn life() -> Option<(String, Ground)> {
    let (life, ground) = (std::env::var(LIFE).ok()?, std::env::var_os(GROUND)?);
    Some((life, Ground::at(PathBuf::from(ground))))
}

/// Something is done, and the caller knows.
pub(crate) fn say(text: &str) {
    println!("{SAYS}{text}");
}

/// Has the test of this name live a life on this ground, and lets the power go with a change of the disk; without a number, not.
pub(crate) fn live(ground: &Ground, test: &str, life: &str, last: Option<u64>) -> LivedLife {
    let (state, notes) = (ground.beside("state"), ground.beside("notes"));
    let numbers = [0, last.unwrap_or(NEVER)].map(u64::to_ne_bytes);
    fs::write(&state, numbers.concat()).unwrap();
    fs::write(&notes, "").unwrap();
    let boot = ground.beside("boot");
    fs::write(&boot, "00000000-0000-0000-0000-000000000000\n").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("LD_PRELOAD", library()).env("POWER_STATE", &state).env("POWER_NOTES", &notes);
    command.env("POWER_BOOT", &boot);
    let output = command.env(LIFE, life).env(GROUND, ground.path("")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let changes = u64::from_ne_bytes(fs::read(&state).unwrap()[..8].try_into().unwrap());
    let is_cut = last.is_some_and(|last| changes > last);
    assert!(is_cut || output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let said = text.lines().filter_map(|line| Some(line.split_once(SAYS)?.1.to_owned())).collect();
    LivedLife { changes, said }
}

/// Takes away what the disk need not have. What was taken from, to be told if something is wrong afterwards.
pub(crate) fn lose(ground: &Ground, loss: FileLoss) -> Vec<String> {
    let on_disk = on_disk(&fs::read_to_string(ground.beside("notes")).unwrap());
    let mut files = BTreeMap::new();
    find(&ground.path(""), &mut files);
    let mut lost = Vec::new();
    for (path, inode) in &files {
        let Some(safe) = on_disk.get(inode) else { continue };
        let what = match loss {
            FileLoss::Mixed => LOSSES[[0, 2, 3, 4][usize::try_from(*inode % 4).unwrap()]],
            loss => loss,
        };
        let bytes = fs::read(path).unwrap();
        let (safe, rest) = bytes.split_at(bytes.len().min(*safe));
        let rest = match what {
            FileLoss::Whole | FileLoss::Mixed => continue,
            FileLoss::Empty => Vec::new(),
            FileLoss::Half => rest[..rest.len() / 2].to_vec(),
            FileLoss::Zeros => vec![0; rest.len()],
        };
        let left = [safe, &rest].concat();
        if left == bytes {
            continue;
        }
        // What git has stored may not be written to.
        let mut mode = fs::metadata(path).unwrap().permissions();
        let before = mode.clone();
        #[expect(clippy::permissions_set_readonly_false, reason = "for a moment, in a folder of the test's own")]
        mode.set_readonly(false);
        fs::set_permissions(path, mode).unwrap();
        fs::write(path, left).unwrap();
        fs::set_permissions(path, before).unwrap();
        lost.push(format!("{what:?} {}", path.strip_prefix(ground.path("")).unwrap().display()));
    }
    // A machine takes a while to start again.
    for path in files.keys().filter(|path| path.extension().is_some_and(|it| it == "lock")) {
        let before = SystemTime::now() - Duration::from_secs(120);
        fs::File::options().write(true).open(path).and_then(|file| file.set_modified(before)).unwrap();
    }
    lost
}

/// How much of each file the disk has; of a file that is not named here, all.
fn on_disk(notes: &str) -> BTreeMap<u64, usize> {
    let mut known = BTreeMap::new();
    for line in notes.lines() {
        let mut words = line.split(' ');
        let (what, inode) = (words.next(), words.next().map(|it| it.parse::<u64>().unwrap()));
        let size = words.next().map_or(0, |it| it.parse::<usize>().unwrap());
        match (what, inode) {
            (Some("C"), Some(inode)) => drop(known.insert(inode, 0)),
            // What stood in it before has been there for long.
            (Some("W"), Some(inode)) => drop(known.entry(inode).or_insert(size)),
            (Some("S"), Some(inode)) => drop(known.insert(inode, size)),
            _ => known.clear(),
        }
    }
    known
}

fn find(folder: &Path, found: &mut BTreeMap<PathBuf, u64>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let about = fs::symlink_metadata(entry.path()).unwrap();
        if about.is_dir() {
            find(&entry.path(), found);
        } else if about.is_file() {
            found.insert(entry.path(), about.ino());
        }
    }
}

/// The library, built once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let (built, source) = (folder.join(format!("machine-{}.so", std::process::id())), folder.join("machine.so"));
        let code = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workspace/machine.c");
        let done = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&built).arg(code).status();
        assert!(done.unwrap().success(), "cc cannot build {code}");
        // Another process of tests may do the same: each has a whole one.
        fs::rename(&built, &source).unwrap();
        source
    })
}
