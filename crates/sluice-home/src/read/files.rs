//! TASK.md of a task: where it is now, what it says, and writing it.
//!
//! While a worktree is bound the file stands there and the home has a mirror of it; otherwise the home's is the file. In
//! a project that has a TASK.md of its own it has another name in the worktree, and agents are told so.

use std::path::{Path, PathBuf};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::TaskId;
use sluice_core::lifecycle::FieldValue;
use sluice_core::task::{TaskKey, frontmatter};
use sluice_os::passing::PassingError;
use sluice_os::taskfile::{
    self, FrontmatterForgery, FrontmatterScalar, FrontmatterTruth, FrontmatterValues, HealedTaskFile, ParsedTaskFile,
    TaskFileError,
};
use sluice_os::workspace::task_file;

use crate::read::tasks::{TaskSnapshot, had};
use crate::settings::clock::written;
use crate::settings::places::HomePaths;
use crate::undone::described;

pub const TASK_FILE: &str = "TASK.md";

#[derive(Debug, Default)]
pub struct TaskFileContent {
    pub body: Vec<u8>,
    /// What the frontmatter claims and the engine never wrote.
    pub forged: Vec<FrontmatterForgery>,
}

impl TaskFileContent {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub fn home_file(places: &HomePaths, project: &str, id: &TaskId) -> PathBuf {
    places.task(project, id).join(TASK_FILE)
}

/// The file in the worktree, if one is bound.
fn bound_file(seen: &TaskSnapshot) -> Option<PathBuf> {
    seen.state.workspace.bound().map(|name| task_file(Path::new(&name.0)))
}

/// Whether a file is in a folder, and not behind a link that an agent put in the folder's place.
pub(crate) fn is_in_folder(file: &Path) -> bool {
    file.parent().is_some_and(|folder| std::fs::symlink_metadata(folder).is_ok_and(|it| it.is_dir()))
}

/// Whether somebody has written the file in the worktree since the engine did: that writes the home's right after it.
pub fn is_written(places: &HomePaths, seen: &TaskSnapshot) -> bool {
    let time = |path: &Path| std::fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
    let home = time(&home_file(places, &seen.state.about.project, &seen.id));
    let bound = bound_file(seen).and_then(|path| time(&path));
    home.is_some_and(|home| bound.is_some_and(|bound| bound > home))
}

/// What an agent is told of the file of its task where TASK.md is the project's; a text that speaks of TASK.md means it.
pub fn told(workspace: &Path, text: &str) -> String {
    let file = task_file(workspace);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name == TASK_FILE {
        return text.to_owned();
    }
    format!(
        "In this repository {TASK_FILE} is a file of the project. The file of your task is {name}, beside it: wherever you \
         are told of {TASK_FILE}, read and write {name}, and never commit it.\n\n{text}"
    )
}

pub fn told_again(workspace: &Path, text: &str) -> String {
    let file = task_file(workspace);
    text.replace(TASK_FILE, &file.file_name().unwrap_or_default().to_string_lossy())
}

/// Reads a task's file. One that is not in the worktree, because an agent removed it, says nothing: what the home still
/// has of it is old, and must not pass a gate.
pub fn read(places: &HomePaths, seen: &TaskSnapshot, truth: &FrontmatterTruth) -> Result<TaskFileContent, Problem> {
    let read = match bound_file(seen) {
        Some(path) if !is_in_folder(&path) => Err(TaskFileError::Missing { path }),
        Some(path) => taskfile::read(&path),
        None => taskfile::read(&home_file(places, &seen.state.about.project, &seen.id)),
    };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(TaskFileError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(unread(&error)),
    };
    let healed = taskfile::heal(&bytes, truth);
    let forged =
        if ParsedTaskFile::parse(&bytes, truth.keys).value("id").is_some() { healed.forged } else { Vec::new() };
    Ok(TaskFileContent { body: healed.body, forged })
}

/// What the file of a task says that stands in this worktree; nothing if there is none that could be read.
pub(crate) fn body_in(workspace: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let body = |bytes: Vec<u8>| ParsedTaskFile::parse(&bytes, TaskKey::WORDS).body().to_vec();
    Ok(bytes_in(workspace)?.map(body))
}

fn bytes_in(workspace: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let there = task_file(workspace);
    // One behind a link is another's.
    if is_in_folder(&there) { readable(&there) } else { Ok(None) }
}

/// Copies the file of a task from its worktree to the home, where it is the file from now on. What it says; nothing if there is
/// none that could be read.
pub(crate) fn bring_home(
    places: &HomePaths,
    seen: &TaskSnapshot,
    workspace: &Path,
) -> Result<Option<Vec<u8>>, Problem> {
    let Some(bytes) = bytes_in(workspace)? else { return Ok(None) };
    let home = home_file(places, &seen.state.about.project, &seen.id);
    if let Some(folder) = home.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| unread(&TaskFileError::Unwritable { path: folder.to_owned(), source }))?;
    }
    taskfile::write(&home, &bytes).map_err(|error| unread(&error))?;
    Ok(Some(ParsedTaskFile::parse(&bytes, TaskKey::WORDS).body().to_vec()))
}

fn unread(error: &TaskFileError) -> Problem {
    match error.is_passing() {
        true => Problem::unavailable(described(error)),
        false => Problem::new(ProblemStatus::Refused, "unreadable_artifact", described(error)),
    }
}

