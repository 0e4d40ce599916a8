//! The settings of a home as a list: every key with its value and where that comes from. It changes nothing.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use sluice_api::Problem;
use sluice_api::client::Outside;
use sluice_core::problem::closest;
use sluice_worker::machine::config::page::described;
use sluice_worker::machine::config::table::{ConfigKey, ConfigKind, find, keys, table};

use super::config_check;

/// The key of the webhooks.
const WEBHOOKS: &str = "notify.webhook";

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingOrigin {
    File,
    Default,
    /// The environment variable that the setting names.
    Environment,
}

/// One setting, as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct ListedSetting {
    pub key: String,
    pub value: Option<Value>,
    pub default: Option<Value>,
    pub from: SettingOrigin,
    pub variable: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    pub about: String,
    pub example: Option<Value>,
    /// When a changed value counts, if not the next time it is needed.
    pub counts: Option<String>,
}

/// Every setting of the file at `path`, which need not be there.
pub fn list(path: &Path) -> Result<Vec<ListedSetting>, Problem> {
    let whole = written(path)?;
    let mut found = Vec::new();
    for key in table() {
        gather(&key.name, key, &key.kind, whole.get(&key.name), key.counts.as_ref(), &mut found);
    }
    Ok(found)
}

/// The setting called `name`, in the file at `path`.
pub fn get(path: &Path, name: &str) -> Result<ListedSetting, Problem> {
    let (words, key, kind) = named(name)?;
    let whole = written(path)?;
    let value = words[1..].iter().fold(whole.get(&words[0]), |value, word| value?.get(word));
    let mut found = Vec::new();
    gather(name, key, kind, value, None, &mut found);
    found.into_iter().next().ok_or_else(|| unknown(name))
}

/// The words of a key that holds a value, and what is known of it.
pub fn named(name: &str) -> Result<(Vec<String>, &'static ConfigKey, &'static ConfigKind), Problem> {
    let words = toml_edit::Key::parse(name).map_err(|_| unknown(name))?;
    let words: Vec<String> = words.iter().map(|word| word.get().to_owned()).collect();
    match find(&words) {
        Some((_, ConfigKind::Section(_))) | None => Err(unknown(name)),
        Some((key, kind)) => Ok((words, key, kind)),
    }
}

fn unknown(name: &str) -> Problem {
    let all: Vec<String> = keys().into_iter().map(|(key, _)| key).collect();
    let inside: Vec<&str> = all.iter().map(String::as_str).filter(|key| key.starts_with(&format!("{name}."))).collect();
    let hint = match (closest(name, all.iter().map(String::as_str)), inside.as_slice()) {
        (_, [_, ..]) => format!("it has the keys {}", inside.join(", ")),
        (Some(close), []) => meant(close),
        (None, []) => {
            // A person who knows the key and not the section finds it by its last word.
            let last = name.rsplit('.').next().unwrap_or(name);
            let same = all
                .iter()
                .find(|key| key.rsplit('.').next().is_some_and(|it| closest(last, [it]).is_some() || it == last));
            same.map_or_else(|| "`sluice config list` shows every key".to_owned(), |key| meant(key))
        }
    };
    Problem::not_found(format!("there is no setting called `{name}`")).hint(hint)
}

/// A key that a person may have meant. One of a list of tables is no setting by itself: the list is set whole.
fn meant(key: &str) -> String {
    match key.split_once("[].") {
        None => format!("did you mean `{key}`?"),
        Some((list, inner)) => format!(
            "`{list}` is a list of tables, and is set as a whole, for instance: `sluice config set {list} '[{{ {inner} = \"VALUE\" \
             }}]'`; `sluice config get {list}` shows what it holds"
        ),
    }
}

/// What the file says. Only a file that can be used says something.
fn written(path: &Path) -> Result<Value, Problem> {
    config_check::read(path)?;
    let text = std::fs::read_to_string(path).unwrap_or_default(); // it was read a moment ago, or is not there
    let table: toml::Table = toml::from_str(&text).map_err(|error| Problem::fault(error.to_string()))?;
    serde_json::to_value(table).map_err(|error| Problem::fault(error.to_string()))
}

fn gather(
    path: &str,
    key: &'static ConfigKey,
    kind: &'static ConfigKind,
    value: Option<&Value>,
    counts: Option<&String>,
    found: &mut Vec<ListedSetting>,
) {
    match kind {
        ConfigKind::Section(keys) => {
            for key in keys {
                let inner = value.and_then(|value| value.get(&key.name));
                let counts = key.counts.as_ref().or(counts);
                gather(&format!("{path}.{}", key.name), key, &key.kind, inner, counts, found);
            }
        }
        ConfigKind::Named(inner) => match value.and_then(Value::as_object).filter(|names| !names.is_empty()) {
            None => gather(&format!("{path}.NAME"), key, inner, None, counts, found),
            Some(names) => {
                for (name, value) in names {
                    let name = toml_edit::Key::new(name.as_str());
                    gather(&format!("{path}.{name}"), key, inner, Some(value), counts, found);
                }
            }
        },
        ConfigKind::Text
        | ConfigKind::Choice(_)
        | ConfigKind::Number(..)
        | ConfigKind::Truth
        | ConfigKind::Length
        | ConfigKind::Size
        | ConfigKind::List(_)
        | ConfigKind::Other => found.push(listed(path, key, kind, value, counts)),
    }
}

/// Webhooks as they are shown: whoever knows the whole address of one can post to it.
fn hosts_only(webhooks: &Value) -> Value {
    let shown = |webhook: &Value| {
        let mut webhook = webhook.clone();
        if let Some(url) = webhook.get_mut("url") {
            let host = Outside::at(url.as_str().unwrap_or_default(), &[]).map(|it| it.host().to_owned());
            *url = host.map_or_else(|_| "…".to_owned(), |host| format!("{host}/…")).into();
        }
        webhook
    };
    webhooks.as_array().map_or_else(|| webhooks.clone(), |all| all.iter().map(shown).collect())
}

fn listed(
    path: &str,
    key: &ConfigKey,
    kind: &ConfigKind,
    value: Option<&Value>,
    counts: Option<&String>,
) -> ListedSetting {
    let set = key.variable.as_ref().and_then(|name| std::env::var(name).ok()).filter(|value| !value.is_empty());
    // The default of a table of names is not that of a name in it.
    let default = key.default.clone().filter(|_| key.kind == *kind);
    let (value, from) = match (set, value) {
        (Some(set), _) => (Some(Value::from(set)), SettingOrigin::Environment),
        (None, Some(value)) if path == WEBHOOKS => (Some(hosts_only(value)), SettingOrigin::File),
        (None, Some(value)) => (Some(value.clone()), SettingOrigin::File),
        (None, None) => (default.clone(), SettingOrigin::Default),
    };
    ListedSetting {
        key: path.to_owned(),
        value,
        default,
        from,
        variable: key.variable.clone(),
        kind: described(kind),
        about: key.about.clone(),
        example: key.example.clone(),
        counts: counts.cloned(),
    }
}
