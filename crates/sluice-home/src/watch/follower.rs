//! Reads the engine's log once, in order, for all that follows from what happened and is no decision of a machine: files
//! that mirror processes, records of verdicts, recipes that an event starts, tasks that wait for a run.
//!
//! How far it has come is kept in the store, so that a store that is put back is in step with itself. After a crash it
//! reads a little again; whoever acts on an event finds what was done the first time. What is damaged is noted and passed
//! over; what the store cannot be asked for now is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_core::event_name::EventName;
use sluice_core::id::RunId;
use sluice_core::run::{RunEvent, RunKind};
use sluice_engine::codec::run_event;
use sluice_store::{Cursor, LoggedEvent};
use sluice_telemetry::caused_by;

use crate::background::threads::spawn;
use crate::effect::run::task;
use crate::evidence;
use crate::home::errand::Errand;
use crate::home::signals::turns;
use crate::home::{Home, scratch, worktrees};
use crate::read::{runs, tasks};
use crate::spans;
use crate::undone::{PerformError, UnavailableReason, settled};
use crate::watch::triggers::Triggers;
use crate::watch::{attempts, retention, state_runs};

const PAGE: usize = 500;
/// How long to wait for new events before saving the cursor.
const PAUSE: Duration = Duration::from_secs(1);
/// What happens at almost the same time is read together: a busy home stores something every millisecond, and what follows
/// from it here does not wait for that.
const PACE: Duration = Duration::from_millis(5);
/// How often evidence of forgotten runs is looked for.
const SWEEP: Duration = Duration::from_secs(3600);
/// After so long without an event, memory that a burst has needed is given back.
const LULL: Duration = Duration::from_secs(10);
/// So many runs are remembered by their kind.
const MOST_REMEMBERED: usize = 10_000;

/// How far it has come, and what it knows.
pub(crate) struct Follower {
    after: Cursor,
    saved: Cursor,
    kinds: BTreeMap<RunId, RunKind>,
    triggers: Triggers,
    swept: Option<Instant>,
    is_sweeping: Arc<AtomicBool>,
    /// The last event since memory was given back.
    stirred: Option<Instant>,
}

/// A sweep of old checkouts that is under way.
struct SweepMark(Arc<AtomicBool>);

impl Drop for SweepMark {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Follows the log until the home is closed.
pub(crate) fn start(home: &Arc<Home>) -> Result<(), Problem> {
    let mut follower = Follower::new(home)?;
    follower.mirror_open(home)?;
    state_runs::look_at_all(home)?;
    let weak = Arc::downgrade(home);
    spawn("follower", move || follower.keep_on(&weak))
}

impl Follower {
    /// Where it left off. In a home that it has never followed it begins with what happens from now on.
    fn new(home: &Home) -> Result<Follower, Problem> {
        let end = home.tasks.end_of_log()?;
        let kept = home.tasks.loader().reader().followed().map_err(tasks::unread)?;
        // A home of an earlier version has it in a file.
        let file = || std::fs::read_to_string(home.context.places.followed()).ok()?.trim().parse().ok().map(Cursor);
        let after = kept.or_else(file).unwrap_or(end).min(end);
        let mut follower = Follower {
            after,
            saved: after,
            kinds: BTreeMap::new(),
            triggers: Triggers::default(),
            swept: None,
            is_sweeping: Arc::default(),
            stirred: Some(Instant::now()),
        };
        if kept != Some(after) {
            follower.write_down(home);
            let _ = std::fs::remove_file(home.context.places.followed());
        }
        Ok(follower)
    }

    /// Brings the files of all open processes up to date: an engine that died may have left them behind.
    fn mirror_open(&mut self, home: &Home) -> Result<(), Problem> {
        let mirrored = home.tasks.each_open(runs::KIND, |stream| {
            runs::id_of(stream).into_iter().for_each(|id| self.mirror(home, &id));
            Ok(true)
        });
        mirrored.map(drop).map_err(tasks::unread)
    }

    fn keep_on(mut self, home: &Weak<Home>) {
        loop {
            let Some(home) = home.upgrade() else { return };
            if self.swept.is_none_or(|at| at.elapsed() > SWEEP) {
                evidence::sweep(&home);
                attempts::sweep(&home);
                self.sweep_checkouts(&home);
                attempts::sweep_tasks(&home);
                if let Err(problem) = home.registry.tidy(&home) {
                    tracing::warn!("the registry of projects, tokens and workers is not tidied: {}", problem.message);
                }
                crate::ask::keys::sweep(&home);
                self.swept = Some(Instant::now());
            }
            home.room.look(&home);
            let after = self.after;
            let news = || home.tasks.log(after, PAGE).ok().filter(|page| !page.is_empty());
            match home.tasks.wait(PAUSE, news) {
                Some(page) => {
                    self.stirred = Some(Instant::now());
                    self.read(&home, &page);
                    drop(home);
                    std::thread::park_timeout(if page.len() < PAGE { PACE } else { Duration::ZERO });
                }
                None => {
                    self.save(&home);
                    self.give_memory_back();
                }
            }
        }
    }

