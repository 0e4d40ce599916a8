//! Ids that are shortened: as long as only one thing has an id that begins like this, that one is meant. Those of tasks and
//! runs are looked up in the store; this is for lists in memory.

use std::fmt::Display;
use std::str::FromStr;

use sluice_api::problem::Problem;
use sluice_core::id::RunId;
use sluice_worker::names::{id_from, new_id};

/// The group of runs that the local executor performs.
pub(crate) const LOCAL: &str = "local";
/// The id of the local executor among the workers.
pub(crate) const OWN: &str = "own";
/// So many are named when several could be meant.
const MOST_NAMED: usize = 9;

/// A new id that nothing else has.
pub(crate) fn fresh<T: FromStr<Err: Display>>() -> Result<T, Problem> {
    new_id().map_err(Problem::fault)?.parse().map_err(|error: T::Err| Problem::fault(error.to_string()))
}

/// The id of the run that these words lead to: always the same, and of others another.
pub(crate) fn run_from(words: &[&str]) -> RunId {
    id_from(words).parse().expect("ten letters and digits are an id")
}

/// The place of the id that is exactly this, or else of the only one that begins like this.
pub(crate) fn only<'a>(ids: impl Iterator<Item = &'a str>, begins: &str) -> Result<Option<usize>, Problem> {
    if begins.is_empty() {
        return Ok(None);
    }
    let found: Vec<(usize, &str)> = ids.enumerate().filter(|(_, id)| id.starts_with(begins)).collect();
    if let Some((place, _)) = found.iter().find(|(_, id)| *id == begins) {
        return Ok(Some(*place));
    }
    match found.as_slice() {
        [] => Ok(None),
        [(place, _)] => Ok(Some(*place)),
        several => {
            let ids: Vec<&str> = several.iter().take(MOST_NAMED).map(|(_, id)| *id).collect();
            Err(Problem::bad_request(format!("`{begins}` could be any of: {}", ids.join(", "))).hint("say more of it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_by_what_only_it_begins_with() {
        let ids = ["ab1", "ab12", "c"];
        let found = |begins: &str| only(ids.into_iter(), begins).map_err(|problem| problem.message);
        assert_eq!(found("c"), Ok(Some(2)));
        assert_eq!(found("ab12"), Ok(Some(1)));
        assert_eq!(found("ab1"), Ok(Some(0)), "exactly this one");
        assert_eq!((found("d"), found("")), (Ok(None), Ok(None)));
        assert_eq!(found("a"), Err("`a` could be any of: ab1, ab12".into()));
    }
}
