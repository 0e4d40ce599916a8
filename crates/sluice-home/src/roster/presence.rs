//! Workers that come and go. One that registers is there until it unregisters or loses a lease; one that listens is gone
//! when its connection is, but keeps its work for a moment, in case it comes back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use sluice_api::control::{Crab, Register};
use sluice_api::event::{CrabChanged, CrabRegistered};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::work::{Heartbeat, OLDEST, PROTOCOL, WORKER_ELSEWHERE, WORKSPACES, works_with};
use sluice_core::event_name::EventName;
use sluice_core::machine::RefusalCode;
use sluice_engine::host::EngineClock;
use sluice_engine::reactor::ReactorMessage;
use sluice_engine::workers::{Dispatch, WorkerId, WorkerOffer};

use crate::home::Home;
use crate::home::engine::refusal;
use crate::home::registry::{RegistryChange, RegistryEntry};
use crate::home::workers::{RemoteWorker, Roster, RosterState, WorkerSink};
use crate::roster::groups;
use crate::settings::clock::new_id;
use crate::settings::ids::LOCAL;

/// Workers that are remembered; beyond that, those that have been gone for longest are forgotten.
const MOST_WORKERS: usize = 10_000;

/// Workers that one token can have registered, as many as can listen with it. Those that are gone make room.
const MOST_WORKERS_OF_ONE: usize = 500;

/// In so many parts it is waited for a worker that is away.
const LOOKS: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct RosterEntry {
    colony_id: String,
    name: String,
    role: String,
    keeper: Option<String>,
    instance: Option<String>,
    present: bool,
    listens: bool,
    registered_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<u32>,
}

impl RegistryEntry for RosterEntry {
    const PREFIX: &'static str = "crab/";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerConnection(u64);

impl Roster {
    /// Takes up the workers that an earlier engine knew. Those that listened to it are given a moment to come back.
    pub(crate) fn take_up(&self, home: &Arc<Home>) {
        for (id, entry) in home.registry.all::<RosterEntry>() {
            let id = WorkerId(id);
            let (is_present, listened) = (entry.present, entry.listens);
            let worker = RemoteWorker::from(entry);
            if is_present && worker.may_work() {
                offer(home, &id, &worker, if listened { 0 } else { 1 });
            }
            self.inner().workers.insert(id.clone(), worker);
            if is_present && listened {
                self.leave_unless_back(home, &id);
            }
        }
    }

    /// A worker comes, or comes again.
    pub fn register(&self, home: &Arc<Home>, keeper: Option<&str>, wanted: &Register) -> Result<Crab, Problem> {
        must_be_understood(wanted.protocol)?;
        for (what, text) in [("name", &wanted.name), ("role", &wanted.role)] {
            groups::must_be_a_name(what, text)?;
        }
        let id = match &wanted.crab_id {
            Some(id) => id.clone(),
            None => new_id().map_err(Problem::fault)?,
        };
        groups::must_be_an_id("crab_id", &id)?;
        must_not_be_another(&id)?;
        let id = WorkerId(id);
        let group = groups::find(home, &wanted.colony_id)?.colony_id;
        if self.inner().workers.contains_key(&id) {
            self.must_keep(keeper, id.as_str())?;
            self.must_be_the_same(&id, wanted.instance.as_deref())?;
            let is_other = |worker: &RemoteWorker| worker.group != group || worker.role != wanted.role;
            let moves = self.inner().workers.get(&id).is_some_and(is_other);
            if moves && !self.inner().held_by(&id).is_empty() {
                let message = format!("crab {id} is at work, and can change neither its colony nor its role meanwhile");
                let problem = Problem::new(ProblemStatus::Conflict, "crab_busy", message);
                return Err(problem.hint("register it when it is idle"));
            }
        }
        let entry = RosterEntry {
            colony_id: group,
            name: wanted.name.clone(),
            role: wanted.role.clone(),
            keeper: keeper.map(str::to_owned),
            instance: wanted.instance.clone(),
            present: true,
            listens: false,
            registered_at_ms: home.clock.now().0,
            protocol: wanted.protocol,
        };
        let crowd = self.too_many_of(keeper, &id)?;
        let told = CrabRegistered {
            crab_id: id.to_string(),
            colony_id: entry.colony_id.clone(),
            name: entry.name.clone(),
            role: entry.role.clone(),
        };
        let registered = RegistryChange::new(EventName::WorkerRegistered, id.as_str(), &told);
        let forgotten = self.too_many().into_iter().chain(crowd);
        let registered = forgotten.fold(registered, |change, old| change.remove::<RosterEntry>(old.as_str()));
        let registered = registered.put(id.as_str(), &entry);
        let worker = RemoteWorker::from(entry);
        // It is in force as soon as it is on its way.
        home.registry.record(home, registered).or_else(|it| if it.is_coming() { Ok(()) } else { Err(it) })?;
        offer(home, &id, &worker, 1);
        let mut inner = self.inner();
        let old = inner.workers.remove(&id);
        let comings = old.as_ref().map_or(0, |old| old.comings) + 1;
        let worker = RemoteWorker { listens: old.and_then(|old| old.listens), comings, ..worker };
        let shown = inner.shown(&id, &worker);
        inner.workers.insert(id.clone(), worker);
        await_listening(home, &id, comings);
        Ok(shown)
    }

