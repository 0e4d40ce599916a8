//! Missions: runs that the workers of a group work on, in the words of those who ask by HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_api::control::{Mission, MissionShown, MissionStatus, MissionTask, MissionTaskStatus, NewMission};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::StartRun;
use sluice_core::event_name::EventName;
use sluice_core::id::RunId;
use sluice_core::recipe::{RecipeDialect, Step, StepId, StepWorkspace};
use sluice_core::run::{AttemptPart, RunConclusion, RunKind, StepState, StepStatusKind};
use sluice_dialect::catalogue::{Catalogue, CataloguePlaces};
use sluice_dialect::{Definition, Sources};
use sluice_engine::host::EngineClock;
use sluice_worker::names::{remote_folder, remote_scratch};

use crate::home::Home;
use crate::home::registry::{RegistryChange, RegistryEntry, called};
use crate::read::runs::RunSnapshot;
use crate::read::view_run::unless_empty;
use crate::roster::{StepHolder, groups, task_id};
use crate::settings::ids::only;
use crate::start::{EngineStart, start_as};

/// Characters of what a mission is told.
const LONGEST_PROMPT: usize = 1 << 20;
/// Missions without a workflow that are kept.
const MOST_IDEAS: usize = 10_000;

/// A mission without a workflow, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct IdeaEntry {
    colony_id: String,
    prompt: String,
    created_at_ms: i64,
}

impl RegistryEntry for IdeaEntry {
    const PREFIX: &'static str = "mission/";
}

pub(crate) fn create(home: &Arc<Home>, wanted: &NewMission, id: RunId) -> Result<Mission, Problem> {
    let group = groups::find(home, &wanted.colony_id)?;
    let wanted = &NewMission { colony_id: group.colony_id, ..wanted.clone() };
    if wanted.prompt.trim().is_empty() {
        return Err(Problem::bad_request("`prompt` is empty").hint("say what is wanted"));
    }
    if wanted.prompt.chars().count() > LONGEST_PROMPT {
        return Err(Problem::bad_request(format!("`prompt` is too long; it can have {LONGEST_PROMPT} letters")));
    }
    let Some(workflow) = &wanted.workflow else { return write_down(home, wanted, &id) };
    let recipe = recipe(home, workflow)?;
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let started = EngineStart {
        id: Some(id),
        group: Some(wanted.colony_id.clone()),
        kind: Some(RunKind::Mission),
        ..EngineStart::default()
    };
    let wanted = StartRun {
        recipe: recipe.display().to_string(),
        cwd: here.display().to_string(),
        prompt: Some(wanted.prompt.clone()),
        ..StartRun::default()
    };
    let seen = start_as(home, &wanted, started)?;
    Ok(mission(&seen))
}

/// A mission that no worker works on: it has no workflow.
fn write_down(home: &Home, wanted: &NewMission, id: &RunId) -> Result<Mission, Problem> {
    if home.registry.ids::<IdeaEntry>().len() >= MOST_IDEAS {
        let message = format!("there are {MOST_IDEAS} missions without a workflow, and that is enough");
        return Err(Problem::new(ProblemStatus::Refused, "too_many", message));
    }
    if let Some(there) = home.registry.get::<IdeaEntry>(id.as_str()) {
        return Ok(idea(id.as_str(), there));
    }
    let prompt = home.context.clean().text(&wanted.prompt);
    let entry = IdeaEntry { colony_id: wanted.colony_id.clone(), prompt, created_at_ms: home.clock.now().0 };
    let shown = idea(id.as_str(), entry.clone());
    let happened = RegistryChange::new(EventName::MissionCreated, "person", &shown).put(id.as_str(), &entry);
    home.registry.record(home, happened).map_err(|problem| called(problem, id.as_str()))?;
    Ok(shown)
}

fn idea(id: &str, entry: IdeaEntry) -> Mission {
    let IdeaEntry { colony_id, prompt, created_at_ms } = entry;
    Mission {
        mission_id: id.to_owned(),
        colony_id,
        prompt,
        workflow_name: None,
        status: MissionStatus::Pending,
        worktree_path: id.parse().map_or_else(|_| String::new(), |id| remote_folder(&id)),
        error: None,
        created_at_ms,
        updated_at_ms: created_at_ms,
    }
}

/// The workflow of this name: of the prompts' folder if there is one, else the nearest that is known here.
fn recipe(home: &Home, name: &str) -> Result<PathBuf, Problem> {
    match catalogue(home).find(name) {
        Some(entry) if home.context.places.prompts().is_some() => Ok(entry.path.clone()),
        Some(entry) => Ok(PathBuf::from(entry.name())),
        None => {
            let known = names(home);
            Err(Problem::not_found(format!("there is no workflow `{name}`")).hint(match known.is_empty() {
                true => "none is known; `sluice serve --prompts DIR` reads DIR/workflows/*.toml".to_owned(),
                false => format!("known: {}", known.join(", ")),
            }))
        }
    }
}

