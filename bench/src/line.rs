//! A kept connection to a server: the client of every benchmark that asks over HTTP.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// What a benchmark of the network gives, or why it cannot go on.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A connection that is kept.
pub struct Line {
    sender: SendRequest<Full<Bytes>>,
    token: String,
}

impl Line {
    /// Connects to an address; every request shows this token.
    pub async fn open(address: &str, token: &str) -> Outcome<Line> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Line { sender, token: token.to_owned() })
    }

    /// Asks, and gives the whole answer. An answer that is no success is an error.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<String> {
        let answer = self.send(method, path, body).await?;
        Ok(String::from_utf8_lossy(&answer.collect().await?.to_bytes()).into_owned())
    }

    /// Asks for something that is read piece by piece.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Outcome<Incoming> {
        let request = Request::builder().method(method).uri(path).header("host", "sluice");
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let body = Full::new(Bytes::from(body.to_owned()));
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.header("content-type", "application/json").body(body)?).await?;
        let status = answer.status();
        match status.is_success() {
            true => Ok(answer.into_body()),
            false => {
                let text = answer.into_body().collect().await?.to_bytes();
                Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&text)).into())
            }
        }
    }
}

/// Servers end a connection over which nothing was said for ten seconds or so.
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// The same for one who waits for each answer.
pub struct WaitingLine {
    runtime: Runtime,
    address: String,
    line: Line,
    said: Instant,
}

impl WaitingLine {
    /// Connects to an address; every request shows this token.
    pub fn open(address: &str, token: &str) -> Outcome<WaitingLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let line = runtime.block_on(Line::open(address, token))?;
        Ok(WaitingLine { runtime, address: address.to_owned(), line, said: Instant::now() })
    }

    /// Asks, and gives the whole answer. An answer that is no success is an error. After a long silence it connects anew.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<String> {
        if self.said.elapsed() > LONGEST_SILENCE {
            self.line = self.runtime.block_on(Line::open(&self.address, &self.line.token))?;
        }
        let answer = self.runtime.block_on(self.line.ask(method, path, body));
        self.said = Instant::now();
        answer
    }
}

/// Events of a log, as they are told.
pub struct Followed(Receiver<()>);

impl Followed {
    /// Follows a log at an address, and hears the events of one type from now on.
    pub fn open(address: &str, token: &str, kind: &str) -> Outcome<Followed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let path = format!("/events?type={kind}");
        let (mut line, mut body) = runtime.block_on(async {
            let mut line = Line::open(address, token).await?;
            let body = line.send("GET", &path, "").await?;
            Outcome::Ok((Some(line), body))
        })?;
        let (sender, heard) = channel();
        // It ends with the connection, that is with the engine.
        std::thread::spawn(move || {
            runtime.block_on(async {
                while let Some(Ok(frame)) = body.frame().await {
                    let told = frame.data_ref().map_or(0, |bytes| events(bytes));
                    if (0..told).try_for_each(|_| sender.send(())).is_err() {
                        break;
                    }
                }
            });
            line.take();
        });
        Ok(Followed(heard))
    }

    /// Waits until so many have been heard.
    pub fn wait(&self, count: usize, patience: Duration) {
        for number in 0..count {
            self.0.recv_timeout(patience).unwrap_or_else(|_| panic!("{number} of {count} have ended, and no more"));
        }
    }
}

/// Events in a piece of a stream of server-sent events.
pub fn events(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"id: ")).count()
}

/// The text of the first field of this name in a JSON document.
pub fn field(document: &str, name: &str) -> Option<String> {
    let rest = document.split(&format!("\"{name}\":")).nth(1)?.trim_start().strip_prefix('"')?;
    rest.split('"').next().map(str::to_owned)
}
