//! Every problem of a `config.toml`, with its place, in the form of the problems of definitions. It knows no key by name
//! but those whose values must fit each other, and it changes no file.

use std::path::Path;
use std::sync::OnceLock;

use sluice_api::Problem;
use sluice_api::client::Outside;
use sluice_api::problem::ProblemStatus;
use sluice_core::findings::CheckFindings;
use sluice_core::problem::{Code, Diagnosis, clip, suggest};
use sluice_core::span::{FileId, Span};
use sluice_dialect::read::{FileSyntax, read as parse};
use sluice_dialect::report;
use sluice_dialect::shape::{Field, FieldKind, Shape, conform};
use sluice_dialect::source::{Sources, decode};
use sluice_dialect::tree::{Node, TableEntry};
use sluice_os::harness::{HarnessError, Harnesses};
use sluice_worker::machine::config::table::{ConfigKey, ConfigKind, find, table};
use sluice_worker::perform::can_be_set;

use super::config::HomeConfig;

/// What is wrong with a file, and the text that it is wrong in.
pub struct ConfigReport {
    pub sources: Sources,
    pub problems: Vec<Diagnosis>,
}

/// Checks these bytes, which are shown as the file `path`.
pub fn check(path: &str, bytes: &[u8]) -> ConfigReport {
    let mut sources = Sources::new();
    let decoded = decode(FileId::default(), bytes);
    let file = sources.add(path, decoded.text);
    if let Some(problem) = decoded.problem {
        return ConfigReport { sources, problems: vec![problem] };
    }
    let parsed = parse(file, sources.text(file), FileSyntax::Toml);
    let mut problems = parsed.problems;
    if let Some(node) = parsed.node {
        problems.extend(look(file, &node, sources.text(file)));
    }
    ConfigReport { sources, problems }
}

/// The settings in this file, which is refused with all that is wrong with it; none when there is no file.
pub fn read(path: &Path) -> Result<HomeConfig, Problem> {
    let bytes = std::fs::read(path).unwrap_or_default(); // what cannot be read is told of by loading it
    let ConfigReport { sources, problems } = check(&path.display().to_string(), &bytes);
    let Some(first) = report::sorted(&problems).into_iter().next() else { return HomeConfig::read(path) };
    let place = sources.position(first.span);
    let more = match problems.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let (shown, code) = (path.display(), first.code.as_str());
    let message = format!("{shown}:{}:{}: {} [{code}]{more}", place.line, place.column, first.message);
    let problem = Problem::new(ProblemStatus::Refused, "bad_config", message);
    Err(problem.hint("`sluice config check` shows every problem and what to do about it"))
}

fn look(file: FileId, root: &Node, text: &str) -> Vec<Diagnosis> {
    let mut findings = CheckFindings::new();
    conform(root, shape(), &mut findings);
    let mut problems = findings.finish();
    // What does not conform is told of already, and is not told of twice in other words.
    let is_told = |problems: &[Diagnosis], entry: &TableEntry| {
        problems.iter().any(|it| holds(entry.key.span, it.span) || holds(entry.value.span, it.span))
    };
    let written: toml::Table = toml::from_str(text).unwrap_or_default();
    for section in root.as_table().unwrap_or_default().iter().filter(|section| section.key.value != HARNESSES) {
        for entry in section.value.as_table().unwrap_or_default() {
            if !is_told(&problems, entry) {
                problems.extend(alone(&section.key.value, entry, &written));
            }
        }
    }
    let own = root.get(HARNESSES).and_then(Node::as_table).unwrap_or_default();
    let known = Harnesses::with_config(&written);
    let wrong = known.as_ref().err().into_iter().flatten().filter_map(|error| harness(own, error));
    let wrong: Vec<Diagnosis> =
        wrong.filter(|(entry, _)| !is_told(&problems, entry)).map(|(_, problem)| problem).collect();
    problems.extend(wrong);
    problems.extend(unknown_harnesses(root, own));
    problems.extend(reserved_variables(root));
    problems.extend(unreachable_webhooks(root));
    if let (true, Err(error)) = (problems.is_empty(), toml::from_str::<HomeConfig>(text)) {
        let span = Span::new(file, error.span().unwrap_or_default());
        problems.push(Diagnosis::new(Code::WrongType, span, error.message()));
    }
    problems
}

const HARNESSES: &str = "harnesses";

