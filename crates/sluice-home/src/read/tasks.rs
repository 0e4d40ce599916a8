//! What there is to see: every open task as the store has it, kept up to date by what the engine says has changed.
//!
//! It only reads. A thread that waits for something to become true waits here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_core::id::TaskId;
use sluice_core::lifecycle::Lifecycle;
use sluice_core::task::TaskState;
use sluice_core::task::session::SessionAgent;
use sluice_core::task::state::{TaskAttention, TaskWorkspace};
use sluice_engine::host::Observer;
use sluice_engine::loader::{Definitions, StreamLoadError, StreamSnapshot};
use sluice_engine::reactor::EventRange;
use sluice_engine::task_actor::TaskActor;
use sluice_store::{
    Card, Cursor, Damage, Event, LoggedEvent, PageKey, Query, Store, StoreError, StreamId, StreamSummary,
};

use crate::background::locked;
use crate::background::turns::KeyedTurns;
use crate::read::changes::ChangeSignals;
use crate::read::owing::OwingTasks;
use crate::read::readers::{LentReader, ReaderPool};
use crate::read::runs::{RunFactsCache, RunSnapshotCache};

pub(crate) const KIND: &str = "task/";
const PAGE: usize = 1000;
/// How long what could not be read waits before it is asked for again.
const AGAIN: Duration = Duration::from_millis(500);
/// What damage is called that is in no stream.
pub(crate) const STORE: &str = "the store";

pub fn stream(id: &TaskId) -> StreamId {
    StreamId::new(format!("{KIND}{id}"))
}

pub fn id_of(stream: &StreamId) -> Option<TaskId> {
    stream.as_str().strip_prefix(KIND)?.parse().ok()
}

#[derive(Clone)]
pub struct TaskSnapshot {
    pub id: TaskId,
    /// How many events it has.
    pub version: u64,
    pub card: Card,
    pub state: TaskState,
    pub lifecycle: Arc<Lifecycle>,
    /// What was asked for and is not settled.
    pub open_effects: Vec<String>,
}

impl TaskSnapshot {
    fn of(id: &TaskId, read: StreamSnapshot<TaskActor>) -> TaskSnapshot {
        let StreamSnapshot { version, card, actor } = read;
        TaskSnapshot {
            id: id.clone(),
            version,
            card,
            state: actor.state().clone(),
            lifecycle: actor.lifecycle().clone(),
            open_effects: actor.open_effects().to_vec(),
        }
    }

    /// The agents that it takes for living: its worker, or what is in its place, and the reviewer beside it.
    pub(crate) fn living(&self) -> impl DoubleEndedIterator<Item = &SessionAgent> {
        let sessions = [&self.state.main, &self.state.beside].into_iter();
        sessions.filter(|session| session.is_living()).filter_map(|session| session.agent())
    }

    pub fn status(&self) -> &str {
        self.lifecycle.state_name(self.state.status)
    }
}

/// The open tasks, and the way to all others.
pub struct ReadModel {
    readers: ReaderPool,
    pub(crate) settings: RunFactsCache,
    pub(crate) looks: RunSnapshotCache,
    open: Mutex<BTreeMap<TaskId, Arc<TaskSnapshot>>>,
    /// Whose turn it is to read a task again.
    turns: KeyedTurns,
    /// What is known to be damaged: a stream, or the store, and what was found.
    damage: Mutex<BTreeMap<String, FoundDamage>>,
    /// Those of them that wait for a worktree.
    waiting: Mutex<BTreeSet<TaskId>>,
    /// Those that have ended and still need a person.
    pub(super) owing: OwingTasks,
    changes: ChangeSignals,
}

/// What was found to be damaged.
struct FoundDamage {
    why: String,
    by: DamageFinder,
}

/// What has found damage. When the same finds it no more, a person has mended it; another may not see it at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DamageFinder {
    /// The check of the whole store, which is made once.
    Check,
    /// A list of cards.
    List,
    /// The reading of a task or run.
    Read,
}

struct ReadModelHints(Sender<Vec<StreamId>>);

impl Observer for ReadModelHints {
    fn changed(&mut self, streams: Vec<StreamId>) {
        let _ = self.0.send(streams);
    }
}

