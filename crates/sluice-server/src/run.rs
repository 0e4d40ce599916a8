//! The life of an engine: it takes its home, listens, and ends when it is told to or has had nothing to do for long.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_home::lock::{Lock, NoLock};
use sluice_home::log::Log;
use sluice_home::places::Places;
use sluice_home::service::Service;
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::answer::Peer;
use crate::routes::routes;

/// An engine that had nothing to do for so long ends; the next command starts another.
const IDLE: Duration = Duration::from_secs(600);
/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_secs(5);
/// How long answers that are being written may take when it ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// What all requests share.
pub(crate) struct App {
    pub(crate) service: Service,
    began: Instant,
    /// When somebody last asked, in milliseconds since it began.
    asked: AtomicU64,
    stopping: AtomicBool,
    stop: Notify,
    ending: Notify,
}

impl App {
    /// Somebody asks.
    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asked.store(now, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.notify_one();
        self.ending.notify_one();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        let since = self.began.elapsed().saturating_sub(Duration::from_millis(self.asked.load(Ordering::Relaxed)));
        since >= IDLE && self.service.is_idle()
    }
}

/// Runs the engine of a home until it ends. `ready` is called once it listens.
pub fn run(places: &Places, ready: impl FnOnce()) -> Result<(), Problem> {
    // Whoever started it may go away, with the terminal and everything in it.
    let _ = rustix::process::setsid();
    let log = Arc::new(Log::open(&places.log()));
    let ended = serve(places, &log, ready);
    if let Err(problem) = &ended {
        log.line(&format!("ended: {}", problem.message));
    }
    ended
}

fn serve(places: &Places, log: &Arc<Log>, ready: impl FnOnce()) -> Result<(), Problem> {
    let _lock = Lock::take(&places.lock()).map_err(|no| match no {
        NoLock::Held { pid } => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            Problem::unavailable(format!("another engine{who} uses this home")).hint("`sluice stop` ends it")
        }
        NoLock::Broken(error) => {
            let message = format!("{} cannot be used: {error}", places.lock().display());
            Problem::unavailable(message).hint("move it away, and try again")
        }
    })?;
    let program = std::env::current_exe().map_err(|error| Problem::fault(format!("who am I? {error}")))?;
    let address = std::env::var("SLUICE_STORE").ok().filter(|address| !address.is_empty());
    let service = Service::open(places.clone(), address, program, log.clone(), None)?;
    let app = Arc::new(App {
        service,
        began: Instant::now(),
        asked: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        stop: Notify::new(),
        ending: Notify::new(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room for the engine: {error}")))?;
    let listened = runtime.block_on(listen(places, &app, log, ready));
    runtime.shutdown_timeout(FAREWELL);
    let closed = app.service.close();
    let _ = std::fs::remove_file(places.socket());
    log.line("ended");
    listened.and(closed)
}

async fn listen(places: &Places, app: &Arc<App>, log: &Log, ready: impl FnOnce()) -> Result<(), Problem> {
    let socket = places.socket();
    // We hold the lock, so whatever listens there is dead.
    let _ = std::fs::remove_file(&socket);
    let unusable = |error: std::io::Error| {
        Problem::unavailable(format!("{} cannot be used: {error}", socket.display()))
            .hint("move it away, and try again")
    };
    let listener = UnixListener::bind(&socket).map_err(unusable)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).map_err(unusable)?;
    log.line(&format!("listens at {}", socket.display()));
    ready();
    let service = routes(app.clone()).into_make_service_with_connect_info::<Peer>();
    let served = axum::serve(listener, service).with_graceful_shutdown(until_the_end(app.clone()));
    tokio::select! {
        done = served => done.map_err(unusable),
        () = farewell(app.clone()) => Ok(()),
    }
}

/// Waits until the engine is to end: it was told to, by a request or a signal, or has nothing to do, or its store is
/// somebody else's now.
async fn until_the_end(app: Arc<App>) {
    // Without them a signal ends the process, and the next engine takes over all the same.
    let mut terminate = signal(SignalKind::terminate()).ok();
    let mut interrupt = signal(SignalKind::interrupt()).ok();
    loop {
        tokio::select! {
            () = app.stop.notified() => return app.stop(),
            () = heard(terminate.as_mut()) => return app.stop(),
            () = heard(interrupt.as_mut()) => return app.stop(),
            () = tokio::time::sleep(LOOK) => {}
        }
        if app.service.has_ended() || app.is_idle() {
            return app.stop();
        }
    }
}

async fn heard(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whoever follows the log must not keep the engine from ending.
async fn farewell(app: Arc<App>) {
    app.ending.notified().await;
    tokio::time::sleep(FAREWELL).await;
}