fn holds(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// What loading says about one key, as if it stood in the file alone: loading the whole stops at the first.
fn alone(section: &str, entry: &TableEntry, written: &toml::Table) -> Option<Diagnosis> {
    let key = &entry.key.value;
    let value = written.get(section)?.get(key)?.clone();
    let inner = toml::Table::from_iter([(key.clone(), value)]);
    let whole = toml::Table::from_iter([(section.to_owned(), toml::Value::Table(inner))]);
    let error = whole.try_into::<HomeConfig>().err()?;
    let (code, what) = match find(&[section.to_owned(), key.clone()])?.1 {
        ConfigKind::Length => (Code::BadQuantity, "is not a length of time"),
        ConfigKind::Size => (Code::BadQuantity, "is not a size"),
        ConfigKind::Number(..) => (Code::BadQuantity, "is not a number that can be used"),
        ConfigKind::Text
        | ConfigKind::Choice(_)
        | ConfigKind::Truth
        | ConfigKind::List(_)
        | ConfigKind::Section(_)
        | ConfigKind::Named(_)
        | ConfigKind::Other => (Code::NotAChoice, "cannot be used"),
    };
    Some(Diagnosis::new(code, entry.value.span, format!("`{key}` {what}")).help(error.message()))
}

/// What is wrong with a harness of one's own, and the key that it is about, or the harness.
fn harness<'a>(own: &'a [TableEntry], error: &HarnessError) -> Option<(&'a TableEntry, Diagnosis)> {
    let HarnessError::Config { name, key, problem } = error else { return None };
    let whole = own.iter().find(|entry| entry.key.value == *name)?;
    let keys = whole.value.as_table().unwrap_or_default();
    let written = key.as_ref().and_then(|key| keys.iter().find(|entry| entry.key.value == *key));
    let (entry, code, span) = match written {
        Some(entry) => (entry, Code::NotAChoice, entry.value.span),
        None => (whole, Code::MissingKey, whole.key.span),
    };
    let message = format!("the harness `{}` cannot be used: {problem}", clip(name));
    Some((entry, Diagnosis::new(code, span, message)))
}

/// Harnesses that work or review unless something else is said, and that there are none of.
fn unknown_harnesses(root: &Node, own: &[TableEntry]) -> Vec<Diagnosis> {
    let known = Harnesses::builtin();
    let known = known.iter().map(|harness| harness.name.as_str());
    let names: Vec<&str> = known.chain(own.iter().map(|entry| entry.key.value.as_str())).collect();
    let written = ["harness", "review_harness"].into_iter().filter_map(|key| root.get("defaults")?.get(key));
    let unknown = written.filter_map(|node| Some((node, &node.as_text()?.value)));
    let unknown = unknown.filter(|(_, name)| !names.contains(&name.as_str()));
    let told = unknown.map(|(node, name)| {
        Diagnosis::new(Code::NotAChoice, node.span, format!("no harness is called `{}`", clip(name)))
            .maybe_help(suggest(name, names.iter().copied()))
    });
    told.collect()
}

/// Variables that no person can set for sessions.
fn reserved_variables(root: &Node) -> Vec<Diagnosis> {
    let set = root.get("env").and_then(|env| env.get("set")).and_then(Node::as_table).unwrap_or_default();
    let wrong = set.iter().filter(|entry| !can_be_set(&entry.key.value));
    let told = wrong.map(|entry| {
        let message = format!("`{}` cannot be set for sessions", clip(&entry.key.value));
        Diagnosis::new(Code::BadName, entry.key.span, message).help(
            "choose another name: Sluice sets variables that begin with `SLUICE_` itself, and passes none on that ties git \
             to one repository",
        )
    });
    told.collect()
}

/// Webhooks at addresses to which nothing can be posted.
fn unreachable_webhooks(root: &Node) -> Vec<Diagnosis> {
    let all = root.get("notify").and_then(|notify| notify.get("webhook")).and_then(Node::as_list).unwrap_or_default();
    let urls = all.iter().filter_map(|webhook| Some((webhook.get("url")?, &webhook.get("url")?.as_text()?.value)));
    let told = urls.filter_map(|(node, url)| {
        let problem = Outside::at(url, &[]).err()?;
        Some(
            Diagnosis::new(Code::NotAChoice, node.span, "the address of a webhook cannot be used")
                .maybe_help(problem.hint),
        )
    });
    told.collect()
}

/// The shape of the file, from the table of its keys. It is made once and stays: shapes are made for tables that the program
/// has from its beginning.
fn shape() -> &'static Shape {
    static SHAPE: OnceLock<&'static Shape> = OnceLock::new();
    SHAPE.get_or_init(|| section("`config.toml`".to_owned(), "", table()))
}

