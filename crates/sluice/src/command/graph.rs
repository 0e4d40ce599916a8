//! `sluice graph`: draws a definition.

use std::path::Path;

use serde_json::json;
use sluice_core::problem::Severity;
use sluice_dialect::catalogue::{Catalogue, load_path};
use sluice_dialect::{Definition, LoadedDefinition, Sources, report};
use sluice_draw::{Graph, GraphKind, TextStyle};

use super::workflow;
use crate::args::{GraphArgs, GraphFormat};
use crate::output::{CliExit, CliFailure, CliOutput, print_as_written, print_coloured, print_json, say_coloured};
use crate::places;

pub(crate) fn run(arguments: &GraphArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut sources = Sources::new();
    let loaded = load(&arguments.target, &mut sources)?;
    draw(&loaded, &sources, arguments, output)
}

pub(super) fn load(target: &str, sources: &mut Sources) -> Result<LoadedDefinition, CliFailure> {
    // What looks like a path is one; a bare word is a name first, as everywhere else.
    if looks_like_path(target) {
        let path = Path::new(target);
        if !path.exists() {
            return Err(CliFailure::new(CliExit::NotFound, "not_found", format!("there is no file `{target}`"))
                .hint("name a file that exists, or a definition that `sluice workflow list` shows"));
        }
        return Ok(load_path(path, sources));
    }
    let catalogue = Catalogue::gather(&places::definitions());
    Ok(workflow::find(&catalogue, target)?.load(sources))
}

fn looks_like_path(target: &str) -> bool {
    target.contains(['/', '\\']) || sluice_dialect::catalogue::is_definition_file(Path::new(target))
}

fn draw(
    loaded: &LoadedDefinition,
    sources: &Sources,
    arguments: &GraphArgs,
    output: CliOutput,
) -> Result<CliExit, CliFailure> {
    let Some(definition) = loaded.definition.as_ref().filter(|_| loaded.is_usable()) else {
        let errors: Vec<_> =
            loaded.problems.iter().filter(|problem| problem.severity() == Severity::Error).cloned().collect();
        if output == CliOutput::People {
            say_coloured(&report::text(sources, &errors, report::ReportStyle::Colour));
        }
        let message = format!("`{}` cannot be drawn: it has errors", sources.path(loaded.file));
        return Err(CliFailure::new(CliExit::Refused, "invalid_definition", message)
            .hint("fix the errors above, then run `sluice graph` again"));
    };
    let graph = match definition {
        Definition::Lifecycle(lifecycle) => Graph::of_lifecycle(lifecycle),
        Definition::Recipe(recipe) => Graph::of_recipe(recipe),
    };
    if output == CliOutput::Json {
        print_json(&json!({ "graph": as_json(&graph) }));
        return Ok(CliExit::Done);
    }
    match arguments.format {
        GraphFormat::Text => print_coloured(&sluice_draw::text(&graph, &text_style(false))),
        GraphFormat::Ascii => print_coloured(&sluice_draw::text(&graph, &text_style(true))),
        GraphFormat::Mermaid => print_as_written(sluice_draw::mermaid(&graph).as_bytes()),
        GraphFormat::Dot => print_as_written(sluice_draw::dot(&graph).as_bytes()),
        GraphFormat::Svg => {
            let picture = sluice_draw::svg(&graph).map_err(|error| {
                CliFailure::new(CliExit::Refused, "too_large", error.to_string()).hint("`--format dot` has no limit")
            })?;
            print_as_written(picture.as_bytes());
        }
    }
    Ok(CliExit::Done)
}

/// As wide as the terminal. Colour is taken out again where there is none to see it.
fn text_style(ascii: bool) -> TextStyle {
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0).max(40));
    TextStyle { width: width.unwrap_or(TextStyle::default().width), ascii, ansi: true }
}

fn as_json(graph: &Graph) -> serde_json::Value {
    let nodes = graph.nodes.iter().map(|node| {
        json!({
            "name": node.name,
            "initial": node.initial,
            "terminal": node.terminal,
            "details": node.details,
            "notes": node.notes,
        })
    });
    let edges = graph.edges.iter().map(|edge| {
        json!({
            "from": graph.nodes[edge.from].name,
            "to": graph.nodes[edge.to].name,
            "gate": edge.gate,
            "guard": edge.guard,
            "hooks": edge.hooks,
            "back": edge.back,
        })
    });
    json!({
        "name": graph.title,
        "kind": match graph.kind {
            GraphKind::Lifecycle => "lifecycle",
            GraphKind::Recipe => "recipe",
        },
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    })
}
