//! `sluice workflow`: what definitions there are, their files, and what the codes of problems and
//! refusals mean.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use sluice_core::machine::RefusalCode;
use sluice_core::problem::{Code, Severity, closest};
use sluice_dialect::catalogue::{Catalogue, Entry};
use sluice_dialect::{Format, Loaded, Sources, format};

use crate::args::Workflow;
use crate::output::{Exit, Failure, Output, print, print_as_written, print_bytes, print_json, say};
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
    let mut shown: Vec<Listed<'_>> = Vec::new();
    for entry in &catalogue.entries {
        let loaded = entry.load(&mut Sources::new());
        // A recipe hides no lifecycle, and a file that is neither hides nothing.
        let is_lifecycle = |loaded: &Loaded| loaded.format.map(|format| format == Format::Lifecycle);
        let same = |nearer: &Listed<'_>| {
            nearer.entry.name() == entry.name() && is_lifecycle(&nearer.loaded) == is_lifecycle(&loaded)
        };
        let hidden = shown.iter().any(same);
        shown.push(Listed { hidden, entry, loaded });
    }
    shown.retain(|listed| all || !listed.hidden);
    match output {
        Output::Json => print_json(&json!({
            "workflows": shown.iter().map(described).collect::<Vec<_>>()
        })),
        Output::People => print(&format!("{}\n", table(&shown))),
    }
    let broken = shown.iter().filter(|listed| !listed.loaded.is_usable()).count();
    if broken > 0 {
        say(&format!("{broken} cannot be used; `sluice check` tells why"));
    }
    Ok(Exit::Done)
}

/// A definition that was looked at.
struct Listed<'a> {
    /// Whether a nearer one of the same name hides it.
    hidden: bool,
    entry: &'a Entry,
    loaded: Loaded,
}

fn kind(loaded: &Loaded) -> &'static str {
    match loaded.format {
        Some(Format::Lifecycle) => "lifecycle",
        Some(Format::Recipe(_)) => "recipe",
        None => "?",
    }
}

fn described(Listed { hidden, entry, loaded }: &Listed<'_>) -> serde_json::Value {
    json!({
        "name": entry.name(),
        "kind": kind(loaded),
        "format": loaded.format.map(Format::word),
        "origin": entry.origin.to_string(),
        "path": entry.path.display().to_string(),
        "description": loaded.description,
        "usable": loaded.is_usable(),
        "hidden": hidden,
        "errors": loaded.count(Severity::Error),
        "warnings": loaded.count(Severity::Warning),
    })
}

fn table(shown: &[Listed<'_>]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "KIND", "FROM", "DESCRIPTION"]);
    for Listed { hidden, entry, loaded } in shown {
        let about = match (loaded.is_usable(), hidden) {
            (false, _) => format!("cannot be used: {} in {}", errors(loaded), entry.path.display()),
            (true, true) => "(hidden by a nearer one of the same name)".to_owned(),
            (true, false) => one_line(&loaded.description),
        };
        table.add_row([entry.name(), kind(loaded), &entry.origin.to_string(), &about]);
    }
    table
}

fn errors(loaded: &Loaded) -> String {
    match loaded.count(Severity::Error) {
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
    match output {
        Output::Json => {
            let mut sources = Sources::new();
            let loaded = entry.load(&mut sources);
            let text = sources.text(loaded.file).to_owned();
            let mut document = described(&Listed { hidden: false, entry, loaded });
            document["text"] = json!(text);
            print_json(&json!({ "workflow": document }));
        }
        Output::People => print_as_written(&entry.bytes().map_err(|error| {
            let message = format!("cannot read `{}`: {error}", entry.path.display());
            Failure::new(Exit::Refused, "unreadable", message).hint("see whether the file is still there")
        })?),
    }
    Ok(Exit::Done)
}

fn explain(code: &str, output: Output) -> Result<Exit, Failure> {
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
    match output {
        Output::Json => print_json(&document),
        Output::People => print_bytes(page.as_bytes()),
    }
    Ok(Exit::Done)
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "not_found", format!("there is no code `{code}`"));
    // Numbers are near to many others; only words are worth a guess.
    let close = closest(code, pages::codes()).filter(|_| !code.contains(|c: char| c.is_ascii_digit()));
    failure.hint(match close {
        Some(close) => format!("did you mean `{close}`?"),
        None => "a problem's code looks like S0107 and stands in the brackets of a report, a refusal's like \
                 no_transition"
            .to_owned(),
    })
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
