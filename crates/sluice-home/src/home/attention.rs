//! Everything that waits for a person: open tasks and runs, what they wait for, and the home itself. It is read from the model
//! of what is open; nothing that has ended is looked at, and nothing that waits is cut off.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use sluice_api::attention::{Attention, AttentionCause, AttentionKind, AttentionNote};
use sluice_api::problem::Problem;
use sluice_core::id::TaskId;
use sluice_core::machine::Moment;
use sluice_core::recipe::{StepId, StepWork};
use sluice_core::run::StepStatusKind;
use sluice_core::task::session::{SessionNumber, TaskSession};
use sluice_core::task::state::{MarkBehind, TaskAttention};
use sluice_engine::host::EngineClock;
use sluice_engine::run_actor::RunActor;
use sluice_os::harness::screens::ShownDialog;
use sluice_os::merge::PUSHED_LATER;
use sluice_os::redact::shown_of;
use sluice_os::session::SessionStream;
use sluice_store::{Query, StreamId};

use super::signals::plain;
use super::workers::RemoteWorker;
use super::{Home, room, session_id, sights};
use crate::background::locked;
use crate::read::attention::{about_home, about_run, of_task, question};
use crate::read::runs::{self, RunSnapshot};
use crate::read::tasks::{self, TaskSnapshot};
use crate::settings::clock::written;
use crate::settings::ids::LOCAL;
use crate::settings::room::WAY_OUT;

/// Bytes of what a dead agent printed in which its last lines are looked for.
const LAST_BYTES: usize = 8 << 10;
/// What the ids of what is stored and cannot be read begin with.
const STORE: &str = "store";
/// What a person does about it.
const BRINGS_BACK: &str =
    "`sluice doctor --deep` names everything that is damaged, `sluice restore FILE` puts a backup back";
/// Cards of runs that are read at a time.
const CARDS_AT_A_TIME: usize = 1000;

/// How long something that is not seen is remembered, in milliseconds: not every look asks the store.
const REMEMBERED: i64 = 120_000;

/// Since when something is known that no event tells of.
#[derive(Debug, Default)]
pub(crate) struct SinceKnown(Mutex<BTreeMap<String, KnownTime>>);

#[derive(Debug)]
struct KnownTime {
    first: i64,
    last: i64,
}

impl SinceKnown {
    /// The moment at which each of these was first seen. What was not among them for a while is forgotten.
    fn of(&self, ids: &[String], now: Moment) -> BTreeMap<String, i64> {
        let mut known = locked(&self.0);
        for id in ids {
            known.entry(id.clone()).or_insert(KnownTime { first: now.0, last: now.0 }).last = now.0;
        }
        known.retain(|_, time| now.0.saturating_sub(time.last) <= REMEMBERED);
        known.iter().map(|(id, time)| (id.clone(), time.first)).collect()
    }
}

/// Everything that waits for a person, the oldest first. `faults` are the streams that the engine cannot read.
pub(crate) fn all(home: &Home, faults: &[(String, String)]) -> Result<Vec<Attention>, Problem> {
    let mut waits = home.waits.all();
    let (mut found, mut roots) = (Vec::new(), BTreeMap::new());
    for seen in home.tasks.open() {
        match of_open_task(home, &seen) {
            Some(attention) => {
                waits.remove(&tasks::stream(&seen.id));
                found.push(attention);
            }
            None => found.extend(waits.remove(&tasks::stream(&seen.id)).map(|wait| task_waits(&seen, wait))),
        }
    }
    for seen in home.tasks.owing()? {
        found.extend(of_ended_task(home, &seen));
    }
    let query =
        Query { kind: Some(RunActor::KIND.into()), open: Some(true), limit: CARDS_AT_A_TIME, ..Query::default() };
    home.tasks.walk(query, |summary| {
        let Some(id) = runs::id_of(&summary.stream) else { return Ok(true) };
        let read = home.tasks.unless_damaged(&summary.stream, home.tasks.run_of(&id, &summary))?;
        if let Some(seen) = read {
            let before = found.len();
            found.extend(seen.state.questions().map(|(step, asked)| question(&seen, step, asked)));
            found.extend(waits.remove(&summary.stream).map(|wait| about_run(&seen, None, wait)));
            found.extend(lacks_worker(home, &seen));
            if found.len() > before {
                roots.insert(seen.id.to_string(), seen.state.given.origin.root.clone());
            }
        }
        Ok(true)
    })?;
    let projects = home.projects.list();
    let project_at = |root: &str| projects.iter().find(|project| project.path == root).map(|it| it.name.clone());
    found.iter_mut().filter(|it| it.project.is_none()).for_each(|attention| {
        attention.project = attention.run.as_ref().and_then(|run| roots.get(run)).and_then(|root| project_at(root));
    });
    found.extend(of_home(home, faults, None));
    found.sort_by(|one, other| (&one.since, &one.id).cmp(&(&other.since, &other.id)));
    Ok(found)
}

