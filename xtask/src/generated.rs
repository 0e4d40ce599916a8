//! Files that are made from the code, so that they cannot say something else: the JSON Schemas and the reference of
//! the file formats. A test compares what is committed with what would be made.

use sluice_core::task::TaskKey;
use sluice_dialect::format::{self, DefinitionFormat};
use sluice_dialect::shape::{Field, FieldKind, Shape};

/// The path of each file below the root, and what must stand in it.
pub fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = DefinitionFormat::ALL
        .iter()
        .map(|format| (format!("schemas/{format}.schema.json"), format!("{:#}\n", format::schema(*format))))
        .collect();
    files.push(("docs/formats.md".into(), reference()));
    files
}

const INTRODUCTION: &str = "\
<!-- Made by `cargo xtask update` from the shapes that the reader uses. Do not edit by hand. -->

# The file formats

A file is recognised by its keys. Each format can be written in YAML (`.yml`, `.yaml`) or TOML (`.toml`). A key that
is not listed here is an error. For completion in an editor, point it to the schema of the format in `schemas/`
(also printed by `sluice workflow schema FORMAT`).

| format | recognised by | defines |
|---|---|---|
| [lifecycle](#lifecycle) | `states`, `transitions` | the state machine that a task goes through |
| [manifest](#manifest) | a table `workflow` | a recipe: a graph of steps |
| [recipe](#recipe) | `name` and `steps` | a recipe: a sequence or a graph of steps |
| [template](#template) | `template` | a recipe: the steps of a process |

";

fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for format in DefinitionFormat::ALL {
        page.push_str(&format!("## {}\n\n", capitalised(format.word())));
        let mut seen = Vec::new();
        section(format.shape(), &mut page, &mut seen);
    }
    let variables: Vec<String> = TaskKey::variables().map(|word| format!("`{word}`")).collect();
    page.push_str(&include_str!("formats-notes.md").replace("TASK_VARIABLES", &variables.join(", ")));
    page
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The table of a shape, then those of the shapes in it, each once.
fn section(shape: &'static Shape, page: &mut String, seen: &mut Vec<&'static str>) {
    if seen.contains(&shape.what) {
        return;
    }
    seen.push(shape.what);
    page.push_str(&format!("### {}\n\n| key | holds | |\n|---|---|---|\n", capitalised(shape.what)));
    for field in shape.fields() {
        page.push_str(&row(field));
    }
    page.push('\n');
    for field in shape.fields() {
        inner(&field.kind, page, seen);
    }
}

fn inner(kind: &'static FieldKind, page: &mut String, seen: &mut Vec<&'static str>) {
    match kind {
        FieldKind::Table(shape) => section(shape, page, seen),
        FieldKind::List(kind) | FieldKind::Named(kind) => inner(kind, page, seen),
        FieldKind::Either(kinds) => kinds.iter().for_each(|kind| inner(kind, page, seen)),
        FieldKind::Text
        | FieldKind::Integer(..)
        | FieldKind::Bool
        | FieldKind::Duration
        | FieldKind::Choice(_)
        | FieldKind::ChoiceAnyCase(_)
        | FieldKind::Any => {}
    }
}

fn row(field: &Field) -> String {
    let must = if field.required { " **must be there**" } else { "" };
    let only = match field.only {
        [] => String::new(),
        tags => format!(" (only with {})", code_list(tags)),
    };
    format!("| `{}` | {} | {}{only}{must} |\n", field.key, holds(&field.kind), field.doc.replace('|', "\\|"))
}

fn code_list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn holds(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Any => "anything".into(),
        FieldKind::Text => "text".into(),
        FieldKind::Integer(least, most) => format!("{least} to {most}"),
        FieldKind::Bool => "`true` or `false`".into(),
        FieldKind::Duration => "`90s`, `5m`, `1h30m`, or seconds".into(),
        FieldKind::Choice(words) | FieldKind::ChoiceAnyCase(words) => code_list(words),
        FieldKind::List(inner) => format!("list of: {}", holds(inner)),
        FieldKind::Table(shape) => shape.what.into(),
        FieldKind::Named(inner) => format!("by name: {}", holds(inner)),
        FieldKind::Either(kinds) => kinds.iter().map(holds).collect::<Vec<_>>().join(", or "),
    }
}
