//! How a task begins: its project, its lifecycle, its branch, a worktree for it.

use std::path::Path;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::project::Project;
use sluice_api::task::CreateTask;
use sluice_core::id::TaskId;
use sluice_core::lifecycle::Lifecycle;
use sluice_core::name::StateName;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::TaskSubject;
use sluice_core::task::{Evidence, NewTask, TaskAsker};
use sluice_engine::loader::pin;
use sluice_engine::reactor::EventRange;
use sluice_engine::task_actor::TaskActor;
use sluice_os::taskfile;

use super::run::{around, startable};
use crate::definitions::committed::DefinitionSite;
use crate::definitions::{self, ChosenLifecycle};
use crate::home::branches::BranchHold;
use crate::home::{Home, engine};
use crate::perform::DEFAULT_HARNESS;
use crate::read::files::home_file;
use crate::read::tasks::stream;
use crate::settings::bounds::LONGEST_SUMMARY;
use crate::settings::projects::{git, shown};
use crate::spans;

/// The lifecycle of a project that names none.
const DEFAULT_WORKFLOW: &str = "default";
/// What the branch of a task is called that was given none; the built-in prompts know it.
const OWN_BRANCH: &str = "orange-tasks/";

/// Creates a task with this id. Where its lifecycle is read depends on who asks for it. With the number of a session that
/// lives, that becomes the task's own in place of a new one.
pub(crate) fn create_task(
    home: &Home,
    id: &TaskId,
    wanted: &CreateTask,
    reading: DefinitionSite,
    living: Option<u32>,
) -> Result<EventRange, Problem> {
    let project = project(home, wanted.project.as_deref(), wanted.cwd.as_deref())?;
    let workflow = wanted.workflow.as_deref().or(project.workflow.as_deref()).unwrap_or(DEFAULT_WORKFLOW);
    // The caller's own checkout, if there is one.
    let seen_from = wanted.cwd.as_deref().and_then(|cwd| around(Path::new(cwd))).unwrap_or(Path::new(&project.path));
    let chosen = definitions::lifecycle(home, workflow, seen_from, reading)?;
    let about = about(home, &project, wanted, id)?;
    runs_must_be_startable(home, &project, &chosen.lifecycle)?;
    let claimed = claim(home, &about, id)?;
    let mut span = spans::task_starts(id);
    let created = recorded(home, id, chosen, about, &project, wanted, living);
    match &created {
        // It is created when the store answers, and keeps what was reserved for it.
        Err(problem) if problem.status == ProblemStatus::Accepted => claimed.queue(),
        Ok(_) | Err(_) => {
            home.tasks.caught_up(id, &created);
            home.reservations.settle(id);
            drop(claimed);
        }
    }
    created.inspect_err(|problem| span.fail(&problem.code))
}

/// Reserves a worktree for a task, and records it.
fn recorded(
    home: &Home,
    id: &TaskId,
    chosen: ChosenLifecycle,
    about: TaskSubject,
    project: &Project,
    wanted: &CreateTask,
    living: Option<u32>,
) -> Result<EventRange, Problem> {
    let lifecycle = &chosen.lifecycle;
    // In a state in which no task is created, its agent works as one that has just begun.
    let can_be =
        |name: &&str| living.is_none() || lifecycle.find(name).is_some_and(|it| lifecycle.initial.contains(&it));
    let status = wanted.status.as_deref().filter(can_be).map(StateName::new);
    let body = context(wanted.context.as_deref());
    let spawn = !wanted.no_spawn;
    let room = match spawn {
        // A task that waits already comes first. An agent that lives has its worktree.
        true if living.is_none()
            && home.tasks.waiting().iter().any(|seen| seen.state.about.project == project.name) =>
        {
            WorkspaceReservation::Full
        }
        true => {
            let pool = home.projects.pool(project)?;
            home.reservations.reserve(home, &pool, project.pool_size, id)
        }
        false => WorkspaceReservation::Unasked,
    };
    let evidence = Evidence { body: body.clone(), ..Evidence::default() };
    let sessions = living.map_or(0, |number| number.saturating_sub(1));
    let create = NewTask { status, about, spawn, evidence, room, by: TaskAsker::Person, sessions };
    record(home, id, chosen, &create, &body)
}

/// Writes the body, then records the task. The body is there before anybody can want it.
fn record(
    home: &Home,
    id: &TaskId,
    chosen: ChosenLifecycle,
    create: &NewTask,
    body: &str,
) -> Result<EventRange, Problem> {
    let ChosenLifecycle { lifecycle, pinned } = chosen;
    let file = home_file(&home.context.places, &create.about.project, id);
    let digest = pin(&pinned);
    let now = home.clock.next();
    let created = TaskActor::create(lifecycle, digest.to_string(), id.to_string(), create, now);
    let created = created.map_err(|refusal| engine::refused(&refusal))?;
    let unwritable = |why: String| {
        Problem::unavailable(format!("{} cannot be written: {why}", file.display()))
            .hint("make room on its disk, or make its folder writable, and try again")
    };
    file.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| unwritable(error.to_string()))?;
    taskfile::write(&file, body.as_bytes()).map_err(|error| unwritable(error.to_string()))?;
    engine::create(home, stream(id), id.as_str(), created, vec![(digest, pinned)])
}

