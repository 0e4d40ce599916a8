//! The log of everything as it happens: as server-sent events, and over a WebSocket.
//!
//! Both read the stored log at the pace of whoever follows: one who is slow is late and misses nothing, and one who was
//! away goes on after the last event they name. Who names a place that this log does not have, because a backup was
//! brought back, is told to look at everything anew (`resync`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Extension;
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
use tokio::time::Instant;

use crate::answer::refuse;
use crate::app::App;
use crate::app::feed::{RenderedEvent, sent as sent_as};
use crate::caller::{EnginePresence, RequestCaller};
use crate::follow::glob::{Glob, LONGEST_PATTERN};
use crate::follow::worker_socket::{ENDS, NOT_LET_IN, SocketGoodbye, close};
use crate::follow::{EventFilter, FollowReader, FollowSource, end_of_log};
use crate::limits::SocketPace;

/// How long nothing is said before a sign of life is given.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// What happens within this time after somebody was told something is told together: many who follow a busy log would cost
/// more than all the work in it. It is a little longer for some than for others, or all would be told in the same moment.
const GATHER: Duration = Duration::from_millis(25);
/// So many different times there are, a millisecond apart.
const TIMES: u64 = 25;
/// Bytes of one message of a client that follows: there is nothing to say.
const LONGEST_UNHEARD: usize = 4096;
const LAST_EVENT: &str = "last-event-id";

/// Which events a follower wants, and from where on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FollowQuery {
    /// Only events whose type matches this pattern; `*` stands for anything.
    #[serde(rename = "type")]
    #[schemars(length(max = LONGEST_PATTERN))]
    kind: Option<String>,
    /// Only events of tasks and runs whose id begins with this.
    correlation: Option<String>,
    /// Only events after the one of this number, given here or as `Last-Event-ID`; default: only new events.
    after: Option<u64>,
}

/// A client that follows, and what it is told first.
struct LiveFollower {
    reading: FollowReader,
    resync: Option<Value>,
    /// When they may be told more, and how long after that again.
    again: Instant,
    gather: Duration,
}

/// Where somebody wants to go on: after the last event they name, or with what happens from now on.
async fn follow(
    app: Arc<App>,
    caller: RequestCaller,
    headers: &HeaderMap,
    wanted: FollowQuery,
) -> Result<LiveFollower, Problem> {
    let named = headers.get(LAST_EVENT).map(|value| value.to_str().unwrap_or("?").trim().to_owned());
    let named = named.filter(|text| !text.is_empty());
    let wrong = |_| Problem::bad_request("the last event is named by its number: its `seq`, or the `id` it came with");
    let named = named.map(|text| text.parse::<u64>().map_err(wrong)).transpose()?.or(wanted.after);
    let end = end_of_log(app.clone()).await?;
    let beyond = named.filter(|named| *named > end.0);
    let resync = beyond.map(|named| {
        let reason = "this log ends before the event you name: look at everything anew";
        json!({ "type": "resync", "data": { "reason": reason, "named": named, "end": end.0 } })
    });
    let after = named.filter(|named| *named <= end.0).map_or(end, Cursor);
    let FollowQuery { kind, correlation, .. } = wanted;
    let kind = kind.as_deref().map(Glob::read).transpose()?;
    let wanted = Arc::new(EventFilter { kind, correlation, since: None });
    let reading = FollowReader::begin(app, caller, FollowSource::Everything { after, wanted }, true)?;
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let gather = GATHER + Duration::from_millis(COUNT.fetch_add(1, Ordering::Relaxed) % TIMES);
    Ok(LiveFollower { reading, resync, again: Instant::now(), gather })
}

impl LiveFollower {
    /// What comes next, or nothing for a while; `None` when it is over.
    async fn next(&mut self) -> Option<Vec<Arc<RenderedEvent>>> {
        tokio::time::sleep_until(self.again).await;
        let events = match tokio::time::timeout(SIGN_OF_LIFE, self.reading.next()).await {
            Ok(events) => events?,
            Err(_) => Vec::new(),
        };
        self.again = Instant::now() + self.gather;
        Some(events)
    }
}

/// `GET /events`: server-sent events.
pub(crate) async fn sent(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    headers: HeaderMap,
    Query(wanted): Query<FollowQuery>,
) -> Response {
    let following = match follow(app, caller, &headers, wanted).await {
        Ok(following) => following,
        Err(problem) => return refuse(&problem),
    };
    let first = following.resync.as_ref().map(|event| sent_as(None, "resync", &event.to_string())).unwrap_or_default();
    let greeting = Bytes::from(format!("retry: 1000\n\n{first}"));
    let told = stream::unfold(following, |mut following| async move {
        let events = following.next().await?;
        let bytes = match events.as_slice() {
            [] => Bytes::from_static(b":\n\n"),
            [one] => one.sent.clone(),
            several => several.iter().flat_map(|told| told.sent.iter().copied()).collect::<Vec<u8>>().into(),
        };
        Some((Ok::<Bytes, std::io::Error>(bytes), following))
    });
    let mut response = Response::new(Body::from_stream(stream::iter([Ok(greeting)]).chain(told)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /v1/ws/events`: one event a message.
pub(crate) async fn socket(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    headers: HeaderMap,
    Query(wanted): Query<FollowQuery>,
    present: Option<Extension<EnginePresence>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    match follow(app.clone(), caller, &headers, wanted).await {
        Ok(following) => upgrade.max_message_size(LONGEST_UNHEARD).on_upgrade(move |mut socket| async move {
            let goodbye = tell(&app, &mut socket, following).await;
            close(&mut socket, goodbye).await;
            drop(present);
        }),
        Err(problem) => refuse(&problem),
    }
}

async fn tell(app: &App, socket: &mut WebSocket, mut following: LiveFollower) -> SocketGoodbye {
    if let Some(resync) = following.resync.take()
        && socket.send(Message::Text(Utf8Bytes::from(resync.to_string()))).await.is_err()
    {
        return None;
    }
    let mut pace = SocketPace::new(std::time::Instant::now());
    loop {
        let events = tokio::select! {
            events = following.next() => events,
            () = pace.until_heard_again(), if pace.quiet_until.is_some() => continue,
            heard = socket.next(), if pace.quiet_until.is_none() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                // It has nothing to say here.
                Some(Ok(Message::Text(text))) => {
                    pace.heard(text.len(), std::time::Instant::now());
                    continue;
                }
                Some(Ok(Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes))) => {
                    pace.heard(bytes.len(), std::time::Instant::now());
                    continue;
                }
            },
            () = app.ends() => return ENDS,
        };
        let Some(events) = events else {
            return if app.is_stopping() { ENDS } else { NOT_LET_IN };
        };
        if events.is_empty() && socket.send(Message::Ping(Bytes::new())).await.is_err() {
            return None;
        }
        for told in events {
            let Ok(text) = Utf8Bytes::try_from(told.line.clone()) else { continue };
            if socket.send(Message::Text(text)).await.is_err() {
                return None;
            }
        }
    }
}
