//! Projects: repositories whose tasks the engine keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A project, as it is kept and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// The name of the project, unique in the home.
    pub name: String,
    /// The root of its main checkout.
    pub path: String,
    /// The branch that work starts from and is merged into.
    pub default_branch: String,
    /// How many worktrees there are at most.
    pub pool_size: usize,
    /// The lifecycle of tasks that name none; absent where that is `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The command that makes a fresh worktree ready, run by the shell in the worktree; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The files of the worktree whose change makes `setup` run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup_when: Vec<String>,
    /// What a worktree gets copies of: paths or patterns of the main checkout, of files that git does not track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// What a worktree gets symbolic links to: paths or patterns of the main checkout that git does not track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<String>,
    /// The command that runs in a worktree before it is removed; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<String>,
}

/// A project to add. What is missing is read from its repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// The folder of the main checkout, on the engine's machine.
    pub path: String,
    /// Its name; default: the folder's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The branch that work starts from and is merged into; default: found in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// How many worktrees the project has at most; default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_size: Option<usize>,
    /// The lifecycle of tasks that name none; default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The command that makes a fresh worktree ready, run by the shell in the worktree; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The files of the worktree whose change makes `setup` run again; default: it runs once in a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_when: Option<Vec<String>>,
    /// What a worktree gets copies of: paths or patterns of the main checkout, of files that git does not track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Vec<String>>,
    /// What a worktree gets symbolic links to: paths or patterns of the main checkout that git does not track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Vec<String>>,
    /// The command that runs in a worktree before it is removed; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<String>,
}

impl From<NewProject> for ProjectChange {
    fn from(new: NewProject) -> ProjectChange {
        let NewProject { path, name, default_branch, pool_size, workflow, setup, setup_when, copy, link, teardown } =
            new;
        let path = Some(path);
        ProjectChange { name, path, default_branch, pool_size, workflow, setup, setup_when, copy, link, teardown }
    }
}

/// What is changed of a project. What is missing stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    /// The new name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new folder of the main checkout, on the engine's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The new branch that work starts from and is merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// How many worktrees the project has at most from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_size: Option<usize>,
    /// The new lifecycle of tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The new command that makes a fresh worktree ready; an empty text: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The new files of the worktree whose change makes `setup` run again; an empty text or list: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_when: Option<Vec<String>>,
    /// What a worktree gets copies of from now on; an empty text or list: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<Vec<String>>,
    /// What a worktree gets symbolic links to from now on; an empty text or list: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Vec<String>>,
    /// The new command that runs in a worktree before it is removed; an empty text: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<String>,
}

/// A project in a projects.json, of this program or another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedProject {
    /// The name of the project; one that exists already is left as it is.
    pub name: String,
    /// The folder of the main checkout, on the engine's machine.
    pub path: String,
    /// The branch that work starts from and is merged into; default: found in the repository.
    pub default_branch: Option<String>,
    /// How many worktrees the project has at most; default: 2.
    pub pool_size: Option<usize>,
    /// The lifecycle of tasks that name none; default: `default`.
    pub workflow: Option<String>,
    /// The command that makes a fresh worktree ready, run by the shell in the worktree; default: none.
    pub setup: Option<String>,
    /// The files of the worktree whose change makes `setup` run again; default: it runs once in a worktree.
    pub setup_when: Option<Vec<String>>,
    /// What a worktree gets copies of: paths or patterns of the main checkout, of files that git does not track.
    pub copy: Option<Vec<String>>,
    /// What a worktree gets symbolic links to: paths or patterns of the main checkout that git does not track.
    pub link: Option<Vec<String>>,
    /// The command that runs in a worktree before it is removed; default: none.
    pub teardown: Option<String>,
}

impl From<ImportedProject> for ProjectChange {
    fn from(imported: ImportedProject) -> ProjectChange {
        let ImportedProject {
            name,
            path,
            default_branch,
            pool_size,
            workflow,
            setup,
            setup_when,
            copy,
            link,
            teardown,
        } = imported;
        let (name, path) = (Some(name), Some(path));
        ProjectChange { name, path, default_branch, pool_size, workflow, setup, setup_when, copy, link, teardown }
    }
}

/// The answer with one project.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProjectAnswer {
    /// The project, as it is now.
    pub project: Project,
}

/// The answer with several projects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// The projects; where all are listed, ordered by name.
    pub projects: Vec<Project>,
}
