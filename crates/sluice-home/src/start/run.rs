//! Starting a run: the recipe, its inputs, its worktree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::run::StartRun;
use sluice_core::id::{RunId, TaskId};
use sluice_core::lifecycle::StateRun;
use sluice_core::recipe::{Data, Recipe, RecipeDialect, RecipeInputKind, StepWorkspace};
use sluice_core::run::{RunKind, RunMode, RunOrigin, RunParameters, RunPlan};
use sluice_core::task::state::WorkSnapshot;
use sluice_dialect::pin::DefinitionPin;
use sluice_dialect::{Definition, DefinitionFile, LoadedDefinition};
use sluice_engine::host::EngineClock;
use sluice_engine::loader::pin;
use sluice_engine::run_actor::RunActor;
use sluice_os::git::is_bare;
use sluice_worker::names::{remote_folder, remote_scratch};
use sluice_worker::value::data;

use crate::definitions::committed::{self, DefinitionSite};
use crate::definitions::{self, FoundDefinition};
use crate::home::worktrees::{PlannedWorktree, plan as plan_worktree};
use crate::home::{Home, engine, project_workers};
use crate::perform::lists;
use crate::read::runs::{RunSnapshot, stream};
use crate::read::view_run::unless_empty;
use crate::settings::ids::LOCAL;
use crate::settings::ids::{fresh, run_from};
use crate::spans;
use crate::start::{chain, repeats};

/// As what a run is started that no person asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineStart {
    /// Its id: always the same, so that it is started once. A new one unless given.
    pub(crate) id: Option<RunId>,
    pub(crate) cause: Vec<String>,
    /// The group whose workers do it; the local executor unless given.
    pub(crate) group: Option<String>,
    /// What it is called; as its file says unless given.
    pub(crate) kind: Option<RunKind>,
    /// The task whose state starts it.
    pub(crate) task: Option<TaskId>,
    /// The worktree that it is lent, and does not own; one of its own unless given.
    pub(crate) workspace: Option<String>,
    pub(crate) reading: DefinitionSite,
    /// The commit that a worktree of its own starts from; as for any run unless given.
    pub(crate) base: Option<String>,
    /// The work of that task now.
    pub(crate) began: Option<WorkSnapshot>,
}

pub(crate) fn start_as(home: &Arc<Home>, wanted: &StartRun, started: EngineStart) -> Result<RunSnapshot, Problem> {
    let cwd = Path::new(&wanted.cwd);
    let root = around(cwd).unwrap_or(cwd);
    let found = find(home, &wanted.recipe, root, cwd, started.reading)?;
    let recipe = &found.plan.recipe;
    let inputs = inputs(recipe, &wanted.inputs)?;
    let id = started.id.map_or_else(fresh, Ok)?;
    let kind = match (started.kind, wanted.by_hand) {
        (Some(kind), _) => kind,
        // Whoever does the steps by hand follows a process, whatever the file was written as.
        (None, true) => RunKind::Process,
        (None, false) => kind(recipe, &found.path),
    };
    let by_workers = match (wanted.workers, wanted.by_hand) {
        (true, true) => return Err(Problem::bad_request("`workers` and `by_hand` cannot both do the steps")),
        (true, false) => Some(project_workers::chosen(home, root, recipe)?),
        (false, _) => None,
    };
    let (group, pushed) = by_workers.unzip();
    let group = group.or(started.group);
    let elsewhere = group.as_deref().filter(|group| *group != LOCAL);
    if elsewhere.is_some() {
        project_workers::must_be_for_workers(recipe)?;
    }
    let mode = if wanted.by_hand { RunMode::ByHand } else { RunMode::Engine };
    let harness = wanted.harness.clone().unwrap_or_default();
    match elsewhere {
        Some(_) => must_suit_workers(recipe)?,
        None => must_know_harnesses(home, recipe, wanted)?,
    }
    let without = |folder: String| PlannedWorktree { folder, base: String::new() };
    let PlannedWorktree { folder: workspace, base } = match (mode, elsewhere, started.workspace) {
        (RunMode::ByHand, ..) => without(String::new()),
        (RunMode::Engine, _, None) if !recipe.has_worktree() => without(String::new()),
        (RunMode::Engine, Some(_), _) => {
            PlannedWorktree { folder: remote_folder(&id), base: pushed.unwrap_or_default() }
        }
        (RunMode::Engine, None, Some(lent)) => without(lent),
        (RunMode::Engine, None, None) => plan_worktree(home, root, &id, started.base.or(found.commit))?,
    };
    let has_scratch = mode == RunMode::Engine && recipe.working(|it| it == StepWorkspace::Scratch).is_some();
    let scratch = if has_scratch { scratch_folder(home, &id, elsewhere.is_some()) } else { String::new() };
    let root = root.display().to_string();
    let given = RunParameters {
        id: id.clone(),
        mode,
        inputs,
        prompt: home.context.clean().text(wanted.prompt.as_deref().unwrap_or_default()),
        workspace,
        scratch,
        work_order: wanted.work_order.clone().unwrap_or_default(),
        origin: RunOrigin {
            kind,
            root,
            base,
            harness,
            cause: started.cause,
            task: started.task,
            definition: found.told,
            began: started.began,
        },
    };
    begin(home, &found.plan, found.pinned, given, elsewhere.unwrap_or(LOCAL))
}

