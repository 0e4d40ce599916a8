//! The connection that a worker listens on: what is assigned goes out, signs of life and reports come in.
//!
//! Every message has the same envelope. One that cannot be understood is answered with an `error`, and fails nothing.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::response::Response;
use futures_util::StreamExt;
use serde_json::{Map, Value};
use sluice_api::Problem;
use sluice_api::control::AttemptAnswer;
use sluice_api::work::{FromWorker, StepProgress, StepReport, WorkerReply};
use sluice_home::ask::{Requester, Service};
use sluice_home::roster::MessageSubject;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::answer::refuse;
use crate::app::App;
use crate::caller::{EnginePresence, RequestCaller};
use crate::limits::SocketPace;

/// Bytes of one message.
const LONGEST_MESSAGE: usize = 8 << 20;
/// Closed because this connection is not the one that its worker listens on any more.
const NOT_THE_ONE: CloseCode = 4000;

pub(crate) async fn listen(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(worker): Path<String>,
    present: Option<Extension<EnginePresence>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    app.touch();
    let Some(place) = app.crab_place(&caller) else {
        return refuse(
            &Problem::unavailable("too many listen already, with this token or in all").hint("try again later"),
        );
    };
    // Its other end is dropped when the worker listens elsewhere, or is given up.
    let (letters, messages) = unbounded_channel();
    let (asked, id, shown) = (app.clone(), worker.clone(), caller.clone());
    let connected = tokio::task::spawn_blocking(move || {
        let who = caller.who(&asked.service)?;
        let post = Box::new(move |message| drop(letters.send(message)));
        asked.service.connect_worker(&who, &id, post).map(|connection| (who, connection))
    });
    match connected.await {
        Ok(Ok((who, connection))) => {
            let upgrade = upgrade.max_message_size(LONGEST_MESSAGE);
            upgrade.on_upgrade(move |mut socket| async move {
                let goodbye = serve(&app, &who, &shown, &worker, &mut socket, messages).await;
                close(&mut socket, goodbye).await;
                drop((place, present));
                let _ = tokio::task::spawn_blocking(move || app.service.disconnect_worker(&worker, connection)).await;
            })
        }
        Ok(Err(problem)) => refuse(&problem),
        Err(_) => refuse(&Problem::fault("something of Sluice's own broke; see the log")),
    }
}

/// Why a connection is closed; none when the other end has closed it.
pub(crate) type SocketGoodbye = Option<(CloseCode, &'static str)>;

pub(crate) const ENDS: SocketGoodbye = Some((close_code::AWAY, "the engine ends"));

/// The worker that listens is not let in any more.
pub(crate) const NOT_LET_IN: SocketGoodbye =
    Some((close_code::POLICY, "the token of this connection has been revoked"));

pub(crate) async fn close(socket: &mut WebSocket, goodbye: SocketGoodbye) {
    if let Some((code, reason)) = goodbye {
        // A worker that has gone already need not hear it.
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    }
}

async fn serve(
    app: &Arc<App>,
    who: &Requester,
    caller: &RequestCaller,
    worker: &str,
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
                    let (app, who, worker) = (app.clone(), who.clone(), worker.to_owned());
                    let heard = move || {
                        app.touch();
                        hear(&app.service, &who, &worker, &text)
                    };
                    tokio::task::spawn_blocking(heard).await.ok().flatten()
                }
                Some(Ok(Message::Ping(bytes) | Message::Pong(bytes) | Message::Binary(bytes))) => {
                    pace.heard(bytes.len(), Instant::now());
                    let (app, worker) = (app.clone(), worker.to_owned());
                    let _ = tokio::task::spawn_blocking(move || app.service.heard_worker(&worker)).await;
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

/// Takes what a worker says; gives what is to be said back.
fn hear(service: &Service, who: &Requester, worker: &str, text: &str) -> Option<Value> {
    let error_to = |said: &Value, problem: Problem| Some(service.reply_to_worker(said, WorkerReply::Error(problem)));
    let said: Value = match serde_json::from_str(text) {
        Ok(said) => said,
        Err(error) => return error_to(&Value::Null, Problem::bad_request(format!("not JSON: {error}"))),
    };
    let message = understood(&said);
    if let Ok(FromWorker::Heartbeat(sign)) = &message {
        service.signed_worker(worker, sign);
        return None;
    }
    service.heard_worker(worker);
    // Its first word about a step that it was given begins that, if it has not begun.
    let attempt = |run: &str| {
        let of_payload = said["kind"]["payload"]["task_id"].as_str();
        let task = of_payload.or_else(|| said["task_id"].as_str());
        service.spoken_of(who, worker, MessageSubject { run: Some(run).filter(|run| !run.is_empty()), task })
    };
    let done = message.and_then(|message| match message {
        FromWorker::Heartbeat(_) => Ok(None),
        FromWorker::Started(start) => service.start_attempt(who, &start).map(AttemptAnswer::Started).map(Some),
        FromWorker::Progress(progress) => {
            let run_id = attempt(&progress.run_id)?;
            let progress = StepProgress { run_id, ..progress };
            service.update_attempt(who, &progress).map(AttemptAnswer::Updated).map(Some)
        }
        FromWorker::Finished(report) => {
            let run_id = attempt(&report.run_id)?;
            let report = StepReport { run_id, ..*report };
            service.complete_attempt(who, &report).map(AttemptAnswer::Ended).map(Some)
        }
    });
    match done {
        Ok(None) => None,
        Ok(Some(answer)) => Some(service.reply_to_worker(&said, WorkerReply::Ack(answer))),
        Err(problem) => error_to(&said, problem),
    }
}

/// What a message says. A payload that names no attempt is about the one that its envelope names, and a worker need not say
/// more than that it lives.
fn understood(said: &Value) -> Result<FromWorker, Problem> {
    let kind = match said["kind"]["type"].as_str() {
        Some("heartbeat") => {
            let sign = serde_json::from_value(said["kind"]["payload"].clone()).unwrap_or_default();
            return Ok(FromWorker::Heartbeat(sign));
        }
        Some(kind @ ("run_start" | "run_update" | "run_complete")) => kind,
        Some(other) => {
            return Err(Problem::bad_request(format!("`{other}` is no message of a crab"))
                .hint("heartbeat, run_start, run_update or run_complete"));
        }
        None => {
            return Err(Problem::bad_request("the message has no kind").hint("say {\"kind\": {\"type\": …}}"));
        }
    };
    let mut payload = match &said["kind"]["payload"] {
        Value::Object(payload) => payload.clone(),
        Value::Null => Map::new(),
        _ => return Err(Problem::bad_request("the payload cannot be read: it is no object")),
    };
    if payload.get("run_id").is_none_or(Value::is_null) {
        let named = said["run_id"].as_str().map(str::to_owned);
        // A worker that begins may leave the name to the engine.
        let named = named.or_else(|| (kind != "run_start").then(String::new));
        payload.insert("run_id".into(), named.into());
    }
    let message = Map::from_iter([("type".to_owned(), kind.into()), ("payload".to_owned(), payload.into())]);
    let unreadable = |error| Problem::bad_request(format!("the payload cannot be read: {error}"));
    serde_json::from_value(Value::Object(message)).map_err(unreadable)
}
