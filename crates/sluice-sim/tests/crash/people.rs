//! The person in the child: creates tasks, begins them, and helps on those that wait for somebody.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::session::{SessionExit, SessionNumber, TaskSession};
use sluice_core::task::state::{TaskSubject, TaskWorkspace, WorktreePath};
use sluice_core::task::{Evidence, NewTask, TaskAsker, TaskInput, TaskState};
use sluice_engine::actor::ActorInput;
use sluice_engine::codec::task_state;
use sluice_engine::host::{EngineClock, Host};
use sluice_engine::loader::pin;
use sluice_engine::reactor::{ReactorAnswer, ReactorMessage};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Reader, StreamId};

use crate::child::{WallClock, say};
use crate::{PINNED_LIFECYCLE, is_task};

/// How many workspaces there are.
const POOL: usize = 12;

pub(crate) struct Person {
    reader: Box<dyn Reader>,
    lifecycle: Arc<Lifecycle>,
    /// Given away by this process. They are not given away again before it is clear from the store that they are free.
    given: BTreeSet<WorktreePath>,
}

impl Person {
    pub(crate) fn new(reader: Box<dyn Reader>, lifecycle: Arc<Lifecycle>) -> Person {
        Person { reader, lifecycle, given: BTreeSet::new() }
    }

    fn open(&mut self) -> Vec<StreamId> {
        self.reader.open_streams(None, 10_000).unwrap()
    }

    /// The tasks that are open, as they are stored. The workspaces that they have are taken.
    fn tasks(&mut self) -> Vec<(StreamId, TaskState)> {
        let open = self.open();
        let mut tasks = Vec::new();
        for stream in open.into_iter().filter(is_task) {
            let Some(stored) = self.reader.load(&stream).unwrap() else { continue };
            let state = task_state::read(&self.lifecycle, &stored.header.data).unwrap().state;
            tasks.push((stream, state));
        }
        self.given = tasks
            .iter()
            .filter_map(|(_, state)| match &state.workspace {
                TaskWorkspace::Unbound => None,
                TaskWorkspace::Reserved(name) | TaskWorkspace::Bound(name) => Some(name.clone()),
            })
            .collect();
        tasks
    }

    /// The sessions that are stored as living. Their processes ended with the engine that started them.
    pub(crate) fn sessions(&mut self) -> Vec<(StreamId, SessionNumber)> {
        let living = |session: &TaskSession| match session {
            TaskSession::Alive(agent) | TaskSession::Ending(agent) => Some(agent.id),
            // The start is still to be performed, or it is performed again.
            TaskSession::Starting(_) | TaskSession::Absent | TaskSession::Dead(..) => None,
        };
        let of_task = |(stream, state): (StreamId, TaskState)| {
            let ids = [living(&state.main), living(&state.beside)];
            ids.into_iter().flatten().map(move |id| (stream.clone(), id)).collect::<Vec<_>>()
        };
        self.tasks().into_iter().flat_map(of_task).collect()
    }

    /// Reports the sessions that were found gone.
    pub(crate) fn reports(&self, host: &Host, lost: Vec<(StreamId, SessionNumber)>) {
        for (stream, session) in lost {
            let input = TaskInput::SessionExited { session, exit: SessionExit::Lost, evidence: Evidence::default() };
            host.handle().send(ReactorMessage::Say { token: None, stream, said: ActorInput::Task(input) });
        }
    }

    fn room(&mut self) -> WorkspaceReservation {
        let mut names = (1..=POOL).map(|number| WorktreePath(format!("w{number}")));
        match names.find(|name| !self.given.contains(name)) {
            Some(name) => {
                self.given.insert(name.clone());
                WorkspaceReservation::Reserved(name)
            }
            None => WorkspaceReservation::Full,
        }
    }

    pub(crate) fn creates(&mut self, host: &Host, number: usize) {
        let id = format!("task-{}-{number}", std::process::id());
        let about = TaskSubject { summary: "Fix it".into(), project: "g".into(), ..TaskSubject::default() };
        let room = self.room();
        let wanted = NewTask {
            status: None,
            about,
            by: TaskAsker::Person,
            spawn: true,
            evidence: Evidence::default(),
            room,
            sessions: 0,
        };
        let digest = pin(PINNED_LIFECYCLE).to_string();
        let created = TaskActor::create(self.lifecycle.clone(), digest, id.clone(), &wanted, WallClock.now());
        let (actor, change) = created.unwrap();
        let stream = StreamId::new(id);
        let answer = host.ask(|token| ReactorMessage::Create {
            token: Some(token),
            stream: stream.clone(),
            actor: Box::new(actor),
            change,
            blobs: vec![(pin(PINNED_LIFECYCLE), PINNED_LIFECYCLE.to_vec())],
        });
        if matches!(answer.recv(), Ok(ReactorAnswer::Done(_))) {
            say(&format!("promised {stream}"));
        }
    }

    /// Does what each open task needs a person for. Whether anything at all is still open.
    pub(crate) fn sees_to_everything(&mut self, host: &Host) -> bool {
        for (stream, state) in self.tasks() {
            let Some(input) = self.help(&state) else { continue };
            let closes = matches!(input, TaskInput::Cancel { .. } | TaskInput::Merged { .. });
            let answer = host.ask(|token| ReactorMessage::Say {
                token: Some(token),
                stream: stream.clone(),
                said: ActorInput::Task(input),
            });
            if matches!(answer.recv(), Ok(ReactorAnswer::Done(_))) && closes {
                say(&format!("closed {stream}"));
            }
        }
        !self.open().is_empty()
    }

    fn help(&mut self, state: &TaskState) -> Option<TaskInput> {
        let by = TaskAsker::Person;
        let evidence = Evidence::default();
        if !state.turns.is_empty() {
            return None;
        }
        let has_workspace = state.workspace.bound().is_some();
        match (self.lifecycle.state_name(state.status), &state.main) {
            ("pending", _) => {
                let room = self.room();
                (room != WorkspaceReservation::Full).then_some(TaskInput::Spawn { by, evidence, room })
            }
            ("reviewing", _) => {
                Some(TaskInput::Merged { by, commit: None, forced: false, push_failed: None, evidence, feedback: None })
            }
            ("working" | "agent-review", TaskSession::Alive(_) | TaskSession::Starting(_)) => None,
            ("working" | "agent-review", TaskSession::Dead(..) | TaskSession::Absent) if has_workspace => {
                Some(TaskInput::Respawn { by, room: WorkspaceReservation::Unasked })
            }
            _ => Some(TaskInput::Cancel { by, evidence }),
        }
    }
}