    /// Once after a burst: what is kept for the next one is little beside what the last has left.
    fn give_memory_back(&mut self) {
        if self.stirred.take_if(|at| at.elapsed() > LULL).is_some() {
            sluice_memory::give_back();
        }
    }

    /// Removes old checkouts, beside the follower: git takes its time, and what events lead to does not wait for it. While one
    /// sweep is under way no other begins.
    fn sweep_checkouts(&self, home: &Arc<Home>) {
        if self.is_sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut mark = Some(SweepMark(self.is_sweeping.clone()));
        Errand::run(home, "old checkouts".into(), move |home, _| {
            let _mark = mark.take();
            worktrees::sweep(home);
            scratch::sweep(home);
            retention::sweep(home);
            Ok(())
        });
    }

    /// Acts on a page. What cannot be done now because the engine cannot store it is done when the page is read again.
    fn read(&mut self, home: &Arc<Home>, page: &[LoggedEvent]) {
        if let Err(UnavailableReason(why)) = self.act_on(home, page) {
            tracing::warn!("events after {} wait: {why}", self.after.0);
            std::thread::park_timeout(PAUSE);
        }
    }

    fn act_on(&mut self, home: &Arc<Home>, page: &[LoggedEvent]) -> Result<(), UnavailableReason> {
        spans::ended(home, page);
        home.notices.heard(page);
        let mut touched = BTreeMap::new();
        let (mut turned, mut waiting, mut moved) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for logged in page {
            let task = tasks::id_of(&logged.stream);
            waiting.extend(task.clone().filter(|_| logged.event.kind == EventName::TaskRunStarted.word()));
            moved.extend(task);
            let Some(id) = runs::id_of(&logged.stream) else { continue };
            self.learn(&id, logged);
            touched.insert(id.clone(), logged.number);
            match EventName::read(&logged.event.kind) {
                Some(EventName::RunCompleted | EventName::RunFailed | EventName::RunCancelled)
                | Some(EventName::RunReopened) => drop(turned.insert(id)),
                Some(_) | None => {}
            }
        }
        touched.retain(|id, number| !home.mirrors.has(id, *number));
        touched.keys().for_each(|id| self.mirror(home, id));
        for id in turned {
            if let Some(seen) = noted(id.as_str(), home.tasks.load_run(&id))?.flatten() {
                evidence::conclude(home, &seen);
                waiting.extend(seen.state.given.origin.task.clone());
            }
        }
        for task in &waiting {
            noted(task.as_str(), state_runs::look(home, task))?;
        }
        for moved in &moved {
            turns::task_went_on(home, moved);
            noted(moved.as_str(), task::look(home, moved))?;
        }
        self.triggers.shelves.refresh(home);
        for logged in page {
            let kind = match runs::id_of(&logged.stream) {
                Some(id) => self.kind(home, &id)?,
                None => None,
            };
            let started = caused_by(spans::root_of(&logged.stream), || self.triggers.consider(home, logged, kind));
            let started = noted(logged.stream.as_str(), started)?.unwrap_or(false);
            self.after = logged.cursor;
            if started {
                self.save(home); // a start is written down at once
            }
        }
        Ok(())
    }

    /// What a run was started as, as its first event says.
    fn learn(&mut self, id: &RunId, logged: &LoggedEvent) {
        if EventName::read(&logged.event.kind) != Some(EventName::RunStarted) {
            return;
        }
        if let Ok(RunEvent::Started { given, .. }) = run_event::read(logged.event.version, &logged.event.data) {
            if self.kinds.len() >= MOST_REMEMBERED {
                self.kinds.clear();
            }
            self.kinds.insert(id.to_owned(), given.origin.kind);
        }
    }

    fn kind(&mut self, home: &Home, id: &RunId) -> Result<Option<RunKind>, UnavailableReason> {
        if let Some(kind) = self.kinds.get(id) {
            return Ok(Some(*kind));
        }
        let Some(seen) = noted(id.as_str(), home.tasks.load_run(id))?.flatten() else { return Ok(None) };
        let kind = seen.state.given.origin.kind;
        self.kinds.insert(id.to_owned(), kind);
        Ok(Some(kind))
    }

    fn mirror(&mut self, home: &Home, id: &RunId) {
        if let Ok(Some(RunKind::Process)) = self.kind(home, id) {
            home.mirrors.write(home, id);
        }
    }

    fn save(&mut self, home: &Home) {
        if self.saved != self.after {
            self.write_down(home);
        }
    }

    fn write_down(&mut self, home: &Home) {
        home.engine.followed(self.after);
        self.saved = self.after;
    }
}

/// What was read, or nothing where it failed for good: that is noted, and followed by what comes next.
fn noted<T>(what: &str, read: Result<T, Problem>) -> Result<Option<T>, UnavailableReason> {
    match settled(read.map_err(PerformError::from))? {
        Ok(found) => Ok(Some(found)),
        Err(failed) => {
            tracing::warn!("{what} is passed over: {}", failed.error);
            Ok(None)
        }
    }
}
