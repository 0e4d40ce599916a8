//! `sluice check`: every problem of every file.

use std::path::{Path, PathBuf};

use sluice_core::problem::{Code, Problem, Severity};
use sluice_dialect::catalogue::{is_definition_file, load_path};
use sluice_dialect::{Definition, Loaded, Sources, report};

use crate::args::{Check, ReportFormat};
use crate::output::{Exit, Failure, Output, print, print_json, say};

/// The most files that one command looks at.
const MOST_FILES: usize = 10_000;
/// Folders that hold no definitions, however many files.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "vendor"];
/// Hidden folders that do hold definitions.
const LOOKED_INTO: [&str; 3] = [".sluice", ".coven", ".work"];

pub(crate) fn run(arguments: &Check, output: Output) -> Result<Exit, Failure> {
    let format = match output {
        Output::Json => ReportFormat::Json,
        Output::People => arguments.format,
    };
    let mut sources = Sources::new();
    let mut files = Vec::new();
    for path in &arguments.paths {
        find(path, &mut files)?;
    }
    let loaded = files.iter().filter_map(|file| file.load(&mut sources)).collect::<Vec<_>>();
    if loaded.is_empty() {
        return Err(Failure::new(Exit::NotFound, "not_found", "there are no definitions in these folders")
            .hint("name a file, or a folder with .yml, .yaml or .toml files in it"));
    }
    let broken = loaded.iter().any(|file| file.count(Severity::Error) > 0);
    match format {
        ReportFormat::Text => text(&loaded, &sources),
        ReportFormat::Json => print_json(&report::json(&sources, &all(loaded))),
        ReportFormat::Sarif => print_json(&report::sarif(&sources, &all(loaded))),
    }
    Ok(if broken { Exit::Refused } else { Exit::Done })
}

fn all(loaded: Vec<Loaded>) -> Vec<Problem> {
    loaded.into_iter().flat_map(|file| file.problems).collect()
}

fn text(loaded: &[Loaded], sources: &Sources) {
    for file in loaded {
        print(&report::text(sources, &file.problems, report::Style::Colour));
        if let Some(definition) = file.definition.as_ref().filter(|_| file.is_usable()) {
            print(&format!("{}: {}\n", sources.path(file.file), describe(definition)));
        }
    }
    let problems: Vec<Problem> = loaded.iter().flat_map(|file| file.problems.iter().cloned()).collect();
    say(&report::summary(&problems, loaded.len()));
}

fn describe(definition: &Definition) -> String {
    match definition {
        Definition::Lifecycle(it) => {
            format!("lifecycle `{}`, {} states, {} transitions", it.name, it.states.len(), it.transitions.len())
        }
        Definition::Recipe(it) => format!("recipe `{}`, {} steps", it.name, it.steps.len()),
    }
}

/// A file to look at.
struct File {
    path: PathBuf,
    /// It was found in a folder, not named: then it may be something else entirely.
    found: bool,
}

impl File {
    fn load(&self, sources: &mut Sources) -> Option<Loaded> {
        let loaded = load_path(&self.path, sources);
        let foreign =
            loaded.format.is_none() && loaded.problems.iter().all(|problem| problem.code == Code::UnknownFormat);
        (!(self.found && foreign && !in_definition_folder(&self.path))).then_some(loaded)
    }
}

fn in_definition_folder(path: &Path) -> bool {
    path.components().any(|part| LOOKED_INTO.iter().any(|name| part.as_os_str() == *name))
}

/// Adds the file at `path`, or the definition files below it.
fn find(path: &Path, files: &mut Vec<File>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        let (exit, code) = match error.kind() {
            std::io::ErrorKind::NotFound => (Exit::NotFound, "not_found"),
            _ => (Exit::Refused, "unreadable"),
        };
        Failure::new(exit, code, format!("cannot check `{}`: {error}", path.display()))
            .hint("name a file or a folder that exists")
    };
    if !std::fs::metadata(path).map_err(cannot)?.is_dir() {
        files.push(File { path: path.to_owned(), found: false });
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
                files.push(File { path: entry.path(), found: true });
            }
            if files.len() > MOST_FILES {
                let message = format!("more than {MOST_FILES} files below `{}`", path.display());
                return Err(Failure::new(Exit::Refused, "too_many", message).hint("name a smaller folder"));
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
