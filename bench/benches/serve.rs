//! What an engine bears that serves the network: reads and transitions at a fixed rate over kept connections, beside 500
//! who follow the log as it happens. The load comes from this process; the engine is another. Beside them the floor of
//! the same connection: `/healthz`, which asks nobody.
//!
//! Build the program first: `cargo build --release -p sluice && cargo bench -p sluice-bench --bench serve`.
//! It prints, and judges nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Who follows the log.
const FOLLOWERS: usize = 500;
/// How many of them have one token.
const FOLLOWERS_OF_ONE: usize = 250;
/// Reads a second, and transitions a second.
const READS: u32 = 1000;
const MOVES: u32 = 300;
/// How long.
const LASTS: Duration = Duration::from_secs(10);
/// Connections that reads go over; each process that is moved on has one of its own.
const READERS: usize = 32;
/// Many short processes, and few long ones. Each step makes two moves, and all moves of all processes fill the time.
const SHAPES: [Shape; 2] = [Shape { processes: 300, steps: 5 }, Shape { processes: 25, steps: 60 }];

#[derive(Clone, Copy)]
struct Shape {
    processes: u32,
    steps: u32,
}

/// A connection that is kept.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    token: String,
}

fn main() -> Outcome<()> {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let Some(program) = program() else {
        println!("there is no release build of sluice; make one first: cargo build --release -p sluice");
        return Ok(());
    };
    for shape in SHAPES {
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut engine, address) = serve(&program, folder.path(), shape)?;
        // A token follows so often at most.
        let tokens = (0..FOLLOWERS.div_ceil(FOLLOWERS_OF_ONE)).map(|_| secret(&program, folder.path()));
        let tokens = tokens.collect::<Outcome<Vec<String>>>()?;
        println!("{} processes of {} steps", shape.processes, shape.steps);
        let measured = runtime.block_on(measure(&address, &tokens, engine.id(), shape));
        engine.kill()?;
        engine.wait()?;
        measured?;
    }
    Ok(())
}

async fn measure(address: &str, tokens: &[String], engine: u32, shape: Shape) -> Outcome<()> {
    let token = tokens.first().ok_or("no token")?;
    let mut first = Line::open(address, token).await?;
    let mut ids = Vec::new();
    for _ in 0..shape.processes {
        let started = first.ask("POST", "/v1/processes", r#"{"recipe":"load","cwd":"."}"#).await?;
        ids.push(field(&started, "id").ok_or_else(|| format!("no process: {started}"))?);
    }
    let heard = Arc::new(AtomicU64::new(0));
    for number in 0..FOLLOWERS {
        follow(address, &tokens[number / FOLLOWERS_OF_ONE], heard.clone()).await?;
    }
    println!("{:<44} {:>8} {:>9} {:>9} {:>9}", "", "a second", "median", "p99", "worst");
    let floor = reads(address, token, &["/healthz".into()], "floor: /healthz, no one asks else").await?;
    let paths: Vec<String> = ids.iter().map(|id| format!("/v1/processes/{id}")).collect();
    let before = cpu(engine);
    let (read, moved) = tokio::join!(
        reads(address, token, &paths, "reads of one process"),
        moves(address, token, &ids, "transitions (step started, completed)")
    );
    let (read, moved) = (read?, moved?);
    let spent = cpu(engine) - before;
    println!("aims: {READS} reads and {MOVES} transitions a second, p99 under 50 ms");
    println!("read p99 / floor p99: {:.1}; transition p99 / floor p99: {:.1}", read / floor, moved / floor);
    println!("engine: {:.0} % of one core; {} MiB resident", spent * 100.0 / LASTS.as_secs_f64(), resident(engine));
    let events = heard.load(Ordering::Relaxed);
    println!("{FOLLOWERS} followers heard {events} events, {:.0} each", events as f64 / FOLLOWERS as f64);
    Ok(())
}

/// Reads at a fixed rate. Each is measured from the moment it was due. Gives the 99th percentile in milliseconds.
async fn reads(address: &str, token: &str, paths: &[String], what: &str) -> Outcome<f64> {
    let mut lines = Vec::new();
    for _ in 0..READERS {
        lines.push(Arc::new(Mutex::new(Line::open(address, token).await?)));
    }
    let count = READS * u32::try_from(LASTS.as_secs())?;
    let began = Instant::now();
    let mut asked = Vec::new();
    for number in 0..count {
        let due = began + Duration::from_secs_f64(f64::from(number) / f64::from(READS));
        tokio::time::sleep_until(due.into()).await;
        let line = lines[number as usize % READERS].clone();
        let path = paths[number as usize % paths.len()].clone();
        asked.push(tokio::spawn(async move { line.lock().await.ask("GET", &path, "").await.map(|_| due.elapsed()) }));
    }
    let mut took = Vec::new();
    for one in asked {
        took.push(one.await??);
    }
    Ok(shown(what, took, began.elapsed()))
}

/// Moves processes on at a fixed rate, each by itself.
async fn moves(address: &str, token: &str, ids: &[String], what: &str) -> Outcome<f64> {
    let mut lines = Vec::new();
    for _ in ids {
        let mut line = Line::open(address, token).await?;
        // Of connections that have shown no token the door keeps fewer.
        line.ask("GET", "/v1/inbox", "").await?;
        lines.push(line);
    }
    let began = Instant::now();
    let mut all = Vec::new();
    let processes = u32::try_from(ids.len())?;
    for (index, (id, mut line)) in ids.iter().zip(lines).enumerate() {
        let offset = index as f64 / f64::from(processes);
        let id = id.clone();
        all.push(tokio::spawn(async move {
            let mut took = Vec::new();
            let each = f64::from(MOVES) / f64::from(processes);
            for number in 0..u32::try_from(LASTS.as_secs())? * MOVES / processes {
                // They do not all move in the same moment.
                let due = began + Duration::from_secs_f64((f64::from(number) + offset) / each);
                tokio::time::sleep_until(due.into()).await;
                let verb = if number % 2 == 0 { "start" } else { "complete" };
                line.ask("POST", &format!("/v1/processes/{id}/steps/s{}/{verb}", number / 2), "{}").await?;
                took.push(due.elapsed());
            }
            Outcome::Ok(took)
        }));
    }
    let mut took = Vec::new();
    for one in all {
        took.extend(one.await??);
    }
    Ok(shown(what, took, began.elapsed()))
}

/// One who follows the log as it happens, and counts.
async fn follow(address: &str, token: &str, heard: Arc<AtomicU64>) -> Outcome<()> {
    let mut line = Line::open(address, token).await?;
    let request = line.request("GET", "/events", "")?;
    let answer = line.sender.send_request(request).await?;
    if !answer.status().is_success() {
        return Err(format!("nothing is followed: {}", answer.status()).into());
    }
    let mut body = answer.into_body();
    tokio::spawn(async move {
        let _line = line;
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(bytes) = frame.data_ref() {
                let count = bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"id: ")).count();
                heard.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    });
    Ok(())
}

