//! A scripted model on this machine, in place of a real one: it hears the prompt of an agent program, has it run one command
//! and says one sentence. It speaks the four ways in which the programs of the table ask their models.
//!
//! It knows nothing but its script, and answers only on loopback.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::oneshot;

mod anthropic;
mod chat;
mod google;
mod responses;

/// Bytes of a request that are read.
const LONGEST_REQUEST: usize = 64 << 20;
/// Requests that are remembered.
const MOST_REQUESTS: usize = 10_000;
/// What a text or a call costs, as the script counts it.
pub const TOKENS_IN: u64 = 1100;
pub const TOKENS_OUT: u64 = 70;

/// What the model says and does.
#[derive(Clone, Debug)]
pub struct ModelScript {
    /// The command that it has the program run.
    pub command: String,
    /// The sentence that it says when the command has run.
    pub sentence: String,
    /// Whether it says its sentence also to who has no tool for commands. Programs that have one ask for titles and the like
    /// without it.
    pub without_tools: bool,
    /// The HTTP status with which it refuses to answer, such as 401 for a wrong key; `None`: it answers.
    pub fails: Option<u16>,
}

/// What the model answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelReply {
    /// It called the tool that runs commands.
    Call,
    /// It said its sentence, to an agent that has run the command or is one without tools.
    Sentence,
    /// It answered something beside the work: a list of models, a count of tokens.
    Aside,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub at: Instant,
    pub path: String,
    pub body: String,
    pub reply: ModelReply,
}

#[derive(Debug)]
struct ModelLog {
    script: ModelScript,
    requests: Mutex<Vec<ModelRequest>>,
    heard: Condvar,
}

