//! An engine of a simulated life: a process with its memory, on a home of its own. What it wants stored is on its way
//! for a while, and the store may not be reached, or reached without an answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sluice_core::id::Dispatch;
use sluice_core::machine::Moment;
use sluice_core::task::state::WorktreePath;
use sluice_engine::ownership::Tenure;
use sluice_engine::reactor::{
    Assignment, LoadedStream, Reactor, ReactorAction, ReactorAnswer, ReactorMessage, ReactorToken, Withdrawal,
};
use sluice_store::memory::Memory;
use sluice_store::{Append, Conflict, StoreError, StreamId, Writer};

use crate::bug::SimBug;
use crate::watch::SimCommitSource;
use crate::world::{CALM, SimEvent, SimLife, SimRequest};

/// What the store says to each append of a batch.
pub(crate) type SimAppendResults = Vec<Result<u64, Conflict>>;

pub(crate) struct SimEngine {
    pub(crate) name: &'static str,
    pub(crate) reactor: Reactor,
    pub(crate) writer: Box<dyn Writer>,
    /// The ownership that it believes to have; `None` while no process runs.
    pub(crate) tenure: Option<Tenure>,
    /// A signal has stopped the process until then, and for how long.
    pub(crate) stopped_until: i64,
    pub(crate) slept: i64,
    /// The store cannot be reached from here until then.
    pub(crate) cut_until: i64,
    /// How far the wall's clock is ahead of the time, now and when the process began.
    pub(crate) wall: i64,
    pub(crate) began: i64,
    pub(crate) asked: BTreeMap<ReactorToken, SimRequest>,
    /// Workspaces that are kept free until what they are for is durable.
    pub(crate) kept: BTreeSet<WorktreePath>,
    /// What the threads are at, and what waits for one.
    pub(crate) busy: BTreeSet<(StreamId, String)>,
    pub(crate) waiting: VecDeque<Assignment>,
    /// What it waits for the end of: performances by their names, and the tasks of steps.
    pub(crate) attending: BTreeMap<(StreamId, String), Assignment>,
    pub(crate) awaiting: BTreeMap<StreamId, Assignment>,
    /// What is not to begin any more, by its name.
    pub(crate) stopped: BTreeSet<(StreamId, String)>,
}

impl SimEngine {
    pub(crate) fn new(name: &'static str, store: &Memory) -> SimEngine {
        SimEngine {
            name,
            reactor: Reactor::new(0),
            writer: Box::new(store.writer()),
            tenure: None,
            stopped_until: 0,
            slept: 0,
            cut_until: 0,
            wall: 0,
            began: 0,
            asked: BTreeMap::new(),
            kept: BTreeSet::new(),
            busy: BTreeSet::new(),
            waiting: VecDeque::new(),
            attending: BTreeMap::new(),
            awaiting: BTreeMap::new(),
            stopped: BTreeSet::new(),
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.tenure.is_none()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.tenure.map_or(0, |tenure| tenure.epoch())
    }

    /// The process is gone, and everything that it remembered.
    pub(crate) fn ends(&mut self, store: &Memory) {
        *self = SimEngine { cut_until: self.cut_until, wall: self.wall, ..SimEngine::new(self.name, store) };
    }
}

fn version(append: &Append) -> u64 {
    append.expected + append.events.len() as u64
}

enum SimStoreFault {
    /// It never got there.
    Before,
    /// It was done, and the answer is lost.
    After,
}

impl SimLife {
    pub(crate) fn engine(&mut self) -> &mut SimEngine {
        &mut self.engines[self.here]
    }

    /// The time as the engine at hand sees it: its wall's clock when it began, and what has gone by since.
    pub(crate) fn moment(&self) -> Moment {
        let engine = &self.engines[self.here];
        let ahead = if self.bug == Some(SimBug::TrustsTheWallClock) { engine.wall } else { engine.began };
        Moment(self.now + ahead)
    }

    pub(crate) fn hear(&mut self, message: ReactorMessage) {
        let now = self.moment();
        self.engine().reactor.receive(message, now);
    }

