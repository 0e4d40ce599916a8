//! The log of one run, as lines of JSON: what there is, and with `follow` what comes.
//!
//! Whoever follows a run asks here and not for the log of everything: that would be read from its beginning.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use sluice_api::Problem;

use crate::answer::refuse;
use crate::run::App;

/// How many events are read at once.
const PAGE: usize = 500;
/// Whoever follows looks by itself after this time, whatever was heard.
const BACKSTOP: Duration = Duration::from_secs(10);

/// Somebody who reads the log of a run, and how far they have come.
struct Reading {
    app: Arc<App>,
    run: String,
    after: u64,
    follow: bool,
}

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(filters): Query<BTreeMap<String, String>>,
) -> Response {
    app.touch();
    let after = match filters.get("after").map(|text| text.parse()).transpose() {
        Ok(after) => after.unwrap_or_default(),
        Err(_) => return refuse(&Problem::bad_request("`after` is the number of an event: 0, 1, 2, …")),
    };
    let follow = filters.get("follow").is_some_and(|word| word == "true");
    let lines = stream::unfold(Reading { app, run, after, follow }, |mut reading| async move {
        let lines = reading.next().await?;
        Some((Ok::<Bytes, std::io::Error>(lines.into()), reading))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
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
