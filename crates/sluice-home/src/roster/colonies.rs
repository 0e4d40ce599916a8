//! Colonies: groups of workers with the missions they work on, and the repository they share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_api::problem::Problem;
use sluice_engine::host::EngineClock;

use crate::home::registry::{RegistryChange, called};
use crate::home::{Home, project_workers};
use crate::settings::clock::new_id;
use crate::settings::ids::LOCAL;
use crate::settings::ids::only;

/// Letters of a name.
const LONGEST_NAME: usize = 200;
/// Letters of a description or an address.
const LONGEST_TEXT: usize = 10_000;
/// Colonies that a home can have.
const MOST_COLONIES: usize = 10_000;

/// A colony that is wanted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct NewColony {
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Where its repository is, as git understands it.
    #[serde(default)]
    pub repo: Option<String>,
}

/// Founds a colony.
pub(crate) fn found(home: &Arc<Home>, by: &str, wanted: &NewColony, chosen: Option<&str>) -> Result<Value, Problem> {
    must_be_a_name("name", &wanted.name)?;
    for (what, text) in [("description", &wanted.description), ("repo", &wanted.repo)] {
        if text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT || text.contains('\0')) {
            return Err(Problem::bad_request(format!("`{what}` is too long; {LONGEST_TEXT} letters are enough")));
        }
    }
    if wanted.repo.as_ref().is_some_and(|repo| repo.starts_with('-')) {
        return Err(Problem::bad_request("`repo` begins with `-`, which git would take for an option"));
    }
    if home.registry.of("colony/").len() >= MOST_COLONIES {
        return Err(Problem::bad_request(format!("there are {MOST_COLONIES} colonies, and that is enough")));
    }
    let id = match chosen {
        Some(id) => id.to_owned(),
        None => new_id().map_err(Problem::fault)?,
    };
    if let Some(there) = home.registry.get(&format!("colony/{id}")) {
        return Ok(shown(&id, &there));
    }
    let colony = json!({
        "name": wanted.name, "description": wanted.description, "repo": wanted.repo,
        "created_at_ms": home.clock.now().0,
    });
    let entries = vec![(format!("colony/{id}"), Some(colony.clone()))];
    let shown = shown(&id, &colony);
    let happened = RegistryChange { kind: "colony.created", actor: by, data: shown.clone(), entries };
    home.registry.record(home, happened).map_err(|problem| called(problem, &id))?;
    Ok(shown)
}

/// All colonies, oldest first. The one whose work this machine does itself is always there.
pub(crate) fn list(home: &Home) -> Vec<Value> {
    let mut founded: Vec<(i64, Value)> = home
        .registry
        .of("colony/")
        .iter()
        .map(|(id, colony)| (colony["created_at_ms"].as_i64().unwrap_or(0), shown(id, colony)))
        .collect();
    founded.sort_by_key(|(at, _)| *at);
    std::iter::once(local()).chain(founded.into_iter().map(|(_, colony)| colony)).collect()
}

/// The ids of all colonies.
pub(crate) fn ids(home: &Home) -> Vec<String> {
    let founded = home.registry.of("colony/").into_iter().map(|(id, _)| id);
    std::iter::once(LOCAL.to_owned()).chain(founded).collect()
}

/// The colony of this id, or the only one whose id begins like this.
pub(crate) fn find(home: &Home, id: &str) -> Result<Value, Problem> {
    if id == LOCAL {
        return Ok(local());
    }
    if let Some(project) = project_workers::project(home, id) {
        let project = project?;
        return Ok(json!({
            "colony_id": id, "name": project.name, "description": format!("the workers of project {}", project.name),
            "repo": project_workers::repository(&project)?, "created_at_ms": 0,
        }));
    }
    let none = || {
        Problem::not_found(format!("there is no colony `{id}`"))
            .hint("GET /v1/colonies lists them; POST /v1/colonies founds one")
    };
    let founded = home.registry.of("colony/");
    let place = only(founded.iter().map(|(id, _)| id.as_str()), id)?.ok_or_else(none)?;
    let (id, colony) = &founded[place];
    Ok(shown(id, colony))
}

/// Where the repository of a colony is.
pub(crate) fn repository(home: &Home, id: &str) -> Option<String> {
    if let Some(project) = project_workers::project(home, id) {
        return project_workers::repository(&project.ok()?).ok();
    }
    home.registry.get(&format!("colony/{id}"))?["repo"].as_str().map(str::to_owned)
}

fn local() -> Value {
    json!({
        "colony_id": LOCAL, "name": LOCAL, "description": "this machine's own worker", "repo": null, "created_at_ms": 0,
    })
}

fn shown(id: &str, colony: &Value) -> Value {
    let mut shown = colony.clone();
    shown["colony_id"] = id.into();
    shown
}

/// A name for people: not empty, not endless, one line.
pub(crate) fn must_be_a_name(what: &str, text: &str) -> Result<(), Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad_request(format!("`{what}` is empty")));
    }
    if text.chars().count() > LONGEST_NAME || text.chars().any(char::is_control) {
        return Err(Problem::bad_request(format!("`{what}` must be one line of at most {LONGEST_NAME} letters")));
    }
    Ok(())
}

/// A name for programs.
pub(crate) fn must_be_an_id(what: &str, text: &str) -> Result<(), Problem> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(plain) {
        let message = format!("`{what}` must have 1 to {LONGEST_NAME} letters, digits, or any of - _ . :");
        return Err(Problem::bad_request(message));
    }
    Ok(())
}
