//! The reference of `config.toml` as a page, from the same table as everything else about its keys.

use std::fmt::Write as _;

use super::table::{ConfigKey, ConfigKind, keys, table, written};

const BEGIN: &str = "\
# Settings: `config.toml`

<!-- Made by `cargo xtask update` from crates/sluice-worker/src/machine/config.rs. Change it there. -->

The settings of a home are in `$SLUICE_HOME/config.toml` (`~/.sluice/config.toml`). No key is required, and neither is the
file. `sluice config list` shows every key with its present value and where that comes from, `sluice config get KEY` one
value, `sluice config set KEY VALUE` changes it and keeps your comments, `sluice config set KEY --unset` removes it, and
`sluice config check` reports every problem in the file with its place. None of them needs an engine.

The engine reads a changed file the next time it needs a setting, which is at the latest when it starts the next agent. Where a
section says so, a change counts later. If the file cannot be used, the previous settings stay in force, and every command,
`sluice doctor` and the log (`logs/engine.log`) say so. The JSON Schema is in
[schemas/config.schema.json](../schemas/config.schema.json); an editor with a TOML language server completes from it if the
first line of the file is `#:schema PATH-OR-URL`.

A length of time is a text like `\"7d\"`, `\"12h\"` or `\"90m\"`, or a number of days. A size is a text like `\"1 GiB\"` or
`\"200 MiB\"`, or a number of bytes.
";

/// The page, as it is committed.
pub fn page() -> String {
    let mut page = BEGIN.to_owned();
    for section in table() {
        let name = &section.name;
        let heading = if is_named(section) { format!("[{name}.NAME]") } else { format!("[{name}]") };
        let _ = write!(page, "\n## `{heading}`\n\n{}", section.about);
        if let Some(counts) = &section.counts {
            let _ = write!(page, " A change counts {counts}.");
        }
        page.push_str("\n\n| key | type | default | example | |\n|---|---|---|---|---|\n");
        let begins = [format!("{name}."), format!("{name}[]")];
        for (path, key) in keys().into_iter().filter(|(path, _)| begins.iter().any(|it| path.starts_with(it))) {
            page.push_str(&row(&path, key));
        }
    }
    page
}

fn is_named(section: &ConfigKey) -> bool {
    matches!(&section.kind, ConfigKind::Named(inner) if matches!(**inner, ConfigKind::Section(_)))
}

fn row(path: &str, key: &ConfigKey) -> String {
    let cell = |text: String| text.replace('|', "\\|");
    let code = |value: &serde_json::Value| format!("`{}`", written(value));
    let default = key.default.as_ref().map_or_else(|| "none".to_owned(), code);
    // What is said of a table of names is said of each of them.
    let (kind, example) = match &key.kind {
        ConfigKind::Named(inner) => (&**inner, key.example.as_ref().and_then(|example| example.get("NAME"))),
        kind => (kind, key.example.as_ref()),
    };
    let example = example.map(code).unwrap_or_default();
    let variable = key.variable.as_ref().map(|name| format!(" `${name}` counts more.")).unwrap_or_default();
    let counts = key.counts.as_ref().map(|when| format!(" A change counts {when}.")).unwrap_or_default();
    let about = format!("{}{variable}{counts}", key.about);
    format!("| `{path}` | {} | {} | {} | {} |\n", cell(described(kind)), cell(default), cell(example), cell(about))
}

/// What a key may hold, in words.
pub fn described(kind: &ConfigKind) -> String {
    match kind {
        ConfigKind::Text => "text".to_owned(),
        ConfigKind::Choice(words) => {
            format!("one of {}", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
        }
        ConfigKind::Number(i64::MIN, _) => "a whole number".to_owned(),
        ConfigKind::Number(least, _) => format!("a whole number from {least}"),
        ConfigKind::Truth => "`true` or `false`".to_owned(),
        ConfigKind::Length => "a length of time".to_owned(),
        ConfigKind::Size => "a size".to_owned(),
        ConfigKind::List(inner) => format!("a list: {}", described(inner)),
        ConfigKind::Section(_) => "a table".to_owned(),
        ConfigKind::Named(inner) => format!("a table of names: {}", described(inner)),
        ConfigKind::Other => "a value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::machine::config::table::schema;

    #[test]
    fn the_committed_reference_is_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (path, made) in [("docs/config.md", page()), ("schemas/config.schema.json", format!("{:#}\n", schema()))] {
            let file = root.join(path);
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&file, &made).expect("it can be written");
            }
            let committed = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(committed == made, "{path} is out of date: run `cargo xtask update`");
        }
    }
}
