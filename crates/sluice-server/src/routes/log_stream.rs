//! What the agents of a task or run print, as lines of JSON while they print: for `task log --follow` and `run log --follow`.
//!
//! Reading files and waiting for the kernel is the work of a thread for each who follows, and there are few of them; the
//! thread sleeps until an agent prints or something happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::Problem;
use sluice_api::diff::LogPiece;
use sluice_home::ask::{LogFollower, LogNews, LogWaker, Service};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use crate::answer::refuse;
use crate::app::App;
use crate::caller::RequestCaller;
use crate::follow::LINES;
use crate::limits::connections::ConnectionSlot;

/// So many may follow what agents print at the same time; each has a thread.
const MOST_LOG_FOLLOWERS: usize = 32;
/// Pieces that a slow reader is behind before the thread waits for it.
const PIECES_AHEAD: usize = 16;

static FOLLOWING: AtomicUsize = AtomicUsize::new(0);

/// How much of what was printed before is wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TaskLogQuery {
    /// The most lines that were printed before, from the end; default: 200.
    lines: Option<usize>,
    /// Go on after these places, with commas between them, instead of the last lines: `places` of the pieces before.
    from: Option<String>,
}

/// Which steps are wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunLogQuery {
    /// The only step whose log is wanted.
    step: Option<String>,
    /// Go on after these places, with commas between them: `places` of the pieces before.
    from: Option<String>,
}

pub(crate) async fn of_task(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(id): Path<String>,
    Query(wanted): Query<TaskLogQuery>,
) -> Response {
    follow(app, caller, move |service| service.follow_task_log(&id, wanted.lines, wanted.from.as_deref())).await
}

pub(crate) async fn of_run(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Path(id): Path<String>,
    Query(wanted): Query<RunLogQuery>,
) -> Response {
    follow(app, caller, move |service| {
        service.follow_run_log(&id, wanted.step.as_deref(), wanted.from.as_deref()).map(|follower| (follower, None))
    })
    .await
}

/// A place among the threads.
struct LogPlace;

impl LogPlace {
    fn take() -> Option<LogPlace> {
        let has_room = FOLLOWING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| {
            (count < MOST_LOG_FOLLOWERS).then_some(count + 1)
        });
        has_room.ok().map(|_| LogPlace)
    }
}

impl Drop for LogPlace {
    fn drop(&mut self) {
        FOLLOWING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What is read for a client. The receiver comes first: when it is dropped, the thread that is woken finds that it is gone.
struct LogReading {
    pieces: Receiver<LogPiece>,
    waker: WakesAtEnd,
    app: Arc<App>,
    caller: RequestCaller,
    news: watch::Receiver<u64>,
    _place: ConnectionSlot,
}

struct WakesAtEnd(LogWaker);

impl Drop for WakesAtEnd {
    fn drop(&mut self) {
        self.0.wake();
    }
}

async fn follow(
    app: Arc<App>,
    caller: RequestCaller,
    begin: impl FnOnce(&Service) -> Result<(LogFollower, Option<LogPiece>), Problem> + Send + 'static,
) -> Response {
    app.touch();
    let full = || {
        let problem = Problem::unavailable("too many follow what agents print already");
        refuse(&problem.hint("read the log without following it, or try again later"))
    };
    let (Some(place), Some(thread)) = (app.place(&caller), LogPlace::take()) else { return full() };
    let asked = app.clone();
    let begun = tokio::task::spawn_blocking(move || begin(&asked.service)).await;
    let (follower, first) = match begun.unwrap_or_else(|_| Err(Problem::fault("the log could not be looked up"))) {
        Ok(begun) => begun,
        Err(problem) => return refuse(&problem),
    };
    let (sender, pieces) = channel(PIECES_AHEAD);
    let waker = WakesAtEnd(follower.waker());
    let (of, news) = (app.clone(), app.news());
    let started = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        let _thread = thread;
        keep_telling(&of, follower, first, &sender);
    });
    if started.is_err() {
        return full();
    }
    answer(LogReading { pieces, waker, app, caller, news, _place: place })
}

/// Tells what is printed until the agents have ended, or no client reads any more.
fn keep_telling(app: &App, mut follower: LogFollower, first: Option<LogPiece>, pieces: &Sender<LogPiece>) {
    let tell = |piece: LogPiece| pieces.blocking_send(piece).is_ok();
    if !first.filter(|piece| !piece.text.is_empty()).is_none_or(tell) {
        return;
    }
    loop {
        let goes_on = match app.service.log_news(&mut follower) {
            Ok(LogNews::Piece(piece)) => tell(piece),
            Ok(LogNews::Quiet) => {
                follower.wait();
                !pieces.is_closed()
            }
            Ok(LogNews::Ended) => {
                tell(LogPiece { ended: true, ..LogPiece::default() });
                false
            }
            Err(_) => false,
        };
        if !goes_on {
            return;
        }
    }
}

fn answer(reading: LogReading) -> Response {
    let lines = stream::unfold(reading, |mut reading| async move {
        loop {
            if !reading.app.still_lets_in(&reading.caller) {
                return None;
            }
            tokio::select! {
                piece = reading.pieces.recv() => {
                    let mut line = serde_json::to_vec(&piece?).unwrap_or_default();
                    line.push(b'\n');
                    return Some((Ok::<Bytes, std::io::Error>(line.into()), reading));
                }
                // An agent may have ended, or another begun.
                heard = reading.news.changed() => match heard {
                    Ok(()) => reading.waker.0.wake(),
                    Err(_) => return None,
                },
                () = reading.app.ends() => return None,
            }
        }
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    response
}
