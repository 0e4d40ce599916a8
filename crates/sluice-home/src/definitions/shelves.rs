//! The recipes of the home and of the projects that the engine may start by itself, read again when they change.
//!
//! It is asked after everything that happens, so as long as nothing has changed only the looks of some files are compared.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sluice_core::recipe::{Recipe, Trigger};
use sluice_dialect::catalogue::{
    Catalogue, CatalogueEntry, DefinitionOrigin, HOME_FOLDER, REPOSITORY_FOLDERS, is_definition_file, load_path,
};
use sluice_dialect::{Definition, Sources};
use sluice_os::git::{Git, GitError, Repository};
use sluice_os::passing::PassingError;

use crate::definitions::acts_as_person;
use crate::definitions::committed::CommittedCatalogue;
use crate::home::Home;

pub(crate) struct ShelvedRecipe {
    pub(crate) recipe: Recipe,
    /// Its file; of one in a commit, where that is checked out.
    pub(crate) path: PathBuf,
    /// The project it belongs to; none: the home.
    pub(crate) project: Option<PathBuf>,
    /// By what it is found again.
    pub(crate) found: String,
}

type ShelfFileMark = (PathBuf, Option<(SystemTime, u64, u64)>);

struct RecipeShelf {
    branch: String,
    /// The files that change when the recipes do.
    signs: Vec<PathBuf>,
    looks: Vec<ShelfFileMark>,
    recipes: Vec<ShelvedRecipe>,
}

#[derive(Default)]
pub(crate) struct RecipeShelves {
    home: Option<RecipeShelf>,
    projects: BTreeMap<PathBuf, RecipeShelf>,
}

impl RecipeShelves {
    pub(crate) fn refresh(&mut self, home: &Home) {
        let looks = listed(&home.context.places.home().join(HOME_FOLDER));
        if self.home.as_ref().is_none_or(|shelf| shelf.looks != looks) {
            let recipes = looks.iter().filter_map(|(path, _)| of_home(path)).collect();
            self.home = Some(RecipeShelf { branch: String::new(), signs: Vec::new(), looks, recipes });
        }
        let projects = home.projects.list();
        self.projects.retain(|root, _| projects.iter().any(|project| Path::new(&project.path) == root));
        for project in projects {
            let root = PathBuf::from(&project.path);
            let is_same = |shelf: &RecipeShelf| {
                shelf.branch == project.default_branch && shelf.looks == seen(&root, &shelf.signs)
            };
            if self.projects.get(&root).is_some_and(is_same) {
                continue;
            }
            // Git may fail for a moment: then what was read before stays, and it is looked again next time.
            if let Some(shelf) = of_project(home, &root, &project.default_branch) {
                self.projects.insert(root, shelf);
            }
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &ShelvedRecipe> {
        self.home.iter().chain(self.projects.values()).flat_map(|shelf| &shelf.recipes)
    }
}

fn of_home(path: &Path) -> Option<ShelvedRecipe> {
    let loaded = load_path(path, &mut Sources::new());
    let is_usable = loaded.is_usable();
    match loaded.definition.filter(|_| is_usable)? {
        Definition::Recipe(recipe) => {
            Some(ShelvedRecipe { recipe, path: path.to_owned(), project: None, found: path.display().to_string() })
        }
        Definition::Lifecycle(_) => None,
    }
}

fn of_project(home: &Home, root: &Path, branch: &str) -> Option<RecipeShelf> {
    let repository = match Repository::open(Git::default(), root, Some(branch)) {
        Ok(repository) => repository,
        Err(error) if error.is_passing() => return None,
        // It was moved away, say: it is looked at again when there is something.
        Err(GitError::NoRepository { .. } | GitError::File { .. }) => {
            let signs = vec![root.join(".git")];
            let (looks, recipes) = (seen(root, &signs), Vec::new());
            return Some(RecipeShelf { branch: branch.to_owned(), signs, looks, recipes });
        }
        Err(_) => return None,
    };
    let signs = signs(&repository);
    // Seen before it is read: what changes meanwhile is read again.
    let looks = seen(root, &signs);
    let committed = CommittedCatalogue::of(repository, home.context.places.home(), "").ok()?;
    let mut recipes = Vec::new();
    for entry in committed.catalogue.entries.iter().filter(|entry| entry.origin == DefinitionOrigin::Repository) {
        let loaded = committed.load(entry, &mut Sources::new()).ok()?;
        if let (true, Some(Definition::Recipe(recipe))) = (loaded.is_usable(), loaded.definition) {
            let (path, found) = (committed.file(entry), entry.path.display().to_string());
            recipes.push(ShelvedRecipe { recipe, path, project: Some(root.to_owned()), found });
        }
    }
    REPOSITORY_FOLDERS.iter().for_each(|folder| recipes.extend(uncommitted(home, root, folder, &committed)));
    Some(RecipeShelf { branch: branch.to_owned(), signs, looks, recipes })
}

/// The recipes of a folder of the checkout that the commit does not have. One that the commit has otherwise, or that acts
/// as a person, is not among them: the log says so.
fn uncommitted(home: &Home, root: &Path, folder: &str, committed: &CommittedCatalogue) -> Vec<ShelvedRecipe> {
    let held = |path: &Path| committed.catalogue.entries.iter().find(|entry| committed.file(entry) == path);
    let mut found = Vec::new();
    for entry in Catalogue::of_folder(&root.join(folder)).entries {
        let same = |other: &CatalogueEntry| matches!((other.bytes(), entry.bytes()), (Ok(one), Ok(two)) if one == two);
        let loaded = entry.load(&mut Sources::new());
        let (is_usable, acts) = (loaded.is_usable(), acts_as_person(&loaded));
        let Some(Definition::Recipe(recipe)) = loaded.definition else { continue };
        let waits = matches!(recipe.trigger, Trigger::Event { .. });
        match held(&entry.path) {
            None if is_usable && !acts => {
                let name = entry.path.strip_prefix(root).unwrap_or(&entry.path).display().to_string();
                found.push(ShelvedRecipe { recipe, path: entry.path, project: Some(root.to_owned()), found: name });
            }
            Some(other) if same(other) => {}
            None | Some(_) if waits => tracing::warn!(
                "{} waits for events in vain: it is not so in {}; commit it to the default branch, or put it into {}",
                entry.path.display(),
                committed.place,
                home.context.places.home().join(HOME_FOLDER).display()
            ),
            None | Some(_) => {}
        }
    }
    found
}

fn signs(repository: &Repository) -> Vec<PathBuf> {
    let branch = repository.default_branch();
    let references = [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")];
    let places = references.iter().map(String::as_str).chain(["packed-refs", "reftable/tables.list"]);
    places.map(|place| repository.common().join(place)).collect()
}

/// What the signs look like, and the definitions that lie in a checkout.
fn seen(root: &Path, signs: &[PathBuf]) -> Vec<ShelfFileMark> {
    let lying = REPOSITORY_FOLDERS.iter().flat_map(|folder| listed(&root.join(folder)));
    signs.iter().cloned().map(look).chain(lying).collect()
}

fn listed(folder: &Path) -> Vec<ShelfFileMark> {
    let listing = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| is_definition_file(path));
    paths.sort();
    paths.into_iter().map(look).collect()
}

fn look(path: PathBuf) -> ShelfFileMark {
    let about = std::fs::metadata(&path).ok();
    let seen = about.and_then(|about| Some((about.modified().ok()?, about.len(), about.ino())));
    (path, seen)
}