    /// Workers to be forgotten before another comes.
    fn too_many(&self) -> Vec<WorkerId> {
        let mut inner = self.inner();
        let excess = (inner.workers.len() + 1).saturating_sub(MOST_WORKERS);
        inner.forget_gone(excess, |_| true)
    }

    /// Workers of a token to be forgotten before it registers another one. A token whose workers are all there gets no more.
    fn too_many_of(&self, keeper: Option<&str>, id: &WorkerId) -> Result<Vec<WorkerId>, Problem> {
        let Some(keeper) = keeper else { return Ok(Vec::new()) };
        let is_kept = |worker: &RemoteWorker| worker.keeper.as_deref() == Some(keeper);
        let mut inner = self.inner();
        let kept = || inner.workers.iter().filter(|(other, worker)| *other != id && is_kept(worker));
        let (others, gone) = (kept().count(), kept().filter(|(_, worker)| !worker.is_present).count());
        let excess = (others + 1).saturating_sub(MOST_WORKERS_OF_ONE);
        if gone < excess {
            let message = format!("this token has {others} crabs registered, and that is enough");
            let problem = Problem::new(ProblemStatus::TooMany, "too_many", message);
            return Err(problem.hint("unregister some, or make another token: `sluice token create --scope worker`"));
        }
        Ok(inner.forget_gone(excess, |(other, worker)| other != id && is_kept(worker)))
    }

    /// A worker goes for good. What it holds is given to another.
    pub fn unregister(&self, home: &Arc<Home>, keeper: Option<&str>, id: &str) -> Result<Crab, Problem> {
        self.must_see(keeper, id)?;
        self.must_keep(keeper, id)?;
        let id = &WorkerId::from(id);
        self.gone(home, id, EventName::WorkerLeft);
        let inner = self.inner();
        inner.workers.get(id).map(|worker| inner.shown(id, worker)).ok_or_else(|| unknown(id.as_str()))
    }

    /// A worker listens. What it holds is told again: it may not have heard.
    pub fn connect(
        &self,
        home: &Arc<Home>,
        keeper: Option<&str>,
        id: &str,
        post: WorkerSink,
    ) -> Result<WorkerConnection, Problem> {
        self.must_see(keeper, id)?;
        self.must_keep(keeper, id)?;
        let id = &WorkerId::from(id);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        {
            let mut inner = self.inner();
            let Some(worker) = inner.workers.get_mut(id) else { return Err(unknown(id.as_str())) };
            worker.listens = Some((number, post));
            (worker.is_present, worker.is_awaited) = (true, true);
            worker.comings += 1;
            offer(home, id, worker, 1);
        }
        self.remember(home, id, EventName::WorkerConnected);
        self.heard(home, id);
        self.tell_again(home, id);
        Ok(WorkerConnection(number))
    }

