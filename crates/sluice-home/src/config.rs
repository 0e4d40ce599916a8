//! `config.toml`: what a person sets for a home.

use std::path::Path;

use serde::Deserialize;
use sluice_api::Problem;
use sluice_worker::harness::Harnesses;

/// The settings of a home.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What a task uses unless it says otherwise.
    pub defaults: Defaults,
    /// What sessions inherit.
    pub env: Env,
    /// What becomes of ended work.
    pub retention: Retention,
    /// What a person is told with.
    pub notify: Notify,
    /// Harnesses of one's own, as they are written.
    pub harnesses: toml::Table,
}

/// What a task uses unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// The harness that does the work.
    pub harness: Option<String>,
    /// The harness that reviews it.
    pub review_harness: Option<String>,
    /// `full` or `reduced`, for steps that do not say.
    pub permissions: Option<String>,
}

/// What sessions inherit of the engine's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// Variables that no session sees.
    pub deny: Vec<String>,
}

/// What becomes of ended work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// After so many days a task or run that has ended is forgotten; without it never.
    pub days: Option<u32>,
}

/// What a person is told with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// A program and its arguments; the message comes on its standard input.
    pub command: Vec<String>,
}

impl Config {
    /// All harnesses: those that are known, and those of one's own.
    pub fn known_harnesses(&self) -> Result<Harnesses, String> {
        let written = toml::Table::from_iter([("harnesses".to_owned(), toml::Value::Table(self.harnesses.clone()))]);
        Harnesses::with_config(&written)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    /// The settings in this file; none when there is no file.
    pub fn read(path: &Path) -> Result<Config, Problem> {
        let unusable = |why: String| {
            Problem::bad_request(format!("{} cannot be used: {why}", path.display()))
                .hint("mend it, or move it away to go on without settings")
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(error) => return Err(unusable(error.to_string())),
        };
        toml::from_str(&text).map_err(|error| unusable(error.to_string().trim_end().to_owned()))
    }
}
