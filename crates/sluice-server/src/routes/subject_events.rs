//! The log of one task or run, as lines of JSON: what there is, and with `follow` what comes.
//!
//! Whoever follows one of them asks here and not for the log of everything: that would be read from its beginning.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::Problem;
use sluice_home::ask::Service;

use crate::answer::refuse;
use crate::app::App;
use crate::caller::RequestCaller;
use crate::follow::{FollowReader, FollowSource, FollowedSubject};

/// Which events to read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SubjectEventsQuery {
    /// Only events after the one with this number.
    after: u64,
    /// Keep the connection open and send new events.
    follow: bool,
}

pub(crate) async fn of_run(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(id): Path<String>,
    Query(wanted): Query<SubjectEventsQuery>,
) -> Response {
    events(app, caller, wanted, move |service| Ok(FollowedSubject::Run(service.home().tasks.find_run(&id)?.id))).await
}

pub(crate) async fn of_task(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(id): Path<String>,
    Query(wanted): Query<SubjectEventsQuery>,
) -> Response {
    events(app, caller, wanted, move |service| Ok(FollowedSubject::Task(service.home().tasks.find(&id)?.id))).await
}

async fn events(
    app: Arc<App>,
    caller: RequestCaller,
    SubjectEventsQuery { after, follow }: SubjectEventsQuery,
    find: impl FnOnce(&Service) -> Result<FollowedSubject, Problem> + Send + 'static,
) -> Response {
    let asked = app.clone();
    let found = tokio::task::spawn_blocking(move || find(&asked.service)).await;
    let found = found.unwrap_or_else(|_| Err(Problem::fault("what is followed could not be looked up")));
    let begun = found.and_then(|of| {
        let source = FollowSource::One { of, after, known: None };
        FollowReader::begin(app, caller, source, follow)
    });
    match begun {
        Ok(reading) => reading.lines(),
        Err(problem) => refuse(&problem),
    }
}
