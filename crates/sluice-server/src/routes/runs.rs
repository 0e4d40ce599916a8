//! The routes of runs, processes and questions.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use sluice_api::Problem;
use sluice_api::run::{AnswerQuestion, ProcessStepReport, StartRun, StepHeard, StepSays};
use sluice_api::shown::{Inbox, ProcessAnswer, ProcessList, RunAnswer, RunContext, RunList, RunLog};
use sluice_home::ask::{ListPage, PageQuery, Requester, Service, by_hand};
use sluice_home::read::runs::RunSnapshot;
use sluice_home::read::view_process::process as process_shown;
use sluice_home::read::view_run;

use crate::answer::said;
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::follow::LINES;
use crate::keys::RequestKeyedId;
use crate::routes::run_events;
use crate::table::{RouteAudience, RouteTable, delete, get, post};

type RunsCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    runs().merge(processes_table())
}

fn runs() -> RouteTable {
    RouteTable::new("runs")
        .add(
            get("/v1/recipe/runs", "List runs: open ones first, newest first")
                .reads::<RunsQuery>()
                .answers::<RunList>(),
            list,
        )
        .add(post("/v1/recipe/runs", "Start a recipe").takes::<StartRun>().answers::<RunAnswer>().creates(), start)
        .add(get("/v1/recipe/runs/{id}", "Show a run").answers::<RunAnswer>(), show)
        .add(
            delete("/v1/recipe/runs/{id}", "Cancel a run and everything it has started")
                .takes::<Cancelled>()
                .answers::<RunAnswer>(),
            cancel,
        )
        .add(post("/v1/recipe/runs/{id}/retry", "Retry a failed step").takes::<Retried>().answers::<RunAnswer>(), retry)
        .add(
            get("/v1/recipe/runs/{id}/events", "Read the events of a run, one per line")
                .reads::<run_events::RunEventsQuery>()
                .answers_as(LINES),
            run_events::events,
        )
        .add(
            get("/v1/recipe/runs/{id}/log", "Read what the steps of a run have printed")
                .reads::<StepQuery>()
                .answers::<RunLog>(),
            log,
        )
        .add(
            get(
                "/v1/recipe/runs/{id}/context/{step}",
                "Show what the agent of a step is told about the steps before it",
            )
            .answers::<RunContext>(),
            context,
        )
        .add(
            post("/v1/step", "Report the result of a session's own step, or ask a question")
                .takes::<StepSays>()
                .answers::<StepHeard>()
                .for_(RouteAudience::Agents),
            step,
        )
        .add(get("/v1/inbox", "List the questions that wait for a person").answers::<Inbox>(), inbox)
        .add(post("/v1/inbox", "Answer a question").takes::<Answered>().answers::<RunAnswer>(), answer)
}

fn processes_table() -> RouteTable {
    RouteTable::new("processes")
        .add(
            get("/v1/processes", "List processes, oldest first").reads::<ProcessesQuery>().answers::<ProcessList>(),
            processes,
        )
        .add(
            post("/v1/processes", "Start a process whose steps are done by hand")
                .takes::<StartRun>()
                .answers::<ProcessAnswer>()
                .creates(),
            start_process,
        )
        .add(get("/v1/processes/{id}", "Show a process").answers::<ProcessAnswer>(), process)
        .add(
            delete("/v1/processes/{id}", "Cancel a process").takes::<Cancelled>().answers::<ProcessAnswer>(),
            cancel_process,
        )
        .add(
            post("/v1/processes/{id}/complete", "Complete a process whose steps are done")
                .takes::<Completed>()
                .answers::<ProcessAnswer>(),
            complete_process,
        )
        .add(
            post("/v1/processes/{id}/steps/{step}/{verb}", "Report the progress of a step")
                .words("verb", &["start", "complete", "fail", "skip"])
                .takes::<ProcessStepReport>()
                .answers::<ProcessAnswer>(),
            process_step,
        )
}

fn run(seen: &RunSnapshot) -> RunAnswer {
    RunAnswer { run: view_run::run(seen) }
}

/// A run that is shown when the answer is written: thousands of them shown at once take more memory than all else that an
/// engine does.
struct ShownRun(RunSnapshot);

impl Serialize for ShownRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        view_run::run(&self.0).serialize(serializer)
    }
}

#[derive(Serialize)]
struct ShownRuns {
    runs: Vec<ShownRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The same, as a process.
struct ShownProcess(RunSnapshot);

impl Serialize for ShownProcess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        process_shown(&self.0).serialize(serializer)
    }
}

#[derive(Serialize)]
struct ShownProcessAnswer {
    process: ShownProcess,
}

impl From<RunSnapshot> for ShownProcessAnswer {
    fn from(seen: RunSnapshot) -> ShownProcessAnswer {
        ShownProcessAnswer { process: ShownProcess(seen) }
    }
}

#[derive(Serialize)]
struct ShownProcesses {
    processes: Vec<ShownProcess>,
}

async fn start((State(app), caller): RunsCall, RequestKeyedId(chosen): RequestKeyedId, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let wanted: StartRun = said(&body)?;
        service.start(who, &chosen, &wanted).map(|seen| run(&seen))
    })
    .await
}