/// What is known to wait for a person while the store cannot be asked, and that it cannot.
pub(crate) fn without_store(home: &Home, faults: &[(String, String)], why: &Problem) -> Vec<Attention> {
    let mut found: Vec<Attention> = home.tasks.open().iter().filter_map(|seen| of_open_task(home, seen)).collect();
    let text = format!("the store cannot be asked now, and is tried again: {}", why.message);
    found.extend(of_home(home, faults, Some(text)));
    found.sort_by(|one, other| (&one.since, &one.id).cmp(&(&other.since, &other.id)));
    found
}

/// Why an open task needs a person. One that waits for a worktree gets it when it is its turn: only if that takes long, a
/// person is told.
fn of_open_task(home: &Home, seen: &TaskSnapshot) -> Option<Attention> {
    let raised = seen.state.raised(&seen.lifecycle).filter(|_| seen.card.open)?;
    if raised.why == TaskAttention::PoolFull && !is_full_for_long(home, seen) {
        return None;
    }
    let attention = of_task(seen)?;
    let mut text = still_owed(home, seen, attention.text)?;
    if raised.why == TaskAttention::PoolFull {
        let project = &seen.state.about.project;
        text = format!("{text}: every worktree of `{project}` is in use; make the pool larger, or end another task");
    }
    let evidence = last_lines(home, seen);
    Some(Attention { text: explained(home, seen, &evidence, text), evidence, ..attention })
}

/// What is said about a task, with the reason of its agent's end added where the agent's program gave it in words that are
/// known. Like the last lines it is no part of what is stored, and goes when the session is forgotten.
pub(crate) fn explained(home: &Home, seen: &TaskSnapshot, printed: &[String], text: String) -> String {
    let about_end = seen.state.raised(&seen.lifecycle).is_some_and(|raised| raised.why.is_about_an_end());
    let format = dead_agent(seen).filter(|_| about_end).and_then(|number| sights::format(home, seen, number));
    match format.and_then(|format| ShownDialog::find(format, &printed.join("\n"))) {
        Some(found) => format!("{text}. It said ({}): {}", found.what.word(), plain(home, &found.line)),
        None => text,
    }
}

/// Why a task that has ended needs a person.
fn of_ended_task(home: &Home, seen: &TaskSnapshot) -> Option<Attention> {
    let attention = of_task(seen)?;
    let text = still_owed(home, seen, attention.text)?;
    Some(Attention { text, ..attention })
}

/// The text of an attention as far as it still holds: a person may have pushed since what could not be pushed. What else the
/// task has to say stands behind that.
pub(crate) fn still_owed(home: &Home, seen: &TaskSnapshot, text: String) -> Option<String> {
    let Some(raised) = &seen.state.attention else { return Some(text) };
    let Some(MarkBehind { why: TaskAttention::NotPushed(why), .. }) = raised.mark() else { return Some(text) };
    if !home.pool_of(seen).is_ok_and(|(_, pool)| pool.repository().is_pushed().unwrap_or(false)) {
        return Some(text);
    }
    if raised.behind.is_some() {
        return Some(raised.why.to_string());
    }
    let later = why.split_once(PUSHED_LATER).map(|(_, later)| later.trim_start_matches("; "));
    later.filter(|later| !later.is_empty()).map(str::to_owned)
}

