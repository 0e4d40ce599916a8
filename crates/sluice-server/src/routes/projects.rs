//! The routes of projects and of their worktrees.

use std::borrow::Cow;
use std::path::PathBuf;

use axum::extract::{Path, Query};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sluice_api::project::{ImportedProject, NewProject, ProjectAnswer, ProjectChange, ProjectList};
use sluice_api::workspace::{AdoptStray, CollectWorkspaces, DropKept, EndStray, Restore};

use crate::answer::Said;
use crate::table::{RouteTable, delete, get, patch, post};

pub(crate) fn table() -> RouteTable {
    projects_table().merge(workspaces_table())
}

fn projects_table() -> RouteTable {
    RouteTable::new("projects")
        .ask(get("/v1/projects", "List projects"), |service, _, ()| {
            Ok(ProjectList { projects: service.home().projects.list() })
        })
        .ask(post("/v1/projects", "Add a project").creates(), |service, who, said: Said<NewProject>| {
            Ok(ProjectAnswer { project: service.add_project(who, said.read()?.into())? })
        })
        .ask(
            post("/v1/projects/import", "Import projects from a projects.json").creates(),
            |service, who, said: Said<Import>| {
                Ok(ProjectList { projects: service.import_projects(who, &said.document()?)? })
            },
        )
        .ask(
            patch("/v1/projects/{name}", "Change a project"),
            |service, who, (Path(name), said): (Path<String>, Said<ProjectChange>)| {
                Ok(ProjectAnswer { project: service.update_project(who, &name, said.read()?)? })
            },
        )
        .ask(
            delete("/v1/projects/{name}", "Remove a project that has no open tasks"),
            |service, who, Path(name): Path<String>| Ok(ProjectAnswer { project: service.remove_project(who, &name)? }),
        )
}

fn workspaces_table() -> RouteTable {
    RouteTable::new("projects")
        .ask(
            get(
                "/v1/workspaces",
                "List the worktrees of projects and runs, work that was put aside, and what is left over",
            ),
            |service, _, Query(filters): Query<WorkspaceQuery>| match filters.sizes.unwrap_or(false) {
                true => service.measured_workspaces(filters.project.as_deref()),
                false => service.workspaces(filters.project.as_deref()),
            },
        )
        .ask(
            post("/v1/workspaces/init", "Create all worktrees of a project"),
            |service, who, said: Said<WhichProject>| {
                let WhichProject { project, cwd } = said.read()?;
                service.init_workspaces(who, project.as_deref(), cwd.as_deref())
            },
        )
        .ask(
            post("/v1/workspaces/gc", "Remove worktrees that no task and no run needs; work in them is kept"),
            |service, who, said: Said<CollectWorkspaces>| service.collect_workspaces(who, &said.read()?),
        )
        .ask(post("/v1/workspaces/end", "End a living session without a task"), |service, who, said: Said<EndStray>| {
            service.end_stray(who, &said.read()?.session)
        })
        .ask(
            post("/v1/workspaces/adopt", "Attach a living session without a task to a new task"),
            |service, who, said: Said<AdoptStray>| service.adopt_stray(who, &said.read()?),
        )
        .ask(
            post("/v1/workspaces/drop", "Drop kept work that is not wanted any more"),
            |service, who, said: Said<DropKept>| service.drop_work(who, &said.read()?),
        )
        .ask(post("/v1/workspaces/restore", "Restore work that was put aside"), |service, who, said: Said<Restore>| {
            Ok(Restored { path: service.restore_work(who, &said.read()?)? })
        })
}

/// A projects.json: a list of projects, or an object with such a list under the key `projects`.
struct Import;

impl JsonSchema for Import {
    fn schema_name() -> Cow<'static, str> {
        "Import".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<ImportedProject>>();
        json_schema!({
            "description": "A projects.json: a list of projects, or an object with such a list under the key `projects`.",
            "anyOf": [list, { "type": "object", "properties": { "projects": list }, "required": ["projects"] }],
        })
    }
}

/// Which worktrees are wanted, and how much of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WorkspaceQuery {
    /// Only those of this project.
    project: Option<String>,
    /// Whether to count how much room everything takes on the disk, which takes a look at every file.
    sizes: Option<bool>,
}

/// A project, by its name or by a folder in it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend(
    "if" = { "not": { "required": ["cwd"], "properties": { "cwd": { "type": "string" } } } },
    "then" = { "required": ["project"], "properties": { "project": { "type": "string" } } },
))]
struct WhichProject {
    /// The name of the project.
    project: Option<String>,
    /// A folder in it.
    cwd: Option<String>,
}

/// Work that is back.
#[derive(Serialize, JsonSchema)]
struct Restored {
    /// The folder it is in.
    path: PathBuf,
}
