//! The routes: what can be asked under which path.

mod attention;
mod board;
pub(crate) mod document;
pub(crate) mod events;
mod log_stream;
pub(crate) mod metrics;
mod page_links;
mod projects;
mod runs;
mod subject_events;
mod tasks;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluice_api::Problem;

use crate::access;
use crate::answer::{self, Said, refuse};
use crate::app::{App, ask};
use crate::caller::RequestCaller;
use crate::facade::{coven, crabitat, vermas};
use crate::follow::LINES;
use crate::keys::{self, KeyLayer};
use crate::table::{RouteAudience, RouteOperation, RouteTable, get, post};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("home")
        .add(
            get("/healthz", "Check that the engine answers").answers::<HealthAnswer>().for_(RouteAudience::Everybody),
            healthz,
        )
        .add(get("/v1/openapi.json", "This document").answers::<Map<String, Value>>(), document::openapi)
        .add(post("/v1/stop", "Stop the engine").answers::<Stopped>(), stop)
        .ask(
            post("/v1/backup", "Copy the store to a new file of the engine's machine"),
            |service, who, said: Said<BackupFile>| {
                let BackupFile { file } = said.read()?;
                service.backup(who, &file)?;
                Ok(BackupFile { file })
            },
        )
        .add(
            get("/v1/events", "Read the event log, one event per line")
                .reads::<events::EventsQuery>()
                .answers_as(LINES),
            events::events,
        )
        .ask(
            get("/v1/faults", "List tasks and runs that stopped because the engine cannot read them"),
            |service, _, ()| {
                let fault = |(stream, why): (_, _)| Fault { stream, why };
                Ok(FaultList { faults: service.faults().into_iter().map(fault).collect() })
            },
        )
        .merge(metrics::table())
        .merge(tokens::table())
        .merge(page_links::table())
        .merge(projects::table())
        .merge(tasks::table())
        .merge(runs::table())
        .merge(attention::table())
        .merge(board::table())
        .merge(vermas::table())
        .merge(crabitat::table())
        .merge(coven::table())
}

/// All routes, the same for every door. `largest` is the largest request that is read.
pub(crate) fn routes(app: Arc<App>, largest: usize) -> Router {
    let layer = axum::extract::DefaultBodyLimit::max(largest);
    let table = table();
    let keyed = KeyLayer::new(app.clone(), table.operations(), largest);
    let operations: Arc<[RouteOperation]> = table.operations().into();
    let router = table.router().layer(from_fn_with_state(keyed, keys::keyed));
    let router = router.layer(from_fn_with_state(operations, access::right_first));
    router.fallback(nothing_here).layer(layer).with_state(app)
}

/// The answer to a health check.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
struct HealthAnswer {
    /// Always true: the engine answers.
    ok: bool,
    /// The network address that the engine also serves; only in answers at the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    serves: Option<Option<String>>,
}

/// Whether it answers. Who asks at the socket also hears where else it does.
async fn healthz(State(app): State<Arc<App>>, caller: Option<RequestCaller>) -> Response {
    match caller {
        Some(RequestCaller::Process(_)) => {
            let serves = Some(app.serves().map(str::to_owned));
            answer::json(StatusCode::OK, &HealthAnswer { ok: true, serves })
        }
        Some(RequestCaller::Bearer(_)) | None => answer::json(StatusCode::OK, &HealthAnswer { ok: true, serves: None }),
    }
}

async fn nothing_here(method: Method, uri: Uri) -> Response {
    let message = format!("there is no route {method} {}", uri.path());
    refuse(&Problem::not_found(message).hint("`/v1/openapi.json` lists the routes"))
}

/// The answer of an engine that ends.
#[derive(Serialize, JsonSchema)]
struct Stopped {
    /// Always true: the engine takes no further request.
    stopped: bool,
}

/// Answers, then ends: whoever asked knows that nothing more will be accepted.
async fn stop(State(app): State<Arc<App>>, caller: RequestCaller) -> Response {
    let stopping = app.clone();
    let answer = ask(app, caller, |service, who| {
        who.must_be_person("stopping the engine")?;
        service.close()?;
        Ok(Stopped { stopped: true })
    })
    .await;
    if answer.status().is_success() {
        stopping.stop();
    }
    answer
}

/// Where a backup is.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackupFile {
    /// The file, which must not be there yet.
    file: PathBuf,
}

/// A task or run that the engine cannot read.
#[derive(Serialize, JsonSchema)]
struct Fault {
    /// The stream (task or run).
    stream: String,
    /// Why the engine cannot read it.
    why: String,
}

/// The tasks and runs that the engine cannot read.
#[derive(Serialize, JsonSchema)]
struct FaultList {
    /// Tasks and runs that have stopped, with the reason.
    faults: Vec<Fault>,
}
