//! The projects of a home: which repositories there are, and how many worktrees each lends.
//!
//! They stand in a file of the home and not in the store: where a repository is differs from machine to machine.

mod readiness;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::undone::described;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::{ImportedProject, Project, ProjectChange};
use sluice_os::file::{Durability, write_atomically};
use sluice_os::git::{Git, GitError, Repository, slug};
use sluice_os::passing::PassingError;
use sluice_os::workspace::WorkspacePool;

/// How many worktrees a project lends unless it says otherwise.
const POOL_SIZE: usize = 2;
/// More than this is a mistake of typing.
const LARGEST_POOL: usize = 1000;

#[derive(Debug)]
pub struct Projects {
    file: PathBuf,
    home: PathBuf,
    all: Mutex<BTreeMap<String, Project>>,
}

impl Projects {
    /// Those in this file; none when there is no file.
    pub fn read(file: PathBuf, home: PathBuf) -> Result<Projects, Problem> {
        let unusable = |why: String| {
            Problem::fault(format!("{} cannot be used: {why}", file.display())).hint("fix the file, or move it away")
        };
        let all = match std::fs::read(&file) {
            Ok(bytes) => {
                let list: Vec<Project> = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
                list.into_iter().map(|project| (project.name.clone(), project)).collect()
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(unusable(error.to_string())),
        };
        Ok(Projects { file, home, all: Mutex::new(all) })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Project>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn list(&self) -> Vec<Project> {
        self.all().values().cloned().collect()
    }

    pub fn get(&self, name: &str) -> Result<Project, Problem> {
        self.all().get(name).cloned().ok_or_else(|| {
            Problem::not_found(format!("there is no project `{}`", shown(name)))
                .hint("`sluice project list` shows all of them, `sluice project add` adds one")
        })
    }

    /// The project that a folder belongs to: its checkout, or one of its worktrees.
    pub fn around(&self, folder: &Path) -> Option<Project> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let roots = |project: &Project| [PathBuf::from(&project.path), self.workspaces(project)];
        let holds = |root: &PathBuf| root.canonicalize().is_ok_and(|root| folder.starts_with(root));
        let all = self.all();
        let around = all.values().filter(|project| roots(project).iter().any(holds));
        around.max_by_key(|project| project.path.len()).cloned()
    }

    /// The project whose main checkout is this folder.
    pub(crate) fn at(&self, checkout: &str) -> Option<Project> {
        self.all().values().find(|project| project.path == checkout).cloned()
    }

    pub fn workspaces(&self, project: &Project) -> PathBuf {
        self.home.join("workspaces").join(slug(&project.name))
    }

    pub fn pool(&self, project: &Project) -> Result<WorkspacePool, Problem> {
        let repository = open(Path::new(&project.path), Some(&project.default_branch))?;
        WorkspacePool::new(repository, &self.home, &project.name).map_err(|error| git(&error))
    }

    pub fn add(&self, wanted: ProjectChange) -> Result<Project, Problem> {
        let project = found(wanted)?;
        self.change(|all| put(all, project))
    }

    pub fn update(&self, name: &str, wanted: ProjectChange) -> Result<Project, Problem> {
        let mut project = self.get(name)?;
        if let Some(path) = wanted.path {
            project.path = open(there(&path)?, None)?.folder().display().to_string();
        }
        if let Some(branch) = wanted.default_branch {
            project.default_branch = open(Path::new(&project.path), Some(&branch))?.default_branch().to_owned();
        }
        project.pool_size = wanted.pool_size.unwrap_or(project.pool_size);
        project.workflow = wanted.workflow.or(project.workflow);
        project.setup = wanted.setup.or(project.setup);
        project.setup_when = wanted.setup_when.unwrap_or(project.setup_when);
        project.copy = wanted.copy.unwrap_or(project.copy);
        project.link = wanted.link.unwrap_or(project.link);
        project.teardown = wanted.teardown.or(project.teardown);
        if let Some(name) = wanted.name.filter(|wanted| *wanted != project.name) {
            project.name = named(name)?;
        }
        let project = checked(project)?;
        self.change(|all| {
            all.remove(name);
            put(all, project)
        })
    }

    pub fn remove(&self, name: &str) -> Result<Project, Problem> {
        let project = self.get(name)?;
        self.change(|all| {
            all.remove(name);
            Ok(project)
        })
    }

    /// Takes over a list of projects, or an object that holds one. Those that are here already stay as they are.
    pub fn import(&self, document: &serde_json::Value) -> Result<Vec<Project>, Problem> {
        let list = document.get("projects").unwrap_or(document).clone();
        let written: Vec<ImportedProject> = serde_json::from_value(list).map_err(|error| {
            Problem::bad_request(format!(
                "the document is neither a list of projects nor an object with one in `projects`: {error}"
            ))
            .hint("each needs `name` and `path`; `default_branch`, `pool_size` and `workflow` are optional")
        })?;
        let mut new = Vec::new();
        for imported in written {
            let name = imported.name.clone();
            if self.all().contains_key(&name) {
                continue;
            }
            new.push(found(imported.into()).map_err(|problem| of_import(&name, problem))?);
        }
        // All of them or none: a list that is half taken over would have to be sorted out by hand.
        self.change(|all| {
            let put = |project: Project| {
                let name = project.name.clone();
                put(all, project).map_err(|problem| of_import(&name, problem))
            };
            new.into_iter().map(put).collect()
        })
    }

    /// Changes the list and writes it; if it cannot be written it is not changed.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Project>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut all = self.all();
        let mut changed = all.clone();
        let answer = change(&mut changed)?;
        let list: Vec<&Project> = changed.values().collect();
        let text = serde_json::to_vec_pretty(&list).map_err(|error| Problem::fault(error.to_string()))?;
        let unwritten = |error| Problem::fault(format!("{} cannot be written: {error}", self.file.display()));
        write_atomically(&self.file, &text, Durability::Synced).map_err(unwritten)?;
        *all = changed;
        Ok(answer)
    }
}