/// Where the scratch folder of a run will be.
fn scratch_folder(home: &Home, id: &RunId, is_elsewhere: bool) -> String {
    match is_elsewhere {
        true => remote_scratch(id),
        false => home.context.places.scratch(id).display().to_string(),
    }
}

fn must_suit_workers(recipe: &Recipe) -> Result<(), Problem> {
    let Some(step) = recipe.working(|it| it == StepWorkspace::Here) else { return Ok(()) };
    let message =
        format!("step `{}` works in the checkout itself (`workspace: here`), which workers do not have", step.name);
    let hint = "start the recipe on the engine's machine, without workers";
    Err(Problem::new(ProblemStatus::Refused, project_workers::NOT_FOR_WORKERS, message).hint(hint))
}

fn must_know_harnesses(home: &Home, recipe: &Recipe, wanted: &StartRun) -> Result<(), Problem> {
    let harnesses = home.context.harnesses();
    if let Some(harness) = wanted.harness.as_ref().filter(|harness| !harness.is_empty()) {
        harnesses.get(harness).map_err(|error| Problem::bad_request(error.to_string()))?;
    }
    for named in recipe.steps.iter().filter_map(|step| step.harness.as_ref()) {
        harnesses.get(named).map_err(|error| unusable(&wanted.recipe, &error.to_string()))?;
    }
    Ok(())
}

/// Whether a recipe can be started for a task in this repository, and takes what it is given. What each input is worth is
/// known only then.
pub(crate) fn startable(home: &Home, root: &Path, run: &StateRun) -> Result<(), Problem> {
    let found = find(home, &run.recipe, root, root, DefinitionSite::Commit)?;
    let recipe = &found.plan.recipe;
    if recipe.repeat.is_some() {
        return Err(unusable(&run.recipe, "it repeats by itself, and a task waits for its end"));
    }
    let Some(declared) = &recipe.inputs else { return Ok(()) };
    let is_given = |name: &str| run.inputs.iter().any(|(given, _)| given == name);
    let missing =
        declared.iter().find(|input| input.required && input.default.is_none() && !is_given(input.name.as_str()));
    if let Some(missing) = missing {
        return Err(unusable(&run.recipe, &format!("it needs the input `{}`", missing.name)));
    }
    match run.inputs.iter().find(|(name, _)| !declared.iter().any(|input| input.name.as_str() == name)) {
        Some((name, _)) => Err(unusable(&run.recipe, &format!("it has no input `{name}`"))),
        None => Ok(()),
    }
}

fn begin(
    home: &Arc<Home>,
    plan: &Arc<RunPlan>,
    pinned: Vec<u8>,
    given: RunParameters,
    group: &str,
) -> Result<RunSnapshot, Problem> {
    let id = given.id.clone();
    let mut span = spans::run_starts(&id);
    let digest = pin(&pinned);
    let created = RunActor::create(plan.clone(), digest.to_string(), group.into(), given, home.clock.now());
    let created = engine::create(home, stream(&id), id.as_str(), created, vec![(digest, pinned)]);
    created.inspect_err(|problem| span.fail(&problem.code))?;
    home.mirrors.write(home, &id);
    home.tasks.load_run(&id)?.ok_or_else(|| Problem::fault(format!("run {id} is gone as soon as it began")))
}

