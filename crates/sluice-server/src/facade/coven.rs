//! The routes of grimoires and the workflows made of them.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::grimoire::{GrimoireList, Intervention, StartGrimoire, WorkflowList};

use crate::answer::Said;
use crate::follow::live::FollowQuery;
use crate::keys::RequestKeyedId;
use crate::table::{RouteTable, delete, get, post};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("grimoires")
        .ask(
            get("/grimoires", "List the grimoires that can be started"),
            |service, _, Query(of): Query<WorkflowsQuery>| {
                Ok(GrimoireList { grimoires: service.grimoires(of.project.as_deref())? })
            },
        )
        .ask(get("/workflows", "List workflows, newest first"), |service, _, ()| {
            Ok(WorkflowList { workflows: service.workflows()? })
        })
        .ask(
            // It begins at once and goes on by itself: accepted, not done.
            post("/workflows", "Start a grimoire as a workflow").with(StatusCode::ACCEPTED),
            |service, who, (RequestKeyedId(chosen), said): (RequestKeyedId, Said<StartGrimoire>)| {
                service.start_grimoire(who, &chosen, said.read()?)
            },
        )
        .ask(get("/workflows/{id}", "Show a workflow"), |service, _, Path(id): Path<String>| service.workflow(&id))
        .ask(
            delete("/workflows/{id}", "Cancel a workflow and everything it has started"),
            |service, who, Path(id): Path<String>| service.cancel_workflow(who, &id),
        )
        .ask(
            post("/workflows/{id}/intervention", "Answer the question of a blocked workflow"),
            |service, who, (Path(id), said): (Path<String>, Said<Intervention>)| {
                service.intervene(who, &id, said.read()?)
            },
        )
        .add(
            get("/events", "Stream events as server-sent events")
                .reads::<FollowQuery>()
                .answers_as("text/event-stream"),
            crate::follow::live::sent,
        )
}

/// The project whose grimoires are wanted.
#[derive(Deserialize, JsonSchema)]
struct WorkflowsQuery {
    /// Its name; default: where the engine was started.
    project: Option<String>,
}
