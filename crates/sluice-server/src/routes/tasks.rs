//! The routes of tasks and their lifecycles.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::task::{Attach, CreateTask, History, MergeTask, Message, TaskAnswer, TaskFile, TaskList, UpdateTask};
use sluice_home::ask::{PageQuery, Requester, TaskFilter};

use crate::answer::said;
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::keys::RequestKeyedId;
use crate::table::{RouteAudience, RouteTable, delete, get, patch, post};

type TasksCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    RouteTable::new("tasks")
        .add(
            get("/v1/lifecycle/tasks", "List tasks, oldest first").reads::<TasksQuery>().answers::<TaskList>(),
            list_tasks,
        )
        .add(
            post("/v1/lifecycle/tasks", "Create a task").takes::<CreateTask>().answers::<TaskAnswer>().creates(),
            create_task,
        )
        .add(
            get("/v1/lifecycle/tasks/here", "Find the task that works in a folder")
                .reads::<FolderQuery>()
                .answers::<TaskAnswer>(),
            here,
        )
        .add(get("/v1/lifecycle/tasks/{id}", "Show a task").answers::<TaskAnswer>(), show_task)
        .add(
            patch(
                "/v1/lifecycle/tasks/{id}",
                "Move a task to another status, or change its summary, branch or pull request",
            )
            .takes::<UpdateTask>()
            .answers::<TaskAnswer>()
            .for_(RouteAudience::Agents),
            update_task,
        )
        .add(
            delete(
                "/v1/lifecycle/tasks/{id}",
                "Delete a task: cancel it if open, and hide it from lists; its history stays",
            )
            .answers::<TaskAnswer>(),
            delete_task,
        )
        .add(get("/v1/lifecycle/tasks/{id}/history", "List the events of a task").answers::<History>(), history)
        .add(
            get("/v1/lifecycle/tasks/{id}/file", "Read TASK.md of a task, its present or an earlier version")
                .reads::<FileVersionQuery>()
                .answers::<TaskFile>(),
            file,
        )
        .add(
            get("/v1/lifecycle/tasks/{id}/attach", "Show the command that attaches to a task's session")
                .answers::<Attach>()
                .for_(RouteAudience::Persons),
            attach,
        )
        .add(post("/v1/lifecycle/tasks/{id}/spawn", "Start a task's agent").answers::<TaskAnswer>(), spawn)
        .add(post("/v1/lifecycle/tasks/{id}/respawn", "Start a task's agent again").answers::<TaskAnswer>(), respawn)
        .add(post("/v1/lifecycle/tasks/{id}/cancel", "Cancel a task").answers::<TaskAnswer>(), cancel)
        .add(
            post("/v1/lifecycle/tasks/{id}/create-pr", "Open a pull request for a task").answers::<TaskAnswer>(),
            create_pr,
        )
        .add(post("/v1/lifecycle/tasks/{id}/merge", "Merge a task").takes::<MergeTask>().answers::<TaskAnswer>(), merge)
        .add(
            post("/v1/lifecycle/tasks/{id}/request-changes", "Send a task back with feedback")
                .takes::<Message>()
                .answers::<TaskAnswer>(),
            request_changes,
        )
        .add(
            post("/v1/lifecycle/tasks/{id}/nudge", "Send a message to a task's agent")
                .takes::<Message>()
                .answers::<TaskAnswer>(),
            nudge,
        )
}

/// Which tasks a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksQuery {
    /// Only those with this status.
    status: Option<String>,
    /// Only those of this project.
    project: Option<String>,
    /// Also those that have ended.
    #[serde(default)]
    all: bool,
    /// At most so many of those that have ended; 1,000 unless given.
    limit: Option<usize>,
    /// Those that come after, as `next` of the list before says; without those that are open.
    after: Option<String>,
}

async fn list_tasks((State(app), caller): TasksCall, Query(filters): Query<TasksQuery>) -> Response {
    ask(app, caller, move |service, _| {
        let TasksQuery { status, project, all, limit, after } = filters;
        let wanted = TaskFilter { status: status.as_deref(), project: project.as_deref(), all };
        service.list(&wanted, &PageQuery { limit, after })
    })
    .await
}

async fn create_task((State(app), caller): TasksCall, RequestKeyedId(chosen): RequestKeyedId, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: CreateTask = said(&body)?;
        service.create(who, &chosen, &wanted)
    })
    .await
}

/// The folder in which a task is looked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FolderQuery {
    /// Its path on the engine's machine.
    #[serde(default)]
    cwd: String,
}

async fn here((State(app), caller): TasksCall, Query(filters): Query<FolderQuery>) -> Response {
    ask(app, caller, move |service, who| match who {
        Requester::Session { task, .. } => service.show(task),
        Requester::Person { .. }
        | Requester::Step { .. }
        | Requester::Worker { .. }
        | Requester::Reader { .. }
        | Requester::Nobody => service.here(&filters.cwd),
    })
    .await
}

async fn show_task((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.show(&id)).await
}

async fn update_task((State(app), caller): TasksCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: UpdateTask = said(&body)?;
        service.update(who, &id, wanted)
    })
    .await
}

async fn delete_task((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.delete(who, &id)).await
}

async fn history((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.history(&id)).await
}

/// Which version of TASK.md is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileVersionQuery {
    /// Its number; without it, as it is now.
    version: Option<usize>,
}

async fn file(
    (State(app), caller): TasksCall,
    Path(id): Path<String>,
    Query(wanted): Query<FileVersionQuery>,
) -> Response {
    ask(app, caller, move |service, _| service.file(&id, wanted.version)).await
}

async fn attach((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.attach(who, &id)).await
}

async fn spawn((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.spawn(who, &id)).await
}

async fn respawn((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.respawn(who, &id)).await
}

async fn cancel((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.cancel(who, &id)).await
}

async fn create_pr((State(app), caller): TasksCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.create_pr(who, &id)).await
}

async fn merge((State(app), caller): TasksCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.merge(who, &id, &said::<MergeTask>(&body)?)).await
}

async fn request_changes((State(app), caller): TasksCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.request_changes(who, &id, said::<Message>(&body)?.message)).await
}

async fn nudge((State(app), caller): TasksCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.nudge(who, &id, &said::<Message>(&body)?.message)).await
}