pub(crate) fn project(home: &Home, name: Option<&str>, cwd: Option<&str>) -> Result<Project, Problem> {
    if let Some(name) = name {
        return home.projects.get(name);
    }
    let here = cwd.ok_or_else(|| Problem::bad_request("say which project").hint("`project=NAME` names it"))?;
    home.projects.around(Path::new(here)).ok_or_else(|| {
        Problem::not_found(format!("{here} is in no project"))
            .hint("`sluice project add` adds the repository, `project=NAME` names another")
    })
}

/// The harness that reviews where no request names one, whichever harness works.
pub(crate) fn usual_reviewer(home: &Home) -> String {
    let config = home.context.config();
    let usual = config.defaults.review_harness.as_ref().or(config.defaults.harness.as_ref());
    usual.cloned().unwrap_or_else(|| DEFAULT_HARNESS.into())
}

/// What a new task is about, and who works on it.
fn about(home: &Home, project: &Project, wanted: &CreateTask, id: &TaskId) -> Result<TaskSubject, Problem> {
    let (config, harnesses) = (home.context.config(), home.context.harnesses());
    let defaults = &config.defaults;
    let harness = wanted.harness.as_ref().or(defaults.harness.as_ref());
    let harness = harness.cloned().unwrap_or_else(|| DEFAULT_HARNESS.into());
    let review = wanted.review_harness.as_ref().or(defaults.review_harness.as_ref());
    let review_harness = review.cloned().unwrap_or_else(|| harness.clone());
    for name in [&harness, &review_harness] {
        harnesses.get(name).map_err(|error| Problem::bad_request(error.to_string()))?;
    }
    if wanted.summary.contains('\0') || wanted.context.as_ref().is_some_and(|context| context.contains('\0')) {
        return Err(Problem::bad_request("a summary or context cannot hold a NUL"));
    }
    let summary = summary(home, &wanted.summary)?;
    let branch = match &wanted.branch {
        Some(branch) => {
            must_hold_no_secret(home, branch)?;
            let pool = home.projects.pool(project)?;
            pool.repository().check_branch(branch).map_err(|error| git(&error))?;
            if branch == pool.repository().default_branch() {
                let message = format!("`{branch}` is the default branch, and no task's");
                let problem = Problem::new(ProblemStatus::Refused, "default_branch", message);
                return Err(problem.hint("name another branch; merging brings it there"));
            }
            branch.clone()
        }
        None => format!("{OWN_BRANCH}{id}"),
    };
    Ok(TaskSubject { summary, project: project.name.clone(), branch, harness, review_harness })
}

/// What a task is about, as it is stored: not longer than a summary is, and without secrets.
pub(crate) fn summary(home: &Home, said: &str) -> Result<String, Problem> {
    if said.contains('\0') {
        return Err(Problem::bad_request("a summary cannot hold a NUL"));
    }
    if said.len() > LONGEST_SUMMARY {
        let message = format!("the summary has {} bytes, and a summary has at most {LONGEST_SUMMARY}", said.len());
        return Err(Problem::new(ProblemStatus::TooLarge, "too_large", message)
            .hint("say it in a few words; what is longer belongs into the context, in TASK.md"));
    }
    Ok(home.context.clean().text(said))
}

/// A secret in the name of a branch cannot be left out, and git tells it to everybody.
pub(crate) fn must_hold_no_secret(home: &Home, branch: &str) -> Result<(), Problem> {
    if home.context.clean().text(branch) == branch {
        return Ok(());
    }
    let message = "the name of the branch holds a secret, and everybody who sees the repository would see it";
    Err(Problem::bad_request(message).hint("choose a name without it"))
}

/// A task whose lifecycle starts runs is not begun where one of them could not be started.
fn runs_must_be_startable(home: &Home, project: &Project, lifecycle: &Lifecycle) -> Result<(), Problem> {
    for state in &lifecycle.states {
        let Some(run) = &state.run else { continue };
        startable(home, Path::new(&project.path), run).map_err(|problem| {
            let message = format!(
                "the workflow `{}` cannot be used: a run of `{}` could not be started in its state `{}`: {}",
                lifecycle.name, run.recipe, state.name, problem.message
            );
            let is_missing = problem.status == ProblemStatus::NotFound;
            let status = if is_missing { ProblemStatus::NotFound } else { ProblemStatus::Refused };
            Problem { message, code: "unusable_workflow".into(), status, ..problem }
        })?;
    }
    Ok(())
}

/// Two tasks cannot have one branch.
fn claim<'a>(home: &'a Home, about: &TaskSubject, id: &TaskId) -> Result<BranchHold<'a>, Problem> {
    home.branches.claim(home, &about.project, &about.branch, id).map_err(|other| {
        let message = format!("the branch `{}` is task {other}'s", shown(&about.branch));
        Problem::new(ProblemStatus::Refused, "branch_taken", message).hint("choose another branch")
    })
}

/// What TASK.md says from the start. A text without headings of its own stands below `## Context`.
fn context(given: Option<&str>) -> String {
    match given.map(str::trim_end).filter(|text| !text.trim().is_empty()) {
        None => String::new(),
        Some(text) if text.lines().any(|line| line.starts_with("## ")) => format!("\n{text}\n"),
        Some(text) => format!("\n## Context\n\n{text}\n"),
    }
}
