//! `sluice config`: the settings of a home, shown, changed and checked without an engine.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Value, json};
use sluice_core::problem::Severity;
use sluice_dialect::report;
use sluice_home::settings::config::table::written;
use sluice_home::settings::config_list::{ListedSetting, SettingOrigin};
use sluice_home::settings::{config_check, config_edit, config_list};

use crate::args::{ConfigCommand, ReportFormat};
use crate::engine;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_coloured, print_json, say};
use crate::{pages, table};

pub(crate) fn run(arguments: &ConfigCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let file = engine::places()?.config();
    match arguments {
        ConfigCommand::List {} => list(&file, output),
        ConfigCommand::Get { key } => get(&file, key, output),
        ConfigCommand::Set { key, value, unset: _ } => set(&file, key, value.as_deref(), output),
        ConfigCommand::Check { file: named, format } => check(&file, named.as_deref(), *format, output),
    }
}

fn list(file: &Path, output: CliOutput) -> Result<CliExit, CliFailure> {
    let settings = config_list::list(file)?;
    output.show(&json!({ "file": file.display().to_string(), "settings": settings }), || {
        let rows = settings.iter().map(|it| {
            let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), written);
            vec![it.key.clone(), shown(&it.value), shown(&it.default), origin(it), first_sentence(&it.about)]
        });
        table::print(&["key", "value", "default", "from", "what it is for"], rows);
        say(&format!("the file: {}{}", file.display(), if file.exists() { "" } else { " (there is none yet)" }));
    })
}

fn origin(setting: &ListedSetting) -> String {
    match (setting.from, &setting.variable) {
        (SettingOrigin::File, _) => "file".to_owned(),
        (SettingOrigin::Default, _) => "default".to_owned(),
        (SettingOrigin::Environment, variable) => format!("${}", variable.as_deref().unwrap_or_default()),
    }
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}

fn get(file: &Path, key: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let setting = config_list::get(file, key)?;
    output.show(&json!({ "setting": setting }), || match &setting.value {
        Some(Value::String(text)) => print(&format!("{text}\n")),
        Some(value) => print(&format!("{}\n", written(value))),
        None => say(&format!("`{key}` is not set, and has no default")),
    })
}

fn set(file: &Path, key: &str, value: Option<&str>, output: CliOutput) -> Result<CliExit, CliFailure> {
    let places = engine::places()?;
    // Its programs and webhooks are run and asked as the person who owns the home.
    sluice_home::ask::denied::must_be_person(&places, "config set")?;
    engine::make_home(&places)?;
    config_edit::set(file, key, value)?;
    // A file that has other problems stays without effect as a whole; whoever changes it is told.
    let Ok(setting) = config_list::get(file, key) else {
        say("warning: the file has other problems, so that it does not count yet");
        say("hint: `sluice config check` shows every problem and what to do about it");
        return output.show(&json!({ "setting": { "key": key } }), || {});
    };
    output.show(&json!({ "setting": setting }), || {
        match setting.from {
            SettingOrigin::File => {}
            SettingOrigin::Default => {
                say(&format!("`{key}` is not in {} (any more): its default counts", file.display()))
            }
            SettingOrigin::Environment => say(&format!("note: the variable {} counts more", origin(&setting))),
        }
        if let Some(when) = &setting.counts {
            say(&format!("note: a change counts {when}"));
        }
    })
}

fn check(home: &Path, named: Option<&Path>, format: ReportFormat, output: CliOutput) -> Result<CliExit, CliFailure> {
    let file = named.unwrap_or(home);
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => Vec::new(),
        Err(error) => {
            let (exit, code) = match error.kind() {
                ErrorKind::NotFound => (CliExit::NotFound, "not_found"),
                _ => (CliExit::Refused, "unreadable"),
            };
            let message = format!("cannot check `{}`: {error}", file.display());
            return Err(CliFailure::new(exit, code, message).hint("name a file that exists"));
        }
    };
    let found = config_check::check(&file.display().to_string(), &bytes);
    let format = match output {
        CliOutput::Json => ReportFormat::Json,
        CliOutput::People => format,
    };
    match format {
        ReportFormat::Text => {
            print_coloured(&report::text(&found.sources, &found.problems, report::ReportStyle::Colour));
            say(&report::summary(&found.problems, 1));
        }
        ReportFormat::Json => print_json(&report::json(&found.sources, &found.problems)),
        ReportFormat::Sarif => print_json(&report::sarif(&found.sources, &found.problems, &pages::description)),
    }
    let is_broken = found.problems.iter().any(|problem| problem.severity() == Severity::Error);
    Ok(if is_broken { CliExit::Refused } else { CliExit::Done })
}
