//! The log of everything as it happens: as server-sent events, and over a WebSocket.
//!
//! Both read the stored log at the pace of whoever follows: one who is slow is late and misses nothing, and one who was
//! away goes on after the last event they name. Who names a place that this log does not have, because a backup was
//! brought back, is told to look at everything anew (`resync`).

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_store::Cursor;

use crate::answer::refuse;
use crate::caller::Caller;
use crate::events::{Reading, Wanted};
use crate::run::App;

/// How long nothing is said before a sign of life is given.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// The header in which somebody says how far they had come.
const LAST_EVENT: &str = "last-event-id";

/// Which events somebody asks for, and where they go on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Filters {
    /// Only those whose type fits; `*` stands for anything.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Only those since a time, or since how long ago: `90s`, `5m`, `2h`, `7d`.
    since: Option<String>,
    /// Only those of what begins with this id.
    correlation: Option<String>,
    /// After the one with this number; `Last-Event-ID` says the same. With what happens from now on unless given.
    after: Option<u64>,
}

/// Somebody who follows, and what they are told first.
struct Following {
    reading: Reading,
    resync: Option<Value>,
}

/// Where somebody wants to go on: after the last event they name, or with what happens from now on.
async fn follow(app: Arc<App>, caller: Caller, headers: &HeaderMap, filters: Filters) -> Result<Following, Problem> {
    let named = headers.get(LAST_EVENT).map(|value| value.to_str().unwrap_or("?").trim().to_owned());
    let named = named.filter(|text| !text.is_empty());
    let wrong = |_| Problem::bad_request("the last event is named by its number: its `seq`, or the `id` it came with");
    let named = named.map(|text| text.parse::<u64>().map_err(wrong)).transpose()?.or(filters.after);
    let asked = app.clone();
    let end = tokio::task::spawn_blocking(move || asked.service.ground().tasks.end_of_log()).await;
    let end = end.unwrap_or_else(|_| Err(Problem::fault("the log could not be read")))?;
    let beyond = named.filter(|named| *named > end.0);
    let resync = beyond.map(|named| {
        let reason = "this log ends before the event you name: look at everything anew";
        json!({ "reason": reason, "named": named, "end": end.0 })
    });
    let after = named.filter(|named| *named <= end.0).map_or(end, Cursor);
    let Filters { kind, since, correlation, .. } = filters;
    let wanted = Wanted { kind, correlation, follow: true, ..Wanted::default() }.since(since.as_deref())?;
    Ok(Following { reading: Reading::begin(app, caller, wanted, after)?, resync })
}

impl Following {
    /// What comes next, or nothing for a while; `None` when it is over.
    async fn next(&mut self) -> Option<Vec<(Option<Cursor>, Value)>> {
        if let Some(resync) = self.resync.take() {
            return Some(vec![(None, json!({ "type": "resync", "data": resync }))]);
        }
        match tokio::time::timeout(SIGN_OF_LIFE, self.reading.next()).await {
            Ok(events) => Some(events?.into_iter().map(|(cursor, event)| (Some(cursor), event)).collect()),
            Err(_) => Some(Vec::new()),
        }
    }
}

/// `GET /events`: server-sent events.
pub(crate) async fn sent(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(filters): Query<Filters>,
) -> Response {
    let following = match follow(app, caller, &headers, filters).await {
        Ok(following) => following,
        Err(problem) => return refuse(&problem),
    };
    let greeting = Bytes::from_static(b"retry: 1000\n\n");
    let told = stream::unfold(following, |mut following| async move {
        let events = following.next().await?;
        let text: String = if events.is_empty() { ":\n\n".into() } else { events.iter().map(written).collect() };
        Some((Ok::<Bytes, std::io::Error>(text.into()), following))
    });
    let mut response = Response::new(Body::from_stream(stream::iter([Ok(greeting)]).chain(told)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// One event as it is sent.
fn written((cursor, event): &(Option<Cursor>, Value)) -> String {
    let id = cursor.map(|cursor| format!("id: {}\n", cursor.0)).unwrap_or_default();
    let kind: String = event["type"].as_str().unwrap_or("message").chars().filter(|it| !it.is_control()).collect();
    format!("{id}event: {kind}\ndata: {event}\n\n")
}

/// `GET /v1/ws/events`: one event a message.
pub(crate) async fn socket(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(filters): Query<Filters>,
    upgrade: WebSocketUpgrade,
) -> Response {
    match follow(app.clone(), caller, &headers, filters).await {
        Ok(following) => upgrade.on_upgrade(move |socket| tell(app, socket, following)),
        Err(problem) => refuse(&problem),
    }
}

async fn tell(app: Arc<App>, mut socket: WebSocket, mut following: Following) {
    loop {
        let events = tokio::select! {
            events = following.next() => events,
            heard = socket.next() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue, // it has nothing to say here
            },
            () = app.ends() => return,
        };
        let Some(events) = events else { return };
        if events.is_empty() && socket.send(Message::Ping(Bytes::new())).await.is_err() {
            return;
        }
        for (_, event) in events {
            if socket.send(Message::Text(Utf8Bytes::from(event.to_string()))).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_in_its_own_name_and_place() {
        let event = json!({ "type": "workflow.step.started", "seq": 7 });
        let text = written(&(Some(Cursor(7)), event));
        assert_eq!(
            text,
            "id: 7\nevent: workflow.step.started\ndata: {\"type\":\"workflow.step.started\",\"seq\":7}\n\n"
        );
    }
}
