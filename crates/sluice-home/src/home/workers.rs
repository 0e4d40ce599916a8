//! What the engine remembers of workers on other machines: who is there, and what each of them holds. What is done with it
//! stands in [`crate::roster`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use serde_json::Value;
use sluice_api::control::AttemptStatus;
use sluice_core::id::{Dispatch, RunId, WorkerId};
use sluice_core::recipe::StepId;
use sluice_core::run::Perform;
use sluice_store::StreamId;

use crate::read::runs::performance;

/// Takes a message to a worker that listens. It must not block.
pub type WorkerSink = Box<dyn Fn(Value) + Send>;

#[derive(Default)]
pub struct Roster {
    pub(crate) inner: Mutex<RosterState>,
    pub(crate) messages: AtomicU64,
    pub(crate) connections: AtomicU64,
}

#[derive(Default)]
pub(crate) struct RosterState {
    pub(crate) workers: BTreeMap<WorkerId, RemoteWorker>,
    /// What is handed out, by the number of its handing-out.
    pub(crate) jobs: BTreeMap<Dispatch, LeasedStep>,
    /// Attempts that are over, the latest last.
    pub(crate) over: VecDeque<EndedAttempt>,
    /// Who did a step last, until the engine ends.
    pub(crate) did: BTreeMap<(RunId, StepId), WorkerId>,
    /// Handed out since a caller last read this count.
    pub(crate) assigned: usize,
}

pub(crate) struct EndedAttempt {
    pub(crate) name: String,
    pub(crate) worker: WorkerId,
    /// Its report was taken, which said this.
    pub(crate) counted_as: Option<AttemptStatus>,
}

pub(crate) struct RemoteWorker {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) role: String,
    /// The token it registered with; `None`: a person's.
    pub(crate) keeper: Option<String>,
    /// It can be given work.
    pub(crate) is_present: bool,
    /// The connection it listens on, and the way there.
    pub(crate) listens: Option<(u64, WorkerSink)>,
    /// How often it has come and gone: who waits for it to come back must not take one absence for another.
    pub(crate) comings: u64,
    pub(crate) registered_at_ms: i64,
    /// The version of the work protocol that it speaks; `None`: the first.
    pub(crate) protocol: Option<u32>,
    /// Which of those that have its id.
    pub(crate) instance: Option<String>,
    /// It is there, or may come back in a moment.
    pub(crate) is_awaited: bool,
    /// It finishes what it is at, and takes no more.
    pub(crate) is_finishing: bool,
    /// When it last gave a sign of life, in milliseconds since 1970.
    pub(crate) heard: Option<i64>,
    /// Its disk has no room for another step.
    pub(crate) is_full: bool,
}

pub(crate) struct LeasedStep {
    pub(crate) worker: WorkerId,
    pub(crate) mission: RunId,
    pub(crate) stream: StreamId,
    pub(crate) effect: String,
    pub(crate) wanted: Perform,
    /// What the worker calls its attempt, once it has begun.
    pub(crate) attempt: Option<String>,
    /// Its report is on its way, which says this: whatever is withdrawn now is its own end.
    pub(crate) reports: Option<AttemptStatus>,
    /// When its progress was last written down.
    pub(crate) progressed: Option<i64>,
    /// It may bring its work into the branch of the run.
    pub(crate) has_turn: bool,
    /// It is done, and waits for the items before it.
    pub(crate) waits_for_turn: bool,
    /// Where the work of the run stood when the worker was told.
    pub(crate) started_from: Option<Option<String>>,
}

impl LeasedStep {
    /// The name of the session that carries it out.
    pub(crate) fn performance(&self) -> String {
        let Perform { step, attempt, part, .. } = self.wanted;
        performance(&self.mission, step, attempt, part)
    }
}
