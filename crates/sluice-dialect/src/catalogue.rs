//! The definitions that can be used at a place: the repository's, the home's and the built-in ones.
//!
//! The nearest wins. A file that cannot be used is listed as such and hurts nobody else.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use sluice_core::problem::{Code, Diagnosis};
use sluice_core::recipe::RecipeDialect;
use sluice_core::span::{FileId, Span};

use crate::builtin;
use crate::format::DefinitionFormat;
use crate::load::{DefinitionFile, LoadedDefinition, load};
use crate::prompts::{NoPrompts, PromptRoots, PromptSource, read_at_most};
use crate::read::{FileSyntax, read};
use crate::source::{MAX_FILE, Sources, decode};
use crate::tree::Node;

pub const REPOSITORY_FOLDERS: [&str; 4] =
    [".sluice/workflows", ".sluice/grimoires", ".coven/grimoires", ".work/templates"];
pub const HOME_FOLDER: &str = "workflows";

/// Where a definition comes from, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionOrigin {
    Repository,
    Home,
    BuiltIn,
}

impl fmt::Display for DefinitionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DefinitionOrigin::Repository => "repository",
            DefinitionOrigin::Home => "home",
            DefinitionOrigin::BuiltIn => "built-in",
        })
    }
}

/// One definition: where it is and what it calls itself. What else is in it is looked at when it is loaded.
#[derive(Debug)]
pub struct CatalogueEntry {
    pub origin: DefinitionOrigin,
    /// Its file; of a built-in one only the name, and of one in a commit the path from the repository's root.
    pub path: PathBuf,
    /// The name it gives itself, if that could be read; looked for when it is first asked for.
    own_name: OnceLock<Option<String>>,
    /// What is in it, if no file is read for that.
    held: Option<Cow<'static, [u8]>>,
}

impl CatalogueEntry {
    /// The name it goes by: its own, else its file's.
    pub fn name(&self) -> &str {
        self.own_name().unwrap_or_else(|| self.stem())
    }

    /// The name it gives itself, if that can be read.
    fn own_name(&self) -> Option<&str> {
        let read = || self.bytes().ok().and_then(|bytes| own_name(&self.path, &bytes));
        self.own_name.get_or_init(read).as_deref()
    }

    /// What is in its file, byte for byte; of a huge file only as much as shows that it is too large.
    pub fn bytes(&self) -> std::io::Result<Vec<u8>> {
        match &self.held {
            Some(bytes) => Ok(bytes.to_vec()),
            None => read_at_most(&self.path, MAX_FILE as u64),
        }
    }

    /// Loads it; one that no file holds has no prompt files.
    pub fn load(&self, sources: &mut Sources) -> LoadedDefinition {
        match &self.held {
            Some(_) => self.load_with(&mut NoPrompts, sources),
            None => load_path(&self.path, sources),
        }
    }

    pub fn load_with(&self, prompts: &mut dyn PromptSource, sources: &mut Sources) -> LoadedDefinition {
        let shown = self.path.display().to_string();
        match self.bytes() {
            Ok(bytes) => load(&DefinitionFile { path: &shown, bytes: &bytes }, prompts, sources),
            Err(error) => unreadable(shown, &error, sources),
        }
    }

    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default)]
