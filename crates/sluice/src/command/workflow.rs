//! `sluice workflow`: what definitions there are, their files, and what problem codes mean.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use sluice_core::problem::{Code, Severity, closest};
use sluice_dialect::catalogue::{Catalogue, Entry};
use sluice_dialect::{Format, format};

use crate::args::Workflow;
use crate::output::{Exit, Failure, Output, print, print_bytes, print_json, say};
use crate::{pages, places};

pub(crate) fn run(arguments: &Workflow, output: Output) -> Result<Exit, Failure> {
    match arguments {
        Workflow::List { all } => list(*all, output),
        Workflow::Show { name } => show(name, output),
        Workflow::Explain { code } => explain(code, output),
        Workflow::Schema { format } => schema(format),
    }
}

/// The definition called `name`, or an answer that helps to find it.
pub(super) fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Entry, Failure> {
    catalogue.find(name).ok_or_else(|| {
        let close = closest(name, catalogue.entries.iter().map(Entry::name));
        Failure::new(Exit::NotFound, "not_found", format!("there is no definition called `{name}`")).hint(match close {
            Some(close) => format!("did you mean `{close}`?"),
            None => "`sluice workflow list` shows what there is".to_owned(),
        })
    })
}

fn list(all: bool, output: Output) -> Result<Exit, Failure> {
    let catalogue = Catalogue::gather(&places::definitions());
    let shown: Vec<(bool, &Entry)> = catalogue
        .entries
        .iter()
        .enumerate()
        .map(|(index, entry)| (catalogue.is_hidden(index), entry))
        .filter(|(hidden, _)| all || !hidden)
        .collect();
    match output {
        Output::Json => print_json(&json!({
            "workflows": shown.iter().map(|(hidden, entry)| described(entry, *hidden)).collect::<Vec<_>>()
        })),
        Output::People => print(&format!("{}\n", table(&shown))),
    }
    let broken = shown.iter().filter(|(_, entry)| entry.loaded.definition.is_none()).count();
    if broken > 0 {
        say(&format!("{broken} cannot be used; `sluice check` tells why"));
    }
    Ok(Exit::Done)
}

fn kind(entry: &Entry) -> &'static str {
    match entry.loaded.format {
        Some(Format::Lifecycle) => "lifecycle",
        Some(Format::Recipe(_)) => "recipe",
        None => "?",
    }
}

fn described(entry: &Entry, hidden: bool) -> serde_json::Value {
    json!({
        "name": entry.name(),
        "kind": kind(entry),
        "format": entry.loaded.format.map(Format::word),
        "origin": entry.origin.to_string(),
        "path": entry.path.display().to_string(),
        "description": entry.loaded.description,
        "usable": entry.loaded.definition.is_some(),
        "hidden": hidden,
        "errors": entry.loaded.count(Severity::Error),
        "warnings": entry.loaded.count(Severity::Warning),
    })
}

fn table(shown: &[(bool, &Entry)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "KIND", "FROM", "DESCRIPTION"]);
    for (hidden, entry) in shown {
        let about = match (&entry.loaded.definition, hidden) {
            (None, _) => format!("cannot be used: {} in {}", errors(entry), entry.path.display()),
            (Some(_), true) => "(hidden by a nearer one of the same name)".to_owned(),
            (Some(_), false) => one_line(&entry.loaded.description),
        };
        table.add_row([entry.name(), kind(entry), &entry.origin.to_string(), &about]);
    }
    table
}

fn errors(entry: &Entry) -> String {
    match entry.loaded.count(Severity::Error) {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn show(name: &str, output: Output) -> Result<Exit, Failure> {
    let catalogue = Catalogue::gather(&places::definitions());
    let entry = find(&catalogue, name)?;
    let text = catalogue.sources.text(entry.loaded.file);
    match output {
        Output::Json => {
            let mut document = described(entry, false);
            document["text"] = json!(text);
            print_json(&json!({ "workflow": document }));
        }
        Output::People => print_bytes(text.as_bytes()),
    }
    Ok(Exit::Done)
}

fn explain(code: &str, output: Output) -> Result<Exit, Failure> {
    let page = Code::parse(code).and_then(|code| Some((code, pages::page(code)?)));
    let Some((code, page)) = page else {
        return Err(Failure::new(Exit::NotFound, "not_found", format!("there is no problem code `{code}`"))
            .hint("a code looks like S0107 and stands in the brackets of a report"));
    };
    match output {
        Output::Json => print_json(&json!({ "problem": {
            "code": code.as_str(),
            "severity": code.severity().word(),
            "title": code.title(),
            "page": page,
        } })),
        Output::People => print_bytes(page.as_bytes()),
    }
    Ok(Exit::Done)
}

fn schema(word: &str) -> Result<Exit, Failure> {
    let Some(format) = Format::parse(word) else {
        let words = Format::ALL.map(Format::word).join(", ");
        return Err(Failure::new(Exit::NotFound, "not_found", format!("there is no file format `{word}`"))
            .hint(format!("the formats are {words}")));
    };
    print_json(&format::schema(format));
    Ok(Exit::Done)
}
