//! Definitions: found where the caller stands, pinned when something is started, and made again from what was pinned.

pub(crate) mod committed;
pub(crate) mod shelves;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::RunPlan;
use sluice_dialect::catalogue::{Catalogue, CatalogueEntry, CataloguePlaces, HOME_FOLDER, load_path};
use sluice_dialect::pin::DefinitionPin;
use sluice_dialect::{Definition, DefinitionFile, LoadedDefinition, Sources};
use sluice_engine::loader::Definitions;

use crate::definitions::committed::{CommittedCatalogue, DefinitionSite};
use crate::home::Home;

pub struct PinnedDefinitions;

impl Definitions for PinnedDefinitions {
    fn plan(&self, pinned: &[u8]) -> Result<Arc<RunPlan>, String> {
        match made(pinned)? {
            Definition::Recipe(recipe) => Ok(Arc::new(RunPlan::new(recipe))),
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
    let pinned = DefinitionPin::from_bytes(pinned).map_err(|error| error.to_string())?;
    let name = pinned.name().to_owned();
    pinned.load().definition.ok_or_else(|| format!("its pinned definition {name} cannot be read any more"))
}

/// A lifecycle that a task is about to be created with, and what is kept of it.
pub struct ChosenLifecycle {
    pub lifecycle: Arc<Lifecycle>,
    pub pinned: Vec<u8>,
}

/// What a lifecycle is called where one is looked for.
const LIFECYCLE: &str = "workflow";

pub(crate) struct FoundDefinition {
    pub(crate) path: PathBuf,
    pub(crate) bytes: io::Result<Vec<u8>>,
    pub(crate) loaded: LoadedDefinition,
    /// Where it was read, for people, if not in a checkout or in the home.
    pub(crate) told: String,
    /// The commit of the default branch that the engine looked in, if it did and there is one.
    pub(crate) commit: Option<String>,
}

impl FoundDefinition {
    pub(crate) fn in_file(path: PathBuf) -> FoundDefinition {
        let loaded = load_path(&path, &mut Sources::new());
        FoundDefinition { bytes: std::fs::read(&path), path, loaded, told: String::new(), commit: None }
    }
}

/// The names of what a catalogue has of this kind.
fn known(catalogue: &Catalogue, what: &str) -> String {
    let is_such = |entry: &&CatalogueEntry| match entry.load(&mut Sources::new()).definition {
        Some(Definition::Lifecycle(_)) => what == LIFECYCLE,
        Some(Definition::Recipe(_)) => what != LIFECYCLE,
        None => false,
    };
    let names: Vec<&str> = catalogue.entries.iter().filter(is_such).map(CatalogueEntry::name).collect();
    names.join(", ")
}

/// What is called so, seen from a repository: the nearest one. `what` is looked for, in words.
pub(crate) fn find(
    home: &Home,
    what: &str,
    name: &str,
    root: &Path,
    reading: DefinitionSite,
) -> Result<FoundDefinition, Problem> {
    let folder = home.context.places.home();
    let places = CataloguePlaces { repository: Some(root.to_owned()), home: Some(folder.to_owned()) };
    let none = |catalogue: &Catalogue, place: &str| {
        Problem::not_found(format!("there is no {what} `{name}`{place}"))
            .hint(format!("known here: {}", known(catalogue, what)))
    };
    match reading {
        DefinitionSite::Checkout => {
            let catalogue = Catalogue::gather(&places);
            let entry = catalogue.find(name).ok_or_else(|| none(&catalogue, ""))?;
            let loaded = entry.load(&mut Sources::new());
            Ok(FoundDefinition {
                path: entry.path.clone(),
                bytes: entry.bytes(),
                loaded,
                told: String::new(),
                commit: None,
            })
        }
        DefinitionSite::Commit => {
            let committed = CommittedCatalogue::seen_from(home, root, name)?;
            let Some(entry) = committed.find(name) else {
                let near = Catalogue::gather(&places).find(name).map(|entry| entry.path.clone());
                let lies = near.or_else(|| Some(root.join(name)).filter(|file| file.is_file()));
                let path = lies.ok_or_else(|| none(&committed.catalogue, &format!(" in {}", committed.place)))?;
                return uncommitted(path, folder, &committed);
            };
            let (loaded, told) = (committed.load(entry, &mut Sources::new())?, committed.told(entry));
            let commit = committed.commit().map(str::to_owned);
            Ok(FoundDefinition { path: committed.file(entry), bytes: entry.bytes(), loaded, told, commit })
        }
    }
}

/// A definition that only lies in a checkout. Everything else comes before it, so it takes nothing's place; but an agent
/// may have written it, so it does not act for a person.
fn uncommitted(path: PathBuf, home: &Path, committed: &CommittedCatalogue) -> Result<FoundDefinition, Problem> {
    let place = &committed.place;
    let shown = path.display().to_string();
    let found = FoundDefinition::in_file(path);
    if acts_as_person(&found.loaded) {
        let message =
            format!("{shown} acts as a person, and is not in {place}: the engine does not start it by itself");
        let folder = home.join(HOME_FOLDER);
        let cure = format!("commit it to the default branch, or put it into {}", folder.display());
        return Err(Problem::new(ProblemStatus::Refused, "unusable_recipe", message).hint(cure));
    }
    let told = format!("{shown} in the checkout; it is not in {place}, so any process that writes there can change it");
    Ok(FoundDefinition { told, commit: committed.commit().map(str::to_owned), ..found })
}

pub(crate) fn acts_as_person(loaded: &LoadedDefinition) -> bool {
    match &loaded.definition {
        Some(Definition::Recipe(recipe)) => recipe.steps.iter().any(|step| step.acts_as_person),
        Some(Definition::Lifecycle(_)) | None => false,
    }
}

/// The lifecycle of this name, seen from a repository. It must be usable now; one that was pinned earlier goes on whatever
/// becomes of its file.
pub(crate) fn lifecycle(
    home: &Home,
    name: &str,
    root: &Path,
    reading: DefinitionSite,
) -> Result<ChosenLifecycle, Problem> {
    let FoundDefinition { path, bytes, loaded, .. } = find(home, LIFECYCLE, name, root, reading)?;
    let shown = path.display().to_string();
    let unusable = |why: String| {
        let message = format!("the workflow `{name}` cannot be used: {why}");
        let problem = Problem::new(ProblemStatus::Refused, "unusable_workflow", message);
        problem.hint(format!("`sluice check {shown}` shows every problem"))
    };
    let bytes = bytes.map_err(|error| unusable(error.to_string()))?;
    if !loaded.is_usable() {
        let first = loaded.problems.first().map(|problem| problem.message.clone());
        return Err(unusable(first.unwrap_or_else(|| "it has errors".into())));
    }
    let pinned =
        DefinitionPin::of(&DefinitionFile { path: &shown, bytes: &bytes }, &loaded).map(|pinned| pinned.to_bytes());
    match (loaded.definition, pinned) {
        (Some(Definition::Lifecycle(lifecycle)), Some(pinned)) => {
            Ok(ChosenLifecycle { lifecycle: Arc::new(lifecycle), pinned })
        }
        (Some(Definition::Recipe(_)), _) => {
            let folder = home.context.places.home().to_owned();
            let places = CataloguePlaces { repository: Some(root.to_owned()), home: Some(folder) };
            let lifecycles = known(&Catalogue::gather(&places), LIFECYCLE);
            Err(unusable("it is a recipe, and a task needs a lifecycle".into())
                .hint(format!("`sluice start {name}` runs the recipe; lifecycles known here: {lifecycles}")))
        }
        (Some(Definition::Lifecycle(_)) | None, _) => Err(unusable("no definition can be made of it".into())),
    }
}
