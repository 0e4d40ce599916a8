//! The way from a command to the engine of its home: the one that runs, or one that is started in the background.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sluice_api::client::{GONE, SILENT};
use sluice_api::problem::ProblemStatus;
use sluice_api::{Client, Problem};
use sluice_home::settings::lock::FileLock;
use sluice_home::settings::places::HomePaths;

use crate::output::{CliExit, CliFailure};

/// What a started engine says on its standard output once it listens.
pub(crate) const READY: &str = "ready";

/// How long an engine may take to end.
const FAREWELL: Duration = Duration::from_secs(20);

/// How long it is waited between two looks for an engine that is there and does not answer.
const PAUSE: Duration = Duration::from_millis(100);

/// How many heaps the C library may divide an engine's memory into. Left to itself it makes eight for each core, and each
/// keeps for ever about what the busiest threads on it once needed. It only reads this when a program begins.
const HEAPS: (&str, &str) = ("MALLOC_ARENA_MAX", "2");

/// Says that this program was begun again.
const BEGUN: (&str, &str) = ("SLUICE_BEGUN", "1");

/// Begins this program again as one whose memory is in few heaps, unless it is so already or a person said how many.
pub(crate) fn with_few_heaps() {
    // Its own mark as well: the C library takes the other away from a program that has more rights than its caller.
    if std::env::var_os(HEAPS.0).is_none() && std::env::var_os(BEGUN.0).is_none() {
        let mut arguments = std::env::args_os();
        let mut again = Command::new("/proc/self/exe");
        // A program that cannot be begun again goes on as it is.
        let _ = again.arg0(arguments.next().unwrap_or_default()).args(arguments).envs([HEAPS, BEGUN]).exec();
    }
}

pub(crate) fn places() -> Result<HomePaths, CliFailure> {
    HomePaths::of_environment().ok_or_else(|| {
        CliFailure::new(CliExit::Unavailable, "no_home", "there is no home: neither SLUICE_HOME nor HOME is set")
            .hint("say where it is: SLUICE_HOME=~/.sluice")
    })
}

/// The engine that runs, if one does. One that does not answer runs all the same.
pub(crate) fn running(places: &HomePaths) -> Result<Option<Client>, CliFailure> {
    let client = Client::new(&places.socket())?;
    match client.health() {
        Ok(_) => Ok(Some(client)),
        Err(problem) if problem.code == SILENT => Err(problem.into()),
        Err(_) => found_again(places, client),
    }
}

/// An engine that has its home and is not found there ends, or is about to make its socket again.
fn found_again(places: &HomePaths, client: Client) -> Result<Option<Client>, CliFailure> {
    let give_up = Instant::now() + FAREWELL;
    while !FileLock::wait_until_free(&places.lock(), PAUSE) {
        if client.health().is_ok() {
            return Ok(Some(client));
        }
        if Instant::now() >= give_up {
            let message = "an engine uses this home, and cannot be reached at its socket";
            return Err(CliFailure::new(CliExit::Unavailable, "engine_unavailable", message)
                .hint("the first line of `engine.lock` in the home is its process: end that, then try again"));
        }
    }
    Ok(None)
}

/// Whether a command of this process may start an engine.
static MAY_START: AtomicBool = AtomicBool::new(true);

/// From now on this process starts no engine: a person may have ended the one that it watches.
pub(crate) fn start_none() {
    MAY_START.store(false, Ordering::Relaxed);
}

/// The engine that `SLUICE_URL` names, else that of this home. If none runs here one is started; if an older one runs in
/// the background it makes way. One that serves the network is not ended by a command that happens to be newer.
pub(crate) fn connect() -> Result<Client, CliFailure> {
    if let Some(client) = Client::of_environment()? {
        return Ok(client);
    }
    let places = places()?;
    if !MAY_START.load(Ordering::Relaxed) {
        let none = || CliFailure::new(CliExit::Unavailable, "engine_unavailable", "no engine runs in this home");
        return running(&places)?.ok_or_else(none);
    }
    let client = Client::new(&places.socket())?;
    match client.health() {
        Ok(health) if health.serves.is_some() => return Ok(client),
        Ok(health) if !is_newer(env!("CARGO_PKG_VERSION"), &health.version) => return Ok(client),
        Ok(_) => drop(client.post::<serde_json::Value>("/v1/stop", &())),
        Err(problem) if problem.code == SILENT => return Err(problem.into()),
        Err(_) => {}
    }
    start(&places)?;
    Ok(Client::new(&places.socket())?)
}

