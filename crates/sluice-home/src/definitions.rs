//! Definitions: found where the caller stands, pinned when something is started, and made again from what was pinned.

use std::path::Path;
use std::sync::Arc;

use sluice_api::problem::{Problem, Status};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::Plan;
use sluice_dialect::catalogue::{Catalogue, Entry, Places};
use sluice_dialect::pin::Pinned;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::loader::Definitions;

/// The dialect's definitions, from what it pinned.
pub struct Dialect;

impl Definitions for Dialect {
    fn plan(&self, pinned: &[u8]) -> Result<Arc<Plan>, String> {
        match made(pinned)? {
            Definition::Recipe(recipe) => Ok(Arc::new(Plan::new(recipe))),
            Definition::Lifecycle(_) => Err("its pinned definition is a lifecycle, and not a recipe".into()),
        }
    }

    fn lifecycle(&self, pinned: &[u8]) -> Result<Arc<Lifecycle>, String> {
        match made(pinned)? {
            Definition::Lifecycle(lifecycle) => Ok(Arc::new(lifecycle)),
            Definition::Recipe(_) => Err("its pinned definition is a recipe, and not a lifecycle".into()),
        }
    }
}

fn made(pinned: &[u8]) -> Result<Definition, String> {
    let pinned = Pinned::from_bytes(pinned).map_err(|error| error.to_string())?;
    let name = pinned.name().to_owned();
    pinned.load().definition.ok_or_else(|| format!("its pinned definition {name} cannot be read any more"))
}

/// A lifecycle that a task is about to be created with, and what is kept of it.
pub struct Chosen {
    /// The lifecycle.
    pub lifecycle: Arc<Lifecycle>,
    /// What is kept.
    pub pinned: Vec<u8>,
}

/// The lifecycle of this name, seen from a repository: the nearest one. It must be usable now; one that was pinned
/// earlier goes on whatever becomes of its file.
pub fn lifecycle(name: &str, repository: &Path, home: &Path) -> Result<Chosen, Problem> {
    let places = Places { repository: Some(repository.to_owned()), home: Some(home.to_owned()) };
    let catalogue = Catalogue::gather(&places);
    let Some(entry) = catalogue.find(name) else {
        let known: Vec<&str> = catalogue.entries.iter().map(Entry::name).collect();
        let message = format!("there is no workflow `{name}`");
        return Err(Problem::not_found(message).hint(format!("known here: {}", known.join(", "))));
    };
    let unusable = |why: String| {
        Problem::new(Status::Refused, "unusable_workflow", format!("the workflow `{name}` cannot be used: {why}"))
            .hint(format!("`sluice check {}` shows every problem", entry.path.display()))
    };
    let bytes = entry.bytes().map_err(|error| unusable(error.to_string()))?;
    let path = entry.path.display().to_string();
    let source = Source { path: &path, bytes: &bytes };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
    if !loaded.is_usable() {
        let first = loaded.problems.first().map(|problem| problem.message.clone());
        return Err(unusable(first.unwrap_or_else(|| "it has errors".into())));
    }
    let pinned = Pinned::of(&source, &loaded).map(|pinned| pinned.to_bytes());
    match (loaded.definition, pinned) {
        (Some(Definition::Lifecycle(lifecycle)), Some(pinned)) => Ok(Chosen { lifecycle: Arc::new(lifecycle), pinned }),
        (Some(Definition::Recipe(_)), _) => Err(unusable("it is a recipe, and a task needs a lifecycle".into())),
        (Some(Definition::Lifecycle(_)) | None, _) => Err(unusable("no definition can be made of it".into())),
    }
}
