//! A step that is a task: created once, and its end is the end of the step.

use std::sync::Arc;
use std::time::Duration;

use sluice_api::task::CreateTask;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{Job, Outcome, Perform};

use crate::ground::Ground;
use crate::runs::SeenRun;
use crate::undone::{Failed, Undone};
use crate::workbench::Performed;

/// Between two looks, whatever was heard.
const LOOK: Duration = Duration::from_secs(60);

/// Creates the task of a step, if that has not been done, and waits for its end.
pub(super) fn create(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str) -> Performed {
    let Job::Task { summary, branch, workflow, project, context } = &wanted.job else {
        return Err("that is no task".into());
    };
    let (harness, of_run) = (&wanted.harness, &seen.state.given.origin.harness);
    // Its id is the step's: asked for again, the same task is found.
    let id = name.replace('.', "-");
    if ground.tasks.load(&id)?.is_none() {
        let wanted = CreateTask {
            project: project.clone(),
            cwd: Some(seen.state.given.origin.root.clone()),
            branch: branch.clone(),
            summary: summary.clone(),
            workflow: workflow.clone(),
            harness: harness.clone().or_else(|| Some(of_run.clone()).filter(|name| !name.is_empty())),
            context: context.clone(),
            ..CreateTask::default()
        };
        crate::service::create_task(ground, &id, &wanted)?;
    }
    let ended = || {
        if ground.was_stopped(name) {
            return Some(Err(Undone::from("it was ended; its task goes on")));
        }
        match ground.tasks.load(&id) {
            Ok(Some(task)) if task.card.open => None,
            Ok(Some(task)) => Some(Ok(task)),
            Ok(None) => Some(Err("its task is gone".into())),
            Err(problem) => Some(Err(problem.into())),
        }
    };
    let task = loop {
        if let Some(found) = ground.tasks.wait(LOOK, ended) {
            break found?;
        }
    };
    let status = task.status().to_owned();
    let outcome = Outcome {
        summary: format!("task {id}: {}", task.state.about.summary),
        result: Some(status.clone()),
        output: Data::Table(vec![
            ("id".into(), Data::Text(id)),
            ("status".into(), Data::Text(status.clone())),
            ("branch".into(), Data::Text(task.state.about.branch.clone())),
        ]),
        ..Outcome::default()
    };
    match status.as_str() {
        "cancelled" => Err(Failed {
            kind: FailureKind::Failed,
            error: "its task was cancelled".into(),
            outcome: Box::new(outcome),
        }
        .into()),
        _ => Ok(outcome),
    }
}
