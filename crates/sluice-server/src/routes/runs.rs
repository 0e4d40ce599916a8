//! The routes of runs and questions.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use sluice_api::attention::AnswerAttention;
use sluice_api::diff::MergeRun;
use sluice_api::run::{StartRun, StepSays};
use sluice_api::shown::{Inbox, RunAnswer, RunContext, RunList, RunLog};
use sluice_home::ask::{ListPage, PageQuery};
use sluice_home::read::runs::RunSnapshot;
use sluice_home::read::view_run::{self, UnheldSteps};

use crate::answer::Said;
use crate::app::{App, ask};
use crate::caller::RequestCaller;
use crate::facade::vermas::Cancelled;
use crate::follow::LINES;
use crate::keys::RequestKeyedId;
use crate::routes::tasks::DiffQuery;
use crate::routes::{log_stream, subject_events};
use crate::table::{RouteAudience, RouteTable, delete, get, post};

pub(crate) fn table() -> RouteTable {
    runs_table().merge(told_table()).merge(looks_table()).merge(questions_table())
}

fn runs_table() -> RouteTable {
    RouteTable::new("runs")
        .add(
            get("/v1/recipe/runs", "List runs: open ones first, newest first")
                .reads::<RunsQuery>()
                .answers::<RunList>(),
            list,
        )
        .ask(
            post("/v1/recipe/runs", "Start a recipe"),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<StartRun>)| {
                service.start(who, &chosen, &said.read()?).map(run)
            },
        )
        .ask(get("/v1/recipe/runs/{id}", "Show a run"), |service, _, Path(id): Path<String>| {
            Ok(RunAnswer { run: service.shown_run(&id)? })
        })
        .ask(
            delete("/v1/recipe/runs/{id}", "Cancel a run and everything it has started"),
            |service, who, (Path(id), said): (Path<String>, Said<Cancelled>)| {
                service.cancel_run(who, &id, said.read()?.reason.unwrap_or_default()).map(run)
            },
        )
        .ask(
            post("/v1/recipe/runs/{id}/retry", "Retry a failed step"),
            |service, who, (Path(id), said): (Path<String>, Said<Retried>)| {
                let Retried { step, message } = said.read()?;
                service.retry_run(who, &id, step.as_deref(), message).map(run)
            },
        )
        .ask(
            get("/v1/recipe/runs/{id}/diff", "Show what a run has changed, committed and uncommitted"),
            |service, _, (Path(id), Query(wanted)): (Path<String>, Query<DiffQuery>)| {
                service.run_diff(&id, wanted.stat)
            },
        )
        .ask(
            post("/v1/recipe/runs/{id}/merge", "Merge the branch of a run that has ended"),
            |service, who, (Path(id), said): (Path<String>, Said<MergeRun>)| service.merge_run(who, &id, &said.read()?),
        )
        .ask(
            post(
                "/v1/recipe/runs/{id}/delete",
                "Delete a run: cancel it if open, and hide it from lists; its history stays",
            ),
            |service, who, Path(id): Path<String>| service.delete_run(who, &id),
        )
}

/// What a run and its steps have told.
fn told_table() -> RouteTable {
    RouteTable::new("runs")
        .add(
            get("/v1/recipe/runs/{id}/events", "Read the events of a run, one per line")
                .reads::<subject_events::SubjectEventsQuery>()
                .answers_as(LINES),
            subject_events::of_run,
        )
        .ask(
            get("/v1/recipe/runs/{id}/log", "Read what the steps of a run have printed"),
            |service, _, (Path(id), Query(of)): (Path<String>, Query<StepQuery>)| {
                Ok(RunLog { log: service.run_log(&id, of.step.as_deref())? })
            },
        )
        .add(
            get(
                "/v1/recipe/runs/{id}/log/stream",
                "Read what the steps of a run print, as it comes, one piece per line",
            )
            .reads::<log_stream::RunLogQuery>()
            .answers_as(LINES),
            log_stream::of_run,
        )
        .ask(
            get(
                "/v1/recipe/runs/{id}/context/{step}",
                "Show what the agent of a step is told about the steps before it",
            ),
            |service, _, Path((id, step)): Path<(String, String)>| {
                Ok(RunContext { context: service.run_context(&id, &step)? })
            },
        )
}

