//! Grimoires and the workflows made of them, in the words of those who ask by HTTP.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::{AnswerQuestion, StartRun};
use sluice_core::machine::RefusalCode;
use sluice_core::recipe::{Recipe, Trigger};
use sluice_core::run::{RunConclusion, RunKind};
use sluice_dialect::catalogue::{Catalogue, CataloguePlaces};
use sluice_dialect::{Definition, Sources};

use super::runs::EndedRunsFilter;
use super::{KeyedId, Requester, Service};
use crate::read::runs::RunSnapshot;
use crate::read::view_run;
use crate::start::{EngineStart, start_as};

/// A workflow that is wanted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct StartGrimoire {
    /// By which grimoire.
    pub grimoire: String,
    /// What it is given, by name.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// In which project; where the engine was started unless given.
    #[serde(default)]
    pub project: Option<String>,
}

/// What a person decides about a workflow that is blocked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Intervention {
    /// One of the options.
    pub option: String,
    /// And what is said with it.
    #[serde(default)]
    pub message: Option<String>,
}

impl Service {
    /// The grimoires that can be started, by name.
    pub fn grimoires(&self, project: Option<&str>) -> Result<Vec<Value>, Problem> {
        let home = Some(self.home.places.home().to_owned());
        let catalogue = Catalogue::gather(&CataloguePlaces { repository: Some(self.root_of(project)?), home });
        let mut found: Vec<Value> = Vec::new();
        for entry in &catalogue.entries {
            let is_nearest = catalogue.find(entry.name()).is_some_and(|it| std::ptr::eq(it, entry));
            let loaded = entry.load(&mut Sources::new());
            if let (true, Some(Definition::Recipe(recipe))) = (is_nearest && loaded.is_usable(), &loaded.definition) {
                found.push(grimoire(recipe, &entry.origin.to_string()));
            }
        }
        found.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        Ok(found)
    }

    /// Where a project's checkout is.
    fn root_of(&self, project: Option<&str>) -> Result<PathBuf, Problem> {
        match project {
            Some(name) => Ok(PathBuf::from(self.home.projects.get(name)?.path)),
            None => Ok(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))),
        }
    }

    /// Starts a grimoire.
    pub fn start_grimoire(&self, who: &Requester, chosen: &KeyedId, wanted: StartGrimoire) -> Result<Value, Problem> {
        who.must_be_person("starting a workflow")?;
        if let Some(seen) = self.started_before(chosen)? {
            return Ok(started(&seen));
        }
        let cwd = self.root_of(wanted.project.as_deref())?.display().to_string();
        if wanted.grimoire.contains(['/', '\\']) {
            let message = format!("`{}` is a path; a grimoire is started by its name", wanted.grimoire);
            return Err(Problem::bad_request(message).hint("GET /grimoires lists them"));
        }
        let inputs = wanted.input.into_iter().collect();
        let run = StartRun { recipe: wanted.grimoire, cwd, inputs, ..StartRun::default() };
        let as_workflow =
            EngineStart { id: chosen.id.clone(), kind: Some(RunKind::Workflow), ..EngineStart::default() };
        start_as(&self.home, &run, as_workflow).map(|seen| started(&seen))
    }

    /// All workflows, newest first.
    pub fn workflows(&self) -> Result<Vec<Value>, Problem> {
        let mut runs = self.runs_called(RunKind::Workflow, Some(EndedRunsFilter(None)), |_| true)?;
        runs.sort_by(|one, other| (other.card.created, &other.id).cmp(&(one.card.created, &one.id)));
        Ok(runs.iter().map(workflow).collect())
    }

    /// One workflow.
    pub fn workflow(&self, id: &str) -> Result<Value, Problem> {
        self.workflow_run(id).map(|seen| workflow(&seen))
    }

    /// Ends a workflow with everything it has started.
    pub fn cancel_workflow(&self, who: &Requester, id: &str) -> Result<Value, Problem> {
        let seen = self.workflow_run(id)?;
        self.cancel_run(who, &seen.id, String::new()).map(|seen| workflow(&seen))
    }

    /// Decides about a workflow that is blocked.
    pub fn intervene(&self, who: &Requester, id: &str, wanted: Intervention) -> Result<Value, Problem> {
        let seen = self.workflow_run(id)?;
        if seen.state.question().is_none() {
            let code = if seen.state.end.is_some() { RefusalCode::Finished } else { RefusalCode::NotReady };
            let message = format!("workflow {} is {}, and waits for nobody", seen.id, word(seen.state.status()));
            let hint = "a workflow that is `blocked` waits for an intervention";
            return Err(Problem::new(ProblemStatus::Refused, code.as_str(), message).hint(hint));
        }
        let Intervention { option, message } = wanted;
        self.answer(who, &seen.id, AnswerQuestion { option, message }).map(|seen| workflow(&seen))
    }

    fn workflow_run(&self, id: &str) -> Result<RunSnapshot, Problem> {
        let none = || Problem::not_found(format!("there is no workflow `{id}`")).hint("GET /workflows lists all");
        match self.run(id) {
            Ok(seen) if is_workflow(&seen) => Ok(seen),
            Ok(_) => Err(none()),
            Err(problem) if problem.status == ProblemStatus::NotFound => Err(none()),
            Err(problem) => Err(problem),
        }
    }
}

