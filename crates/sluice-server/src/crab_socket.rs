//! The connection that a crab listens on: what is assigned goes out, signs of life and reports come in.
//!
//! Every message has the same envelope. One that cannot be understood is answered with an `error`, and fails nothing.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::response::Response;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sluice_api::Problem;
use sluice_api::control::AttemptAnswer;
use sluice_api::work::WorkerReply;
use sluice_home::ask::{Requester, Service};
use sluice_home::roster::MessageSubject;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::answer::refuse;
use crate::caller::RequestCaller;
use crate::door::EnginePresence;
use crate::limits::SocketPace;
use crate::run::App;

/// Bytes of one message.
const LONGEST_MESSAGE: usize = 8 << 20;
/// Closed because this connection is not the one that its crab listens on any more.
const NOT_THE_ONE: CloseCode = 4000;

pub(crate) async fn listen(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(crab): Path<String>,
    present: Option<Extension<EnginePresence>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    app.touch();
    let Some(place) = app.crab_place(&caller) else {
        return refuse(
            &Problem::unavailable("too many listen already, with this token or in all").hint("try again later"),
        );
    };
    // Its other end is dropped when the crab listens elsewhere, or is given up.
    let (letters, messages) = unbounded_channel();
    let (asked, id, shown) = (app.clone(), crab.clone(), caller.clone());
    let connected = tokio::task::spawn_blocking(move || {
        let who = caller.who(&asked.service)?;
        let post = Box::new(move |message| drop(letters.send(message)));
        asked.service.connect_worker(&who, &id, post).map(|connection| (who, connection))
    });
    match connected.await {
        Ok(Ok((who, connection))) => {
            let upgrade = upgrade.max_message_size(LONGEST_MESSAGE);
            upgrade.on_upgrade(move |mut socket| async move {
                let goodbye = serve(&app, &who, &shown, &crab, &mut socket, messages).await;
                close(&mut socket, goodbye).await;
                drop((place, present));
                let _ = tokio::task::spawn_blocking(move || app.service.disconnect_worker(&crab, connection)).await;
            })
        }
        Ok(Err(problem)) => refuse(&problem),
        Err(_) => refuse(&Problem::fault("something of Sluice's own broke; see the log")),
    }
}

