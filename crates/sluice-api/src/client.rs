//! The client: one question, one answer, over the home's unix socket.
//!
//! A connection for each question: whoever asks is a short-lived command, and a socket on the same machine costs
//! microseconds. Answers that go on (the event log) come as lines.

use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::problem::{Problem, Status};

/// Says which version of Sluice answers.
pub const VERSION_HEADER: &str = "sluice-version";

/// So many lines are read before somebody takes one.
const LINES_AHEAD: usize = 64;

/// The code of a problem that says that there is no engine, or none any more: it is not known whether it heard.
pub const GONE: &str = "engine_gone";

/// A way to an engine.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// The engine behind this socket.
    pub fn new(socket: &Path) -> Self {
        Client { socket: socket.to_owned() }
    }

    /// Asks for something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.ask(Method::GET, path, None::<&()>)
    }

    /// Asks for something to be done.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::POST, path, Some(body))
    }

    /// Asks for something to be changed.
    pub fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::PATCH, path, Some(body))
    }

    /// Asks for something to be removed.
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.ask(Method::DELETE, path, None::<&()>)
    }

    /// Asks for something to be removed, with words about it.
    pub fn delete_with<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::DELETE, path, Some(body))
    }

    /// Whether an engine answers, and which version it has.
    pub fn version(&self) -> Result<String, Problem> {
        run(async {
            let answer = self.send(Method::GET, "/healthz", Bytes::new()).await?;
            let version = answer.headers().get(VERSION_HEADER).and_then(|value| value.to_str().ok());
            Ok(version.unwrap_or_default().to_owned())
        })
    }

    /// Reads lines until there are no more, or until `take` says that it has enough. They are read on a thread of their
    /// own, so that `take` may ask for other things meanwhile.
    pub fn lines(&self, path: &str, mut take: impl FnMut(&str) -> bool) -> Result<(), Problem> {
        let connection = self.connect()?;
        let handle = connection.try_clone().map_err(|error| self.unreachable(&error))?;
        std::thread::scope(|scope| {
            let (sender, lines) = sync_channel::<String>(LINES_AHEAD);
            let reading = scope.spawn(move || run(read_lines(connection, path, &sender)));
            for line in lines {
                if !take(&line) {
                    // Whoever reads there is woken by the end of the connection.
                    let _ = handle.shutdown(Shutdown::Both);
                    return Ok(());
                }
            }
            reading.join().unwrap_or_else(|_| Err(Problem::fault("the answer could not be read")))
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Problem> {
        let body = body.map(serde_json::to_vec).transpose().map_err(|error| Problem::fault(error.to_string()))?;
        run(async {
            let answer = self.send(method, path, body.unwrap_or_default().into()).await?;
            let status = answer.status();
            let bytes = answer.into_body().collect().await.map_err(broken)?.to_bytes();
            if !status.is_success() {
                return Err(refused(status.as_u16(), &bytes));
            }
            serde_json::from_slice(&bytes)
                .map_err(|error| Problem::fault(format!("the engine's answer cannot be read: {error}")))
        })
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Problem> {
        exchange(self.connect()?, method, path, body).await
    }

    fn connect(&self) -> Result<std::os::unix::net::UnixStream, Problem> {
        std::os::unix::net::UnixStream::connect(&self.socket).map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &std::io::Error) -> Problem {
        Problem::new(Status::Unavailable, GONE, format!("no engine answers at {}: {error}", self.socket.display()))
    }
}

/// One question and its answer, whose body may still be on its way.
async fn exchange(
    connection: std::os::unix::net::UnixStream,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<Response<Incoming>, Problem> {
    let stream = connection.set_nonblocking(true).and_then(|()| UnixStream::from_std(connection));
    let stream = stream.map_err(|error| Problem::fault(format!("the connection cannot be used: {error}")))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "sluice")
        .header("content-type", "application/json")
        .body(Full::new(body))
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    sender.send_request(request).await.map_err(broken)
}

/// Hands the lines of an answer on as they come.
async fn read_lines(
    connection: std::os::unix::net::UnixStream,
    path: &str,
    lines: &SyncSender<String>,
) -> Result<(), Problem> {
    let (head, mut body) = exchange(connection, Method::GET, path, Bytes::new()).await?.into_parts();
    if !head.status.is_success() {
        let bytes = body.collect().await.map_err(broken)?.to_bytes();
        return Err(refused(head.status.as_u16(), &bytes));
    }
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if lines.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Runs one exchange on this thread.
fn run<T>(exchange: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room to wait for an answer: {error}")))?;
    runtime.block_on(exchange)
}

fn broken(error: hyper::Error) -> Problem {
    Problem::new(Status::Unavailable, GONE, format!("the engine went away before it answered: {error}"))
        .hint("ask again; what was answered before is kept")
}

/// What the engine said instead of doing it.
fn refused(status: u16, body: &[u8]) -> Problem {
    let mut problem: Problem = serde_json::from_slice(body).unwrap_or_else(|_| {
        Problem::fault(format!("the engine answered {status}: {}", String::from_utf8_lossy(body).trim()))
    });
    problem.status = Status::of(status);
    problem
}

/// A piece of a path or query, so that nothing in it is taken for anything else.
pub fn escape(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
