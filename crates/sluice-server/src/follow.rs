//! Whoever reads the log, of everything or of one task or run, and may wait for more. There is one way to do it: a place under the
//! limits, no thread while nothing happens, pages that are bounded, and an end when the token is revoked.

pub(crate) mod glob;
pub(crate) mod live;
pub(crate) mod worker_socket;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use sluice_api::Problem;
use sluice_home::id::{RunId, TaskId};
use sluice_store::Cursor;
use tokio::sync::watch;

use crate::app::App;
use crate::app::feed::{PAGE, RenderedEvent};
use crate::caller::RequestCaller;
use crate::follow::glob::Glob;
use crate::limits::connections::ConnectionSlot;

pub(crate) const LINES: &str = "application/x-ndjson";

#[derive(Debug, Default)]
pub(crate) struct EventFilter {
    pub(crate) kind: Option<Glob>,
    /// Only those since a time, as events have it.
    pub(crate) since: Option<String>,
    /// Only those of what begins with this id.
    pub(crate) correlation: Option<String>,
}

impl EventFilter {
    fn is_everything(&self) -> bool {
        self.kind.is_none() && self.since.is_none() && self.correlation.is_none()
    }

    fn fits(&self, told: &RenderedEvent) -> bool {
        self.kind.as_ref().is_none_or(|pattern| pattern.fits(&told.kind))
            && self.since.as_deref().is_none_or(|since| told.time.as_str() >= since)
            && self.correlation.as_deref().is_none_or(|begins| told.correlation.starts_with(begins))
    }
}

/// What a client reads, and how far it has come.
pub(crate) enum FollowSource {
    Everything {
        /// The place of the last event that was read.
        after: Cursor,
        wanted: Arc<EventFilter>,
    },
    One {
        of: FollowedSubject,
        /// The number of the last event that was read.
        after: u64,
        /// Up to here everything of it has been read.
        known: Option<Cursor>,
    },
}

/// The one task or run that a client follows.
#[derive(Clone, Debug)]
pub(crate) enum FollowedSubject {
    Task(TaskId),
    Run(RunId),
}

impl FollowedSubject {
    fn as_str(&self) -> &str {
        match self {
            FollowedSubject::Task(id) => id.as_str(),
            FollowedSubject::Run(id) => id.as_str(),
        }
    }
}

/// The place of the last event that there is.
pub(crate) async fn end_of_log(app: Arc<App>) -> Result<Cursor, Problem> {
    let end = tokio::task::spawn_blocking(move || app.service.home().tasks.end_of_log()).await;
    end.unwrap_or_else(|_| Err(Problem::fault("the log could not be read")))
}

pub(crate) struct FollowReader {
    app: Arc<App>,
    caller: RequestCaller,
    source: FollowSource,
    follow: bool,
    /// Why no more could be read though there may be more.
    broken: Option<String>,
    news: watch::Receiver<u64>,
    revoked: watch::Receiver<()>,
    /// Their place among those who follow.
    _place: Option<ConnectionSlot>,
}

impl FollowReader {
    pub(crate) fn begin(
        app: Arc<App>,
        caller: RequestCaller,
        source: FollowSource,
        follow: bool,
    ) -> Result<FollowReader, Problem> {
        app.touch();
        let place = match follow.then(|| app.place(&caller)) {
            None => None,
            Some(Some(place)) => Some(place),
            Some(None) => {
                let problem = Problem::unavailable("too many follow the log already, with this token or in all");
                return Err(problem.hint("ask without `follow`, or try again later"));
            }
        };
        Ok(FollowReader {
            news: app.news(),
            revoked: app.revoked(),
            app,
            caller,
            source,
            follow,
            broken: None,
            _place: place,
        })
    }

