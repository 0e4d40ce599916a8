//! Drives the reactor: a thread for the loop, one for the store's writer, one for its reader.
//!
//! The loop takes all messages that wait before it acts, so that whatever they lead to is stored in one commit while
//! the next ones gather. When the store cannot be reached the batch is kept and tried again, and nobody hears anything
//! until it is durable. When the store belongs to somebody else, the host ends.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::Plan;
use sluice_store::{Append, Digest, Reader, Store, StoreError, Stored, StreamId, Writer};

use crate::actor::Actor;
use crate::codec::{Unreadable, digest, run_state, task_state};
use crate::reactor::{Action, Answer, Assignment, Found, Message, Reactor, Token};
use crate::run_actor::RunActor;
use crate::task_actor::TaskActor;

/// What tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Moment;
}

/// What performs effects. It must not block: it begins, and reports when it is done.
pub trait Executor: Send {
    /// Begins to perform an effect. It may have been begun before, by a process that ended; then this is the same
    /// work, by the same id, and must not be done twice at once.
    fn perform(&mut self, assignment: Assignment, report: &Reporter);
}

/// What makes a definition of the bytes that were pinned.
pub trait Definitions: Send + Sync {
    /// The recipe whose pinned bytes these are, made ready.
    fn plan(&self, pinned: &[u8]) -> Result<Arc<Plan>, String>;

    /// The lifecycle whose pinned bytes these are.
    fn lifecycle(&self, pinned: &[u8]) -> Result<Arc<Lifecycle>, String>;
}

/// Where results of effects are sent.
#[derive(Clone)]
pub struct Reporter {
    messages: Sender<Event>,
}

impl Reporter {
    /// Sends a message to the loop. When the loop has ended there is nobody to tell, and nothing to do about it.
    pub fn send(&self, message: Message) {
        let _ = self.messages.send(Event::Message(message));
    }
}

enum Event {
    Message(Message),
    Ask(Message, Token, Sender<Answer>),
    Failed(StoreError),
    Stop,
}

/// How long the store stays this host's without a sign of life.
const OWNERSHIP: Duration = Duration::from_secs(30);
/// How long to wait before a store that gave no time is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// A batch of so many appends is small.
const SMALL: usize = 4;
/// How many streams are looked for at once when a host starts.
const PAGE: usize = 1000;

/// What a host needs.
pub struct Parts {
    /// Where everything is kept.
    pub store: Store,
    /// Who owns it.
    pub owner: String,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// What performs effects.
    pub executor: Box<dyn Executor>,
    /// What makes definitions.
    pub definitions: Arc<dyn Definitions>,
}

/// A loop that is going round.
pub struct Host {
    messages: Sender<Event>,
    engine: JoinHandle<Result<(), StoreError>>,
    threads: Vec<JoinHandle<()>>,
    next_token: std::sync::atomic::AtomicU64,
}

impl Host {
    /// Takes the store, takes up everything that was going on, and begins to go round.
    pub fn start(parts: Parts) -> Result<Host, StoreError> {
        let Parts { store, owner, clock, executor, definitions } = parts;
        let mut writer = store.writer()?;
        let ownership = writer.own(&owner, OWNERSHIP)?;
        let writer: SharedWriter = Arc::new(Mutex::new(writer));
        let mut loader = Loader::new(store.reader()?, definitions);
        let (messages, inbox) = channel();
        let (batches, batch_inbox) = channel();
        let (loads, load_inbox) = channel();
        let mut reactor = Reactor::new(ownership.epoch);
        recover(&mut reactor, &mut loader, clock.now())?;
        let reporter = Reporter { messages: messages.clone() };
        let threads = vec![
            spawn("store-writer", {
                let messages = messages.clone();
                let writer = writer.clone();
                move || write(&writer, &owner, &batch_inbox, &messages)
            }),
            spawn("store-reader", {
                let messages = messages.clone();
                move || read(&mut loader, &load_inbox, &messages)
            }),
        ];
        let engine = spawn("engine", move || {
            Loop { reactor, clock, executor, reporter, writer, batches, loads, replies: BTreeMap::new() }.run(&inbox)
        });
        Ok(Host { messages, engine, threads, next_token: std::sync::atomic::AtomicU64::new(1) })
    }