impl ReadModel {
    /// Reads all open tasks, and goes on reading what the observer hears of.
    pub fn start(
        store: &Store,
        definitions: Arc<dyn Definitions>,
    ) -> Result<(Arc<ReadModel>, Box<dyn Observer>), StoreError> {
        let tasks = Arc::new(ReadModel {
            readers: ReaderPool::new(store, definitions)?,
            settings: RunFactsCache::default(),
            looks: RunSnapshotCache::default(),
            open: Mutex::default(),
            turns: KeyedTurns::default(),
            damage: Mutex::default(),
            waiting: Mutex::default(),
            owing: OwingTasks::default(),
            changes: ChangeSignals::default(),
        });
        tasks.each_open(KIND, |stream| tasks.is_reread(stream).map(|()| true))?;
        let (sender, receiver) = channel();
        let reading = tasks.clone();
        let thread = std::thread::Builder::new().name("tasks".into());
        thread.spawn(move || reading.follow(&receiver)).expect("the system gives a thread at the start");
        Ok((tasks, Box::new(ReadModelHints(sender))))
    }

    /// Goes along the open streams whose names begin like this, for as long as `each` wants more. Whether it came to the end.
    pub(crate) fn each_open(
        &self,
        kind: &str,
        mut each: impl FnMut(&StreamId) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let is_of_kind = |stream: &&StreamId| stream.as_str().starts_with(kind);
        let mut after = StreamId::new(kind);
        loop {
            let page = self.loader().reader().open_streams(Some(&after), PAGE)?;
            for stream in page.iter().filter(is_of_kind) {
                if !each(stream)? {
                    return Ok(false);
                }
            }
            match page.last().filter(is_of_kind) {
                Some(last) if page.len() == PAGE => after = last.clone(),
                Some(_) | None => return Ok(true),
            }
        }
    }