fn catalogue(home: &Home) -> Catalogue {
    match home.context.places.prompts() {
        Some(prompts) => Catalogue::of_folder(&prompts.join("workflows")),
        None => {
            Catalogue::gather(&CataloguePlaces { repository: None, home: Some(home.context.places.home().to_owned()) })
        }
    }
}

/// The names of all workflows that a mission can have, sorted.
pub(crate) fn names(home: &Home) -> Vec<String> {
    let catalogue = catalogue(home);
    let usable = catalogue.entries.iter().filter(|entry| {
        let loaded = entry.load(&mut Sources::new());
        let is_manifest =
            matches!(&loaded.definition, Some(Definition::Recipe(it)) if it.dialect == RecipeDialect::Manifest);
        loaded.is_usable() && is_manifest
    });
    let mut names: Vec<String> = usable.map(|entry| entry.name().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The run of this id, or the only one whose id begins like this, whose steps workers elsewhere do.
pub(crate) fn leased(home: &Home, id: &str) -> Result<RunSnapshot, Problem> {
    find(home, id, is_leased)
}

fn is_leased(seen: &RunSnapshot) -> bool {
    is_mission(seen) || seen.group() != crate::settings::ids::LOCAL
}

fn is_mission(seen: &RunSnapshot) -> bool {
    seen.state.given.origin.kind == RunKind::Mission
}

/// The run of this id, or the only one whose id begins like this, if it is of this kind.
fn find(home: &Home, id: &str, fits: fn(&RunSnapshot) -> bool) -> Result<RunSnapshot, Problem> {
    // Almost everybody says the whole id, and that is quicker.
    match home.tasks.run_named(id)?.map_or_else(|| home.tasks.find_run(id), Ok) {
        Ok(seen) if fits(&seen) => Ok(seen),
        Err(problem) if problem.status != ProblemStatus::NotFound => Err(problem),
        Ok(_) | Err(_) => Err(none(id)),
    }
}

/// The mission of exactly this id, if it is this group's and has a workflow. A caller that sees one group only says the
/// whole id: it is not told what else begins like it.
pub(crate) fn of_group(home: &Home, id: &str, group: &str) -> Result<RunSnapshot, Problem> {
    match home.tasks.run_named(id)? {
        Some(seen) if is_leased(&seen) && seen.group() == group => Ok(seen),
        Some(_) | None => Err(none(id)),
    }
}

/// There is none of this id, or none that the caller may see.
pub(crate) fn none(id: &str) -> Problem {
    Problem::not_found(format!("there is no mission `{id}`")).hint("GET /v1/missions lists all of them")
}

pub(crate) fn show(home: &Home, id: &str) -> Result<MissionShown, Problem> {
    let mut ideas = home.registry.all::<IdeaEntry>();
    if let Some(place) = only(ideas.iter().map(|(id, _)| id.as_str()), id)? {
        let (id, entry) = ideas.swap_remove(place);
        return Ok(MissionShown { mission: idea(&id, entry), tasks: Vec::new() });
    }
    let seen = find(home, id, is_mission)?;
    Ok(MissionShown { mission: mission(&seen), tasks: tasks(home, &seen) })
}

/// The same for a caller that sees this group only.
pub(crate) fn show_of(home: &Home, id: &str, group: &str) -> Result<MissionShown, Problem> {
    if let Some(entry) = home.registry.get::<IdeaEntry>(id).filter(|entry| entry.colony_id == group) {
        return Ok(MissionShown { mission: idea(id, entry), tasks: Vec::new() });
    }
    let seen = of_group(home, id, group)?;
    Ok(MissionShown { mission: mission(&seen), tasks: tasks(home, &seen) })
}

pub(crate) fn list(home: &Home, runs: &[RunSnapshot]) -> Vec<Mission> {
    let of_runs = runs.iter().filter(|seen| is_mission(seen)).map(mission);
    let ideas = home.registry.all::<IdeaEntry>().into_iter().map(|(id, entry)| idea(&id, entry));
    let mut all: Vec<Mission> = of_runs.chain(ideas).collect();
    all.sort_by_key(|mission| mission.created_at_ms);
    all
}

pub(crate) fn mission(seen: &RunSnapshot) -> Mission {
    let (status, error) = match &seen.state.end {
        None => (MissionStatus::Running, None),
        Some(RunConclusion::Completed { .. }) => (MissionStatus::Completed, None),
        Some(RunConclusion::Failed { error }) => (MissionStatus::Failed, Some(error.clone())),
        Some(RunConclusion::Cancelled { reason }) => (MissionStatus::Cancelled, unless_empty(reason)),
    };
    Mission {
        mission_id: seen.id.to_string(),
        colony_id: seen.group().to_owned(),
        prompt: seen.state.given.prompt.clone(),
        workflow_name: Some(seen.plan.recipe.name.to_string()),
        status,
        worktree_path: match seen.plan.recipe.workspace {
            StepWorkspace::Scratch => remote_scratch(&seen.id),
            StepWorkspace::Run | StepWorkspace::Own | StepWorkspace::Here => remote_folder(&seen.id),
        },
        error,
        created_at_ms: seen.card.created,
        updated_at_ms: seen.card.updated,
    }
}

/// The tasks of a mission: its steps.
pub(crate) fn tasks(home: &Home, seen: &RunSnapshot) -> Vec<MissionTask> {
    let steps = (0u32..).map(StepId).zip(&seen.plan.recipe.steps);
    steps.map(|(id, step)| task(home, seen, id, step)).collect()
}

fn task(home: &Home, seen: &RunSnapshot, id: StepId, step: &Step) -> MissionTask {
    let state = seen.state.step(id);
    let name = |id: &StepId| task_id(&seen.id, seen.plan.recipe.step(*id).name.as_str(), AttemptPart::Whole);
    let holder = home.roster.holder(&seen.id, id);
    let status = task_status(seen, state, holder.as_ref());
    let updated = state.ended.or(state.began).map_or(seen.card.created, |at| at.0);
    MissionTask {
        task_id: name(&id),
        mission_id: seen.id.to_string(),
        title: title(step),
        step_id: step.name.to_string(),
        role: step.role.to_string(),
        status,
        assigned_crab_id: match status {
            MissionTaskStatus::Completed | MissionTaskStatus::Failed => {
                home.roster.did(&seen.id, id).map(|worker| worker.0)
            }
            MissionTaskStatus::Blocked
            | MissionTaskStatus::Queued
            | MissionTaskStatus::Assigned
            | MissionTaskStatus::Running
            | MissionTaskStatus::Skipped => holder.map(|holder| holder.worker.0),
        },
        depends_on: step.needs.iter().map(name).collect(),
        prompt: sluice_core::run::prompt(&seen.plan, &seen.state, id),
        context: sluice_core::run::context(&seen.plan, &seen.state, id),
        summary: state.latest.as_ref().map(|outcome| outcome.summary.clone()),
        result: state.latest.as_ref().and_then(|outcome| outcome.result.clone()),
        attempt: state.attempts,
        created_at_ms: seen.card.created,
        updated_at_ms: updated,
    }
}

fn task_status(seen: &RunSnapshot, state: &StepState, holder: Option<&StepHolder>) -> MissionTaskStatus {
    match state.kind() {
        StepStatusKind::Waiting | StepStatusKind::Held => MissionTaskStatus::Blocked,
        StepStatusKind::Ready | StepStatusKind::Retrying => MissionTaskStatus::Queued,
        StepStatusKind::Running | StepStatusKind::Stopping => match holder {
            // This machine's own worker has begun as soon as it has it.
            None if seen.group() == crate::settings::ids::LOCAL => MissionTaskStatus::Running,
            None => MissionTaskStatus::Queued,
            Some(holder) if holder.has_begun => MissionTaskStatus::Running,
            Some(_) => MissionTaskStatus::Assigned,
        },
        StepStatusKind::Completed => MissionTaskStatus::Completed,
        StepStatusKind::Skipped => MissionTaskStatus::Skipped,
        // It was never begun, and never will be.
        StepStatusKind::Cancelled if state.attempts == 0 => MissionTaskStatus::Skipped,
        StepStatusKind::Failed | StepStatusKind::Cancelled => MissionTaskStatus::Failed,
    }
}

pub(crate) fn title(step: &Step) -> String {
    step.title.clone().unwrap_or_else(|| step.name.to_string())
}

pub(crate) fn task_exists(seen: &RunSnapshot, task: &str) -> Result<(), Problem> {
    let is_of_it = |step: &Step| {
        let name = task_id(&seen.id, step.name.as_str(), AttemptPart::Whole);
        task == name || task.starts_with(&format!("{name}."))
    };
    match seen.plan.recipe.steps.iter().any(is_of_it) {
        true => Ok(()),
        false => Err(Problem::not_found(format!("mission {} has no task `{task}`", seen.id))),
    }
}
