//! Harnesses of the person's own, from `[harnesses.NAME]` in `config.toml`. Unknown keys are errors that name the key.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::{Table, Value};

use super::stream::HarnessFormat;
use super::table::watchdogs;
use super::{Harness, HarnessError, HarnessLook, HarnessPreflight};

/// The keys of a harness of one's own. This is what is told of them: to a person, an editor and the reference. A value is
/// read by hand, because all that is wrong with it is told at once.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "its fields are read from its schema")]
pub struct HarnessConfig {
    /// The program and its arguments in a session that a person can attach to; `{prompt}` stands for the prompt.
    #[schemars(extend("examples" = [["my-agent", "{prompt}"]]))]
    interactive: Option<Vec<String>>,
    /// The program and its arguments without a person; the prompt is its standard input, unless `{prompt}` or `{prompt_file}`
    /// stands in it.
    #[schemars(extend("examples" = [["my-agent", "--print"]]))]
    headless: Option<Vec<String>>,
    /// The same where the agent may only read, for `permissions: reduced` and for arbiters. Without it they use the normal
    /// one, and `sluice doctor` warns.
    #[schemars(extend("examples" = [["my-agent", "--read-only"]]))]
    reduced: Option<Vec<String>>,
    /// How the output of the program is read: as plain text, or as the stream of this program.
    #[schemars(schema_with = "formats", example = &"text")]
    output: Option<String>,
    /// What is looked at before a start: `true` for everything that is known of the program, `false` for nothing, or the names of
    /// the looks.
    #[schemars(schema_with = "preflight", example = false)]
    preflight: Option<bool>,
}

fn formats(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = HarnessFormat::ALL.iter().map(|format| format.word()).collect();
    json_schema!({ "type": "string", "enum": words })
}

fn preflight(_: &mut SchemaGenerator) -> Schema {
    let words = HarnessLook::ALL.map(HarnessLook::word);
    json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string", "enum": words } }] })
}

/// The names of the keys.
fn keys() -> Vec<String> {
    let schema = schemars::schema_for!(HarnessConfig);
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    properties.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

pub(super) fn add(all: &mut BTreeMap<String, Harness>, config: &Table) -> Result<(), Vec<HarnessError>> {
    let Some(harnesses) = config.get("harnesses") else { return Ok(()) };
    let Value::Table(harnesses) = harnesses else { return Err(vec![HarnessError::NoTable]) };
    let mut problems = Vec::new();
    for (name, value) in harnesses {
        let found = match value {
            Value::Table(table) => read(all.get(name), name, table),
            _ => Err(vec![(None, "must be a table with the key `interactive` or `headless`".to_owned())]),
        };
        match found {
            Ok(harness) => drop(all.insert(name.clone(), harness)),
            Err(found) => {
                let error = |(key, problem)| HarnessError::Config { name: name.clone(), key, problem };
                problems.extend(found.into_iter().map(error));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The key that it is about, if it is about one, and what is wrong.
type KeyProblem = (Option<String>, String);

fn read(known: Option<&Harness>, name: &str, table: &Table) -> Result<Harness, Vec<KeyProblem>> {
    let (mut problems, known_keys) = (Vec::new(), keys());
    for key in table.keys().filter(|key| !known_keys.contains(key)) {
        let problem = format!("unknown key `{key}`; a harness has the keys {}", known_keys.join(", "));
        problems.push((Some(key.clone()), problem));
    }
    let mut command = |key: &str| match table.get(key).map(|value| words(key, value)).transpose() {
        Ok(words) => words,
        Err(problem) => {
            problems.push((Some(key.to_owned()), problem));
            None
        }
    };
    let (interactive, headless, reduced) = (command("interactive"), command("headless"), command("reduced"));
    let output = match table.get("output") {
        None => known.map_or(HarnessFormat::Text, |known| known.output),
        Some(value) => value.as_str().and_then(HarnessFormat::read).unwrap_or_else(|| {
            let words = HarnessFormat::ALL.iter().map(|output| output.word()).collect::<Vec<_>>().join(", ");
            let found = value.as_str().map_or("something else", |word| word);
            problems.push((Some("output".to_owned()), format!("`output` must be one of {words}, not {found}")));
            HarnessFormat::Text
        }),
    };
    let preflight = match table.get("preflight").map(looks).transpose() {
        Ok(looks) => looks,
        Err(problem) => {
            problems.push((Some("preflight".to_owned()), problem));
            None
        }
    };
    if known.is_none() && !table.contains_key("interactive") && !table.contains_key("headless") {
        problems.push((None, "neither `interactive` nor `headless` says what to start".to_owned()));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let before = known.cloned().unwrap_or_default();
    // A person who replaces a command replaces its permissions too: the old reduced one may be another program's.
    let replaced = |own: &Option<Vec<String>>, before: Option<Vec<String>>| own.is_none().then_some(before).flatten();
    let mut harness = Harness {
        name: name.to_owned(),
        output,
        watchdogs: watchdogs(output),
        reduced_interactive: reduced.clone().or(replaced(&interactive, before.reduced_interactive)),
        reduced_headless: reduced.or(replaced(&headless, before.reduced_headless)),
        interactive: interactive.or(before.interactive),
        headless: headless.or(before.headless),
        ..before
    };
    // What a program of the person's own would do with `--version` nobody knows: work, perhaps, or wait for ever. It is
    // started for its work alone.
    if known.is_none_or(|known| known.program() != harness.program()) {
        harness.version.clear();
        harness.tried = None;
        // Neither does anybody know how it is set up: it must be there, and that is all.
        harness.looks = Default::default();
        harness.setup = Vec::new();
        harness.scripted = None;
    }
    if let Some(preflight) = preflight {
        harness.preflight = preflight;
    }
    Ok(harness)
}

/// `true`, `false`, or the looks that are made before a start.
fn looks(value: &Value) -> Result<HarnessPreflight, String> {
    let words = || HarnessLook::ALL.map(HarnessLook::word).join(", ");
    let wanted = || format!("`preflight` must be true, false, or a list of {}", words());
    match value {
        Value::Boolean(true) => Ok(HarnessPreflight::All),
        Value::Boolean(false) => Ok(HarnessPreflight::Only(Vec::new())),
        Value::Array(list) => {
            let looks: Option<Vec<_>> = list.iter().map(|it| HarnessLook::read(it.as_str()?)).collect();
            looks.map(HarnessPreflight::Only).ok_or_else(wanted)
        }
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Datetime(_) | Value::Table(_) => Err(wanted()),
    }
}

fn words(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wanted = || format!("`{key}` must be a list of words, such as [\"my-agent\", \"{{prompt}}\"]");
    let list = value.as_array().ok_or_else(wanted)?;
    let words: Option<Vec<String>> = list.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    let words = words.ok_or_else(wanted)?;
    match words.first() {
        None => Err(format!("`{key}` is empty; its first word is the program to start")),
        Some(program) if program.is_empty() || program.contains("{prompt") => {
            Err(format!("`{key}` must begin with the program to start"))
        }
        Some(_) if words.iter().any(|word| word.contains('\0')) => Err(format!("`{key}` contains a NUL byte")),
        Some(_) => Ok(words),
    }
}
