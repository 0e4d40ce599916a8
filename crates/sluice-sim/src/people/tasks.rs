//! What people do with tasks: they create and begin them, move, cancel and merge them, ask for changes, start agents
//! again, and in the end see to everything that waits for them.

use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::lifecycle::LifecycleTransition;
use sluice_core::task::input::{TaskUpdate, WorkspaceReservation};
use sluice_core::task::session::SessionNumber;
use sluice_core::task::state::{TaskSubject, WorkSnapshot};
use sluice_core::task::{Evidence, NewTask, TaskAsker, TaskInput};
use sluice_engine::reactor::{ReactorMessage, ReactorToken};
use sluice_engine::task_actor::TaskActor;
use sluice_store::StreamId;

use crate::definitions;
use crate::world::{SimLife, SimRequest};

/// How often a person tries to help a task on before giving it up.
const PATIENCE: u32 = 5;
/// How often a person says that a task is given up.
const INSISTENCE: u32 = 4;

impl SimLife {
    pub(crate) fn person_with_tasks(&mut self) {
        let tasks = self.watch.promised_tasks();
        if tasks.is_empty() || self.chance.percent(35) {
            return self.create_task();
        }
        let stream = self.chance.pick(&tasks).clone();
        self.asks_something(&stream);
    }

    fn create_task(&mut self) {
        self.number += 1;
        let number = self.number;
        let id = format!("task-{number:05}");
        // The odd ones are the last.
        let odd = usize::from(self.chance.percent(40));
        let known = self.chance.pick(&definitions::lifecycles()[2 * odd..2 + 2 * odd]);
        let about = TaskSubject {
            summary: if self.chance.percent(10) { String::new() } else { "Fix it".into() },
            project: "sim".into(),
            branch: id.clone(),
            ..TaskSubject::default()
        };
        let initial: Vec<_> =
            known.lifecycle.initial.iter().map(|it| known.lifecycle.state(*it).name.clone()).collect();
        let status = if self.chance.percent(10) { Some(self.chance.pick(&initial).clone()) } else { None };
        let spawn = self.chance.percent(70);
        let (room, kept) = if spawn { self.room() } else { (WorkspaceReservation::Unasked, None) };
        self.note(&format!("{id}: a task on {}, with {room:?}", known.lifecycle.name));
        let wanted =
            NewTask { status, about, by: TaskAsker::Person, spawn, evidence: Evidence::default(), room, sessions: 0 };
        let now = self.moment();
        let (lifecycle, digest) = (known.lifecycle.clone(), known.digest.to_string());
        let created = TaskActor::create(lifecycle, digest, id.clone(), &wanted, now);
        let Ok((actor, change)) = created else {
            return self.engine().kept.retain(|name| Some(name) != kept.as_ref());
        };
        let (token, stream) = (ReactorToken(number), StreamId::new(id));
        self.waits_for(token, SimRequest::Begins(stream.clone(), kept));
        let blobs = vec![(known.digest, b"pinned".to_vec())];
        self.ground.sheet(&stream).branch = stream.as_str().to_owned();
        self.ground.sheet(&stream).is_cursed = self.chance.percent(15);
        // What is decided at the creation is decided for a person.
        self.watch.asks(&stream, TaskAsker::Person);
        self.hear(ReactorMessage::Create { token: Some(token), stream, actor: Box::new(actor), change, blobs });
    }

    /// A person asks something of a task, sensible or not.
    fn asks_something(&mut self, stream: &StreamId) {
        let by = TaskAsker::Person;
        let evidence = self.ground.sheet(stream).evidence();
        let waits = self.watch.tasks.get(stream).is_some_and(|task| task.state.waits_for_worktree());
        if waits && self.chance.percent(60) {
            return self.lets_go_on(stream);
        }
        let mut asked = None;
        let input = match self.chance.below(20) {
            0 => TaskInput::Cancel { by, evidence },
            1..=3 => {
                let (room, kept) = self.room();
                asked = Some(SimRequest::Goes(kept));
                TaskInput::Respawn { by, room }
            }
            4..=5 => {
                let (room, kept) = self.room();
                asked = Some(SimRequest::Goes(kept));
                TaskInput::RequestChanges { by, message: "more".into(), evidence, room }
            }
            6..=8 => {
                let force = self.chance.percent(50);
                let judge = self.ground.checks.get(stream).filter(|_| !force).cloned();
                let unforced = judge.map(|run| (run, WorkSnapshot::of(&evidence.work)));
                asked = Some(SimRequest::MayMerge(stream.clone(), unforced));
                TaskInput::Merge { by, force, evidence }
            }
            9 if self.chance.percent(50) => TaskInput::ClearAttention { by },
            9 => self.is_signalled(stream),
            10 if self.chance.percent(50) => {
                let (room, kept) = self.room();
                asked = Some(SimRequest::Goes(kept));
                TaskInput::Retry { by, room }
            }
            10 => TaskInput::Update { by, update: TaskUpdate::Summary(format!("at {}", self.now)) },
            11..=13 => {
                let (room, kept) = self.room();
                asked = Some(SimRequest::Goes(kept));
                TaskInput::Spawn { by, evidence, room }
            }
            _ => {
                let (room, kept) = self.room();
                asked = Some(SimRequest::Goes(kept));
                return self.goes(stream, room, asked);
            }
        };
        self.note(&format!("{stream}: a person says {}", input.kind().words()));
        self.say(stream, asked, input);
        self.speak_to(stream);
    }

