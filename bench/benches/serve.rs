//! What an engine bears that serves the network: reads and transitions at a fixed rate over kept connections, beside 500
//! who follow the log as it happens. The load comes from this process; the engine is another. Beside them the floor of
//! the same connection: `/healthz`, which asks nobody.
//!
//! Build the program first: `cargo build --release -p sluice && cargo bench -p sluice-bench --bench serve`.
//! It prints, and judges nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use sluice_bench::line::{Line, Outcome, events, field};
use sluice_bench::machine::{built_program, cpu, resident};
use tokio::sync::Mutex;

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

fn main() -> Outcome<()> {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let Some(program) = built_program() else {
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
    println!("engine: {:.0} % of one core; {:.0} MiB resident", spent * 100.0 / LASTS.as_secs_f64(), resident(engine));
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
    let mut body = line.send("GET", "/events", "").await?;
    tokio::spawn(async move {
        let _line = line;
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(bytes) = frame.data_ref() {
                heard.fetch_add(events(bytes) as u64, Ordering::Relaxed);
            }
        }
    });
    Ok(())
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
