//! Drives the reactor: a thread for the loop, two beside it that store and read ([`threads`]), and one that keeps the store
//! owned ([`owning`]).
//!
//! The loop takes all messages that wait before it acts, so that whatever they lead to is stored in one commit while
//! the next ones gather. A stream that cannot be understood stops alone. When the store belongs to somebody else, or
//! fails in a way that waiting does not heal, the host ends and says why.

mod asked;
mod handle;
mod keep;
mod owning;
mod threads;

pub use asked::PendingAnswer;
pub use handle::{EngineHandle, EngineInbox, in_the_name_of};
pub use keep::RetentionTerm;
pub use owning::{Fence, NoFence, StoreClaim};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_core::machine::Moment;
use sluice_store::{Append, Store, StoreError, StreamId};

use crate::loader::{Definitions, Loader};
use crate::reactor::{Assignment, Reactor, ReactorAction, ReactorAnswer, ReactorMessage, ReactorToken};
use crate::workers::{Dispatch, WorkerId};
use handle::{HostEvent, StoreHindrance};
use owning::OwnershipThread;
use threads::{CommitThread, LoadThread, RetentionSweep, SharedWriter, append, locked};

pub trait EngineClock: Send + Sync {
    fn now(&self) -> Moment;
}

/// What performs effects. It must not block: it begins, and reports when it is done.
pub trait Executor: Send {
    /// Begins to perform an effect. It may have been begun before, by a process that ended; then this is the same
    /// work, by the same id, and must not be done twice at once.
    fn perform(&mut self, assignment: Assignment, report: &EngineHandle);

    /// A lasting worker was at this when an earlier engine ended, and keeps it for as long as its lease runs. It may
    /// have given it a name.
    fn held(&mut self, _assignment: Assignment, _name: Option<String>, _report: &EngineHandle) {}

    /// What a lasting worker was handed is not its any more: it is done or not wanted, or the worker is lost.
    fn withdrawn(&mut self, _worker: &WorkerId, _dispatch: Dispatch, _is_lost: bool) {}
}

/// Who wants to know that something has changed. Called after every commit, from the loop: it must not block, and looks
/// for itself what is new. A hint may be missed by a process that dies, so whoever depends on it also looks by itself.
pub trait Observer: Send {
    /// Something of these streams has been stored.
    fn changed(&mut self, streams: Vec<StreamId>);
}

pub struct NoObserver;

impl Observer for NoObserver {
    fn changed(&mut self, _: Vec<StreamId>) {}
}

/// How long the store stays a host's without a sign of life, unless the home wants it otherwise.
pub const TERM: Duration = Duration::from_secs(30);
/// The clock is looked at again after so long at most, while a stream is to be woken.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A batch of so many appends is small.
const SMALL: usize = 4;

pub struct HostParts {
    pub store: Store,
    pub owner: StoreClaim,
    pub clock: Arc<dyn EngineClock>,
    pub executor: Box<dyn Executor>,
    pub definitions: Arc<dyn Definitions>,
    pub observer: Box<dyn Observer>,
    /// For how long what is over is kept; `None`: for good.
    pub keep: Option<RetentionTerm>,
}

/// A loop that is going round.
pub struct Host {
    handle: EngineHandle,
    engine: JoinHandle<Result<(), StoreError>>,
    threads: Vec<JoinHandle<()>>,
    stopping: Arc<AtomicBool>,
    faults: StreamFaults,
    writer: SharedWriter,
    fence: Arc<dyn Fence>,
    /// While this is there the store is kept owned.
    owned: Sender<()>,
}

/// The streams that stopped, and why.
type StreamFaults = Arc<Mutex<BTreeMap<StreamId, String>>>;

impl Host {
    /// Takes the store and begins to go round. What was going on is taken up at once, by the same comparison of store
    /// and memory that is made again and again afterwards.
    pub fn start(parts: HostParts) -> Result<Host, StoreError> {
        Host::start_at(EngineInbox::default(), parts)
    }