    /// Reads what changed until the engine is gone. What comes together is read together, each stream once; what the
    /// store could not be asked for is asked for again.
    fn follow(&self, hints: &Receiver<Vec<StreamId>>) {
        let mut unread = BTreeSet::new();
        loop {
            let news = match unread.is_empty() {
                true => hints.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => hints.recv_timeout(AGAIN),
            };
            match news {
                Ok(streams) => unread.extend(streams),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            unread.extend(hints.try_iter().flatten());
            unread.iter().filter_map(crate::read::runs::id_of).for_each(|run| self.looks.forget(&run));
            let changed = unread.clone();
            unread.retain(|stream| id_of(stream).is_some() && self.is_reread(stream).is_err());
            self.changes.changed(&changed);
        }
    }

    /// Reads a task again, now, if the store answers.
    pub fn refresh(&self, id: &TaskId) {
        let _ = self.reread(&stream(id));
    }

    /// The task with this id, with everything up to this version of it. A list that is asked for afterwards has that too.
    pub(crate) fn since(&self, id: &TaskId, version: u64) -> Result<Option<Arc<TaskSnapshot>>, Problem> {
        let known = locked(&self.open).get(id).filter(|seen| seen.version >= version).cloned();
        known.map_or_else(|| self.reread(&stream(id)).map_err(unread), |seen| Ok(Some(seen)))
    }

    /// The engine has answered what was asked of a task: the lists have what it recorded, if the store answers.
    pub(crate) fn caught_up(&self, id: &TaskId, answer: &Result<EventRange, Problem>) {
        match answer {
            Ok(recorded) => drop(self.since(id, recorded.last)),
            Err(_) => self.refresh(id),
        }
    }

    /// Reads a task again. One that is damaged is noted, and is no open task any more. It is this thread's turn until the
    /// task is known: else an older read could replace a newer one.
    fn reread(&self, stream: &StreamId) -> Result<Option<Arc<TaskSnapshot>>, StreamLoadError> {
        let turn = self.turns.of(stream.as_str());
        let _turn = locked(&turn);
        let Some(id) = id_of(stream) else { return Ok(None) };
        let read = self.loader().task(stream).map(|found| found.map(|read| Arc::new(TaskSnapshot::of(&id, read))));
        let found = match &read {
            Ok(found) => found.as_ref().filter(|seen| seen.card.open),
            Err(StreamLoadError::Store(_)) => return read,
            Err(StreamLoadError::Damaged(why)) => {
                self.cannot_be_read(stream, why.clone(), DamageFinder::Read);
                None
            }
        };
        if read.is_ok() {
            self.is_whole(stream, DamageFinder::Read);
            self.owing.note(&id, read.as_ref().ok().and_then(Option::as_ref));
        }
        match found {
            Some(seen) => {
                match seen.state.is_marked(&TaskAttention::PoolFull) || seen.state.waits_for_worktree() {
                    true => locked(&self.waiting).insert(id.clone()),
                    false => locked(&self.waiting).remove(&id),
                };
                drop(locked(&self.open).insert(id, seen.clone()));
            }
            None => {
                locked(&self.waiting).remove(&id);
                drop(locked(&self.open).remove(&id));
            }
        }
        read
    }

    /// Whether the store could be asked for a task, however that stands.
    fn is_reread(&self, stream: &StreamId) -> Result<(), StoreError> {
        match self.reread(stream) {
            Ok(_) | Err(StreamLoadError::Damaged(_)) => Ok(()),
            Err(StreamLoadError::Store(error)) => Err(error),
        }
    }

    /// The same for a caller that cannot go on without the store.
    pub(super) fn is_read(&self, stream: &StreamId) -> Result<(), Problem> {
        self.is_reread(stream).map_err(|error| unread(StreamLoadError::Store(error)))
    }

    /// Something is not as it was written. A caller that asks for more than that one thing is told.
    pub(crate) fn note_damage(&self, what: String, why: String) {
        locked(&self.damage).insert(what, FoundDamage { why, by: DamageFinder::Check });
    }

    fn cannot_be_read(&self, stream: &StreamId, why: String, by: DamageFinder) {
        locked(&self.damage).entry(stream.to_string()).or_insert(FoundDamage { why, by });
    }

    /// This has found a task or run whole.
    fn is_whole(&self, stream: &StreamId, by: DamageFinder) {
        let mut damage = locked(&self.damage);
        if damage.get(stream.as_str()).is_some_and(|found| found.by == by) {
            damage.remove(stream.as_str());
        }
    }

    /// What was read of a task or run, after it was noted whether it can be.
    pub(super) fn noted<T>(&self, stream: &StreamId, read: Result<T, Problem>) -> Result<T, Problem> {
        match &read {
            Ok(_) => self.is_whole(stream, DamageFinder::Read),
            Err(problem) if problem.code == Problem::DAMAGED => {
                self.cannot_be_read(stream, problem.message.clone(), DamageFinder::Read);
            }
            Err(_) => {}
        }
        read
    }

    /// What is known to be damaged, and why.
    pub fn damage(&self) -> BTreeMap<String, String> {
        locked(&self.damage).iter().map(|(what, found)| (what.clone(), found.why.clone())).collect()
    }

    /// What was read, or nothing of it where it is damaged: that is noted, and hides nothing else.
    pub(crate) fn unless_damaged<T>(
        &self,
        what: &StreamId,
        read: Result<Option<T>, Problem>,
    ) -> Result<Option<T>, Problem> {
        match self.noted(what, read) {
            Err(problem) if problem.code == Problem::DAMAGED => Ok(None),
            read => read,
        }
    }

    /// The open tasks, oldest first.
    pub fn open(&self) -> Vec<Arc<TaskSnapshot>> {
        let mut tasks: Vec<Arc<TaskSnapshot>> = locked(&self.open).values().cloned().collect();
        tasks.sort_by(|one, other| (one.card.created, &one.id).cmp(&(other.card.created, &other.id)));
        tasks
    }

    /// The open task with this id, as it was last seen: the store is not asked.
    pub(crate) fn open_task(&self, id: &TaskId) -> Option<Arc<TaskSnapshot>> {
        locked(&self.open).get(id).cloned()
    }

    /// The open tasks that have this worktree. None is copied for it.
    pub(crate) fn that_have(&self, worktree: &str) -> Vec<Arc<TaskSnapshot>> {
        let has_it = |seen: &&Arc<TaskSnapshot>| had(&seen.state.workspace).is_some_and(|it| it == worktree);
        locked(&self.open).values().filter(has_it).cloned().collect()
    }

    /// Those of them that wait for a worktree, oldest first.
    pub(crate) fn waiting(&self) -> Vec<Arc<TaskSnapshot>> {
        let waiting = locked(&self.waiting).clone();
        if waiting.is_empty() {
            return Vec::new();
        }
        self.open().into_iter().filter(|seen| waiting.contains(&seen.id)).collect()
    }

    /// Something has changed that no stream tells of: the threads that wait look again.
    pub(crate) fn stir(&self) {
        self.changes.stir();
    }

    /// The same, where it concerns one task or run only.
    pub(crate) fn stir_stream(&self, stream: &StreamId) {
        self.changes.changed(std::slice::from_ref(stream));
    }

    /// The task with this id, as the store has it now.
    pub fn load(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, Problem> {
        let stream = stream(id);
        let read = self.loader().task(&stream).map(|read| read.map(|read| TaskSnapshot::of(id, read)));
        self.noted(&stream, read.map_err(unread))
    }

    pub(crate) fn loader(&self) -> LentReader<'_> {
        self.readers.lend()
    }

    /// Goes along cards, page by page, for as long as `each` wants more. Where it stopped, if it did not come to the end.
    pub fn walk(
        &self,
        mut query: Query,
        mut each: impl FnMut(StreamSummary) -> Result<bool, Problem>,
    ) -> Result<Option<PageKey>, Problem> {
        query.limit = query.limit.clamp(1, PAGE);
        loop {
            let page = self.loader().reader().list(&query).map_err(unread)?;
            for damage in page.damaged {
                match &damage.stream {
                    Some(stream) => self.cannot_be_read(stream, damage.why.clone(), DamageFinder::List),
                    None => self.note(damage),
                }
            }
            for summary in page.items {
                self.is_whole(&summary.stream, DamageFinder::List);
                let here = PageKey { created: summary.card.created, stream: summary.stream.clone() };
                if !each(summary)? {
                    return Ok(Some(here));
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(None),
            }
        }
    }

    pub(crate) fn note(&self, damage: Damage) {
        self.note_damage(damage.stream.map_or_else(|| STORE.to_owned(), |stream| stream.to_string()), damage.why);
    }

    /// Events of a task or run with a number above `after`.
    pub fn history(&self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, Problem> {
        self.loader().reader().history(stream, after, limit).map_err(unread)
    }

    pub fn task_history(&self, id: &TaskId) -> Result<Vec<(u64, Event)>, Problem> {
        self.history(&stream(id), 0, usize::MAX >> 1)
    }

    pub fn log(&self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, Problem> {
        self.loader().reader().log(after, limit).map_err(unread)
    }

    pub fn end_of_log(&self) -> Result<Cursor, Problem> {
        self.loader().reader().end().map_err(unread)
    }

    pub fn blob(&self, digest: &sluice_store::Digest) -> Result<Option<Vec<u8>>, Problem> {
        self.loader().reader().blob(digest).map_err(unread)
    }

    /// Waits until something has changed since this number was given, or the time is up. Gives the next number.
    pub fn wait_past(&self, before: u64, most: Duration) -> u64 {
        self.changes.wait_past(before, Instant::now() + most);
        self.changes.generation()
    }

    /// Looks again after every change of anything, until `look` finds something or the time is up. Whoever waits for one
    /// task or run waits with [`ReadModel::wait_for`].
    pub fn wait<T>(&self, most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let until = Instant::now() + most;
        loop {
            let before = self.changes.generation();
            if let Some(found) = look() {
                return Some(found);
            }
            if !self.changes.wait_past(before, until) {
                return None;
            }
        }
    }

    /// Looks again after every change of a stream, until `look` finds something or the time is up.
    pub fn wait_for<T>(&self, stream: &StreamId, most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let until = Instant::now() + most;
        let listener = self.changes.listen(stream);
        loop {
            let before = listener.generation();
            if let Some(found) = look() {
                return Some(found);
            }
            if !listener.wait_past(before, until) {
                return None;
            }
        }
    }
}

pub(crate) fn unread(trouble: impl Into<StreamLoadError>) -> Problem {
    match trouble.into() {
        StreamLoadError::Damaged(why) => Problem::damaged(why),
        // Whatever keeps the store from answering, it tells nothing about what was asked for.
        StreamLoadError::Store(error) => crate::settings::store::closed(&error),
    }
}

/// The worktree that a task has or is about to have.
pub fn had(workspace: &TaskWorkspace) -> Option<&str> {
    match workspace {
        TaskWorkspace::Unbound => None,
        TaskWorkspace::Reserved(name) | TaskWorkspace::Bound(name) => Some(&name.0),
    }
}
