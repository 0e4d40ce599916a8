//! Projects: repositories whose tasks the engine keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A project, as it is kept and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// The root of its main checkout.
    pub path: String,
    /// The branch that work starts from and is merged into.
    pub default_branch: String,
    /// How many worktrees there are at most.
    pub pool_size: usize,
    /// The lifecycle of its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
}

/// A project that is added. What is missing is found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Where it is.
    pub path: String,
    /// Its name; the folder's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// The size of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_size: Option<usize>,
    /// Its lifecycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
}

impl From<NewProject> for ProjectChange {
    fn from(new: NewProject) -> ProjectChange {
        let NewProject { path, name, default_branch, pool_size, workflow } = new;
        ProjectChange { name, path: Some(path), default_branch, pool_size, workflow }
    }
}

/// What is changed of a project. What is missing stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectChange {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// The size of its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_size: Option<usize>,
    /// Its lifecycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
}

/// A project in a projects.json, of this program or another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedProject {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Its default branch.
    pub default_branch: Option<String>,
    /// The size of its pool.
    pub pool_size: Option<usize>,
    /// Its lifecycle.
    pub workflow: Option<String>,
}

/// One project.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProjectAnswer {
    /// It.
    pub project: Project,
}

/// All projects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProjectList {
    /// By name.
    pub projects: Vec<Project>,
}