    /// The same, for those who have had the way to it since before it began.
    pub fn start_at(EngineInbox { handle, inbox }: EngineInbox, parts: HostParts) -> Result<Host, StoreError> {
        let HostParts { store, owner, clock, executor, definitions, observer, keep } = parts;
        let mut writer = store.writer()?;
        let tenure = owner.take(&mut *writer)?;
        let fence = owner.fence.clone();
        let writer: SharedWriter = Arc::new(Mutex::new(writer));
        let messages = handle.messages.clone();
        let (batches, batch_inbox) = channel();
        let (loads, load_inbox) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let tidying = match keep {
            Some(keep) => Some(RetentionSweep::new(store.reader()?, clock.clone(), keep)),
            None => None,
        };
        let hindrance = handle.hindrance.clone();
        let storing = CommitThread {
            writer: writer.clone(),
            batches: batch_inbox,
            messages: messages.clone(),
            stopping: stopping.clone(),
            tidying,
            hindrance,
        };
        let reading = LoadThread {
            loader: Loader::new(store.reader()?, definitions),
            loads: load_inbox,
            messages: messages.clone(),
            stopping: stopping.clone(),
        };
        let (owned, stop) = channel();
        let owning = OwnershipThread { writer: writer.clone(), claim: owner, tenure, messages, stop };
        let faults = StreamFaults::default();
        let engine = HostLoop {
            reactor: Reactor::new(tenure.epoch()),
            clock,
            executor,
            observer,
            handle: handle.clone(),
            writer: writer.clone(),
            fence: fence.clone(),
            batches,
            loads,
            replies: BTreeMap::new(),
            faults: faults.clone(),
        };
        let threads = vec![
            spawn("store-writer", move || storing.run()),
            spawn("store-reader", move || reading.run()),
            spawn("store-owner", move || owning.run()),
        ];
        let engine = spawn("engine", move || engine.run(&inbox));
        Ok(Host { handle, engine, threads, stopping, faults, writer, fence, owned })
    }

    /// Where messages can be sent without waiting for an answer.
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }

    /// Sends a message and gives what will hold its answer; see [`EngineHandle::ask`].
    pub fn ask(&self, message: impl FnOnce(ReactorToken) -> ReactorMessage) -> PendingAnswer {
        self.handle.ask(message)
    }

    /// The streams that stopped because they cannot be understood, and why.
    pub fn faults(&self) -> BTreeMap<StreamId, String> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A look at the same, for a thread that must not hold the host.
    pub fn fault_look(&self) -> impl Fn() -> BTreeMap<StreamId, String> + Send + 'static + use<> {
        let faults = self.faults.clone();
        move || faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the loop has ended by itself; [`Host::stop`] says why.
    pub fn has_ended(&self) -> bool {
        self.engine.is_finished()
    }

    /// Ends the loop when what is on its way has been stored, or cannot be stored now. The error is why it had ended
    /// before, if it had. A copy that a writer makes of a lost store is finished first: every thread that writes is joined.
    /// Another may have the store at once, unless something goes on that this one has started: then it stays its own for the
    /// rest of its term, which is for as long as that may go on.
    pub fn stop(self) -> Result<(), StoreError> {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = self.handle.messages.send(HostEvent::Stop);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        let ended = self.engine.join();
        drop(self.owned);
        for thread in self.threads {
            let _ = thread.join();
        }
        let released = if self.fence.may_release() { locked(&self.writer).release() } else { Ok(()) };
        // Whatever else is wrong, the next owner waits until the term is over.
        let lost = released.err().filter(|error| matches!(error, StoreError::Gone { .. }));
        ended.unwrap_or(Ok(())).and(lost.map_or(Ok(()), Err))
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(work).expect("the system gives a thread at the start")
}

/// For how long the loop did not turn though it should have: its process was stopped, or its machine slept.
struct LoopGap {
    seen: i64,
    gap: i64,
}

impl LoopGap {
    fn since(now: Moment) -> LoopGap {
        LoopGap { seen: now.0, gap: 0 }
    }

    /// It looks at the clock. It may have waited, but not beyond what was planned.
    fn look(&mut self, now: Moment, planned: Option<Moment>) {
        let due = planned.map_or(self.seen, |planned| planned.0.max(self.seen));
        self.gap = self.gap.max(now.0 - due);
        self.seen = now.0;
    }

    /// The longest time that was lost since this was last asked.
    fn take_gap(&mut self) -> i64 {
        std::mem::take(&mut self.gap)
    }
}

struct HostLoop {
    reactor: Reactor,
    clock: Arc<dyn EngineClock>,
    executor: Box<dyn Executor>,
    observer: Box<dyn Observer>,
    handle: EngineHandle,
    writer: SharedWriter,
    fence: Arc<dyn Fence>,
    batches: Sender<Vec<Append>>,
    loads: Sender<StreamId>,
    replies: BTreeMap<ReactorToken, Sender<ReactorAnswer>>,
    faults: StreamFaults,
}

