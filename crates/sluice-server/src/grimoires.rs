//! The routes of grimoires and the workflows made of them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sluice_api::grimoire::{GrimoireList, Workflow, WorkflowList, WorkflowStarted};
use sluice_home::service::{Intervention, StartGrimoire};

use crate::answer::{ask, said};
use crate::caller::Caller;
use crate::keys::Named;
use crate::live::Followed;
use crate::run::App;
use crate::table::{Table, delete, get, post};

type Asked = (State<Arc<App>>, Caller);

pub(crate) fn table() -> Table {
    Table::new("grimoires")
        .add(
            get("/grimoires", "The grimoires that can be started").reads::<OfProject>().answers::<GrimoireList>(),
            grimoires,
        )
        .add(get("/workflows", "Workflows, newest first").answers::<WorkflowList>(), workflows)
        .add(
            post("/workflows", "Start a grimoire")
                .takes::<StartGrimoire>()
                .answers::<WorkflowStarted>()
                .with(StatusCode::ACCEPTED)
                .creates(),
            start,
        )
        .add(get("/workflows/{id}", "One workflow").answers::<Workflow>(), workflow)
        .add(delete("/workflows/{id}", "End a workflow with everything it has started").answers::<Workflow>(), cancel)
        .add(
            post("/workflows/{id}/intervention", "Decide about a workflow that is blocked")
                .takes::<Intervention>()
                .answers::<Workflow>(),
            intervene,
        )
        .add(
            get("/events", "What happens, as server-sent events").reads::<Followed>().answers_as("text/event-stream"),
            crate::live::sent,
        )
}

/// Of which project.
#[derive(Deserialize, JsonSchema)]
struct OfProject {
    /// Its name; where the engine was started unless given.
    project: Option<String>,
}

async fn grimoires((State(app), caller): Asked, Query(of): Query<OfProject>) -> Response {
    ask(app, caller, move |service, _| Ok(json!({ "grimoires": service.grimoires(of.project.as_deref())? }))).await
}

/// It begins at once and goes on by itself: accepted, not done.
async fn start((State(app), caller): Asked, Named(chosen): Named, body: Bytes) -> Response {
    let mut answer = ask(app, caller, move |service, who| service.start_grimoire(who, &chosen, said(&body)?)).await;
    if answer.status().is_success() {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    answer
}

async fn workflows((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(json!({ "workflows": service.workflows()? }))).await
}

async fn workflow((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.workflow(&id)).await
}

async fn cancel((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.cancel_workflow(who, &id)).await
}

async fn intervene((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.intervene(who, &id, said(&body)?)).await
}