struct FoundRecipe {
    plan: Arc<RunPlan>,
    pinned: Vec<u8>,
    path: PathBuf,
    told: String,
    commit: Option<String>,
}

/// The recipe of this name or in this file. It must be usable now, prompt files included.
fn find(home: &Home, wanted: &str, root: &Path, cwd: &Path, reading: DefinitionSite) -> Result<FoundRecipe, Problem> {
    let file = cwd.join(wanted);
    let FoundDefinition { path, bytes, loaded, told, commit } =
        match reading == DefinitionSite::Checkout && file.is_file() {
            true => FoundDefinition::in_file(file),
            false => definitions::find(home, "recipe or file", wanted, root, reading)?,
        };
    let bytes = bytes.map_err(|error| unusable(wanted, &error.to_string()))?;
    let shown = path.display().to_string();
    usable(wanted, &loaded).map_err(|problem| problem.hint(format!("`sluice check {shown}` shows every problem")))?;
    let pinned =
        DefinitionPin::of(&DefinitionFile { path: &shown, bytes: &bytes }, &loaded).map(|pinned| pinned.to_bytes());
    match (loaded.definition, pinned) {
        (Some(Definition::Recipe(recipe)), Some(pinned)) => {
            Ok(FoundRecipe { plan: Arc::new(RunPlan::new(recipe)), pinned, path, told, commit })
        }
        (Some(Definition::Lifecycle(_)), _) => {
            Err(unusable(wanted, "it is a lifecycle, for tasks; a run needs a recipe")
                .hint(format!("`sluice task create --workflow {wanted}` makes a task of it")))
        }
        (Some(Definition::Recipe(_)) | None, _) => Err(unusable(wanted, "no definition can be made of it")),
    }
}

fn unusable(wanted: &str, why: &str) -> Problem {
    Problem::new(ProblemStatus::Refused, "unusable_recipe", format!("`{wanted}` cannot be started: {why}"))
}

/// Whether a file may be started: no errors, and every prompt file is there.
fn usable(wanted: &str, loaded: &LoadedDefinition) -> Result<(), Problem> {
    use sluice_core::problem::{Code, Severity};
    let missing = loaded.problems.iter().find(|problem| problem.code == Code::PromptFileMissing);
    if loaded.is_usable() && missing.is_none() {
        return Ok(());
    }
    let errors = loaded.problems.iter().filter(|problem| problem.severity() == Severity::Error);
    let first = errors.chain(missing).next().map_or("it has errors", |problem| &problem.message);
    Err(unusable(wanted, first))
}

/// The checkout that a folder is in, else the bare repository.
pub(super) fn around(folder: &Path) -> Option<&Path> {
    let checkout = folder.ancestors().find(|folder| folder.join(".git").exists());
    checkout.or_else(|| folder.ancestors().find(|folder| is_bare(folder)))
}

/// What a run is called: by its format, and a grimoire by where it lies.
fn kind(recipe: &Recipe, path: &Path) -> RunKind {
    match recipe.dialect {
        RecipeDialect::Manifest => RunKind::Mission,
        RecipeDialect::Template => RunKind::Process,
        RecipeDialect::Grimoire => {
            let in_folder = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "grimoires");
            let is_built_in = path.parent() == Some(Path::new(""));
            if in_folder || is_built_in { RunKind::Workflow } else { RunKind::Run }
        }
    }
}

