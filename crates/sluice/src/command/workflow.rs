//! `sluice workflow`: what definitions there are, their files, and what the codes of problems and
//! refusals mean.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use sluice_core::machine::RefusalCode;
use sluice_core::problem::{Code, Severity, closest};
use sluice_dialect::catalogue::{Catalogue, CatalogueEntry};
use sluice_dialect::{DefinitionFormat, LoadedDefinition, Sources, format};

use crate::args::WorkflowCommand;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_as_written, print_bytes, print_json, say};
use crate::{pages, places};

pub(crate) fn run(arguments: &WorkflowCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        WorkflowCommand::List { all } => list(*all, output),
        WorkflowCommand::Show { name } => show(name, output),
        WorkflowCommand::Explain { code } => explain(code, output),
        WorkflowCommand::Schema { format } => schema(format),
    }
}

/// The definition called `name`, or an answer that helps to find it.
pub(super) fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a CatalogueEntry, CliFailure> {
    catalogue.find(name).ok_or_else(|| {
        let close = closest(name, catalogue.entries.iter().map(CatalogueEntry::name));
        CliFailure::new(CliExit::NotFound, "not_found", format!("there is no definition called `{name}`")).hint(
            match close {
                Some(close) => format!("did you mean `{close}`?"),
                None => "`sluice workflow list` shows what there is".to_owned(),
            },
        )
    })
}

fn list(all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let catalogue = Catalogue::gather(&places::definitions());
    let mut shown: Vec<ListedDefinition<'_>> = Vec::new();
    for entry in &catalogue.entries {
        let loaded = entry.load(&mut Sources::new());
        // A recipe hides no lifecycle, and a file that is neither hides nothing.
        let is_lifecycle =
            |loaded: &LoadedDefinition| loaded.format.map(|format| format == DefinitionFormat::Lifecycle);
        let same = |nearer: &ListedDefinition<'_>| {
            nearer.entry.name() == entry.name() && is_lifecycle(&nearer.loaded) == is_lifecycle(&loaded)
        };
        let hidden = shown.iter().any(same);
        shown.push(ListedDefinition { hidden, entry, loaded });
    }
    shown.retain(|listed| all || !listed.hidden);
    match output {
        CliOutput::Json => print_json(&json!({
            "workflows": shown.iter().map(described).collect::<Vec<_>>()
        })),
        CliOutput::People => print(&format!("{}\n", table(&shown))),
    }
    let broken = shown.iter().filter(|listed| !listed.loaded.is_usable()).count();
    if broken > 0 {
        say(&format!("{broken} cannot be used; `sluice check` tells why"));
    }
    Ok(CliExit::Done)
}

struct ListedDefinition<'a> {
    /// Whether a nearer one of the same name hides it.
    hidden: bool,
    entry: &'a CatalogueEntry,
    loaded: LoadedDefinition,
}

fn kind(loaded: &LoadedDefinition) -> &'static str {
    match loaded.format {
        Some(DefinitionFormat::Lifecycle) => "lifecycle",
        Some(DefinitionFormat::Recipe(_)) => "recipe",
        None => "?",
    }
}

fn described(ListedDefinition { hidden, entry, loaded }: &ListedDefinition<'_>) -> serde_json::Value {
    json!({
        "name": entry.name(),
        "kind": kind(loaded),
        "format": loaded.format.map(DefinitionFormat::word),
        "origin": entry.origin.to_string(),
        "path": entry.path.display().to_string(),
        "description": loaded.description,
        "usable": loaded.is_usable(),
        "hidden": hidden,
        "errors": loaded.count(Severity::Error),
        "warnings": loaded.count(Severity::Warning),
    })
}

fn table(shown: &[ListedDefinition<'_>]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "KIND", "FROM", "DESCRIPTION"]);
    for ListedDefinition { hidden, entry, loaded } in shown {
        let about = match (loaded.is_usable(), hidden) {
            (false, _) => format!("cannot be used: {} in {}", errors(loaded), entry.path.display()),
            (true, true) => "(hidden by a nearer one of the same name)".to_owned(),
            (true, false) => one_line(&loaded.description),
        };
        table.add_row([entry.name(), kind(loaded), &entry.origin.to_string(), &about]);
    }
    table
}

fn errors(loaded: &LoadedDefinition) -> String {
    match loaded.count(Severity::Error) {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn show(name: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let catalogue = Catalogue::gather(&places::definitions());
    let entry = find(&catalogue, name)?;
    match output {
        CliOutput::Json => {
            let mut sources = Sources::new();
            let loaded = entry.load(&mut sources);
            let text = sources.text(loaded.file).to_owned();
            let mut document = described(&ListedDefinition { hidden: false, entry, loaded });
            document["text"] = json!(text);
            print_json(&json!({ "workflow": document }));
        }
        CliOutput::People => print_as_written(&entry.bytes().map_err(|error| {
            let message = format!("cannot read `{}`: {error}", entry.path.display());
            CliFailure::new(CliExit::Refused, "unreadable", message).hint("see whether the file is still there")
        })?),
    }
    Ok(CliExit::Done)
}

fn explain(code: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let problem = Code::parse(code).and_then(|code| Some((code, pages::problem(code)?)));
    let refusal = RefusalCode::parse(code).and_then(|code| Some((code, pages::refusal(code)?)));
    let (page, document) = match (problem, refusal) {
        (Some((code, page)), _) => {
            let about = json!({
                "code": code.as_str(), "severity": code.severity().word(), "title": code.title(), "page": page,
            });
            (page, json!({ "problem": about }))
        }
        (None, Some((code, page))) => {
            (page, json!({ "refusal": { "code": code.as_str(), "title": code.title(), "page": page } }))
        }
        (None, None) => return Err(unknown(code)),
    };
    output.show(&document, || print_bytes(page.as_bytes()))
}

fn unknown(code: &str) -> CliFailure {
    let failure = CliFailure::new(CliExit::NotFound, "not_found", format!("there is no code `{code}`"));
    // Numbers are near to many others; only words are worth a guess.
    let close = closest(code, pages::codes()).filter(|_| !code.contains(|c: char| c.is_ascii_digit()));
    failure.hint(match close {
        Some(close) => format!("did you mean `{close}`?"),
        None => "a problem's code looks like S0107 and stands in the brackets of a report, a refusal's like \
                 no_transition"
            .to_owned(),
    })
}

fn schema(word: &str) -> Result<CliExit, CliFailure> {
    let Some(format) = DefinitionFormat::parse(word) else {
        let words = DefinitionFormat::ALL.map(DefinitionFormat::word).join(", ");
        return Err(CliFailure::new(CliExit::NotFound, "not_found", format!("there is no file format `{word}`"))
            .hint(format!("the formats are {words}")));
    };
    print_json(&format::schema(format));
    Ok(CliExit::Done)
}