/// What screens show of a run besides.
fn looks_table() -> RouteTable {
    RouteTable::new("runs")
        .ask(
            get("/v1/recipe/runs/{id}/changes", "Show what a run has changed, in files, hunks and lines"),
            |service, _, Path(id): Path<String>| service.run_changes(&id),
        )
        .ask(
            get("/v1/recipe/runs/{id}/screen", "Show what stands on the terminal of an agent of a run, as text"),
            |service, _, (Path(id), Query(of)): (Path<String>, Query<StepQuery>)| {
                service.run_screen(&id, of.step.as_deref())
            },
        )
        .ask(
            get("/v1/recipe/runs/{id}/timeline", "Show when each attempt of each step of a run began and ended"),
            |service, _, Path(id): Path<String>| service.run_timeline(&id),
        )
        .ask(
            get("/v1/recipe/runs/{id}/usage", "Show what the agents of a run have used up, by attempt"),
            |service, _, Path(id): Path<String>| service.run_usage(&id),
        )
}

/// What sessions say about their own steps, and what they ask.
fn questions_table() -> RouteTable {
    RouteTable::new("runs")
        .ask(
            post("/v1/step", "Report the result of a session's own step, or ask a question")
                .for_(RouteAudience::Agents),
            |service, who, said: Said<StepSays>| service.step_says(who, said.read()?),
        )
        .ask(get("/v1/inbox", "List what waits for a person, the oldest first"), |service, _, ()| {
            Ok(Inbox { questions: service.attention()? })
        })
        .ask(post("/v1/inbox", "Answer what waits for a person"), |service, who, said: Said<Answered>| {
            let Answered { id, option, message } = said.read()?;
            service.answer_attention(who, &id, AnswerAttention { option, message })
        })
}

fn run(seen: RunSnapshot) -> RunAnswer {
    RunAnswer { run: view_run::run(&seen) }
}

/// A run that is shown when the answer is written: thousands of them shown at once take more memory than all else that an
/// engine does.
struct ShownRun(RunSnapshot, UnheldSteps);

impl Serialize for ShownRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        view_run::run_with(&self.0, &self.1).serialize(serializer)
    }
}

/// The same as [`RunList`].
#[derive(Serialize)]
struct ShownRuns {
    runs: Vec<ShownRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which runs a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Only runs with this status.
    status: Option<String>,
    /// Also runs that have ended.
    #[serde(default)]
    all: bool,
    /// The most ended runs to show; default: 1,000.
    limit: Option<usize>,
    /// Continue after this position (`next` of the previous page); open runs are left out.
    after: Option<String>,
}

async fn list(State(app): State<Arc<App>>, caller: RequestCaller, Query(filters): Query<RunsQuery>) -> Response {
    ask(app, caller, move |service, _| {
        let RunsQuery { status, all, limit, after } = filters;
        let ListPage { items, next } = service.list_runs(status.as_deref(), all, &PageQuery { limit, after })?;
        let shown = |seen: RunSnapshot| {
            let unheld = service.unheld_steps(&seen);
            ShownRun(seen, unheld)
        };
        Ok(ShownRuns { runs: items.into_iter().map(shown).collect(), next })
    })
    .await
}

/// Which step to retry.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Retried {
    /// The name of the step; default: the one that failed.
    step: Option<String>,
    /// What its agent is told.
    message: Option<String>,
}

/// The step whose output is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepQuery {
    /// The name of the step; default: all steps.
    step: Option<String>,
}

/// An answer to what waits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answered {
    /// The id of what waits, or of the task or run if it has only one.
    id: String,
    /// The option to choose, as the question lists it.
    option: String,
    /// A comment to go with the answer.
    #[serde(default)]
    message: Option<String>,
}
