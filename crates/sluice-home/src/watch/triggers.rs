//! Recipes that an event of the engine's own log starts: those of the home on any event, those of a project on its own.
//! Those of a project are the ones that the commit of its default branch has.
//!
//! A run that is started so has an id made of the event and the recipe, so an event that is read twice starts it once. A
//! recipe is never started by what followed from its own runs. What a script of a run does looks like a person's doing, so
//! a recipe can still go round in a circle: there is a limit to how often events start it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sluice_api::event::EventShown;
use sluice_api::problem::Problem;
use sluice_api::run::StartRun;
use sluice_core::event_name;
use sluice_core::expr::{self, Expr, Number};
use sluice_core::recipe::{RecipeInput, RecipeInputKind, Trigger};
use sluice_core::run::RunKind;
use sluice_engine::host::EngineClock;
use sluice_store::LoggedEvent;

use crate::definitions::committed::DefinitionSite;
use crate::definitions::shelves::{RecipeShelves, ShelvedRecipe};
use crate::home::Home;
use crate::read::view::{self, EventSubject};
use crate::read::view_run::unless_empty;
use crate::read::{runs, tasks};
use crate::settings::ids::run_from;
use crate::start::{EngineStart, chain, chain_to, start_as};

/// So often events start one recipe within [`WINDOW`]; further ones are noted and start nothing.
const MOST_STARTS: usize = 100;
/// The time in which starts are counted, in milliseconds.
const WINDOW: i64 = 600_000;

#[derive(Default)]
pub(crate) struct Triggers {
    pub(super) shelves: RecipeShelves,
    starts: TriggerStarts,
}

#[derive(Default)]
struct TriggerStarts(BTreeMap<PathBuf, VecDeque<i64>>);

impl TriggerStarts {
    fn allow(&mut self, path: &Path, now: i64) -> bool {
        let Some(lately) = self.0.get_mut(path) else { return true };
        while lately.front().is_some_and(|at| *at <= now - WINDOW) {
            lately.pop_front();
        }
        lately.len() < MOST_STARTS
    }

    fn note(&mut self, path: &Path, now: i64) {
        self.0.entry(path.to_owned()).or_default().push_back(now);
    }
}

struct TriggerSource {
    /// The folder that a run which it starts works for.
    root: PathBuf,
    subject: String,
    /// The recipes that led to it.
    chain: Vec<String>,
    harness: String,
}

impl Triggers {
    /// Starts what waits for this event. Whether something was started; the error says that it must be tried again.
    pub(crate) fn consider(
        &mut self,
        home: &Arc<Home>,
        logged: &LoggedEvent,
        kind: Option<RunKind>,
    ) -> Result<bool, Problem> {
        let stored = logged.event.kind.as_str();
        let name = kind.map_or_else(|| stored.to_owned(), |kind| event_name::told(stored, kind));
        if !self.shelves.all().any(|shelved| awaited(shelved).is_some_and(|(event, _)| event == name)) {
            return Ok(false);
        }
        let Some((event, source)) = told(home, logged)? else { return Ok(false) };
        let document = view::as_json(&event);
        let waiting = || self.shelves.all().filter(|shelved| awaited(shelved).is_some());
        let here =
            |shelved: &&ShelvedRecipe| shelved.project.as_ref().is_some_and(|root| source.root.starts_with(root));
        let mut started = false;
        for shelved in waiting() {
            let ShelvedRecipe { recipe, path, project, .. } = shelved;
            let Some((_, filter)) = awaited(shelved).filter(|(name, _)| *name == event.kind) else { continue };
            // A definition of the project hides one of the home that has its name.
            let hidden = || waiting().filter(here).any(|other| other.recipe.name == recipe.name);
            let is_near = if project.is_some() { here(&shelved) } else { !hidden() };
            let is_cause = source.chain.iter().any(|cause| cause == recipe.name.as_str());
            if !is_near || is_cause || !holds(filter, &document) {
                continue;
            }
            let now = home.clock.now().0;
            if !self.starts.allow(path, now) {
                let often = format!("events started it {MOST_STARTS} times in {} minutes", WINDOW / 60_000);
                tracing::warn!("`{}` was not started on {}: {often}", recipe.name, event.id);
                continue;
            }
            if start(home, shelved, &event.id, &document, &source)? {
                self.starts.note(path, now);
                started = true;
            }
        }
        Ok(started)
    }
}

