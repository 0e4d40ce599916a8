//! The routes of tasks and their lifecycles.

use axum::extract::{Path, Query};
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::attention::SignalSession;
use sluice_api::changes::RequestChanges;
use sluice_api::task::{CreateTask, Judgement, MergeTask, Message, UpdateTask};
use sluice_home::ask::{PageQuery, Requester, TaskFilter};

use crate::answer::Said;
use crate::follow::LINES;
use crate::keys::RequestKeyedId;
use crate::routes::{log_stream, subject_events};
use crate::table::{RouteAudience, RouteTable, delete, get, patch, post};

pub(crate) fn table() -> RouteTable {
    tasks_table().merge(task_table()).merge(looks_table()).merge(actions_table())
}

fn tasks_table() -> RouteTable {
    RouteTable::new("tasks")
        .ask(get("/v1/lifecycle/tasks", "List tasks, oldest first"), |service, _, Query(filters): Query<TasksQuery>| {
            let TasksQuery { status, project, all, limit, after } = filters;
            let wanted = TaskFilter { status: status.as_deref(), project: project.as_deref(), all };
            service.list(&wanted, &PageQuery { limit, after })
        })
        .ask(
            post("/v1/lifecycle/tasks", "Create a task"),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<CreateTask>)| {
                service.create(who, &chosen, &said.read()?)
            },
        )
        .ask(
            post(
                "/v1/lifecycle/signal",
                "Tell what the agent of one's own session does; hooks of agent programs ask this",
            )
            .for_(RouteAudience::Agents),
            |service, who, said: Said<SignalSession>| service.signal(who, &said.read()?),
        )
        .ask(
            get("/v1/lifecycle/tasks/here", "Find the task that works in a folder"),
            |service, who, Query(filters): Query<FolderQuery>| match who {
                Requester::Session { task, .. } => service.show(who, task.as_str()),
                Requester::Person { .. }
                | Requester::Step { .. }
                | Requester::Worker { .. }
                | Requester::Reader { .. }
                | Requester::Nobody => service.here(who, &filters.cwd),
            },
        )
}

/// A task, and what is known of it.
fn task_table() -> RouteTable {
    RouteTable::new("tasks")
        .ask(
            get("/v1/lifecycle/tasks/{id}", "Show a task"),
            |service, who, (Path(id), Query(wanted)): (Path<String>, Query<TaskQuery>)| match wanted.brief {
                true => service.show_briefly(&id),
                false => service.show(who, &id),
            },
        )
        .ask(
            patch(
                "/v1/lifecycle/tasks/{id}",
                "Move a task to another status, or change its summary, branch or pull request",
            )
            .for_(RouteAudience::Agents),
            |service, who, (Path(id), said): (Path<String>, Said<UpdateTask>)| service.update(who, &id, said.read()?),
        )
        .ask(
            delete(
                "/v1/lifecycle/tasks/{id}",
                "Delete a task: cancel it if open, and hide it from lists; its history stays",
            ),
            |service, who, Path(id): Path<String>| service.delete(who, &id),
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/history", "List the events of a task"),
            |service, _, Path(id): Path<String>| service.history(&id),
        )
        .add(
            get("/v1/lifecycle/tasks/{id}/events", "Read the events of a task, one per line")
                .reads::<subject_events::SubjectEventsQuery>()
                .answers_as(LINES),
            subject_events::of_task,
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/file", "Read TASK.md of a task, its present or an earlier version"),
            |service, _, (Path(id), Query(wanted)): (Path<String>, Query<FileVersionQuery>)| {
                service.file(&id, wanted.version)
            },
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/diff", "Show what a task has changed, committed and uncommitted"),
            |service, _, (Path(id), Query(wanted)): (Path<String>, Query<DiffQuery>)| {
                service.task_diff(&id, wanted.stat)
            },
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/log", "Read what a task's agent printed last"),
            |service, _, (Path(id), Query(wanted)): (Path<String>, Query<LogQuery>)| {
                service.task_log(&id, wanted.lines)
            },
        )
        .add(
            get(
                "/v1/lifecycle/tasks/{id}/log/stream",
                "Read what a task's agent prints, as it comes, one piece per line",
            )
            .reads::<log_stream::TaskLogQuery>()
            .answers_as(LINES),
            log_stream::of_task,
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/attach", "Show the command that attaches to a task's session")
                .for_(RouteAudience::Persons),
            |service, who, Path(id): Path<String>| service.attach(who, &id),
        )
}

