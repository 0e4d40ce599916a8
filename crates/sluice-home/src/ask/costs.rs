//! What agents have used up: of a task or run, attempt by attempt, and of everything in a table.

use std::collections::BTreeMap;

use sluice_api::problem::Problem;
use sluice_api::usage::{COST_ROWS, CostRow, Costs, CostsBy, UsageAttempt, UsageShown};
use sluice_core::task::TaskEvent;
use sluice_core::task::session::{SessionChange, SessionNumber, TaskSessionPlace};
use sluice_engine::codec::task_event;
use sluice_engine::host::EngineClock;

use super::Service;
use crate::home::daybook::{DayPages, OwnerLabel, UsageKey, UsageOwner, day_of, usual_harness};
use crate::read::attempts::AttemptLog;
use crate::read::tasks::{TaskSnapshot, stream};
use crate::read::usage::{UsageTable, UsageTally};
use crate::settings::clock::written;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// The most days that a table counts.
const MOST_DAYS: u32 = 92;
/// The newest events of a task that are looked at for its sessions and runs.
const MOST_EVENTS: u64 = 20_000;
/// The most runs of a task whose logs are read.
const MOST_RUNS: usize = 100;

/// What a table of costs is made of.
#[derive(Clone, Copy, Debug)]
pub struct CostsFilter<'a> {
    pub by: CostsBy,
    /// Today and the days before, so many in all; 1 unless given.
    pub days: Option<u32>,
    pub project: Option<&'a str>,
}

/// The key of a row, and what a person calls it.
type CostKey = (Option<String>, String);

impl Service {
    /// What the agents of a run have used up.
    pub fn run_usage(&self, id: &str) -> Result<UsageShown, Problem> {
        let seen = self.run(id)?;
        let mut table = UsageTable::default();
        table.take_run(&seen, &AttemptLog::of(&self.home.tasks, &seen)?, &usual_harness(&self.home));
        Ok(table.shown())
    }

    /// What the agents of a task have used up: its own sessions, of which nothing is known but that they were, and the runs of its states.
    pub fn task_usage(&self, id: &str) -> Result<UsageShown, Problem> {
        let seen = self.home.tasks.find(id)?;
        let (sessions, runs) = self.sessions_and_runs(&seen)?;
        let mut table = UsageTable::default();
        sessions.into_values().for_each(|session| table.take(session, None));
        let usual = usual_harness(&self.home);
        for run in runs {
            // What is forgotten by now has used up nothing that is known.
            if let Some(run) = self.home.tasks.run_named(&run)? {
                table.take_run(&run, &AttemptLog::of(&self.home.tasks, &run)?, &usual);
            }
        }
        Ok(table.shown())
    }

    /// The sessions that a task has had, and its newest runs.
    fn sessions_and_runs(
        &self,
        seen: &TaskSnapshot,
    ) -> Result<(BTreeMap<SessionNumber, UsageAttempt>, Vec<String>), Problem> {
        let (mut sessions, mut runs) = (BTreeMap::new(), Vec::new());
        let after = seen.version.saturating_sub(MOST_EVENTS);
        let most = usize::try_from(MOST_EVENTS).unwrap_or(usize::MAX);
        for (_, event) in self.home.tasks.history(&stream(&seen.id), after, most)? {
            let Ok(read) = task_event::read(event.version, &event.data) else { continue };
            if let TaskEvent::Session { place, session, change, .. } = &read {
                note_session(&mut sessions, seen, (*place, *session), change, event.time);
            }
            if let TaskEvent::RunStarted { run, .. } = read {
                runs.push(run.to_string());
            }
        }
        runs.drain(..runs.len().saturating_sub(MOST_RUNS));
        Ok((sessions, runs))
    }

