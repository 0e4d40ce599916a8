//! The client: one question, one answer, over the home's unix socket or over the network.
//!
//! A connection for each question: whoever asks is a short-lived command, and a socket on the same machine costs
//! microseconds. Answers that go on (the event log) come as lines.

mod listen;
mod outside;
mod silence;
mod trust;
mod way;

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{ACCEPTED, Problem, ProblemStatus};
pub use listen::{Letters, letters};
pub use outside::Outside;
pub use silence::{SILENT, when_silent};
use way::{Connection, Network, Way};

/// Says which version of Sluice answers.
pub const VERSION_HEADER: &str = "sluice-version";

/// Says what of the store is damaged, beside an answer that lacks it; escaped as in a path.
pub const DAMAGE_HEADER: &str = "sluice-damaged";

/// Says since when agents and scripts are paused, beside every answer; escaped as in a path.
pub const PAUSED_HEADER: &str = "sluice-paused";

/// What an engine said to be paused while this process asked it.
static PAUSED: Mutex<Option<String>> = Mutex::new(None);

/// What an engine said to be damaged while this process asked it.
static DAMAGE: Mutex<Option<String>> = Mutex::new(None);

/// What an engine said to be damaged while this process asked it, if anything.
pub fn damage() -> Option<String> {
    DAMAGE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Since when agents are paused, as an engine said while this process asked it, if they are.
pub fn paused() -> Option<String> {
    PAUSED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn note(headers: &HeaderMap) {
    for (name, noted) in [(DAMAGE_HEADER, &DAMAGE), (PAUSED_HEADER, &PAUSED)] {
        if let Some(told) = headers.get(name).and_then(|value| value.to_str().ok()) {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(unescape(told));
        }
    }
}

/// How many lines the reading thread buffers ahead of `take`.
const LINES_AHEAD: usize = 64;

/// The code of a problem that says that there is no engine, or none any more: it is not known whether it heard.
pub const GONE: &str = "engine_gone";

/// A way to an engine.
#[derive(Clone)]
pub struct Client {
    way: Way,
    /// What is shown to be let in. It is never printed.
    token: Option<HeaderValue>,
}

/// How an engine is, as it says itself.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The version of Sluice that the engine runs; empty when it does not send the header `sluice-version`.
    pub version: String,
    /// Where it listens over the network, if it does and may say so.
    pub serves: Option<String>,
}

/// The address of the engine that `SLUICE_URL` names.
pub fn named() -> Option<String> {
    std::env::var("SLUICE_URL").ok().filter(|value| !value.is_empty())
}

impl Client {
    /// The engine behind this socket.
    pub fn new(socket: &Path) -> Self {
        Client { way: Way::Socket(socket.to_owned()), token: None }
    }

    /// The engine that `SLUICE_URL` names, with the token in `SLUICE_TOKEN`; `None` when it names none. `SLUICE_CA` is
    /// a file with the certificates to trust instead of the system's.
    pub fn of_environment() -> Result<Option<Self>, Problem> {
        named().map(|url| Client::at(&url)).transpose()
    }

    /// The engine at this address, with the token in `SLUICE_TOKEN`.
    pub fn at(url: &str) -> Result<Self, Problem> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let way = Way::Network(Network::new(url, set("SLUICE_CA").as_deref())?);
        let none = || {
            let message = format!("a token is needed for {url}, and SLUICE_TOKEN is not set");
            Problem::new(ProblemStatus::Unauthorized, "no_token", message)
                .hint("whoever runs that engine makes one with `sluice token create`")
        };
        let token = set("SLUICE_TOKEN").ok_or_else(none)?;
        let unfit = |_| Problem::bad_request("SLUICE_TOKEN holds something that is no token");
        let mut token = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(unfit)?;
        token.set_sensitive(true);
        Ok(Client { way, token: Some(token) })
    }

    /// Sends a GET request, and reads the JSON answer as `T`.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.ask(Method::GET, path, None::<&()>)
    }

    /// Sends a POST request with a JSON body, and reads the JSON answer as `T`.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::POST, path, Some(body))
    }

    /// Sends a PATCH request with a JSON body, and reads the JSON answer as `T`.
    pub fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::PATCH, path, Some(body))
    }

    /// Sends a DELETE request, and reads the JSON answer as `T`.
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.ask(Method::DELETE, path, None::<&()>)
    }

    /// Sends a DELETE request with a JSON body, and reads the JSON answer as `T`.
    pub fn delete_with<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::DELETE, path, Some(body))
    }

    /// Whether an engine answers, and how it is.
    pub fn health(&self) -> Result<Health, Problem> {
        run(self.attend((&Method::GET, silence::ANSWER), async {
            let answer = self.send(Method::GET, "/healthz", Bytes::new()).await?;
            let version = answer.headers().get(VERSION_HEADER).and_then(|value| value.to_str().ok());
            let version = version.unwrap_or_default().to_owned();
            let bytes = answer.into_body().collect().await.map_err(broken)?.to_bytes();
            let said: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Ok(Health { version, serves: said["serves"].as_str().map(str::to_owned) })
        }))
    }

    /// Reads lines until there are no more, or until `take` says that it has enough. They are read on a thread of their
    /// own, so that `take` may ask for other things meanwhile. Lines that are followed end only with the engine.
    pub fn lines(&self, path: &str, take: impl FnMut(&str) -> bool) -> Result<(), Problem> {
        self.lines_within(path, None, take).map(drop)
    }

    /// The same for at most so long; whether that was enough.
    pub fn lines_within(
        &self,
        path: &str,
        within: Option<Duration>,
        mut take: impl FnMut(&str) -> bool,
    ) -> Result<bool, Problem> {
        let until = within.and_then(|within| Instant::now().checked_add(within));
        let connection = run(self.attend((&Method::GET, silence::ANSWER), self.reach()))?;
        let end = connection.handle().map_err(|error| self.unreachable(&error))?;
        std::thread::scope(|scope| {
            let (sender, lines) = sync_channel::<String>(LINES_AHEAD);
            let reading = scope.spawn(move || run(self.read_lines(connection, path, &sender)));
            loop {
                let line = match until {
                    None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(until) => lines.recv_timeout(until.saturating_duration_since(Instant::now())),
                };
                let in_time = line != Err(RecvTimeoutError::Timeout);
                match line {
                    Ok(line) if take(&line) => {}
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {
                        // The end of the connection wakes the thread that reads.
                        end();
                        return Ok(in_time);
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            reading.join().unwrap_or_else(|_| Err(Problem::fault("the answer could not be read")))?;
            match path.contains("follow=true") {
                false => Ok(true),
                true => Err(Problem::new(ProblemStatus::Unavailable, GONE, "the engine has ended")
                    .hint("the next command starts another; ask again")),
            }
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Problem> {
        let body = body.map(serde_json::to_vec).transpose().map_err(|error| Problem::fault(error.to_string()))?;
        run(self.attend((&method, silence::ANSWER), async {
            let answer = self.send(method.clone(), path, body.unwrap_or_default().into()).await?;
            let status = answer.status();
            note(answer.headers());
            let bytes = answer.into_body().collect().await.map_err(broken)?.to_bytes();
            if !status.is_success() {
                return Err(refused(status.as_u16(), &bytes));
            }
            if status == StatusCode::ACCEPTED
                && let Ok(problem) = serde_json::from_slice::<Problem>(&bytes)
                && problem.code == ACCEPTED
            {
                return Err(Problem { status: ProblemStatus::Accepted, ..problem });
            }
            serde_json::from_slice(&bytes)
                .map_err(|error| Problem::fault(format!("the engine's answer cannot be read: {error}")))
        }))
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Problem> {
        self.exchange(self.reach().await?, method, path, body).await
    }

    /// Connects. An engine that is stopped may not even take the call, and that must not keep anybody from noticing.
    async fn reach(&self) -> Result<Connection, Problem> {
        let (sender, connected) = tokio::sync::oneshot::channel();
        let way = self.way.clone();
        std::thread::spawn(move || drop(sender.send(way.connect())));
        let connection = connected.await.unwrap_or_else(|_| Err(std::io::ErrorKind::NotConnected.into()));
        connection.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &std::io::Error) -> Problem {
        let message = format!("no engine answers at {}: {error}", self.way.place());
        let problem = Problem::new(ProblemStatus::Unavailable, GONE, message);
        let is_certificate = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
        match is_certificate {
            Some(rustls::Error::InvalidCertificate(_)) => {
                problem.hint("SLUICE_CA=FILE names the certificate to trust, or that of the authority that made it")
            }
            _ => problem,
        }
    }

    /// One question and its answer, whose body may still be on its way.
    async fn exchange(
        &self,
        connection: Connection,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Problem> {
        let stream = connection.open().await.map_err(|error| self.unreachable(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.way.host())
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| Problem::bad_request(error.to_string()))?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        sender.send_request(request).await.map_err(broken)
    }

    /// Hands the lines of an answer on as they come.
    async fn read_lines(&self, connection: Connection, path: &str, lines: &SyncSender<String>) -> Result<(), Problem> {
        let answer = self.exchange(connection, Method::GET, path, Bytes::new());
        let (head, mut body) = self.attend((&Method::GET, silence::ANSWER), answer).await?.into_parts();
        note(&head.headers);
        if !head.status.is_success() {
            let bytes = body.collect().await.map_err(broken)?.to_bytes();
            return Err(refused(head.status.as_u16(), &bytes));
        }
        let mut rest = Vec::new();
        let mut next = async || body.frame().await.transpose().map_err(broken);
        while let Some(frame) = self.attend((&Method::GET, silence::LINE), next()).await? {
            let Ok(data) = frame.into_data() else { continue };
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
}

/// Runs one exchange on this thread.
fn run<T>(exchange: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room to wait for an answer: {error}")))?;
    runtime.block_on(exchange)
}

fn broken(error: hyper::Error) -> Problem {
    Problem::new(ProblemStatus::Unavailable, GONE, format!("the engine went away before it answered: {error}"))
        .hint("it may have been done: look with `sluice task list` or `sluice run list` before you ask again")
}

/// What the engine said instead of doing it.
fn refused(status: u16, body: &[u8]) -> Problem {
    let mut problem: Problem = serde_json::from_slice(body).unwrap_or_else(|_| {
        Problem::fault(format!("the engine answered {status}: {}", String::from_utf8_lossy(body).trim()))
    });
    problem.status = ProblemStatus::of(status);
    problem
}

/// A piece of a path or query, so that nothing in it is taken for anything else.
pub fn escape(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// What was escaped, as it was.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let coded = after.get(..2).filter(|_| *first == b'%').and_then(|it| std::str::from_utf8(it).ok());
        match coded.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