pub struct CataloguePlaces {
    pub repository: Option<PathBuf>,
    pub home: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub struct Catalogue {
    /// The definitions, nearest first.
    pub entries: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// Gathers what there is at `places`. No file is read yet: one definition is had without reading those that are farther.
    pub fn gather(places: &CataloguePlaces) -> Self {
        let mut catalogue = Catalogue::default();
        if let Some(repository) = &places.repository {
            REPOSITORY_FOLDERS
                .iter()
                .for_each(|folder| catalogue.add_folder(&repository.join(folder), DefinitionOrigin::Repository));
        }
        if let Some(home) = &places.home {
            catalogue.add_folder(&home.join(HOME_FOLDER), DefinitionOrigin::Home);
        }
        catalogue.add_built_in();
        catalogue
    }

    /// The same with the repository's files as something else than its folder holds them: by their paths from its root.
    pub fn of_held(files: Vec<(PathBuf, Vec<u8>)>, home: &Path) -> Self {
        let mut catalogue = Catalogue::default();
        for (path, bytes) in files {
            catalogue.add(DefinitionOrigin::Repository, path, Some(Cow::Owned(bytes)));
        }
        catalogue.add_folder(&home.join(HOME_FOLDER), DefinitionOrigin::Home);
        catalogue.add_built_in();
        catalogue
    }

    /// What there is in one folder, and nothing else.
    pub fn of_folder(folder: &Path) -> Self {
        let mut catalogue = Catalogue::default();
        catalogue.add_folder(folder, DefinitionOrigin::Repository);
        catalogue
    }

    fn add_folder(&mut self, folder: &Path, origin: DefinitionOrigin) {
        let Ok(listing) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = listing.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| is_definition_file(path));
        paths.sort();
        paths.into_iter().for_each(|path| self.add(origin, path, None));
    }

    fn add_built_in(&mut self) {
        /// What they call themselves never changes while the program runs.
        static NAMES: LazyLock<Vec<Option<String>>> = LazyLock::new(|| {
            builtin::ALL.iter().map(|file| own_name(Path::new(file.file), file.text.as_bytes())).collect()
        });
        for (file, name) in builtin::ALL.iter().zip(NAMES.iter()) {
            let (path, held) = (file.file.into(), Some(Cow::Borrowed(file.text.as_bytes())));
            let own_name = OnceLock::from(name.clone());
            self.entries.push(CatalogueEntry { origin: DefinitionOrigin::BuiltIn, path, own_name, held });
        }
    }

    fn add(&mut self, origin: DefinitionOrigin, path: PathBuf, held: Option<Cow<'static, [u8]>>) {
        self.entries.push(CatalogueEntry { origin, path, own_name: OnceLock::new(), held });
    }

    /// The definition called `name`: the nearest that calls itself so, else the nearest whose file is called so.
    pub fn find(&self, name: &str) -> Option<&CatalogueEntry> {
        [DefinitionOrigin::Repository, DefinitionOrigin::Home, DefinitionOrigin::BuiltIn].into_iter().find_map(
            |origin| {
                let near = || self.entries.iter().filter(move |entry| entry.origin == origin);
                near()
                    .find(|entry| entry.own_name() == Some(name))
                    .or_else(|| near().find(|entry| entry.stem() == name))
            },
        )
    }
}

pub fn is_definition_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml" || extension == "toml")
}

fn own_name(path: &Path, bytes: &[u8]) -> Option<String> {
    let decoded = decode(FileId(0), bytes);
    let text = decoded.problem.is_none().then_some(decoded.text)?;
    let node = read(FileId(0), &text, FileSyntax::of(path, &text)).node?;
    let name = match DefinitionFormat::recognise(&node).ok()? {
        DefinitionFormat::Lifecycle | DefinitionFormat::Recipe(RecipeDialect::Grimoire) => node.get("name"),
        DefinitionFormat::Recipe(RecipeDialect::Manifest) => node.get("workflow").and_then(|header| header.get("name")),
        DefinitionFormat::Recipe(RecipeDialect::Template) => node.get("template"),
    };
    name.and_then(Node::as_text).map(|text| text.value.clone())
}

/// Loads the definition in the file `path`. A file that cannot be read is a finding like any other.
pub fn load_path(path: &Path, sources: &mut Sources) -> LoadedDefinition {
    let shown = path.display().to_string();
    match read_at_most(path, MAX_FILE as u64) {
        Ok(bytes) => load(&DefinitionFile { path: &shown, bytes: &bytes }, &mut PromptRoots::of(path), sources),
        Err(error) => unreadable(shown, &error, sources),
    }
}

fn unreadable(shown: String, error: &std::io::Error, sources: &mut Sources) -> LoadedDefinition {
    let file = sources.add(shown, "");
    let problem = Diagnosis::new(Code::NotText, Span::new(file, 0..0), format!("the file cannot be read: {error}"))
        .help("name a file that is there, and that you may read");
    LoadedDefinition::broken(file, problem)
}