/// What screens show of a task besides.
fn looks_table() -> RouteTable {
    RouteTable::new("tasks")
        .ask(
            get("/v1/lifecycle/tasks/{id}/changes", "Show what a task has changed, in files, hunks and lines"),
            |service, _, Path(id): Path<String>| service.task_changes(&id),
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/screen", "Show what stands on the terminal of a task's agent, as text"),
            |service, _, Path(id): Path<String>| service.task_screen(&id),
        )
        .ask(
            get("/v1/lifecycle/tasks/{id}/usage", "Show what the agents of a task have used up, by attempt"),
            |service, _, Path(id): Path<String>| service.task_usage(&id),
        )
}

fn actions_table() -> RouteTable {
    RouteTable::new("tasks")
        .ask(post("/v1/lifecycle/tasks/{id}/spawn", "Start a task's agent"), |service, who, Path(id): Path<String>| {
            service.spawn(who, &id)
        })
        .ask(
            post("/v1/lifecycle/tasks/{id}/respawn", "Start a task's agent again"),
            |service, who, Path(id): Path<String>| service.respawn(who, &id),
        )
        .ask(post("/v1/lifecycle/tasks/{id}/cancel", "Cancel a task"), |service, who, Path(id): Path<String>| {
            service.cancel(who, &id)
        })
        .ask(
            post("/v1/lifecycle/tasks/{id}/create-pr", "Open a pull request for a task"),
            |service, who, Path(id): Path<String>| service.create_pr(who, &id),
        )
        .ask(
            post("/v1/lifecycle/tasks/{id}/merge", "Merge a task"),
            |service, who, (Path(id), said): (Path<String>, Said<MergeTask>)| service.merge(who, &id, &said.read()?),
        )
        .ask(
            post(
                "/v1/lifecycle/tasks/{id}/approve",
                "Let a task pass: merge it where a merge leads to its end, else move it on",
            ),
            |service, who, (Path(id), said): (Path<String>, Said<Judgement>)| {
                service.approve(who, &id, said.read()?.message)
            },
        )
        .ask(
            post("/v1/lifecycle/tasks/{id}/reject", "Send a task back to its worker"),
            |service, who, (Path(id), said): (Path<String>, Said<Judgement>)| {
                service.reject(who, &id, said.read()?.message)
            },
        )
        .ask(
            post(
                "/v1/lifecycle/tasks/{id}/request-changes",
                "Send a task back with a text, with comments at lines, or with both",
            ),
            |service, who, (Path(id), said): (Path<String>, Said<RequestChanges>)| {
                service.request_changes(who, &id, &said.read()?)
            },
        )
        .ask(
            post("/v1/lifecycle/tasks/{id}/nudge", "Send a message to a task's agent"),
            |service, who, (Path(id), said): (Path<String>, Said<Message>)| {
                service.nudge(who, &id, &said.read()?.message)
            },
        )
}

/// Which tasks a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksQuery {
    /// Only tasks with this status.
    status: Option<String>,
    /// Only tasks of this project.
    project: Option<String>,
    /// Also tasks that have ended.
    #[serde(default)]
    all: bool,
    /// The most ended tasks to show; default: 1,000.
    limit: Option<usize>,
    /// Continue after this position (`next` of the previous page); open tasks are left out.
    after: Option<String>,
}

/// How much of a task is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskQuery {
    /// Without `moves` and `last_lines`, for which git and files of the task are looked at.
    #[serde(default)]
    brief: bool,
}

/// The folder in which a task is looked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FolderQuery {
    /// Its path on the engine's machine.
    #[serde(default)]
    cwd: String,
}

/// Which version of TASK.md is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileVersionQuery {
    /// Its number; without it, as it is now.
    version: Option<usize>,
}

/// How much of a difference is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffQuery {
    /// Only the files and their numbers of lines, without the patch.
    #[serde(default)]
    pub(crate) stat: bool,
}

/// How much of an agent's output is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// The most lines, from the end; default: 200.
    lines: Option<usize>,
}