    /// What the engine at hand wants done is done, while the store is its own.
    pub(crate) fn act(&mut self) -> Result<(), String> {
        if self.engines[self.here].is_down() || self.is_stopped(self.here) || !self.may_act() {
            return Ok(());
        }
        let now = self.moment();
        for action in self.engine().reactor.act(now) {
            match action {
                ReactorAction::Commit(batch) => self.commit(batch)?,
                ReactorAction::Load(stream) => {
                    let wait = self.soon(20);
                    self.at(wait, SimEvent::Loaded(stream));
                }
                ReactorAction::Perform(assignment) => self.perform(assignment)?,
                // Workers of this world remember by themselves what they are at, and hear of nothing too late.
                ReactorAction::Held(..) | ReactorAction::Withdrawn { is_lost: false, .. } => {}
                ReactorAction::Withdrawn { worker, dispatch, is_lost: true } => self.is_given_up(&worker, dispatch)?,
                ReactorAction::Reply(token, answer) => self.replied(token, &answer)?,
            }
        }
        if let Some(alarm) = self.engine().reactor.next_alarm() {
            let (here, at) = (self.here, self.now + (alarm.0 - now.0).max(0));
            let is_alarm = |whose: Option<usize>, due: &SimEvent| whose == Some(here) && matches!(due, SimEvent::Alarm);
            if !self.due.range(..=(at, u64::MAX)).any(|(_, (whose, due))| is_alarm(*whose, due)) {
                self.at(at - self.now, SimEvent::Alarm);
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: Vec<Append>) -> Result<(), String> {
        self.note(&format!("commit {} appends", batch.len()));
        if self.bug == Some(SimBug::AnswersBeforeDurable) {
            let versions = batch.iter().map(|it| Ok(version(it))).collect();
            self.at(0, SimEvent::Told(versions));
        }
        if self.bug == Some(SimBug::EndsBeforeDurable) {
            for append in &batch {
                for effect in append.effects.iter().filter(|effect| effect.kind == "end_session") {
                    let (stream, effect) = (append.stream.clone(), effect.clone());
                    let withdrawal = Withdrawal::default();
                    let ends = Assignment { stream, effect, dispatch: Dispatch(0), worker: None, withdrawal };
                    self.hand_to_task(ends)?;
                }
            }
        }
        if batch.iter().any(|append| append.timers.iter().any(|(_, due)| due.is_some())) {
            self.is_in_peril(10, 1_500);
        }
        let (wait, sent) = (1 + self.soon(30), self.chance.percent(50));
        self.at(wait, SimEvent::Stored { batch, doubt: false, sent });
        Ok(())
    }

    /// Whoever asked hears the answer; what was kept free for the asking is the task's now, or nobody's.
    fn replied(&mut self, token: ReactorToken, answer: &ReactorAnswer) -> Result<(), String> {
        let is_done = matches!(answer, ReactorAnswer::Done(_));
        let asked = self.engine().asked.remove(&token);
        if asked.is_some() && !self.is_owner(self.here) {
            return Err(format!("{} answers {answer:?}, and the store is another's", self.engines[self.here].name));
        }
        let kept = match asked {
            Some(SimRequest::Begins(stream, kept)) => {
                match is_done {
                    true => self.watch.told(&stream),
                    false => self.watch.denied(&stream)?,
                }
                kept
            }
            Some(SimRequest::Hears(stream)) => {
                if matches!(answer, ReactorAnswer::NotFound) {
                    self.watch.is_not_there(&stream)?;
                }
                None
            }
            Some(SimRequest::Goes(kept)) => kept,
            Some(SimRequest::Lends) => {
                self.hands_on()?;
                None
            }
            Some(SimRequest::MayMerge(stream, unforced)) => {
                if let (true, Some((run, work))) = (is_done, unforced) {
                    let newest = self.ground.checks.get(&stream);
                    let runs = [Some(&run), newest];
                    if !runs.into_iter().flatten().any(|run| self.ground.has_passed(&stream, run, &work)) {
                        return Err(format!("{stream}: it may be merged, and the run {run} has not judged {work:?}"));
                    }
                }
                if is_done {
                    let wait = self.soon(500);
                    self.at(wait, SimEvent::Merged(stream));
                }
                None
            }
            Some(asked @ SimRequest::Moves { .. }) => {
                if let (ReactorAnswer::Refused(_), SimRequest::Moves { stream, session, verdict, .. }) =
                    (answer, &asked)
                {
                    self.watch.refused_verdict(stream, *session, *verdict);
                    verdict.map_or(Ok(()), |verdict| self.watch.keeps_verdict(stream, *session, verdict))?;
                }
                self.unanswered(asked);
                None
            }
            Some(SimRequest::Counts(_)) | None => None,
        };
        self.engine().kept.retain(|name| Some(name) != kept.as_ref());
        Ok(())
    }

    /// Whether the next call to the store goes wrong, and how.
    fn trouble(&mut self) -> Option<SimStoreFault> {
        let is_cut = self.now < self.engines[self.here].cut_until;
        if !is_cut && (self.now >= CALM || !self.chance.percent(2)) {
            return None;
        }
        Some(if self.chance.percent(if is_cut { 25 } else { 50 }) {
            SimStoreFault::After
        } else {
            SimStoreFault::Before
        })
    }

    pub(crate) fn reads_in_vain(&mut self) -> bool {
        self.trouble().is_some()
    }

    /// A batch reaches the store, or not; in either case the answer may be lost on the way.
    pub(crate) fn stored(&mut self, mut batch: Vec<Append>, doubt: bool) -> Result<(), String> {
        if self.bug == Some(SimBug::LosesPartOfABatch) && batch.len() > 1 {
            batch.pop();
        }
        let trouble = self.trouble();
        if let Some(SimStoreFault::Before) = trouble {
            return self.is_in_doubt(batch, doubt);
        }
        let Some(mut results) = self.write(batch.clone(), doubt)? else { return self.loses_the_store() };
        if let Some(SimStoreFault::After) = trouble {
            self.note("nobody hears that it is stored");
            return self.is_in_doubt(batch, true);
        }
        match self.bug {
            Some(SimBug::AnswersBeforeDurable) => return Ok(()),
            Some(SimBug::LosesPartOfABatch) => results.push(Ok(0)),
            _ => {}
        }
        let wait = self.soon(5);
        self.at(wait, SimEvent::Told(results));
        Ok(())
    }

    /// It is not known whether a batch is stored: the same is handed in again.
    fn is_in_doubt(&mut self, batch: Vec<Append>, doubt: bool) -> Result<(), String> {
        let conflict = |it: &Append| Conflict { stream: it.stream.clone(), expected: it.expected, found: version(it) };
        let told = match self.bug {
            Some(SimBug::TakesDoubtForNo) => batch.iter().map(|it| Err(conflict(it))).collect(),
            Some(SimBug::TakesDoubtForYes) => batch.iter().map(|it| Ok(version(it))).collect(),
            _ => {
                let (wait, sent) = (200 + self.soon(800), self.chance.percent(50));
                self.at(wait, SimEvent::Stored { batch, doubt, sent });
                return Ok(());
            }
        };
        self.at(1, SimEvent::Told(told));
        Ok(())
    }

    /// A batch reaches the disk. One that may have reached it before is looked for first, as the port promises. `None`:
    /// the store is another's.
    pub(crate) fn write(&mut self, mut batch: Vec<Append>, doubt: bool) -> Result<Option<SimAppendResults>, String> {
        let mut known = Vec::with_capacity(batch.len());
        if self.has(SimBug::LeavesTimers) {
            let over = batch.iter_mut().filter(|append| !append.header.card.open);
            over.for_each(|append| append.timers.clear());
        }
        if self.has(SimBug::ForgetsAttention) {
            batch.iter_mut().try_for_each(|append| self.watch.forgets_attention(append))?;
        }
        if self.has(SimBug::TellsAtTheMoveOnly) {
            batch.iter_mut().try_for_each(|append| self.watch.tells_at_the_move(append))?;
        }
        if self.has(SimBug::HidesBehindMarks) {
            batch.iter_mut().try_for_each(|append| self.watch.hides_behind_marks(append))?;
        }
        for append in &batch {
            known.push(if doubt { self.find_out(append)? } else { None });
        }
        let new = batch.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(it, _)| it.clone());
        let answer = self.engines[self.here].writer.append(&new.collect::<Vec<_>>());
        let mut answers = match answer {
            Ok(answers) => answers.into_iter(),
            Err(StoreError::LostOwnership) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut results = Vec::with_capacity(batch.len());
        for (append, known) in batch.iter().zip(known) {
            let result = known.map(Ok).or_else(|| answers.next()).ok_or("too few answers")?;
            if known.is_none() && result.is_ok() {
                self.is_stored(append)?;
            }
            results.push(result);
        }
        Ok(Some(results))
    }

    fn is_stored(&mut self, append: &Append) -> Result<(), String> {
        let (now, place, epoch) = (self.now, self.here, self.engines[self.here].epoch());
        let ahead = self.moment().0 - now;
        self.watch.stored(append, SimCommitSource { now, ahead, place, epoch })?;
        if append.events.iter().any(|event| event.kind == "task.run_started") {
            let wait = self.soon(300);
            self.at(wait, SimEvent::LooksAtRun(append.stream.clone()));
        }
        self.awaited_ends(&append.stream);
        Ok(())
    }

    /// The version that an append has led to, if it is stored.
    fn find_out(&mut self, append: &Append) -> Result<Option<u64>, String> {
        let log = self.reader.history(&append.stream, append.expected, append.events.len());
        let log = log.map_err(|error| error.to_string())?;
        let is_there =
            log.len() == append.events.len() && log.iter().zip(&append.events).all(|((_, it), own)| it == own);
        Ok(is_there.then(|| version(append)))
    }

    /// A stream has been read, or could not be; then it is read again.
    pub(crate) fn loaded(&mut self, stream: StreamId) -> Result<(), String> {
        let found: Option<LoadedStream> = match self.reads_in_vain() {
            false => self.load(&stream)?,
            true if self.bug == Some(SimBug::TakesAFailedReadForNothing) => None,
            true => {
                let wait = 200 + self.soon(800);
                self.at(wait, SimEvent::Loaded(stream));
                return Ok(());
            }
        };
        self.hear(ReactorMessage::Loaded { stream, found });
        Ok(())
    }
}
