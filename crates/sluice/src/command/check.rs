//! `sluice check`: every problem of every file. A path that is missing hides nothing that was found elsewhere.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sluice_core::problem::{Code, Diagnosis, Severity};
use sluice_dialect::catalogue::{is_definition_file, load_path};
use sluice_dialect::{Definition, LoadedDefinition, Sources, report};

use crate::args::{CheckArgs, ReportFormat};
use crate::output::{CliExit, CliFailure, CliOutput, print, print_coloured, print_json, say};
use crate::pages;

const MOST_FILES: usize = 10_000;
/// Folders that hold no definitions, however many files.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "vendor"];
/// Hidden folders that do hold definitions.
const LOOKED_INTO: [&str; 3] = [".sluice", ".coven", ".work"];

pub(crate) fn run(arguments: &CheckArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let format = match output {
        CliOutput::Json => ReportFormat::Json,
        CliOutput::People => arguments.format,
    };
    match (report(arguments, format), format) {
        // Who asks for JSON gets it, also when there is nothing to report.
        (Err(failure), ReportFormat::Json) => {
            CliOutput::Json.tell(&failure);
            Ok(failure.exit)
        }
        (result, _) => result,
    }
}

fn report(arguments: &CheckArgs, format: ReportFormat) -> Result<CliExit, CliFailure> {
    let mut sources = Sources::new();
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for path in &arguments.paths {
        match find(path, &mut files) {
            Ok(()) => {}
            Err(PathFailure::TooMany(failure)) => return Err(failure),
            Err(PathFailure::Missing(it)) => missing.push(it),
        }
    }
    let loaded = files.iter().filter_map(|file| file.load(&mut sources)).collect::<Vec<_>>();
    if loaded.is_empty() {
        return Err(nothing(&missing));
    }
    let broken = loaded.iter().any(|file| file.count(Severity::Error) > 0);
    match format {
        ReportFormat::Text => text(&loaded, &sources),
        ReportFormat::Json => print_json(&with_missing(report::json(&sources, &all(loaded)), &missing)),
        ReportFormat::Sarif => print_json(&report::sarif(&sources, &all(loaded), &pages::description)),
    }
    if format != ReportFormat::Json {
        missing.iter().for_each(|it| CliOutput::People.tell(&it.failure()));
    }
    let worst = missing.iter().map(|it| it.exit).find(|exit| *exit != CliExit::NotFound);
    Ok(match (broken, missing.is_empty()) {
        (true, _) => CliExit::Refused,
        (false, false) => worst.unwrap_or(CliExit::NotFound),
        (false, true) => CliExit::Done,
    })
}

struct MissingPath {
    path: PathBuf,
    message: String,
    exit: CliExit,
    code: &'static str,
}

impl MissingPath {
    fn failure(&self) -> CliFailure {
        CliFailure::new(self.exit, self.code, self.message.as_str()).hint("name a file or a folder that exists")
    }
}

fn nothing(missing: &[MissingPath]) -> CliFailure {
    match missing {
        [] => CliFailure::new(CliExit::NotFound, "not_found", "there are no definitions in these folders")
            .hint("name a file, or a folder with .yml, .yaml or .toml files in it"),
        [first, ..] => {
            let messages: Vec<&str> = missing.iter().map(|it| it.message.as_str()).collect();
            CliFailure { message: messages.join("; "), ..first.failure() }
        }
    }
}

/// The document with the paths that are missing from it, if there are any.
fn with_missing(mut document: Value, missing: &[MissingPath]) -> Value {
    if !missing.is_empty() {
        let list = missing.iter().map(|it| json!({ "path": it.path.display().to_string(), "message": it.message }));
        document["missing"] = list.collect();
    }
    document
}

fn all(loaded: Vec<LoadedDefinition>) -> Vec<Diagnosis> {
    loaded.into_iter().flat_map(|file| file.problems).collect()
}

fn text(loaded: &[LoadedDefinition], sources: &Sources) {
    for file in loaded {
        print_coloured(&report::text(sources, &file.problems, report::ReportStyle::Colour));
        if let Some(definition) = file.definition.as_ref().filter(|_| file.is_usable()) {
            print(&format!("{}: {}\n", sources.path(file.file), describe(definition)));
        }
    }
    let problems: Vec<Diagnosis> = loaded.iter().flat_map(|file| file.problems.iter().cloned()).collect();
    say(&report::summary(&problems, loaded.len()));
}

fn describe(definition: &Definition) -> String {
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    match definition {
        Definition::Lifecycle(it) => {
            let (states, transitions) = (count(it.states.len(), "state"), count(it.transitions.len(), "transition"));
            format!("lifecycle `{}`, {states}, {transitions}", it.name)
        }
        Definition::Recipe(it) => format!("recipe `{}`, {}", it.name, count(it.steps.len(), "step")),
    }
}

struct CheckedFile {
    path: PathBuf,
    /// It was found in a folder, not named: then it may be something else entirely.
    found: bool,
}

impl CheckedFile {
    fn load(&self, sources: &mut Sources) -> Option<LoadedDefinition> {
        let loaded = load_path(&self.path, sources);
        let foreign =
            loaded.format.is_none() && loaded.problems.iter().all(|problem| problem.code == Code::UnknownFormat);
        (!(self.found && foreign && !in_definition_folder(&self.path))).then_some(loaded)
    }
}

fn in_definition_folder(path: &Path) -> bool {
    path.components().any(|part| LOOKED_INTO.iter().any(|name| part.as_os_str() == *name))
}

enum PathFailure {
    /// The others can be looked at.
    Missing(MissingPath),
    /// Nothing is looked at.
    TooMany(CliFailure),
}

/// Adds the file at `path`, or the definition files below it.
fn find(path: &Path, files: &mut Vec<CheckedFile>) -> Result<(), PathFailure> {
    let cannot = |error: std::io::Error| {
        let (exit, code) = match error.kind() {
            std::io::ErrorKind::NotFound => (CliExit::NotFound, "not_found"),
            _ => (CliExit::Refused, "unreadable"),
        };
        let message = format!("cannot check `{}`: {error}", path.display());
        PathFailure::Missing(MissingPath { path: path.to_owned(), message, exit, code })
    };
    if !std::fs::metadata(path).map_err(cannot)?.is_dir() {
        files.push(CheckedFile { path: path.to_owned(), found: false });
        return Ok(());
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&folder).map_err(cannot)?.filter_map(Result::ok).collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            // Links are not followed into folders: a loop of links has no end.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && is_searched(&entry.file_name().to_string_lossy()) {
                open.push(entry.path());
            } else if !kind.is_dir() && is_definition_file(&entry.path()) {
                files.push(CheckedFile { path: entry.path(), found: true });
            }
            if files.len() > MOST_FILES {
                let message = format!("more than {MOST_FILES} files below `{}`", path.display());
                let failure = CliFailure::new(CliExit::Refused, "too_many", message).hint("name a smaller folder");
                return Err(PathFailure::TooMany(failure));
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(())
}

fn is_searched(name: &str) -> bool {
    match name.starts_with('.') {
        true => LOOKED_INTO.contains(&name),
        false => !PASSED_OVER.contains(&name),
    }
}
