//! Changes one setting in `config.toml` and leaves everything else in the file as it is written: comments, order, blank
//! lines. What would not load, or would be a new problem, is refused, and the file stays.

use std::path::Path;

use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_core::problem::Diagnosis;
use sluice_os::file::{Durability, FileDraft, write_atomically};
use sluice_worker::machine::config::table::ConfigKind;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::config_check::check;
use super::config_list::named;
use super::lock::FileLock;

/// Sets the setting called `name` in the file at `path` to this value, or removes it. The file is made if there is none.
pub fn set(path: &Path, name: &str, value: Option<&str>) -> Result<(), Problem> {
    let (words, _, kind) = named(name)?;
    let lock = path.with_extension("lock");
    let failed = |error: std::io::Error| Problem::unavailable(format!("{} cannot be changed: {error}", path.display()));
    // Two that change the file at once would each lose what the other says.
    let _turn = FileLock::wait(&lock).map_err(failed)?;
    // A link leads to where a person keeps the file, and stays.
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let mut document: DocumentMut = before.parse().map_err(|_| {
        refused(format!("{} is not valid TOML, so that nothing can be changed in it", path.display()))
            .hint("`sluice config check` shows where")
    })?;
    match value {
        Some(value) => put(document.as_table_mut(), &words, item(kind, value)).ok_or_else(|| {
            refused(format!("`{name}` cannot be set: a part of it is no table in {}", path.display()))
        })?,
        None => take(document.as_table_mut(), &words),
    }
    let after = document.to_string();
    // The blank line before a table that is the first one now.
    let after = if before.starts_with('\n') { after.as_str() } else { after.trim_start_matches('\n') };
    if let Some(problem) = added(&before, after).first() {
        let told = refused(format!("`{name}` stays as it is: {}", problem.message));
        return Err(problem.help.iter().fold(told, |told, help| told.hint(help.clone())));
    }
    if after == before {
        return Ok(());
    }
    if file.exists() {
        return write_atomically(&file, after.as_bytes(), Durability::Synced).map_err(failed);
    }
    // Values may be secrets.
    let draft = FileDraft::private(&file, Durability::Synced).map_err(failed)?;
    draft.write(after.as_bytes()).and_then(|()| draft.place()).map_err(failed)
}

fn refused(message: String) -> Problem {
    Problem::new(ProblemStatus::Refused, "bad_setting", message)
}

/// The problems that the file has now and did not have before: what is wrong elsewhere in it is mended elsewhere.
fn added(before: &str, after: &str) -> Vec<Diagnosis> {
    let known = check("", before.as_bytes()).problems;
    let is_new = |problem: &Diagnosis| !known.iter().any(|it| it.code == problem.code && it.message == problem.message);
    check("", after.as_bytes()).problems.into_iter().filter(is_new).collect()
}

/// A value as a person gave it in one word. What is no value of this kind is taken for a text, and refused as one.
fn item(kind: &ConfigKind, value: &str) -> Value {
    let number = || value.trim().parse::<i64>().map(Value::from);
    let literal = || value.parse::<Value>();
    match kind {
        ConfigKind::Text | ConfigKind::Choice(_) => value.into(),
        ConfigKind::Number(..) | ConfigKind::Length | ConfigKind::Size => number().unwrap_or_else(|_| value.into()),
        ConfigKind::Truth => value.parse::<bool>().map_or_else(|_| value.into(), Value::from),
        ConfigKind::List(_) => match literal() {
            Ok(list @ Value::Array(_)) => list,
            Ok(_) | Err(_) => Value::Array(Array::from_iter([value])),
        },
        ConfigKind::Section(_) | ConfigKind::Named(_) | ConfigKind::Other => literal().unwrap_or_else(|_| value.into()),
    }
}

/// Puts a value where these words lead. Nothing, if one of them is a value already.
fn put(table: &mut dyn TableLike, words: &[String], value: Value) -> Option<()> {
    let (first, rest) = words.split_first()?;
    if rest.is_empty() {
        match table.get_mut(first).and_then(Item::as_value_mut) {
            // What stands around the old value, a comment behind it for instance, stays.
            Some(old) => {
                let decor = old.decor().clone();
                *old = value;
                *old.decor_mut() = decor;
            }
            None => drop(table.insert(first, Item::Value(value))),
        }
        return Some(());
    }
    if !table.contains_key(first) {
        let mut new = Table::new();
        // `[harnesses.mine]` needs no `[harnesses]` above it.
        new.set_implicit(rest.len() > 1);
        table.insert(first, Item::Table(new));
    }
    put(table.get_mut(first)?.as_table_like_mut()?, rest, value)
}

/// Takes away what these words lead to, and the tables that have nothing in them then.
fn take(table: &mut dyn TableLike, words: &[String]) {
    let Some((first, rest)) = words.split_first() else { return };
    if rest.is_empty() {
        table.remove(first);
        return;
    }
    let Some(inner) = table.get_mut(first).and_then(Item::as_table_like_mut) else { return };
    take(inner, rest);
    if inner.is_empty() {
        table.remove(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# mine
[defaults]   # what is usual
harness = \"claude\" # the best

[env]
allow = [\"A\"]
";

    #[test]
    fn one_value_changes_and_the_rest_stays_as_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, FILE).expect("written");
        let now = || std::fs::read_to_string(&file).expect("a file");
        let put = |name: &str, value: Option<&str>| set(&file, name, value);
        put("defaults.harness", Some("codex")).expect("set");
        assert_eq!(now(), FILE.replace("claude", "codex"));
        put("defaults.harness", Some("claude")).expect("set");
        put("env.allow", Some("[\"A\", \"B_*\"]")).expect("set");
        put("workspaces.keep", Some("12h")).expect("set");
        put("harnesses.mine.headless", Some("[\"env\"]")).expect("set");
        put("env.set.MY_PLACE", Some("here")).expect("set");
        let all = "[\"A\", \"B_*\"]\n\n[env.set]\nMY_PLACE = \"here\"\n\n[workspaces]\nkeep = \"12h\"\n\n\
                   [harnesses.mine]\nheadless = [\"env\"]\n";
        assert_eq!(now(), FILE.replace("[\"A\"]\n", all));
        for (name, value) in [
            ("workspaces.keep", "soon"),
            ("retention.days", "-1"),
            ("retention.days", "many"),
            ("defaults.harness", "clod"),
            ("defaults.permissions", "all"),
            ("env.set.SLUICE_TOKEN", "x"),
            ("harnesses.mine.output", "telepathy"),
        ] {
            let before = now();
            let refused = put(name, Some(value)).expect_err(name);
            assert_eq!((refused.code.as_str(), now()), ("bad_setting", before), "{name} {value}: {refused:?}");
        }
        for name in ["harnesses.mine.headless", "workspaces.keep", "env.set.MY_PLACE", "serve.burst"] {
            put(name, None).expect("removed");
        }
        assert_eq!(now(), FILE.replace("[\"A\"]", "[\"A\", \"B_*\"]"));
        assert_eq!(put("defaults.harnes", Some("x")).expect_err("no such").status, ProblemStatus::NotFound);
    }
}
