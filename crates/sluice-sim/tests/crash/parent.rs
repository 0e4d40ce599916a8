//! The parent: kills the child, and looks at what is left in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::{RunEvent, RunPlan, RunState, StepStatus};
use sluice_core::task::session::{SessionChange, SessionNumber, SessionRole};
use sluice_core::task::state::{TaskWorkspace, WorktreePath};
use sluice_core::task::{EffectKey, TaskAsker, TaskEvent, TaskState};
use sluice_engine::codec::{outbox, run_event, run_state, task_event};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Event, Query, Reader, Store, StoredStream, StreamId};

use crate::{KILLS, is_task, lifecycle, plan};

struct Parent {
    address: String,
    store: Store,
    plan: Arc<RunPlan>,
    lifecycle: Arc<Lifecycle>,
    promised: BTreeSet<StreamId>,
    /// Tasks that were merged or given up, as somebody was told.
    closed: BTreeSet<StreamId>,
    number: u64,
}

/// What the store says of a stream.
struct Seen {
    stream: StreamId,
    status: String,
    /// Where it is, unless it has ended.
    open: Option<String>,
    /// How many effects are left.
    effects: usize,
    /// Effects whose result is stored.
    done: Vec<String>,
    workspace: Option<WorktreePath>,
}

/// What the child has said in one life.
#[derive(Default)]
struct Heard {
    /// Effects whose result was stored before it began.
    done: BTreeSet<(String, String)>,
    /// What each task is at.
    doing: BTreeMap<String, String>,
}

