//! The definitions that a project can use, as a person looks at them before something is started: what is in a file, what
//! the checker found, and what the definition asks for. Nothing is started here.

use std::path::PathBuf;
use std::sync::Arc;

use sluice_api::problem::Problem;
use sluice_core::lifecycle::Lifecycle;
use sluice_core::problem::{Code, Severity, closest};
use sluice_core::recipe::Recipe;
use sluice_dialect::catalogue::{Catalogue, CatalogueEntry, CataloguePlaces};
use sluice_dialect::{Definition, LoadedDefinition, Sources};
use sluice_worker::value::plain;

use super::Service;

/// The most findings of one definition that are told.
const MOST_FINDINGS: usize = 200;

/// A definition in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionSummary {
    pub name: String,
    /// `lifecycle`, `recipe`, or `?` for a file that is neither.
    pub kind: &'static str,
    pub description: String,
    /// `repository`, `home` or `built-in`.
    pub origin: String,
    pub errors: usize,
    pub warnings: usize,
    pub usable: bool,
}

/// One finding of the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFinding {
    pub code: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    pub message: String,
    pub line: usize,
    pub help: Option<String>,
}

/// What a definition draws.
#[derive(Clone, Debug)]
pub enum DefinitionPicture {
    Lifecycle(Arc<Lifecycle>),
    Recipe(Arc<Recipe>),
}

/// Something that a recipe asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionInput {
    pub name: String,
    pub kind: &'static str,
    pub required: bool,
    /// What it is otherwise, as a person would type it.
    pub default: Option<String>,
}

/// A definition with everything that can be said about it.
#[derive(Clone, Debug)]
pub struct DefinitionDetail {
    pub listed: DefinitionSummary,
    pub path: String,
    pub picture: Option<DefinitionPicture>,
    pub inputs: Vec<DefinitionInput>,
    pub findings: Vec<DefinitionFinding>,
    /// The greatest number of agent starts, in the checker's words.
    pub starts: Option<String>,
}

impl Service {
    /// What a project can use, or the engine's own folder without one; by name, the nearest of each.
    pub fn definitions(&self, project: Option<&str>) -> Result<Vec<DefinitionSummary>, Problem> {
        let catalogue = self.catalogue(project)?;
        let mut found: Vec<DefinitionSummary> = Vec::new();
        for entry in &catalogue.entries {
            let listed = listed(entry, &entry.load(&mut Sources::new()));
            if !found.iter().any(|nearer| nearer.name == listed.name && nearer.kind == listed.kind) {
                found.push(listed);
            }
        }
        found.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        Ok(found)
    }

    /// One of them, with what the checker says.
    pub fn definition(&self, name: &str, project: Option<&str>) -> Result<DefinitionDetail, Problem> {
        let catalogue = self.catalogue(project)?;
        let entry = catalogue.find(name).ok_or_else(|| {
            let problem = Problem::not_found(format!("there is no definition called `{name}`"));
            match closest(name, catalogue.entries.iter().map(CatalogueEntry::name)) {
                Some(close) => problem.hint(format!("did you mean `{close}`?")),
                None => problem.hint("the list of workflows shows what there is"),
            }
        })?;
        let mut sources = Sources::new();
        let loaded = entry.load(&mut sources);
        let findings = loaded.problems.iter().take(MOST_FINDINGS).map(|problem| DefinitionFinding {
            code: problem.code.as_str(),
            severity: match problem.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            },
            message: problem.message.clone(),
            line: sources.position(problem.span).line,
            help: problem.help.clone(),
        });
        let findings = findings.collect();
        let starts = loaded.problems.iter().find(|problem| problem.code == Code::AgentStarts);
        let starts = starts.map(|problem| problem.message.clone());
        let listed = listed(entry, &loaded);
        let (picture, inputs) = match loaded.definition {
            Some(Definition::Lifecycle(it)) => (Some(DefinitionPicture::Lifecycle(Arc::new(it))), Vec::new()),
            Some(Definition::Recipe(it)) => {
                let inputs = inputs(&it);
                (Some(DefinitionPicture::Recipe(Arc::new(it))), inputs)
            }
            None => (None, Vec::new()),
        };
        Ok(DefinitionDetail { listed, path: entry.path.display().to_string(), picture, inputs, findings, starts })
    }

    /// The lifecycle of a task, as it was pinned when the task was created.
    pub fn task_lifecycle(&self, id: &str) -> Result<Arc<Lifecycle>, Problem> {
        Ok(self.home.tasks.find(id)?.lifecycle.clone())
    }

    /// The names of the projects, in their order.
    pub fn project_names(&self) -> Vec<String> {
        self.home.projects.list().into_iter().map(|project| project.name).collect()
    }

    /// The folder in which something of a project is started; without one, where the engine stands.
    pub fn folder_of_project(&self, project: Option<&str>) -> Result<String, Problem> {
        Ok(self.root(project)?.display().to_string())
    }

    fn root(&self, project: Option<&str>) -> Result<PathBuf, Problem> {
        match project {
            Some(name) => Ok(PathBuf::from(self.home.projects.get(name)?.path)),
            None => Ok(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))),
        }
    }

    fn catalogue(&self, project: Option<&str>) -> Result<Catalogue, Problem> {
        let home = Some(self.home.context.places.home().to_owned());
        Ok(Catalogue::gather(&CataloguePlaces { repository: Some(self.root(project)?), home }))
    }
}

fn listed(entry: &CatalogueEntry, loaded: &LoadedDefinition) -> DefinitionSummary {
    DefinitionSummary {
        name: entry.name().to_owned(),
        kind: match loaded.definition {
            Some(Definition::Lifecycle(_)) => "lifecycle",
            Some(Definition::Recipe(_)) => "recipe",
            None => "?",
        },
        description: loaded.description.split_whitespace().collect::<Vec<_>>().join(" "),
        origin: entry.origin.to_string(),
        errors: loaded.count(Severity::Error),
        warnings: loaded.count(Severity::Warning),
        usable: loaded.is_usable(),
    }
}

fn inputs(recipe: &Recipe) -> Vec<DefinitionInput> {
    let shown = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let input = |input: &sluice_core::recipe::RecipeInput| DefinitionInput {
        name: input.name.as_str().to_owned(),
        kind: input.kind.word(),
        required: input.required && input.default.is_none(),
        default: input.default.as_ref().map(|value| shown(plain(value))),
    };
    recipe.inputs.iter().flatten().map(input).collect()
}
