//! The life of an engine: it takes its home, listens, and ends when it is told to. One in the background also ends when it
//! has had nothing to do for long.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::response::Response;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sluice_api::Problem;
use sluice_home::config::HomeConfig;
use sluice_home::lock::{FileLock, FileLockError};
use sluice_home::log::HomeLog;
use sluice_home::places::HomePaths;
use sluice_home::service::Service;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};

use crate::answer::refuse;
use crate::caller::RequestCaller;
use crate::door;
use crate::feed::EventFeed;
use crate::home_socket::HomeSocket;
use crate::keys::KeysInUse;
use crate::limits::{DenialRecords, MOST_CONNECTIONS, MOST_READING, TokenRates};
use crate::metrics::RequestCounts;
use crate::network::NetworkDoor;
use crate::room::DoorLimits;
use crate::traces::traces;
use crate::watchdog::Watchdog;

/// An engine that had nothing to do for so long ends; the next command starts another.
const IDLE: Duration = Duration::from_secs(600);
/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_secs(5);
/// How long answers that are being written may take when it ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long work may take at the end that nobody waits for any more.
const UNHEARD: Duration = Duration::from_secs(1);
/// Whoever follows the log looks by itself after this time, whatever was heard.
const BACKSTOP: Duration = Duration::from_secs(10);
/// How long what happens is gathered before those who follow are told.
const TOGETHER: Duration = Duration::from_millis(10);
/// So many threads may wait for answers at once.
const MOST_WAITING: usize = 2 * MOST_CONNECTIONS;
/// The exit code of an engine that hung: unavailable.
const HUNG: i32 = 6;
/// So many files an engine wants to have open that serves the network.
const FILES: u64 = 8192;

/// What all requests share.
pub(crate) struct App {
    pub(crate) service: Service,
    pub(crate) rates: TokenRates,
    pub(crate) records: DenialRecords,
    pub(crate) counts: RequestCounts,
    /// Room at the socket.
    pub(crate) socket: DoorLimits,
    /// Room over the network.
    pub(crate) network: DoorLimits,
    /// Room for those who read the log at the moment.
    pub(crate) reading: Semaphore,
    log: Arc<HomeLog>,
    serves: Option<String>,
    began: Instant,
    /// When somebody last asked, in milliseconds since it began.
    asked: AtomicU64,
    /// Whether it ends.
    ending: watch::Sender<bool>,
    /// Changes with everything that happens.
    news: watch::Sender<u64>,
    /// The newest of that.
    pub(crate) feed: EventFeed,
    /// Changes when a token is revoked.
    revoked: watch::Sender<()>,
    /// Under which something is being made.
    pub(crate) keys: KeysInUse,
}

impl App {
    pub(crate) fn new(service: Service, log: Arc<HomeLog>, serves: Option<String>) -> App {
        let began = Instant::now();
        App {
            rates: TokenRates::new({
                let ground = service.ground().clone();
                move || ground.config().serve.clone()
            }),
            service,
            records: DenialRecords::default(),
            counts: RequestCounts::default(),
            socket: DoorLimits::default(),
            network: DoorLimits::default(),
            reading: Semaphore::new(MOST_READING),
            log,
            serves,
            began,
            asked: AtomicU64::new(0),
            ending: watch::Sender::new(false),
            news: watch::Sender::new(0),
            feed: EventFeed::default(),
            revoked: watch::Sender::new(()),
            keys: KeysInUse::default(),
        }
    }

