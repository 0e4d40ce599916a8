//! How agent programs are driven: what is started, how the prompt goes in, how the stream is read, what ended well.
//!
//! A harness is data. The ones we know stand in `harness/table.toml`; people add their own in `config.toml`. Nothing
//! here starts a process: an [`HarnessInvocation`] says what to start, a [`stream::Reader`] reads what comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

pub mod hooks;
mod invocation;
mod own;
mod preflight;
pub mod result;
pub mod screens;
mod scripted;
mod setup;
mod skills;
pub mod stream;
mod table;
mod version;

pub use invocation::{HarnessInvocation, HarnessLink, HarnessPromptFile, HarnessRequest};
pub use own::HarnessConfig;
pub use preflight::{
    HarnessAnswer, HarnessCure, HarnessFinding, HarnessLook, HarnessPreflight, HarnessRetry, HarnessScene,
    find_program, repository_of,
};
pub use scripted::HarnessScriptedModel;
pub use setup::{HarnessSetup, HarnessSetupChange, HarnessSetupError};
pub use skills::{HarnessSkill, SKILLS};
pub use version::read_version;

use stream::HarnessFormat;

/// In a terminal that a person can attach to, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarnessMode {
    Interactive,
    /// Without a terminal; the stream is read.
    Headless,
}

/// What the agent may do without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarnessPermissions {
    Full,
    /// A reviewer writes its artifact, an arbiter nothing.
    Reduced,
}

/// How one agent program is driven. The commands that are missing it does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    #[serde(skip)]
    pub name: String,
    pub output: HarnessFormat,
    /// Where skills live, below the person's home.
    pub skills_folder: Option<String>,
    /// What `doctor` says about it.
    pub remark: Option<String>,
    #[serde(skip)]
    pub watchdogs: HarnessWatchdogs,
    interactive: Option<Vec<String>>,
    headless: Option<Vec<String>>,
    reduced_interactive: Option<Vec<String>>,
    reduced_headless: Option<Vec<String>>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    reduced_set: BTreeMap<String, String>,
    #[serde(default)]
    headless_set: BTreeMap<String, String>,
    #[serde(default)]
    unset: Vec<String>,
    version: Vec<String>,
    /// The version that was tried with Sluice last.
    pub tried: Option<String>,
    own_folder: Option<OwnFolder>,
    #[serde(default)]
    looks: preflight::LookTable,
    /// Which of the looks are made before a start.
    #[serde(skip)]
    pub preflight: HarnessPreflight,
    #[serde(default)]
    setup: Vec<setup::SetupRow>,
    /// How a person logs in, in a terminal.
    login: Option<Vec<String>>,
    scripted: Option<HarnessScriptedModel>,
}

/// A configuration folder of the attempt's own, which shares some files with the usual one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFolder {
    variable: String,
    usual: String,
    shared: Vec<String>,
}

impl OwnFolder {
    fn path(&self, private: &std::path::Path) -> std::path::PathBuf {
        private.join(self.usual.trim_start_matches('.'))
    }
}

/// How long a headless agent may be quiet before it is taken for stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarnessWatchdogs {
    /// Until its first sign of life.
    pub start_up: Duration,
    /// Between two of them. Generous: a test run of the project's is silent too.
    pub silence: Duration,
    /// From its final message to the end of its process. Some never end.
    pub after_result: Duration,
}

impl HarnessWatchdogs {
    /// For programs that report as they go.
    pub const STREAMING: HarnessWatchdogs = HarnessWatchdogs {
        start_up: Duration::from_secs(120),
        silence: Duration::from_secs(45 * 60),
        after_result: Duration::from_secs(10),
    };
}

