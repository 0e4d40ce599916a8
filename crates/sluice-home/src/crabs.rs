//! The crabs of colonies: workers that are not this machine's own hands. Who is there, what each of them holds, and the
//! messages for those that listen.
//!
//! The engine decides who gets what ([`sluice_engine::scheduler`]) and when it is lost; this remembers what it said.

mod merge_turn;
pub(crate) mod presence;
pub(crate) mod protocol;
mod speech;
mod work;

pub use presence::{Register, WorkerConnection};
pub use speech::MessageSubject;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_api::work::{Envelope, PROTOCOL, ToWorker};
use sluice_core::recipe::StepId;
use sluice_core::run::{AttemptPart, Perform};
use sluice_engine::host::EngineClock;
use sluice_store::StreamId;

use crate::ground::Home;
use crate::runs::performance;

/// Takes a message to a crab that listens. It must not block.
pub type WorkerSink = Box<dyn Fn(Value) + Send>;

/// All crabs.
#[derive(Default)]
pub struct Roster {
    inner: Mutex<RosterState>,
    messages: AtomicU64,
    connections: AtomicU64,
}

#[derive(Default)]
struct RosterState {
    crabs: BTreeMap<String, RemoteWorker>,
    /// What is handed out, by the number of its handing-out.
    jobs: BTreeMap<u64, LeasedStep>,
    /// Attempts that are over, the latest last.
    over: VecDeque<EndedAttempt>,
    /// Who did a step last, until the engine ends.
    did: BTreeMap<(String, StepId), String>,
    /// Handed out since somebody last asked.
    assigned: usize,
}

/// An attempt that is over.
struct EndedAttempt {
    name: String,
    crab: String,
    /// Its report was taken, which said this.
    counted_as: Option<String>,
}

struct RemoteWorker {
    colony: String,
    name: String,
    role: String,
    /// The token it registered with; `None`: a person's.
    keeper: Option<String>,
    /// It can be given work.
    is_present: bool,
    /// The connection it listens on, and the way there.
    listens: Option<(u64, WorkerSink)>,
    /// How often it has come and gone: who waits for it to come back must not take one absence for another.
    comings: u64,
    registered_at_ms: i64,
    /// Which of those that have its id.
    instance: Option<String>,
    /// It is there, or may come back in a moment.
    is_awaited: bool,
    /// It finishes what it is at, and takes no more.
    is_finishing: bool,
}

/// A part of a step that a crab holds.
struct LeasedStep {
    crab: String,
    mission: String,
    stream: StreamId,
    effect: String,
    wanted: Perform,
    /// What the crab calls its attempt, once it has begun.
    attempt: Option<String>,
    /// Its report is on its way, which says this: whatever is withdrawn now is its own end.
    reports: Option<String>,
    /// When its progress was last written down.
    progressed: Option<i64>,
    /// It may bring its work into the branch of the run.
    has_turn: bool,
    /// It is done, and waits for the items before it.
    waits_for_turn: bool,
    /// Where the work of the run stood when the crab was told.
    started_from: Option<Option<String>>,
}

impl LeasedStep {
    /// The name of the session that carries it out.
    fn performance(&self) -> String {
        let Perform { step, attempt, part, .. } = self.wanted;
        performance(&self.mission, step, attempt, part)
    }
}

/// What a crab is to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepHolder {
    /// Which crab.
    pub crab: String,
    /// It has begun.
    pub has_begun: bool,
}

impl Roster {
    fn inner(&self) -> MutexGuard<'_, RosterState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The crab that holds a step.
    pub fn holder(&self, mission: &str, step: StepId) -> Option<StepHolder> {
        let inner = self.inner();
        let job = inner.jobs.values().find(|job| job.mission == mission && job.wanted.step == step)?;
        Some(StepHolder { crab: job.crab.clone(), has_begun: job.attempt.is_some() })
    }

    /// The crab that did a step last, as long as that is remembered.
    pub fn did(&self, mission: &str, step: StepId) -> Option<String> {
        self.inner().did.get(&(mission.to_owned(), step)).cloned()
    }

    /// Whether a crab is at this: a part of an attempt, by its name.
    pub fn is_at(&self, performance: &str) -> bool {
        self.inner().jobs.values().any(|job| job.performance() == performance)
    }

    /// All crabs, as they are shown.
    pub fn list(&self) -> Vec<Value> {
        let inner = self.inner();
        inner.crabs.iter().map(|(id, crab)| inner.shown(id, crab)).collect()
    }

