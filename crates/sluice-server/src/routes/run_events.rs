//! The log of one run, as lines of JSON: what there is, and with `follow` what comes.
//!
//! Whoever follows a run asks here and not for the log of everything: that would be read from its beginning.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::Problem;

use crate::answer::refuse;
use crate::app::App;
use crate::caller::RequestCaller;
use crate::follow::{FollowReader, FollowSource};

/// Which events to read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunEventsQuery {
    /// Only events after the one with this number.
    after: u64,
    /// Keep the connection open and send new events.
    follow: bool,
}

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(id): Path<String>,
    Query(RunEventsQuery { after, follow }): Query<RunEventsQuery>,
) -> Response {
    let asked = app.clone();
    let found = tokio::task::spawn_blocking(move || asked.service.home().tasks.find_run(&id)).await;
    let found = found.unwrap_or_else(|_| Err(Problem::fault("the run could not be looked up")));
    let begun = found.and_then(|seen| {
        let source = FollowSource::Run { id: seen.id, after, known: None };
        FollowReader::begin(app, caller, source, follow)
    });
    match begun {
        Ok(reading) => reading.lines(),
        Err(problem) => refuse(&problem),
    }
}
