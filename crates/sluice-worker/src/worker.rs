//! A worker on a machine of its own: it registers with an engine elsewhere, takes the steps it is given, carries them out
//! at its workbench, and reports. Nothing is decided here.
//!
//! It outlives the connection and the engine: what it is at is paused when nobody has answered for a while, for then it may
//! be given to another; it goes on when the engine says that it is still this worker's, and is reported then. Started again
//! after a crash it is the same worker, is told what it holds, and adopts the agents that still live.

mod job;
mod leftovers;
mod worktrees;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluice_api::Client;
use sluice_api::client::letters;
use sluice_api::control::{Crab, Register};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::work::{
    Envelope, FromWorker, Heartbeat, OLDEST, PROTOCOL, StepDispatch, StepOrder, StepProgress, ToWorker,
    WORKER_ELSEWHERE, works_with,
};
use sluice_core::id::Dispatch;
use sluice_os::disk::free_bytes;
use sluice_os::file::{Durability, write_atomically};
use sluice_os::process::ProcessIdentity;
use sluice_os::session::{SessionId, SessionKeeper, SessionStream, boot_ms};

use crate::machine::identity::HomeIdentity;
use crate::names::new_id;
use crate::perform::PerformContext;
use job::WorkerAssignment;

/// How often a worker gives a sign of life at least, and tells what its agents say.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// So often it does so in the time for which an answer keeps a step: one that is lost does no harm.
const SIGNS: u32 = 3;
/// How long it waits at first before it tries again, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long an engine waits that does not say, in milliseconds.
const AWAY: u64 = 10_000;
/// How long the engine may take to give up a worker whose machine was started again.
const FORMER_SELF: Duration = Duration::from_secs(60);
/// How often what is old is looked for.
const TIDY: Duration = Duration::from_secs(60 * 60);
/// Characters of what an agent says that are told as progress.
const LONGEST_PROGRESS: usize = 500;

/// The file that names the process which keeps the agents.
const KEEPER: &str = "keeper.json";

const WORKING: u8 = 0;
/// It finishes what it is at, and takes no more.
const FINISHING: u8 = 1;
/// It ends now, and gives back what it is at.
const LEAVING: u8 = 2;

#[derive(Clone, Debug)]
pub struct WorkerOptions {
    pub url: String,
    pub group: String,
    pub role: String,
    pub name: String,
}

