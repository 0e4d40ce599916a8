//! What the hooks of a program tell during a check: it listens where the engine of the scratch home would, writes down what
//! is said and when, and answers as an engine does. It decides nothing about it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Deserialize;
use tokio::sync::oneshot;

/// Bytes of a signal that are read.
const LONGEST_SIGNAL: usize = 1 << 20;
/// Signals that are remembered.
const MOST_SIGNALS: usize = 1000;

/// One call of a hook, as an engine would hear it.
#[derive(Clone, Debug)]
pub(super) struct HeardCall {
    pub(super) at: Instant,
    pub(super) session: String,
    /// `works`, `turn ended`, or what the agent waits for.
    pub(super) news: String,
}

/// The words of a signal that matter here.
#[derive(Deserialize)]
struct SaidSignal {
    session: String,
    news: String,
    what: Option<String>,
}

#[derive(Default)]
struct EarLog {
    calls: Mutex<Vec<HeardCall>>,
    heard: Condvar,
}

/// The ear while it listens. It goes away with this.
pub(super) struct HookEar {
    log: Arc<EarLog>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HookEar {
    pub(super) fn listen(socket: &Path) -> io::Result<HookEar> {
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let log = Arc::new(EarLog::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&log));
        let thread = std::thread::Builder::new().name("hook-ear".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, routes) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(HookEar { log, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits until this was told of a session, or for so long. What was told of it, in the order of the first times.
    pub(super) fn wait(&self, session: &str, news: &str, limit: Duration) -> Vec<HeardCall> {
        let is_missing =
            |calls: &mut Vec<HeardCall>| !calls.iter().any(|call| call.session == session && call.news == news);
        let waited = self.log.heard.wait_timeout_while(self.log.calls(), limit, is_missing);
        let (calls, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut first: Vec<HeardCall> = Vec::new();
        for call in calls.iter().filter(|call| call.session == session) {
            if !first.iter().any(|known| known.news == call.news) {
                first.push(call.clone());
            }
        }
        first
    }
}

impl Drop for HookEar {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl EarLog {
    fn calls(&self) -> MutexGuard<'_, Vec<HeardCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(log): State<Arc<EarLog>>, request: Request) -> impl IntoResponse {
    let at = Instant::now();
    let bytes: Bytes = to_bytes(request.into_body(), LONGEST_SIGNAL).await.unwrap_or_default();
    if let Ok(SaidSignal { session, news, what }) = serde_json::from_slice(&bytes) {
        let news = match what {
            Some(what) => format!("{} ({what})", news.replace('_', " ")),
            None => news.replace('_', " "),
        };
        let mut calls = log.calls();
        if calls.len() < MOST_SIGNALS {
            calls.push(HeardCall { at, session, news });
        }
        log.heard.notify_all();
    }
    ([(CONTENT_TYPE, "application/json")], r#"{"taken":true}"#)
}
