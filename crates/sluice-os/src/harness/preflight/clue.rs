//! One clue to an answer, as the table writes it:
//!
//! ```text
//! $NAME                  the variable is set, and not empty; `$NAME_*`: one that begins so; `$NAME=VALUE`: it has this value
//! no $NAME               the variable is not set, or empty
//! PATH                   there is such a file or folder, and it is not empty
//! PATH # KEY.KEY         the JSON or TOML file has this key, and its value is not false, null or empty
//! PATH # KEY.KEY = VALUE it has this value, or is a list that holds it
//! on macos               this is that system
//! not root               the user is not the superuser
//! ```
//!
//! In paths, keys and values: the folders and ends of the table by name, `{workspace}`, `{repository}` (the main checkout of the worktree),
//! and `{above}`: each of these two and every folder above them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use super::{HarnessScene, LookTable};

/// A file that is larger than this is not read: no configuration is.
const LARGEST_FILE: u64 = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClueAnswer {
    Seen,
    Absent,
    Unreadable(String),
}

/// Where clues are looked for.
pub(super) struct ClueSight<'a> {
    environment: &'a BTreeMap<String, String>,
    home: Option<PathBuf>,
    /// What names in braces stand for; more than one where each may be meant.
    names: Vec<(String, Vec<String>)>,
    /// What was read: several clues are about one file, and such a file can be large.
    read: RefCell<BTreeMap<PathBuf, Rc<ReadDocument>>>,
}

type ReadDocument = Result<Option<Value>, String>;

impl<'a> ClueSight<'a> {
    pub(super) fn of(table: &LookTable, scene: &HarnessScene<'a>) -> ClueSight<'a> {
        let set = |name: &str| scene.environment.get(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from);
        let text = |path: &Path| path.display().to_string();
        let mut names: Vec<(String, Vec<String>)> = Vec::new();
        for (name, folder) in &table.folders {
            let named = folder.variable.as_deref().and_then(set).map(|value| Path::new(value).join(&folder.below));
            let path = named.or_else(|| home.as_ref().map(|home| home.join(&folder.usual)));
            names.push((format!("{{{name}}}"), path.iter().map(|path| text(path)).collect()));
        }
        for (name, end) in &table.ends {
            let ends = set(&end.variable).map(|value| {
                let from = value.char_indices().rev().nth(end.letters.saturating_sub(1)).map_or(0, |(at, _)| at);
                value[from..].to_owned()
            });
            names.push((format!("{{{name}}}"), ends.into_iter().collect()));
        }
        let workspaces = both(scene.workspace);
        let repository = repository_of(scene.workspace);
        let repositories = repository.as_deref().map(both).unwrap_or_else(|| workspaces.clone());
        let above = workspaces.iter().chain(&repositories).flat_map(|path| path.ancestors()).map(text);
        let mut above: Vec<String> = above.collect();
        above.sort();
        above.dedup();
        let texts = |paths: &[PathBuf]| paths.iter().map(|path| text(path)).collect();
        names.push(("{workspace}".to_owned(), texts(&workspaces)));
        names.push(("{repository}".to_owned(), texts(&repositories)));
        names.push(("{above}".to_owned(), above));
        ClueSight { environment: scene.environment, home, names, read: RefCell::default() }
    }

    pub(super) fn has_home(&self) -> bool {
        self.home.is_some()
    }

    pub(super) fn look(&self, clue: &str) -> ClueAnswer {
        if let Some(variable) = clue.strip_prefix('$') {
            return seen(self.has_variable(variable));
        }
        if let Some(variable) = clue.strip_prefix("no $") {
            return seen(!self.has_variable(variable));
        }
        if let Some(system) = clue.strip_prefix("on ") {
            return seen(std::env::consts::OS == system);
        }
        if clue == "not root" {
            return seen(!rustix::process::geteuid().is_root());
        }
        let (path, key) = clue.split_once('#').map_or((clue, None), |(path, key)| (path.trim(), Some(key.trim())));
        let mut answer = ClueAnswer::Absent;
        for path in self.filled(path) {
            let found = match key {
                None => there(Path::new(&path)),
                Some(key) => self.look_into(Path::new(&path), key),
            };
            match found {
                ClueAnswer::Seen => return ClueAnswer::Seen,
                ClueAnswer::Unreadable(_) => answer = found,
                ClueAnswer::Absent => {}
            }
        }
        answer
    }

    /// A clue or a sentence as a person reads it.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, values) in &self.names {
            text = text.replace(name, values.first().map_or("", String::as_str));
        }
        match &self.home {
            Some(home) if home != Path::new("/") => text.replace(&format!("{}/", home.display()), "~/"),
            Some(_) | None => text,
        }
    }

    /// A text with the last meaning of each name, which has no links in it; `None` if a name has no meaning.
    pub(super) fn real(&self, text: &str) -> Option<String> {
        self.filled(text).pop()
    }

    fn has_variable(&self, clue: &str) -> bool {
        let (name, value) = clue.split_once('=').map_or((clue, None), |(name, value)| (name, Some(value)));
        let fits = |given: &str| match name.strip_suffix('*') {
            Some(begins) => given.starts_with(begins),
            None => given == name,
        };
        let is_wanted = |given: &str| value.map_or(!given.is_empty(), |value| given == value);
        self.environment.iter().any(|(name, given)| fits(name) && is_wanted(given))
    }

    /// A text with every name filled in, once for each thing that it may mean. One that stands for nothing leaves no text.
    fn filled(&self, text: &str) -> Vec<String> {
        let mut texts = vec![text.to_owned()];
        for (name, values) in self.names.iter().filter(|(name, _)| text.contains(name.as_str())) {
            texts = texts.iter().flat_map(|text| values.iter().map(|value| text.replace(name, value))).collect();
        }
        texts
    }

    fn document(&self, path: &Path) -> Rc<ReadDocument> {
        let mut read = self.read.borrow_mut();
        Rc::clone(read.entry(path.to_owned()).or_insert_with(|| Rc::new(document(path))))
    }

    fn look_into(&self, path: &Path, key: &str) -> ClueAnswer {
        let read = self.document(path);
        let document = match read.as_ref() {
            Ok(Some(document)) => document,
            Ok(None) => return ClueAnswer::Absent,
            Err(why) => return ClueAnswer::Unreadable(why.clone()),
        };
        let (key, wanted) = key.split_once('=').map_or((key, None), |(key, value)| (key.trim(), Some(value.trim())));
        let wanted = wanted.map(|value| self.filled(value));
        // Keys are taken apart before names are filled in: a path has dots of its own.
        let mut places = vec![document];
        for part in key.split('.') {
            let parts = self.filled(part);
            places = places.iter().flat_map(|it| parts.iter().filter_map(|part| it.get(part))).collect();
        }
        seen(places.into_iter().any(|value| match &wanted {
            None => says_something(value),
            Some(wanted) => wanted.iter().any(|wanted| is(value, wanted)),
        }))
    }
}