/// Asks the engine, and once more if it goes away meanwhile. Only for what may be asked twice.
pub(crate) fn ask<T>(question: impl Fn(&Client) -> Result<T, Problem>) -> Result<T, CliFailure> {
    match question(&connect()?) {
        Err(problem) if problem.code == GONE => Ok(question(&connect()?)?),
        answer => Ok(answer?),
    }
}

fn is_newer(this: &str, that: &str) -> bool {
    let numbers = |text: &str| text.split(['.', '-']).map_while(|part| part.parse::<u64>().ok()).collect::<Vec<_>>();
    numbers(this) > numbers(that)
}

/// Makes the home: no other user may look into it.
pub(crate) fn make_home(places: &HomePaths) -> Result<(), CliFailure> {
    let home = places.home();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home);
    let failed = |error: std::io::Error| {
        CliFailure::new(CliExit::Unavailable, "no_home", format!("the home {} cannot be used: {error}", home.display()))
            .hint("make it writable for you, or set SLUICE_HOME to another folder")
    };
    made.map_err(failed)?;
    let writable = std::fs::metadata(home).map_err(failed)?;
    if writable.permissions().mode() & 0o077 != 0 {
        // It holds tokens and transcripts.
        std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    places.make_sockets().map_err(failed)
}

/// Waits until the engine has ended that was told to, or that does not answer any more. One that stays is dealt with by
/// the next, which says who it is.
pub(crate) fn wait_for_end(places: &HomePaths) {
    FileLock::wait_until_free(&places.lock(), FAREWELL);
}

/// Ends an engine that runs in the background; the next command starts another. One that serves the network is not
/// ended by the way. Whether one was ended: it has asked then who wants that.
pub(crate) fn end_background(places: &HomePaths) -> Result<bool, CliFailure> {
    let client = Client::new(&places.socket())?;
    let runs = client.health().is_ok_and(|health| health.serves.is_none());
    if runs {
        match client.post::<serde_json::Value>("/v1/stop", &serde_json::json!({})) {
            Ok(_) => wait_for_end(places),
            // One that has lost its store ends by itself, and may not have asked who wants that.
            Err(Problem { status: ProblemStatus::Unavailable, .. }) => {
                wait_for_end(places);
                return Ok(false);
            }
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(runs)
}

/// Held while an engine is started, so that no other command starts one meanwhile.
pub(crate) fn starting(places: &HomePaths) -> Result<FileLock, CliFailure> {
    let lock = places.start_lock();
    FileLock::wait(&lock).map_err(|error| {
        let message = format!("the engine cannot be started: {} cannot be used: {error}", lock.display());
        CliFailure::new(CliExit::Unavailable, "engine_unavailable", message)
            .hint("make it writable for you, and try again")
    })
}

/// Starts an engine in the background and waits until it listens. A command that comes second waits for the first.
fn start(places: &HomePaths) -> Result<(), CliFailure> {
    make_home(places)?;
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        CliFailure::new(
            CliExit::Unavailable,
            "engine_unavailable",
            format!("the engine cannot be started: {what}: {error}"),
        )
        .hint(format!("see {}", places.log().display()))
    };
    let _starting = starting(places)?;
    if running(places)?.is_some() {
        return Ok(());
    }
    // One that does not answer any more may still be on its way out.
    wait_for_end(places);
    let program = std::env::current_exe().map_err(|error| failed("its program", &error))?;
    // It holds nothing open of who calls this: a lock or a pipe would be held for as long as the engine runs.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut command = Command::new(program);
    // What a session is told about itself is not the engine's. Nor is the engine a part of the session that happens to
    // start it, and so it does not end with it.
    let of_session = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("SLUICE_") && name != "SLUICE_STORE")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_session(name)) {
        command.env_remove(name);
    }
    let (kept, value) = sluice_os::process::KEPT;
    let mut engine = command
        .arg("engine")
        .env("SLUICE_HOME", places.home())
        .env(kept, value)
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed("its process", &error))?;
    let mut said = engine.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok);
    match said.next().as_deref() {
        Some(READY) => Ok(()),
        None | Some("") => Err(failed("it ended", &"without a word")),
        Some(why) => {
            let hint = said.next().unwrap_or_else(|| format!("see {}", places.log().display()));
            Err(CliFailure::new(CliExit::Unavailable, "engine_unavailable", why.to_owned()).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn an_engine_makes_way_for_a_later_one_only() {
        assert!(is_newer("0.10.0", "0.9.3"));
        assert!(!is_newer("0.1.0", "0.1.0"));
        assert!(!is_newer("0.1.0", "0.2.0"));
    }
}