    /// A channel says something of the agent in a session, which may be another's or gone.
    fn is_signalled(&mut self, stream: &StreamId) -> TaskInput {
        let newest = self.watch.tasks.get(stream).map_or(1, |task| task.state.sessions_asked.max(1));
        let session = SessionNumber(newest - u32::from(newest > 1 && self.chance.percent(20)));
        let by = *self.chance.pick(&AttentionChannel::ALL);
        let signal = match self.chance.below(3) {
            0 => SessionSignal::Quiet { seconds: 300 },
            1 => SessionSignal::Works { by },
            _ => SessionSignal::Waits { what: *self.chance.pick(&DialogKind::ALL), text: "so?".into(), by },
        };
        TaskInput::Signal { session, signal }
    }

    /// A person moves a task along one of its ways, and perhaps writes what that asks for.
    fn goes(&mut self, stream: &StreamId, room: WorkspaceReservation, asked: Option<SimRequest>) {
        let Some(task) = self.watch.tasks.get(stream) else { return };
        let (lifecycle, status) = (task.lifecycle.clone(), task.state.status);
        let anywhere = self.chance.percent(10);
        let is_way =
            |edge: &&LifecycleTransition| anywhere || edge.from == status && !lifecycle.state(edge.to).terminal;
        let ways: Vec<&LifecycleTransition> = lifecycle.transitions.iter().filter(is_way).collect();
        let way = match ways.is_empty() {
            true => self.chance.pick(&lifecycle.transitions),
            false => *self.chance.pick(&ways),
        };
        if let Some(gate) = way.gate.as_ref().filter(|_| self.chance.percent(50)) {
            self.writes(stream, gate);
        }
        let to = lifecycle.state(way.to).name.clone();
        self.note(&format!("{stream}: a person moves it to {}", to.as_str()));
        let evidence = self.ground.sheet(stream).evidence();
        self.say(stream, asked, TaskInput::Move { by: TaskAsker::Person, to, evidence, room, feedback: None });
        self.speak_to(stream);
    }

    pub(crate) fn merged(&mut self, stream: StreamId) {
        self.note(&format!("{stream}: a person has merged it"));
        let push_failed = self.chance.percent(10).then(|| "no remote".to_owned());
        let evidence = self.ground.sheet(&stream).evidence();
        self.say(
            &stream,
            None,
            TaskInput::Merged {
                by: TaskAsker::Person,
                commit: None,
                forced: false,
                push_failed,
                evidence,
                feedback: None,
            },
        );
    }

    /// When nothing else is due, people see to the tasks that are left, and give up those that do not get on.
    pub(crate) fn help_somebody(&mut self) -> Result<bool, String> {
        let open = self.watch.tasks.iter().find(|(_, task)| !task.is_finished());
        let Some(stream) = open.map(|(stream, _)| stream.clone()) else { return Ok(false) };
        let helped = self.helped.entry(stream.clone()).or_default();
        *helped += 1;
        match *helped {
            times if times > PATIENCE + INSISTENCE => return Err(format!("{stream} cannot be given up")),
            times if times > PATIENCE => {
                self.note(&format!("{stream}: a person gives it up"));
                let evidence = self.ground.sheet(&stream).evidence();
                self.say(&stream, None, TaskInput::Cancel { by: TaskAsker::Person, evidence });
            }
            _ => self.asks_something(&stream),
        }
        Ok(true)
    }
}
