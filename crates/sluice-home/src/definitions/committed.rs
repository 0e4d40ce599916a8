//! The definitions of a repository as the commit of its default branch has them.
//!
//! What the engine starts by itself (for an event, for a task's state, after a run, as a step) is read there first: agents
//! write in checkouts and on branches, and must not replace what judges them. Then come the home's own definitions, the
//! built-in ones, and last what only lies in a checkout, which never acts as a person.

use std::io;
use std::path::{Component, Path, PathBuf};

use sluice_api::problem::Problem;
use sluice_dialect::catalogue::{Catalogue, CatalogueEntry, DefinitionOrigin, REPOSITORY_FOLDERS, is_definition_file};
use sluice_dialect::prompts::{HeldPrompts, MOST_BYTES_TOGETHER};
use sluice_dialect::source::MAX_FILE;
use sluice_dialect::{LoadedDefinition, Sources};
use sluice_os::git::{Git, GitError, Repository};
use sluice_os::passing::PassingError;

use crate::home::Home;
use crate::settings::projects::git;
use crate::undone::described;

/// Characters of a commit's name that are shown.
const SHOWN: usize = 12;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DefinitionSite {
    /// A person names it: in their checkout, as it lies there.
    #[default]
    Checkout,
    /// The engine starts it by itself: in the commit of the default branch.
    Commit,
}

/// The definitions that the engine may start by itself at a place.
pub(crate) struct CommittedCatalogue {
    /// The repository's, the home's and the built-in ones.
    pub(crate) catalogue: Catalogue,
    /// Where the repository's are read, in words; or where alone it is looked, and why.
    pub(crate) place: String,
    from: Option<(Repository, String)>,
}

impl CommittedCatalogue {
    /// Those for a checkout of this repository, or for a folder in none. `also` may be the path of one more file.
    pub(crate) fn seen_from(home: &Home, root: &Path, also: &str) -> Result<CommittedCatalogue, Problem> {
        let folder = home.context.places.home();
        match repository(home, root)? {
            Some(repository) => CommittedCatalogue::of(repository, folder, also).map_err(|error| git(&error)),
            None => Ok(CommittedCatalogue::of_home(folder, "this is no git repository".to_owned())),
        }
    }

    /// The home's and the built-in ones alone, and why.
    fn of_home(home: &Path, why: String) -> CommittedCatalogue {
        let catalogue = Catalogue::of_held(Vec::new(), home);
        CommittedCatalogue { catalogue, place: format!("the home: {why}"), from: None }
    }

    pub(crate) fn of(repository: Repository, home: &Path, also: &str) -> Result<CommittedCatalogue, GitError> {
        let branch = repository.default_branch().to_owned();
        let Some(commit) = default_commit(&repository)? else {
            return Ok(CommittedCatalogue::of_home(home, format!("the branch `{branch}` has no commit")));
        };
        let mut below = REPOSITORY_FOLDERS.to_vec();
        below.extend(Some(also).filter(|also| is_plain(Path::new(also))));
        let mut files = repository.committed_files(&commit, &below)?;
        let is_meant = |path: &Path| {
            let folder = path.parent().unwrap_or(Path::new(""));
            is_definition_file(path)
                && (path == Path::new(also) || REPOSITORY_FOLDERS.iter().any(|it| folder == Path::new(it)))
        };
        files.retain(|file| is_meant(Path::new(&file.path)) && file.size <= MAX_FILE as u64);
        let bytes = repository.committed_bytes(&files.iter().collect::<Vec<_>>())?;
        // The folders are in the order in which they are searched.
        let rank = |path: &Path| REPOSITORY_FOLDERS.iter().position(|folder| path.starts_with(folder));
        let mut held: Vec<(PathBuf, Vec<u8>)> = files.into_iter().map(|file| file.path.into()).zip(bytes).collect();
        held.sort_by(|(one, _), (other, _)| (rank(one), one).cmp(&(rank(other), other)));
        let place = format!("the commit {} of `{branch}`", commit.get(..SHOWN).unwrap_or(&commit));
        Ok(CommittedCatalogue { catalogue: Catalogue::of_held(held, home), place, from: Some((repository, commit)) })
    }

