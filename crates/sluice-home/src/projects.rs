//! The projects of a home: which repositories there are, and how many worktrees each lends.
//!
//! They stand in a file of the home and not in the store: where a repository is differs from machine to machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_api::problem::{Problem, Status};
use sluice_api::project::{ImportedProject, Project, ProjectChange};
use sluice_worker::git::{Git, GitError, Repository, slug};
use sluice_worker::taskfile;
use sluice_worker::workspace::Pool;

/// How many worktrees a project lends unless it says otherwise.
const POOL_SIZE: usize = 2;
/// More than this is a mistake of typing.
const LARGEST_POOL: usize = 1000;

/// All projects.
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
            Problem::fault(format!("{} cannot be used: {why}", file.display())).hint("mend it, or move it away")
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

    /// By name.
    pub fn list(&self) -> Vec<Project> {
        self.all().values().cloned().collect()
    }

    /// The project of this name.
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

    /// Where the worktrees of a project stand.
    pub fn workspaces(&self, project: &Project) -> PathBuf {
        self.home.join("workspaces").join(slug(&project.name))
    }

    /// The worktrees of a project.
    pub fn pool(&self, project: &Project) -> Result<Pool, Problem> {
        let repository = open(Path::new(&project.path), Some(&project.default_branch))?;
        Pool::new(repository, &self.home, &project.name).map_err(|error| git(&error))
    }

    /// Adds a project.
    pub fn add(&self, wanted: ProjectChange) -> Result<Project, Problem> {
        let path = wanted.path.ok_or_else(|| Problem::bad_request("a project needs a path"))?;
        let repository = open(there(&path)?, wanted.default_branch.as_deref())?;
        let folder = repository.folder().to_owned();
        let name = match wanted.name {
            Some(name) => name,
            None => folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let project = checked(Project {
            name,
            path: folder.display().to_string(),
            default_branch: repository.default_branch().to_owned(),
            pool_size: wanted.pool_size.unwrap_or(POOL_SIZE),
            workflow: wanted.workflow,
        })?;
        self.change(|all| {
            if let Some(other) = all.get(&project.name) {
                let message = format!("there is a project `{}` already, at {}", shown(&project.name), other.path);
                return Err(Problem::new(Status::Refused, "exists", message).hint("give it another name with --name"));
            }
            all.insert(project.name.clone(), project.clone());
            Ok(project)
        })
    }

    /// Changes a project.
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
        project.name = wanted.name.unwrap_or(project.name);
        let project = checked(project)?;
        self.change(|all| {
            if project.name != name && all.contains_key(&project.name) {
                let message = format!("there is a project `{}` already", shown(&project.name));
                return Err(Problem::new(Status::Refused, "exists", message));
            }
            all.remove(name);
            all.insert(project.name.clone(), project.clone());
            Ok(project)
        })
    }

    /// Forgets a project.
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
            Problem::bad_request(format!("that is not a list of projects: {error}"))
                .hint("each needs `name` and `path`; `default_branch`, `pool_size` and `workflow` are optional")
        })?;
        let mut added = Vec::new();
        for ImportedProject { name, path, default_branch, pool_size, workflow } in written {
            if self.all().contains_key(&name) {
                continue;
            }
            let change = ProjectChange { name: Some(name), path: Some(path), default_branch, pool_size, workflow };
            added.push(self.add(change)?);
        }
        Ok(added)
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
        taskfile::write(&self.file, &text).map_err(|error| Problem::fault(error.to_string()))?;
        *all = changed;
        Ok(answer)
    }
}

fn checked(project: Project) -> Result<Project, Problem> {
    if project.name.trim().is_empty() {
        return Err(Problem::bad_request("a project needs a name").hint("give it one with --name"));
    }
    if project.name.contains('\0') || project.name.len() > 1000 {
        return Err(Problem::bad_request("that name is too long, or holds a NUL").hint("give it another with --name"));
    }
    if !(1..=LARGEST_POOL).contains(&project.pool_size) {
        let message = format!("a pool has 1 to {LARGEST_POOL} worktrees, not {}", project.pool_size);
        return Err(Problem::bad_request(message));
    }
    Ok(project)
}

/// A text of a user's on one line.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(100).collect()
}

/// A folder that a person names.
fn there(folder: &str) -> Result<&Path, Problem> {
    let path = Path::new(folder);
    let missing = || Problem::not_found(format!("there is no folder {folder}")).hint("name the folder of a repository");
    path.is_dir().then_some(path).ok_or_else(missing)
}

/// A repository, seen from a folder in it.
pub(crate) fn open(folder: &Path, default_branch: Option<&str>) -> Result<Repository, Problem> {
    Repository::open(Git::default(), folder, default_branch).map_err(|error| git(&error))
}

/// What git, or what we made of it, says.
pub(crate) fn git(error: &GitError) -> Problem {
    Problem::new(Status::Refused, "git", described(error))
}

/// An error with its causes.
pub(crate) fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
