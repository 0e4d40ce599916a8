//! The routes of grimoires and the workflows made of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

use crate::answer::{ask, said};
use crate::caller::Caller;
use crate::run::App;

type Asked = (State<Arc<App>>, Caller);

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/grimoires", get(grimoires))
        .route("/workflows", get(workflows).post(start))
        .route("/workflows/{id}", get(workflow).delete(cancel))
        .route("/workflows/{id}/intervention", post(intervene))
        .route("/events", get(crate::live::sent))
}

async fn grimoires((State(app), caller): Asked, Query(filters): Query<BTreeMap<String, String>>) -> Response {
    ask(app, caller, move |service, _| {
        Ok(json!({ "grimoires": service.grimoires(filters.get("project").map(String::as_str))? }))
    })
    .await
}

/// It begins at once and goes on by itself: accepted, not done.
async fn start((State(app), caller): Asked, body: Bytes) -> Response {
    let mut answer = ask(app, caller, move |service, who| service.start_grimoire(who, said(&body)?)).await;
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
