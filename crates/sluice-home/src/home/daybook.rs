//! What has ended today and what agents have used up, read from the log when a person looks; nothing of it is stored.
//!
//! The book goes along the log once, from the day's first event on, and from then on from where it left off. So what an answer
//! costs depends on what has happened since the one before, and not on what has ended. Before an answer is made the open tasks in
//! memory are brought up to the same place in the log, so that a client that follows the log from there misses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use sluice_api::problem::Problem;
use sluice_api::usage::UsageSum;
use sluice_core::event_name::EventName;
use sluice_core::id::{RunId, TaskId};
use sluice_core::run::RunPhase;
use sluice_core::task::actions::TaskEnding;
use sluice_engine::codec::run_event;
use sluice_engine::host::EngineClock;
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Cursor, LoggedEvent, StreamId};

use crate::background::locked;
use crate::home::Home;
use crate::home::ended::{EndedList, EndedSubject, EndedToday};
use crate::perform::DEFAULT_HARNESS;
use crate::read::attempts::UsageNews;
use crate::read::usage::{UsageTally, harness};
use crate::read::{runs, tasks};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Events that are read together.
const PAGE: usize = 500;
/// After so many events of days before, an answer begins to read no other day.
const MOST_EVENTS: usize = 300_000;
/// The most tasks, runs and days of which it is remembered what was used up.
const MOST_ENTRIES: usize = 50_000;

/// The first moment of the day (UTC) that a moment is in.
pub(crate) fn day_of(moment: i64) -> i64 {
    moment - moment.rem_euclid(DAY)
}

/// Who has used something up: an agent of a run, or a session of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UsageOwner {
    Run(RunId),
    Task(TaskId),
}

/// What is known of such an owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerLabel {
    /// What a person calls it: the recipe of a run, the branch of a task.
    pub(crate) name: String,
    pub(crate) project: Option<String>,
    /// The task that it belongs to, and its branch.
    pub(crate) task: Option<(TaskId, String)>,
}

/// What one program has used up for one owner on one day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageKey {
    pub(crate) day: i64,
    pub(crate) owner: UsageOwner,
    pub(crate) harness: String,
}

#[derive(Default)]
pub(crate) struct DayBook(Mutex<DayPages>);

/// What the book says, as far as it has been read.
#[derive(Default)]
pub(crate) struct DayPages {
    /// What happened since this moment is counted; none before the first look.
    from: Option<i64>,
    /// Up to here the log has been read.
    upto: Cursor,
    /// The day of the last look.
    today: i64,
    pub(crate) ended: EndedList,
    pub(crate) used: BTreeMap<UsageKey, UsageTally>,
    pub(crate) labels: BTreeMap<UsageOwner, OwnerLabel>,
    /// What each task and each run has used up, as far as it is counted: the sums of `used`.
    totals: BTreeMap<String, UsageTally>,
    /// What was used up today in each project.
    day: BTreeMap<Option<String>, UsageTally>,
}

impl DayBook {
    /// Reads what has happened since the last look, and gives what `then` makes of the book. The open tasks that the home has
    /// in memory are at least as new as the place in the log that `then` is told.
    pub(crate) fn look<T>(&self, home: &Home, then: impl FnOnce(&DayPages, Cursor) -> T) -> Result<T, Problem> {
        let mut pages = locked(&self.0);
        let today = day_of(home.clock.now().0);
        if pages.from.is_none() {
            pages.upto = first_since(home, today)?;
            pages.from = Some(today);
        }
        pages.catch_up(home)?;
        pages.turn_to(today);
        Ok(then(&pages, pages.upto))
    }

    /// The same, with what was used up since an earlier moment. Whether all of it could be counted: a caller that asks again is
    /// told of more. The days before are read a day at a time, while others look into the book.
    pub(crate) fn look_back<T>(
        &self,
        home: &Home,
        since: i64,
        then: impl FnOnce(&DayPages, bool) -> T,
    ) -> Result<T, Problem> {
        self.look(home, |_, _| ())?;
        let mut read = 0;
        loop {
            let from = {
                let pages = locked(&self.0);
                match pages.from.filter(|from| since < *from) {
                    None => return Ok(then(&pages, true)),
                    Some(_) if read >= MOST_EVENTS || pages.used.len() >= MOST_ENTRIES => {
                        return Ok(then(&pages, false));
                    }
                    Some(from) => from,
                }
            };
            let day = day_of(from - 1);
            let (counted, events) = DayPages::of_day(home, day, from)?;
            read += events;
            let mut pages = locked(&self.0);
            // Another caller may have counted that day meanwhile.
            if pages.from == Some(from) {
                pages.from = Some(day);
                pages.take_in(counted);
            }
        }
    }