/// Which runs a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Only those with this status.
    status: Option<String>,
    /// Also those that have ended.
    #[serde(default)]
    all: bool,
    /// At most so many of those that have ended; 1,000 unless given.
    limit: Option<usize>,
    /// Those that come after, as `next` of the list before says; without those that are open.
    after: Option<String>,
}

async fn list((State(app), caller): RunsCall, Query(filters): Query<RunsQuery>) -> Response {
    ask(app, caller, move |service, _| {
        let RunsQuery { status, all, limit, after } = filters;
        let ListPage { items, next } = service.list_runs(status.as_deref(), all, &PageQuery { limit, after })?;
        Ok(ShownRuns { runs: items.into_iter().map(ShownRun).collect(), next })
    })
    .await
}

async fn show((State(app), caller): RunsCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.run(&id).map(|seen| run(&seen))).await
}

/// Why something is not wanted any more.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Cancelled {
    /// Why the run is cancelled, in words.
    reason: Option<String>,
}

/// What came of a process.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Completed {
    /// In words; what its steps said unless given.
    summary: Option<String>,
}

/// What is tried again.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Retried {
    /// The step; the one that failed unless given.
    step: Option<String>,
    /// What its agent is told.
    message: Option<String>,
}

async fn cancel((State(app), caller): RunsCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Cancelled { reason } = said(&body)?;
        service.cancel_run(who, &id, reason.unwrap_or_default()).map(|seen| run(&seen))
    })
    .await
}

async fn retry((State(app), caller): RunsCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Retried { step, message } = said(&body)?;
        service.retry_run(who, &id, step.as_deref(), message).map(|seen| run(&seen))
    })
    .await
}

/// The step whose output is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepQuery {
    /// Its name; all of them unless given.
    step: Option<String>,
}

async fn log((State(app), caller): RunsCall, Path(id): Path<String>, Query(of): Query<StepQuery>) -> Response {
    ask(app, caller, move |service, _| Ok(RunLog { log: service.run_log(&id, of.step.as_deref())? })).await
}

async fn context((State(app), caller): RunsCall, Path((id, step)): Path<(String, String)>) -> Response {
    ask(app, caller, move |service, _| Ok(RunContext { context: service.run_context(&id, &step)? })).await
}

async fn step((State(app), caller): RunsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let words: StepSays = said(&body)?;
        service.step_says(who, words)
    })
    .await
}

async fn inbox((State(app), caller): RunsCall) -> Response {
    ask(app, caller, |service, _| Ok(Inbox { questions: service.inbox()? })).await
}

/// An answer to a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answered {
    /// The question's id, or the run's if it has one question.
    id: String,
    /// The option to choose, as the question lists it.
    option: String,
    /// A comment to go with the answer.
    #[serde(default)]
    message: Option<String>,
}

async fn answer((State(app), caller): RunsCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Answered { id, option, message } = said(&body)?;
        service.answer(who, &id, AnswerQuestion { option, message }).map(|seen| run(&seen))
    })
    .await
}

/// How many ended processes a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessesQuery {
    /// Also those that were completed.
    #[serde(default)]
    all: bool,
}

async fn processes((State(app), caller): RunsCall, Query(filters): Query<ProcessesQuery>) -> Response {
    ask(app, caller, move |service, _| {
        let runs = service.list_processes(filters.all)?;
        Ok(ShownProcesses { processes: runs.into_iter().map(ShownProcess).collect() })
    })
    .await
}

async fn start_process(
    (State(app), caller): RunsCall,
    RequestKeyedId(chosen): RequestKeyedId,
    body: Bytes,
) -> Response {
    ask(app, caller, move |service, who| {
        let mut wanted: StartRun = said(&body)?;
        wanted.by_hand = true;
        service.start(who, &chosen, &wanted).map(ShownProcessAnswer::from)
    })
    .await
}

async fn process((State(app), caller): RunsCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, _| service.process(&id).map(ShownProcessAnswer::from)).await
}

async fn cancel_process((State(app), caller): RunsCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Cancelled { reason } = said(&body)?;
        let seen = service.process(&id)?;
        service.cancel_run(who, &seen.id, reason.unwrap_or_default()).map(ShownProcessAnswer::from)
    })
    .await
}

async fn complete_process((State(app), caller): RunsCall, Path(id): Path<String>, body: Bytes) -> Response {
    ask(app, caller, move |service, who| {
        let Completed { summary } = said(&body)?;
        let seen = service.process(&id)?;
        service.close_run(who, &seen.id, summary.unwrap_or_default()).map(ShownProcessAnswer::from)
    })
    .await
}

async fn process_step(
    (State(app), caller): RunsCall,
    Path((id, step, verb)): Path<(String, String, String)>,
    body: Bytes,
) -> Response {
    ask(app, caller, move |service, who| report(service, who, &id, &step, &verb, &body)).await
}

fn report(
    service: &Service,
    who: &Requester,
    id: &str,
    step: &str,
    verb: &str,
    body: &Bytes,
) -> Result<ShownProcessAnswer, Problem> {
    let ProcessStepReport { summary, result } = said(body)?;
    let seen = service.process(id)?;
    let what = by_hand(verb, summary, result)
        .ok_or_else(|| Problem::not_found(format!("a step cannot `{verb}`")).hint("start, complete, fail or skip"))?;
    service.by_hand(who, &seen, step, what).map(ShownProcessAnswer::from)
}
