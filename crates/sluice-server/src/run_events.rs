//! The log of one run, as lines of JSON: what there is, and with `follow` what comes.
//!
//! Whoever follows a run asks here and not for the log of everything: that would be read from its beginning.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::Problem;

use crate::answer::refuse;
use crate::caller::Caller;
use crate::routes::LINES;
use crate::run::App;

/// How many events are read at once.
const PAGE: usize = 500;
/// Whoever follows looks by itself after this time, whatever was heard.
const BACKSTOP: Duration = Duration::from_secs(10);

/// Which events somebody wants.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filters {
    /// Only those after the one with this number.
    after: u64,
    /// Also those that come.
    follow: bool,
}

/// Somebody who reads the log of a run, and how far they have come.
struct Reading {
    app: Arc<App>,
    run: String,
    after: u64,
    follow: bool,
}

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    _: Caller,
    Path(id): Path<String>,
    Query(Filters { after, follow }): Query<Filters>,
) -> Response {
    app.touch();
    let asked = app.clone();
    let found = tokio::task::spawn_blocking(move || asked.service.ground().tasks.find_run(&id)).await;
    let run = match found.unwrap_or_else(|_| Err(Problem::fault("the run could not be looked up"))) {
        Ok(seen) => seen.id,
        Err(problem) => return refuse(&problem),
    };
    let lines = stream::unfold(Reading { app, run, after, follow }, |mut reading| async move {
        let lines = reading.next().await?;
        Some((Ok::<Bytes, std::io::Error>(lines.into()), reading))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}

impl Reading {
    /// The next lines; `None` when there are no more and nobody waits for more.
    async fn next(&mut self) -> Option<String> {
        loop {
            let (app, run, after) = (self.app.clone(), self.run.clone(), self.after);
            let most = if self.follow { BACKSTOP } else { Duration::ZERO };
            let page = tokio::task::spawn_blocking(move || {
                let news = || app.service.run_events(&run, after, PAGE).ok().filter(|page| !page.is_empty());
                app.service.ground().tasks.wait(most, news).unwrap_or_default()
            });
            let page = page.await.ok()?;
            if let Some((last, _)) = page.last() {
                self.after = *last;
                return Some(page.iter().map(|(_, event)| format!("{event}\n")).collect());
            }
            if !self.follow || self.app.is_stopping() {
                return None;
            }
        }
    }
}
