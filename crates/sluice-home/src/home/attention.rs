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
use sluice_core::task::state::TaskAttention;
use sluice_engine::host::EngineClock;
use sluice_engine::run_actor::RunActor;
use sluice_os::redact::shown_of;
use sluice_os::session::SessionStream;
use sluice_store::Query;

use super::{Home, room, session_id};
use crate::background::locked;
use crate::read::attention::{about_home, about_run, of_task, question};
use crate::read::runs::{self, RunSnapshot};
use crate::read::tasks::{self, TaskSnapshot};
use crate::settings::clock::written;
use crate::settings::ids::LOCAL;
use crate::settings::room::WAY_OUT;

/// Lines of what a dead agent printed that are shown, and the bytes in which they are looked for.
const LAST_LINES: usize = 20;
const LAST_BYTES: usize = 8 << 10;
/// Cards of runs that are read at a time.
const CARDS_AT_A_TIME: usize = 1000;

/// Since when something is known that no event tells of.
#[derive(Debug, Default)]
pub(crate) struct SinceKnown(Mutex<BTreeMap<String, i64>>);

impl SinceKnown {
    /// The moment at which each of these was first seen. What is not among them any more is forgotten.
    fn of(&self, ids: &[String], now: Moment) -> BTreeMap<String, i64> {
        let mut known = locked(&self.0);
        known.retain(|id, _| ids.contains(id));
        for id in ids {
            known.entry(id.clone()).or_insert(now.0);
        }
        known.clone()
    }
}

/// Everything that waits for a person, the oldest first. `faults` are the streams that the engine cannot read.
pub(crate) fn all(home: &Home, faults: &[(String, String)]) -> Result<Vec<Attention>, Problem> {
    let mut waits = home.waits.all();
    let mut found = Vec::new();
    for seen in home.tasks.open() {
        match of_open_task(home, &seen) {
            Some(attention) => {
                waits.remove(&tasks::stream(&seen.id));
                found.push(attention);
            }
            None => found.extend(waits.remove(&tasks::stream(&seen.id)).map(|wait| task_waits(&seen, wait))),
        }
    }
    let query =
        Query { kind: Some(RunActor::KIND.into()), open: Some(true), limit: CARDS_AT_A_TIME, ..Query::default() };
    home.tasks.walk(query, |summary| {
        let Some(id) = runs::id_of(&summary.stream) else { return Ok(true) };
        let read = home.tasks.unless_damaged(&summary.stream, home.tasks.run_of(&id, &summary))?;
        if let Some(seen) = read {
            found.extend(seen.state.questions().map(|(step, asked)| question(&seen, step, asked)));
            found.extend(waits.remove(&summary.stream).map(|wait| about_run(&seen, None, wait)));
            found.extend(lacks_worker(home, &seen));
        }
        Ok(true)
    })?;
    found.extend(of_home(home, faults));
    found.sort_by(|one, other| (&one.since, &one.id).cmp(&(&other.since, &other.id)));
    Ok(found)
}

/// Why an open task needs a person. One that waits for a worktree gets it when it is its turn: only if that takes long, a
/// person is told.
fn of_open_task(home: &Home, seen: &TaskSnapshot) -> Option<Attention> {
    let raised = seen.state.raised(&seen.lifecycle).filter(|_| seen.card.open)?;
    if raised.why == TaskAttention::PoolFull {
        let patience = millis(home.context.config().attention.pool_full_after);
        if home.clock.now().0.saturating_sub(raised.since.0) < patience {
            return None;
        }
    }
    of_task(seen).map(|attention| Attention { evidence: last_lines(home, seen), ..attention })
}

fn millis(time: Duration) -> i64 {
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
    let dead = [&seen.state.beside, &seen.state.main].into_iter().find_map(|session| match session {
        TaskSession::Dead(agent, _) => Some(agent.id),
        TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Alive(_) | TaskSession::Ending(_) => None,
    });
    dead.map(|number| last_lines_of(home, &seen.id, number)).unwrap_or_default()
}

/// The end of what an agent of a task printed, as long as that is kept.
pub(crate) fn last_lines_of(home: &Home, task: &TaskId, number: SessionNumber) -> Vec<String> {
    let Ok(session) = session_id(task, number) else { return Vec::new() };
    let tail = |stream| home.context.sessions.output_tail(&session, stream, LAST_BYTES).map(|chunk| chunk.bytes);
    let mut printed = tail(SessionStream::Output).unwrap_or_default();
    printed.extend(tail(SessionStream::Errors).unwrap_or_default());
    let printed = shown_of(&printed);
    let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

/// The first step of a run that waits for a worker elsewhere, where none is there that could do it.
fn lacks_worker(home: &Home, seen: &RunSnapshot) -> Option<Attention> {
    let group = Some(seen.group()).filter(|group| !group.is_empty() && *group != LOCAL)?;
    let roster = locked(&home.roster.inner);
    let is_held = |step| roster.jobs.values().any(|job| job.mission == seen.id && job.wanted.step == step);
    let fits = |one: &str, other: &str| one == other || one == "any" || other == "any";
    let is_there = |role: &str| {
        let mut present = roster.workers.values().filter(|worker| worker.is_present && !worker.is_finishing);
        present.any(|worker| worker.group == group && fits(&worker.role, role))
    };
    let mut steps = (0u32..).map(StepId).zip(seen.plan.recipe.steps.iter().zip(&seen.state.steps));
    let (_, (step, _)) = steps.find(|(id, (step, state))| {
        let waits = matches!(state.kind(), StepStatusKind::Ready | StepStatusKind::Running);
        let is_remote = !matches!(step.work, StepWork::Task(_));
        waits && is_remote && !is_held(*id) && !is_there(step.role.as_str())
    })?;
    let text = format!(
        "step `{}` waits for a worker of `{group}` with the role `{}`, and none is there",
        step.name, step.role
    );
    let since = written(seen.card.updated);
    let note = AttentionNote {
        id: format!("{}/worker", seen.id),
        choices: vec!["cancel".to_owned()],
        ..crate::read::attention::note_of(AttentionCause::Worker, text, since)
    };
    Some(about_run(seen, Some(step.name.to_string()), note))
}

/// What the home itself needs: what is damaged, what the engine cannot read, and room on its disks.
fn of_home(home: &Home, faults: &[(String, String)]) -> Vec<Attention> {
    let store =
        |(what, why): (String, String)| (format!("store/{what}"), AttentionCause::Store, format!("{what}: {why}"));
    let damaged = home.tasks.damage().into_iter().map(store);
    let faulty = faults.iter().cloned().map(store);
    let short = room::rooms(home).into_iter().filter(|room| room.is_short).map(|room| {
        let text = format!("{} has only {} bytes left; {WAY_OUT}", room.path, room.free_bytes);
        (format!("disk{}", room.path), AttentionCause::WorkAtRisk, text)
    });
    let mut found: Vec<(String, AttentionCause, String)> = damaged.chain(faulty).chain(short).collect();
    found.sort();
    found.dedup_by(|one, other| one.0 == other.0);
    let ids: Vec<String> = found.iter().map(|(id, ..)| id.clone()).collect();
    let since = home.known_since.of(&ids, home.clock.now());
    let shown = |(id, reason, text): (String, AttentionCause, String)| {
        let since = written(since.get(&id).copied().unwrap_or_default());
        about_home(id, reason, text, since)
    };
    found.into_iter().map(shown).collect()
}
