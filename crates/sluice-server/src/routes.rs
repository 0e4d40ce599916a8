//! The routes: what can be asked under which path.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_api::project::{ProjectAnswer, ProjectChange, ProjectList};
use sluice_api::task::{CreateTask, MergeTask, Message, TaskAnswer, UpdateTask};
use sluice_api::workspace::Restore;
use sluice_home::service::{Service, Who};

use crate::answer::{self, ask, refuse, said};
use crate::caller::Caller;
use crate::events;
use crate::run::App;

type Asked = (State<Arc<App>>, Caller);
type Filters = Query<BTreeMap<String, String>>;

/// All routes, the same for every door. `largest` is the largest request that is read.
pub(crate) fn routes(app: Arc<App>, largest: usize) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/v1/stop", post(stop))
        .route("/v1/backup", post(backup))
        .route("/v1/events", get(events::events))
        .route("/v1/faults", get(faults))
        .route("/v1/projects", get(list_projects).post(add_project))
        .route("/v1/projects/import", post(import_projects))
        .route("/v1/projects/{name}", axum::routing::patch(update_project).delete(remove_project))
        .route("/v1/workspaces", get(workspaces))
        .route("/v1/workspaces/init", post(init_workspaces))
        .route("/v1/workspaces/gc", post(collect_workspaces))
        .route("/v1/workspaces/restore", post(restore_work))
        .route("/v1/lifecycle/tasks", get(list_tasks).post(create_task))
        .route("/v1/lifecycle/tasks/here", get(here))
        .route("/v1/lifecycle/tasks/{id}", get(show_task).patch(update_task).delete(delete_task))
        .route("/v1/lifecycle/tasks/{id}/history", get(history))
        .route("/v1/lifecycle/tasks/{id}/file", get(file))
        .route("/v1/lifecycle/tasks/{id}/attach", get(attach))
        .route("/v1/lifecycle/tasks/{id}/{verb}", post(task_verb))
        .merge(crate::runs::routes())
        .merge(crate::tokens::routes())
        .merge(crate::control::routes())
        .merge(crate::grimoires::routes())
        .merge(crate::metrics::routes())
        .fallback(nothing_here)
        .layer(axum::extract::DefaultBodyLimit::max(largest))
        .with_state(app)
}

/// Whether it answers. Who asks at the socket also hears where else it does.
async fn healthz(State(app): State<Arc<App>>, caller: Option<Caller>) -> Response {
    match caller {
        Some(Caller::Process(_)) => answer::json(StatusCode::OK, &json!({ "ok": true, "serves": app.serves() })),
        Some(Caller::Bearer(_)) | None => answer::json(StatusCode::OK, &json!({ "ok": true })),
    }
}

async fn nothing_here() -> Response {
    refuse(&Problem::not_found("there is nothing under this path"))
}

/// Answers, then ends: whoever asked knows that nothing more will be accepted.
async fn stop((State(app), caller): Asked) -> Response {
    let stopping = app.clone();
    let answer = ask(app, caller, |service, who| {
        who.must_be_person("stopping the engine")?;
        service.close()?;
        Ok(json!({ "stopped": true }))
    })
    .await;
    if answer.status().is_success() {
        stopping.stop();
    }
    answer
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupFile {
    file: PathBuf,
}

async fn backup((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let BackupFile { file } = said(&body)?;
        service.backup(who, &file)?;
        Ok(json!({ "file": file }))
    })
    .await
}

async fn faults((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| {
        let list: Vec<Value> =
            service.faults().into_iter().map(|(stream, why)| json!({ "stream": stream, "why": why })).collect();
        Ok(json!({ "faults": list }))
    })
    .await
}

async fn list_projects((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(ProjectList { projects: service.ground().projects.list() })).await
}

async fn add_project((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: ProjectChange = said(&body)?;
        Ok(ProjectAnswer { project: service.add_project(who, wanted)? })
    })
    .await
}

async fn import_projects((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let document: Value = said(&body)?;
        Ok(ProjectList { projects: service.import_projects(who, &document)? })
    })
    .await
}

async fn update_project((State(app), caller): Asked, Path(name): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        Ok(ProjectAnswer { project: service.update_project(who, &name, said(&body)?)? })
    })
    .await
}

async fn remove_project((State(app), caller): Asked, Path(name): Path<String>) -> Response {
    ask(app, caller, move |service, who| Ok(ProjectAnswer { project: service.remove_project(who, &name)? })).await
}

async fn workspaces((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| service.workspaces(filters.get("project").map(String::as_str))).await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WhichProject {
    project: Option<String>,
    cwd: Option<String>,
}

async fn init_workspaces((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let WhichProject { project, cwd } = said(&body)?;
        service.init_workspaces(who, project.as_deref(), cwd.as_deref())
    })
    .await
}

async fn collect_workspaces((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let WhichProject { project, .. } = said(&body)?;
        service.collect_workspaces(who, project.as_deref())
    })
    .await
}

async fn restore_work((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: Restore = said(&body)?;
        Ok(json!({ "path": service.restore_work(who, &wanted)? }))
    })
    .await
}

async fn list_tasks((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| {
        let filter = |name: &str| filters.get(name).map(String::as_str);
        service.list(filter("status"), filter("project"), filter("all") == Some("true"))
    })
    .await
}

async fn create_task((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: CreateTask = said(&body)?;
        service.create(who, &wanted)
    })
    .await
}

async fn here((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, who| match who {
        Who::Session { task, .. } => service.show(task),
        Who::Person | Who::Step { .. } | Who::Worker { .. } | Who::Reader { .. } => {
            service.here(filters.get("cwd").map_or("", String::as_str))
        }
    })
    .await
}

async fn show_task((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.show(&id)).await
}

async fn update_task((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: UpdateTask = said(&body)?;
        service.update(who, &id, wanted)
    })
    .await
}

async fn delete_task((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.delete(who, &id)).await
}

async fn history((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.history(&id)).await
}

async fn file((State(app), caller): Asked, Path(id): Path<String>, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| {
        let wrong = |_| Problem::bad_request("a version is a number").hint("--list shows them");
        let version = filters.get("version").map(|text| text.parse::<usize>().map_err(wrong)).transpose()?;
        service.file(&id, version)
    })
    .await
}

async fn attach((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.attach(&id)).await
}

async fn task_verb((State(app), caller): Asked, Path((id, verb)): Path<(String, String)>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| task(service, who, &id, &verb, &body)).await
}

fn task(service: &Service, who: &Who, id: &str, verb: &str, body: &Bytes) -> Result<TaskAnswer, Problem> {
    match verb {
        "spawn" => service.spawn(who, id),
        "respawn" => service.respawn(who, id),
        "cancel" => service.cancel(who, id),
        "create-pr" => service.create_pr(who, id),
        "merge" => service.merge(who, id, &said::<MergeTask>(body)?),
        "request-changes" => service.request_changes(who, id, said::<Message>(body)?.message),
        "nudge" => service.nudge(who, id, &said::<Message>(body)?.message),
        other => Err(Problem::not_found(format!("a task cannot `{other}`"))),
    }
}
