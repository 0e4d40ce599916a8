//! The routes of the control plane: colonies, crabs, missions, and what crabs say about their work.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::control::{
    AttemptEnded, AttemptStarted, AttemptUpdated, Colony, ControlStatus, Crab, Mission, MissionShown, MissionTask,
    NewColony, NewMission, Register, Ticked,
};
use sluice_api::work::{AskMergeTurn, MergeTurn, StepProgress, StepReport, StepStart};

use crate::answer::said;
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::follow::live::FollowQuery;
use crate::keys::RequestKeyedId;
use crate::table::{RouteAudience, RouteTable, delete, get, post};

type ControlCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    missions_table().merge(attempts_table())
}

/// What crabs say about their work.
fn attempts_table() -> RouteTable {
    RouteTable::new("control plane")
        .add(
            post("/v1/runs/start", "Report the start of a step")
                .takes::<StepStart>()
                .answers::<AttemptStarted>()
                .creates()
                .for_(RouteAudience::Workers),
            start,
        )
        .add(
            post("/v1/runs/update", "Report the progress of a step that a worker performs")
                .takes::<StepProgress>()
                .answers::<AttemptUpdated>()
                .for_(RouteAudience::Workers),
            update,
        )
        .add(
            post("/v1/runs/merge-turn", "Ask for the turn to merge into the branch of the run")
                .takes::<AskMergeTurn>()
                .answers::<MergeTurn>()
                .for_(RouteAudience::Workers),
            turn,
        )
        .add(
            post("/v1/runs/complete", "Report the end of a step")
                .takes::<StepReport>()
                .answers::<AttemptEnded>()
                .for_(RouteAudience::Workers),
            complete,
        )
}

fn missions_table() -> RouteTable {
    RouteTable::new("control plane")
        .add(get("/v1/colonies", "List colonies").answers::<Vec<Colony>>(), colonies)
        .add(post("/v1/colonies", "Create a colony").takes::<NewColony>().answers::<Colony>().creates(), found_colony)
        .add(get("/v1/crabs", "List workers").answers::<Vec<Crab>>(), crabs)
        .add(
            post("/v1/crabs/register", "Register a worker, or register it again")
                .takes::<Register>()
                .answers::<Crab>()
                .creates()
                .for_(RouteAudience::Workers),
            register,
        )
        .add(delete("/v1/crabs/{id}", "Unregister a worker").answers::<Crab>().for_(RouteAudience::Workers), unregister)
        .add(get("/v1/missions", "List missions, oldest first").answers::<Vec<Mission>>(), missions)
        .add(
            post("/v1/missions", "Start a mission").takes::<NewMission>().answers::<Mission>().creates(),
            create_mission,
        )
        .add(get("/v1/missions/{id}", "Show a mission with its tasks").answers::<MissionShown>(), mission)
        .add(delete("/v1/missions/{id}", "Cancel a mission").answers::<MissionShown>(), cancel_mission)
        .add(
            get("/v1/tasks", "List the tasks of a mission, or of all open missions")
                .reads::<ControlQuery>()
                .answers::<Vec<MissionTask>>(),
            tasks,
        )
        .add(
            get("/v1/workflows", "List the names of the workflows that a mission can have").answers::<Vec<String>>(),
            workflows,
        )
        .add(
            post("/v1/scheduler/tick", "Wait until the scheduler has assigned what is ready")
                .answers::<Ticked>()
                .for_(RouteAudience::Workers),
            tick,
        )
        .add(get("/v1/status", "Status of colonies, workers, missions and tasks").answers::<ControlStatus>(), status)
        .add(
            get("/v1/ws/events", "WebSocket with one event per message")
                .reads::<FollowQuery>()
                .with(StatusCode::SWITCHING_PROTOCOLS),
            crate::follow::live::socket,
        )
        .add(
            get("/v1/ws/crab/{id}", "WebSocket of a worker: assignments out, reports in")
                .with(StatusCode::SWITCHING_PROTOCOLS)
                .for_(RouteAudience::Workers),
            crate::follow::worker_socket::listen,
        )
}

async fn colonies((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, who| Ok(service.groups(who))).await
}

async fn found_colony(
    (State(app), caller): ControlCall,
    RequestKeyedId(chosen): RequestKeyedId,
    body: Bytes,
) -> Response {
    ask(app, caller, move |service, who| service.found_group(who, &chosen, &said(&body)?)).await
}

async fn crabs((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, who| Ok(service.workers(who))).await
}

async fn register((State(app), caller): ControlCall, RequestKeyedId(chosen): RequestKeyedId, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.register_worker(who, &chosen, &said(&body)?)).await
}

async fn unregister((State(app), caller): ControlCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.unregister_worker(who, &id)).await
}

async fn missions((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, who| service.missions(who)).await
}

async fn create_mission(
    (State(app), caller): ControlCall,
    RequestKeyedId(chosen): RequestKeyedId,
    body: Bytes,
) -> Response {
    ask(app, caller, move |service, who| service.create_mission(who, &chosen, &said(&body)?)).await
}

async fn mission((State(app), caller): ControlCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.mission(who, &id)).await
}

async fn cancel_mission((State(app), caller): ControlCall, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| {
        service.mission(who, &id)?;
        service.cancel_run(who, &id, String::new())?;
        service.mission(who, &id)
    })
    .await
}

/// The mission whose tasks are wanted.
#[derive(Deserialize, JsonSchema)]
struct ControlQuery {
    /// Its id; all that have not ended unless given.
    mission_id: Option<String>,
}

async fn tasks((State(app), caller): ControlCall, Query(of): Query<ControlQuery>) -> Response {
    ask(app, caller, move |service, who| service.mission_tasks(who, of.mission_id.as_deref())).await
}

async fn start((State(app), caller): ControlCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.start_attempt(who, &said(&body)?)).await
}

async fn update((State(app), caller): ControlCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.update_attempt(who, &said(&body)?)).await
}

async fn turn((State(app), caller): ControlCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.merge_turn(who, &said(&body)?)).await
}

async fn complete((State(app), caller): ControlCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.complete_attempt(who, &said(&body)?)).await
}

async fn workflows((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, _| Ok(service.mission_workflows())).await
}

async fn tick((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, who| service.tick(who)).await
}

async fn status((State(app), caller): ControlCall) -> Response {
    ask(app, caller, |service, who| service.status(who)).await
}
