//! What all requests share: the home, the limits, what is counted, and the end.

pub(crate) mod boards;
pub(crate) mod feed;
pub(crate) mod page_door;
pub(crate) mod request_span;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use serde::Serialize;
use sluice_api::Problem;
use sluice_home::ask::{Requester, Service};
use sluice_telemetry::caused_by;
use tokio::sync::{Semaphore, watch};

use crate::answer::{json, refuse};
use crate::caller::RequestCaller;
use crate::limits::connections::{ConnectionSlot, DoorLimits};
use crate::limits::{DenialRecords, MOST_READING, TokenRates};
use boards::BoardCache;
use feed::EventFeed;
use page_door::PageDoor;
use request_span::request_span;

/// An engine that had nothing to do for so long ends; the next command starts another.
const IDLE: Duration = Duration::from_secs(600);

/// The upper bounds of how long requests took, in seconds: those that OpenTelemetry has for servers.
const DURATIONS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

pub(crate) struct App {
    pub(crate) service: Service,
    pub(crate) rates: TokenRates,
    pub(crate) records: DenialRecords,
    pub(crate) counts: RequestCounts,
    pub(crate) socket: DoorLimits,
    pub(crate) network: DoorLimits,
    /// Room for those who read the log at the moment.
    pub(crate) reading: Semaphore,
    serves: Option<String>,
    began: Instant,
    /// When the last request came, in milliseconds since the start.
    asked: AtomicU64,
    ending: watch::Sender<bool>,
    /// Changes with everything that happens.
    pub(crate) news: watch::Sender<u64>,
    pub(crate) feed: EventFeed,
    pub(crate) page_door: PageDoor,
    pub(crate) boards: BoardCache,
    revoked: watch::Sender<()>,
    /// The keys under which something is being made.
    pub(crate) keys: Mutex<BTreeSet<String>>,
}

impl App {
    pub(crate) fn new(service: Service, serves: Option<String>) -> App {
        let began = Instant::now();
        App {
            rates: TokenRates::new({
                let home = service.home().clone();
                move || home.context.config().serve.clone()
            }),
            service,
            records: DenialRecords::default(),
            counts: RequestCounts::default(),
            socket: DoorLimits::default(),
            network: DoorLimits::default(),
            reading: Semaphore::new(MOST_READING),
            serves,
            began,
            asked: AtomicU64::new(0),
            ending: watch::Sender::new(false),
            news: watch::Sender::new(0),
            feed: EventFeed::default(),
            page_door: PageDoor::default(),
            boards: BoardCache::default(),
            revoked: watch::Sender::new(()),
            keys: Mutex::default(),
        }
    }

    /// Notes that a request has just come.
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

    pub(crate) async fn ends(&self) {
        let _ = self.ending.subscribe().wait_for(|ends| *ends).await;
    }

    /// Where it listens over the network, if it does.
    pub(crate) fn serves(&self) -> Option<&str> {
        self.serves.as_deref()
    }

    /// Where the page is: at the door of the network, else at the door of its own, which this opens.
    pub(crate) fn page_url(&self) -> Result<String, Problem> {
        match &self.serves {
            // Every address of this machine is no address for a browser.
            Some(url) => Ok(url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")),
            None => self.page_door.open(&self.service.home().context.places.page()),
        }
    }

    /// Opens the page's door again for sessions of an earlier engine, and closes it when none is left.
    pub(crate) fn tend_page_door(&self) {
        match (self.serves.is_none() && self.service.wants_page(), self.page_door.is_open()) {
            (true, false) => {
                if let Err(problem) = self.page_url() {
                    tracing::warn!("{}", problem.message);
                }
            }
            (false, true) => self.page_door.close(),
            (true, true) | (false, false) => {}
        }
    }

    /// Something of ours broke: it is written down, and the caller is told.
    pub(crate) fn broke(&self, why: &str) -> Response {
        tracing::error!("a request broke: {why}");
        refuse(&Problem::fault("something of Sluice's own broke while it answered; see the log"))
    }

    pub(crate) fn has_followers(&self) -> bool {
        self.socket.has_followers() || self.network.has_followers()
    }

    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// A token has been revoked: each connection looks whether it was its own.
    pub(crate) fn revoke(&self) {
        self.revoked.send_replace(());
    }

    pub(crate) fn revoked(&self) -> watch::Receiver<()> {
        self.revoked.subscribe()
    }

    /// Whether a caller who was let in still would be.
    pub(crate) fn still_lets_in(&self, caller: &RequestCaller) -> bool {
        match caller {
            RequestCaller::Process(_) => true,
            RequestCaller::Bearer(bearer) => self.service.still_lets_in(&bearer.token),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        let since = self.began.elapsed().saturating_sub(Duration::from_millis(self.asked.load(Ordering::Relaxed)));
        // A browser that follows is looked at; one that was closed follows no more.
        let is_looked_at = self.page_door.is_open() && self.network.has_followers();
        self.serves.is_none() && since >= IDLE && !is_looked_at && self.service.is_idle()
    }

    pub(crate) fn place(&self, caller: &RequestCaller) -> Option<ConnectionSlot> {
        self.room(caller).follow(caller.token())
    }

    pub(crate) fn crab_place(&self, caller: &RequestCaller) -> Option<ConnectionSlot> {
        self.room(caller).listen(caller.token())
    }

    fn room(&self, caller: &RequestCaller) -> &DoorLimits {
        match caller {
            RequestCaller::Process(_) => &self.socket,
            RequestCaller::Bearer(_) => &self.network,
        }
    }
}

#[derive(Debug)]
pub(crate) struct RequestCounts {
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

impl Default for RequestCounts {
    fn default() -> RequestCounts {
        RequestCounts {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATIONS)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// Without the status: it would multiply the buckets, and the counter has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DurationLabels {
    pub(crate) method: String,
    pub(crate) route: String,
}

/// Asks on a thread that may wait, and answers with what came of it.
pub(crate) async fn ask<T: Serialize>(
    app: Arc<App>,
    caller: RequestCaller,
    question: impl FnOnce(&Service, &Requester) -> Result<T, Problem> + Send + 'static,
) -> Response {
    app.touch();
    let (asked, span) = (app.clone(), request_span());
    let done = tokio::task::spawn_blocking(move || {
        let who = caller.who(&asked.service).map_err(|problem| (None, Box::new(problem)))?;
        // Written here as well: a long answer would keep all others waiting.
        match caused_by(span, || who.asking(|| question(&asked.service, &who))) {
            Ok(answer) => Ok(json(StatusCode::OK, &answer)),
            Err(problem) => Err((Some(who), Box::new(problem))),
        }
    });
    match done.await {
        Ok(Ok(response)) => response,
        Ok(Err((who, problem))) => {
            let mut response = refuse(&problem);
            // The record of refused requests reads it.
            if let Some(who) = who {
                response.extensions_mut().insert(who);
            }
            response
        }
        Err(broken) => app.broke(&broken.to_string()),
    }
}
