//! What a command costs a person: against an engine that runs, and as the first on an empty home; and what an idle
//! engine costs the machine. Beside them the floor of starting `true`, and of an echo over a unix socket.
//!
//! Build the program first: `cargo build --release -p sluice && cargo bench -p sluice-bench --bench commands`.
//! It prints, and judges nothing.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How often each is measured.
const ROUNDS: usize = 200;
/// How often an engine is started.
const STARTS: usize = 20;
/// How long an engine is watched doing nothing.
const IDLE: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let Some(program) = program() else {
        println!("there is no release build of sluice; make one first: cargo build --release -p sluice");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("home");
    let floor = median(ROUNDS, || run(&mut Command::new("true")))?;
    let echo = echo(&folder.path().join("echo.sock"))?;
    let first = median(STARTS, || {
        stop(&program, &home)?;
        std::fs::remove_dir_all(&home).or_else(|error| if home.exists() { Err(error) } else { Ok(()) })?;
        timed(|| run(&mut list(&program, &home)))
    });
    let first = first?;
    let next = median(STARTS, || {
        stop(&program, &home)?;
        timed(|| run(&mut list(&program, &home)))
    })?;
    let help = median(ROUNDS, || run(Command::new(&program).arg("--version")))?;
    let round = median(ROUNDS, || run(&mut list(&program, &home)))?;
    println!("{:<44} {:>10} {:>8} {:>8}", "", "median", "/ true", "aim");
    let line = |what: &str, took: Duration, aim: &str| {
        println!("{what:<44} {:>7.2} ms {:>8.1} {aim:>8}", millis(took), millis(took) / millis(floor));
    };
    line("start `true`", floor, "");
    line("echo over a unix socket", echo, "");
    line("`sluice --version`, no engine needed", help, "");
    line("`task list`, engine runs", round, "10 ms");
    line("`task list`, first on an empty home", first, "150 ms");
    line("`task list`, engine of a home to be started", next, "150 ms");
    println!("what the exchange adds to the start of the program: {:.2} ms", millis(round) - millis(help));
    idle(&home)?;
    stop(&program, &home)
}

/// What the engine of a home weighs, and what it does while nobody asks.
fn idle(home: &Path) -> Outcome<()> {
    let lock = std::fs::read_to_string(home.join("engine.lock"))?;
    let pid = lock.split_whitespace().next().ok_or("the lock names no process")?.to_owned();
    let before = ticks(&pid)?;
    std::thread::park_timeout(IDLE);
    let spent = ticks(&pid)? - before;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: f64 = resident.trim().trim_end_matches(" kB").parse()?;
    println!(
        "idle engine: {:.1} MiB resident (aim 25), {} ms of CPU in {} s",
        kilobytes / 1024.0,
        spent * 10,
        IDLE.as_secs()
    );
    Ok(())
}

/// The time a process has had, in hundredths of a second.
fn ticks(pid: &str) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let times: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    Ok(times.iter().sum())
}

/// One byte there and back, with a connection for each, as our commands do it.
fn echo(path: &Path) -> Outcome<Duration> {
    let listener = UnixListener::bind(path)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream: UnixStream = stream;
            let mut byte = [0];
            let _ = stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte));
        }
    });
    median(ROUNDS, || {
        timed(|| {
            let mut stream = UnixStream::connect(path)?;
            stream.write_all(b"x")?;
            Ok(stream.read_exact(&mut [0])?)
        })
    })
}

/// The program that was built beside this one.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.parent()?.join("sluice");
    program.is_file().then_some(program)
}

fn list(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["task", "list", "--json"]).env("SLUICE_HOME", home);
    command
}

fn stop(program: &Path, home: &Path) -> Outcome<()> {
    run(Command::new(program).arg("stop").env("SLUICE_HOME", home)).map(drop)
}

/// Runs a command to its end. How long it took.
fn run(command: &mut Command) -> Outcome<Duration> {
    let began = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
}

fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn median(rounds: usize, mut once: impl FnMut() -> Outcome<Duration>) -> Outcome<Duration> {
    let mut times = (0..rounds).map(|_| once()).collect::<Outcome<Vec<Duration>>>()?;
    times.sort();
    Ok(times[times.len() / 2])
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
