//! Agents in a simulated life: they write what is asked of them or not, ask for moves, for their own task and sometimes
//! for another's, wait to be spoken to, end and crash. They know nothing of the engine and outlive it.

use sluice_core::artifact::Gate;
use sluice_core::lifecycle::LifecycleTransition;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::session::{SessionExit, SessionNumber, SessionRole, TaskSession, TaskSessionPlace};
use sluice_core::task::{TaskAsker, TaskInput};
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::world::{CALM, SimEvent, SimLife, SimRequest};

/// After so many steps an agent has had enough.
const MOST_STEPS: u32 = 8;

impl SimLife {
    /// The agents of a task are spoken to: those that wait go on.
    pub(crate) fn speak_to(&mut self, stream: &StreamId) {
        let living: Vec<SessionNumber> = self.ground.living(stream).collect();
        for session in living {
            if let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) {
                process.steps = process.steps.min(MOST_STEPS / 2);
                if process.is_asking {
                    continue; // it hears that when it has its answer, and goes on then
                }
                process.stir += 1;
                let stir = process.stir;
                let wait = 100 + self.soon(3_000);
                self.at(wait, SimEvent::Agent { stream: stream.clone(), session, stir });
            }
        }
    }

    pub(crate) fn agent(&mut self, stream: &StreamId, session: SessionNumber, stir: u64) {
        let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) else { return };
        if !process.is_at_work() || process.stir != stir {
            return;
        }
        self.here = process.home;
        process.steps += 1;
        process.is_asking = false;
        let (steps, role) = (process.steps, process.role);
        let cursed = self.ground.sheet(stream).is_cursed;
        let crashes = self.chance.percent(if cursed { 60 } else { 3 + 7 * u64::from(self.now < CALM) });
        if crashes || steps > MOST_STEPS {
            let exit = *self.chance.pick(&[
                SessionExit::Code(0),
                SessionExit::Code(1),
                SessionExit::Signal(11),
                SessionExit::Lost,
            ]);
            return self.exits(stream, session, exit);
        }
        if self.chance.percent(4) {
            self.meddles(stream, session);
        }
        if self.waits(stream, role) {
            return;
        }
        let waits = self.works(stream, session, role, stir);
        if let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) {
            process.is_asking = waits;
        }
        let wait = 300 + self.soon(6_000);
        if !waits && self.ground.living(stream).any(|living| living == session) {
            self.at(wait, SimEvent::Agent { stream: stream.clone(), session, stir });
        }
    }

    /// Whether an agent waits to be spoken to: a person is to decide, or a reviewer is at it.
    fn waits(&mut self, stream: &StreamId, role: SessionRole) -> bool {
        let Some(task) = self.watch.tasks.get(stream) else { return false };
        let driven = task.is_driven();
        let reviewed = role == SessionRole::Worker && task.state.visit.watch == TaskSessionPlace::Beside;
        (!driven && self.chance.percent(70)) || (reviewed && self.chance.percent(95))
    }

    /// An agent picks a way out of the state that its task is in, does what that asks for, more or less, and takes it.
    /// Whether it waits for an answer.
    fn works(&mut self, stream: &StreamId, session: SessionNumber, role: SessionRole, stir: u64) -> bool {
        let Some(task) = self.watch.tasks.get(stream) else { return false };
        let (lifecycle, status) = (task.lifecycle.clone(), task.state.status);
        let gives_up = self.chance.percent(2);
        let ways: Vec<&LifecycleTransition> = lifecycle
            .transitions
            .iter()
            .filter(|edge| edge.from == status && (gives_up || !lifecycle.state(edge.to).terminal))
            .collect();
        if ways.is_empty() {
            return false;
        }
        let way = *self.chance.pick(&ways);
        let verdict = way.gate.as_ref().is_some_and(|gate| gate.verdict.is_some());
        let honest = !verdict || role == SessionRole::Reviewer;
        if let Some(gate) = way.gate.as_ref().filter(|_| self.chance.percent(if honest { 85 } else { 20 })) {
            self.writes(stream, gate);
        }
        match self.chance.below(20) {
            0..=13 => {
                let to = lifecycle.state(way.to).name.clone();
                self.note(&format!("{stream}: {session} asks for {}", to.as_str()));
                let test = way.gate.as_ref().filter(|_| role == SessionRole::Reviewer).and_then(|gate| gate.verdict);
                let verdict = test.map(|test| test.wanted);
                // What it was told before may not be the last that the engine knows of.
                self.watch.refused_verdict(stream, session, None);
                let mut asked = Some(SimRequest::Moves { stream: stream.clone(), session, stir, verdict });
                for _ in 0..=usize::from(self.chance.percent(10)) {
                    let evidence = self.ground.sheet(stream).evidence();
                    let by = TaskAsker::Session(session);
                    if self.bug != Some(SimBug::ForgetsWhatReviewersAskedFor) {
                        self.say(stream, None, TaskInput::Verdict { by, to: to.clone(), evidence: evidence.clone() });
                    }
                    self.say(
                        stream,
                        asked.take(),
                        TaskInput::Move {
                            by,
                            to: to.clone(),
                            evidence,
                            room: WorkspaceReservation::Unasked,
                            feedback: None,
                        },
                    );
                }
                return self.is_heard();
            }
            14..=16 => self.exits(stream, session, SessionExit::Code(0)),
            _ => {}
        }
        false
    }

    pub(crate) fn writes(&mut self, stream: &StreamId, gate: &Gate) {
        let text = match (&gate.verdict, gate.fields.first()) {
            (Some(test), _) => format!("Verdict: {}", test.wanted.word()),
            (None, Some(field)) => format!("{field}: so it is"),
            (None, None) => "so it is".into(),
        };
        self.note(&format!("{stream}: ## {} says {text:?}", gate.title));
        let sheet = self.ground.sheet(stream);
        sheet.write(&gate.title, &text);
        if gate.verdict.is_none() {
            sheet.commit();
        }
    }

    /// A session asks for a move of a task that is not its own.
    fn meddles(&mut self, stream: &StreamId, session: SessionNumber) {
        let others: Vec<StreamId> = self.watch.tasks.keys().filter(|other| *other != stream).cloned().collect();
        if others.is_empty() {
            return;
        }
        let other = self.chance.pick(&others).clone();
        let Some(task) = self.watch.tasks.get(&other) else { return };
        let (lifecycle, status) = (task.lifecycle.clone(), task.state.status);
        let ways: Vec<&LifecycleTransition> = lifecycle.transitions.iter().filter(|edge| edge.from == status).collect();
        if ways.is_empty() {
            return;
        }
        let to = lifecycle.state(self.chance.pick(&ways).to).name.clone();
        self.note(&format!("{other}: {session} of {stream} asks for {}", to.as_str()));
        let evidence = self.ground.sheet(&other).evidence();
        self.say(
            &other,
            None,
            TaskInput::Move {
                by: TaskAsker::Stranger,
                to,
                evidence,
                room: WorkspaceReservation::Unasked,
                feedback: None,
            },
        );
    }

    fn exits(&mut self, stream: &StreamId, session: SessionNumber, exit: SessionExit) {
        self.note(&format!("{stream}: {session} exits, {exit:?}"));
        if let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) {
            process.exit = Some(exit);
            self.here = process.home;
        }
        let wait = self.soon(300);
        self.at(wait, SimEvent::Exited { stream: stream.clone(), session });
    }

    pub(crate) fn exited(&mut self, stream: &StreamId, session: SessionNumber) {
        let record = self.ground.processes.get(&(stream.clone(), session)).and_then(|process| process.exit);
        let Some(exit) = record else { return };
        self.note(&format!("{stream}: the end of {session} is reported"));
        for _ in 0..=usize::from(self.chance.percent(5)) {
            let evidence = self.ground.sheet(stream).evidence();
            self.say(stream, None, TaskInput::SessionExited { session, exit, evidence });
        }
    }

    /// An engine that has just started looks what became of the sessions that it finds in the store.
    pub(crate) fn looks(&mut self, stream: &StreamId) {
        self.looks_at_run_again(stream);
        let Some(task) = self.watch.tasks.get(stream) else { return };
        let sessions = [task.state.main.clone(), task.state.beside.clone()];
        for session in sessions.iter().filter(|session| session.is_living()) {
            let Some(id) = session.agent().map(|agent| agent.id) else { continue };
            let process = self.ground.processes.get(&(stream.clone(), id));
            // What another home has started is not seen from here.
            let process = process.filter(|process| process.home == self.here).map(|process| process.exit);
            match (process, session) {
                (Some(None), _) => {
                    self.note(&format!("{stream}: {id} is found alive"));
                    self.say(stream, None, TaskInput::SessionAdopted { session: id });
                }
                (Some(Some(_)), _) if self.bug == Some(SimBug::ForgetsExits) => {}
                (Some(Some(_)), _) => self.exited(stream, id),
                // It was asked for and never started: the start is still to be performed.
                (None, TaskSession::Starting(_)) => {}
                (None, _) => {
                    let evidence = self.ground.sheet(stream).evidence();
                    self.say(stream, None, TaskInput::SessionExited { session: id, exit: SessionExit::Lost, evidence });
                }
            }
        }
    }
}