/// Whether an open task has waited for a worktree for so long that a person is told.
pub(crate) fn is_full_for_long(home: &Home, seen: &TaskSnapshot) -> bool {
    let raised = seen.state.raised(&seen.lifecycle).filter(|raised| raised.why == TaskAttention::PoolFull);
    let patience = millis(home.context.config().attention.pool_full_after);
    let waited = raised.map(|raised| home.clock.now().0.saturating_sub(raised.since.0));
    seen.card.open && waited.is_some_and(|waited| waited >= patience)
}

pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn task_waits(seen: &TaskSnapshot, wait: AttentionNote) -> Attention {
    let AttentionNote { id, reason, text, since, choices, said_by } = wait;
    let about = about_home(id, reason, text, since);
    Attention {
        kind: AttentionKind::Wait,
        task: Some(seen.id.to_string()),
        project: Some(seen.state.about.project.clone()),
        title: seen.state.about.branch.clone(),
        options: choices,
        said_by,
        ..about
    }
}

/// The end of what the agent printed that died and was not started again.
pub(crate) fn last_lines(home: &Home, seen: &TaskSnapshot) -> Vec<String> {
    dead_agent(seen).map(|number| last_lines_of(home, &seen.id, number)).unwrap_or_default()
}

fn dead_agent(seen: &TaskSnapshot) -> Option<SessionNumber> {
    [&seen.state.beside, &seen.state.main].into_iter().find_map(|session| match session {
        TaskSession::Dead(agent, _) => Some(agent.id),
        TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Alive(_) | TaskSession::Ending(_) => None,
    })
}

/// The end of what an agent of a task printed, as long as that is kept.
pub(crate) fn last_lines_of(home: &Home, task: &TaskId, number: SessionNumber) -> Vec<String> {
    let Ok(session) = session_id(task, number) else { return Vec::new() };
    let tail = |stream| home.context.sessions.output_tail(&session, stream, LAST_BYTES).map(|chunk| chunk.bytes);
    let mut printed = tail(SessionStream::Output).unwrap_or_default();
    printed.extend(tail(SessionStream::Errors).unwrap_or_default());
    crate::read::attention::last_lines(&shown_of(&printed))
}

/// The steps of a run that are to be done by a worker elsewhere, and which no worker has. Such a step has begun for the
/// run's machine, and for people it waits.
pub(crate) fn waiting_for_worker(home: &Home, seen: &RunSnapshot) -> Vec<StepId> {
    let group = seen.group();
    if group.is_empty() || group == LOCAL || seen.state.end.is_some() {
        return Vec::new();
    }
    let roster = locked(&home.roster.inner);
    let is_held = |step| roster.jobs.values().any(|job| job.mission == seen.id && job.wanted.step == step);
    let steps = (0u32..).map(StepId).zip(seen.plan.recipe.steps.iter().zip(&seen.state.steps));
    let waits = steps.filter(|(id, (step, state))| {
        let is_remote = !matches!(step.work, StepWork::Task(_));
        state.kind() == StepStatusKind::Running && is_remote && !is_held(*id)
    });
    waits.map(|(id, _)| id).collect()
}

/// The first step of a run that has waited for long for a worker elsewhere, where none is there that could do it.
pub(crate) fn lacks_worker(home: &Home, seen: &RunSnapshot) -> Option<Attention> {
    let waiting = waiting_for_worker(home, seen);
    let group = seen.group();
    let roster = locked(&home.roster.inner);
    let fits = |one: &str, other: &str| one == other || one == "any" || other == "any";
    let (now, patience) = (home.clock.now().0, millis(home.context.config().attention.worker_after));
    // One that has registered, listens nowhere and says nothing is not there, whatever is kept for it.
    let is_alive = |worker: &RemoteWorker| {
        worker.listens.is_some() || worker.heard.is_some_and(|heard| now.saturating_sub(heard) < patience)
    };
    let is_ready = |worker: &RemoteWorker| worker.is_present && !worker.is_finishing && !worker.is_full;
    let is_there = |role: &str| {
        let mut present = roster.workers.values().filter(|worker| is_ready(worker) && is_alive(worker));
        present.any(|worker| worker.group == group && fits(&worker.role, role))
    };
    let id = waiting.into_iter().find(|id| !is_there(seen.plan.recipe.step(*id).role.as_str()))?;
    let (step, began) = (seen.plan.recipe.step(id), seen.state.step(id).began.map_or(seen.card.updated, |at| at.0));
    let role = step.role.as_str();
    let fitting = roster.workers.values().filter(|worker| worker.group == group && fits(&worker.role, role));
    let missed = missed_since(began, fitting.filter_map(|worker| worker.heard));
    if now.saturating_sub(missed) < patience {
        return None;
    }
    let text = format!(
        "step `{}` waits for a worker of `{group}` with the role `{}`, and none is there",
        step.name, step.role
    );
    let since = written(missed);
    let note = AttentionNote {
        id: format!("{}/worker", seen.id),
        choices: vec!["cancel".to_owned()],
        ..crate::read::attention::note_of(AttentionCause::Worker, text, since)
    };
    Some(about_run(seen, Some(step.name.to_string()), note))
}

