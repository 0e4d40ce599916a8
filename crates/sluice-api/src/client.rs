//! The client: one question, one answer, over the home's unix socket or over the network.
//!
//! A connection for each question: a command lives for a short time, and a socket on the same machine costs
//! microseconds. Answers that go on (the event log) come as lines.

mod address;
mod away;
mod listen;
mod outside;
mod silence;
mod trust;

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{ACCEPTED, Problem, ProblemStatus};
use address::HttpAddress;
pub use away::EngineAbsence;
pub use listen::{Outgoing, letters};
pub use outside::Outside;
pub use silence::{SILENT, when_silent};

/// Says which version of Sluice answers.
pub const VERSION_HEADER: &str = "sluice-version";

/// Says what of the store is damaged, beside an answer that lacks it; escaped as in a path.
pub const DAMAGE_HEADER: &str = "sluice-damaged";

/// Says since when agents and scripts are paused, beside every answer; escaped as in a path.
pub const PAUSED_HEADER: &str = "sluice-paused";

/// Says beside every answer why the settings in the file do not count; escaped as in a path.
pub const CONFIG_HEADER: &str = "sluice-config";

/// Why an engine said that the settings in the file do not count, while this process asked it.
static CONFIG: Mutex<Option<String>> = Mutex::new(None);

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

