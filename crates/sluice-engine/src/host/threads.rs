//! Two threads beside the loop. One stores batches, and forgets what has been over for long enough; the other reads
//! streams, and looks again and again for open ones that are not in memory.
//!
//! A store that cannot be reached is waited for: the batch is kept, and nobody hears anything until it is durable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sluice_store::{Append, Conflict, Meaning, Order, PageKey, Query, Reader, StoreError, StreamId, Writer};

use super::{EngineClock, HostEvent, RetentionTerm, StoreHindrance};
use crate::loader::{Loader, StreamLoadError};
use crate::reactor::ReactorMessage;
use crate::run_actor::RunActor;
use crate::task_actor::TaskActor;

/// The longest wait before a store is asked again.
const PAUSE: Duration = Duration::from_secs(5);
const PAGE: usize = 1000;
/// How often the store is searched for open streams that are not in memory.
const RECONCILE: Duration = Duration::from_secs(30);
/// When nothing was stored for so long, it is looked whether there is something to forget; so it is after each large batch.
const LULL: Duration = Duration::from_secs(10);
/// So many streams are looked through at once for what is to be forgotten: who stores something waits for no more than that.
const PART: usize = 100;
/// The time until the next part, unless something is stored before.
const BREATH: Duration = Duration::from_millis(100);
/// How often what is over is looked through.
const TIDY: Duration = Duration::from_secs(600);

/// The writer, for whichever thread stores the next batch. There is never more than one on its way, so no thread waits.
pub(super) type SharedWriter = Arc<Mutex<Box<dyn Writer>>>;

pub(super) fn locked(writer: &SharedWriter) -> MutexGuard<'_, Box<dyn Writer>> {
    // A thread that panicked while it stored something has stored it or not; the next batch finds out.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores a batch, and tells how long that took.
pub(super) fn append(writer: &SharedWriter, batch: &[Append]) -> Result<Vec<Result<u64, Conflict>>, StoreError> {
    let mut span = sluice_telemetry::span("store.commit").with("sluice.commit.streams", batch.len());
    let of_work = |append: &&Append| [TaskActor::KIND, RunActor::KIND].contains(&append.header.card.kind.as_str());
    // A commit of one task or run is a part of its trace; of several, it has a trace of its own.
    match batch {
        [only] if of_work(&only) => span = span.within(only.stream.as_str()),
        _ => batch.iter().filter(of_work).for_each(|append| span.link(append.stream.as_str())),
    }
    let answer = locked(writer).append(batch);
    if let Err(error) = &answer {
        span.fail(match error.meaning() {
            Meaning::Unavailable(_) => "unavailable",
            Meaning::Damaged => "damaged",
            Meaning::Refused => "refused",
            Meaning::Unusable => "unusable",
        });
    }
    answer
}

pub(super) struct CommitThread {
    pub(super) writer: SharedWriter,
    pub(super) batches: Receiver<Vec<Append>>,
    pub(super) messages: Sender<HostEvent>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) tidying: Option<RetentionSweep>,
    pub(super) hindrance: StoreHindrance,
}

