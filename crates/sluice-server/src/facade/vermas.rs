//! Routes in the words of vermas: processes, whose steps are done by hand.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use sluice_api::Problem;
use sluice_api::run::{ProcessStepReport, StartRun};
use sluice_api::shown::{ProcessAnswer, ProcessList};
use sluice_home::ask::by_hand;
use sluice_home::read::runs::RunSnapshot;
use sluice_home::read::view_process::process as process_shown;

use crate::answer::Said;
use crate::app::{App, ask};
use crate::caller::RequestCaller;
use crate::keys::RequestKeyedId;
use crate::table::{RouteTable, delete, get, post};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("processes")
        .add(
            get("/v1/processes", "List processes, oldest first").reads::<ProcessesQuery>().answers::<ProcessList>(),
            processes,
        )
        .ask(
            post("/v1/processes", "Start a process whose steps are done by hand"),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<StartRun>)| {
                let wanted = StartRun { by_hand: true, ..said.read()? };
                service.start(who, &chosen, &wanted).map(process)
            },
        )
        .ask(get("/v1/processes/{id}", "Show a process"), |service, _, Path(id): Path<String>| {
            service.process(&id).map(process)
        })
        .ask(
            delete("/v1/processes/{id}", "Cancel a process"),
            |service, who, (Path(id), said): (Path<String>, Said<Cancelled>)| {
                let Cancelled { reason } = said.read()?;
                let seen = service.process(&id)?;
                service.cancel_run(who, seen.id.as_str(), reason.unwrap_or_default()).map(process)
            },
        )
        .ask(
            post("/v1/processes/{id}/complete", "Complete a process whose steps are done"),
            |service, who, (Path(id), said): (Path<String>, Said<Completed>)| {
                let Completed { summary } = said.read()?;
                let seen = service.process(&id)?;
                service.close_run(who, &seen.id, summary.unwrap_or_default()).map(process)
            },
        )
        .ask(
            post("/v1/processes/{id}/steps/{step}/{verb}", "Report the progress of a step")
                .words("verb", &["start", "complete", "fail", "skip"]),
            |service,
             who,
             (Path((id, step, verb)), said): (Path<(String, String, String)>, Said<ProcessStepReport>)| {
                let ProcessStepReport { summary, result } = said.read()?;
                let seen = service.process(&id)?;
                let what = by_hand(&verb, summary, result).ok_or_else(|| {
                    Problem::not_found(format!("a step cannot `{verb}`")).hint("start, complete, fail or skip")
                })?;
                service.by_hand(who, &seen, &step, what).map(process)
            },
        )
}

fn process(seen: RunSnapshot) -> ProcessAnswer {
    ProcessAnswer { process: process_shown(&seen) }
}

/// A process that is shown when the answer is written, as a run is in a list of runs.
struct ShownProcess(RunSnapshot);

impl Serialize for ShownProcess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        process_shown(&self.0).serialize(serializer)
    }
}

/// The same as [`ProcessList`].
#[derive(Serialize)]
struct ShownProcesses {
    processes: Vec<ShownProcess>,
}

/// The summary of a process that is completed.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Completed {
    /// A summary; default: the summaries of the steps.
    summary: Option<String>,
}

/// The reason of a cancellation.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cancelled {
    /// Why the run is cancelled, in words.
    pub(crate) reason: Option<String>,
}

/// How many ended processes a list shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessesQuery {
    /// Also those that were completed.
    #[serde(default)]
    all: bool,
}

async fn processes(
    State(app): State<Arc<App>>,
    caller: RequestCaller,
    Query(filters): Query<ProcessesQuery>,
) -> Response {
    ask(app, caller, move |service, _| {
        let runs = service.list_processes(filters.all)?;
        Ok(ShownProcesses { processes: runs.into_iter().map(ShownProcess).collect() })
    })
    .await
}
