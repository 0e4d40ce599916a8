//! Reads the engine's log once, in order, for all that follows from what happened and is no decision of a machine: files
//! that mirror processes, records of verdicts, recipes that an event starts, tasks that wait for a run.
//!
//! How far it has come is kept in the home. After a crash it reads a little again; whoever acts on an event finds what
//! was done the first time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_core::run::{Event, Kind};
use sluice_engine::codec::run_event;
use sluice_store::{Cursor, Logged, StreamId};
use sluice_worker::taskfile;

use crate::attempts;
use crate::evidence;
use crate::ground::Ground;
use crate::hands::run::task;
use crate::runs;
use crate::state_runs;
use crate::tasks;
use crate::triggers::Triggers;

/// Events that are read together.
const PAGE: usize = 500;
/// How long it is waited for events, before it is written down how far it has come.
const PAUSE: Duration = Duration::from_secs(1);
/// How often evidence of forgotten runs is looked for.
const SWEEP: Duration = Duration::from_secs(3600);
/// So many runs are remembered by their kind.
const MOST_REMEMBERED: usize = 10_000;

/// How far it has come, and what it knows.
pub(crate) struct Follower {
    after: Cursor,
    saved: Cursor,
    /// As what runs were started.
    kinds: BTreeMap<String, Kind>,
    triggers: Triggers,
    swept: Option<Instant>,
}

/// Follows the log until the home is closed.
pub(crate) fn start(ground: &Arc<Ground>) -> Result<(), Problem> {
    let mut follower = Follower::new(ground)?;
    follower.mirror_open(ground)?;
    state_runs::look_at_all(ground)?;
    let weak = Arc::downgrade(ground);
    let thread = std::thread::Builder::new().name("follower".into());
    thread.spawn(move || follower.keep_on(&weak)).map_err(|error| Problem::fault(error.to_string()))?;
    Ok(())
}

impl Follower {
    /// Where it left off. In a home that it has never followed it begins with what happens from now on.
    fn new(ground: &Ground) -> Result<Follower, Problem> {
        let kept = std::fs::read_to_string(ground.places.followed()).ok();
        let mut after = kept.as_deref().and_then(|text| text.trim().parse().ok()).map(Cursor);
        if after.is_none() {
            after = Some(ground.tasks.end_of_log()?);
        }
        let after = after.unwrap_or(Cursor(0));
        let mut follower =
            Follower { after, saved: after, kinds: BTreeMap::new(), triggers: Triggers::default(), swept: None };
        if kept.is_none() {
            follower.save(ground);
        }
        Ok(follower)
    }

    /// Brings the files of all open processes up to date: an engine that died may have left them behind.
    fn mirror_open(&mut self, ground: &Ground) -> Result<(), Problem> {
        let mut after = StreamId::new("run/");
        loop {
            let read = ground.tasks.loader().reader().open_streams(Some(&after), PAGE);
            let page = read.map_err(|error| Problem::unavailable(error.to_string()))?;
            for id in page.iter().filter_map(runs::id_of) {
                self.mirror(ground, id);
            }
            match page.last().filter(|last| page.len() == PAGE && runs::id_of(last).is_some()) {
                Some(last) => after = last.clone(),
                None => return Ok(()),
            }
        }
    }

    fn keep_on(mut self, ground: &Weak<Ground>) {
        loop {
            let Some(ground) = ground.upgrade() else { return };
            if self.swept.is_none_or(|at| at.elapsed() > SWEEP) {
                evidence::sweep(&ground);
                attempts::sweep(&ground);
                crate::service::keys::sweep(&ground);
                self.swept = Some(Instant::now());
            }
            let after = self.after;
            let news = || ground.tasks.log(after, PAGE).ok().filter(|page| !page.is_empty());
            match ground.tasks.wait(PAUSE, news) {
                Some(page) => self.read(&ground, &page),
                None => self.save(&ground),
            }
        }
    }

    /// Acts on a page. What cannot be done now because the engine cannot store it is done when the page is read again.
    fn read(&mut self, ground: &Arc<Ground>, page: &[Logged]) {
        let mut touched = BTreeMap::new();
        let mut ended = BTreeSet::new();
        let mut waiting = BTreeSet::new();
        let mut moved = BTreeSet::new();
        for logged in page {
            let task = tasks::id_of(&logged.stream);
            waiting.extend(task.filter(|_| logged.event.kind == state_runs::STARTED).map(str::to_owned));
            moved.extend(task);
            let Some(id) = runs::id_of(&logged.stream) else { continue };
            self.learn(id, logged);
            touched.insert(id, logged.number);
            if ["run.completed", "run.failed", "run.cancelled"].contains(&logged.event.kind.as_str()) {
                ended.insert(id);
            }
        }
        touched.retain(|id, number| !ground.mirrors.has(id, *number));
        touched.keys().for_each(|id| self.mirror(ground, id));
        for id in ended {
            if let Ok(Some(seen)) = ground.tasks.load_run(id) {
                evidence::conclude(ground, &seen);
                waiting.extend(Some(seen.state.given.origin.task.clone()).filter(|task| !task.is_empty()));
            }
        }
        let heard = waiting.iter().try_for_each(|task| state_runs::look(ground, task));
        if let Err(problem) = heard.and_then(|()| moved.iter().try_for_each(|moved| task::look(ground, moved))) {
            ground.log.line(&format!("a task or a run has not heard of the other's end: {}", problem.message));
            return std::thread::park_timeout(PAUSE);
        }
        self.triggers.refresh(ground);
        for logged in page {
            let kind = runs::id_of(&logged.stream).and_then(|id| self.kind(ground, id));
            match self.triggers.consider(ground, logged, kind) {
                Ok(false) => {}
                // A start is written down at once.
                Ok(true) => {
                    self.after = logged.cursor;
                    self.save(ground);
                }
                Err(problem) => {
                    ground.log.line(&format!("the event {} waits: {}", logged.cursor.0, problem.message));
                    return std::thread::park_timeout(PAUSE);
                }
            }
            self.after = logged.cursor;
        }
    }

    /// What a run was started as, as its first event says.
    fn learn(&mut self, id: &str, logged: &Logged) {
        if logged.event.kind != "run.started" {
            return;
        }
        if let Ok(Event::Started { given, .. }) = run_event::read(logged.event.version, &logged.event.data) {
            if self.kinds.len() >= MOST_REMEMBERED {
                self.kinds.clear();
            }
            self.kinds.insert(id.to_owned(), given.origin.kind);
        }
    }

    fn kind(&mut self, ground: &Ground, id: &str) -> Option<Kind> {
        if let Some(kind) = self.kinds.get(id) {
            return Some(*kind);
        }
        let kind = ground.tasks.load_run(id).ok().flatten()?.state.given.origin.kind;
        self.kinds.insert(id.to_owned(), kind);
        Some(kind)
    }

    fn mirror(&mut self, ground: &Ground, id: &str) {
        if self.kind(ground, id) == Some(Kind::Process) {
            ground.mirrors.write(ground, id);
        }
    }

    fn save(&mut self, ground: &Ground) {
        let path = ground.places.followed();
        if self.saved == self.after && path.exists() {
            return;
        }
        match taskfile::write(&path, format!("{}\n", self.after.0).as_bytes()) {
            Ok(()) => self.saved = self.after,
            Err(error) => ground.log.line(&format!("it is not written down how far the log was read: {error}")),
        }
    }
}