    /// The holder of this token is told of no crab of another colony.
    pub(crate) fn must_see(&self, keeper: Option<&str>, id: &str) -> Result<(), Problem> {
        if self.inner().sees(keeper, id) { Ok(()) } else { Err(presence::unknown(id)) }
    }

    /// How many steps have been handed out since this was last asked.
    pub fn take_assigned(&self) -> usize {
        std::mem::take(&mut self.inner().assigned)
    }

    /// A message about what is handed out, in the envelope that crabs know.
    fn envelope(&self, ground: &Home, dispatch: u64, about: &LeasedStep, kind: ToWorker) -> Value {
        let run = about.attempt.clone().unwrap_or_else(|| usual_name(&about.mission, dispatch));
        let task = match &kind {
            ToWorker::Assigned(order) => Some(order.task_id.clone()),
            ToWorker::Stop(_) | ToWorker::Revoked(_) | ToWorker::Held(_) => None,
        };
        self.enveloped(ground, [Some(about.mission.clone()), task, Some(run)], kind)
    }

    /// The same for a message about this mission, task and run, or about none.
    fn enveloped<K: Serialize>(&self, ground: &Home, about: [Option<String>; 3], kind: K) -> Value {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let sent_at_ms = ground.clock.now().0;
        let [mission_id, task_id, run_id] = about;
        let message_id = Some(format!("m{sent_at_ms}-{number}"));
        let message = Envelope { message_id, mission_id, task_id, run_id, kind, sent_at_ms: Some(sent_at_ms) };
        serde_json::to_value(message).unwrap_or_default()
    }
}

impl RosterState {
    /// Forgets those of these crabs that have been gone for longest, so many at most. Which.
    fn forget_gone(&mut self, most: usize, of: impl Fn((&str, &RemoteWorker)) -> bool) -> Vec<String> {
        let gone = self.crabs.iter().filter(|(id, crab)| !crab.is_present && of((id, crab)));
        let mut gone: Vec<(i64, String)> = gone.map(|(id, crab)| (crab.registered_at_ms, id.clone())).collect();
        gone.sort();
        gone.truncate(most);
        gone.iter().for_each(|(_, id)| drop(self.crabs.remove(id)));
        gone.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether the holder of this token sees a crab: one of the colony of their own crabs. A person sees all.
    fn sees(&self, keeper: Option<&str>, crab: &str) -> bool {
        let Some(keeper) = keeper else { return true };
        let mut own = self.crabs.iter().filter(|(_, crab)| crab.keeper.as_deref() == Some(keeper));
        own.any(|(own, _)| self.are_of_one_colony(own, crab))
    }

    /// Whether both are there and of one colony.
    fn are_of_one_colony(&self, one: &str, other: &str) -> bool {
        let colony = |id: &str| self.crabs.get(id).map(|crab| &crab.colony);
        colony(one).is_some_and(|one| Some(one) == colony(other))
    }

    fn shown(&self, id: &str, crab: &RemoteWorker) -> Value {
        let mut held = self.jobs.values().filter(|job| job.crab == id);
        let holds = held.next();
        let state = match (crab.is_present, holds) {
            (false, _) => "offline",
            (true, Some(_)) => "busy",
            (true, None) => "idle",
        };
        json!({
            "crab_id": id,
            "colony_id": crab.colony,
            "name": crab.name,
            "role": crab.role,
            "state": state,
            "current_run_id": holds.and_then(|job| job.attempt.as_ref()),
            "registered_at_ms": crab.registered_at_ms,
            "protocol": PROTOCOL,
        })
    }

    /// The handings-out that a crab holds.
    fn held_by(&self, crab: &str) -> Vec<u64> {
        self.jobs.iter().filter(|(_, job)| job.crab == crab).map(|(dispatch, _)| *dispatch).collect()
    }
}

/// What an attempt is called unless its crab calls it something else.
fn usual_name(mission: &str, dispatch: u64) -> String {
    format!("{mission}-{dispatch}")
}

/// The name of a step's task; of a part of one, with that part.
pub(crate) fn task_id(mission: &str, step: &str, part: AttemptPart) -> String {
    match part {
        AttemptPart::Whole => format!("{mission}.{step}"),
        AttemptPart::Item(_) | AttemptPart::Turn(_) | AttemptPart::Arbiter(_) => format!("{mission}.{step}.{part}"),
    }
}
