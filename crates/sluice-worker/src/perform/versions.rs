//! Which version of an agent program an attempt was made with: `harness.json` beside what else is private to it.
//!
//! A program is asked once in the life of this process, beside the work: no attempt waits for it. Programs that nobody
//! knows are not asked, because nobody knows what they would do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sluice_os::harness::{Harness, read_version};

const FILE: &str = "harness.json";

#[derive(Clone, Default)]
pub(super) struct ProgramVersions(Arc<Mutex<BTreeMap<Vec<String>, Option<String>>>>);

impl ProgramVersions {
    /// Notes which program an attempt is made with. What cannot be noted fails nothing.
    pub(super) fn note(&self, harness: &Harness, sluice: &Path, private: &Path) {
        let sluice = sluice.display().to_string();
        let program = harness.program().unwrap_or_default().replace("{sluice}", &sluice);
        let command = harness.version_command(&sluice);
        let (versions, name, file) = (self.clone(), harness.name.clone(), private.join(FILE));
        let known = command.as_ref().and_then(|command| versions.known(command));
        match (command, known) {
            (None, _) => write(&file, &name, &program, None),
            (Some(_), Some(version)) => write(&file, &name, &program, version.as_deref()),
            (Some(command), None) => {
                write(&file, &name, &program, None);
                let thread = std::thread::Builder::new().name("version".into());
                let _ = thread.spawn(move || {
                    let version = asked(&command);
                    let mut all = versions.0.lock().unwrap_or_else(PoisonError::into_inner);
                    all.insert(command, version.clone());
                    drop(all);
                    write(&file, &name, &program, version.as_deref());
                });
            }
        }
    }

    fn known(&self, command: &[String]) -> Option<Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(command).cloned()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramNote {
    harness: String,
    program: String,
    version: Option<String>,
}

impl ProgramNote {
    /// The name of the harness.
    pub fn harness(&self) -> &str {
        &self.harness
    }
}

pub(super) fn noted(private: &Path) -> Option<ProgramNote> {
    serde_json::from_slice(&std::fs::read(private.join(FILE)).ok()?).ok()
}

fn write(file: &PathBuf, harness: &str, program: &str, version: Option<&str>) {
    let version = version.map(str::to_owned);
    let noted = ProgramNote { harness: harness.to_owned(), program: program.to_owned(), version };
    let Ok(noted) = serde_json::to_string(&noted) else { return };
    if let Some(folder) = file.parent() {
        let _ = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(file, format!("{noted}\n")));
    }
}

fn asked(command: &[String]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    // Some say it among their complaints.
    let read = |bytes: &[u8]| read_version(&String::from_utf8_lossy(bytes));
    read(&output.stdout).or_else(|| read(&output.stderr))
}
