//! The threads of an engine's own hands. There are few; whatever waits for something else to end holds none, or nothing
//! would get on when enough of it waits.

use sluice_core::task::state::TaskSubject;
use sluice_core::task::{Evidence, NewTask, TaskAsker};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::reactor::{Assignment, ReactorMessage};
use sluice_engine::task_actor::TaskActor;
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::definitions;
use crate::hands::is_task;
use crate::watch::TaskWatch;
use crate::works::failed;
use crate::world::{CALM, SimEvent, SimLife};

/// So much is carried out at once.
const MOST: usize = 3;

impl SimLife {
    /// An effect is begun as soon as a thread is free and the store can be read. What cannot be read now is no outcome.
    pub(crate) fn begins(&mut self, it: Assignment) -> Result<(), String> {
        if self.engine().busy.len() >= MOST {
            self.engine().waiting.push_back(it);
            return Ok(());
        }
        // It was decided while the store was ours. Before anything is done it must be so again, or still.
        if !self.may_act() {
            self.at(200, SimEvent::Begins(it));
            return Ok(());
        }
        let name = (it.stream.clone(), it.effect.id.clone());
        if self.reads_in_vain() {
            return self.cannot_begin(it, SimBug::TakesAFailedReadForAnOutcome, UNREACHED);
        }
        if self.is_short() {
            return self.cannot_begin(it, SimBug::TakesAShortageForAnOutcome, SHORT);
        }
        if self.panics() && !self.is_there(&it)? {
            self.note(&format!("{}: the hands panic at {}", it.stream, it.effect.id));
            if is_task(&it.stream) {
                self.fails_at(&it)?;
            }
            if !self.has(SimBug::SwallowsPanics) {
                self.is_over(it, EffectOutcome::Failed("the hands panicked".into()))?;
            }
            return Ok(());
        }
        self.engine().busy.insert(name);
        match is_task(&it.stream) {
            true => self.hand_to_task(it),
            false => self.carries_out_for_run(it),
        }
    }

    /// The machine has no file descriptor, process or memory left for a moment.
    fn is_short(&mut self) -> bool {
        self.now < CALM && self.chance.percent(2)
    }

    /// An effect is begun later, unless the engine is broken and takes why it cannot be begun now for its outcome.
    fn cannot_begin(&mut self, it: Assignment, bug: SimBug, why: &str) -> Result<(), String> {
        if self.has(bug) {
            return self.is_over(it, EffectOutcome::Failed(why.into()));
        }
        let wait = 200 + self.soon(800);
        self.at(wait, SimEvent::Begins(it));
        Ok(())
    }

    /// A thread has nothing to do any more, and takes the next.
    pub(crate) fn frees_thread(&mut self, stream: &StreamId, effect: &str) -> Result<(), String> {
        self.engine().busy.remove(&(stream.clone(), effect.to_owned()));
        while self.engine().busy.len() < MOST {
            let Some(next) = self.engine().waiting.pop_front() else { break };
            self.begins(next)?;
        }
        Ok(())
    }

    /// The engine hears how something ended, perhaps twice.
    pub(crate) fn reports(&mut self, it: &Assignment, outcome: &EffectOutcome) -> Result<(), String> {
        self.frees_thread(&it.stream, &it.effect.id)?;
        for _ in 0..=usize::from(self.chance.percent(5)) {
            let (stream, effect, outcome) = (it.stream.clone(), it.effect.id.clone(), outcome.clone());
            self.hear(ReactorMessage::Ended { token: None, stream, effect, dispatch: it.dispatch, outcome });
        }
        Ok(())
    }

    /// A step that is a task: it is created, unless it is there, and its end is waited for.
    pub(crate) fn awaits(&mut self, it: Assignment) -> Result<(), String> {
        let id = format!("task-{}-{}", it.stream, it.effect.id.replace('.', "-"));
        let task = StreamId::new(id.clone());
        self.note(&format!("{}: {} waits for {id}", it.stream, it.effect.id));
        if !self.watch.tasks.contains_key(&task) {
            self.create_for_step(&task, id);
        }
        let (stream, effect) = (it.stream.clone(), it.effect.id.clone());
        self.engine().awaiting.insert(task.clone(), it);
        self.awaited_ends(&task);
        if self.has(SimBug::WaitsOnAThread) {
            return Ok(());
        }
        self.frees_thread(&stream, &effect)
    }

    fn create_for_step(&mut self, task: &StreamId, id: String) {
        let known = self.chance.pick(&definitions::lifecycles()[..2]);
        let (room, _) = self.room();
        let about = TaskSubject {
            summary: "A part".into(),
            project: "sim".into(),
            branch: id.clone(),
            ..TaskSubject::default()
        };
        let by = TaskAsker::Person;
        let wanted = NewTask { status: None, about, by, spawn: true, evidence: Evidence::default(), room, sessions: 0 };
        let now = self.moment();
        let created = TaskActor::create(known.lifecycle.clone(), known.digest.to_string(), id, &wanted, now);
        let Ok((actor, change)) = created else { return };
        self.watch.asks(task, by);
        self.ground.sheet(task).branch = task.as_str().to_owned();
        let (stream, blobs) = (task.clone(), vec![(known.digest, b"pinned".to_vec())]);
        self.hear(ReactorMessage::Create { token: None, stream, actor: Box::new(actor), change, blobs });
    }

    /// A task may be over: whoever waits for that hears of it.
    pub(crate) fn awaited_ends(&mut self, task: &StreamId) {
        let is_over = self.watch.tasks.get(task).is_some_and(TaskWatch::is_finished);
        let Some(assignment) = is_over.then(|| self.engine().awaiting.remove(task)).flatten() else { return };
        let (wait, outcome) = (self.soon(100), EffectOutcome::Run(self.report()));
        self.at(wait, SimEvent::Reports { assignment, outcome });
    }

    /// A step that is a task is ended; its task goes on.
    pub(crate) fn awaits_no_more(&mut self, stream: &StreamId, effect: &str) {
        let awaiting = &mut self.engine().awaiting;
        let task = awaiting.iter().find(|(_, it)| it.stream == *stream && it.effect.id == effect);
        let Some(task) = task.map(|(task, _)| task.clone()) else { return };
        let Some(assignment) = awaiting.remove(&task) else { return };
        let (wait, outcome) = (self.soon(100), failed("it was ended; its task goes on"));
        self.at(wait, SimEvent::Reports { assignment, outcome });
    }
}

pub(crate) const UNREACHED: &str = "the store cannot be reached";
/// What the system says when it has nothing left to begin something with.
pub(crate) const SHORT: &str = "Too many open files";
