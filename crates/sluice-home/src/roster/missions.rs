//! Missions: runs that the crabs of a colony work on, in the words of those who ask by HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::StartRun;
use sluice_core::recipe::{RecipeDialect, Step, StepId};
use sluice_core::run::{AttemptPart, RunConclusion, RunKind};
use sluice_dialect::catalogue::{Catalogue, CataloguePlaces};
use sluice_dialect::{Definition, Sources};
use sluice_engine::host::EngineClock;

use crate::home::Home;
use crate::home::registry::{RegistryChange, called};
use crate::read::runs::RunSnapshot;
use crate::roster::colonies;
use crate::roster::task_id;
use crate::settings::clock::new_id;
use crate::settings::ids::only;
use crate::start::{EngineStart, burrow, start_as};

/// Letters of what a mission is told.
const LONGEST_PROMPT: usize = 1 << 20;
/// Missions without a workflow that are kept.
const MOST_IDEAS: usize = 10_000;

/// A mission that is wanted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct NewMission {
    /// Whose it is.
    pub colony_id: String,
    /// What is wanted.
    pub prompt: String,
    /// By which workflow; without one it is only written down.
    #[serde(default)]
    pub workflow: Option<String>,
}

/// Begins a mission.
pub(crate) fn create(home: &Arc<Home>, by: &str, wanted: &NewMission, chosen: Option<&str>) -> Result<Value, Problem> {
    let colony = colonies::find(home, &wanted.colony_id)?;
    let wanted = &NewMission { colony_id: colony["colony_id"].as_str().unwrap_or_default().into(), ..wanted.clone() };
    if wanted.prompt.trim().is_empty() {
        return Err(Problem::bad_request("`prompt` is empty").hint("say what is wanted"));
    }
    if wanted.prompt.chars().count() > LONGEST_PROMPT {
        return Err(Problem::bad_request(format!("`prompt` is too long; it can have {LONGEST_PROMPT} letters")));
    }
    let Some(workflow) = &wanted.workflow else { return write_down(home, by, wanted, chosen) };
    let recipe = recipe(home, workflow)?;
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let started = EngineStart {
        id: chosen.map(str::to_owned),
        colony: Some(wanted.colony_id.clone()),
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

/// A mission that nobody works on: it has no workflow.
fn write_down(home: &Arc<Home>, by: &str, wanted: &NewMission, chosen: Option<&str>) -> Result<Value, Problem> {
    if home.registry.of("mission/").len() >= MOST_IDEAS {
        let message = format!("there are {MOST_IDEAS} missions without a workflow, and that is enough");
        return Err(Problem::new(ProblemStatus::Refused, "too_many", message));
    }
    let id = match chosen {
        Some(id) => id.to_owned(),
        None => new_id().map_err(Problem::fault)?,
    };
    if let Some(there) = home.registry.get(&format!("mission/{id}")) {
        return Ok(idea(&id, &there));
    }
    let entry = json!({
        "colony_id": wanted.colony_id, "prompt": home.clean().text(&wanted.prompt), "created_at_ms": home.clock.now().0,
    });
    let shown = idea(&id, &entry);
    let entries = vec![(format!("mission/{id}"), Some(entry))];
    let happened = RegistryChange { kind: "mission.created", actor: by, data: shown.clone(), entries };
    home.registry.record(home, happened).map_err(|problem| called(problem, &id))?;
    Ok(shown)
}

fn idea(id: &str, entry: &Value) -> Value {
    json!({
        "mission_id": id, "colony_id": entry["colony_id"], "prompt": entry["prompt"], "workflow_name": null,
        "status": "pending", "worktree_path": burrow(id), "error": null,
        "created_at_ms": entry["created_at_ms"], "updated_at_ms": entry["created_at_ms"],
    })
}

/// The workflow of this name: of the prompts' folder if there is one, else the nearest that is known here.
fn recipe(home: &Home, name: &str) -> Result<PathBuf, Problem> {
    let none = || {
        let known = names(home);
        Problem::not_found(format!("there is no workflow `{name}`")).hint(match known.is_empty() {
            true => "none is known; `sluice serve --prompts DIR` reads DIR/workflows/*.toml".to_owned(),
            false => format!("known: {}", known.join(", ")),
        })
    };
    match catalogue(home).find(name) {
        Some(entry) if home.places.prompts().is_some() => Ok(entry.path.clone()),
        Some(entry) => Ok(PathBuf::from(entry.name())),
        None => Err(none()),
    }
}

fn catalogue(home: &Home) -> Catalogue {
    match home.places.prompts() {
        Some(prompts) => Catalogue::of_folder(&prompts.join("workflows")),
        None => Catalogue::gather(&CataloguePlaces { repository: None, home: Some(home.places.home().to_owned()) }),
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

/// The mission of this id, or the only one whose id begins like this, that has a workflow.
pub(crate) fn find(home: &Home, id: &str) -> Result<RunSnapshot, Problem> {
    run(home, id).and_then(|seen| match seen.state.given.origin.kind == RunKind::Mission {
        true => Ok(seen),
        false => Err(none(id)),
    })
}

/// The run of this id, or the only one whose id begins like this, whose steps workers elsewhere do.
pub(crate) fn leased(home: &Home, id: &str) -> Result<RunSnapshot, Problem> {
    run(home, id).and_then(|seen| match is_leased(&seen) {
        true => Ok(seen),
        false => Err(none(id)),
    })
}

fn is_leased(seen: &RunSnapshot) -> bool {
    seen.state.given.origin.kind == RunKind::Mission || seen.colony() != crate::settings::ids::LOCAL
}

fn run(home: &Home, id: &str) -> Result<RunSnapshot, Problem> {
    // Almost everybody says the whole id, and that is quicker.
    match home.tasks.load_run(id)?.map_or_else(|| home.tasks.find_run(id), Ok) {
        Err(problem) if problem.status == ProblemStatus::NotFound => Err(none(id)),
        found => found,
    }
}

/// The mission of exactly this id, if it is this colony's and has a workflow. Whoever sees one colony only says the whole
/// id: what else begins like it is not for their ears.
pub(crate) fn of_colony(home: &Home, id: &str, colony: &str) -> Result<RunSnapshot, Problem> {
    match home.tasks.load_run(id)? {
        Some(seen) if is_leased(&seen) && seen.colony() == colony => Ok(seen),
        Some(_) | None => Err(none(id)),
    }
}

/// There is none of this id, or none that somebody may see.
pub(crate) fn none(id: &str) -> Problem {
    Problem::not_found(format!("there is no mission `{id}`")).hint("GET /v1/missions lists all of them")
}

/// A mission with its tasks.
pub(crate) fn show(home: &Home, id: &str) -> Result<Value, Problem> {
    let ideas = home.registry.of("mission/");
    if let Some(place) = only(ideas.iter().map(|(id, _)| id.as_str()), id)? {
        let (id, entry) = &ideas[place];
        return Ok(with_tasks(idea(id, entry), Vec::new()));
    }
    let seen = find(home, id)?;
    Ok(with_tasks(mission(&seen), tasks(home, &seen)))
}

/// The same for whoever sees this colony only.
pub(crate) fn show_of(home: &Home, id: &str, colony: &str) -> Result<Value, Problem> {
    if let Some(entry) = home.registry.get(&format!("mission/{id}")).filter(|entry| entry["colony_id"] == colony) {
        return Ok(with_tasks(idea(id, &entry), Vec::new()));
    }
    let seen = of_colony(home, id, colony)?;
    Ok(with_tasks(mission(&seen), tasks(home, &seen)))
}

fn with_tasks(mut mission: Value, tasks: Vec<Value>) -> Value {
    mission["tasks"] = tasks.into();
    mission
}

/// Missions, oldest first.
pub(crate) fn list(home: &Home, runs: &[RunSnapshot]) -> Vec<Value> {
    let of_runs = runs.iter().filter(|seen| seen.state.given.origin.kind == RunKind::Mission).map(mission);
    let ideas = home.registry.of("mission/");
    let mut all: Vec<Value> = of_runs.chain(ideas.iter().map(|(id, entry)| idea(id, entry))).collect();
    all.sort_by_key(|mission| mission["created_at_ms"].as_i64());
    all
}

/// A mission as it is shown.
pub(crate) fn mission(seen: &RunSnapshot) -> Value {
    let status = match &seen.state.end {
        None => "running",
        Some(RunConclusion::Completed { .. }) => "completed",
        Some(RunConclusion::Failed { .. }) => "failed",
        Some(RunConclusion::Cancelled { .. }) => "cancelled",
    };
    json!({
        "mission_id": seen.id,
        "colony_id": seen.colony(),
        "prompt": seen.state.given.prompt,
        "workflow_name": seen.plan.recipe.name.as_str(),
        "status": status,
        "worktree_path": burrow(&seen.id),
        "error": match &seen.state.end {
            Some(RunConclusion::Failed { error }) => Some(error),
            Some(RunConclusion::Cancelled { reason }) => Some(reason).filter(|reason| !reason.is_empty()),
            Some(RunConclusion::Completed { .. }) | None => None,
        },
        "created_at_ms": seen.card.created,
        "updated_at_ms": seen.card.updated,
    })
}

/// The tasks of a mission: its steps.
pub(crate) fn tasks(home: &Home, seen: &RunSnapshot) -> Vec<Value> {
    let steps = (0u32..).map(StepId).zip(&seen.plan.recipe.steps);
    steps.map(|(id, step)| task(home, seen, id, step)).collect()
}

fn task(home: &Home, seen: &RunSnapshot, id: StepId, step: &Step) -> Value {
    let state = seen.state.step(id);
    let name = |id: &StepId| task_id(&seen.id, seen.plan.recipe.step(*id).name.as_str(), AttemptPart::Whole);
    let holder = home.roster.holder(&seen.id, id);
    let status = match state.word() {
        "waiting" | "held" => "blocked",
        "ready" | "retrying" => "queued",
        "running" => match &holder {
            // This machine's own hands have begun as soon as they have it.
            None if seen.colony() == crate::settings::ids::LOCAL => "running",
            None => "queued",
            Some(holder) if holder.has_begun => "running",
            Some(_) => "assigned",
        },
        "completed" => "completed",
        "skipped" => "skipped",
        // It was never begun, and never will be.
        "cancelled" if state.attempts == 0 => "skipped",
        _ => "failed",
    };
    let updated = state.ended.or(state.began).map_or(seen.card.created, |at| at.0);
    json!({
        "task_id": name(&id),
        "mission_id": seen.id,
        "title": title(step),
        "step_id": step.name.as_str(),
        "role": step.role.to_string(),
        "status": status,
        "assigned_crab_id": match status {
            "completed" | "failed" => home.roster.did(&seen.id, id),
            _ => holder.map(|holder| holder.crab),
        },
        "depends_on": step.needs.iter().map(name).collect::<Vec<_>>(),
        "prompt": sluice_core::run::prompt(&seen.plan, &seen.state, id),
        "context": sluice_core::run::context(&seen.plan, &seen.state, id),
        "summary": state.latest.as_ref().map(|outcome| &outcome.summary),
        "result": state.latest.as_ref().and_then(|outcome| outcome.result.as_ref()),
        "attempt": state.attempts,
        "created_at_ms": seen.card.created,
        "updated_at_ms": updated,
    })
}

/// What people call a step.
pub(crate) fn title(step: &Step) -> String {
    step.title.clone().unwrap_or_else(|| step.name.to_string())
}

/// A mission must have this task.
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