impl Parent {
    fn new(address: String) -> Parent {
        let store = Store::open(&address).unwrap();
        let (plan, lifecycle) = (plan(), lifecycle());
        Parent {
            address,
            store,
            plan,
            lifecycle,
            promised: BTreeSet::new(),
            closed: BTreeSet::new(),
            number: 0x5106_ce00,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number ^= self.number << 13;
        self.number ^= self.number >> 7;
        self.number ^= self.number << 17;
        self.number % limit
    }

    /// Starts the child and kills it after so many lines, or when it has nothing more to say; without a number it is left
    /// alone until everything has ended.
    fn one_life(&mut self, starts: usize, lines: Option<u64>) {
        let mut heard = Heard { done: self.done(), ..Heard::default() };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env("SLUICE_CRASH_STORE", &self.address)
            .env("SLUICE_CRASH_STARTS", starts.to_string())
            .env("SLUICE_CRASH_TO_THE_END", if lines.is_none() { "1" } else { "" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, said) = channel();
        let listener = std::thread::spawn(move || output.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let silence = if lines.is_some() { Duration::from_millis(150) } else { Duration::from_secs(120) };
        let mut ready = false;
        let mut left = lines.unwrap_or(u64::MAX);
        while left > 0 {
            let patience = if ready { silence } else { Duration::from_secs(60) };
            let Ok(line) = said.recv_timeout(patience) else { break };
            self.hears(&line, &mut heard);
            left -= u64::from(ready);
            ready |= line.ends_with("ready"); // the test runner may have begun the line
        }
        if lines.is_some() {
            child.kill().unwrap();
        }
        // What it had said before it died counts too.
        said.iter().for_each(|line| self.hears(&line, &mut heard));
        let _ = listener.join();
        child.wait().unwrap();
    }

    fn hears(&mut self, line: &str, heard: &mut Heard) {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("promised"), Some(stream), None) => drop(self.promised.insert(StreamId::new(stream))),
            (Some("closed"), Some(stream), None) => drop(self.closed.insert(StreamId::new(stream))),
            (Some("begin"), Some(stream), Some(effect)) => {
                let again = heard.done.contains(&(stream.to_owned(), effect.to_owned()));
                assert!(!again, "{stream}: {effect} runs again, although its result was stored");
                if is_task(&StreamId::new(stream)) {
                    let other = heard.doing.insert(stream.to_owned(), effect.to_owned());
                    assert_eq!(other, None, "{stream}: {effect} is begun beside another");
                }
            }
            (Some("end"), Some(stream), Some(_)) => drop(heard.doing.remove(stream)),
            (Some("wrong"), _, _) => panic!("{line}"),
            _ => {}
        }
    }

    fn look(&self) -> Vec<Seen> {
        let mut reader = self.store.reader().unwrap();
        let streams = all_streams(reader.as_mut());
        let seen: Vec<Seen> = streams.into_iter().map(|stream| self.look_at(reader.as_mut(), stream)).collect();
        let mut owners = BTreeMap::new();
        for it in &seen {
            let is_over = matches!(it.status.as_str(), "done" | "cancelled");
            assert!(is_over || !self.closed.contains(&it.stream), "{} was closed, and is `{}`", it.stream, it.status);
            if let Some(name) = &it.workspace {
                let other = owners.insert(name.clone(), it.stream.clone());
                assert_eq!(other, None, "{} has {}, and so has another", it.stream, name.0);
            }
        }
        seen
    }

    /// One stream: its log is whole and adds up to what is stored.
    fn look_at(&self, reader: &mut dyn Reader, stream: StreamId) -> Seen {
        let (stored, log) = at_rest(reader, &stream);
        let numbers: Vec<u64> = log.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=stored.version).collect::<Vec<_>>(), "{stream}: events are lost or doubled");
        let is_note = |event: &Event| outbox::read(&event.kind, event.version, &event.data).unwrap().is_some();
        let log: Vec<Event> = log.into_iter().map(|(_, event)| event).filter(|event| !is_note(event)).collect();
        match is_task(&stream) {
            true => self.look_at_task(stream, &stored, &log),
            false => self.look_at_run(stream, &stored, &log),
        }
    }

    fn look_at_run(&self, stream: StreamId, stored: &StoredStream, log: &[Event]) -> Seen {
        let state = run_state::read(&self.plan, &stored.header.data, &stored.rows).unwrap();
        let mut folded: Option<RunState> = None;
        for event in log {
            let event = run_event::read(event.version, &event.data).unwrap();
            if let RunEvent::Started { given, at } = &event {
                folded = Some(RunState::new(&self.plan, (**given).clone(), *at));
            }
            folded.iter_mut().for_each(|state| state.apply(&self.plan, &event));
        }
        assert_eq!(folded.as_ref(), Some(&state), "{stream}: the log does not add up to what is stored");
        let completed = state.steps.iter().enumerate().filter(|(_, step)| matches!(step.status, StepStatus::Completed));
        Seen {
            done: completed.map(|(index, step)| format!("{index}.{}.whole", step.attempts)).collect(),
            open: state.end.is_none().then(|| format!("{:?}", state.under_way())),
            effects: stored.effects.len(),
            status: stored.header.card.status.clone(),
            workspace: None,
            stream,
        }
    }

    fn look_at_task(&self, stream: StreamId, stored: &StoredStream, log: &[Event]) -> Seen {
        let events: Vec<TaskEvent> =
            log.iter().map(|event| task_event::read(event.version, &event.data).unwrap()).collect();
        let actor = TaskActor::restore(self.lifecycle.clone(), stored).unwrap();
        let folded = TaskState::fold(&self.lifecycle, &events);
        assert_eq!(folded.as_ref(), Some(actor.state()), "{stream}: the log does not add up to what is stored");
        assert_eq!(actor.image(), stored.header.data, "{stream}: its header");
        assert_eq!(actor.state().check_invariants(&self.lifecycle), Ok(()), "{stream}");
        let asked = verdicts_are_the_reviewers(&stream, &events);
        let left: BTreeSet<&str> = stored.effects.iter().map(|open| open.effect.id.as_str()).collect();
        let state = actor.state();
        Seen {
            done: asked.into_iter().filter(|id| !left.contains(id.as_str())).collect(),
            open: stored.header.card.open.then(|| format!("{:?}", state.phase(&self.lifecycle))),
            effects: stored.effects.len(),
            status: stored.header.card.status.clone(),
            workspace: match &state.workspace {
                TaskWorkspace::Unbound => None,
                TaskWorkspace::Reserved(name) | TaskWorkspace::Bound(name) => Some(name.clone()),
            },
            stream,
        }
    }

    /// The effects whose result is stored.
    fn done(&self) -> BTreeSet<(String, String)> {
        let of = |it: Seen| {
            let stream = it.stream.to_string();
            it.done.into_iter().map(move |effect| (stream.clone(), effect)).collect::<Vec<_>>()
        };
        self.look().into_iter().flat_map(of).collect()
    }
}