fn section(what: String, path: &str, keys: &'static [ConfigKey]) -> &'static Shape {
    let fields = keys.iter().map(|key| {
        let inner = if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
        Field::new(&key.name, kind(&inner, &key.kind), &key.about)
    });
    let fields: &'static [Field] = fields.collect::<Vec<_>>().leak();
    let groups: &'static [&'static [Field]] = vec![fields].leak();
    Box::leak(Box::new(Shape::new(what.leak(), groups)))
}

fn kind(path: &str, key: &'static ConfigKind) -> FieldKind {
    let kept = |kind: FieldKind| -> &'static FieldKind { Box::leak(Box::new(kind)) };
    match key {
        ConfigKind::Text => FieldKind::Text,
        ConfigKind::Choice(words) => FieldKind::Choice(words.iter().map(String::as_str).collect::<Vec<_>>().leak()),
        ConfigKind::Number(least, most) => FieldKind::Integer(*least, *most),
        ConfigKind::Truth => FieldKind::Bool,
        ConfigKind::Length | ConfigKind::Size => {
            FieldKind::Either(vec![FieldKind::Text, FieldKind::Integer(0, i64::MAX)].leak())
        }
        ConfigKind::List(inner) => FieldKind::List(kept(kind(path, inner))),
        ConfigKind::Section(keys) => FieldKind::Table(section(format!("`[{path}]`"), path, keys)),
        ConfigKind::Named(inner) => FieldKind::Named(kept(kind(&format!("{path}.NAME"), inner))),
        ConfigKind::Other => FieldKind::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_told_with_its_place() {
        let text = "\
[defaults]
harnes = \"claude\"
review_harness = 3
permissions = \"all\"
[retention]
days = -1
keeps = \"soon\"
[workspaces]
low_disk = \"1 GB\"
[env]
allow = \"PATH\"
set = { SLUICE_TOKEN = \"x\" }
[harnesses.mine]
headles = [\"env\"]
[harnesses.other]
interactive = [\"{prompt}\"]
[notifi]
";
        let ConfigReport { sources, problems } = check("config.toml", text.as_bytes());
        let told: Vec<String> = report::sorted(&problems)
            .iter()
            .map(|it| {
                let place = sources.position(it.span);
                let help = it.help.as_deref().unwrap_or("-");
                format!("{}:{} {} {} ({help})", place.line, place.column, it.code.as_str(), it.message)
            })
            .collect();
        assert_eq!(told.join("\n"), EXPECTED.trim_end());
    }

    const EXPECTED: &str = "\
2:1 S0007 `[defaults]` has no key `harnes` (did you mean `harness`?)
3:18 S0008 `review_harness`: expected text, found a whole number (put it in quotes)
4:15 S0010 `permissions` cannot be `all` (choose from `full` and `reduced`)
6:8 S0012 `days` is -1, but must be from 0 to 4294967295 (-)
7:9 S0012 `keeps` is not a length of time (write a length of time like `7d` or `12h`, or a number of days)
9:12 S0012 `low_disk` is not a size (write a size like `1 GiB` or `200 MiB`, or a number of bytes)
11:9 S0008 `allow`: expected a list of texts, found text (write it as a list, even if it has one entry)
12:9 S0011 `SLUICE_TOKEN` cannot be set for sessions (choose another name: Sluice sets variables that begin with `SLUICE_` \
itself, and passes none on that ties git to one repository)
14:1 S0007 `[harnesses.NAME]` has no key `headles` (did you mean `headless`?)
16:15 S0010 the harness `other` cannot be used: `interactive` must begin with the program to start (-)
17:2 S0007 `config.toml` has no key `notifi` (did you mean `notify`?)
";

    #[test]
    fn what_loads_has_no_problem() {
        let good = "[defaults]\nharness = \"mine\"\n[env.set]\nA = \"b\"\n[harnesses.mine]\nheadless = [\"env\"]\n";
        for text in ["", "# nothing\n", good, "[workspaces]\nkeep = 7\nlow_disk = 1\n"] {
            assert_eq!(check("config.toml", text.as_bytes()).problems, Vec::new(), "{text}");
        }
        for text in ["[defaults", "\u{0}", "defaults = 1\n"] {
            assert!(!check("config.toml", text.as_bytes()).problems.is_empty(), "{text}");
        }
    }
}
