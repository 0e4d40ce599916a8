//! What this engine has started goes on only while the store is its own. For a store that other engines can own too: in
//! PostgreSQL, on whatever machine they are. The home's own file needs nothing of the kind, as its lock rules.
//!
//! Until when that is, is written where every session and script of the home watches for it (`sluice_os`: `shim`), so
//! it also holds for an engine that is stopped, dead, or cut off from the store. What it is about to do itself, and what it
//! tells workers, the engine asks here first.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sluice_api::Problem;
use sluice_engine::host::{EngineClock, Fence};
use sluice_engine::ownership::Tenure;
use sluice_os::session::{KeeperTerm, LeaseFolder, OwnershipLease, boot_ms};
use sluice_store::StoreError;
use sluice_worker::machine::identity::HomeIdentity;
use sluice_worker::perform::fence::StoreFence;
use sluice_worker::undone::described;

use crate::settings::clock::{WallClock, written};

pub(crate) struct HomeFence {
    leases: LeaseFolder,
    home: String,
    state: Mutex<FenceState>,
    changed: Condvar,
    running: AtomicUsize,
    /// Sessions that live, as far as is known: asked when the engine ends.
    sessions: Mutex<Option<Box<dyn Fn() -> bool + Send>>>,
}

#[derive(Default)]
struct FenceState {
    tenure: Option<Tenure>,
    /// The first ownership since which the store has had no other owner.
    since: u64,
    /// Since when everything is paused, and why.
    paused: Option<String>,
}

impl HomeFence {
    pub(crate) fn new(folder: PathBuf, identity: &HomeIdentity) -> Result<HomeFence, Problem> {
        let leases = LeaseFolder::new(folder).map_err(|failure| Problem::fault(described(&failure)))?;
        Ok(HomeFence {
            leases,
            home: identity.home.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
            running: AtomicUsize::new(0),
            sessions: Mutex::new(None),
        })
    }

    pub(crate) fn asks(&self, has_sessions: impl Fn() -> bool + Send + 'static) {
        *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(has_sessions));
    }

    fn state(&self) -> MutexGuard<'_, FenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when everything is paused that this engine has started, and why; nothing, if it goes on.
    pub(crate) fn paused(&self) -> Option<String> {
        let (now_ms, state) = (boot_ms(), self.state());
        let over = state.tenure.filter(|tenure| !tenure.is_lost() && !tenure.may_act(now_ms));
        // A store that hangs has not said why yet.
        state.paused.clone().or_else(|| over.map(|tenure| paused_since(tenure, now_ms)))
    }

    /// Whether the store is another's.
    pub(crate) fn is_lost(&self) -> bool {
        self.state().tenure.is_some_and(|tenure| tenure.is_lost())
    }

    /// Says until when everything may go on. If it cannot be said, everything stops when what was said last is over.
    fn say(&self, kept: KeeperTerm) {
        if let Err(failure) = self.leases.say(kept) {
            tracing::warn!("agents and scripts may be paused: {}", described(&failure));
        }
        self.changed.notify_all();
    }
}

impl Fence for HomeFence {
    fn now_ms(&self) -> u64 {
        boot_ms()
    }

    fn taken(&self, tenure: &Tenure, before: Option<&str>) {
        let said = self.leases.said();
        let is_own = before.is_some_and(|name| name.split('@').next() == Some(self.home.as_str()));
        let mut state = self.state();
        // What an earlier engine of this home has left goes on, unless somebody else has been at its work since.
        state.since = if is_own && said.since > 0 { said.since } else { tenure.epoch() };
        state.tenure = Some(*tenure);
        self.say(KeeperTerm { until_ms: tenure.until_ms(), since: state.since, epoch: tenure.epoch() });
    }

    fn renewed(&self, tenure: &Tenure) {
        let mut state = self.state();
        if state.tenure.is_some_and(|tenure| !tenure.is_lost()) {
            state.tenure = Some(*tenure);
            self.say(KeeperTerm { until_ms: tenure.until_ms(), since: state.since, epoch: tenure.epoch() });
            if state.paused.take().is_some() {
                tracing::info!("the store answers again: agents and scripts go on");
            }
        }
    }

    fn unanswered(&self, why: &StoreError) {
        let (now_ms, mut state) = (boot_ms(), self.state());
        let Some(tenure) = state.tenure.filter(|tenure| !tenure.is_lost() && !tenure.may_act(now_ms)) else { return };
        if state.paused.is_none() {
            let words = format!("{}: {}", paused_since(tenure, now_ms), described(why));
            tracing::warn!("{words}");
            state.paused = Some(words);
        }
    }

    fn lost(&self) {
        let mut state = self.state();
        let epoch = state.tenure.map_or_else(|| self.leases.said().epoch, |tenure| tenure.epoch());
        state.since = epoch + 1;
        let mut lost = state.tenure.unwrap_or_else(|| Tenure::taken(epoch, 0, std::time::Duration::ZERO));
        lost.lose();
        state.tenure = Some(lost);
        self.say(KeeperTerm { until_ms: 0, since: state.since, epoch });
    }

    fn may_release(&self) -> bool {
        if self.is_lost() {
            return false; // there is nothing to release
        }
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = self.running.load(Ordering::SeqCst) > 0 || sessions.as_ref().is_some_and(|has| has());
        if is_busy {
            return false;
        }
        // Whatever is begun all the same begins when an engine of this home owns the store again.
        let mut state = self.state();
        let epoch = state.tenure.take().map_or(0, |tenure| tenure.epoch());
        self.say(KeeperTerm { until_ms: 0, since: state.since, epoch });
        true
    }
}

fn paused_since(tenure: Tenure, now_ms: u64) -> String {
    let ago = i64::try_from(now_ms.saturating_sub(tenure.until_ms())).unwrap_or_default();
    let since = written(WallClock::default().now().0 - ago);
    format!("agents and scripts are paused since {since}, until the store answers")
}

impl StoreFence for HomeFence {
    fn lease(&self) -> OwnershipLease {
        self.leases.of(self.state().tenure.map_or(0, |tenure| tenure.epoch()))
    }

    fn may_act(&self) -> bool {
        self.state().tenure.is_some_and(|tenure| tenure.may_act(boot_ms()))
    }

    fn until_it_may_act(&self) -> bool {
        let waits =
            |state: &mut FenceState| !state.tenure.is_some_and(|tenure| tenure.is_lost() || tenure.may_act(boot_ms()));
        let state = self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        state.tenure.is_some_and(|tenure| !tenure.is_lost())
    }

    fn script_begins(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    fn script_ends(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}
