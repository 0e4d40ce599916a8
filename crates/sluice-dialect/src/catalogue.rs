//! The definitions that can be used at a place: the repository's, the home's and the built-in ones.
//!
//! The nearest wins. A file that cannot be used is listed as such and hurts nobody else.

use std::fmt;
use std::path::{Path, PathBuf};

use sluice_core::problem::{Code, Problem};
use sluice_core::span::Span;

use crate::builtin;
use crate::load::{Loaded, load};
use crate::prompts::{PromptRoots, read_at_most};
use crate::source::{MAX_FILE, Sources};

/// Folders of a repository that hold definitions.
pub const REPOSITORY_FOLDERS: [&str; 4] =
    [".sluice/workflows", ".sluice/grimoires", ".coven/grimoires", ".work/templates"];
/// The folder of the home that holds definitions.
pub const HOME_FOLDER: &str = "workflows";

/// Where a definition comes from, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The repository.
    Repository,
    /// `$SLUICE_HOME`.
    Home,
    /// Sluice itself.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Origin::Repository => "repository",
            Origin::Home => "home",
            Origin::BuiltIn => "built-in",
        })
    }
}

/// One definition.
#[derive(Debug)]
pub struct Entry {
    /// Where it comes from.
    pub origin: Origin,
    /// Its file; of a built-in one only the name.
    pub path: PathBuf,
    /// What is in it.
    pub loaded: Loaded,
}

impl Entry {
    /// The name it goes by: its own, else its file's.
    pub fn name(&self) -> &str {
        self.loaded.name.as_deref().unwrap_or_else(|| self.stem())
    }

    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The repository's root.
    pub repository: Option<PathBuf>,
    /// `$SLUICE_HOME`.
    pub home: Option<PathBuf>,
}

/// What there is.
#[derive(Debug)]
pub struct Catalogue {
    /// The definitions, nearest first.
    pub entries: Vec<Entry>,
    /// Their texts.
    pub sources: Sources,
}

impl Catalogue {
    /// Gathers what there is at `places`.
    pub fn gather(places: &Places) -> Self {
        let mut catalogue = Catalogue { entries: Vec::new(), sources: Sources::new() };
        if let Some(repository) = &places.repository {
            REPOSITORY_FOLDERS
                .iter()
                .for_each(|folder| catalogue.add_folder(&repository.join(folder), Origin::Repository));
        }
        if let Some(home) = &places.home {
            catalogue.add_folder(&home.join(HOME_FOLDER), Origin::Home);
        }
        for file in builtin::ALL {
            let loaded = load(file.file, file.text.as_bytes(), &PromptRoots::default(), &mut catalogue.sources);
            catalogue.entries.push(Entry { origin: Origin::BuiltIn, path: file.file.into(), loaded });
        }
        catalogue
    }

    fn add_folder(&mut self, folder: &Path, origin: Origin) {
        let Ok(listing) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = listing.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| is_definition_file(path));
        paths.sort();
        for path in paths {
            let loaded = load_path(&path, &mut self.sources);
            self.entries.push(Entry { origin, path, loaded });
        }
    }

    /// The definition called `name`: the nearest that calls itself so, else the nearest whose file is called so.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        [Origin::Repository, Origin::Home, Origin::BuiltIn].into_iter().find_map(|origin| {
            let near = || self.entries.iter().filter(move |entry| entry.origin == origin);
            near()
                .find(|entry| entry.loaded.name.as_deref() == Some(name))
                .or_else(|| near().find(|entry| entry.stem() == name))
        })
    }

    /// Whether a nearer definition of the same name hides the one at `index`.
    pub fn is_hidden(&self, index: usize) -> bool {
        let name = self.entries[index].name();
        self.entries[..index].iter().any(|entry| entry.name() == name)
    }
}

/// Whether a file's name ends as a definition's does.
pub fn is_definition_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml" || extension == "toml")
}

/// Loads the definition in the file `path`. A file that cannot be read is a finding like any other.
pub fn load_path(path: &Path, sources: &mut Sources) -> Loaded {
    let shown = path.display().to_string();
    match read_at_most(path, MAX_FILE as u64) {
        Ok(bytes) => load(&shown, &bytes, &PromptRoots::of(path), sources),
        Err(error) => {
            let file = sources.add(shown, "");
            let problem =
                Problem::new(Code::NotText, Span::new(file, 0..0), format!("the file cannot be read: {error}"));
            Loaded {
                file,
                format: None,
                name: None,
                description: String::new(),
                definition: None,
                problems: vec![problem],
            }
        }
    }
}
