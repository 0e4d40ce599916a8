//! `config.toml`: what a person sets for a home. To add a key, add a field here, with a sentence, an example and its
//! default: `sluice config`, the reference and the schema are made of these structs ([`table`]). A variable that counts more
//! than the file is named by `x-variable`; a section that a running engine does not read again says `x-counts`.
//!
//! A file that is changed while the engine runs is read again when it is next needed; one that cannot be used leaves in
//! force what was before it ([`file`](mod@file)).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_api::Problem;
use sluice_os::harness::{HarnessConfig, Harnesses};

use super::units::{
    bytes, bytes_schema, length, length_schema, optional_length, write_bytes, write_length, write_optional_length,
};

mod file;
mod notify;
pub mod page;
pub mod table;

pub use file::ConfigFile;
pub use notify::{NotifyConfig, QuietHours, WebhookConfig, WebhookKind};

/// So many requests a second one token may go on with, unless a person says otherwise.
const REQUESTS_PER_SECOND: u32 = 2000;
/// So many requests one token may make at once, unless a person says otherwise.
const BURST: u32 = 4000;

/// For so many days ended work is known, unless a person says otherwise.
const KEPT_DAYS: u32 = 90;
/// For so many days the checkout of an ended run stays that holds work, unless a person says otherwise.
const KEPT_CHECKOUT_DAYS: u64 = 7;
/// After so many minutes a person is told that a task waits for a worktree, unless a person says otherwise.
const POOL_FULL_MINUTES: u64 = 10;
const WORKER_MINUTES: u64 = 1;
/// After so many minutes without a word an agent needs a person, unless a person says otherwise.
const QUIET_MINUTES: u64 = 15;
/// With less free bytes than this a disk is low, unless a person says otherwise.
const LOW_DISK: u64 = 1 << 30;
/// With less free bytes than this no new worktree is made, unless a person says otherwise.
const LEAST_FREE: u64 = 200 << 20;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HomeConfig {
    /// What a task uses unless it says otherwise.
    pub defaults: DefaultsConfig,
    /// What sessions and scripts find in their environment.
    pub env: EnvConfig,
    /// Where the engine stores tasks and runs.
    #[schemars(extend("x-counts" = "at the next start of the engine"))]
    pub store: StoreConfig,
    /// How long Sluice keeps what has ended.
    pub retention: RetentionConfig,
    /// What becomes of worktrees, and of the room that they need.
    pub workspaces: WorkspacesConfig,
    /// When a person is told that something waits.
    pub attention: AttentionConfig,
    /// What a person is told with.
    pub notify: NotifyConfig,
    /// How often a token may ask `sluice serve`, and under which names the page answers.
    pub serve: ServeConfig,
    /// How patient the engine is with workers elsewhere.
    pub workers: WorkersConfig,
    /// How engines that share a store are patient with each other.
    #[schemars(extend("x-counts" = "at the next start of the engine"))]
    pub engine: EngineConfig,
    /// Where the engine sends its traces.
    #[schemars(extend("x-counts" = "at the next start of the engine"))]
    pub telemetry: TelemetryConfig,
    /// Agent programs of your own, each under a name that you choose. Under the name of a known program it changes what it
    /// names.
    #[schemars(with = "BTreeMap<String, HarnessConfig>")]
    pub harnesses: toml::Table,
}

/// What a task uses unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultsConfig {
    /// The agent program that does the work of tasks and steps that name none; `claude` unless given.
    #[schemars(example = &"claude", extend("x-variable" = "SLUICE_HARNESS"))]
    pub harness: Option<String>,
    /// The agent program that reviews; unless given, the one that works.
    #[schemars(example = &"codex")]
    pub review_harness: Option<String>,
    /// What agents of steps may do that do not say it: `full` or `reduced`. Sluice checks it and does not use it yet.
    #[schemars(example = &"reduced", extend("enum" = ["full", "reduced"]))]
    pub permissions: Option<String>,
}

/// What sessions and scripts find in their environment: of that of the last command of a person what is allowed here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvConfig {
    /// Variables that sessions see besides the usual ones: `NAME`, or `BEGINS_*`.
    #[schemars(extend("examples" = [["DATABASE_URL", "MY_*"]]))]
    pub allow: Vec<String>,
    /// Variables that no session sees: `NAME`, or `BEGINS_*`.
    #[schemars(extend("examples" = [["AWS_*"]]))]
    pub deny: Vec<String>,
    /// Variables that every session and script has with these values, whatever a person's shell has.
    #[schemars(extend("examples" = [{ "NAME": "value" }]))]
    pub set: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The address of the store: `sqlite:PATH` or `postgres://…`; the home's own file unless given.
    #[schemars(example = &"postgres://sluice@db.example/sluice")]
    pub address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// After so many days a task or run that has ended is forgotten, with everything that it left but its work; 0: never.
    #[schemars(example = 30, extend("x-counts" = "at the next start of the engine"))]
    pub days: u32,
    /// After so long kept work is forgotten: `90d`, or a number of days; unless given, and with 0, never.
    #[serde(deserialize_with = "optional_length", serialize_with = "write_optional_length")]
    #[schemars(schema_with = "length_schema", example = &"90d")]
    pub keeps: Option<Duration>,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        RetentionConfig { days: KEPT_DAYS, keeps: None }
    }
}

impl RetentionConfig {
    /// For how long what has ended is kept; `None`: for good.
    pub fn keep(&self) -> Option<Duration> {
        (self.days > 0).then(|| Duration::from_secs(u64::from(self.days) * 86_400))
    }
}

