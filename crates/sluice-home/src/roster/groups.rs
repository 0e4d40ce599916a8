//! Groups of workers, with the repository they share. On the wire a group is a colony.

use serde::{Deserialize, Serialize};
use sluice_api::control::{Colony, NewColony};
use sluice_api::problem::Problem;
use sluice_api::project::Project;
use sluice_core::event_name::EventName;
use sluice_engine::host::EngineClock;

use crate::home::registry::{RegistryChange, RegistryEntry, called};
use crate::home::{Home, project_workers};
use crate::settings::ids::{LOCAL, only};

/// Characters of a name.
const LONGEST_NAME: usize = 200;
/// Characters of a description or an address.
const LONGEST_TEXT: usize = 10_000;
const MOST_GROUPS: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GroupEntry {
    name: String,
    description: Option<String>,
    repo: Option<String>,
    created_at_ms: i64,
}

impl RegistryEntry for GroupEntry {
    const PREFIX: &'static str = "colony/";
}

pub(crate) fn found(home: &Home, wanted: &NewColony, id: &str) -> Result<Colony, Problem> {
    must_be_a_name("name", &wanted.name)?;
    for (what, text) in [("description", &wanted.description), ("repo", &wanted.repo)] {
        if text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT || text.contains('\0')) {
            return Err(Problem::bad_request(format!("`{what}` is too long; {LONGEST_TEXT} letters are enough")));
        }
    }
    if wanted.repo.as_ref().is_some_and(|repo| repo.starts_with('-')) {
        return Err(Problem::bad_request("`repo` begins with `-`, which git would take for an option"));
    }
    if home.registry.ids::<GroupEntry>().len() >= MOST_GROUPS {
        return Err(Problem::bad_request(format!("there are {MOST_GROUPS} colonies, and that is enough")));
    }
    if let Some(there) = home.registry.get::<GroupEntry>(id) {
        return Ok(shown(id, there));
    }
    let NewColony { name, description, repo } = wanted.clone();
    let entry = GroupEntry { name, description, repo, created_at_ms: home.clock.now().0 };
    let group = shown(id, entry.clone());
    let happened = RegistryChange::new(EventName::GroupCreated, "person", &group).put(id, &entry);
    home.registry.record(home, happened).map_err(|problem| called(problem, id))?;
    Ok(group)
}

/// All groups, oldest first. The one whose work this machine does itself is always there.
pub(crate) fn list(home: &Home) -> Vec<Colony> {
    let founded = home.registry.all::<GroupEntry>().into_iter();
    let mut founded: Vec<Colony> = founded.map(|(id, entry)| shown(&id, entry)).collect();
    founded.sort_by_key(|group| group.created_at_ms);
    std::iter::once(local()).chain(founded).collect()
}

pub(crate) fn ids(home: &Home) -> Vec<String> {
    std::iter::once(LOCAL.to_owned()).chain(home.registry.ids::<GroupEntry>()).collect()
}

/// The group of this id, or the only one whose id begins like this.
pub(crate) fn find(home: &Home, id: &str) -> Result<Colony, Problem> {
    if id == LOCAL {
        return Ok(local());
    }
    if let Some(project) = project_workers::project(home, id) {
        return of_project(id, &project?);
    }
    let none = || {
        Problem::not_found(format!("there is no colony `{id}`"))
            .hint("`GET /v1/colonies` lists the colonies, `POST /v1/colonies` creates one")
    };
    let mut founded = home.registry.all::<GroupEntry>();
    let place = only(founded.iter().map(|(id, _)| id.as_str()), id)?.ok_or_else(none)?;
    let (id, entry) = founded.swap_remove(place);
    Ok(shown(&id, entry))
}

pub(crate) fn repository(home: &Home, id: &str) -> Option<String> {
    if let Some(project) = project_workers::project(home, id) {
        return project_workers::repository(&project.ok()?).ok();
    }
    home.registry.get::<GroupEntry>(id)?.repo
}

fn of_project(id: &str, project: &Project) -> Result<Colony, Problem> {
    Ok(Colony {
        colony_id: id.to_owned(),
        name: project.name.clone(),
        description: Some(format!("the workers of project {}", project.name)),
        repo: Some(project_workers::repository(project)?),
        created_at_ms: 0,
    })
}

fn local() -> Colony {
    let description = Some("this machine's own worker".to_owned());
    Colony { colony_id: LOCAL.to_owned(), name: LOCAL.to_owned(), description, repo: None, created_at_ms: 0 }
}

fn shown(id: &str, entry: GroupEntry) -> Colony {
    let GroupEntry { name, description, repo, created_at_ms } = entry;
    Colony { colony_id: id.to_owned(), name, description, repo, created_at_ms }
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

pub(crate) fn must_be_an_id(what: &str, text: &str) -> Result<(), Problem> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(plain) {
        let message = format!("`{what}` must have 1 to {LONGEST_NAME} letters, digits, or any of - _ . :");
        return Err(Problem::bad_request(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_an_older_engine_is_read_and_written_with_the_same_keys() {
        let old = r#"{"name":"reef","description":null,"repo":"git@host:reef.git","created_at_ms":1700000000000}"#;
        let entry: GroupEntry = serde_json::from_str(old).expect("an entry");
        assert_eq!(entry.repo.as_deref(), Some("git@host:reef.git"));
        assert_eq!(serde_json::to_string(&entry).expect("an entry"), old);
        let bare: GroupEntry = serde_json::from_str(r#"{"name":"reef"}"#).expect("before there was more");
        assert_eq!(shown("c1", bare).repo, None);
    }
}