    /// A worker's connection is gone, unless it has another by now.
    pub fn disconnect(&self, home: &Arc<Home>, id: &WorkerId, connection: WorkerConnection) {
        {
            let mut inner = self.inner();
            let Some(worker) = inner.workers.get_mut(id) else { return };
            if worker.listens.as_ref().is_none_or(|(number, _)| *number != connection.0) {
                return;
            }
            worker.listens = None;
            worker.is_present = false;
            offer(home, id, worker, 0); // it keeps what it has, and gets no more
        }
        self.leave_unless_back(home, id);
    }

    /// Gives up a worker that does not come back.
    fn leave_unless_back(&self, home: &Arc<Home>, id: &WorkerId) {
        let Some(comings) = self.inner().workers.get(id).map(|worker| worker.comings) else { return };
        self.leave_after(home, id.clone(), comings, LOOKS);
    }

    /// Waits in a few parts: an engine that was stopped has heard no worker, and knows it by a part that took too long.
    fn leave_after(&self, home: &Arc<Home>, id: WorkerId, comings: u64, parts: u32) {
        let weak = Arc::downgrade(home);
        let part = (home.context.config().workers.reconnect() / i64::from(LOOKS)).max(1);
        let moment = home.clock.now().0.saturating_add(part);
        home.later.at(moment, move || {
            let Some(home) = weak.upgrade() else { return };
            let came = |worker: &RemoteWorker| worker.is_present || worker.comings != comings;
            if home.roster.inner().workers.get(&id).is_none_or(came) {
                return;
            }
            let was_stopped = home.clock.now().0.saturating_sub(moment) > part;
            match if was_stopped { LOOKS } else { parts - 1 } {
                // The loop that waits for moments must not wait for the store.
                0 => {
                    let theirs = home.clone();
                    home.threads.run(move || theirs.roster.gone(&theirs, &id, EventName::WorkerLost));
                }
                left => home.roster.leave_after(&home, id, comings, left),
            }
        });
    }

    /// A worker gave a sign of life: what it holds is its own for another lease.
    pub fn heard(&self, home: &Home, id: &WorkerId) {
        if !home.context.may_act() {
            return; // nobody knows whose it is
        }
        self.note_sign(home, id);
        let at = self.inner().held_by(id);
        home.engine.send(ReactorMessage::Heard { worker: id.clone(), at });
    }

    fn note_sign(&self, home: &Home, id: &WorkerId) {
        self.inner().workers.get_mut(id).into_iter().for_each(|worker| worker.heard = Some(home.clock.now().0));
    }

    /// A worker says what it is at: that is its own for another lease. What it was given and is not at it is told again, and
    /// what it is at and was not given, it is told, is not its any more. So neither side has to hear everything.
    ///
    /// While the store may be another engine's nothing is said: that one may have given the worker's work away, and the worker
    /// pauses what nobody says is its own.
    pub fn signed(&self, home: &Home, id: &WorkerId, sign: &Heartbeat) {
        if !home.context.may_act() {
            return;
        }
        if let (true, Some(worker)) = (sign.finishing, self.inner().workers.get_mut(id)) {
            worker.is_finishing = true;
            offer(home, id, worker, 0);
        }
        self.note_room(home, id, sign.full);
        let Some(at) = &sign.dispatches else { return self.heard(home, id) };
        let at: Vec<Dispatch> = at.iter().copied().map(Dispatch).collect();
        self.note_sign(home, id);
        let engine = &home.engine;
        engine.send(ReactorMessage::Heard { worker: id.clone(), at: at.clone() });
        let held = self.inner().held_by(id);
        if !sign.finishing {
            held.iter().filter(|dispatch| !at.contains(dispatch)).for_each(|dispatch| drop(self.tell(home, *dispatch)));
        }
        if engine.has_taken_up() {
            self.tell_what_is_held(home, id, &at, sign.sent_ms);
        }
    }