/// The worker gave no verdict, each session was asked for once, and each hook settled in turn. Says which effects were
/// asked for.
fn verdicts_are_the_reviewers(stream: &StreamId, events: &[TaskEvent]) -> Vec<String> {
    let mut roles: BTreeMap<SessionNumber, SessionRole> = BTreeMap::new();
    let (mut asked, mut settled) = (Vec::new(), (0, 0));
    for event in events {
        match event {
            TaskEvent::Session { change: SessionChange::Asked(agent), .. } => {
                assert_eq!(roles.insert(agent.id, agent.role), None, "{stream}: {} is asked for twice", agent.id);
            }
            TaskEvent::Moved(moved) => {
                if let (TaskAsker::Session(id), Some(_)) = (moved.by, &moved.judged) {
                    assert_eq!(roles.get(&id), Some(&SessionRole::Reviewer), "{stream}: {id} judges its own work");
                }
            }
            TaskEvent::HookAsked { turn, step, action } => {
                asked.push(EffectKey::Job { turn: *turn, step: *step, action: *action }.to_string());
            }
            TaskEvent::HookSettled { turn, step, .. } => {
                assert!(settled < (*turn, *step), "{stream}: hook {turn}/{step} settles out of turn");
                settled = (*turn, *step);
            }
            _ => {}
        }
    }
    asked
}

/// A stream and its log. The database may still be storing the last batch of a client that is dead.
fn at_rest(reader: &mut dyn Reader, stream: &StreamId) -> (StoredStream, Vec<(u64, Event)>) {
    loop {
        let stored = reader.load(stream).unwrap().unwrap();
        let log = reader.history(stream, 0, 1_000_000).unwrap();
        if reader.load(stream).unwrap().unwrap().version == stored.version {
            return (stored, log);
        }
    }
}

fn all_streams(reader: &mut dyn Reader) -> Vec<StreamId> {
    let mut streams = Vec::new();
    let mut query = Query { limit: 1000, ..Query::default() };
    loop {
        let page = reader.list(&query).unwrap();
        streams.extend(page.items.into_iter().map(|item| item.stream));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return streams,
        }
    }
}

pub(crate) fn crash_a_hundred_times(address: String) {
    let mut parent = Parent::new(address);
    for _ in 0..KILLS {
        let (starts, lines) = (2 + parent.below(4), 1 + parent.below(120));
        parent.one_life(usize::try_from(starts).unwrap(), Some(lines));
    }
    parent.one_life(0, None);
    let seen = parent.look();
    for stream in &parent.promised {
        assert!(seen.iter().any(|it| it.stream == *stream), "{stream} was promised and is not there");
    }
    for it in &seen {
        assert_eq!(it.open, None, "{} did not end", it.stream);
        assert_eq!(it.effects, 0, "{} ended, and something is left to be done", it.stream);
    }
    let (tasks, runs): (Vec<&Seen>, Vec<&Seen>) = seen.iter().partition(|it| is_task(&it.stream));
    assert!(runs.len() >= KILLS / 10, "only {} runs were started", runs.len());
    assert!(tasks.len() >= KILLS / 10, "only {} tasks were created", tasks.len());
    assert!(tasks.iter().any(|it| it.status == "done"), "no task was merged");
}
