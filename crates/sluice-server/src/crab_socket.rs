//! The connection that a crab listens on: what is assigned goes out, signs of life and reports come in.
//!
//! Every message has the same envelope. One that cannot be understood is answered with an `error`, and fails nothing.

use std::sync::Arc;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use futures_util::StreamExt;
use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_home::service::{Service, Who};
use tokio::sync::mpsc::{UnboundedReceiver, WeakUnboundedSender, unbounded_channel};

use crate::answer::refuse;
use crate::caller::Caller;
use crate::run::App;

/// Bytes of one message.
const LONGEST_MESSAGE: usize = 8 << 20;

pub(crate) async fn listen(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(crab): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response {
    app.touch();
    let Some(place) = app.place(&caller) else {
        return refuse(&Problem::unavailable("too many listen already").hint("try again later"));
    };
    let (sender, messages) = unbounded_channel();
    // Only the home holds on to the way there: when it lets go of it the connection ends, and the crab comes again.
    let (asked, id, own) = (app.clone(), crab.clone(), sender.downgrade());
    let connected = tokio::task::spawn_blocking(move || {
        let who = caller.who(&asked.service)?;
        let post = Box::new(move |message| drop(sender.send(message)));
        asked.service.connect_crab(&who, &id, post).map(|connection| (who, connection))
    });
    match connected.await {
        Ok(Ok((who, connection))) => {
            let upgrade = upgrade.max_message_size(LONGEST_MESSAGE);
            upgrade.on_upgrade(move |socket| async move {
                serve(&app, &who, &crab, socket, own, messages).await;
                drop(place);
                let _ = tokio::task::spawn_blocking(move || app.service.disconnect_crab(&crab, connection)).await;
            })
        }
        Ok(Err(problem)) => refuse(&problem),
        Err(_) => refuse(&Problem::fault("something of Sluice's own broke; see the log")),
    }
}

async fn serve(
    app: &Arc<App>,
    who: &Who,
    crab: &str,
    mut socket: WebSocket,
    own: WeakUnboundedSender<Value>,
    mut messages: UnboundedReceiver<Value>,
) {
    loop {
        tokio::select! {
            message = messages.recv() => {
                let Some(message) = message else { return };
                if socket.send(Message::Text(Utf8Bytes::from(message.to_string()))).await.is_err() {
                    return;
                }
            }
            heard = socket.next() => {
                let text = match heard {
                    Some(Ok(Message::Text(text))) => text,
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_))) => {
                        let (app, crab) = (app.clone(), crab.to_owned());
                        let _ = tokio::task::spawn_blocking(move || app.service.heard_crab(&crab)).await;
                        continue;
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                };
                let (app, who, crab, own) = (app.clone(), who.clone(), crab.to_owned(), own.clone());
                let _ = tokio::task::spawn_blocking(move || {
                    app.touch();
                    let answer = hear(&app.service, &who, &crab, &text);
                    if let (Some(answer), Some(way)) = (answer, own.upgrade()) {
                        let _ = way.send(answer);
                    }
                }).await;
            }
            () = app.ends() => return,
        }
    }
}

/// Takes what a crab says; gives what is to be said back.
fn hear(service: &Service, who: &Who, crab: &str, text: &str) -> Option<Value> {
    let said: Value = match serde_json::from_str(text) {
        Ok(said) => said,
        Err(error) => return Some(error_to(&Value::Null, &Problem::bad_request(format!("not JSON: {error}")))),
    };
    let mut payload = said["kind"]["payload"].clone();
    if let (Value::Object(payload), true) = (&mut payload, said["run_id"].is_string()) {
        payload.entry("run_id").or_insert_with(|| said["run_id"].clone());
    }
    let understood = |error: serde_json::Error| Problem::bad_request(format!("the payload cannot be read: {error}"));
    if said["kind"]["type"] != "heartbeat" {
        service.heard_crab(crab);
    }
    let done = match said["kind"]["type"].as_str() {
        Some("heartbeat") => {
            // A crab need not say more than that it lives.
            service.signed_crab(crab, &serde_json::from_value(payload).unwrap_or_default());
            return None;
        }
        Some("run_update") => {
            serde_json::from_value(payload).map_err(understood).and_then(|it| service.update_attempt(who, &it))
        }
        Some("run_complete") => {
            serde_json::from_value(payload).map_err(understood).and_then(|it| service.complete_attempt(who, &it))
        }
        Some("run_start") => {
            serde_json::from_value(payload).map_err(understood).and_then(|it| service.start_attempt(who, &it))
        }
        Some(other) => Err(Problem::bad_request(format!("`{other}` is no message of a crab"))
            .hint("heartbeat, run_start, run_update or run_complete")),
        None => Err(Problem::bad_request("the message has no kind").hint("say {\"kind\": {\"type\": …}}")),
    };
    Some(match done {
        Ok(answer) => json!({ "kind": { "type": "ack", "payload": answer }, "reply_to": said["message_id"] }),
        Err(problem) => error_to(&said, &problem),
    })
}

fn error_to(said: &Value, problem: &Problem) -> Value {
    json!({ "kind": { "type": "error", "payload": problem }, "reply_to": said["message_id"] })
}