/// Since when a step that began then misses a worker, of which the fitting ones were last heard at these moments. One that comes
/// and goes is missed only if it stays away.
fn missed_since(began: i64, heard: impl Iterator<Item = i64>) -> i64 {
    heard.fold(began, i64::max)
}

/// What the home itself needs: a store that answers, what is damaged, what the engine cannot read, and room on its disks.
pub(crate) fn of_home(home: &Home, faults: &[(String, String)], away: Option<String>) -> Vec<Attention> {
    let away = away.map(|text| (STORE.to_owned(), AttentionCause::Store, text));
    let store = |(what, why): (String, String)| {
        (format!("{STORE}/{what}"), AttentionCause::Store, format!("{what}: {why}; {BRINGS_BACK}"))
    };
    let damaged = home.tasks.damage().into_iter().map(store);
    let faulty = faults.iter().cloned().map(store);
    let short = room::rooms(home).into_iter().filter(|room| room.is_short).map(|room| {
        let text = format!("{} has only {} bytes left; {WAY_OUT}", room.path, room.free_bytes);
        (format!("disk{}", room.path), AttentionCause::WorkAtRisk, text)
    });
    let mut found: Vec<(String, AttentionCause, String)> =
        away.into_iter().chain(damaged).chain(faulty).chain(short).collect();
    found.sort();
    found.dedup_by(|one, other| one.0 == other.0);
    let ids: Vec<String> = found.iter().map(|(id, ..)| id.clone()).collect();
    let since = home.known_since.of(&ids, home.clock.now());
    let shown = |(id, reason, text): (String, AttentionCause, String)| {
        let since = written(since.get(&id).copied().unwrap_or_default());
        let stream = id.strip_prefix(STORE).and_then(|it| it.strip_prefix('/')).map(StreamId::new);
        let task = stream.as_ref().and_then(tasks::id_of).map(String::from);
        let run = stream.as_ref().and_then(runs::id_of).map(String::from);
        Attention { task, run, ..about_home(id, reason, text, since) }
    };
    found.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use sluice_core::machine::Moment;

    use super::{REMEMBERED, SinceKnown, missed_since};

    #[test]
    fn what_one_look_does_not_see_is_as_old_as_before_at_the_next() {
        let (known, store, disk) = (SinceKnown::default(), "store".to_owned(), "disk/".to_owned());
        known.of(&[store.clone(), disk.clone()], Moment(1000));
        // The board does not ask the store.
        known.of(std::slice::from_ref(&disk), Moment(2000));
        assert_eq!(known.of(&[store.clone(), disk.clone()], Moment(3000)).get(&store), Some(&1000));
        let later = Moment(3000 + REMEMBERED + 1);
        assert_eq!(known.of(std::slice::from_ref(&disk), later).get(&store), None);
        assert_eq!(known.of(std::slice::from_ref(&store), later).get(&store), Some(&later.0));
    }

    #[test]
    fn a_worker_that_comes_and_goes_is_missed_from_its_last_sign_of_life() {
        assert_eq!(missed_since(1000, [].into_iter()), 1000, "none was ever there");
        assert_eq!(missed_since(1000, [400].into_iter()), 1000, "it left before the step began");
        assert_eq!(missed_since(1000, [400, 7000, 2000].into_iter()), 7000);
    }
}