/// What becomes of worktrees, and of the room that they need.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspacesConfig {
    /// How long the checkout of an ended run stays that holds work of its own: `7d`, `12h`, or a number of days.
    #[serde(deserialize_with = "length", serialize_with = "write_length")]
    #[schemars(schema_with = "length_schema", example = &"12h")]
    pub keep: Duration,
    /// With less free space than this the engine warns: `1 GiB`, or a number of bytes.
    #[serde(deserialize_with = "bytes", serialize_with = "write_bytes")]
    #[schemars(schema_with = "bytes_schema", example = &"2 GiB")]
    pub low_disk: u64,
    /// With less free space than this no new worktree is made.
    #[serde(deserialize_with = "bytes", serialize_with = "write_bytes")]
    #[schemars(schema_with = "bytes_schema", example = &"500 MiB")]
    pub least_free: u64,
}

impl Default for WorkspacesConfig {
    fn default() -> WorkspacesConfig {
        let keep = Duration::from_secs(KEPT_CHECKOUT_DAYS * 86_400);
        WorkspacesConfig { keep, low_disk: LOW_DISK, least_free: LEAST_FREE }
    }
}

/// When a person is told that something waits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// After so long a task that waits for a worktree is in the inbox: `10m`, `0s` for at once.
    #[serde(deserialize_with = "length", serialize_with = "write_length")]
    #[schemars(schema_with = "length_schema", example = &"5m")]
    pub pool_full_after: Duration,
    /// After so long a step for which no worker of its role is connected is in the inbox: `1m`, `0s` for at once.
    #[serde(deserialize_with = "length", serialize_with = "write_length")]
    #[schemars(schema_with = "length_schema", example = &"5m")]
    pub worker_after: Duration,
    /// After so long a living agent that has printed nothing needs a person: `15m`, `2h`; `0s` for never.
    #[serde(deserialize_with = "optional_length", serialize_with = "write_optional_length")]
    #[schemars(schema_with = "length_schema", example = &"30m")]
    pub quiet_after: Option<Duration>,
}

impl Default for AttentionConfig {
    fn default() -> AttentionConfig {
        AttentionConfig {
            pool_full_after: Duration::from_secs(POOL_FULL_MINUTES * 60),
            worker_after: Duration::from_secs(WORKER_MINUTES * 60),
            quiet_after: Some(Duration::from_secs(QUIET_MINUTES * 60)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// So many requests a second one token may go on with.
    #[schemars(example = 500)]
    pub requests_per_second: NonZeroU32,
    /// So many requests one token may make at once.
    #[schemars(example = 1000)]
    pub burst: NonZeroU32,
    /// Names of hosts under which browsers open the page, besides this machine's own and the one of `--listen`: those of a
    /// proxy, say.
    #[schemars(extend("examples" = [["sluice.example.com"]]))]
    pub hosts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// The address of a collector that takes OTLP over HTTP; unless given, traces go nowhere.
    #[schemars(example = &"http://localhost:4318", extend("x-variable" = "OTEL_EXPORTER_OTLP_ENDPOINT"))]
    pub endpoint: Option<String>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        ServeConfig { requests_per_second: number(REQUESTS_PER_SECOND), burst: number(BURST), hosts: Vec::new() }
    }
}

/// How patient the engine is with workers elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkersConfig {
    /// How long a worker may be silent while it holds a step.
    #[schemars(example = 300)]
    pub lease_seconds: u32,
    /// How long one whose connection is gone may be away before its steps are given to others.
    #[schemars(example = 30)]
    pub reconnect_seconds: u32,
}

impl Default for WorkersConfig {
    fn default() -> WorkersConfig {
        WorkersConfig { lease_seconds: 120, reconnect_seconds: 10 }
    }
}

/// How engines that share a store are patient with each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// How long a store that other engines can own stays this one's without a sign of life. Its agents and scripts are
    /// paused after two thirds of that.
    #[schemars(example = 60)]
    pub owner_seconds: u32,
}

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig { owner_seconds: 30 }
    }
}

impl EngineConfig {
    /// The time as such. In less than three seconds nobody can be sure to have stopped.
    pub fn term(&self) -> Duration {
        Duration::from_secs(u64::from(self.owner_seconds.clamp(3, 3600)))
    }
}

impl WorkersConfig {
    /// The lease in milliseconds. One of nothing would be over before it is heard of.
    pub fn lease(&self) -> i64 {
        i64::from(self.lease_seconds.max(1)) * 1000
    }

    /// The time to come back in, in milliseconds. With none at all an agent could not be paused before another begins.
    pub fn reconnect(&self) -> i64 {
        i64::from(self.reconnect_seconds.max(1)) * 1000
    }
}

impl HomeConfig {
    /// All harnesses: those that are known, and those of one's own.
    pub fn known_harnesses(&self) -> Result<Harnesses, String> {
        let written = toml::Table::from_iter([("harnesses".to_owned(), toml::Value::Table(self.harnesses.clone()))]);
        Harnesses::with_config(&written)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    /// The settings in this file; none when there is no file.
    pub fn read(path: &Path) -> Result<HomeConfig, Problem> {
        let unusable = |why: String| {
            Problem::bad_request(format!("{} cannot be used: {why}", path.display()))
                .hint("`sluice config check` shows every problem; fix the file, or move it away to continue with the default settings")
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HomeConfig::default()),
            Err(error) => return Err(unusable(error.to_string())),
        };
        toml::from_str(&text).map_err(|error| unusable(error.to_string().trim_end().to_owned()))
    }
}