    /// The commit that they are of, if there is one.
    pub(crate) fn commit(&self) -> Option<&str> {
        self.from.as_ref().map(|(_, commit)| commit.as_str())
    }

    /// The definition in this file, or of this name.
    pub(crate) fn find(&self, wanted: &str) -> Option<&CatalogueEntry> {
        let in_file = self.catalogue.entries.iter().find(|entry| entry.path == Path::new(wanted));
        in_file.filter(|entry| entry.origin != DefinitionOrigin::BuiltIn).or_else(|| self.catalogue.find(wanted))
    }

    /// Loads one of them, with its prompt files from the same place. A definition whose prompt only cannot be read now is
    /// not an unusable one.
    pub(crate) fn load(&self, entry: &CatalogueEntry, sources: &mut Sources) -> Result<LoadedDefinition, Problem> {
        let Some((repository, commit)) = self.origin_of(entry) else { return Ok(entry.load(sources)) };
        let mut unread = None;
        let read = |path: &Path| {
            prompt(repository, commit, path).map_err(|error| {
                let told = io::Error::other(described(&error));
                unread = unread.take().or(Some(error).filter(PassingError::is_passing));
                told
            })
        };
        let loaded = entry.load_with(&mut HeldPrompts::of(&entry.path, read), sources);
        unread.map_or(Ok(loaded), |error| Err(git(&error)))
    }

    /// The repository and the commit that one of them is of, if it is not the home's or built in.
    fn origin_of(&self, entry: &CatalogueEntry) -> Option<&(Repository, String)> {
        self.from.as_ref().filter(|_| entry.origin == DefinitionOrigin::Repository)
    }

    /// The file of the main checkout that one of them would be.
    pub(crate) fn file(&self, entry: &CatalogueEntry) -> PathBuf {
        let of_repository = self.origin_of(entry).map(|(repository, _)| repository.folder().join(&entry.path));
        of_repository.unwrap_or_else(|| entry.path.clone())
    }

    /// Where one of them was read, for people; and that the file in the checkout is another one, where it is.
    pub(crate) fn told(&self, entry: &CatalogueEntry) -> String {
        if entry.origin != DefinitionOrigin::Repository {
            return String::new();
        }
        let told = format!("{} in {}", entry.path.display(), self.place);
        let lying = std::fs::read(self.file(entry));
        match (lying, entry.bytes()) {
            (Ok(lying), Ok(held)) if lying != held => {
                format!("{told}; the file in the checkout is another one, and is not used before it is committed there")
            }
            (Ok(_) | Err(_), _) => told,
        }
    }
}

/// The repository around a folder, with the default branch of its project, if there is one.
fn repository(home: &Home, root: &Path) -> Result<Option<Repository>, Problem> {
    let project = home.projects.around(root);
    let branch = project.as_ref().map(|project| project.default_branch.as_str());
    match Repository::open(Git::default(), root, branch) {
        Ok(repository) => Ok(Some(repository)),
        Err(GitError::NoRepository { .. }) => Ok(None),
        Err(error) => Err(git(&error)),
    }
}

/// The commit of the default branch of the repository around a folder, where what the engine starts by itself begins. None
/// where there is no repository, or no commit.
pub(crate) fn tip(home: &Home, root: &Path) -> Result<Option<String>, Problem> {
    let Some(repository) = repository(home, root)? else { return Ok(None) };
    default_commit(&repository).map_err(|error| git(&error))
}

fn default_commit(repository: &Repository) -> Result<Option<String>, GitError> {
    match repository.default_commit() {
        Err(GitError::NoCommit { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// Whether that can be the path of a definition in a commit.
fn is_plain(path: &Path) -> bool {
    is_definition_file(path)
        && !path.to_string_lossy().starts_with(':')
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}

fn prompt(repository: &Repository, commit: &str, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    let Some(shown) = path.to_str() else { return Ok(None) };
    let files = repository.committed_files(commit, &[shown])?;
    let Some(file) = files.iter().find(|file| file.path == shown) else { return Ok(None) };
    if file.size > MOST_BYTES_TOGETHER as u64 {
        let source = io::Error::other("it is too large");
        return Err(GitError::File { what: "cannot read", path: path.to_owned(), source });
    }
    repository.committed_bytes(&[file]).map(|mut bytes| bytes.pop())
}