/// The model while it listens. It goes away with this.
#[derive(Debug)]
pub struct ScriptedModel {
    address: String,
    log: Arc<ModelLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    pub fn listen(script: ModelScript) -> io::Result<ScriptedModel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = format!("http://{}", listener.local_addr()?);
        let log = Arc::new(ModelLog { script, requests: Mutex::default(), heard: Condvar::new() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&log));
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, routes) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(ScriptedModel { address, log, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, as `http://HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.log.requests().clone()
    }

    /// Waits until a request has come that is meant, or for this long.
    pub fn wait(&self, limit: Duration, is_meant: impl Fn(&ModelRequest) -> bool) -> Option<ModelRequest> {
        let none = |requests: &mut Vec<ModelRequest>| !requests.iter().any(&is_meant);
        let waited = self.log.heard.wait_timeout_while(self.log.requests(), limit, none);
        let (requests, _) = waited.unwrap_or_else(PoisonError::into_inner);
        requests.iter().find(|request| is_meant(request)).cloned()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl ModelLog {
    fn requests(&self) -> MutexGuard<'_, Vec<ModelRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: ModelRequest) {
        let mut requests = self.requests();
        if requests.len() < MOST_REQUESTS {
            requests.push(request);
        }
        self.heard.notify_all();
    }
}

/// One answer in the words of a way to ask.
struct ModelSpeech {
    kind: &'static str,
    text: String,
    reply: ModelReply,
}

async fn answer(State(log): State<Arc<ModelLog>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let at = Instant::now();
    let bytes = to_bytes(request.into_body(), LONGEST_REQUEST).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&bytes).into_owned();
    let document: Value = serde_json::from_str(&body).unwrap_or_default();
    let speech = speech(&log.script, &path, &document);
    if let Some((status, speech)) = log.script.fails.and_then(|it| StatusCode::from_u16(it).ok()).zip(speech.as_ref()) {
        log.note(ModelRequest { at, path: path.clone(), body, reply: speech.reply });
        let built = Response::builder().status(status).header(CONTENT_TYPE, DOCUMENT);
        return built.body(Body::from(failure(&path, status).to_string())).unwrap_or_default();
    }
    let reply = speech.as_ref().map_or(ModelReply::Aside, |speech| speech.reply);
    log.note(ModelRequest { at, path, body, reply });
    let built = match speech {
        Some(speech) => Response::builder().header(CONTENT_TYPE, speech.kind).body(Body::from(speech.text)),
        None => Response::builder().status(StatusCode::NOT_FOUND).body(Body::from("{}")),
    };
    built.unwrap_or_default()
}

/// What services say with an answer that is none, each in its own words.
fn failure(path: &str, status: StatusCode) -> Value {
    let (kind, code, state) = match status.as_u16() {
        401 | 403 => ("authentication_error", "invalid_api_key", "UNAUTHENTICATED"),
        429 => ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
        _ => ("api_error", "server_error", "INTERNAL"),
    };
    let message = format!("the scripted model says {status}");
    match path.ends_with("enerateContent") {
        true => json!({ "error": { "code": status.as_u16(), "message": message, "status": state } }),
        false => json!({ "type": "error", "error": { "type": kind, "code": code, "message": message } }),
    }
}

/// What is answered at a path; nothing where nothing is.
fn speech(script: &ModelScript, path: &str, body: &Value) -> Option<ModelSpeech> {
    let aside = |document: Value| {
        Some(ModelSpeech { kind: "application/json", text: document.to_string(), reply: ModelReply::Aside })
    };
    let model = || json!({ "id": "scripted", "object": "model", "created": 0, "owned_by": "sluice" });
    match path {
        _ if path.ends_with("/count_tokens") => aside(json!({ "input_tokens": TOKENS_IN })),
        _ if path.ends_with(":countTokens") => aside(json!({ "totalTokens": TOKENS_IN })),
        _ if path.ends_with("/messages") => Some(anthropic::speak(script, body)),
        _ if path.ends_with("/responses") => Some(responses::speak(script, body)),
        _ if path.ends_with("/chat/completions") => Some(chat::speak(script, body)),
        _ if path.ends_with(":streamGenerateContent") => Some(google::speak(script, body, true)),
        _ if path.ends_with(":generateContent") => Some(google::speak(script, body, false)),
        _ if path.ends_with("/models") => aside(json!({ "object": "list", "data": [model()] })),
        _ => None,
    }
}

/// What is said to who asks for something beside the work.
const ASIDE: &str = "a check";

/// What the model does with one request for an answer.
enum ModelMove {
    Call(ModelCall),
    Sentence(String),
    Aside(String),
}

impl ModelMove {
    /// The move for a request, by whether it brings a result and by its tools.
    fn of<'a>(script: &ModelScript, has_result: bool, tools: impl Iterator<Item = (&'a str, &'a Value)>) -> ModelMove {
        match (has_result, call(script, tools)) {
            (true, _) => ModelMove::Sentence(script.sentence.clone()),
            (false, Some(call)) => ModelMove::Call(call),
            (false, None) if script.without_tools => ModelMove::Sentence(script.sentence.clone()),
            (false, None) => ModelMove::Aside(ASIDE.to_owned()),
        }
    }

    fn reply(&self) -> ModelReply {
        match self {
            ModelMove::Call(_) => ModelReply::Call,
            ModelMove::Sentence(_) => ModelReply::Sentence,
            ModelMove::Aside(_) => ModelReply::Aside,
        }
    }
}

/// A call of the tool that runs commands.
struct ModelCall {
    name: String,
    arguments: Value,
}

/// The tool among these that runs commands, called with the command of the script. Each tool is its name and its schema.
fn call<'a>(script: &ModelScript, tools: impl Iterator<Item = (&'a str, &'a Value)>) -> Option<ModelCall> {
    const NAMES: [&str; 7] =
        ["bash", "run_shell_command", "exec_command", "shell_command", "shell", "local_shell", "terminal"];
    let known: Vec<(usize, &str, &Value)> = tools
        .filter_map(|(name, schema)| {
            let rank = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known))?;
            Some((rank, name, schema))
        })
        .collect();
    let (_, name, schema) = known.into_iter().min_by_key(|(rank, ..)| *rank)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_required = |key: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|it| it.as_str() == Some(key)))
    };
    let mut arguments = serde_json::Map::new();
    for (key, about) in properties.into_iter().flatten() {
        let kind = about.get("type").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
        let value = match (key.as_str(), kind.as_str()) {
            ("command" | "cmd", "array") => json!(["sh", "-c", script.command]),
            ("command" | "cmd", _) => json!(script.command),
            _ if !is_required(key) => continue,
            (_, "boolean") => json!(false),
            (_, "integer" | "number") => json!(10_000),
            _ => about.get("enum").and_then(|list| list.get(0)).cloned().unwrap_or_else(|| json!("check")),
        };
        arguments.insert(key.clone(), value);
    }
    let takes_command = arguments.contains_key("command") || arguments.contains_key("cmd");
    takes_command.then(|| ModelCall { name: name.to_owned(), arguments: Value::Object(arguments) })
}

/// Events of a stream, each with its name where it has one.
fn events(events: &[(Option<&str>, Value)]) -> String {
    let one = |(name, data): &(Option<&str>, Value)| {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {data}\n\n")
    };
    events.iter().map(one).collect()
}

const STREAM: &str = "text/event-stream";
const DOCUMENT: &str = "application/json";

#[cfg(test)]
mod tests;