impl HostLoop {
    fn run(mut self, inbox: &Receiver<HostEvent>) -> Result<(), StoreError> {
        let (mut stopping, mut all_named) = (false, false);
        let mut awake = LoopGap::since(self.clock.now());
        while !(stopping && self.reactor.is_settled()) {
            let planned = self.reactor.next_look(self.clock.now(), LONGEST_WAIT);
            let Some(first) = self.wait(inbox, planned) else { return Ok(()) };
            awake.look(self.clock.now(), planned);
            let mut next = Some(first);
            while let Some(event) = next {
                match event {
                    HostEvent::Message(message) => self.reactor.receive(message, self.clock.now()),
                    HostEvent::Ask(message, token, reply, ticket) => {
                        if ticket.is_taken() {
                            self.replies.insert(token, reply);
                            self.reactor.receive(message, self.clock.now());
                        }
                    }
                    HostEvent::Withdraw(token, ticket, heard) => {
                        if self.reactor.can_withdraw(token) && ticket.is_withdrawn() {
                            self.reactor.withdraw(token);
                            self.replies.remove(&token);
                        }
                        let _ = heard.send(());
                    }
                    HostEvent::Followed(upto) => drop(locked(&self.writer).follow(upto)),
                    HostEvent::Forget(streams) => {
                        let _ = locked(&self.writer).forget(&streams);
                        self.observer.changed(streams);
                    }
                    HostEvent::AllNamed => all_named = true,
                    HostEvent::Stop => stopping = true,
                    HostEvent::Failed(error) => {
                        if matches!(error, StoreError::LostOwnership) {
                            self.fence.lost();
                        }
                        self.handle.hinder(&error);
                        return Err(error);
                    }
                }
                next = inbox.try_recv().ok();
            }
            let now = self.clock.now();
            awake.look(now, None);
            self.reactor.slept(awake.take_gap(), now);
            self.reactor.wake(now);
            self.note_faults();
            self.act();
            awake.look(self.clock.now(), None);
            if all_named && !self.reactor.is_loading() {
                self.handle.taken_up.store(true, Ordering::Release);
            }
            self.tell();
        }
        Ok(())
    }

    fn tell(&mut self) {
        let changed = self.reactor.take_changed();
        if !changed.is_empty() {
            self.observer.changed(changed);
        }
    }

    /// Says which streams have stopped, before the caller that asked about one hears of it.
    fn note_faults(&self) {
        let mut known = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != *self.reactor.faults() {
            known.clone_from(self.reactor.faults());
        }
    }

    /// The next message, or an empty one when it is time to wake a stream; `None` when no sender is left.
    fn wait(&self, inbox: &Receiver<HostEvent>, planned: Option<Moment>) -> Option<HostEvent> {
        let idle = HostEvent::Message(ReactorMessage::Nothing);
        match planned {
            None => inbox.recv().ok(),
            Some(planned) => {
                let wait = u64::try_from(planned.0.saturating_sub(self.clock.now().0)).unwrap_or(0);
                // Such a wait does not count the time in which the machine sleeps.
                match inbox.recv_timeout(Duration::from_millis(wait)) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout) => Some(idle),
                    Err(RecvTimeoutError::Disconnected) => None,
                }
            }
        }
    }

    /// Stores a batch. A small one is stored here and now: handing it to the other thread and back would cost more than
    /// the commit, and there is nothing else to decide meanwhile. A large one goes to the other thread, so that the next
    /// gathers while it is written.
    fn commit(&mut self, batch: Vec<Append>) {
        if batch.len() > SMALL {
            return drop(self.batches.send(batch));
        }
        let answer = append(&self.writer, &batch);
        match answer {
            Ok(results) => self.handle.send(ReactorMessage::Committed(results)),
            // Whatever is wrong, the other thread knows how to wait for better times.
            Err(_) => drop(self.batches.send(batch)),
        }
    }

    fn act(&mut self) {
        for action in self.reactor.act(self.clock.now()) {
            match action {
                ReactorAction::Commit(batch) => self.commit(batch),
                ReactorAction::Load(stream) => drop(self.loads.send(stream)),
                ReactorAction::Perform(assignment) => self.executor.perform(assignment, &self.handle),
                ReactorAction::Held(assignment, name) => self.executor.held(assignment, name, &self.handle),
                ReactorAction::Withdrawn { worker, dispatch, is_lost } => {
                    self.executor.withdrawn(&worker, dispatch, is_lost);
                }
                ReactorAction::Reply(token, answer) => {
                    if let Some(reply) = self.replies.remove(&token) {
                        let _ = reply.send(answer);
                    }
                }
            }
        }
    }
}
