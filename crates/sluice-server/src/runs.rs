//! The routes of runs, processes and questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_api::run::{AnswerQuestion, StartRun, StepReport, StepSays};
use sluice_home::runs::SeenRun;
use sluice_home::service::{Service, Who, by_hand};
use sluice_home::view_run;

use crate::answer::{ask, said};
use crate::caller::Caller;
use crate::run::App;

type Asked = (State<Arc<App>>, Caller);
type Filters = Query<BTreeMap<String, String>>;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/recipe/runs", get(list).post(start))
        .route("/v1/recipe/runs/{id}", get(show).delete(cancel))
        .route("/v1/recipe/runs/{id}/retry", post(retry))
        .route("/v1/recipe/runs/{id}/events", get(crate::run_events::events))
        .route("/v1/recipe/runs/{id}/log", get(log))
        .route("/v1/recipe/runs/{id}/context/{step}", get(context))
        .route("/v1/step", post(step))
        .route("/v1/inbox", get(inbox).post(answer))
        .route("/v1/processes", get(processes).post(start_process))
        .route("/v1/processes/{id}", get(process).delete(cancel_process))
        .route("/v1/processes/{id}/complete", post(complete_process))
        .route("/v1/processes/{id}/steps/{step}/{verb}", post(process_step))
}

fn run(seen: &SeenRun) -> Value {
    json!({ "run": view_run::run(seen) })
}

fn one_process(seen: &SeenRun) -> Value {
    json!({ "process": view_run::process(seen) })
}

async fn start((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: StartRun = said(&body)?;
        service.start(who, &wanted).map(|seen| run(&seen))
    })
    .await
}

async fn list((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| {
        let all = filters.get("all").is_some_and(|word| word == "true");
        let runs = service.list_runs(filters.get("status").map(String::as_str), all)?;
        Ok(json!({ "runs": runs.iter().map(view_run::run).collect::<Vec<_>>() }))
    })
    .await
}

async fn show((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.run(&id).map(|seen| run(&seen))).await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reason {
    reason: Option<String>,
    summary: Option<String>,
    step: Option<String>,
    message: Option<String>,
}

async fn cancel((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Reason { reason, .. } = said(&body)?;
        service.cancel_run(who, &id, reason.unwrap_or_default()).map(|seen| run(&seen))
    })
    .await
}

async fn retry((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Reason { step, message, .. } = said(&body)?;
        service.retry_run(who, &id, step.as_deref(), message).map(|seen| run(&seen))
    })
    .await
}

async fn log((State(app), caller): Asked, Path(id): Path<String>, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| {
        Ok(json!({ "log": service.run_log(&id, filters.get("step").map(String::as_str))? }))
    })
    .await
}

async fn context((State(app), caller): Asked, Path((id, step)): Path<(String, String)>) -> Response {
    ask(app, caller, move |service, _| Ok(json!({ "context": service.run_context(&id, &step)? }))).await
}

async fn step((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let words: StepSays = said(&body)?;
        service.step_says(who, words)
    })
    .await
}

async fn inbox((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, _| Ok(json!({ "questions": service.inbox()? }))).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    id: String,
    option: String,
    #[serde(default)]
    message: Option<String>,
}

async fn answer((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Answered { id, option, message } = said(&body)?;
        service.answer(who, &id, AnswerQuestion { option, message }).map(|seen| run(&seen))
    })
    .await
}

async fn processes((State(app), caller): Asked, Query(filters): Filters) -> Response {
    ask(app, caller, move |service, _| {
        let all = filters.get("all").is_some_and(|word| word == "true");
        let runs = service.list_processes(all)?;
        Ok(json!({ "processes": runs.iter().map(view_run::process).collect::<Vec<_>>() }))
    })
    .await
}

async fn start_process((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let mut wanted: StartRun = said(&body)?;
        wanted.by_hand = true;
        service.start(who, &wanted).map(|seen| one_process(&seen))
    })
    .await
}

async fn process((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.process(&id).map(|seen| one_process(&seen))).await
}

async fn cancel_process((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Reason { reason, .. } = said(&body)?;
        let seen = service.process(&id)?;
        service.cancel_run(who, &seen.id, reason.unwrap_or_default()).map(|seen| one_process(&seen))
    })
    .await
}

async fn complete_process((State(app), caller): Asked, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Reason { summary, .. } = said(&body)?;
        let seen = service.process(&id)?;
        service.close_run(who, &seen.id, summary.unwrap_or_default()).map(|seen| one_process(&seen))
    })
    .await
}

async fn process_step(
    (State(app), caller): Asked,
    Path((id, step, verb)): Path<(String, String, String)>,
    body: Bytes,
) -> Response {
    ask(app, caller, move |service, who| report(service, who, &id, &step, &verb, &body)).await
}

fn report(service: &Service, who: &Who, id: &str, step: &str, verb: &str, body: &Bytes) -> Result<Value, Problem> {
    let StepReport { summary, result } = said(body)?;
    let seen = service.process(id)?;
    let what = by_hand(verb, summary, result)
        .ok_or_else(|| Problem::not_found(format!("a step cannot `{verb}`")).hint("start, complete, fail or skip"))?;
    service.by_hand(who, &seen.id, step, what).map(|seen| one_process(&seen))
}