    /// What agents have used up of late, added up.
    pub fn costs(&self, wanted: CostsFilter<'_>) -> Result<Costs, Problem> {
        let CostsFilter { by, days, project } = wanted;
        project.map_or(Ok(()), |project| self.home.projects.get(project).map(drop))?;
        let days = days.unwrap_or(1);
        if !(1..=MOST_DAYS).contains(&days) {
            return Err(Problem::bad_request(format!("a table counts 1 to {MOST_DAYS} days, not {days}")));
        }
        let since = day_of(self.home.clock.now().0) - i64::from(days - 1) * DAY;
        let (mut rows, is_all) = self
            .home
            .daybook
            .look_back(&self.home, since, |pages, is_all| (added_up(pages, by, since, project), is_all))?;
        let mut total = UsageTally::default();
        rows.iter().for_each(|(_, tally)| total.add(tally));
        match by {
            CostsBy::Day => rows.sort_by(|(one, _), (other, _)| other.cmp(one)),
            CostsBy::Task | CostsBy::Run | CostsBy::Project | CostsBy::Harness | CostsBy::Model => {
                rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.weight()));
            }
        }
        let mut notes = Vec::new();
        if !is_all {
            notes.push("not all of these days are counted yet: ask again, or for fewer days".to_owned());
        }
        let excess = rows.len().saturating_sub(COST_ROWS);
        if excess > 0 {
            notes.push(format!("{excess} rows are left out, and counted in the total"));
        }
        rows.truncate(COST_ROWS);
        let row = |((key, name), tally): (CostKey, UsageTally)| CostRow { key, name, sum: tally.shown() };
        Ok(Costs { by, since: date(since), total: total.shown(), rows: rows.into_iter().map(row).collect(), notes })
    }
}

fn added_up(pages: &DayPages, by: CostsBy, since: i64, project: Option<&str>) -> Vec<(CostKey, UsageTally)> {
    let nothing = OwnerLabel::default();
    let mut rows: BTreeMap<CostKey, UsageTally> = BTreeMap::new();
    for (key, tally) in pages.used.iter().filter(|(key, _)| key.day >= since) {
        let label = pages.labels.get(&key.owner).unwrap_or(&nothing);
        if project.is_some_and(|project| label.project.as_deref() != Some(project)) {
            continue;
        }
        rows.entry(cost_key(by, key, label)).or_default().add(tally);
    }
    rows.into_iter().collect()
}

fn cost_key(by: CostsBy, key: &UsageKey, label: &OwnerLabel) -> CostKey {
    let named = |name: Option<String>| (name.clone(), name.unwrap_or_default());
    match by {
        CostsBy::Day => named(Some(date(key.day))),
        CostsBy::Harness => named(Some(key.harness.clone())),
        // No program tells it in a way that is stored.
        CostsBy::Model => named(None),
        CostsBy::Project => named(label.project.clone()),
        CostsBy::Run => match &key.owner {
            UsageOwner::Run(run) => (Some(run.to_string()), label.name.clone()),
            UsageOwner::Task(_) => named(None),
        },
        CostsBy::Task => match &label.task {
            Some((task, branch)) => (Some(task.to_string()), branch.clone()),
            None => named(None),
        },
    }
}

/// The day of a moment, such as `2026-11-18`.
fn date(moment: i64) -> String {
    written(moment).chars().take(10).collect()
}

fn note_session(
    sessions: &mut BTreeMap<SessionNumber, UsageAttempt>,
    seen: &TaskSnapshot,
    (place, session): (TaskSessionPlace, SessionNumber),
    change: &SessionChange,
    time: i64,
) {
    let about = &seen.state.about;
    match change {
        SessionChange::Started => {
            let harness = match place {
                TaskSessionPlace::Main => about.harness.clone(),
                TaskSessionPlace::Beside => about.review_harness.clone(),
            };
            sessions.entry(session).or_insert_with(|| UsageAttempt {
                run: None,
                step: session.to_string(),
                attempt: 1,
                item: None,
                turn: None,
                harness: Some(harness),
                model: None,
                usage: None,
                started_at: Some(written(time)),
                finished_at: None,
            });
        }
        SessionChange::Ended | SessionChange::Exited(_) => {
            let ended = sessions.get_mut(&session).filter(|session| session.finished_at.is_none());
            ended.into_iter().for_each(|session| session.finished_at = Some(written(time)));
        }
        SessionChange::Asked(_) | SessionChange::NotStarted(_) | SessionChange::EndAsked | SessionChange::NotEnded => {}
    }
}