    /// A worker whose disk is full keeps what it has and gets no more, until it says that there is room again.
    fn note_room(&self, home: &Home, id: &WorkerId, is_full: bool) {
        let mut inner = self.inner();
        let Some(worker) = inner.workers.get_mut(id).filter(|worker| worker.is_full != is_full) else { return };
        worker.is_full = is_full;
        if is_full {
            tracing::warn!(worker = id.as_str(), "gets no more steps: its disk is full");
            offer(home, id, worker, 0);
        } else {
            tracing::info!(worker = id.as_str(), "has room for steps again");
            inner.offer_again(home, id);
        }
    }

    /// A worker lost a lease: it is not there until it comes again.
    pub(crate) fn lost(&self, home: &Arc<Home>, id: &WorkerId) {
        self.gone(home, id, EventName::WorkerLost);
    }

    fn gone(&self, home: &Arc<Home>, id: &WorkerId, name: EventName) {
        // First: what it held is withdrawn by that, and nothing more is offered in its name.
        if let Some(worker) = self.inner().workers.get_mut(id) {
            (worker.is_present, worker.is_awaited) = (false, false);
            worker.listens = None;
        }
        home.engine.send(ReactorMessage::Left(id.clone()));
        self.remember(home, id, name);
    }

    /// Writes down whether a worker is there. It is only for the next engine: what cannot be written fails nothing.
    fn remember(&self, home: &Home, id: &WorkerId, name: EventName) {
        let Some(entry) = self.inner().workers.get(id).map(entry) else { return };
        let told =
            CrabChanged { crab_id: id.to_string(), colony_id: entry.colony_id.clone(), name: entry.name.clone() };
        let change = RegistryChange::new(name, id.as_str(), &told).put(id.as_str(), &entry);
        if let Err(problem) = home.registry.record(home, change) {
            tracing::warn!(worker = id.as_str(), "{} is not written down: {}", name.word(), problem.message);
        }
    }