fn found(wanted: ProjectChange) -> Result<Project, Problem> {
    let path = wanted.path.ok_or_else(|| Problem::bad_request("a project needs a path"))?;
    let repository = open(there(&path)?, wanted.default_branch.as_deref())?;
    let folder = repository.folder().to_owned();
    let name = match wanted.name {
        Some(name) => name,
        None => folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    checked(Project {
        name: named(name)?,
        path: folder.display().to_string(),
        default_branch: repository.default_branch().to_owned(),
        pool_size: wanted.pool_size.unwrap_or(POOL_SIZE),
        workflow: wanted.workflow,
        setup: wanted.setup,
        setup_when: wanted.setup_when.unwrap_or_default(),
        copy: wanted.copy.unwrap_or_default(),
        link: wanted.link.unwrap_or_default(),
        teardown: wanted.teardown,
    })
}

/// Puts a project among the others. A name means one project, and a repository belongs to one: two pools would lend the
/// same branches.
fn put(all: &mut BTreeMap<String, Project>, project: Project) -> Result<Project, Problem> {
    let exists = |message: String| Problem::new(ProblemStatus::Refused, "exists", message);
    if let Some(other) = all.get(&project.name) {
        let message = format!("there is a project `{}` already, at {}", shown(&project.name), other.path);
        return Err(exists(message).hint("`name=NAME` gives it another name"));
    }
    let place = |project: &Project| Path::new(&project.path).canonicalize().unwrap_or_else(|_| (&project.path).into());
    if let Some(other) = all.values().find(|other| place(other) == place(&project)) {
        let message = format!("the repository {} is the project `{}` already", project.path, shown(&other.name));
        return Err(exists(message).hint(format!("`sluice project update {} …` changes it", shown(&other.name))));
    }
    all.insert(project.name.clone(), project.clone());
    Ok(project)
}

/// What is wrong with one project of a list, of which none is taken over.
fn of_import(name: &str, problem: Problem) -> Problem {
    Problem { message: format!("`{}`: {}; nothing is imported", shown(name), problem.message), ..problem }
}

/// A name that a project can be given. It is part of paths and of the names of sessions.
fn named(name: String) -> Result<String, Problem> {
    let wrong = |message: &str| Problem::bad_request(message).hint("`name=NAME` gives it another");
    if name.trim().is_empty() {
        return Err(Problem::bad_request("a project needs a name").hint("`name=NAME` gives it one"));
    }
    if name.len() > 1000 {
        return Err(wrong("that name is too long"));
    }
    if name.contains('/') || name.chars().any(char::is_control) {
        return Err(wrong("a project's name has no `/` and no control characters"));
    }
    Ok(name)
}

fn checked(mut project: Project) -> Result<Project, Problem> {
    readiness::check(&mut project)?;
    if !(1..=LARGEST_POOL).contains(&project.pool_size) {
        let message = format!("a pool has 1 to {LARGEST_POOL} worktrees, not {}", project.pool_size);
        return Err(Problem::bad_request(message));
    }
    Ok(project)
}

pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(100).collect()
}

fn there(folder: &str) -> Result<&Path, Problem> {
    let path = Path::new(folder);
    let missing = || Problem::not_found(format!("there is no folder {folder}")).hint("name the folder of a repository");
    path.is_dir().then_some(path).ok_or_else(missing)
}

pub(crate) fn open(folder: &Path, default_branch: Option<&str>) -> Result<Repository, Problem> {
    Repository::open(Git::default(), folder, default_branch).map_err(|error| git(&error))
}

/// What git, or what we made of it, says.
pub(crate) fn git(error: &GitError) -> Problem {
    match error.is_passing() {
        true => Problem::unavailable(described(error)),
        false => Problem::new(ProblemStatus::Refused, "git", described(error)),
    }
}
