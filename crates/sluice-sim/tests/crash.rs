//! Crashes for real: the engine as a process, killed with SIGKILL a hundred times under load, on SQLite and PostgreSQL.
//!
//! The child (this same program, started with an environment variable) goes round with a store, starts runs and writes
//! down what it was promised and what it begins. The parent kills it at random moments and looks at the store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{Event, Given, Mode, Outcome, Plan, Report, RunState, StepStatus};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::actor::Outcome as Done;
use sluice_engine::codec::{run_event, run_state};
use sluice_engine::host::{Clock, Executor, Host, Parts, Reporter, Unobserved};
use sluice_engine::loader::{Definitions, pin};
use sluice_engine::reactor::{Answer, Assignment, Message};
use sluice_engine::run_actor::RunActor;
use sluice_engine::workers::{Offer, WorkerId};
use sluice_store::{Query, Reader, Store, StreamId};

const RECIPE: &str = "
name: crash
max_parallel: 2
steps:
  - {name: a, type: script, needs: [], command: a}
  - {name: b, type: script, needs: [a], command: b}
  - {name: c, type: script, needs: [a], command: c}
  - {name: check, type: script, needs: [b, c], command: check}
  - {name: mend, type: script, needs: [check], when: \"check.result == 'FAIL'\", loop: {to: check, max: 3}, command: mend}
  - {name: each, type: parallel-agents, needs: [check], for_each: [x, y, z], max_concurrent: 2, prompt: 'do ${item}'}
  - {name: ship, type: script, needs: [each], always: true, command: ship}
";
/// How often the process is killed.
const KILLS: usize = 100;

fn plan() -> Arc<Plan> {
    let source = Source { path: "crash.yml", bytes: RECIPE.as_bytes() };
    match load(&source, &mut NoPrompts, &mut Sources::new()).definition {
        Some(Definition::Recipe(recipe)) => Arc::new(Plan::new(recipe)),
        _ => panic!("not a recipe"),
    }
}

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

struct One(Arc<Plan>);

impl Definitions for One {
    fn plan(&self, _: &[u8]) -> Result<Arc<Plan>, String> {
        Ok(self.0.clone())
    }

    fn lifecycle(&self, _: &[u8]) -> Result<Arc<Lifecycle>, String> {
        Err("there are no tasks here".into())
    }
}

/// Performs everything on a thread of its own, a little later.
struct Hands {
    work: Sender<(Assignment, Reporter)>,
}

impl Hands {
    fn new() -> Hands {
        let (work, inbox) = channel();
        std::thread::spawn(move || Hands::go(&inbox));
        Hands { work }
    }

    fn go(inbox: &Receiver<(Assignment, Reporter)>) {
        let mut number = u64::from(std::process::id()) | 1;
        let mut held: Vec<(Instant, Assignment, Reporter)> = Vec::new();
        loop {
            let wait = held.iter().map(|(at, _, _)| at.saturating_duration_since(Instant::now())).min();
            match inbox.recv_timeout(wait.unwrap_or(Duration::from_secs(60))) {
                Ok((assignment, reporter)) => {
                    number ^= number << 13;
                    number ^= number >> 7;
                    number ^= number << 17;
                    say(&format!("begin {} {}", assignment.stream, assignment.effect.id));
                    held.push((Instant::now() + Duration::from_micros(number % 3000), assignment, reporter));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let due = held.iter().position(|(at, _, _)| *at <= Instant::now());
            if let Some((_, it, reporter)) = due.map(|index| held.swap_remove(index)) {
                let outcome = match it.effect.kind.as_str() {
                    "perform" => {
                        let result = if number.is_multiple_of(3) { "FAIL" } else { "PASS" };
                        Done::Run(Report::Completed(Outcome { result: Some(result.into()), ..Outcome::default() }))
                    }
                    _ => Done::Done,
                };
                reporter.send(Message::Ended {
                    stream: it.stream,
                    effect: it.effect.id,
                    dispatch: it.dispatch,
                    outcome,
                });
            }
        }
    }
}

impl Executor for Hands {
    fn perform(&mut self, assignment: Assignment, report: &Reporter) {
        let _ = self.work.send((assignment, report.clone()));
    }
}

/// A line for the parent. It must be out before anything else happens.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush());
}

/// The child. As a test of its own it has nothing to do.
#[test]
fn child() {
    let Ok(address) = std::env::var("SLUICE_CRASH_STORE") else { return };
    let starts: usize = std::env::var("SLUICE_CRASH_STARTS").map_or(0, |text| text.parse().unwrap());
    let plan = plan();
    let host = Host::start(Parts {
        store: Store::open(&address).unwrap(),
        owner: "crash".into(),
        clock: Arc::new(WallClock),
        executor: Box::new(Hands::new()),
        definitions: Arc::new(One(plan.clone())),
        observer: Box::new(Unobserved),
        keep: None,
    })
    .unwrap();
    let offer = Offer { id: WorkerId("own".into()), role: "any".into(), group: "g".into(), capacity: 50, lease: None };
    host.reporter().send(Message::Joined(offer));
    say("ready");
    for number in 0..starts {
        let id = format!("run-{}-{number}", std::process::id());
        let given = Given {
            id: id.clone(),
            mode: Mode::Engine,
            inputs: Vec::new(),
            prompt: String::new(),
            workspace: String::new(),
            work_order: String::new(),
        };
        let digest = pin(b"pinned");
        let (actor, change) = RunActor::create(plan.clone(), digest.to_string(), "g".into(), given, WallClock.now());
        let stream = StreamId::new(id);
        let answer = host.ask(|token| Message::Create {
            token: Some(token),
            stream: stream.clone(),
            actor: Box::new(actor),
            change,
            blobs: vec![(digest, b"pinned".to_vec())],
        });
        if matches!(answer.recv(), Ok(Answer::Done(_))) {
            say(&format!("promised {stream}"));
        }
    }
    if std::env::var("SLUICE_CRASH_TO_THE_END").is_ok_and(|text| !text.is_empty()) {
        let mut reader = Store::open(&address).unwrap().reader().unwrap();
        while !reader.open_streams(None, 1).unwrap().is_empty() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        return host.stop().unwrap();
    }
    // Goes round until it is killed.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

struct Parent {
    address: String,
    store: Store,
    plan: Arc<Plan>,
    promised: BTreeSet<StreamId>,
    number: u64,
}

impl Parent {
    fn new(address: String) -> Parent {
        let store = Store::open(&address).unwrap();
        Parent { address, store, plan: plan(), promised: BTreeSet::new(), number: 0x5106_ce00 }
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
        let done = self.done();
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
            self.heard(&line, &done);
            left -= u64::from(ready);
            ready |= line.ends_with("ready"); // the test runner may have begun the line
        }
        if lines.is_some() {
            child.kill().unwrap();
        }
        // What it had said before it died counts too.
        said.iter().for_each(|line| self.heard(&line, &done));
        let _ = listener.join();
        child.wait().unwrap();
    }

    fn heard(&mut self, line: &str, done: &BTreeSet<(String, String)>) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("promised"), Some(stream), None) => drop(self.promised.insert(StreamId::new(stream))),
            (Some("begin"), Some(stream), Some(effect)) => {
                let again = done.contains(&(stream.to_owned(), effect.to_owned()));
                assert!(!again, "{stream}: {effect} runs again, although its result was stored");
            }
            _ => {}
        }
    }

    fn states(&self) -> Vec<(StreamId, RunState, usize)> {
        let mut reader = self.store.reader().unwrap();
        let streams = all_streams(reader.as_mut());
        streams.into_iter().map(|stream| self.look(reader.as_mut(), stream)).collect()
    }

    /// One stream: its log is whole and adds up to what is stored.
    fn look(&self, reader: &mut dyn Reader, stream: StreamId) -> (StreamId, RunState, usize) {
        let stored = reader.load(&stream).unwrap().unwrap();
        let log = reader.history(&stream, 0, 1_000_000).unwrap();
        let numbers: Vec<u64> = log.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=stored.version).collect::<Vec<_>>(), "{stream}: events are lost or doubled");
        let state = run_state::read(&self.plan, &stored.header.data, &stored.rows).unwrap();
        let mut folded: Option<RunState> = None;
        for (_, event) in log.iter().filter(|(_, event)| !event.kind.starts_with("effect.")) {
            let event = run_event::read(event.version, &event.data).unwrap();
            if let Event::Started { given, at } = &event {
                folded = Some(RunState::new(&self.plan, (**given).clone(), *at));
            }
            folded.iter_mut().for_each(|state| state.apply(&self.plan, &event));
        }
        assert_eq!(folded.as_ref(), Some(&state), "{stream}: the log does not add up to what is stored");
        (stream, state, stored.effects.len())
    }

    /// The effects whose result is stored.
    fn done(&self) -> BTreeSet<(String, String)> {
        let mut done = BTreeSet::new();
        for (stream, state, _) in self.states() {
            for (index, step) in state.steps.iter().enumerate() {
                if matches!(step.status, StepStatus::Completed) {
                    done.insert((stream.to_string(), format!("{index}.{}.whole", step.attempts)));
                }
            }
        }
        done
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

fn crash_a_hundred_times(address: String) {
    let mut parent = Parent::new(address);
    for _ in 0..KILLS {
        let (starts, lines) = (3 + parent.below(4), 1 + parent.below(80));
        parent.one_life(usize::try_from(starts).unwrap(), Some(lines));
    }
    parent.one_life(0, None);
    let states = parent.states();
    for stream in &parent.promised {
        assert!(states.iter().any(|(other, _, _)| other == stream), "{stream} was promised and is not there");
    }
    for (stream, state, effects) in &states {
        assert!(state.end.is_some(), "{stream} did not end: {:?}", state.under_way());
        assert_eq!(*effects, 0, "{stream} ended, and something is left to be done");
    }
    assert!(states.len() >= KILLS / 10, "only {} runs were started", states.len());
}

#[test]
fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    crash_a_hundred_times(format!("sqlite:{}", folder.path().join("crash.db").display()));
}

#[test]
fn on_postgres() {
    let cluster = sluice_store::testing::Cluster::shared();
    crash_a_hundred_times(cluster.database());
}
