//! The routes for people who look: the board, workers, repeats, costs and saved views.

use axum::extract::Query;
use schemars::JsonSchema;
use serde::Deserialize;
use sluice_api::board::Views;
use sluice_api::usage::CostsBy;
use sluice_home::ask::CostsFilter;

use crate::answer::Said;
use crate::table::{RouteTable, get, put};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("board")
        .ask(
            get("/v1/board", "Show every open task and run, and what has ended today, in one answer"),
            |service, _, Query(wanted): Query<BoardQuery>| service.board(wanted.project.as_deref()),
        )
        .ask(
            get("/v1/board/rows", "Show single rows of the board, as they are now"),
            |service, _, Query(wanted): Query<BoardRowsQuery>| {
                let ids: Vec<String> = wanted.id.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
                service.board_rows(&ids)
            },
        )
        .ask(
            get("/v1/workers", "Show what each worker does, who waits for what, and what work was kept"),
            |service, who, ()| service.workforce(who),
        )
        .ask(get("/v1/schedules", "Show the recipes that repeat, and when each begins next"), |service, _, ()| {
            service.schedules()
        })
        .ask(
            get("/v1/costs", "Show what agents have used up, added up by task, run, project, day, program or model"),
            |service, _, Query(wanted): Query<CostsQuery>| {
                let CostsQuery { by, days, project } = wanted;
                service.costs(CostsFilter { by: by.unwrap_or(CostsBy::Day), days, project: project.as_deref() })
            },
        )
        .ask(get("/v1/views", "List the saved views of the board"), |service, _, ()| service.views())
        .ask(
            put("/v1/views", "Save views of the board, in place of all that there were"),
            |service, who, said: Said<Views>| service.save_views(who, said.read()?),
        )
}

/// Which rows a board shows.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BoardQuery {
    /// Only tasks and runs of this project.
    project: Option<String>,
}

/// Which rows are wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BoardRowsQuery {
    /// The ids of 1 to 100 tasks and runs, with commas between them.
    #[schemars(length(min = 1))]
    id: String,
}

/// How costs are added up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CostsQuery {
    /// By what they are added up; default: by day.
    by: Option<CostsBy>,
    /// Today and the days before it (UTC), so many in all, at most 92; default: 1.
    #[schemars(range(min = 1, max = 92))]
    days: Option<u32>,
    /// Only tasks and runs of this project.
    project: Option<String>,
}