/// Starts a recipe that waits for this event. Whether it was started by that.
fn start(
    home: &Arc<Home>,
    shelved: &ShelvedRecipe,
    event_id: &str,
    event: &Value,
    source: &TriggerSource,
) -> Result<bool, Problem> {
    let ShelvedRecipe { recipe, path, found, .. } = shelved;
    let id = run_from(&["trigger", event_id, recipe.name.as_str(), &path.display().to_string()]);
    if home.tasks.load_run(&id)?.is_some() {
        return Ok(false);
    }
    let wanted = StartRun {
        recipe: found.clone(),
        cwd: source.root.display().to_string(),
        inputs: inputs(recipe.inputs.as_deref(), event),
        prompt: Some(format!("{event:#}")),
        work_order: unless_empty(&source.subject),
        harness: unless_empty(&source.harness),
        ..StartRun::default()
    };
    let (cause, reading) = (source.chain.clone(), DefinitionSite::Commit);
    let started = EngineStart { id: Some(id), cause, reading, ..EngineStart::default() };
    match start_as(home, &wanted, started) {
        Ok(_) => Ok(true),
        Err(problem) if problem.is_passing() => Err(problem),
        Err(problem) => {
            tracing::warn!("`{}` was not started on {event_id}: {}", recipe.name, problem.message);
            Ok(false)
        }
    }
}

/// The event that a recipe waits for, and the condition.
fn awaited(shelved: &ShelvedRecipe) -> Option<(&str, Option<&Expr>)> {
    match &shelved.recipe.trigger {
        Trigger::Event { event, filter } => Some((event, filter.as_ref())),
        Trigger::Manual => None,
    }
}

/// An event as it is shown, and where it comes from; `None` if what it is about is gone.
fn told(home: &Home, logged: &LoggedEvent) -> Result<Option<(EventShown, TriggerSource)>, Problem> {
    if let Some(id) = tasks::id_of(&logged.stream) {
        let Some(seen) = home.tasks.load(&id)? else { return Ok(None) };
        let project = home.projects.get(&seen.state.about.project);
        let root = project.map_or_else(|_| home.context.places.home().to_owned(), |project| project.path.into());
        let source =
            TriggerSource { root, subject: id.to_string(), chain: chain_to(home, &id)?, harness: String::new() };
        return Ok(Some((view::event(logged, EventSubject::Task(&seen)), source)));
    }
    let Some(id) = runs::id_of(&logged.stream) else { return Ok(None) };
    let Some(seen) = home.tasks.load_run(&id)? else { return Ok(None) };
    let origin = &seen.state.given.origin;
    let root = if origin.root.is_empty() { home.context.places.home().to_owned() } else { PathBuf::from(&origin.root) };
    let source = TriggerSource { root, subject: id.to_string(), chain: chain(&seen), harness: origin.harness.clone() };
    Ok(Some((view::event(logged, EventSubject::Run(&seen.setting(), Some(&seen))), source)))
}

/// Whether the condition of a trigger holds. It reads the event's data, and else the event itself.
fn holds(filter: Option<&Expr>, event: &Value) -> bool {
    let read = |path: &expr::ValuePath| {
        let at = |value: &Value| {
            let head = value.get(path.head())?.clone();
            path.tail().iter().try_fold(head, |value, key| match &value {
                Value::Array(items) => items.get(key.parse::<usize>().ok()?).cloned(),
                _ => value.get(key).cloned(),
            })
        };
        match at(&event["data"]).filter(|value| !value.is_null()).or_else(|| at(event))? {
            Value::Bool(it) => Some(expr::ExprValue::Bool(it)),
            Value::String(text) => Some(expr::ExprValue::Text(text)),
            Value::Number(number) => Number::read(&number.to_string()).map(expr::ExprValue::Number),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    };
    filter.is_none_or(|filter| filter.holds(&read))
}

/// What a run is given: the event's data by their names, and the whole event as `event`; of declared inputs only those.
fn inputs(declared: Option<&[RecipeInput]>, event: &Value) -> Vec<(String, Value)> {
    let mut facts: Map<String, Value> = event["data"].as_object().cloned().unwrap_or_default();
    facts.entry("event").or_insert_with(|| event.clone());
    facts.retain(|_, value| !value.is_null());
    let Some(declared) = declared else { return facts.into_iter().collect() };
    let fits = |input: &RecipeInput| {
        let value = facts.get(input.name.as_str())?.clone();
        let text = input.kind == RecipeInputKind::Text && !value.is_string();
        Some((input.name.to_string(), if text { Value::String(value.to_string()) } else { value }))
    };
    declared.iter().filter_map(fits).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_reads_the_data_first() {
        let event =
            json!({ "type": "status.changed", "actor": "person", "data": { "to": "done", "round": 2, "type": "x" } });
        let told = |text: &str| holds(Some(&expr::parse(text).expect("a condition")), &event);
        assert!(told("to == 'done' && round < 3 && type == 'x' && actor == 'person'"));
        assert!(!told("to == 'reviewing'") && !told("missing == 'x'"));
        assert!(holds(None, &event));
    }

    #[test]
    fn inputs_are_the_data_by_name() {
        let event = json!({ "id": "e", "data": { "to": "done", "round": 2, "gone": null } });
        let mut names: Vec<String> = inputs(None, &event).into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, ["event", "round", "to"]);
    }
}
