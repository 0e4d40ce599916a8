//! `/workflows` and `/workflows/NAME`: what can be started, what the checker says about it, and the form that starts it.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use sluice_api::Problem;
use sluice_draw::{Graph, NodeMark, inline_svg};
use sluice_home::ask::{DefinitionDetail, DefinitionPicture, DefinitionSummary, Service};

use super::asked;
use super::frame::{Frame, page};
use super::reply::redirect;
use super::wording::{address, escape};
use crate::app::App;

#[derive(Template)]
#[template(path = "workflows.html")]
pub(super) struct WorkflowsPage {
    frame: Frame,
    listed: Vec<(String, DefinitionSummary)>,
    projects: Vec<(String, String, bool)>,
    has_no_project: bool,
}

#[derive(Template)]
#[template(path = "workflow.html")]
pub(super) struct WorkflowPage {
    frame: Frame,
    it: DefinitionDetail,
    graph: Option<String>,
    edges: Vec<[String; 3]>,
    projects: Vec<(String, String, bool)>,
    /// The address of the list that it stands in.
    list: String,
    can_start: bool,
    is_lifecycle: bool,
}

/// Answers `GET /workflows` of a browser.
pub(super) async fn list(State(app): State<Arc<App>>, frame: Frame) -> Response {
    let project = frame.query.get("project").map(str::to_owned);
    let chosen = project.clone();
    let found = asked(&app, frame.visitor.who(), move |service, _| {
        Ok((service.definitions(project.as_deref())?, service.project_names()))
    });
    match found.await {
        Ok((listed, names)) => {
            let pairs: Vec<(&str, &str)> = chosen.iter().map(|name| ("project", name.as_str())).collect();
            let link = |it: &DefinitionSummary| address(&format!("/workflows/{}", escape(&it.name)), &pairs);
            let listed = listed.into_iter().map(|it| (link(&it), it)).collect();
            page(Ok(WorkflowsPage {
                has_no_project: names.is_empty(),
                projects: projects(names, "/workflows", chosen.as_deref()),
                listed,
                frame: frame.titled("Workflows", "workflows"),
            }))
        }
        Err(problem) => page::<WorkflowsPage>(Err((frame, problem))),
    }
}

/// Answers `GET /workflows/NAME` of a browser. Without a project it is looked for everywhere, and found where one has it.
pub(super) async fn show(State(app): State<Arc<App>>, Path(name): Path<String>, frame: Frame) -> Response {
    let project = frame.query.get("project").map(str::to_owned);
    let (wanted, chosen) = (name.clone(), project.clone());
    let found = asked(&app, frame.visitor.who(), move |service, _| {
        let it = match service.definition(&wanted, project.as_deref()) {
            Err(problem) if project.is_none() => Err(only_project_with(service, &wanted, problem)?),
            found => Ok(found?),
        };
        Ok((it, service.project_names()))
    });
    match found.await {
        Ok((Err(only), _)) => {
            redirect(&frame.query.with(&format!("/workflows/{}", escape(&name)), "project", Some(&only)))
        }
        Ok((Ok(it), names)) => {
            let path = format!("/workflows/{}", escape(&name));
            let graph = it.picture.as_ref().map(|picture| match picture {
                DefinitionPicture::Lifecycle(it) => Graph::of_lifecycle(it),
                DefinitionPicture::Recipe(it) => Graph::of_recipe(it),
            });
            let is_lifecycle = matches!(it.picture, Some(DefinitionPicture::Lifecycle(_)));
            let can_start =
                frame.may_act() && it.listed.usable && matches!(it.picture, Some(DefinitionPicture::Recipe(_)));
            page(Ok(WorkflowPage {
                edges: graph.as_ref().map(edges).unwrap_or_default(),
                graph: graph.map(|graph| drawn(&graph)),
                projects: projects(names, &path, chosen.as_deref()),
                list: frame.query.with("/workflows", "project", chosen.as_deref()),
                can_start,
                is_lifecycle,
                frame: frame.titled(it.listed.name.clone(), "workflows"),
                it,
            }))
        }
        Err(problem) => page::<WorkflowPage>(Err((frame, problem))),
    }
}

/// The one project that has a definition of this name; else what is in the way, which names all that have one.
fn only_project_with(service: &Service, name: &str, missing: Problem) -> Result<String, Problem> {
    let has = |project: &String| service.definition(name, Some(project)).is_ok();
    let mut having: Vec<String> = service.project_names().into_iter().filter(has).collect();
    match having.len() {
        0 => Err(missing),
        1 => Ok(having.remove(0)),
        _ => {
            let message = format!("several projects have a workflow called `{name}`: {}", having.join(", "));
            Err(Problem::not_found(message).hint("choose the project on the page of workflows"))
        }
    }
}

fn drawn(graph: &Graph) -> String {
    let marks = vec![NodeMark { class: "other", ..NodeMark::default() }; graph.nodes.len()];
    inline_svg(graph, &marks).unwrap_or_else(|large| format!("<p>{large}</p>"))
}

/// The same as the picture, as a table.
fn edges(graph: &Graph) -> Vec<[String; 3]> {
    let name = |node: usize| graph.nodes.get(node).map(|node| node.name.clone()).unwrap_or_default();
    graph.edges.iter().map(|edge| [name(edge.from), name(edge.to), edge.label().join(", ")]).collect()
}

/// Each project with the address that chooses it, and whether it is chosen.
fn projects(names: Vec<String>, path: &str, chosen: Option<&str>) -> Vec<(String, String, bool)> {
    let choice = |name: String| {
        let is_chosen = chosen == Some(name.as_str());
        (address(path, &[("project", &name)]), name, is_chosen)
    };
    names.into_iter().map(choice).collect()
}