/// Why a connection is closed; none when the other end has closed it.
pub(crate) type SocketGoodbye = Option<(CloseCode, &'static str)>;

/// The engine ends.
pub(crate) const ENDS: SocketGoodbye = Some((close_code::AWAY, "the engine ends"));

/// Whoever listens is not let in any more.
pub(crate) const NOT_LET_IN: SocketGoodbye =
    Some((close_code::POLICY, "the token of this connection has been revoked"));

/// Says goodbye, with the reason.
pub(crate) async fn close(socket: &mut WebSocket, goodbye: SocketGoodbye) {
    if let Some((code, reason)) = goodbye {
        // Whoever has gone already need not hear it.
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    }
}

async fn serve(
    app: &Arc<App>,
    who: &Requester,
    caller: &RequestCaller,
    crab: &str,
    socket: &mut WebSocket,
    mut messages: UnboundedReceiver<Value>,
) -> SocketGoodbye {
    let mut revoked = app.revoked();
    let mut pace = SocketPace::new(Instant::now());
    loop {
        let message = tokio::select! {
            message = messages.recv() => match message {
                Some(message) => Some(message),
                None => return Some((NOT_THE_ONE, "this crab listens elsewhere, or is gone")),
            },
            () = pace.until_heard_again(), if pace.quiet_until.is_some() => None,
            heard = socket.next(), if pace.quiet_until.is_none() => match heard {
                Some(Ok(Message::Text(text))) => {
                    pace.heard(text.len(), Instant::now());
                    let (app, who, crab) = (app.clone(), who.clone(), crab.to_owned());
                    let heard = move || {
                        app.touch();
                        hear(&app.service, &who, &crab, &text)
                    };
                    tokio::task::spawn_blocking(heard).await.ok().flatten()
                }
                Some(Ok(Message::Ping(bytes) | Message::Pong(bytes) | Message::Binary(bytes))) => {
                    pace.heard(bytes.len(), Instant::now());
                    let (app, crab) = (app.clone(), crab.to_owned());
                    let _ = tokio::task::spawn_blocking(move || app.service.heard_worker(&crab)).await;
                    None
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            },
            _ = revoked.changed() => match app.still_lets_in(caller) {
                true => None,
                false => return NOT_LET_IN,
            },
            () = app.ends() => return ENDS,
        };
        if let Some(message) = message
            && socket.send(Message::Text(Utf8Bytes::from(message.to_string()))).await.is_err()
        {
            return None;
        }
    }
}

/// Takes what a crab says; gives what is to be said back.
fn hear(service: &Service, who: &Requester, crab: &str, text: &str) -> Option<Value> {
    let error_to = |said: &Value, problem: Problem| Some(service.reply_to_worker(said, WorkerReply::Error(problem)));
    let said: Value = match serde_json::from_str(text) {
        Ok(said) => said,
        Err(error) => return error_to(&Value::Null, Problem::bad_request(format!("not JSON: {error}"))),
    };
    if said["kind"]["type"] != "heartbeat" {
        service.heard_worker(crab);
    }
    let done = match said["kind"]["type"].as_str() {
        Some("heartbeat") => {
            // A crab need not say more than that it lives.
            let sign = serde_json::from_value(said["kind"]["payload"].clone()).unwrap_or_default();
            service.signed_worker(crab, &sign);
            return None;
        }
        Some("run_update") => about_a_run(service, who, crab, &said)
            .and_then(|it| service.update_attempt(who, &it).map(AttemptAnswer::Updated)),
        Some("run_complete") => about_a_run(service, who, crab, &said)
            .and_then(|it| service.complete_attempt(who, &it).map(AttemptAnswer::Ended)),
        Some("run_start") => payload(&said)
            .and_then(understood)
            .and_then(|it| service.start_attempt(who, &it).map(AttemptAnswer::Started)),
        Some(other) => Err(Problem::bad_request(format!("`{other}` is no message of a crab"))
            .hint("heartbeat, run_start, run_update or run_complete")),
        None => Err(Problem::bad_request("the message has no kind").hint("say {\"kind\": {\"type\": …}}")),
    };
    match done {
        Ok(answer) => Some(service.reply_to_worker(&said, WorkerReply::Ack(answer))),
        Err(problem) => error_to(&said, problem),
    }
}

/// What a message says, with the run that its envelope names unless it names one itself.
fn payload(said: &Value) -> Result<Map<String, Value>, Problem> {
    let mut payload = match &said["kind"]["payload"] {
        Value::Object(payload) => payload.clone(),
        Value::Null => Map::new(),
        _ => return Err(Problem::bad_request("the payload cannot be read: it is no object")),
    };
    if payload.get("run_id").is_none_or(Value::is_null) {
        payload.remove("run_id");
        if said["run_id"].is_string() {
            payload.insert("run_id".into(), said["run_id"].clone());
        }
    }
    Ok(payload)
}

/// What a crab says about a run, which begins with it if it has not begun.
fn about_a_run<T: DeserializeOwned>(
    service: &Service,
    who: &Requester,
    crab: &str,
    said: &Value,
) -> Result<T, Problem> {
    let mut payload = payload(said)?;
    // What cannot be understood begins nothing.
    let mut tried = payload.clone();
    tried.entry("run_id").or_insert_with(|| "?".into());
    understood::<T>(tried)?;
    let task = payload.get("task_id").and_then(Value::as_str).or_else(|| said["task_id"].as_str());
    let about = MessageSubject { run: payload.get("run_id").and_then(Value::as_str), task };
    let run = service.spoken_of(who, crab, about)?;
    payload.insert("run_id".into(), run.into());
    understood(payload)
}

fn understood<T: DeserializeOwned>(payload: Map<String, Value>) -> Result<T, Problem> {
    let unreadable = |error| Problem::bad_request(format!("the payload cannot be read: {error}"));
    serde_json::from_value(Value::Object(payload)).map_err(unreadable)
}
