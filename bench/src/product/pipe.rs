//! A named pipe that scripts and agents write a byte to: the driver knows to the microsecond when they do.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use super::PATIENCE;
use crate::machine::run;

/// A pipe that is listened to.
pub struct Pipe {
    path: PathBuf,
    told: Receiver<Instant>,
}

impl Pipe {
    /// A new pipe in this folder.
    pub fn new(folder: &Path) -> Pipe {
        let path = folder.join("pipe");
        make(&path);
        // Opened for writing too: so it does not end when a script has closed it.
        let mut file = File::options().read(true).write(true).open(&path).unwrap();
        let (sender, told) = channel();
        // It waits for bytes until the process ends: nothing else wakes it.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = file.read(&mut bytes) {
                let now = Instant::now();
                if (0..count).try_for_each(|_| sender.send(now)).is_err() {
                    break;
                }
            }
        });
        Pipe { path, told }
    }

    /// The command of a script that writes a byte.
    pub fn command(&self) -> String {
        format!("echo > \"{}\"", self.path.display())
    }

    /// Where it is, for a program that writes to it by itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next byte, and says when it came.
    pub fn next(&self) -> Instant {
        self.told.recv_timeout(PATIENCE).expect("nothing was written to the pipe")
    }
}

/// Makes a named pipe, which must not be there.
pub fn make(path: &Path) {
    run(Command::new("mkfifo").arg(path)).unwrap();
}