    /// What a task or run has used up, as far as it is counted.
    pub(crate) fn used(&self, id: &str) -> Option<UsageSum> {
        locked(&self.0).totals.get(id).filter(|tally| !tally.is_nothing()).map(UsageTally::shown)
    }
}

impl DayPages {
    /// What was used up today, in one project or in all.
    pub(crate) fn used_today(&self, project: Option<&str>) -> UsageTally {
        let mut sum = UsageTally::default();
        let of = |(name, _): &(&Option<String>, &UsageTally)| project.is_none_or(|it| name.as_deref() == Some(it));
        self.day.iter().filter(of).for_each(|(_, tally)| sum.add(tally));
        sum
    }

    /// On a new day nothing has ended yet, and what was used up since midnight is counted anew.
    fn turn_to(&mut self, today: i64) {
        if self.today != today {
            self.today = today;
            self.ended.forget_before(today);
            self.add_up();
        }
    }

    /// What was used up between two moments, and how many events were read for that.
    fn of_day(home: &Home, day: i64, until: i64) -> Result<(DayPages, usize), Problem> {
        let (mut pages, mut read) = (DayPages::default(), 0);
        let (mut at, end) = (first_since(home, day)?, first_since(home, until)?);
        while at < end {
            let page = home.tasks.log(at, PAGE)?;
            let Some(last) = page.last() else { break };
            at = last.cursor;
            read += page.len();
            page.iter().filter(|logged| logged.cursor <= end).for_each(|logged| pages.count(home, logged));
        }
        Ok((pages, read))
    }

    /// Takes in what was counted of another day.
    fn take_in(&mut self, other: DayPages) {
        for (owner, label) in other.labels {
            self.labels.entry(owner).or_insert(label);
        }
        other.used.into_iter().for_each(|(key, tally)| self.add(key, &tally));
    }

