//! The routes of the control plane: colonies, crabs, missions, and what crabs say about their work.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::control::{NewColony, NewMission, Register};
use sluice_api::work::{AskMergeTurn, StepProgress, StepReport, StepStart};

use crate::answer::Said;
use crate::follow::live::FollowQuery;
use crate::keys::RequestKeyedId;
use crate::table::{RouteAudience, RouteTable, delete, get, post};

pub(crate) fn table() -> RouteTable {
    colonies_table().merge(missions_table()).merge(attempts_table())
}

fn attempts_table() -> RouteTable {
    RouteTable::new("control plane")
        .ask(
            post("/v1/runs/start", "Report the start of a step").creates().for_(RouteAudience::Workers),
            |service, who, said: Said<StepStart>| service.start_attempt(who, &said.read()?),
        )
        .ask(
            post("/v1/runs/update", "Report the progress of a step that a worker performs")
                .for_(RouteAudience::Workers),
            |service, who, said: Said<StepProgress>| service.update_attempt(who, &said.read()?),
        )
        .ask(
            post("/v1/runs/merge-turn", "Ask for the turn to merge into the branch of the run")
                .for_(RouteAudience::Workers),
            |service, who, said: Said<AskMergeTurn>| service.merge_turn(who, &said.read()?),
        )
        .ask(
            post("/v1/runs/complete", "Report the end of a step").for_(RouteAudience::Workers),
            |service, who, said: Said<StepReport>| service.complete_attempt(who, &said.read()?),
        )
}

fn colonies_table() -> RouteTable {
    RouteTable::new("control plane")
        .ask(get("/v1/colonies", "List colonies"), |service, who, ()| Ok(service.groups(who)))
        .ask(
            post("/v1/colonies", "Create a colony"),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<NewColony>)| {
                service.found_group(who, &chosen, &said.read()?)
            },
        )
        .ask(get("/v1/crabs", "List workers"), |service, who, ()| Ok(service.workers(who)))
        .ask(
            post("/v1/crabs/register", "Register a worker, or register it again").for_(RouteAudience::Workers),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<Register>)| {
                service.register_worker(who, &chosen, &said.read()?)
            },
        )
        .ask(
            delete("/v1/crabs/{id}", "Unregister a worker").for_(RouteAudience::Workers),
            |service, who, Path(id): Path<String>| service.unregister_worker(who, &id),
        )
}

fn missions_table() -> RouteTable {
    RouteTable::new("control plane")
        .ask(get("/v1/missions", "List missions, oldest first"), |service, who, ()| service.missions(who))
        .ask(
            post("/v1/missions", "Start a mission"),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<NewMission>)| {
                service.create_mission(who, &chosen, &said.read()?)
            },
        )
        .ask(get("/v1/missions/{id}", "Show a mission with its tasks"), |service, who, Path(id): Path<String>| {
            service.mission(who, &id)
        })
        .ask(delete("/v1/missions/{id}", "Cancel a mission"), |service, who, Path(id): Path<String>| {
            service.mission(who, &id)?;
            service.cancel_run(who, &id, String::new())?;
            service.mission(who, &id)
        })
        .ask(
            get("/v1/tasks", "List the tasks of a mission, or of all open missions"),
            |service, who, Query(of): Query<ControlQuery>| service.mission_tasks(who, of.mission_id.as_deref()),
        )
        .ask(get("/v1/workflows", "List the names of the workflows that a mission can have"), |service, _, ()| {
            Ok(service.mission_workflows())
        })
        .ask(
            post("/v1/scheduler/tick", "Wait until the scheduler has assigned what is ready")
                .for_(RouteAudience::Workers),
            |service, who, ()| service.tick(who),
        )
        .ask(get("/v1/status", "Status of colonies, workers, missions and tasks"), |service, who, ()| {
            service.status(who)
        })
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

/// The mission whose tasks are wanted.
#[derive(Deserialize, JsonSchema)]
struct ControlQuery {
    /// Its id; default: all that have not ended.
    mission_id: Option<String>,
}