    /// The next events; `None` when there are no more and the client waits for no more.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<RenderedEvent>>> {
        loop {
            // What happens from here on is news.
            self.news.borrow_and_update();
            self.revoked.borrow_and_update();
            // A token that is revoked meanwhile opens nothing more.
            if !self.app.still_lets_in(&self.caller) {
                return None;
            }
            let (events, is_all) = match self.page().await {
                Ok(page) => page,
                Err(problem) => {
                    self.broken = Some(problem.message);
                    return None;
                }
            };
            if !events.is_empty() {
                return Some(events);
            }
            if !is_all {
                continue;
            }
            if !self.follow || self.app.is_stopping() {
                return None;
            }
            tokio::select! {
                heard = self.news.changed() => heard.ok()?,
                heard = self.revoked.changed() => heard.ok()?,
                () = self.app.ends() => {}
            }
        }
    }

    /// What comes next and is wanted, and whether there was nothing more to read.
    async fn page(&mut self) -> Result<(Vec<Arc<RenderedEvent>>, bool), Problem> {
        match &mut self.source {
            FollowSource::Everything { after, wanted } => {
                let page = everything(&self.app, *after, wanted.clone(), self.follow).await?;
                *after = page.last.unwrap_or(*after);
                Ok((page.events, page.last.is_none()))
            }
            FollowSource::One { of, after, known } => {
                if let Some(end) = known.and_then(|known| self.app.feed.quiet_until(of.as_str(), known)) {
                    *known = Some(end);
                    return Ok((Vec::new(), true));
                }
                // Everything up to here is stored, so that what is read now has it.
                let end = self.app.feed.end();
                let events = of_one(&self.app, of.clone(), *after).await?;
                match events.last() {
                    Some(last) => *after = last.cursor.0,
                    None => *known = end,
                }
                let is_all = events.is_empty();
                Ok((events, is_all))
            }
        }
    }

    pub(crate) fn lines(self) -> Response {
        let lines = stream::unfold(Some(self), |reading| async move {
            let mut reading = reading?;
            let Some(events) = reading.next().await else {
                // An answer that ends too early must not look like all there is.
                return reading.broken.take().map(|why| (Err(std::io::Error::other(why)), None));
            };
            let mut lines = Vec::with_capacity(events.iter().map(|told| told.line.len() + 1).sum());
            for told in events {
                lines.extend_from_slice(&told.line);
                lines.push(b'\n');
            }
            Some((Ok::<Bytes, std::io::Error>(lines.into()), Some(reading)))
        });
        let mut response = Response::new(Body::from_stream(lines));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
        response
    }
}

struct FollowPage {
    events: Vec<Arc<RenderedEvent>>,
    /// The place of the last event, wanted or not.
    last: Option<Cursor>,
}

/// The next page of everything: from what is ready, else from the store. It is filtered on a thread that may take its time.
async fn everything(
    app: &Arc<App>,
    after: Cursor,
    wanted: Arc<EventFilter>,
    follow: bool,
) -> Result<FollowPage, Problem> {
    let is_everything = wanted.is_everything();
    let chosen = move |page: Vec<Arc<RenderedEvent>>| {
        let last = page.last().map(|told| told.cursor);
        FollowPage { events: page.into_iter().filter(|told| wanted.fits(told)).collect(), last }
    };
    if let Some(ready) = app.feed.after(after).filter(|_| follow) {
        if ready.is_empty() || is_everything {
            return Ok(chosen(ready));
        }
        return tokio::task::spawn_blocking(move || chosen(ready)).await.map_err(|_| ending());
    }
    let _turn = app.reading.acquire().await.map_err(|_| ending())?;
    let asked = app.clone();
    let read = move || {
        let page = asked.service.events(after, PAGE)?;
        Ok(chosen(page.into_iter().map(|(cursor, event)| RenderedEvent::new(cursor, event)).collect()))
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(ending()))
}

async fn of_one(app: &Arc<App>, of: FollowedSubject, after: u64) -> Result<Vec<Arc<RenderedEvent>>, Problem> {
    let _turn = app.reading.acquire().await.map_err(|_| ending())?;
    let asked = app.clone();
    let read = move || {
        let page = match &of {
            FollowedSubject::Task(id) => asked.service.task_events(id, after, PAGE)?,
            FollowedSubject::Run(id) => asked.service.run_events(id, after, PAGE)?,
        };
        Ok(page.into_iter().map(|(number, event)| RenderedEvent::new(Cursor(number), event)).collect())
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(ending()))
}

fn ending() -> Problem {
    Problem::unavailable("the engine is ending")
}