    /// Somebody asks.
    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asked.store(now, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.ending.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until it ends.
    pub(crate) async fn ends(&self) {
        let _ = self.ending.subscribe().wait_for(|ends| *ends).await;
    }

    /// Where it listens over the network, if it does.
    pub(crate) fn serves(&self) -> Option<&str> {
        self.serves.as_deref()
    }

    /// Something of ours broke: it is written down, and whoever asked is told.
    pub(crate) fn broke(&self, why: &str) -> Response {
        self.log.line(&format!("a request broke: {why}"));
        refuse(&Problem::fault("something of Sluice's own broke while it answered; see the log"))
    }

    /// Whether somebody follows the log.
    pub(crate) fn has_followers(&self) -> bool {
        self.socket.has_followers() || self.network.has_followers()
    }

    /// What changes with everything that happens.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// A token has been revoked: whoever is inside looks whether it was theirs.
    pub(crate) fn revoke(&self) {
        self.revoked.send_replace(());
    }

    /// What changes when a token is revoked.
    pub(crate) fn revoked(&self) -> watch::Receiver<()> {
        self.revoked.subscribe()
    }

    /// Whether somebody who was let in still would be.
    pub(crate) fn still_lets_in(&self, caller: &RequestCaller) -> bool {
        match caller {
            RequestCaller::Process(_) => true,
            RequestCaller::Bearer(bearer) => self.service.still_lets_in(&bearer.token),
        }
    }

    fn is_idle(&self) -> bool {
        let since = self.began.elapsed().saturating_sub(Duration::from_millis(self.asked.load(Ordering::Relaxed)));
        self.serves.is_none() && since >= IDLE && self.service.is_idle()
    }
}

/// Which engine is wanted.
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
    let log = Arc::new(HomeLog::open(&places.log()));
    let config = HomeConfig::read(&places.config()).unwrap_or_default(); // what is wrong with it is told when the home opens
    let _traces = traces(&config, &log);
    let ended = serve(places, engine, &log, ready);
    if let Err(problem) = &ended {
        log.line(&format!("ended: {}", problem.message));
    }
    ended
}

fn serve(places: &HomePaths, engine: EngineOptions, log: &Arc<HomeLog>, ready: impl FnOnce()) -> Result<(), Problem> {
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
    let program = std::env::current_exe().map_err(|error| Problem::fault(format!("who am I? {error}")))?;
    let EngineOptions { store, network } = engine;
    let serves = network.as_ref().map(NetworkDoor::url);
    let service = Service::open(places.clone(), store, program, log.clone())?;
    service.turned_away_meanwhile();
    if network.is_some() {
        service.keep_environment();
    }
    let app = Arc::new(App::new(service, log.clone(), serves));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(MOST_WAITING).build();
    let runtime = runtime.map_err(|error| Problem::fault(format!("no room for the engine: {error}")))?;
    spread_news(&app)?;
    let watchdog = Watchdog::start(runtime.handle(), hung(log.clone()))?;
    let listened = runtime.block_on(listen(places, &app, &lock, network, ready));
    drop(watchdog);
    app.stop();
    runtime.shutdown_timeout(UNHEARD);
    let closed = app.service.close();
    if lock.is_at(&places.lock()) {
        let _ = std::fs::remove_file(places.socket());
    }
    log.line("ended");
    listened.and(closed)
}

/// What is done when the doors have not turned for 30 seconds: the process ends, as if it had been killed. Sessions go on.
fn hung(log: Arc<HomeLog>) -> impl FnOnce() + Send {
    move || {
        let why = "a fault of Sluice's own: nothing was answered for 30 seconds; the engine ends, and the next command \
            starts another, which takes up what was going on";
        log.line(why);
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
    let (socket, log) = (places.socket(), &app.log);
    let unusable = |error: std::io::Error| {
        Problem::unavailable(format!("{} cannot be used: {error}", socket.display()))
            .hint("move it away, and try again")
    };
    let listener = HomeSocket::bind(places, lock, log).map_err(unusable)?;
    if let Some(url) = app.serves() {
        log.line(&format!("listens at {url}"));
        want_files();
    }
    let waiting = tokio::spawn(until_the_end(app.clone(), lock.clone(), places.lock()));
    ready();
    let served = door::serve(app, listener, network, FAREWELL).await;
    waiting.abort();
    served
}

/// Tells those who follow the log that something happened. One thread waits for all of them.
fn spread_news(app: &Arc<App>) -> Result<(), Problem> {
    let tasks = app.service.ground().tasks.clone();
    let app: Weak<App> = Arc::downgrade(app);
    let spread = move || {
        let mut seen = 0;
        while let Some(app) = app.upgrade().filter(|app| !app.is_stopping()) {
            app.feed.refresh(&app);
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
            app.log.line(&format!("{} was removed, moved or replaced: the engine ends", place.display()));
            return app.stop();
        }
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
