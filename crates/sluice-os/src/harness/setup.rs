//! What can be done once for a program, so that it does not stop at a question in a terminal: keys in its own configuration,
//! each written only where it is not so yet. Everything else in the file stays as it is, and what is changed is shown first.
//!
//! Nothing here logs in: that is a person's own doing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::preflight::{HarnessAnswer, HarnessLook, HarnessScene};
use super::{Harness, preflight};
use crate::file::{Durability, FileDraft, write_atomically};

/// How long another process may have the file before this gives up.
const LOCKED_FOR: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A key that is set, as the table has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupRow {
    file: String,
    key: String,
    /// A truth value, or a text.
    value: Value,
    /// The value joins a list.
    #[serde(default)]
    joins: bool,
    means: String,
    /// Only where this look says yes.
    after: Option<String>,
}

/// One key that would be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessSetupChange {
    pub file: PathBuf,
    pub key: Vec<String>,
    pub before: Option<Value>,
    pub after: Value,
    pub means: String,
}

/// What a setup changes; nothing where all is as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarnessSetup {
    pub changes: Vec<HarnessSetupChange>,
}

#[derive(Debug, Error)]
pub enum HarnessSetupError {
    #[error("{0}; nothing is changed")]
    NotUnderstood(String),
    #[error("{file} is in use by another process (its lock is {lock}); nothing is changed there")]
    InUse { file: String, lock: String },
    #[error("{file} has changed meanwhile; nothing is changed there, ask again")]
    Changed { file: String },
    #[error("{file} cannot be written")]
    Unwritable { file: String, source: io::Error },
}

impl Harness {
    /// What is to be set for work in this scene's repository. Nothing is written.
    pub fn setup(&self, scene: &HarnessScene<'_>) -> Result<HarnessSetup, HarnessSetupError> {
        let findings = self.all_looks(scene);
        let is_yes = |look: &String| {
            let look = HarnessLook::read(look);
            findings.iter().any(|it| Some(it.look) == look && matches!(it.answer, HarnessAnswer::Yes(_)))
        };
        let mut setup = HarnessSetup::default();
        for row in self.setup.iter().filter(|row| row.after.as_ref().is_none_or(is_yes)) {
            let Some(file) = self.looks.real(&row.file, scene) else {
                return Err(HarnessSetupError::NotUnderstood("HOME is not set".to_owned()));
            };
            let key: Option<Vec<String>> = row.key.split('.').map(|it| self.looks.real(it, scene)).collect();
            let value = match &row.value {
                Value::String(text) => self.looks.real(text, scene).map(Value::String),
                other => Some(other.clone()),
            };
            // What it is about is not there: a key that is not set, for example.
            let (Some(key), Some(value)) = (key, value) else { continue };
            // A link stays a link: what it leads to is the file.
            let file = PathBuf::from(file);
            let file = file.canonicalize().unwrap_or(file);
            let document = read(&file)?;
            let before = key.iter().try_fold(&document, |value, key| value.get(key)).cloned();
            let after = match (row.joins, &before) {
                (false, _) => value,
                (true, None) => Value::Array(vec![value]),
                (true, Some(Value::Array(list))) if list.contains(&value) => continue,
                (true, Some(Value::Array(list))) => Value::Array(list.iter().cloned().chain([value]).collect()),
                (true, Some(_)) => {
                    let why = format!("{} is no list in {}", key.join("."), file.display());
                    return Err(HarnessSetupError::NotUnderstood(why));
                }
            };
            if before.as_ref() != Some(&after) {
                let means = row.means.clone();
                setup.changes.push(HarnessSetupChange { file, key, before, after, means });
            }
        }
        Ok(setup)
    }
}

impl HarnessSetup {
    /// Writes the changes, a file at a time, each whole or not at all.
    pub fn write(&self) -> Result<(), HarnessSetupError> {
        let mut files: Vec<&PathBuf> = self.changes.iter().map(|change| &change.file).collect();
        files.sort();
        files.dedup();
        for file in files {
            let unwritable = |source| HarnessSetupError::Unwritable { file: file.display().to_string(), source };
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder).map_err(unwritable)?;
            }
            let _held = SetupLock::take(file)?;
            let mut document = read(file)?;
            for change in self.changes.iter().filter(|change| change.file == *file) {
                if !set(&mut document, &change.key, &change.before, &change.after) {
                    return Err(HarnessSetupError::Changed { file: file.display().to_string() });
                }
            }
            let text = remarks(file)? + &serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
            place(file, &text).map_err(unwritable)?;
        }
        Ok(())
    }
}

/// A file that is new is its owner's alone, as these programs have it.
fn place(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() {
        return write_atomically(file, text.as_bytes(), Durability::Synced);
    }
    let draft = FileDraft::private(file, Durability::Synced)?;
    draft.write(text.as_bytes())?;
    draft.place()
}

/// The remarks above a document, which stay there. One with remarks further below is not changed: they would be lost.
fn remarks(file: &Path) -> Result<String, HarnessSetupError> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let is_remark = |line: &&str| line.trim_start().starts_with("//");
    let above: Vec<&str> = text.lines().take_while(is_remark).collect();
    if text.lines().skip(above.len()).any(|line| is_remark(&line)) {
        return Err(HarnessSetupError::NotUnderstood(format!("{} has remarks between its keys", file.display())));
    }
    Ok(above.iter().map(|line| format!("{line}\n")).collect())
}

/// Sets a key; `false`, and no change, if it does not have the value that it had.
fn set(document: &mut Value, key: &[String], before: &Option<Value>, after: &Value) -> bool {
    let Some((last, path)) = key.split_last() else { return false };
    let mut at = document;
    for part in path {
        let Value::Object(map) = at else { return false };
        at = map.entry(part.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    let Value::Object(map) = at else { return false };
    if map.get(last) != before.as_ref() {
        return false;
    }
    map.insert(last.clone(), after.clone());
    true
}

fn read(file: &Path) -> Result<Value, HarnessSetupError> {
    match preflight::document(file).map_err(HarnessSetupError::NotUnderstood)? {
        None => Ok(Value::Object(Map::new())),
        Some(document @ Value::Object(_)) => Ok(document),
        Some(_) => Err(HarnessSetupError::NotUnderstood(format!("{} holds no keys", file.display()))),
    }
}

/// The lock that the program itself takes before it writes: a folder beside the file.
struct SetupLock(PathBuf);

impl SetupLock {
    fn take(file: &Path) -> Result<SetupLock, HarnessSetupError> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let started = Instant::now();
        loop {
            match std::fs::create_dir(&lock) {
                Ok(()) => return Ok(SetupLock(lock)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && started.elapsed() < LOCKED_FOR => {
                    std::thread::park_timeout(LOOK_AGAIN);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let (file, lock) = (file.display().to_string(), lock.display().to_string());
                    return Err(HarnessSetupError::InUse { file, lock });
                }
                Err(source) => return Err(HarnessSetupError::Unwritable { file: file.display().to_string(), source }),
            }
        }
    }
}

impl Drop for SetupLock {
    fn drop(&mut self) {
        // Gone already if the program took it for a stale one.
        drop(std::fs::remove_dir(&self.0));
    }
}
