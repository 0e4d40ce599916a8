//! The routes of grimoires and the workflows made of them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::grimoire::{GrimoireList, Intervention, StartGrimoire, Workflow, WorkflowList, WorkflowStarted};

use crate::answer::said;
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::follow::live::FollowQuery;
use crate::keys::RequestKeyedId;
use crate::table::{RouteTable, delete, get, post};

type WorkflowsCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    RouteTable::new("grimoires")
        .add(
            get("/grimoires", "List the grimoires that can be started")
                .reads::<WorkflowsQuery>()
                .answers::<GrimoireList>(),
            grimoires,
        )
        .add(get("/workflows", "List workflows, newest first").answers::<WorkflowList>(), workflows)
        .add(
            post("/workflows", "Start a grimoire as a workflow")
                .takes::<StartGrimoire>()
                .answers::<WorkflowStarted>()
                .with(StatusCode::ACCEPTED)
                .creates(),
            start,
        )
        .add(get("/workflows/{id}", "Show a workflow").answers::<Workflow>(), workflow)
        .add(delete("/workflows/{id}", "Cancel a workflow and everything it has started").answers::<Workflow>(), cancel)
        .add(
            post("/workflows/{id}/intervention", "Answer the question of a blocked workflow")
                .takes::<Intervention>()
                .answers::<Workflow>(),
            intervene,
        )
        .add(
            get("/events", "Stream events as server-sent events")
                .reads::<FollowQuery>()
                .answers_as("text/event-stream"),
            crate::follow::live::sent,
        )
}

/// The project whose grimoires are wanted.
#[derive(Deserialize, JsonSchema)]
struct WorkflowsQuery {
    /// Its name; where the engine was started unless given.
    project: Option<String>,
}

async fn grimoires((State(app), caller): WorkflowsCall, Query(of): Query<WorkflowsQuery>) -> Response {
    ask(app, caller, move |service, _| Ok(GrimoireList { grimoires: service.grimoires(of.project.as_deref())? })).await
}

/// It begins at once and goes on by itself: accepted, not done.
async fn start((State(app), caller): WorkflowsCall, RequestKeyedId(chosen): RequestKeyedId, body: Bytes) -> Response {
    let mut answer = ask(app, caller, move |service, who| service.start_grimoire(who, &chosen, said(&body)?)).await;
    if answer.status().is_success() {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    answer
}

async fn workflows((State(app), caller): WorkflowsCall) -> Response {
    ask(app, caller, |service, _| Ok(WorkflowList { workflows: service.workflows()? })).await
}

async fn workflow((State(app), caller): WorkflowsCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.workflow(&id)).await
}

async fn cancel((State(app), caller): WorkflowsCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.cancel_workflow(who, &id)).await
}

async fn intervene((State(app), caller): WorkflowsCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.intervene(who, &id, said(&body)?)).await
}
