//! The routes of projects and of their worktrees.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sluice_api::project::{ImportedProject, NewProject, ProjectAnswer, ProjectChange, ProjectList};
use sluice_api::task::TaskAnswer;
use sluice_api::workspace::{AdoptStray, EndStray, Restore, WorkspaceList};

use crate::answer::{document, said};
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::table::{RouteTable, delete, get, patch, post};

type ProjectsCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    RouteTable::new("projects")
        .add(get("/v1/projects", "List projects").answers::<ProjectList>(), list_projects)
        .add(
            post("/v1/projects", "Add a project").takes::<NewProject>().answers::<ProjectAnswer>().creates(),
            add_project,
        )
        .add(
            post("/v1/projects/import", "Import projects from a projects.json")
                .takes::<Import>()
                .answers::<ProjectList>()
                .creates(),
            import_projects,
        )
        .add(
            patch("/v1/projects/{name}", "Change a project").takes::<ProjectChange>().answers::<ProjectAnswer>(),
            update_project,
        )
        .add(
            delete("/v1/projects/{name}", "Remove a project that has no open tasks").answers::<ProjectAnswer>(),
            remove_project,
        )
        .add(
            get("/v1/workspaces", "List the worktrees of projects, and work that was put aside")
                .reads::<ProjectQuery>()
                .answers::<WorkspaceList>(),
            workspaces,
        )
        .add(
            post("/v1/workspaces/init", "Create all worktrees of a project")
                .takes::<WhichProject>()
                .answers::<WorkspaceList>(),
            init_workspaces,
        )
        .add(
            post("/v1/workspaces/gc", "Remove worktrees that no task uses; unmerged work in them is kept")
                .takes::<CollectWorkspaces>()
                .answers::<WorkspaceList>(),
            collect_workspaces,
        )
        .add(
            post("/v1/workspaces/end", "End a living session without a task")
                .takes::<EndStray>()
                .answers::<WorkspaceList>(),
            end_stray,
        )
        .add(
            post("/v1/workspaces/adopt", "Attach a living session without a task to a new task")
                .takes::<AdoptStray>()
                .answers::<TaskAnswer>(),
            adopt_stray,
        )
        .add(
            post("/v1/workspaces/restore", "Restore work that was put aside").takes::<Restore>().answers::<Restored>(),
            restore_work,
        )
}

async fn list_projects((State(app), caller): ProjectsCall) -> Response {
    ask(app, caller, |service, _| Ok(ProjectList { projects: service.home().projects.list() })).await
}

async fn add_project((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: NewProject = said(&body)?;
        Ok(ProjectAnswer { project: service.add_project(who, wanted.into())? })
    })
    .await
}

/// A projects.json: a list of projects, or a document that has one.
struct Import;

impl JsonSchema for Import {
    fn schema_name() -> Cow<'static, str> {
        "Import".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<ImportedProject>>();
        json_schema!({
            "description": "A projects.json: a list of projects, or a document that has one.",
            "anyOf": [list, { "type": "object", "properties": { "projects": list }, "required": ["projects"] }],
        })
    }
}

async fn import_projects((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| Ok(ProjectList { projects: service.import_projects(who, &document(&body)?)? }))
        .await
}

async fn update_project((State(app), caller): ProjectsCall, Path(name): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        Ok(ProjectAnswer { project: service.update_project(who, &name, said(&body)?)? })
    })
    .await
}

async fn remove_project((State(app), caller): ProjectsCall, Path(name): Path<String>) -> Response {
    ask(app, caller, move |service, who| Ok(ProjectAnswer { project: service.remove_project(who, &name)? })).await
}

/// The project whose worktrees are wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectQuery {
    /// Only those of this project.
    project: Option<String>,
}

async fn workspaces((State(app), caller): ProjectsCall, Query(filters): Query<ProjectQuery>) -> Response {
    ask(app, caller, move |service, _| service.workspaces(filters.project.as_deref())).await
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

/// Which worktrees are looked at.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct CollectWorkspaces {
    /// The name of the project; all projects unless given.
    project: Option<String>,
    /// Taken for the sake of older clients, and not used.
    cwd: Option<String>,
}

async fn init_workspaces((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let WhichProject { project, cwd } = said(&body)?;
        service.init_workspaces(who, project.as_deref(), cwd.as_deref())
    })
    .await
}

async fn collect_workspaces((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let CollectWorkspaces { project, cwd: _ } = said(&body)?;
        service.collect_workspaces(who, project.as_deref())
    })
    .await
}

async fn end_stray((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let EndStray { session } = said(&body)?;
        service.end_stray(who, &session)
    })
    .await
}

async fn adopt_stray((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: AdoptStray = said(&body)?;
        service.adopt_stray(who, &wanted)
    })
    .await
}

/// Work that is back.
#[derive(Serialize, JsonSchema)]
struct Restored {
    /// The folder it is in.
    path: PathBuf,
}

async fn restore_work((State(app), caller): ProjectsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: Restore = said(&body)?;
        Ok(Restored { path: service.restore_work(who, &wanted)? })
    })
    .await
}