    fn catch_up(&mut self, home: &Home) -> Result<(), Problem> {
        loop {
            let page = home.tasks.log(self.upto, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            let upto = last.cursor;
            let mut touched: BTreeMap<StreamId, u64> = BTreeMap::new();
            for logged in &page {
                touched.insert(logged.stream.clone(), logged.number);
            }
            for (stream, number) in touched {
                self.look_at(home, &stream, number)?;
            }
            // Last, because it cannot fail: a page that is read again after an error is not counted twice.
            page.iter().for_each(|logged| self.count(home, logged));
            self.upto = upto;
        }
    }

    /// A task or run has changed: it is open, it has ended, or it is in no list any more.
    fn look_at(&mut self, home: &Home, stream: &StreamId, number: u64) -> Result<(), Problem> {
        let ended = if let Some(id) = tasks::id_of(stream) {
            let seen = home.tasks.unless_damaged(stream, home.tasks.since(&id, number))?;
            let seen = seen.filter(|seen| !seen.card.open && seen.card.status != TaskActor::DELETED);
            seen.map(|seen| EndedToday {
                at: seen.state.visit.since.0,
                how: seen.state.ending(&seen.lifecycle).unwrap_or(TaskEnding::Other),
                project: Some(seen.state.about.project.clone()),
                seen: Some(EndedSubject::Task(seen)),
            })
        } else if let Some(id) = runs::id_of(stream) {
            let now = home.tasks.loader().reader().summary(stream).map_err(tasks::unread)?;
            let now = now.filter(|now| !now.card.open && now.card.status != RunActor::DELETED);
            let read = now.map_or(Ok(None), |now| home.tasks.run_of(&id, &now));
            home.tasks.unless_damaged(stream, read)?.map(|seen| EndedToday {
                at: seen.card.updated,
                how: match seen.state.phase() {
                    RunPhase::Completed => TaskEnding::Merged,
                    RunPhase::Cancelled => TaskEnding::Cancelled,
                    RunPhase::Failed | RunPhase::Running | RunPhase::Held => TaskEnding::Other,
                },
                project: home.projects.around(seen.state.given.origin.root.as_ref()).map(|project| project.name),
                seen: Some(EndedSubject::Run(seen)),
            })
        } else {
            return Ok(());
        };
        self.ended.note(stream, ended);
        Ok(())
    }

    /// Counts what an event says about what agents use up.
    fn count(&mut self, home: &Home, logged: &LoggedEvent) {
        let day = day_of(logged.event.time);
        let name = EventName::read(&logged.event.kind);
        if let Some(id) = tasks::id_of(&logged.stream) {
            if let Some(EventName::AgentSpawned | EventName::AgentRespawned) = name {
                self.count_session(home, day, id);
            }
            return;
        }
        let tells = match name {
            Some(EventName::StepStarted | EventName::StepPartStarted | EventName::StepPartEnded)
            | Some(EventName::StepAttemptFailed | EventName::StepCompleted) => true,
            Some(_) | None => false,
        };
        let Some(id) = runs::id_of(&logged.stream).filter(|_| tells) else { return };
        // What this build cannot read, or what is gone, has used up nothing that is known.
        let Ok(event) = run_event::read(logged.event.version, &logged.event.data) else { return };
        let Ok(Some(facts)) = home.tasks.setting(&id) else { return };
        let Some(news) = UsageNews::of(&event, &facts.plan) else { return };
        let usual = usual_harness(home);
        let (UsageNews::Began(step) | UsageNews::Used(step, _)) = news;
        let owner = UsageOwner::Run(id);
        self.labels.entry(owner.clone()).or_insert_with(|| {
            let task = facts.given.origin.task.clone();
            let task = task.map(|id| (id.clone(), branch_of(home, &id)));
            let project = home.projects.around(facts.given.origin.root.as_ref()).map(|project| project.name);
            OwnerLabel { name: facts.plan.recipe.name.to_string(), project, task }
        });
        let mut tally = UsageTally::default();
        match news {
            UsageNews::Began(_) => tally.begin(),
            UsageNews::Used(_, used) => tally.take(&used),
        }
        self.add(UsageKey { day, owner, harness: harness(&facts.plan, &facts.given, step, &usual) }, &tally);
    }

    /// A session of a task has begun. What it uses up its program tells its person alone.
    fn count_session(&mut self, home: &Home, day: i64, id: TaskId) {
        let Ok(Some(seen)) = home.tasks.since(&id, 0) else { return };
        let about = &seen.state.about;
        let owner = UsageOwner::Task(id.clone());
        self.labels.entry(owner.clone()).or_insert_with(|| OwnerLabel {
            name: about.branch.clone(),
            project: Some(about.project.clone()),
            task: Some((id, about.branch.clone())),
        });
        let mut tally = UsageTally::default();
        tally.begin();
        self.add(UsageKey { day, owner, harness: about.harness.clone() }, &tally);
    }

    fn add(&mut self, key: UsageKey, tally: &UsageTally) {
        if self.used.len() >= MOST_ENTRIES && !self.used.contains_key(&key) {
            self.make_room();
        }
        self.sum(&key, tally);
        self.used.entry(key).or_default().add(tally);
    }

    /// Makes room: an earlier day goes as a whole, because what is left of a day is not all of it. Of today one entry goes, and the
    /// sums of today stay.
    fn make_room(&mut self) {
        let Some((oldest, _)) = self.used.pop_first() else { return };
        self.from = self.from.map(|from| from.max(oldest.day.saturating_add(DAY)));
        if oldest.day >= self.today {
            return;
        }
        self.used.retain(|key, _| key.day > oldest.day);
        let owners: BTreeSet<&UsageOwner> = self.used.keys().map(|key| &key.owner).collect();
        self.labels.retain(|owner, _| owners.contains(owner));
        self.add_up();
    }

    /// Makes the sums anew.
    fn add_up(&mut self) {
        self.totals.clear();
        self.day.clear();
        let used = std::mem::take(&mut self.used);
        used.iter().for_each(|(key, tally)| self.sum(key, tally));
        self.used = used;
    }

    fn sum(&mut self, key: &UsageKey, tally: &UsageTally) {
        let label = self.labels.get(&key.owner);
        if key.day >= self.today {
            let project = label.and_then(|label| label.project.clone());
            self.day.entry(project).or_default().add(tally);
        }
        let task = match &key.owner {
            UsageOwner::Run(id) => {
                self.totals.entry(id.to_string()).or_default().add(tally);
                label.and_then(|label| label.task.as_ref()).map(|(task, _)| task)
            }
            UsageOwner::Task(id) => Some(id),
        };
        if let Some(task) = task {
            self.totals.entry(task.to_string()).or_default().add(tally);
        }
    }
}

/// The branch of a task, as far as it can be read.
fn branch_of(home: &Home, id: &TaskId) -> String {
    let seen = home.tasks.since(id, 0).ok().flatten();
    seen.map_or_else(String::new, |seen| seen.state.about.branch.clone())
}

pub(crate) fn usual_harness(home: &Home) -> String {
    home.context.config().defaults.harness.clone().unwrap_or_else(|| DEFAULT_HARNESS.to_owned())
}

/// The place in the log before the first event since a moment. The log is in the order of its commits, and so, but for what
/// happened at almost the same time, in that of its moments.
fn first_since(home: &Home, moment: i64) -> Result<Cursor, Problem> {
    let (mut low, mut high) = (0, home.tasks.end_of_log()?.0);
    while low < high {
        let middle = low + (high - low) / 2;
        let next = home.tasks.log(Cursor(middle), 1)?;
        match next.first() {
            Some(logged) if logged.event.time < moment => low = logged.cursor.0,
            Some(_) | None => high = middle,
        }
    }
    Ok(Cursor(low))
}