const FEEDBACK: &str = "Feedback";
/// How often a file is read again because an agent writes in it at the same time; then it is written over.
const MOST_WRITES: usize = 10;

/// Writes a task's file: its body below what is true now, in the worktree if one is bound, and in the home.
pub fn write(
    places: &HomePaths,
    seen: &TaskSnapshot,
    truth: &FrontmatterTruth,
    feedback: Option<&str>,
) -> Result<Vec<u8>, Problem> {
    let home = home_file(places, &seen.state.about.project, &seen.id);
    if let Some(folder) = home.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| unread(&TaskFileError::Unwritable { path: folder.to_owned(), source }))?;
    }
    let bound = bound_file(seen).filter(|path| is_in_folder(path));
    let mut healed = None;
    for write in 1..=MOST_WRITES {
        let there = bound.as_ref().map_or(Ok(None), |path| readable(path))?;
        let present = match &there {
            Some(there) => there.clone(),
            None => readable(&home)?.unwrap_or_default(),
        };
        let wanted = made(&present, truth, feedback);
        let done = match (&bound, &there) {
            (Some(path), Some(there)) if write < MOST_WRITES => taskfile::write_over(path, there, &wanted.bytes),
            (Some(path), _) => taskfile::write(path, &wanted.bytes).map(|()| true),
            (None, _) => Ok(true),
        };
        healed = Some(wanted);
        if done.map_err(|error| unread(&error))? {
            break;
        }
    }
    let healed = healed.unwrap_or_else(|| made(&[], truth, feedback));
    taskfile::write(&home, &healed.bytes).map_err(|error| unread(&error))?;
    Ok(healed.body)
}

/// What stands in a file, or nothing if it is none that could be read. One that only cannot be read now is not written over.
fn readable(path: &Path) -> Result<Option<Vec<u8>>, Problem> {
    match taskfile::read(path) {
        Err(error) if error.is_passing() => Err(unread(&error)),
        read => Ok(read.ok()),
    }
}

/// A file with this truth, and with what a person has to say to its agents.
fn made(present: &[u8], truth: &FrontmatterTruth, feedback: Option<&str>) -> HealedTaskFile {
    let mut healed = taskfile::heal(present, truth);
    // An engine that was killed may have written it already.
    let is_said = |text: &str| {
        let section = taskfile::append_section(b"", FEEDBACK, text);
        healed.body.trim_ascii_end().ends_with(section.trim_ascii_end())
    };
    if let Some(feedback) = feedback.filter(|text| !is_said(text)) {
        let body = taskfile::append_section(&healed.body, FEEDBACK, feedback);
        let front = healed.bytes.len() - healed.body.len();
        healed.bytes.truncate(front);
        healed.bytes.extend_from_slice(&body);
        healed.body = body;
    }
    healed
}

/// What must stand in the frontmatter, and what the engine may have written there before.
pub fn truth(seen: &TaskSnapshot, tmux_session: Option<&str>) -> FrontmatterTruth {
    let scalar = |value: FieldValue| match value {
        FieldValue::Number(number) => FrontmatterScalar::Number(number),
        FieldValue::Text(text) if text.is_empty() => FrontmatterScalar::Null,
        FieldValue::Text(text) => FrontmatterScalar::Text(text),
    };
    let own = frontmatter(&seen.lifecycle, &seen.state).into_iter().map(|(key, value)| (key, scalar(value)));
    let mut values: FrontmatterValues = own.collect();
    let beside = [
        ("id", seen.id.to_string()),
        ("tmux_session", tmux_session.unwrap_or_default().to_owned()),
        ("created_at", written(seen.card.created)),
        ("updated_at", written(seen.card.updated)),
    ];
    values.extend(beside.map(|(key, text)| (key.to_owned(), scalar(FieldValue::Text(text)))));
    FrontmatterTruth { keys: TaskKey::WORDS, values, written: Default::default() }
}

/// The worktree a task has, for those who look for it by a folder inside.
pub fn holds(seen: &TaskSnapshot, folder: &Path) -> bool {
    had(&seen.state.workspace).is_some_and(|root| folder.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_every_key_in_json() {
        let schema = schemars::schema_for!(sluice_api::task::Task);
        let shown = schema.as_value()["properties"].as_object().unwrap();
        let missing: Vec<&str> =
            TaskKey::ALL.iter().map(|key| key.word()).filter(|key| !shown.contains_key(*key)).collect();
        assert!(missing.is_empty(), "`Task` in sluice-api does not show {missing:?}");
    }

    #[test]
    fn feedback_that_is_written_again_stands_there_once() {
        let truth = FrontmatterTruth::default();
        let once = made(b"## Handoff\n\nDONE: it\n", &truth, Some("Hotter.\n"));
        let twice = made(&once.bytes, &truth, Some("Hotter.\n"));
        assert_eq!(String::from_utf8_lossy(&twice.body), "## Handoff\n\nDONE: it\n\n## Feedback\n\nHotter.\n");
        let more = made(&twice.bytes, &truth, Some("And sweeter."));
        assert!(more.body.ends_with(b"## Feedback\n\nHotter.\n\n## Feedback\n\nAnd sweeter.\n"));
    }
}