/// The inputs of a run, each of the type that the recipe asks for.
fn inputs(recipe: &Recipe, given: &[(String, Value)]) -> Result<Vec<(String, Data)>, Problem> {
    let Some(declared) = &recipe.inputs else {
        let listed = |name: &str, value| lists::input(recipe, name, data(value));
        return Ok(given.iter().map(|(name, value)| (name.clone(), listed(name, value))).collect());
    };
    let known: Vec<&str> = declared.iter().map(|input| input.name.as_str()).collect();
    if let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        let message = format!("`{}` has no input `{name}`", recipe.name);
        return Err(Problem::bad_request(message).hint(format!("it has: {}", known.join(", "))));
    }
    let mut found = Vec::new();
    for input in declared {
        let name = input.name.as_str();
        let value = given.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value);
        match (value, &input.default) {
            (Some(value), _) if input.kind == RecipeInputKind::Any => {
                found.push((name.to_owned(), lists::input(recipe, name, data(value))));
            }
            (Some(value), _) => found.push((name.to_owned(), typed(name, input.kind, value)?)),
            (None, Some(default)) => found.push((name.to_owned(), default.clone())),
            (None, None) if input.required => {
                let message = format!("`{}` needs the input `{name}` ({})", recipe.name, input.kind.word());
                return Err(Problem::bad_request(message).hint(format!("`inputs.{name}=…` gives it")));
            }
            (None, None) => {}
        }
    }
    Ok(found)
}

/// A value of this kind. A text from the command line is read as what is asked for.
fn typed(name: &str, kind: RecipeInputKind, value: &Value) -> Result<Data, Problem> {
    let read = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let of =
        |fits: fn(&Value) -> bool| [Some(value), read.as_ref()].into_iter().flatten().find(|it| fits(it)).map(data);
    let found = match kind {
        RecipeInputKind::Any => Some(data(value)),
        RecipeInputKind::Text => value.as_str().map(|text| Data::Text(text.to_owned())),
        RecipeInputKind::Number => of(Value::is_number),
        RecipeInputKind::Integer => of(|it| it.is_i64() || it.is_u64()),
        RecipeInputKind::Boolean => of(Value::is_boolean),
        RecipeInputKind::Array => of(Value::is_array),
        RecipeInputKind::Object => of(Value::is_object),
    };
    found.ok_or_else(|| {
        let shown: String = value.to_string().chars().take(60).collect();
        Problem::bad_request(format!("the input `{name}` must be a value of type {}, and {shown} is not", kind.word()))
    })
}

/// Starts another recipe at the end of a run. Asked for again after a crash, it finds the one that was started.
pub(crate) fn start_again(home: &Arc<Home>, seen: &RunSnapshot, effect: &str, recipe: &str) -> Result<(), Problem> {
    let id = run_from(&["start", seen.id.as_str(), effect]);
    if home.tasks.load_run(&id)?.is_some() {
        return Ok(());
    }
    let given = &seen.state.given;
    let wanted = StartRun {
        recipe: recipe.to_owned(),
        cwd: given.origin.root.clone(),
        prompt: Some(given.prompt.clone()),
        work_order: Some(given.work_order.clone()),
        harness: unless_empty(&given.origin.harness),
        ..StartRun::default()
    };
    let started =
        EngineStart { id: Some(id), cause: chain(seen), reading: DefinitionSite::Commit, ..EngineStart::default() };
    start_as(home, &wanted, started).map(drop)
}

/// Starts the same recipe once more, as it was pinned and with what it was given, if that is still wanted. Asked for again
/// after a crash, it finds the one that was started.
pub(crate) fn repeat(home: &Arc<Home>, seen: &RunSnapshot) -> Result<(), Problem> {
    if repeats::wish(home, &seen.id)?.is_none() {
        return Ok(());
    }
    let id = repeats::next(&seen.id)?;
    if home.tasks.load_run(&id)?.is_none() {
        let pinned = home.tasks.pinned(&seen.id)?;
        let mut given = seen.state.given.clone();
        if given.workspace.starts_with('/') {
            let root = Path::new(&given.origin.root);
            let planned = plan_worktree(home, root, &id, committed::tip(home, root)?)?;
            (given.workspace, given.origin.base) = (planned.folder, planned.base);
        } else if !given.workspace.is_empty() {
            // Workers begin where the remote's default branch stands by then.
            given.workspace = remote_folder(&id);
            given.origin.base.clear();
        }
        if !given.scratch.is_empty() {
            given.scratch = scratch_folder(home, &id, !given.scratch.starts_with('/'));
        }
        given.id = id;
        begin(home, &seen.plan, pinned, given, seen.group())?;
    }
    repeats::tidy(home, seen)
}
