//! The work of tasks and runs: what it changes, what an agent printed about it, and where it lies.

use std::collections::BTreeMap;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use sluice_api::Problem;
use sluice_api::client::{EngineAbsence, GONE, escape};
use sluice_api::diff::{LogPiece, TaskLog, WorkDiff, WorkDiffPart};
use sluice_api::problem::ProblemStatus;
use sluice_api::task::TaskAnswer;

use crate::engine::{ask, connect};
use crate::output::{
    CliExit, CliFailure, CliOutput, harmless, print, print_as_written, print_bytes, print_coloured, say,
};
use crate::table;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
const HEAD: Style = Style::new().bold();

/// Shows what a task or run has changed.
pub(super) fn diff(path: &str, stat: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: WorkDiff = ask(|engine| engine.get(&format!("{path}?stat={stat}")))?;
    output.show(&json!({ "diff": answer }), || show(&answer))
}

fn show(answer: &WorkDiff) {
    let WorkDiff { branch, default_branch, committed, uncommitted, notes, .. } = answer;
    part(&format!("committed on {branch}, over {default_branch}"), committed);
    if let Some(uncommitted) = uncommitted.as_ref().filter(|part| part.count > 0) {
        part("uncommitted in its worktree", uncommitted);
    }
    notes.iter().for_each(|note| say(&format!("note: {note}")));
}

fn part(title: &str, part: &WorkDiffPart) {
    let files = match part.count {
        0 => "no changes".to_owned(),
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let sum =
        |lines: fn(&sluice_api::diff::WorkDiffFile) -> Option<u64>| part.files.iter().filter_map(lines).sum::<u64>();
    let lines = match part.count {
        0 => String::new(),
        _ => format!(", +{} −{}", sum(|file| file.added), sum(|file| file.removed)),
    };
    coloured(HEAD, &format!("{title}: {files}{lines}"));
    for file in &part.files {
        let number = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
        let before = file.before.as_ref().map(|before| format!("{before} → ")).unwrap_or_default();
        let name = table::line(&format!("{before}{}", file.path), 400);
        print(&format!(
            "{:>7} {:>7}  {name}\n",
            format!("+{}", number(file.added)),
            format!("−{}", number(file.removed))
        ));
    }
    if part.files.len() < part.count {
        print(&format!("                 and {} more\n", part.count - part.files.len()));
    }
    if let Some(patch) = part.patch.as_ref().filter(|patch| !patch.is_empty()) {
        print("\n");
        patch.lines().for_each(patch_line);
        print("\n");
    }
}

fn patch_line(line: &str) {
    let is_head = ["diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "rename ", "similarity "];
    match line.as_bytes().first() {
        _ if is_head.iter().any(|head| line.starts_with(head)) => coloured(HEAD, line),
        Some(b'+') => coloured(ADDED, line),
        Some(b'-') => coloured(REMOVED, line),
        Some(b'@') => coloured(PLACE, line),
        Some(_) | None => print(&format!("{line}\n")),
    }
}

fn coloured(style: Style, line: &str) {
    print_coloured(&format!("{style}{}{style:#}\n", harmless(line)));
}

/// Shows what a task's agent printed last.
pub(super) fn log(path: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: TaskLog = ask(|engine| engine.get(path))?;
    output.show(&answer, || match &answer.session {
        None => say("no agent of this task has printed anything here"),
        Some(session) => {
            print_as_written(answer.log.as_bytes());
            let how = match (answer.alive, answer.screen) {
                (true, true) => "alive; this is its screen",
                (true, false) => "alive",
                (false, _) => "ended",
            };
            let more = if answer.cut { "; --lines N shows more" } else { "" };
            say(&format!("session {session}, {how}{more}"));
        }
    })
}

/// Shows what agents of a task or run print, as it comes, until they have ended.
pub(super) fn follow_log(path: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    std::thread::spawn(super::home::end_with_the_reader);
    let client = connect()?;
    client.health()?;
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    client
        .with_engines(EngineAbsence::Bounded(None), || {
            let from: Vec<String> = places.iter().map(|(stream, place)| format!("{stream}:{place}")).collect();
            let join = if path.contains('?') { '&' } else { '?' };
            let path = match from.is_empty() {
                true => path.to_owned(),
                false => format!("{path}{join}from={}", escape(&from.join(","))),
            };
            let mut is_whole = false;
            client.lines(&path, |line| {
                let piece: LogPiece = serde_json::from_str(line).map_err(|error| Problem::fault(error.to_string()))?;
                is_whole |= piece.ended;
                let seen = piece.places.iter().filter_map(|place| place.rsplit_once(':'));
                places.extend(seen.map(|(stream, place)| (stream.to_owned(), place.to_owned())));
                match output {
                    CliOutput::Json => print_bytes(format!("{line}\n").as_bytes()),
                    CliOutput::People => print_as_written(piece.text.as_bytes()),
                }
                Ok(true)
            })?;
            match is_whole {
                true => Ok(CliExit::Done),
                false => Err(Problem::new(
                    ProblemStatus::Unavailable,
                    GONE,
                    "the engine has ended, and the agent perhaps not",
                )
                .hint("the next command starts another; ask again")),
            }
        })
        .map_err(CliFailure::from)
}

/// Opens the worktree of a task in the editor of the person who asks, or says where it is.
pub(super) fn open(path: &str, only_print: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let TaskAnswer { task, .. } = ask(|engine| engine.get(path))?;
    let id = &task.id;
    let Some(folder) = &task.workspace else {
        let why = match &task.lent {
            Some(_) => "its worktree was lent to another task; it takes one up again when it moves",
            None => "it gets one when its agent is started",
        };
        let message = format!("task {id} has no worktree: {why}");
        return Err(CliFailure::new(CliExit::Refused, "no_workspace", message)
            .hint(format!("its work is on the branch `{}`; `sluice task diff {id}` shows it", task.branch)));
    };
    if !Path::new(folder).is_dir() {
        let message = format!("the worktree of task {id} is not on this machine: {folder}");
        return Err(CliFailure::new(CliExit::Refused, "not_here", message)
            .hint("log in on the engine's machine and say `sluice task open` there"));
    }
    if only_print || output == CliOutput::Json {
        return output.show(&json!({ "workspace": folder }), || print(&format!("{folder}\n")));
    }
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let Some(editor) = named("VISUAL").or_else(|| named("EDITOR")) else {
        let message = "neither VISUAL nor EDITOR names a program to open the worktree with";
        return Err(CliFailure::new(CliExit::Usage, "no_editor", message)
            .hint(format!("`EDITOR=vi sluice task open {id}`; `--print` only prints {folder}")));
    };
    // As git does: the value may have arguments of its own, and the shell takes them apart.
    let script = format!("{editor} \"$@\"");
    let ended = std::process::Command::new("sh").args(["-c", &script, "editor", folder]).current_dir(folder).status();
    match ended {
        Ok(status) if status.success() => Ok(CliExit::Done),
        Ok(status) => {
            let message = format!("`{editor}` ended with {status}");
            Err(CliFailure::new(CliExit::Refused, "editor_failed", message))
        }
        Err(error) => {
            let message = format!("`{editor}` cannot be run: {error}");
            Err(CliFailure::new(CliExit::Refused, "editor_failed", message))
        }
    }
}
