//! What happens, as hints for the page's module: the type of each event and what it is about, and nothing of what it says.
//! The module then asks for the parts of the page that this concerns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::json;
use sluice_store::Cursor;
use tokio::time::Instant;

use super::reply::{bare_problem, guarded};
use super::visitor::Visitor;
use crate::app::App;
use crate::app::feed::RenderedEvent;
use crate::follow::{EventFilter, FollowReader, FollowSource, end_of_log};

/// How long nothing is said before a sign of life is given.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long what happens is gathered into one hint.
const GATHER: Duration = Duration::from_millis(50);
/// The most different things that one hint names; beyond, it says that everything may have changed.
const MOST_NAMED: usize = 50;

#[derive(Deserialize)]
pub(super) struct HintsQuery {
    #[serde(default)]
    after: u64,
}

/// `GET /page/hints`: server-sent events.
pub(super) async fn hints(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    headers: HeaderMap,
    Query(HintsQuery { after }): Query<HintsQuery>,
) -> Response {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    let reading = match end_of_log(app.clone()).await {
        Err(problem) => Err(problem),
        Ok(end) => {
            let named = last.or(Some(after).filter(|after| *after > 0));
            // A place that this log does not have: a backup was brought back.
            let is_behind = named.is_none_or(|named| named > end.0);
            let after = if is_behind { end } else { Cursor(named.unwrap_or_default()) };
            let source = FollowSource::Everything { after, wanted: Arc::new(EventFilter::default()) };
            FollowReader::begin(app, visitor.caller(), source, true).map(|reading| (reading, is_behind, after))
        }
    };
    let (reading, is_behind, after) = match reading {
        Ok(reading) => reading,
        Err(problem) => return bare_problem(&problem),
    };
    let first = if is_behind { hint(after, &["*"]) } else { String::new() };
    let greeting = Bytes::from(format!("retry: 1000\n\n{first}"));
    let told = stream::unfold(reading, next);
    let mut response = Response::new(Body::from_stream(stream::iter([Ok(greeting)]).chain(told)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    guarded(response)
}

async fn next(mut reading: FollowReader) -> Option<(Result<Bytes, std::io::Error>, FollowReader)> {
    let bytes = match tokio::time::timeout(SIGN_OF_LIFE, reading.next()).await {
        Ok(first) => Bytes::from(gathered(first?, &mut reading).await),
        Err(_) => Bytes::from_static(b":\n\n"),
    };
    Some((Ok(bytes), reading))
}

/// Where events come from, some at a time. One who stops waiting for them has lost none.
trait EventSource {
    fn more(&mut self) -> impl Future<Output = Option<Vec<Arc<RenderedEvent>>>> + Send;
}

impl EventSource for FollowReader {
    fn more(&mut self) -> impl Future<Output = Option<Vec<Arc<RenderedEvent>>>> + Send {
        self.next()
    }
}

/// One hint for the first events and for all that come within [`GATHER`].
async fn gathered(first: Vec<Arc<RenderedEvent>>, source: &mut impl EventSource) -> String {
    let until = Instant::now() + GATHER;
    let mut told = GatheredEvents::default();
    told.add(&first);
    while let Ok(Some(events)) = tokio::time::timeout_at(until, source.more()).await {
        told.add(&events);
    }
    told.hint()
}

/// What is told of some events: how far they go, and what they are about.
#[derive(Default)]
struct GatheredEvents {
    last: Option<Cursor>,
    about: BTreeSet<String>,
}

impl GatheredEvents {
    fn add(&mut self, events: &[Arc<RenderedEvent>]) {
        self.last = events.last().map(|event| event.cursor).or(self.last);
        for event in events {
            // One more than can be named says enough.
            if self.about.len() <= MOST_NAMED && !self.about.contains(&event.correlation) {
                self.about.insert(event.correlation.clone());
            }
        }
    }

    fn hint(&self) -> String {
        let about: Vec<&str> = self.about.iter().map(String::as_str).collect();
        match self.last {
            None => String::new(),
            Some(last) if about.len() > MOST_NAMED => hint(last, &["*"]),
            Some(last) => hint(last, &about),
        }
    }
}

fn hint(cursor: Cursor, about: &[&str]) -> String {
    format!("id: {}\ndata: {}\n\n", cursor.0, json!({ "about": about }))
}

#[cfg(test)]
mod tests {
    use sluice_api::event::EventShown;

    use super::*;

    fn events(numbers: std::ops::Range<u64>) -> Vec<Arc<RenderedEvent>> {
        let event = |number: u64| EventShown {
            seq: number,
            id: format!("task/t:{number}"),
            kind: "task.created".to_owned(),
            time: String::new(),
            actor: String::new(),
            correlation_id: format!("t{number}"),
            subject: None,
            caused_by: None,
            data: json!({}),
        };
        numbers.map(|number| RenderedEvent::new(Cursor(number), event(number))).collect()
    }

    /// Batches of events, and then nothing more.
    struct SomeBatches(std::vec::IntoIter<Vec<Arc<RenderedEvent>>>);

    impl EventSource for SomeBatches {
        async fn more(&mut self) -> Option<Vec<Arc<RenderedEvent>>> {
            match self.0.next() {
                Some(events) => Some(events),
                None => std::future::pending().await,
            }
        }
    }

    fn hint_of(batches: Vec<Vec<Arc<RenderedEvent>>>) -> String {
        let mut rest = batches.into_iter();
        let first = rest.next().unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(gathered(first, &mut SomeBatches(rest)))
    }

    #[test]
    fn what_happens_at_almost_the_same_time_is_one_hint() {
        let hint = hint_of(vec![events(1..3), events(3..4), events(4..5)]);
        assert_eq!(hint, "id: 4\ndata: {\"about\":[\"t1\",\"t2\",\"t3\",\"t4\"]}\n\n");
        assert_eq!(hint_of(vec![events(1..40), events(40..60)]), "id: 59\ndata: {\"about\":[\"*\"]}\n\n");
        assert_eq!(hint_of(Vec::new()), "");
    }
}
