//! The life of an engine: it takes its home, listens, and ends when it is told to. One in the background also ends when it
//! has had nothing to do for long.

pub(crate) mod signals;
pub(crate) mod traces;
mod watchdog;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sluice_api::Problem;
use sluice_home::ask::Service;
use sluice_home::settings::config::HomeConfig;
use sluice_home::settings::lock::{FileLock, FileLockError};
use sluice_home::settings::log;
use sluice_home::settings::places::HomePaths;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::App;
use crate::doors;
use crate::doors::home_socket::HomeSocket;
use crate::doors::network::NetworkDoor;
use crate::engine_process::traces::traces;
use crate::engine_process::watchdog::Watchdog;
use crate::limits::MOST_CONNECTIONS;

/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_secs(5);
/// How long answers that are being written may take when it ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long work may take at the end that no client waits for any more.
const UNHEARD: Duration = Duration::from_secs(1);
/// The thread that follows the log looks by itself after this time, whatever was heard.
const BACKSTOP: Duration = Duration::from_secs(10);
/// How long what happens is gathered before those who follow are told.
const TOGETHER: Duration = Duration::from_millis(10);
/// So many threads may wait for answers at once.
const MOST_WAITING: usize = 2 * MOST_CONNECTIONS;
/// The exit code of an engine that hung: unavailable.
const HUNG: i32 = 6;
/// So many files an engine wants to have open that serves the network.
const FILES: u64 = 8192;

#[derive(Default)]
pub struct EngineOptions {
    /// The address of the store, unless it is the home's own.
    pub store: Option<String>,
    /// The network's door. With it the engine stays in the foreground and never ends by being idle.
    pub network: Option<NetworkDoor>,
}

/// Runs the engine of a home until it ends. `ready` is called once it listens.
pub fn run(places: &HomePaths, engine: EngineOptions, ready: impl FnOnce()) -> Result<(), Problem> {
    if engine.network.is_none() {
        // Whoever started it may go away, with the terminal and everything in it.
        let _ = rustix::process::setsid();
    }
    log::begin(&places.log());
    let config = HomeConfig::read(&places.config()).unwrap_or_default(); // what is wrong with it is told when the home opens
    let _traces = traces(&config);
    let ended = serve(places, engine, ready);
    if let Err(problem) = &ended {
        tracing::error!("ended: {}", problem.message);
    }
    ended
}

fn serve(places: &HomePaths, engine: EngineOptions, ready: impl FnOnce()) -> Result<(), Problem> {
    let lock = FileLock::take(&places.lock()).map_err(|no| match no {
        FileLockError::Held { pid } => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            Problem::unavailable(format!("another engine{who} uses this home")).hint("`sluice stop` ends it")
        }
        FileLockError::Broken(error) => {
            let message = format!("{} cannot be used: {error}", places.lock().display());
            Problem::unavailable(message).hint("move it away, and try again")
        }
    })?;
    let lock = Arc::new(lock);
    let program = std::env::current_exe()
        .map_err(|error| Problem::fault(format!("cannot find the path of the running program: {error}")))?;
    let EngineOptions { store, network } = engine;
    let serves = network.as_ref().map(NetworkDoor::url);
    let service = Service::open(places.clone(), store, program)?;
    service.turned_away_meanwhile();
    if network.is_some() {
        service.keep_environment();
    }
    let app = Arc::new(App::new(service, serves));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_WAITING).build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room for the engine: {error}")))?;
    spread_news(&app)?;
    let watchdog = Watchdog::start(runtime.handle(), hung())?;
    let listened = runtime.block_on(listen(places, &app, &lock, network, ready));
    drop(watchdog);
    app.stop();
    runtime.shutdown_timeout(UNHEARD);
    let closed = app.service.close();
    if lock.is_at(&places.lock()) {
        let _ = std::fs::remove_file(places.socket());
    }
    tracing::info!("ended");
    listened.and(closed)
}

/// What is done when the doors have not turned for 30 seconds: the process ends, as if it had been killed. Sessions go on.
fn hung() -> impl FnOnce() + Send {
    move || {
        let why = "a fault of Sluice's own: nothing was answered for 30 seconds; the engine ends, and the next command \
            starts another, which takes up what was going on";
        tracing::error!("{why}");
        eprintln!("sluice: {why}");
        std::process::exit(HUNG);
    }
}

async fn listen(
    places: &HomePaths,
    app: &Arc<App>,
    lock: &Arc<FileLock>,
    network: Option<NetworkDoor>,
    ready: impl FnOnce(),
) -> Result<(), Problem> {
    let socket = places.socket();
    let unusable = |error: std::io::Error| {
        Problem::unavailable(format!("{} cannot be used: {error}", socket.display()))
            .hint("move it away, and try again")
    };
    let listener = HomeSocket::bind(places, lock).map_err(unusable)?;
    if let Some(url) = app.serves() {
        tracing::info!("listens at {url}");
        want_files();
    }
    app.tend_page_door();
    let waiting = tokio::spawn(until_the_end(app.clone(), lock.clone(), places.lock()));
    ready();
    let served = doors::serve(app, listener, network, FAREWELL).await;
    waiting.abort();
    served
}

/// Tells those who follow the log that something happened. One thread waits for all of them.
fn spread_news(app: &Arc<App>) -> Result<(), Problem> {
    let tasks = app.service.home().tasks.clone();
    let app: Weak<App> = Arc::downgrade(app);
    let spread = move || {
        let mut seen = 0;
        while let Some(app) = app.upgrade().filter(|app| !app.is_stopping()) {
            app.feed.refresh(&app.service, app.has_followers());
            app.news.send_replace(seen);
            drop(app);
            seen = tasks.wait_past(seen, BACKSTOP);
            // What happens at almost the same time is told together.
            std::thread::park_timeout(TOGETHER);
        }
    };
    let thread = std::thread::Builder::new().name("news".into()).spawn(spread);
    thread.map(drop).map_err(|error| Problem::fault(error.to_string()))
}

/// A connection is a file to the system, and it often allows fewer than there may be connections.
fn want_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |most| most.min(FILES));
    if current.is_some_and(|current| current < wanted) {
        // If it does not work there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Waits until the engine is to end, by a signal, or because it has nothing to do, or its store is somebody else's now, or
/// its home is not where it was; and then tells everybody.
async fn until_the_end(app: Arc<App>, lock: Arc<FileLock>, place: PathBuf) {
    // Without them a signal ends the process, and the next engine takes over all the same.
    let mut terminate = signal(SignalKind::terminate()).ok();
    let mut interrupt = signal(SignalKind::interrupt()).ok();
    loop {
        tokio::select! {
            () = app.ends() => return,
            () = heard(terminate.as_mut()) => return app.stop(),
            () = heard(interrupt.as_mut()) => return app.stop(),
            () = tokio::time::sleep(LOOK) => {}
        }
        if app.service.has_ended() || app.is_idle() {
            return app.stop();
        }
        if !lock.is_at(&place) {
            tracing::error!("{} was removed, moved or replaced: the engine ends", place.display());
            return app.stop();
        }
        app.tend_page_door();
        let asked = app.clone();
        if tokio::task::spawn_blocking(move || asked.service.expire_tokens()).await.unwrap_or(false) {
            app.revoke();
        }
    }
}

async fn heard(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