fn is_workflow(seen: &RunSnapshot) -> bool {
    seen.state.given.origin.kind == RunKind::Workflow
}

fn grimoire(recipe: &Recipe, origin: &str) -> Value {
    let inputs = recipe.inputs.iter().flatten().map(|input| {
        json!({
            "name": input.name.as_str(), "type": input.kind.word(), "required": input.required,
            "default": input.default.as_ref().map(view_run::plain),
        })
    });
    let steps = recipe.steps.iter().map(|step| json!({ "name": step.name.as_str(), "type": step.work.kind() }));
    json!({
        "name": recipe.name.as_str(),
        "description": recipe.description,
        "origin": origin,
        "trigger": match &recipe.trigger { Trigger::Manual => "manual", Trigger::Event { .. } => "event" },
        "input": inputs.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
    })
}

/// The word for a status of a workflow or of a step: what needs a person is blocked, and what needs another step pends.
fn word(status: &str) -> &str {
    match status {
        "held" => "blocked",
        "waiting" => "pending",
        other => other,
    }
}

fn workflow(seen: &RunSnapshot) -> Value {
    let mut run = view_run::run(seen);
    for step in run["steps"].as_array_mut().into_iter().flatten() {
        step["status"] = word(step["status"].as_str().unwrap_or_default()).into();
    }
    let failed = run["steps"].as_array().into_iter().flatten().filter(|step| !step["error"].is_null());
    let mut errors: Vec<Value> = failed.map(|step| json!({ "step": step["id"], "error": step["error"] })).collect();
    if let (Some(RunConclusion::Failed { error }), true) = (&seen.state.end, errors.is_empty()) {
        errors.push(json!({ "step": null, "error": error }));
    }
    let actions: Vec<String> = match (&seen.state.end, seen.state.question()) {
        (Some(_), _) => Vec::new(),
        (None, Some((_, question))) => {
            question.options().iter().map(ToString::to_string).chain(["cancel".into()]).collect()
        }
        (None, None) => vec!["cancel".into()],
    };
    json!({
        "workflow_id": seen.id,
        "grimoire": seen.plan.recipe.name.as_str(),
        "status": word(seen.state.status()),
        "current_step": run["current_step"],
        "variables": run["variables"],
        "steps": run["steps"],
        "errors": errors,
        "available_actions": actions,
        "question": run["question"],
        "created_at": run["created_at"],
        "updated_at": run["updated_at"],
    })
}

/// A workflow that was started, as whoever started it is told.
fn started(seen: &RunSnapshot) -> Value {
    json!({ "workflow_id": seen.id, "grimoire": seen.plan.recipe.name.as_str(), "status": word(seen.state.status()) })
}