    /// Where messages can be sent without waiting for an answer.
    pub fn reporter(&self) -> Reporter {
        Reporter { messages: self.messages.clone() }
    }

    /// Sends a message that carries this token, and gives what will hold the answer once it is durable.
    pub fn ask(&self, message: impl FnOnce(Token) -> Message) -> Receiver<Answer> {
        let token = Token(self.next_token.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let (reply, answer) = channel();
        let _ = self.messages.send(Event::Ask(message(token), token, reply));
        answer
    }

    /// Ends the loop when what is on its way has been stored. The error is why it had ended before, if it had.
    pub fn stop(self) -> Result<(), StoreError> {
        let _ = self.messages.send(Event::Stop);
        let ended = self.engine.join();
        for thread in self.threads {
            let _ = thread.join();
        }
        ended.unwrap_or(Ok(()))
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(work).expect("the system gives a thread at the start")
}

struct Loader {
    reader: Box<dyn Reader>,
    definitions: Arc<dyn Definitions>,
    plans: BTreeMap<String, Arc<Plan>>,
    lifecycles: BTreeMap<String, Arc<Lifecycle>>,
}

impl Loader {
    fn new(reader: Box<dyn Reader>, definitions: Arc<dyn Definitions>) -> Self {
        Loader { reader, definitions, plans: BTreeMap::new(), lifecycles: BTreeMap::new() }
    }

    fn load(&mut self, stream: &StreamId) -> Result<Option<Found>, StoreError> {
        let Some(stored) = self.reader.load(stream)? else { return Ok(None) };
        let damaged = |detail: String| StoreError::Corrupt { place: stream.to_string(), detail };
        let actor = self.actor(&stored).map_err(|trouble| match trouble {
            Trouble::Damaged(detail) => damaged(detail),
            Trouble::Store(error) => error,
        })?;
        Ok(Some(Found { actor, version: stored.version, effects: stored.effects, timers: stored.timers }))
    }

    /// What a stream is, by the kind that its card names.
    fn actor(&mut self, stored: &Stored) -> Result<Box<dyn Actor>, Trouble> {
        let header = &stored.header;
        match header.card.kind.as_str() {
            RunActor::KIND => {
                let name = run_state::definition_of(&header.data)?;
                let made = |pinned: &[u8]| self.definitions.plan(pinned);
                let plan = pinned(&mut *self.reader, &mut self.plans, name, made)?;
                Ok(Box::new(RunActor::restore(plan, stored)?))
            }
            TaskActor::KIND => {
                let name = task_state::definition_of(&header.data)?;
                let made = |pinned: &[u8]| self.definitions.lifecycle(pinned);
                let lifecycle = pinned(&mut *self.reader, &mut self.lifecycles, name, made)?;
                Ok(Box::new(TaskActor::restore(lifecycle, stored)?))
            }
            other => Err(Trouble::Damaged(format!("neither a task nor a run, but `{other}`"))),
        }
    }
}

/// Why a stream cannot be taken up.
enum Trouble {
    Damaged(String),
    Store(StoreError),
}

impl From<Unreadable> for Trouble {
    fn from(error: Unreadable) -> Self {
        Trouble::Damaged(error.to_string())
    }
}

/// The definition of this digest: one that is known, or made of the bytes that were pinned.
fn pinned<T>(
    reader: &mut dyn Reader,
    known: &mut BTreeMap<String, Arc<T>>,
    name: String,
    make: impl FnOnce(&[u8]) -> Result<Arc<T>, String>,
) -> Result<Arc<T>, Trouble> {
    if let Some(definition) = known.get(&name) {
        return Ok(definition.clone());
    }
    let wanted = digest(&name).ok_or_else(|| Trouble::Damaged(format!("no digest: {name}")))?;
    let bytes = reader.blob(&Digest(wanted)).map_err(Trouble::Store)?;
    let bytes = bytes.ok_or_else(|| Trouble::Damaged(format!("no definition {name}")))?;
    let definition = make(&bytes).map_err(Trouble::Damaged)?;
    known.insert(name, definition.clone());
    Ok(definition)
}

/// Takes up everything that was going on.
fn recover(reactor: &mut Reactor, loader: &mut Loader, now: Moment) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = loader.reader.open_streams(after.as_ref(), PAGE)?;
        for stream in &page {
            let found = loader.load(stream)?;
            reactor.receive(Message::Loaded { stream: stream.clone(), found }, now);
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.clone()),
            _ => return Ok(()),
        }
    }
}