impl Line {
    async fn open(address: &str, token: &str) -> Outcome<Line> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Line { sender, token: token.to_owned() })
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Outcome<Request<Full<Bytes>>> {
        let request = Request::builder().method(method).uri(path).header("host", "sluice");
        let request = request.header("authorization", format!("Bearer {}", self.token));
        Ok(request.header("content-type", "application/json").body(Full::new(Bytes::from(body.to_owned())))?)
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<String> {
        let request = self.request(method, path, body)?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        let text = String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned();
        match status.is_success() {
            true => Ok(text),
            false => Err(format!("{method} {path}: {status} {text}").into()),
        }
    }
}

/// Prints one row, and gives the 99th percentile in milliseconds.
fn shown(what: &str, mut took: Vec<Duration>, lasted: Duration) -> f64 {
    took.sort_unstable();
    let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)].as_secs_f64() * 1000.0;
    let rate = took.len() as f64 / lasted.as_secs_f64();
    println!("{what:<44} {rate:>8.0} {:>6.2} ms {:>6.2} ms {:>6.2} ms", at(50), at(99), at(100));
    at(99)
}

/// An engine that serves a fresh home, with a template of many steps.
fn serve(program: &Path, folder: &Path, shape: Shape) -> Outcome<(Child, String)> {
    let templates = folder.join(".work/templates");
    std::fs::create_dir_all(&templates)?;
    let mut text = "template = \"load\"\ndescription = \"many steps\"\n".to_owned();
    for number in 0..shape.steps {
        let needs = number.checked_sub(1).map(|before| format!("needs = [\"s{before}\"]\n")).unwrap_or_default();
        text.push_str(&format!("\n[[steps]]\nid = \"s{number}\"\ntitle = \"step {number}\"\n{needs}"));
    }
    std::fs::write(templates.join("load.toml"), text)?;
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("SLUICE_HOME", folder.join("home")).current_dir(folder);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").ok_or("it does not listen")?.to_owned();
    Ok((child, address))
}

fn secret(program: &Path, folder: &Path) -> Outcome<String> {
    let mut command = Command::new(program);
    let output = command
        .args(["token", "create", "--scope", "person", "--json"])
        .env("SLUICE_HOME", folder.join("home"))
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(field(&text, "secret").ok_or("no token")?)
}

/// The text of the first field of this name in a JSON document.
fn field(document: &str, name: &str) -> Option<String> {
    let rest = document.split(&format!("\"{name}\":")).nth(1)?.trim_start().strip_prefix('"')?;
    rest.split('"').next().map(str::to_owned)
}

/// Seconds of CPU that a process has used.
fn cpu(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    fields.iter().sum::<f64>() / 100.0
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

/// The release build of this checkout.
fn program() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"));
    target.join("release/sluice").canonicalize().ok()
}
