//! The four file formats: how each is recognised, the shape of each, and how its tree becomes a draft.

mod fields;
pub mod lifecycle;
mod recipe;
mod recipe_shapes;
mod sense;

use std::fmt;

use sluice_core::problem::{Code, Diagnosis, closest};
use sluice_core::recipe::RecipeDialect;

use crate::shape::{self, Shape};
use crate::tree::{Node, NodeValue};

pub use recipe::lower as lower_recipe;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionFormat {
    Lifecycle,
    Recipe(RecipeDialect),
}

impl DefinitionFormat {
    pub const ALL: [DefinitionFormat; 4] = [
        DefinitionFormat::Lifecycle,
        DefinitionFormat::Recipe(RecipeDialect::Manifest),
        DefinitionFormat::Recipe(RecipeDialect::Grimoire),
        DefinitionFormat::Recipe(RecipeDialect::Template),
    ];

    pub fn shape(self) -> &'static Shape {
        match self {
            DefinitionFormat::Lifecycle => &lifecycle::LIFECYCLE,
            DefinitionFormat::Recipe(RecipeDialect::Manifest) => &recipe_shapes::MANIFEST,
            DefinitionFormat::Recipe(RecipeDialect::Grimoire) => &recipe_shapes::GRIMOIRE,
            DefinitionFormat::Recipe(RecipeDialect::Template) => &recipe_shapes::TEMPLATE,
        }
    }

    /// One word for it: `lifecycle`, `manifest`, `recipe`, `template`.
    pub fn word(self) -> &'static str {
        match self {
            DefinitionFormat::Lifecycle => "lifecycle",
            DefinitionFormat::Recipe(RecipeDialect::Manifest) => "manifest",
            DefinitionFormat::Recipe(RecipeDialect::Grimoire) => "recipe",
            DefinitionFormat::Recipe(RecipeDialect::Template) => "template",
        }
    }

    /// The format called `word`; a recipe's own format also answers to `grimoire`.
    pub fn parse(word: &str) -> Option<DefinitionFormat> {
        let word = if word == "grimoire" { "recipe" } else { word };
        DefinitionFormat::ALL.into_iter().find(|format| format.word() == word)
    }

    /// The format that `node` is written in, by its keys.
    pub fn recognise(node: &Node) -> Result<DefinitionFormat, Box<Diagnosis>> {
        let NodeValue::Table(entries) = &node.value else {
            let message = format!("expected a table of keys, found {}", node.kind_name());
            return Err(Box::new(unrecognised(node, message)));
        };
        let has = |key: &str| entries.iter().any(|entry| entry.key.value == key);
        let is_table = |key: &str| node.get(key).is_some_and(|value| matches!(value.value, NodeValue::Table(_)));
        if has("states") || has("transitions") || has("exit_monitoring") {
            Ok(DefinitionFormat::Lifecycle)
        } else if is_table("workflow") {
            Ok(DefinitionFormat::Recipe(RecipeDialect::Manifest))
        } else if has("template") {
            Ok(DefinitionFormat::Recipe(RecipeDialect::Template))
        } else if has("steps") {
            Ok(DefinitionFormat::Recipe(RecipeDialect::Grimoire))
        } else {
            Err(Box::new(misspelt(node)))
        }
    }
}

impl fmt::Display for DefinitionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

pub fn schema(format: DefinitionFormat) -> serde_json::Value {
    let word = format.word();
    shape::schema(format.shape(), word, &format!("Sluice {word}"))
}

fn unrecognised(node: &Node, message: String) -> Diagnosis {
    Diagnosis::new(Code::UnknownFormat, node.span, message)
        .note("a lifecycle has `states` and `transitions`; a recipe has `name` and `steps`")
        .note("a manifest has a table `workflow` and `steps`; a template has `template` and `steps`")
}

/// None of the keys that tell the formats apart is there; perhaps one is misspelt.
fn misspelt(node: &Node) -> Diagnosis {
    const TELLING: [&str; 5] = ["states", "transitions", "steps", "template", "workflow"];
    let problem = unrecognised(node, "this is none of the formats that Sluice reads".into());
    let NodeValue::Table(entries) = &node.value else { return problem };
    let close = entries.iter().find_map(|entry| closest(&entry.key.value, TELLING).map(|close| (entry, close)));
    match close {
        Some((entry, close)) => Diagnosis { span: entry.key.span, ..problem }.help(format!("did you mean `{close}`?")),
        None => Diagnosis { span: entries.first().map_or(node.span, |entry| entry.key.span), ..problem },
    }
}
