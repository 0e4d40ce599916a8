//! The thread that keeps the store owned, and says until when what this engine has started may go on.
//!
//! It asks for another term long before the last is over, and goes on asking while the store cannot be reached. Whoever
//! looks after processes and workers ([`Fence`]) hears of every term, and that the store is lost, and sees to it that
//! nothing goes on beyond. That works without this thread: what is not heard of is over.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use sluice_store::{Ownership, StoreError, Writer};

use super::threads::{SharedWriter, locked};
use super::{HostEvent, TERM};
use crate::ownership::Tenure;

/// How long to wait before a store that did not answer is asked for another term.
const PAUSE: Duration = Duration::from_millis(200);

/// Who looks after what an engine has started outside of the store: it may go on while the store is this engine's, and
/// for no moment longer. A store that only one process can reach needs none ([`NoFence`]).
pub trait Fence: Send + Sync {
    /// Milliseconds by a clock that never goes back, and goes on while the machine sleeps.
    fn now_ms(&self) -> u64;

    /// The store was taken. The last owner before is named.
    fn taken(&self, tenure: &Tenure, before: Option<&str>);

    fn renewed(&self, tenure: &Tenure);

    /// The store does not answer, and why. Everything goes on until the term is over.
    fn unanswered(&self, _why: &StoreError) {}

    /// The store is another engine's: everything is to end. Said again, it changes nothing.
    fn lost(&self);

    /// Whether nothing goes on, so that another may have the store at once.
    fn may_release(&self) -> bool;
}

pub struct NoFence;

impl Fence for NoFence {
    fn now_ms(&self) -> u64 {
        static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let began = BEGAN.get_or_init(std::time::Instant::now);
        u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn taken(&self, _: &Tenure, _: Option<&str>) {}

    fn renewed(&self, _: &Tenure) {}

    fn lost(&self) {}

    fn may_release(&self) -> bool {
        true
    }
}

/// Who owns a store, and for how long without a sign of life.
#[derive(Clone)]
pub struct StoreClaim {
    /// The owner's name. What stands before an `@` is the same whenever the same home is started.
    pub name: String,
    /// Names under which earlier engines of the home owned it, which are surely dead.
    pub formerly: Vec<String>,
    /// How long the store stays its own without a sign of life.
    pub term: Duration,
    pub fence: Arc<dyn Fence>,
}

impl From<&str> for StoreClaim {
    fn from(name: &str) -> StoreClaim {
        StoreClaim { name: name.to_owned(), formerly: Vec::new(), term: TERM, fence: Arc::new(NoFence) }
    }
}

impl StoreClaim {
    /// Takes the store. An engine of the same home that is dead is not waited for where that is known, and for the rest of
    /// its term where it is not: then a copy of the home may be at work.
    pub(super) fn take(&self, writer: &mut dyn Writer) -> Result<Tenure, StoreError> {
        let (asked_ms, ownership) = match self.ask(writer) {
            (_, Err(StoreError::Owned { by, .. })) if self.formerly.contains(&by) => {
                writer.own(&by, self.term)?;
                self.ask(writer)
            }
            (_, Err(StoreError::Owned { by, remaining })) if self.is_of_same_home(&by) => {
                std::thread::park_timeout(remaining + PAUSE);
                self.ask(writer)
            }
            answer => answer,
        };
        let ownership = ownership.inspect_err(|error| {
            if matches!(error, StoreError::Owned { .. }) {
                self.fence.lost(); // whatever an earlier engine of this home has left is not to go on
            }
        })?;
        let tenure = Tenure::taken(ownership.epoch, asked_ms, self.term);
        self.fence.taken(&tenure, ownership.before.as_deref());
        Ok(tenure)
    }

    fn is_of_same_home(&self, other: &str) -> bool {
        let home = |name: &str| name.split_once('@').map(|(home, _)| home.to_owned());
        home(other).is_some_and(|other| home(&self.name) == Some(other))
    }

    /// Asks for a term. When it was asked counts, not when it was answered.
    fn ask(&self, writer: &mut dyn Writer) -> (u64, Result<Ownership, StoreError>) {
        (self.fence.now_ms(), writer.own(&self.name, self.term))
    }
}

pub(super) struct OwnershipThread {
    pub(super) writer: SharedWriter,
    pub(super) claim: StoreClaim,
    pub(super) tenure: Tenure,
    pub(super) messages: Sender<HostEvent>,
    /// Ends it when the other side is gone.
    pub(super) stop: Receiver<()>,
}

impl OwnershipThread {
    pub(super) fn run(mut self) {
        let fence = self.claim.fence.clone();
        let mut wait = Duration::ZERO;
        loop {
            let due = Duration::from_millis(self.tenure.ask_at_ms().saturating_sub(fence.now_ms()));
            match self.stop.recv_timeout(due.max(wait)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            wait = PAUSE;
            let (asked_ms, answer) = self.claim.ask(&mut **locked(&self.writer));
            let kept = match answer {
                Ok(ownership) => self.tenure.renewed(ownership.epoch, asked_ms).is_ok(),
                Err(StoreError::LostOwnership | StoreError::Owned { .. }) => false,
                Err(error @ StoreError::Gone { .. }) => return drop(self.messages.send(HostEvent::Failed(error))),
                // Whatever else is wrong, it may pass; until then nothing goes on beyond the term.
                Err(error) => {
                    fence.unanswered(&error);
                    continue;
                }
            };
            if !kept {
                fence.lost();
                let _ = self.messages.send(HostEvent::Failed(StoreError::LostOwnership));
                return;
            }
            fence.renewed(&self.tenure);
            wait = Duration::ZERO;
        }
    }
}