fn seen(is_seen: bool) -> ClueAnswer {
    if is_seen { ClueAnswer::Seen } else { ClueAnswer::Absent }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn is(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(list) => list.iter().any(|it| it.as_str() == Some(wanted)),
        Value::Bool(given) => wanted.parse() == Ok(*given),
        Value::Number(given) => given.to_string().as_str() == wanted,
        Value::Null | Value::Object(_) => false,
    }
}

fn there(path: &Path) -> ClueAnswer {
    match std::fs::metadata(path) {
        Ok(about) => seen(about.is_dir() || about.len() > 0),
        Err(error) if is_absent(&error) => ClueAnswer::Absent,
        Err(error) => ClueAnswer::Unreadable(format!("{} cannot be looked at: {error}", path.display())),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A file of a program's configuration, if it is there.
pub(in crate::harness) fn document(path: &Path) -> Result<Option<Value>, String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(format!("{shown} cannot be read: {error}")),
        Ok(about) if !about.is_file() || about.len() > LARGEST_FILE => return Err(format!("{shown} is no such file")),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let read = match path.extension().is_some_and(|it| it == "toml") {
        true => toml::from_str(&text).map_err(|error| error.message().to_owned()),
        // Some programs write a word about the file above it.
        false => serde_json::from_str(&without_remarks(&text)).map_err(|error| error.to_string()),
    };
    read.map(Some).map_err(|why| format!("{shown} is not understood: {why}"))
}

/// The text without lines that are remarks as a whole. Others stay, and make the file one that is not understood.
fn without_remarks(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// A path as it is written, and as it is without links.
fn both(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok().filter(|real| real != path);
    [path.to_owned()].into_iter().chain(real).collect()
}

/// The main checkout of the worktree that a folder is in.
pub fn repository_of(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let git = root.join(".git");
    if git.is_dir() {
        return Some(root.to_owned());
    }
    let text = std::fs::read_to_string(&git).ok()?;
    let at = root.join(text.strip_prefix("gitdir:")?.trim());
    let worktrees = at.ancestors().find(|it| it.file_name().is_some_and(|name| name == "worktrees"))?;
    let git = worktrees.parent()?;
    let is_usual = git.file_name().is_some_and(|name| name == ".git");
    if is_usual { git.parent().map(Path::to_owned) } else { Some(git.to_owned()) }
}