/// Why the settings in the file do not count, as an engine said while this process asked it, if they do not.
pub fn config_trouble() -> Option<String> {
    CONFIG.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn note(headers: &HeaderMap) {
    for (name, noted) in [(DAMAGE_HEADER, &DAMAGE), (PAUSED_HEADER, &PAUSED), (CONFIG_HEADER, &CONFIG)] {
        if let Some(told) = headers.get(name).and_then(|value| value.to_str().ok()) {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(unescape(told));
        }
    }
}

/// How many lines the reading thread buffers ahead of `take`.
const LINES_AHEAD: usize = 64;
/// How often a caller that waits looks again when it hears nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How long until a socket with too many callers is tried again.
const CALL_AGAIN: Duration = Duration::from_millis(50);

/// The code of a problem that says that there is no engine, or none any more: it is not known whether it heard.
pub const GONE: &str = "engine_gone";

/// A way to an engine.
#[derive(Clone)]
pub struct Client {
    address: HttpAddress,
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
    pub fn new(socket: &Path) -> Result<Self, Problem> {
        Ok(Client { address: HttpAddress::socket(socket)?, token: None })
    }

    /// The engine that `SLUICE_URL` names, with the token in `SLUICE_TOKEN`; `None` when it names none. `SLUICE_CA` is
    /// a file with the certificates to trust instead of the system's.
    pub fn of_environment() -> Result<Option<Self>, Problem> {
        named().map(|url| Client::at(&url)).transpose()
    }

    /// The engine at this address, with the token in `SLUICE_TOKEN`.
    pub fn at(url: &str) -> Result<Self, Problem> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let address = HttpAddress::engine(url, set("SLUICE_CA").as_deref())?;
        let none = || {
            let message = format!("a token is needed for {url}, and SLUICE_TOKEN is not set");
            Problem::new(ProblemStatus::Unauthorized, "no_token", message)
                .hint("`sluice token create` makes one where that engine runs")
        };
        let token = set("SLUICE_TOKEN").ok_or_else(none)?;
        let unfit = |_| Problem::bad_request("SLUICE_TOKEN holds something that is no token");
        let mut token = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(unfit)?;
        token.set_sensitive(true);
        Ok(Client { address, token: Some(token) })
    }

    /// Sends a GET request, and reads the JSON answer as `T`.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.ask(Method::GET, path, None::<&()>)
    }

    /// Sends a POST request with a JSON body, and reads the JSON answer as `T`.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::POST, path, Some(body))
    }

    /// Sends a PUT request with a JSON body, and reads the JSON answer as `T`.
    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Problem> {
        self.ask(Method::PUT, path, Some(body))
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
            let answer = self.send(Method::GET, "/healthz", None).await?;
            let version = answer.headers().get(VERSION_HEADER).and_then(|value| value.to_str().ok());
            let version = version.unwrap_or_default().to_owned();
            let bytes = answer.bytes().await.map_err(|error| self.failed(&error))?;
            let said: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Ok(Health { version, serves: said["serves"].as_str().map(str::to_owned) })
        }))
    }

    /// Reads lines until there are no more, or until `take` says that it has enough or fails. They are read on a thread of
    /// their own, so that `take` may ask for other things meanwhile. Lines that are followed end only with the engine.
    pub fn lines(&self, path: &str, mut take: impl FnMut(&str) -> Result<bool, Problem>) -> Result<(), Problem> {
        self.followed(path, None, None, |line| line.map_or(Ok(true), &mut take)).map(drop)
    }

    /// The same, and `take` is given no line when none has come for `every`.
    pub fn lines_or_none(
        &self,
        path: &str,
        every: Duration,
        take: impl FnMut(Option<&str>) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        self.followed(path, None, Some(every), take).map(drop)
    }

    /// Follows an answer of lines, and looks after each of them, and every few seconds, because not everything that a caller
    /// waits for is an event; until `look` has seen enough. Whether it was in time.
    pub fn look_within(
        &self,
        path: &str,
        within: Option<Duration>,
        mut look: impl FnMut() -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        self.followed(path, within, Some(LOOK_AGAIN), |_| look())
    }

    /// Reads lines as they come, for as long as `take` wants more. It is given no line when none has come for `every`.
    fn followed(
        &self,
        path: &str,
        within: Option<Duration>,
        every: Option<Duration>,
        mut take: impl FnMut(Option<&str>) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let until = within.and_then(|within| Instant::now().checked_add(within));
        std::thread::scope(|scope| {
            let (sender, lines) = sync_channel::<String>(LINES_AHEAD);
            // When this end is dropped the thread that reads ends, whatever it waits for.
            let (_end, ended) = tokio::sync::oneshot::channel::<()>();
            let reading = scope.spawn(move || {
                run(async {
                    tokio::select! {
                        read = self.read_lines(path, &sender) => read,
                        _ = ended => Ok(()),
                    }
                })
            });
            loop {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let line = match [left, every].into_iter().flatten().min() {
                    None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(wait) => lines.recv_timeout(wait),
                };
                let is_over = until.is_some_and(|until| Instant::now() >= until);
                match line {
                    Ok(line) if take(Some(&line))? => {}
                    Ok(_) => return Ok(true),
                    Err(RecvTimeoutError::Timeout) if is_over => return Ok(false),
                    Err(RecvTimeoutError::Timeout) if take(None)? => {}
                    Err(RecvTimeoutError::Timeout) => return Ok(true),
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
            let answer = self.send(method.clone(), path, body).await?;
            let status = answer.status();
            note(answer.headers());
            let bytes = answer.bytes().await.map_err(|error| self.failed(&error))?;
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

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Problem> {
        let nameless = || Problem::not_found("there is nothing that is called `.` or `..`");
        let url = self.address.url(path).ok_or_else(nameless)?;
        let request = self.address.http.request(method, url).header(CONTENT_TYPE, "application/json");
        Ok(match &self.token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        })
    }

    /// One question and its answer, whose body may still be on its way.
    async fn send(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Response, Problem> {
        loop {
            let request = self.request(method.clone(), path)?;
            let request = body.iter().fold(request, |request, body| request.body(body.clone()));
            match request.send().await {
                // An engine that is stopped has more callers than the system keeps waiting. That must look like one that
                // does not answer, not like one that is not there.
                Err(error) if error.is_connect() && is_crowded(&error) => tokio::time::sleep(CALL_AGAIN).await,
                answer => return answer.map_err(|error| self.failed(&error)),
            }
        }
    }

    /// Why there is no answer, or only a part of it.
    fn failed(&self, error: &reqwest::Error) -> Problem {
        let why = innermost(error);
        if error.is_builder() {
            return Problem::bad_request(why);
        }
        if !error.is_connect() {
            let message = format!("the engine went away before it answered: {why}");
            return Problem::new(ProblemStatus::Unavailable, GONE, message)
                .hint("it may have been done: look with `sluice task list` or `sluice run list` before you ask again");
        }
        let message = format!("no engine answers at {}: {why}", self.address.place);
        let problem = Problem::new(ProblemStatus::Unavailable, GONE, message);
        let mut tls = causes(error).filter_map(|cause| cause.downcast_ref::<rustls::Error>());
        match tls.any(|error| matches!(error, rustls::Error::InvalidCertificate(_))) {
            true => {
                problem.hint("SLUICE_CA=FILE names the certificate to trust, or that of the authority that made it")
            }
            // Only an engine elsewhere is asked with a token; one of this machine is started by the command itself.
            false if self.token.is_some() => {
                problem.hint("start it there with `sluice serve`, or check the address (SLUICE_URL or --connect)")
            }
            false => problem,
        }
    }

    /// Hands the lines of an answer on as they come.
    async fn read_lines(&self, path: &str, lines: &SyncSender<String>) -> Result<(), Problem> {
        let answer = self.send(Method::GET, path, None);
        let mut answer = self.attend((&Method::GET, silence::ANSWER), answer).await?;
        note(answer.headers());
        let status = answer.status();
        if !status.is_success() {
            let bytes = answer.bytes().await.map_err(|error| self.failed(&error))?;
            return Err(refused(status.as_u16(), &bytes));
        }
        let mut rest = Vec::new();
        let mut next = async || answer.chunk().await.map_err(|error| self.failed(&error));
        while let Some(data) = self.attend((&Method::GET, silence::LINE), next()).await? {
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

fn run<T>(exchange: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room to wait for an answer: {error}")))?;
    let answer = runtime.block_on(exchange);
    // The runtime does not wait for a name that is still looked up.
    runtime.shutdown_background();
    answer
}

/// An error and what caused it, outermost first. What an I/O error holds counts as its cause.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| match error.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref().map(|held| held as &(dyn Error + 'static)),
        None => error.source(),
    })
}

/// What went wrong at the bottom of it, without the layers above, which name the address again.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Whether as many wait at a socket as the system lets wait.
fn is_crowded(error: &reqwest::Error) -> bool {
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    causes(error).any(|cause| cause.downcast_ref().is_some_and(is_full))
}

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

/// What [`escape`] was given.
pub fn unescape(text: &str) -> String {
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
