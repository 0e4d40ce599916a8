//! Grimoires and the workflows made of them, in the words of those who ask by HTTP.

use std::path::PathBuf;

use sluice_api::grimoire::{
    Grimoire, GrimoireInput, GrimoireStep, GrimoireTrigger, Intervention, StartGrimoire, Workflow, WorkflowError,
    WorkflowStarted, WorkflowStatus,
};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::{AnswerQuestion, StartRun};
use sluice_api::shown::{RunStep, RunStepStatus};
use sluice_core::machine::RefusalCode;
use sluice_core::recipe::{Recipe, Trigger};
use sluice_core::run::{RunConclusion, RunKind, RunPhase};
use sluice_dialect::catalogue::{Catalogue, CataloguePlaces};
use sluice_dialect::{Definition, Sources};
use sluice_worker::value::plain;

use crate::ask::runs::EndedRunsFilter;
use crate::ask::{KeyedId, Requester, Service};
use crate::home::engine::refusal;
use crate::read::runs::RunSnapshot;
use crate::read::view_run;
use crate::settings::clock::written;
use crate::start::{EngineStart, start_as};

impl Service {
    pub fn grimoires(&self, project: Option<&str>) -> Result<Vec<Grimoire>, Problem> {
        let home = Some(self.home.context.places.home().to_owned());
        let catalogue = Catalogue::gather(&CataloguePlaces { repository: Some(self.root_of(project)?), home });
        let mut found: Vec<Grimoire> = Vec::new();
        for entry in &catalogue.entries {
            let is_nearest = catalogue.find(entry.name()).is_some_and(|it| std::ptr::eq(it, entry));
            let loaded = entry.load(&mut Sources::new());
            if let (true, Some(Definition::Recipe(recipe))) = (is_nearest && loaded.is_usable(), &loaded.definition) {
                found.push(grimoire(recipe, entry.origin.to_string()));
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn root_of(&self, project: Option<&str>) -> Result<PathBuf, Problem> {
        match project {
            Some(name) => Ok(PathBuf::from(self.home.projects.get(name)?.path)),
            None => Ok(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))),
        }
    }

    pub fn start_grimoire(
        &self,
        who: &Requester,
        chosen: &KeyedId,
        wanted: StartGrimoire,
    ) -> Result<WorkflowStarted, Problem> {
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
            EngineStart { id: Some(chosen.id()?), kind: Some(RunKind::Workflow), ..EngineStart::default() };
        start_as(&self.home, &run, as_workflow).map(|seen| started(&seen))
    }

    /// All workflows, newest first.
    pub fn workflows(&self) -> Result<Vec<Workflow>, Problem> {
        let runs = self.runs_called(RunKind::Workflow, Some(EndedRunsFilter(None)), |_| true)?;
        Ok(runs.iter().map(workflow).collect())
    }

    pub fn workflow(&self, id: &str) -> Result<Workflow, Problem> {
        self.workflow_run(id).map(|seen| workflow(&seen))
    }

    /// Ends a workflow with everything it has started.
    pub fn cancel_workflow(&self, who: &Requester, id: &str) -> Result<Workflow, Problem> {
        let seen = self.workflow_run(id)?;
        self.cancel_run(who, seen.id.as_str(), String::new()).map(|seen| workflow(&seen))
    }

    /// Decides about a workflow that is blocked.
    pub fn intervene(&self, who: &Requester, id: &str, wanted: Intervention) -> Result<Workflow, Problem> {
        let seen = self.workflow_run(id)?;
        if seen.state.question().is_none() {
            let code = if seen.state.end.is_some() { RefusalCode::Finished } else { RefusalCode::NotReady };
            let message = format!("workflow {} is {}, and waits for no answer", seen.id, status(seen.state.phase()));
            let hint = "a workflow that is `blocked` waits for an intervention";
            return Err(refusal(code, message).hint(hint));
        }
        let Intervention { option, message } = wanted;
        self.answer(who, seen.id.as_str(), AnswerQuestion { option, message }).map(|seen| workflow(&seen))
    }

    fn workflow_run(&self, id: &str) -> Result<RunSnapshot, Problem> {
        match self.run(id) {
            Ok(seen) if seen.state.given.origin.kind == RunKind::Workflow => Ok(seen),
            Err(problem) if problem.status != ProblemStatus::NotFound => Err(problem),
            Ok(_) | Err(_) => {
                Err(Problem::not_found(format!("there is no workflow `{id}`")).hint("GET /workflows lists all"))
            }
        }
    }
}

fn grimoire(recipe: &Recipe, origin: String) -> Grimoire {
    let inputs = recipe.inputs.iter().flatten().map(|input| GrimoireInput {
        name: input.name.to_string(),
        kind: input.kind.word().to_owned(),
        required: input.required,
        default: input.default.as_ref().map(plain).unwrap_or_default(),
    });
    let steps = recipe.steps.iter();
    let steps = steps.map(|step| GrimoireStep { name: step.name.to_string(), kind: step.work.kind().to_owned() });
    Grimoire {
        name: recipe.name.to_string(),
        description: recipe.description.clone(),
        origin,
        trigger: match &recipe.trigger {
            Trigger::Manual => GrimoireTrigger::Manual,
            Trigger::Event { .. } => GrimoireTrigger::Event,
        },
        input: inputs.collect(),
        steps: steps.collect(),
    }
}

/// Where a workflow is: what needs a person is blocked.
fn status(phase: RunPhase) -> WorkflowStatus {
    match phase {
        RunPhase::Running => WorkflowStatus::Running,
        RunPhase::Held => WorkflowStatus::Blocked,
        RunPhase::Completed => WorkflowStatus::Completed,
        RunPhase::Failed => WorkflowStatus::Failed,
        RunPhase::Cancelled => WorkflowStatus::Cancelled,
    }
}

/// The steps of a workflow: what needs a person is blocked, and what needs another step pends.
fn steps(seen: &RunSnapshot) -> Vec<RunStep> {
    let mut steps = view_run::steps(seen);
    for step in &mut steps {
        step.status = match step.status {
            RunStepStatus::Held => RunStepStatus::Blocked,
            RunStepStatus::Waiting => RunStepStatus::Pending,
            other => other,
        };
    }
    steps
}

fn workflow(seen: &RunSnapshot) -> Workflow {
    let steps = steps(seen);
    let failed =
        steps.iter().filter_map(|step| Some(WorkflowError { step: Some(step.id.clone()), error: step.error.clone()? }));
    let mut errors: Vec<WorkflowError> = failed.collect();
    if let (Some(RunConclusion::Failed { error }), true) = (&seen.state.end, errors.is_empty()) {
        errors.push(WorkflowError { step: None, error: error.clone() });
    }
    let question = seen.state.question();
    let mut available_actions = Vec::new();
    if seen.state.end.is_none() {
        available_actions.extend(question.into_iter().flat_map(|(_, question)| view_run::options(question)));
        available_actions.push("cancel".to_owned());
    }
    Workflow {
        workflow_id: seen.id.to_string(),
        grimoire: seen.plan.recipe.name.to_string(),
        status: status(seen.state.phase()),
        current_step: view_run::current_step(seen),
        variables: view_run::variables(seen),
        steps,
        errors,
        available_actions,
        question: question.map(|(step, it)| view_run::question(seen, step, it)),
        created_at: written(seen.card.created),
        updated_at: written(seen.card.updated),
    }
}

fn started(seen: &RunSnapshot) -> WorkflowStarted {
    WorkflowStarted {
        workflow_id: seen.id.to_string(),
        grimoire: seen.plan.recipe.name.to_string(),
        status: status(seen.state.phase()),
    }
}