pub struct WorkerRuntime {
    bench: PerformContext,
    client: Client,
    hiring: WorkerOptions,
    id: String,
    /// Which of those that have this name: a home that was copied is another.
    identity: HomeIdentity,
    engine_speaks: AtomicU32,
    stage: AtomicU8,
    inner: Mutex<WorkerRuntimeState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkerRuntimeState {
    /// What it is at, by the number of the handing-out.
    jobs: BTreeMap<Dispatch, Arc<WorkerAssignment>>,
    /// The way to the engine, while there is a connection.
    say: Option<Box<dyn Fn(String) -> bool + Send>>,
    /// Since it is connected it has looked for what is left of work that is not its any more.
    has_tidied: bool,
}

impl WorkerRuntimeState {
    /// How long it may be until the next sign of life.
    fn pace(&self) -> Duration {
        self.jobs.values().map(|job| job.kept_for() / SIGNS).fold(HEARTBEAT, Duration::min).max(FIRST_PAUSE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerNews<'a> {
    Registered,
    /// The engine cannot be reached, and this is why. It is tried again and again.
    Away(&'a str),
    /// The engine is reached again.
    Back,
}

impl WorkerRuntime {
    /// A worker at this bench. It has the same name for the engine as it had here before.
    pub fn new(bench: PerformContext, client: Client, hiring: WorkerOptions) -> Result<Arc<WorkerRuntime>, Problem> {
        let file = bench.places.home().join("crab");
        let unusable = |why: String| Problem::fault(format!("{} cannot be used: {why}", file.display()));
        let id = match std::fs::read_to_string(&file) {
            Ok(text) if !text.trim().is_empty() => text.trim().to_owned(),
            Ok(_) => return Err(Problem::fault(format!("{} is empty", file.display())).hint("remove it")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let id = new_id().map_err(Problem::fault)?;
                write_atomically(&file, format!("{id}\n").as_bytes(), Durability::Synced)
                    .map_err(|error| unusable(error.to_string()))?;
                id
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        // The agents of a worker that was killed go on while somebody keeps them: from now on this one.
        let identity = HomeIdentity::of(bench.places.home())?;
        let own = serde_json::to_vec(&ProcessIdentity::own()).unwrap_or_default();
        let keeper = bench.places.home().join(KEEPER);
        write_atomically(&keeper, &own, Durability::Synced)
            .map_err(|error| Problem::fault(format!("{} cannot be written: {error}", keeper.display())))?;
        let (engine_speaks, stage, inner) = (AtomicU32::new(OLDEST), AtomicU8::new(WORKING), Mutex::default());
        let changed = Condvar::new();
        Ok(Arc::new(WorkerRuntime { bench, client, hiring, id, identity, engine_speaks, stage, inner, changed }))
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Works until it is told to stop, or the engine does not want it. `tell` hears how it stands with the engine.
    pub fn run(self: &Arc<Self>, mut tell: impl FnMut(WorkerNews<'_>)) -> Result<(), Problem> {
        self.forget_what_is_old();
        let weak = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("heartbeat".into());
        let spawned = thread.spawn(move || {
            while let Some(worker) = weak.upgrade() {
                worker.beat();
                worker.rest();
            }
        });
        spawned.map_err(|error| Problem::fault(error.to_string()))?;
        self.keep_tidy();
        let began = Instant::now();
        let (mut is_known, mut is_away, mut wait) = (false, false, FIRST_PAUSE);
        while self.goes_on() {
            let ended = self.register().and_then(|()| {
                if !is_known || is_away {
                    tell(if is_known { WorkerNews::Back } else { WorkerNews::Registered });
                }
                (is_known, is_away, wait) = (true, false, FIRST_PAUSE);
                self.listen()
            });
            match ended {
                // After a restart of the machine it is its own former self that the engine still waits for.
                Err(problem) if !is_passing(&problem) && !self.may_be_its_former_self(&problem, began) => {
                    return Err(problem);
                }
                Err(problem) => {
                    tracing::warn!("not connected: {}", problem.message);
                    if !is_away {
                        tell(WorkerNews::Away(&problem.message));
                    }
                    is_away = true;
                }
                Ok(()) => {}
            }
            if self.goes_on() {
                let pace = self.inner().pace(); // who holds something has to be back soon
                self.pause(wait.min(pace));
                wait = (wait * 2).min(LONGEST_PAUSE);
            }
        }
        self.leave()
    }

    /// A worker may run for months: what is old goes from time to time, and not only when it starts.
    fn keep_tidy(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("tidy".into());
        // Without a thread it is done at the next start.
        drop(thread.spawn(move || {
            while let Some(worker) = weak.upgrade().filter(|worker| worker.goes_on()) {
                worker.pause(TIDY);
                worker.forget_what_is_old();
            }
        }));
    }

    /// Stops: first it finishes what it is at; told again, it gives that back. Whether there is something that it finishes.
    pub fn stop(&self) -> bool {
        let stage = match self.stage.load(Ordering::Relaxed) {
            WORKING => FINISHING,
            _ => LEAVING,
        };
        self.stage.store(stage, Ordering::Relaxed);
        match stage {
            LEAVING => self.give_back_all(),
            _ => self.sign(),
        }
        let mut inner = self.inner();
        if stage == LEAVING || inner.jobs.is_empty() {
            inner.say = None; // that ends the connection
        }
        self.changed.notify_all();
        stage == FINISHING && !inner.jobs.is_empty()
    }

    /// Ends what it is at, before anybody else can be given it.
    fn give_back_all(&self) {
        let jobs: Vec<Arc<WorkerAssignment>> = self.inner().jobs.values().cloned().collect();
        jobs.iter().for_each(|job| job.give_back(&self.bench));
    }

    fn inner(&self) -> MutexGuard<'_, WorkerRuntimeState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has changed that others may wait for. Under the lock, so that nobody misses it who is about to wait.
    fn wake(&self) {
        let _inner = self.inner();
        self.changed.notify_all();
    }

    /// Whether it is to be connected: it works, or has something to finish.
    fn goes_on(&self) -> bool {
        match self.stage.load(Ordering::Relaxed) {
            WORKING => true,
            FINISHING => !self.inner().jobs.is_empty(),
            _ => false,
        }
    }

    fn is_leaving(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == LEAVING
    }

    /// Waits, unless it is told to stop meanwhile.
    fn pause(&self, most: Duration) {
        let before = self.stage.load(Ordering::Relaxed);
        let inner = self.inner();
        let stays = |_: &mut WorkerRuntimeState| self.stage.load(Ordering::Relaxed) == before;
        drop(self.changed.wait_timeout_while(inner, most, stays));
    }

    /// Waits for the next sign, unless it is told to stop meanwhile or is given something that needs more of them.
    fn rest(&self) {
        let before = self.stage.load(Ordering::Relaxed);
        let inner = self.inner();
        let pace = inner.pace();
        let stays =
            |inner: &mut WorkerRuntimeState| self.stage.load(Ordering::Relaxed) == before && inner.pace() >= pace;
        drop(self.changed.wait_timeout_while(inner, pace, stays));
    }

    fn register(&self) -> Result<(), Problem> {
        let WorkerOptions { group, role, name, .. } = &self.hiring;
        let wanted = Register {
            crab_id: Some(self.id.clone()),
            colony_id: group.clone(),
            name: name.clone(),
            role: role.clone(),
            instance: Some(self.identity.name()),
            protocol: Some(PROTOCOL),
        };
        let registered = self.client.post::<Crab>("/v1/crabs/register", &wanted)?;
        let theirs = registered.protocol.unwrap_or(1);
        self.engine_speaks.store(theirs, Ordering::Relaxed);
        if works_with(registered.protocol) {
            return Ok(());
        }
        let message = format!(
            "the engine speaks version {theirs} of the work protocol; this worker speaks {OLDEST} to {PROTOCOL}"
        );
        Err(Problem::new(ProblemStatus::Conflict, "protocol_too_old", message).hint("update the engine"))
    }

    /// Listens until the connection ends.
    fn listen(self: &Arc<Self>) -> Result<(), Problem> {
        let (say, mut letters) = letters();
        {
            let mut inner = self.inner();
            inner.say = Some(Box::new(say));
            inner.has_tidied = false;
        }
        if !self.goes_on() {
            self.inner().say = None; // it was told to stop meanwhile
        }
        let path = format!("/v1/ws/crab/{}", self.id);
        let (worker, signs) = (self.clone(), self.clone());
        let ended = self.client.listen(&path, &mut letters, move || signs.sign(), move |message| worker.hear(message));
        self.inner().say = None;
        ended
    }

    fn hear(self: &Arc<Self>, message: &str) {
        let said = match serde_json::from_str::<Envelope<ToWorker>>(message) {
            Ok(envelope) => envelope.kind,
            Err(why) => return self.not_understood(message, &why),
        };
        let job = |it: StepDispatch| self.inner().jobs.get(&Dispatch(it.dispatch)).cloned();
        match said {
            ToWorker::Assigned(order) => self.take(*order),
            ToWorker::Revoked(it) => {
                job(it).into_iter().for_each(|job| job.give_back(&self.bench));
                self.wake();
            }
            ToWorker::Stop(it) => job(it).into_iter().for_each(|job| job.stop(&self.bench)),
            ToWorker::Held(held) => self.compare(held),
        }
    }

    /// Writes down a message that says no, or that this worker does not understand; nothing if it only says that the engine
    /// has heard.
    fn not_understood(&self, message: &str, why: &serde_json::Error) {
        let said = serde_json::from_str::<Value>(message).unwrap_or_default();
        match said["kind"]["type"].as_str().unwrap_or_default() {
            "ack" => {}
            "error" => tracing::warn!("the engine refuses: {}", said["kind"]),
            kind => tracing::warn!("a message of the engine ({kind}) cannot be understood: {why}"),
        }
    }

    /// Begins with a step, unless it is at it already.
    fn take(self: &Arc<Self>, order: StepOrder) {
        let dispatch = Dispatch(order.dispatch);
        // Half of it, so that an agent is paused, and one whose worker does not come back has ended, well before another is
        // given its step.
        let away_ms = order.lease_ms.unwrap_or(AWAY).min(order.away_ms.unwrap_or(AWAY)) / 2;
        let keeper = SessionKeeper { file: self.bench.places.home().join(KEEPER), away_ms, until_ms: 0 };
        let job = match WorkerAssignment::of(order, &self.hiring.url, keeper) {
            Ok(job) => Arc::new(job),
            Err(why) => return tracing::warn!("a step of the engine cannot be understood: {why}"),
        };
        {
            let mut inner = self.inner();
            if self.stage.load(Ordering::Relaxed) != WORKING || inner.jobs.contains_key(&dispatch) {
                return;
            }
            inner.jobs.insert(dispatch, job.clone());
        }
        self.wake();
        self.sign(); // the answer says until when it is kept
        let worker = self.clone();
        let thread = std::thread::Builder::new().name("job".into());
        let spawned = thread.spawn(move || {
            worker.carry_out(&job);
            worker.done(dispatch);
        });
        if let Err(error) = spawned {
            tracing::warn!("no thread for a step: {error}");
            self.done(dispatch);
        }
    }

    fn done(&self, dispatch: Dispatch) {
        let mut inner = self.inner();
        inner.jobs.remove(&dispatch);
        if inner.jobs.is_empty() && self.stage.load(Ordering::Relaxed) != WORKING {
            inner.say = None;
        }
        self.changed.notify_all();
    }

    /// Gives a sign of life, and tells what agents say.
    fn beat(&self) {
        self.sign();
        let jobs: Vec<Arc<WorkerAssignment>> = self.inner().jobs.values().cloned().collect();
        for job in jobs {
            let tail = SessionId::new(&job.order.name)
                .ok()
                .and_then(|id| self.bench.sessions.output_tail(&id, SessionStream::Output, 4 * LONGEST_PROGRESS).ok());
            let text = tail.map(|tail| String::from_utf8_lossy(&tail.bytes).into_owned()).unwrap_or_default();
            let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) else { continue };
            let line: String = line.chars().take(LONGEST_PROGRESS).collect();
            if job.is_news(&line) {
                let run_id = job.run_id(&self.id);
                let progress = StepProgress { run_id, progress_message: Some(line), token_usage: None };
                self.say(FromWorker::Progress(progress));
            }
        }
    }

    /// Gives a sign of life, and says what it is at. The engine answers with what it should be at.
    fn sign(&self) {
        let sent_ms = boot_ms(); // before it is sent: what the engine knows then, it knows later
        let dispatches: Vec<u64> = self.inner().jobs.keys().map(|dispatch| dispatch.0).collect();
        let finishing = self.stage.load(Ordering::Relaxed) != WORKING;
        let (dispatches, sent_ms, full) = (Some(dispatches), Some(sent_ms), self.is_full());
        self.say(FromWorker::Heartbeat(Heartbeat { dispatches, finishing, sent_ms, full }));
    }

    /// Whether the disk has less room than a new worktree needs (`least_free` in `config.toml`). One that cannot be asked has enough:
    /// git says what is wrong with it.
    fn is_full(&self) -> bool {
        self.free_bytes() < self.bench.config().workspaces.least_free
    }

    fn free_bytes(&self) -> u64 {
        free_bytes(self.bench.places.home()).unwrap_or(u64::MAX)
    }

    /// Says something, if the engine is connected; false if it is not.
    fn say(&self, kind: FromWorker) -> bool {
        let (message_id, mission_id, task_id, run_id, sent_at_ms) = (None, None, None, None, None);
        let message = Envelope { message_id, mission_id, task_id, run_id, kind, sent_at_ms };
        let Ok(message) = serde_json::to_string(&message) else { return false };
        self.inner().say.as_ref().is_some_and(|say| say(message))
    }

    /// Whether another of this name is at work, and that may only be what this one was before its machine was started again.
    fn may_be_its_former_self(&self, problem: &Problem, began: Instant) -> bool {
        problem.code == WORKER_ELSEWHERE && self.identity.is_restarted && began.elapsed() < FORMER_SELF
    }

    /// Says goodbye; what it still holds is given to another at once.
    fn leave(&self) -> Result<(), Problem> {
        match self.client.delete::<Value>(&format!("/v1/crabs/{}", self.id)) {
            Ok(_) => Ok(()),
            // Nobody is there to be told; its leases run out.
            Err(problem) if is_passing(&problem) || problem.status == ProblemStatus::NotFound => Ok(()),
            Err(problem) => Err(problem),
        }
    }
}

/// Whether asking again later may help.
fn is_passing(problem: &Problem) -> bool {
    problem.is_passing() || matches!(problem.status, ProblemStatus::Fault | ProblemStatus::TooMany)
}