impl CommitThread {
    /// Stores batches, one after the other, until each is known to be stored.
    pub(super) fn run(mut self) {
        loop {
            let pause = if self.tidying.as_ref().is_some_and(RetentionSweep::has_more) { BREATH } else { LULL };
            match self.batches.recv_timeout(pause) {
                Ok(batch) => {
                    if let Err(error) = self.store(batch) {
                        let _ = self.messages.send(HostEvent::Failed(error));
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tidying.iter_mut().for_each(|tidying| tidying.look(&self.writer));
        }
    }

    fn store(&self, batch: Vec<Append>) -> Result<(), StoreError> {
        loop {
            let answer = append(&self.writer, &batch);
            match answer {
                Ok(results) => {
                    self.tell(None);
                    let _ = self.messages.send(HostEvent::Message(ReactorMessage::Committed(results)));
                    return Ok(());
                }
                // No caller has been told of this batch; each asks again when the engine is back.
                Err(error) if self.stopping.load(Ordering::Relaxed) => return Err(error),
                Err(error) => {
                    self.tell(Some(error.to_string()));
                    std::thread::park_timeout(retry_after(error)?);
                }
            }
        }
    }

    /// Tells the waiting callers why it takes long.
    fn tell(&self, why: Option<String>) {
        *self.hindrance.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// When to ask again, or the error when asking again does not help.
fn retry_after(error: StoreError) -> Result<Duration, StoreError> {
    match error.meaning() {
        Meaning::Unavailable(wait) => Ok(wait.min(PAUSE)),
        Meaning::Damaged | Meaning::Refused | Meaning::Unusable => Err(error),
    }
}

pub(super) struct RetentionSweep {
    reader: Box<dyn Reader>,
    clock: Arc<dyn EngineClock>,
    keep: RetentionTerm,
    looked: Option<Instant>,
    /// Where the walk that is under way goes on.
    after: Option<PageKey>,
}

impl RetentionSweep {
    pub(super) fn new(reader: Box<dyn Reader>, clock: Arc<dyn EngineClock>, keep: RetentionTerm) -> Self {
        RetentionSweep { reader, clock, keep, looked: None, after: None }
    }

    /// Whether a walk is under way.
    fn has_more(&self) -> bool {
        self.after.is_some()
    }

    /// Goes on with a walk, or begins one unless the last was a short while ago. What cannot be done now is done the next time.
    fn look(&mut self, writer: &SharedWriter) {
        let Some(term) = self.keep.term() else { return };
        if self.has_more() || self.looked.is_none_or(|looked| looked.elapsed() >= TIDY) {
            self.looked = Some(Instant::now());
            self.after = self.forget(writer, term).unwrap_or(None);
        }
    }

    /// Goes along the streams for a part, oldest first; where the walk goes on. A stream that began after the line cannot have
    /// ended before it, so the walk ends there, and costs nothing for all that is younger.
    fn forget(&mut self, writer: &SharedWriter, term: Duration) -> Result<Option<PageKey>, StoreError> {
        let line = self.clock.now().0.saturating_sub(i64::try_from(term.as_millis()).unwrap_or(i64::MAX));
        let query = Query { order: Order::Oldest, limit: PART, after: self.after.take(), ..Query::default() };
        let page = self.reader.list(&query)?;
        let old = page.items.iter().take_while(|it| it.card.created < line);
        let over = old.filter(|it| !it.card.open && it.card.updated < line);
        let streams: Vec<StreamId> = over.map(|it| it.stream.clone()).collect();
        if !streams.is_empty() {
            locked(writer).forget(&streams)?;
        }
        let goes_on = page.items.last().is_some_and(|last| last.card.created < line);
        Ok(page.next.filter(|_| goes_on))
    }
}

pub(super) struct LoadThread {
    pub(super) loader: Loader,
    pub(super) loads: Receiver<StreamId>,
    pub(super) messages: Sender<HostEvent>,
    pub(super) stopping: Arc<AtomicBool>,
}

impl LoadThread {
    /// Reads what is asked for, and between that keeps comparing memory with the store. Taking up what was going on
    /// when the engine starts is the first of these comparisons, and not a way of its own.
    pub(super) fn run(mut self) {
        self.reconcile();
        let _ = self.messages.send(HostEvent::AllNamed);
        let mut due = Instant::now() + RECONCILE;
        loop {
            if Instant::now() >= due {
                self.reconcile();
                due = Instant::now() + RECONCILE;
            }
            match self.loads.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(stream) => self.read(stream),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn read(&mut self, stream: StreamId) {
        let message = self.until_answered(|loader| match loader.load(&stream) {
            Ok(found) => Ok(ReactorMessage::Loaded { stream: stream.clone(), found }),
            Err(StreamLoadError::Damaged(why)) => Ok(ReactorMessage::Unreadable { stream: stream.clone(), why }),
            Err(StreamLoadError::Store(error)) => Err(error),
        });
        message.into_iter().for_each(|message| drop(self.messages.send(HostEvent::Message(message))));
    }

    fn reconcile(&mut self) {
        let mut after = None;
        while let Some(page) = self.until_answered(|loader| loader.reader().open_streams(after.as_ref(), PAGE)) {
            after = page.last().filter(|_| page.len() == PAGE).cloned();
            let _ = self.messages.send(HostEvent::Message(ReactorMessage::Open(page)));
            if after.is_none() {
                return;
            }
        }
    }

    /// Asks until the store answers. `None`: it will not, and the loop has been told, or is ending.
    fn until_answered<T>(&mut self, mut ask: impl FnMut(&mut Loader) -> Result<T, StoreError>) -> Option<T> {
        loop {
            match ask(&mut self.loader).map_err(retry_after) {
                Ok(answer) => return Some(answer),
                Err(Ok(_)) if self.stopping.load(Ordering::Relaxed) => return None,
                Err(Ok(wait)) => std::thread::park_timeout(wait),
                Err(Err(error)) => {
                    let _ = self.messages.send(HostEvent::Failed(error));
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_core::machine::Moment;
    use sluice_store::{Card, Event, Header, Store};

    use super::*;

    struct EngineTestClock(i64);

    impl EngineClock for EngineTestClock {
        fn now(&self) -> Moment {
            Moment(self.0)
        }
    }

    fn stream(name: &str, created: i64, updated: i64, open: bool) -> Append {
        let card = Card { kind: "run".into(), open, created, updated, ..Card::default() };
        let event = Event { kind: "begun".into(), version: 1, time: created, ..Event::default() };
        Append::new(StreamId::new(name), 0, vec![event], Header { card, data: Vec::new() })
    }

    #[test]
    fn what_has_been_over_for_long_enough_is_forgotten() {
        let store = Store::open("memory:").expect("memory");
        let writer: SharedWriter = Arc::new(Mutex::new(store.writer().expect("a writer")));
        locked(&writer).own("test", Duration::from_secs(30)).expect("nobody else is there");
        let streams = [
            stream("over-long-ago", 1_000, 2_000, false),
            stream("begun-long-ago-and-open", 1_000, 2_000, true),
            stream("begun-long-ago-over-now", 1_500, 59_000, false),
            stream("young", 58_000, 59_000, false),
        ];
        locked(&writer).append(&streams).expect("stored");
        let reader = || store.reader().expect("a reader");
        let left_at = |now: i64| {
            let keep =
                RetentionTerm::new(&mut *reader(), &EngineTestClock(now), Duration::from_secs(30)).expect("a term");
            RetentionSweep::new(reader(), Arc::new(EngineTestClock(now)), keep).look(&writer);
            let query = Query { order: Order::Oldest, ..Query::default() };
            let page = reader().list(&query).expect("a page");
            page.items.iter().map(|it| it.stream.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(left_at(i64::MAX).len(), 4, "a clock that jumped over the term is not believed at once");
        assert_eq!(left_at(60_000), ["begun-long-ago-and-open", "begun-long-ago-over-now", "young"]);
    }

    /// However much there is, who stores something waits for a part of it only, and what waits for no lull is done between.
    #[test]
    fn much_is_forgotten_in_parts() {
        let store = Store::open("memory:").expect("memory");
        let writer: SharedWriter = Arc::new(Mutex::new(store.writer().expect("a writer")));
        locked(&writer).own("test", Duration::from_secs(30)).expect("nobody else is there");
        let many: Vec<Append> = (0..250).map(|it| stream(&format!("over-{it:03}"), 1_000 + it, 2_000, false)).collect();
        locked(&writer).append(&many).expect("stored");
        locked(&writer).append(&[stream("young", 58_000, 59_000, false)]).expect("stored");
        let clock = || EngineTestClock(60_000);
        let mut reader = store.reader().expect("a reader");
        let keep = RetentionTerm::new(&mut *reader, &clock(), Duration::from_secs(30)).expect("a term");
        let mut sweep = RetentionSweep::new(store.reader().expect("a reader"), Arc::new(clock()), keep);
        let mut left = || {
            let query = Query { limit: 1_000, ..Query::default() };
            reader.list(&query).expect("a page").items.len()
        };
        let mut seen = vec![left()];
        loop {
            sweep.look(&writer);
            seen.push(left());
            if !sweep.has_more() {
                break;
            }
        }
        assert_eq!(seen, [251, 151, 51, 1]);
    }
}
