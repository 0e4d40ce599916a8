//! A connection that stays: messages come and go until one side has enough.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::header::{CONNECTION, HeaderMap, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Method, StatusCode, Upgraded};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Client, GONE, refused, run};
use crate::problem::{Problem, ProblemStatus};

/// How long nothing may come before it is asked whether somebody is there, and then before the connection is given up.
const QUIET: Duration = Duration::from_secs(20);

/// What is sent over a connection that stays.
pub struct Outgoing(UnboundedReceiver<String>);

/// A way to send over a connection that stays, and the end that the connection takes.
pub fn letters() -> (impl Fn(String) -> bool + Clone + Send + Sync, Outgoing) {
    let (sender, receiver): (UnboundedSender<String>, _) = unbounded_channel();
    (move |letter| sender.send(letter).is_ok(), Outgoing(receiver))
}

impl Client {
    /// Listens under a path until the other side ends it, or everybody who could send something is gone. `take` is given
    /// every message; `connected` is called once.
    pub fn listen(
        &self,
        path: &str,
        letters: &mut Outgoing,
        connected: impl FnOnce(),
        mut take: impl FnMut(&str) + Send,
    ) -> Result<(), Problem> {
        std::thread::scope(|scope| {
            // What is taken may take long, and must not keep the connection from being looked after.
            let (sender, messages): (_, Receiver<String>) = channel();
            scope.spawn(move || messages.iter().for_each(|message| take(&message)));
            run(self.keep_listening(path, letters, connected, |message| drop(sender.send(message))))
        })
    }

    async fn keep_listening(
        &self,
        path: &str,
        letters: &mut Outgoing,
        connected: impl FnOnce(),
        take: impl Fn(String),
    ) -> Result<(), Problem> {
        let mut socket = self.upgrade(path).await?;
        connected();
        let mut is_quiet = false;
        loop {
            let sent = tokio::select! {
                letter = letters.0.recv() => match letter {
                    Some(letter) => socket.send(Message::text(letter)).await,
                    None => return socket.close(None).await.map_err(broken),
                },
                heard = socket.next() => {
                    is_quiet = false;
                    match heard {
                        Some(Ok(Message::Text(text))) => take(text.to_string()),
                        Some(Ok(Message::Close(_))) | None => return Ok(()),
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(broken(error)),
                    }
                    Ok(())
                }
                () = tokio::time::sleep(QUIET) => {
                    if is_quiet {
                        return Err(Problem::new(ProblemStatus::Unavailable, GONE, "the engine says nothing any more"));
                    }
                    is_quiet = true;
                    socket.send(Message::Ping(Vec::new().into())).await
                }
            };
            sent.map_err(broken)?;
        }
    }

    /// A connection that HTTP has made and no longer speaks on.
    async fn upgrade(&self, path: &str) -> Result<WebSocketStream<Upgraded>, Problem> {
        let key = generate_key();
        let request = self.request(Method::GET, path)?.header(CONNECTION, "upgrade").header(UPGRADE, "websocket");
        let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
        let answer = request.send().await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let bytes = answer.bytes().await.map_err(|error| self.failed(&error))?;
            return Err(refused(status.as_u16(), &bytes));
        }
        if !accepts(answer.headers(), &key) {
            return Err(Problem::fault("the engine answered with something that is no WebSocket"));
        }
        let stream = answer.upgrade().await.map_err(|error| self.failed(&error))?;
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)
    }
}

/// Whether the answer is to the request with this key, and not one that a cache had.
fn accepts(headers: &HeaderMap, key: &str) -> bool {
    headers.get(SEC_WEBSOCKET_ACCEPT).is_some_and(|accepted| accepted == derive_accept_key(key.as_bytes()).as_str())
}

fn broken(error: Error) -> Problem {
    Problem::new(ProblemStatus::Unavailable, GONE, format!("the connection broke: {error}"))
}
