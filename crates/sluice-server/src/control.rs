//! The routes of the control plane: colonies, crabs, missions, and what crabs say about their work.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{delete, get, post};
use serde_json::Value;

use crate::answer::{ask, said};
use crate::caller::Caller;
use crate::run::App;

type Asked = (State<Arc<App>>, Caller);
type Filters = Query<BTreeMap<String, String>>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/colonies", get(colonies).post(found_colony))
        .route("/v1/crabs", get(crabs))
        .route("/v1/crabs/register", post(register))
        .route("/v1/crabs/{id}", delete(unregister))
        .route("/v1/missions", get(missions).post(create_mission))
        .route("/v1/missions/{id}", get(mission).delete(cancel_mission))
        .route("/v1/tasks", get(tasks))
        .route("/v1/runs/start", post(start))
        .route("/v1/runs/update", post(update))
        .route("/v1/runs/complete", post(complete))
        .route("/v1/workflows", get(workflows))
        .route("/v1/scheduler/tick", post(tick))
        .route("/v1/status", get(status))
        .route("/v1/ws/events", get(crate::live::socket))
        .route("/v1/ws/crab/{id}", get(crate::crab_socket::listen))
}

async fn colonies((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(service.colonies())).await
}

async fn found_colony((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.found_colony(who, &said(&body)?)).await
}

async fn crabs((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(service.crabs())).await
}

async fn register((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.register_crab(who, &said(&body)?)).await
}

async fn unregister((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.unregister_crab(who, &id)).await
}

async fn missions((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| service.missions()).await
}

async fn create_mission((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.create_mission(who, &said(&body)?)).await
}

async fn mission((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.mission(&id)).await
}

async fn cancel_mission((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| {
        service.mission(&id)?;
        service.cancel_run(who, &id, String::new())?;
        service.mission(&id)
    })
    .await
}

async fn tasks((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| service.mission_tasks(filters.get("mission_id").map(String::as_str))).await
}

async fn start((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.start_attempt(who, &said(&body)?)).await
}

async fn update((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.update_attempt(who, &said(&body)?)).await
}

async fn complete((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.complete_attempt(who, &said(&body)?)).await
}

async fn workflows((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(service.mission_workflows())).await
}

async fn tick((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, who| -> Result<Value, _> { service.tick(who) }).await
}

async fn status((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| service.status()).await
}
