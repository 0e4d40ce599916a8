//! What a crab is told about a step, and what its words about it mean to the run.

use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_core::recipe::{Data, FailureKind, Prompt, Work};
use sluice_core::run::{Job as Asked, Outcome, Perform, Report, Usage as Used, is_folder};
use sluice_worker::harness::result::result;

use super::task_id;
use super::work::Complete;
use crate::bounds::{LONGEST_SUMMARY, LONGEST_VALUE, LONGEST_WORD, cut};
use crate::runs::{SeenRun, performance};
use crate::workbench::{Clean, data};

/// What a crab's words mean to its run; no secret of them stays.
pub(super) fn report(clean: &Clean, wanted: &Complete) -> Result<Report, Problem> {
    let words = [("result", &wanted.result), ("commit", &wanted.commit), ("failure", &wanted.failure)];
    if let Some((name, _)) = words.into_iter().find(|(_, it)| it.as_ref().is_some_and(|it| it.len() > LONGEST_WORD)) {
        return Err(Problem::bad_request(format!("`{name}` has more than {LONGEST_WORD} bytes")));
    }
    let is_commit = |text: &String| [40, 64].contains(&text.len()) && text.chars().all(|it| it.is_ascii_hexdigit());
    if wanted.commit.as_ref().is_some_and(|commit| !is_commit(commit)) {
        let hint = "send its full name, 40 or 64 hexadecimal digits";
        return Err(Problem::bad_request("`commit` is no commit").hint(hint));
    }
    let value = wanted.output.as_ref().map_or(0, |value| value.to_string().len());
    if value > LONGEST_VALUE {
        let error = format!("its output has {value} bytes, more than the {LONGEST_VALUE} that are kept");
        return Ok(Report::Failed { kind: FailureKind::Failed, error, outcome: Outcome::default() });
    }
    let said = clean.text(wanted.summary.as_deref().unwrap_or_default());
    let read = result(&said);
    let summary = cut(&said, LONGEST_SUMMARY);
    let outcome = Outcome {
        result: wanted.result.as_deref().map(|it| clean.text(it)).or(read.result),
        output: wanted
            .output
            .as_ref()
            .map_or_else(|| Data::Text(cut(&said, LONGEST_VALUE)), |it| data(&clean.value(it))),
        summary: if wanted.result.is_some() { summary.clone() } else { cut(&read.summary, LONGEST_SUMMARY) },
        commit: wanted.commit.clone(),
        usage: wanted.token_usage.map(|it| {
            let (input, output, total) = (it.prompt_tokens, it.completion_tokens, it.total_tokens);
            Box::new(Used { input: Some(input), output: Some(output), total: Some(total), ..Used::default() })
        }),
        ..Outcome::default()
    };
    match wanted.status.as_str() {
        "completed" => Ok(Report::Completed(outcome)),
        "failed" => {
            let kind = match wanted.failure.as_deref() {
                None | Some("failed") => FailureKind::Failed,
                Some("timeout") => FailureKind::Timeout,
                Some("crashed") => FailureKind::Crashed,
                Some("lost") => FailureKind::Lost,
                Some(other) => {
                    let message = format!("`{other}` is no way to fail");
                    return Err(Problem::bad_request(message).hint("failed, timeout, crashed or lost"));
                }
            };
            let said = wanted.error.as_deref().map_or(summary, |error| cut(&clean.text(error), LONGEST_SUMMARY));
            let error = if said.is_empty() { "the crab says that it failed".to_owned() } else { said };
            Ok(Report::Failed { kind, error, outcome })
        }
        other => Err(Problem::bad_request(format!("`{other}` is no end of a run")).hint("completed or failed")),
    }
}

/// What a crab is told about its step.
pub(super) fn payload(seen: &SeenRun, wanted: &Perform, repository: Option<&str>, dispatch: u64) -> Value {
    let step = seen.plan.recipe.step(wanted.step);
    let none = Vec::new();
    // What an earlier version stored does not tell; the worker is not told that it stands nowhere.
    let is_told = |folder_at: &Vec<usize>| !folder_at.is_empty() || !asks_for_folder(&step.work, &wanted.job);
    let (prompt, folder_at, script, environment) = match &wanted.job {
        Asked::Agent { prompt, folder_at } | Asked::Arbiter { prompt, folder_at } => {
            (prompt.as_str(), folder_at, None, None)
        }
        Asked::Script(script) | Asked::Gate(script) => ("", &none, Some(&script.script), Some(&script.environment)),
        Asked::Task { summary, .. } => (summary.as_str(), &none, None, None),
    };
    json!({
        "task_id": task_id(&seen.id, step.name.as_str(), wanted.part),
        "mission_id": seen.id,
        "step_id": step.name.as_str(),
        "role": wanted.role.to_string(),
        "title": crate::missions::title(step),
        "prompt": prompt,
        "context": sluice_core::run::context(&seen.plan, &seen.state, wanted.step),
        "worktree_path": seen.state.given.workspace,
        // Where that stands in the prompt, in bytes, and in which variables of the environment: who works there knows the
        // folder by another name.
        "worktree_at": Some(folder_at).filter(|at| is_told(at)),
        "worktree_in": folder_in(&step.work),
        "type": step.work.kind(),
        "is_arbiter": matches!(wanted.job, Asked::Arbiter { .. }),
        "script": script,
        "environment": environment,
        "attempt": wanted.attempt,
        "part": wanted.part.to_string(),
        "performance": performance(&seen.id, wanted.step, wanted.attempt, wanted.part),
        "harness": wanted.harness,
        "permissions": match wanted.permissions {
            sluice_core::lifecycle::Permissions::Full => "full",
            sluice_core::lifecycle::Permissions::Reduced => "reduced",
        },
        "repo": repository,
        "commit": tip(seen),
        "dispatch": dispatch,
    })
}

/// Whether the folder of the run stands in what an agent is told.
fn asks_for_folder(work: &Work, job: &Asked) -> bool {
    let prompt = match (work, job) {
        (Work::AgentLoop { arbiter, .. }, Asked::Arbiter { .. }) => arbiter,
        (Work::Agent { prompt } | Work::AgentLoop { prompt, .. } | Work::ParallelAgents { prompt, .. }, _) => prompt,
        (Work::Script { .. } | Work::Gate { .. } | Work::Task(_), _) => return false,
    };
    let (Prompt::Text(text) | Prompt::File { content: Some(text), .. }) = prompt else { return false };
    text.fill_telling(&|_| Some(String::new()), &is_folder).is_ok_and(|(_, at)| !at.is_empty())
}

/// The variables of a command's environment that hold the folder of the run.
fn folder_in(work: &Work) -> Vec<&str> {
    let (Work::Script { command } | Work::Gate { command, .. }) = work else { return Vec::new() };
    command.environment.iter().filter(|(_, path)| is_folder(path)).map(|(name, _)| name.as_str()).collect()
}

/// Where the work of a run stands: the commit of the step that ended last.
fn tip(seen: &SeenRun) -> Option<&str> {
    let ended =
        seen.state.steps.iter().filter_map(|state| Some((state.ended?, state.latest.as_ref()?.commit.as_ref()?)));
    ended.max_by_key(|(at, _)| *at).map(|(_, commit)| commit.as_str())
}
