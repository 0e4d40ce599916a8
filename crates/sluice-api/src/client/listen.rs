//! A connection that stays: messages come and go until one side has enough.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::header::AUTHORIZATION;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Client, GONE, refused, run};
use crate::problem::{Problem, ProblemStatus};

/// How long nothing may come before it is asked whether somebody is there, and then before the connection is given up.
const QUIET: Duration = Duration::from_secs(20);

/// What is sent over a connection that stays.
pub struct Letters(UnboundedReceiver<String>);

/// A way to send over a connection that stays, and the end that the connection takes.
pub fn letters() -> (impl Fn(String) -> bool + Clone + Send + Sync, Letters) {
    let (sender, receiver): (UnboundedSender<String>, _) = unbounded_channel();
    (move |letter| sender.send(letter).is_ok(), Letters(receiver))
}

impl Client {
    /// Listens under a path until the other side ends it, or everybody who could send something is gone. `take` is given
    /// every message; `connected` is called once.
    pub fn listen(
        &self,
        path: &str,
        letters: &mut Letters,
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
        letters: &mut Letters,
        connected: impl FnOnce(),
        take: impl Fn(String),
    ) -> Result<(), Problem> {
        let stream = self.reach().await?.open().await.map_err(|error| self.unreachable(&error))?;
        let unfit = |error: Error| Problem::bad_request(error.to_string());
        let mut request = format!("ws://{}{path}", self.way.host()).into_client_request().map_err(unfit)?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let (mut socket, _) = client_async(request, stream).await.map_err(not_let_in)?;
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
}

fn broken(error: Error) -> Problem {
    Problem::new(ProblemStatus::Unavailable, GONE, format!("the connection broke: {error}"))
}

/// Why the connection was refused, in the words of the engine.
fn not_let_in(error: Error) -> Problem {
    match error {
        Error::Http(response) => refused(response.status().as_u16(), response.body().as_deref().unwrap_or_default()),
        other => broken(other),
    }
}