/// The writer, for whichever thread stores the next batch. There is never more than one on its way, so nobody waits.
type SharedWriter = Arc<Mutex<Box<dyn Writer>>>;

fn locked(writer: &SharedWriter) -> MutexGuard<'_, Box<dyn Writer>> {
    // A thread that panicked while it stored something has stored it or not; the next batch finds out.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores batches, one after the other, until each is known to be stored.
fn write(writer: &SharedWriter, owner: &str, batches: &Receiver<Vec<Append>>, messages: &Sender<Event>) {
    let mut renewed = Instant::now();
    loop {
        if renewed.elapsed() > OWNERSHIP / 3 && locked(writer).own(owner, OWNERSHIP).is_ok() {
            renewed = Instant::now();
        }
        let batch = match batches.recv_timeout(OWNERSHIP / 3) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        loop {
            let answer = locked(writer).append(batch.clone());
            match answer {
                Ok(results) => {
                    let _ = messages.send(Event::Message(Message::Committed(results)));
                    break;
                }
                Err(StoreError::Unavailable { retry_after, .. }) => std::thread::park_timeout(retry_after),
                Err(StoreError::Busy { .. } | StoreError::Full { .. }) => std::thread::park_timeout(PAUSE),
                Err(error) => {
                    let _ = messages.send(Event::Failed(error));
                    return;
                }
            }
        }
    }
    let _ = locked(writer).release();
}

fn read(loader: &mut Loader, loads: &Receiver<StreamId>, messages: &Sender<Event>) {
    while let Ok(stream) = loads.recv() {
        let answer = match loader.load(&stream) {
            Ok(found) => Event::Message(Message::Loaded { stream, found }),
            Err(error) => Event::Failed(error),
        };
        let _ = messages.send(answer);
    }
}

struct Loop {
    reactor: Reactor,
    clock: Arc<dyn Clock>,
    executor: Box<dyn Executor>,
    reporter: Reporter,
    writer: SharedWriter,
    batches: Sender<Vec<Append>>,
    loads: Sender<StreamId>,
    replies: BTreeMap<Token, Sender<Answer>>,
}

impl Loop {
    fn run(mut self, inbox: &Receiver<Event>) -> Result<(), StoreError> {
        let mut stopping = false;
        self.act();
        while !(stopping && self.reactor.is_settled()) {
            let Some(first) = self.wait(inbox) else { return Ok(()) };
            let mut next = Some(first);
            while let Some(event) = next {
                match event {
                    Event::Message(message) => self.reactor.receive(message, self.clock.now()),
                    Event::Ask(message, token, reply) => {
                        self.replies.insert(token, reply);
                        self.reactor.receive(message, self.clock.now());
                    }
                    Event::Stop => stopping = true,
                    Event::Failed(error) => return Err(error),
                }
                next = inbox.try_recv().ok();
            }
            self.reactor.wake(self.clock.now());
            self.act();
        }
        Ok(())
    }

    /// The next message, or an empty one when it is time to wake somebody; `None` when nobody is left to send any.
    fn wait(&self, inbox: &Receiver<Event>) -> Option<Event> {
        let idle = Event::Message(Message::Nothing);
        match self.reactor.next_alarm() {
            None => inbox.recv().ok(),
            Some(alarm) => {
                let wait = u64::try_from(alarm.0.saturating_sub(self.clock.now().0)).unwrap_or(0);
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
        let answer = locked(&self.writer).append(batch.clone());
        match answer {
            Ok(results) => self.reporter.send(Message::Committed(results)),
            // Whatever is wrong, the other thread knows how to wait for better times.
            Err(_) => drop(self.batches.send(batch)),
        }
    }

    fn act(&mut self) {
        for action in self.reactor.act(self.clock.now()) {
            match action {
                Action::Commit(batch) => self.commit(batch),
                Action::Load(stream) => drop(self.loads.send(stream)),
                Action::Perform(assignment) => self.executor.perform(assignment, &self.reporter),
                Action::Reply(token, answer) => {
                    if let Some(reply) = self.replies.remove(&token) {
                        let _ = reply.send(answer);
                    }
                }
            }
        }
    }
}