    /// A copy of a worker is refused while the worker is there, or may come back in a moment: both would do the same work.
    fn must_be_the_same(&self, id: &WorkerId, instance: Option<&str>) -> Result<(), Problem> {
        let inner = self.inner();
        let Some(worker) = inner.workers.get(id).filter(|worker| worker.is_awaited) else { return Ok(()) };
        match (worker.instance.as_deref(), instance) {
            (Some(there), Some(comes)) if there != comes => {
                let name = &worker.name;
                let message = format!(
                    "the worker {name} ({id}) already works from another home; this home is a copy of that one"
                );
                let hint = format!(
                    "remove the file `workers/{name}/crab` from one of the two homes to make it a worker of its own, or stop the other"
                );
                Err(Problem::new(ProblemStatus::Conflict, WORKER_ELSEWHERE, message).hint(hint))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Only the token that registered a worker, or a person, may speak for it.
    pub(super) fn must_keep(&self, keeper: Option<&str>, id: &str) -> Result<(), Problem> {
        let inner = self.inner();
        let worker = inner.workers.get(id).ok_or_else(|| unknown(id))?;
        if keeper.is_none() || worker.keeper.as_deref() == keeper {
            return Ok(());
        }
        let message = format!("Not allowed: the worker {} ({id}) was registered with another token", worker.name);
        Err(refusal(RefusalCode::NotYours, message).hint("use that token, or choose another name: `name=NAME`"))
    }
}

pub(super) fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("there is no crab `{id}`")).hint("register it: POST /v1/crabs/register")
}

/// A worker that has registered is waited for for as long as one that is away. If it does not listen by then, another of its
/// id may come.
fn await_listening(home: &Arc<Home>, id: &WorkerId, comings: u64) {
    let (weak, id) = (Arc::downgrade(home), id.clone());
    let moment = home.clock.now().0.saturating_add(home.context.config().workers.reconnect());
    home.later.at(moment, move || {
        let Some(home) = weak.upgrade() else { return };
        let mut inner = home.roster.inner();
        if let Some(worker) = inner.workers.get_mut(&id).filter(|worker| worker.comings == comings) {
            worker.is_awaited = worker.listens.is_some();
        }
    });
}

/// A worker that speaks a version of the protocol which this engine does not is told so before it is given anything.
fn must_be_understood(protocol: Option<u32>) -> Result<(), Problem> {
    if works_with(protocol) {
        return Ok(());
    }
    let theirs = protocol.unwrap_or_default();
    let message =
        format!("the worker speaks version {theirs} of the work protocol; this engine speaks {OLDEST} to {PROTOCOL}");
    Err(Problem::new(ProblemStatus::Conflict, "protocol_too_old", message).hint("update the worker"))
}

fn entry(worker: &RemoteWorker) -> RosterEntry {
    RosterEntry {
        colony_id: worker.group.clone(),
        name: worker.name.clone(),
        role: worker.role.clone(),
        keeper: worker.keeper.clone(),
        instance: worker.instance.clone(),
        present: worker.is_present,
        listens: worker.listens.is_some(),
        registered_at_ms: worker.registered_at_ms,
        protocol: worker.protocol,
    }
}

/// Who an entry is about. One that listened is not there before it listens again.
impl From<RosterEntry> for RemoteWorker {
    fn from(entry: RosterEntry) -> RemoteWorker {
        RemoteWorker {
            group: entry.colony_id,
            name: entry.name,
            role: entry.role,
            keeper: entry.keeper,
            is_present: entry.present && !entry.listens,
            listens: None,
            comings: 0,
            registered_at_ms: entry.registered_at_ms,
            protocol: entry.protocol,
            instance: entry.instance,
            is_awaited: entry.present,
            is_finishing: false,
            heard: None,
            is_full: false,
        }
    }
}

impl RemoteWorker {
    /// Earlier a worker's token could register for this machine's own work; it gets none any more.
    fn may_work(&self) -> bool {
        !(self.group == LOCAL && self.keeper.is_some())
    }
}

impl RosterState {
    /// Tells the engine again what a worker can take, as it is now. What only waits for others keeps nothing from being done.
    pub(super) fn offer_again(&self, home: &Home, id: &WorkerId) {
        let is_offered =
            |worker: &&RemoteWorker| worker.is_present && !worker.is_finishing && !worker.is_full && worker.may_work();
        if let Some(worker) = self.workers.get(id).filter(is_offered) {
            let waiting = self.jobs.values().filter(|job| job.worker == *id && job.waits_for_turn).count();
            offer(home, id, worker, 1 + waiting);
        }
    }
}

fn offer(home: &Home, id: &WorkerId, worker: &RemoteWorker, capacity: usize) {
    let offer = WorkerOffer {
        id: id.clone(),
        role: worker.role.clone(),
        group: worker.group.clone(),
        knows_scratch: worker.protocol.is_some_and(|version| version >= WORKSPACES),
        capacity,
        lease: Some(home.context.config().workers.lease()),
    };
    home.engine.send(ReactorMessage::Joined(offer));
}

/// The record of what happened names a worker by its id: one must not look like another there.
fn must_not_be_another(id: &str) -> Result<(), Problem> {
    let others = ["person", "session", "step", "worker", "reader", "engine", "nobody"];
    let is_another = others.contains(&id.split(':').next().unwrap_or_default());
    match is_another && (id.contains(':') || matches!(id, "engine" | "nobody")) {
        true => Err(Problem::bad_request(format!("`crab_id` cannot be `{id}`: that is how others are recorded"))
            .hint("leave it out, or choose another")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_an_older_engine_is_read_and_written_with_the_same_keys() {
        let old = concat!(
            r#"{"colony_id":"c1","name":"hermit","role":"any","keeper":"t1","instance":null,"present":true,"#,
            r#""listens":false,"registered_at_ms":1700000000000}"#
        );
        let entry: RosterEntry = serde_json::from_str(old).expect("an entry");
        assert_eq!(serde_json::to_string(&entry).expect("an entry"), old);
        let bare = r#"{"colony_id":"c1","name":"hermit","role":"any","present":true}"#;
        let bare: RosterEntry = serde_json::from_str(bare).expect("before there was more");
        assert!(bare.present && !bare.listens && bare.keeper.is_none());
    }
}