impl Default for HarnessWatchdogs {
    fn default() -> HarnessWatchdogs {
        HarnessWatchdogs::STREAMING
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum HarnessError {
    #[error("no harness is called `{name}`; there are: {known}. Add your own as [harnesses.{name}] in config.toml")]
    Unknown { name: String, known: String },
    #[error("the harness `{name}` has no `{key}` command; give it one under [harnesses.{name}] in config.toml")]
    NoCommand { name: String, key: &'static str },
    #[error("config.toml: [harnesses.{name}]: {problem}")]
    Config { name: String, key: Option<String>, problem: String },
    #[error("config.toml: `harnesses` must be a table: write [harnesses.NAME]")]
    NoTable,
}

/// All harnesses that can be used: the built-in ones and the person's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harnesses {
    by_name: BTreeMap<String, Harness>,
}

impl Harnesses {
    pub fn builtin() -> Harnesses {
        Harnesses { by_name: table::harnesses() }
    }

    /// Those, and what `config.toml` says. A harness of a known name changes only what it names.
    ///
    /// All problems are reported, not the first.
    pub fn with_config(config: &toml::Table) -> Result<Harnesses, Vec<HarnessError>> {
        let mut all = Harnesses::builtin();
        own::add(&mut all.by_name, config)?;
        Ok(all)
    }

    pub fn get(&self, name: &str) -> Result<&Harness, HarnessError> {
        self.by_name.get(name).ok_or_else(|| HarnessError::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Harness> {
        self.by_name.values()
    }
}

impl Harness {
    /// The program that must be there, as a name to be found on PATH or as a path; `{sluice}` is our own.
    pub fn program(&self) -> Option<&str> {
        self.headless.iter().chain(&self.interactive).find_map(|words| words.first()).map(String::as_str)
    }

    /// The command with full permissions, as the table or a person has written it.
    pub fn words(&self, mode: HarnessMode) -> Option<&[String]> {
        match mode {
            HarnessMode::Interactive => self.interactive.as_deref(),
            HarnessMode::Headless => self.headless.as_deref(),
        }
    }

    /// What to run to learn the version; read the answer with [`read_version`].
    pub fn version_command(&self, sluice: &str) -> Option<Vec<String>> {
        let words = self.version.iter().map(|word| word.replace("{sluice}", sluice)).collect::<Vec<_>>();
        (!words.is_empty()).then_some(words)
    }

    /// Whether its program calls us from a terminal: by hooks that its command names, or by a plugin.
    pub fn has_hooks(&self) -> bool {
        let names_hooks = self.interactive.iter().flatten().any(|word| word.contains("{hooks}"));
        match self.output {
            HarnessFormat::Claude | HarnessFormat::Codex => names_hooks,
            HarnessFormat::Opencode => true,
            HarnessFormat::Text
            | HarnessFormat::Gemini
            | HarnessFormat::Goose
            | HarnessFormat::Cursor
            | HarnessFormat::Amp
            | HarnessFormat::Pi
            | HarnessFormat::Copilot
            | HarnessFormat::Qwen
            | HarnessFormat::Agy
            | HarnessFormat::Aider => false,
        }
    }

    /// What a person runs in a terminal to log in.
    pub fn login_command(&self) -> Option<&[String]> {
        self.login.as_deref().filter(|words| !words.is_empty())
    }

    /// The model that the command for a terminal names, else the one without: `--model NAME` or `--model=NAME`. `None` where the
    /// program chooses by itself.
    pub fn model(&self) -> Option<&str> {
        [&self.interactive, &self.headless].into_iter().flatten().find_map(|words| model_of(words))
    }

    /// What a person should know about it before relying on it: `doctor` shows this.
    pub fn warnings(&self) -> Vec<String> {
        [HarnessMode::Interactive, HarnessMode::Headless]
            .into_iter()
            .filter_map(|mode| self.missing_reduction(mode))
            .collect()
    }

    fn missing_reduction(&self, mode: HarnessMode) -> Option<String> {
        let name = &self.name;
        let (normal, reduced, who) = match mode {
            HarnessMode::Interactive => (&self.interactive, &self.reduced_interactive, "a reviewer"),
            HarnessMode::Headless => (&self.headless, &self.reduced_headless, "an arbiter"),
        };
        (normal.is_some() && reduced.is_none()).then(|| {
            format!(
                "the harness `{name}` has no way to reduce the permissions of {who}: it runs with full permissions. \
                 Choose another harness for it, or give [harnesses.{name}] a `reduced` command in config.toml"
            )
        })
    }
}

/// The model that a command names.
fn model_of(words: &[String]) -> Option<&str> {
    let after = words.iter().skip_while(|word| *word != "--model").nth(1).map(String::as_str);
    after.or_else(|| words.iter().find_map(|word| word.strip_prefix("--model=")))
}
