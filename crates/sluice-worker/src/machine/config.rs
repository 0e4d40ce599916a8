//! `config.toml`: what a person sets for a home. A file that is changed while the engine runs is read again when it is next
//! needed; one that cannot be used leaves in force what was before it.

use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use sluice_api::Problem;
use sluice_os::harness::Harnesses;

use super::units::{bytes, length, optional_length};

/// So many requests a second one token may go on with, unless a person says otherwise.
const REQUESTS_PER_SECOND: u32 = 2000;
/// So many requests one token may make at once, unless a person says otherwise.
const BURST: u32 = 4000;

/// For so many days ended work is known, unless a person says otherwise.
const KEPT_DAYS: u32 = 90;
/// For so many days the checkout of an ended run stays that holds work, unless a person says otherwise.
const KEPT_CHECKOUT_DAYS: u64 = 7;
/// After so many minutes without a word an agent needs a person, unless a person says otherwise.
const QUIET_MINUTES: u64 = 15;
/// With less free bytes than this a disk is low, unless a person says otherwise.
const LOW_DISK: u64 = 1 << 30;
/// With less free bytes than this no new worktree is made, unless a person says otherwise.
const LEAST_FREE: u64 = 200 << 20;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HomeConfig {
    /// What a task uses unless it says otherwise.
    pub defaults: DefaultsConfig,
    pub env: EnvConfig,
    pub store: StoreConfig,
    pub retention: RetentionConfig,
    /// What becomes of worktrees, and of the room that they need.
    pub workspaces: WorkspacesConfig,
    /// When a person is told that something waits.
    pub attention: AttentionConfig,
    /// What a person is told with.
    pub notify: NotifyConfig,
    pub serve: ServeConfig,
    pub workers: WorkersConfig,
    /// How engines that share a store are patient with each other.
    pub engine: EngineConfig,
    pub telemetry: TelemetryConfig,
    /// Harnesses of one's own, as they are written.
    pub harnesses: toml::Table,
}

/// What a task uses unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultsConfig {
    pub harness: Option<String>,
    pub review_harness: Option<String>,
    /// `full` or `reduced`, for steps that do not say.
    pub permissions: Option<String>,
}

/// What sessions inherit of the engine's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvConfig {
    /// Variables that sessions see besides the usual ones: `NAME`, or `BEGINS_*`.
    pub allow: Vec<String>,
    /// Variables that no session sees.
    pub deny: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The address of the store: `sqlite:PATH` or `postgres://…`; the home's own file unless given.
    pub address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// After so many days a task or run that has ended is forgotten, with everything that it left but its work; 0: never.
    pub days: u32,
    /// After so long kept work is forgotten: `90d`, or a number of days; unless given, and with 0, never.
    #[serde(deserialize_with = "optional_length")]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspacesConfig {
    /// How long the checkout of an ended run stays that holds work of its own: `7d`, `12h`, or a number of days.
    #[serde(deserialize_with = "length")]
    pub keep: Duration,
    /// With less free space than this the engine warns: `1 GiB`, or a number of bytes.
    #[serde(deserialize_with = "bytes")]
    pub low_disk: u64,
    /// With less free space than this no new worktree is made.
    #[serde(deserialize_with = "bytes")]
    pub least_free: u64,
}

impl Default for WorkspacesConfig {
    fn default() -> WorkspacesConfig {
        let keep = Duration::from_secs(KEPT_CHECKOUT_DAYS * 86_400);
        WorkspacesConfig { keep, low_disk: LOW_DISK, least_free: LEAST_FREE }
    }
}

/// When a person is told that something waits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// After so long a living agent that has printed nothing needs a person: `15m`, `2h`; `0s` for never.
    #[serde(deserialize_with = "optional_length")]
    pub quiet_after: Option<Duration>,
}

impl Default for AttentionConfig {
    fn default() -> AttentionConfig {
        AttentionConfig { quiet_after: Some(Duration::from_secs(QUIET_MINUTES * 60)) }
    }
}

/// What a person is told with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// A program and its arguments; the message comes on its standard input.
    pub command: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// So many requests a second one token may go on with.
    pub requests_per_second: NonZeroU32,
    /// So many requests one token may make at once.
    pub burst: NonZeroU32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// The address of a collector that takes OTLP over HTTP; without it, and without the variables for it, nobody.
    pub endpoint: Option<String>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        ServeConfig { requests_per_second: number(REQUESTS_PER_SECOND), burst: number(BURST) }
    }
}

/// How patient the engine is with workers elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkersConfig {
    /// How long a worker may be silent while it holds a step.
    pub lease_seconds: u32,
    /// How long one whose connection is gone may be away before its steps are given to others.
    pub reconnect_seconds: u32,
}

impl Default for WorkersConfig {
    fn default() -> WorkersConfig {
        WorkersConfig { lease_seconds: 120, reconnect_seconds: 10 }
    }
}

/// How engines that share a store are patient with each other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// How long a store that other engines can own stays this one's without a sign of life. Its agents and scripts are
    /// paused after two thirds of that.
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
                .hint("fix the file, or move it away to continue with the default settings")
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HomeConfig::default()),
            Err(error) => return Err(unusable(error.to_string())),
        };
        toml::from_str(&text).map_err(|error| unusable(error.to_string().trim_end().to_owned()))
    }
}

/// The settings of a home, as the file has them now.
pub struct ConfigFile {
    file: PathBuf,
    kept: Mutex<LoadedConfig>,
}

struct LoadedConfig {
    mark: Option<ConfigStamp>,
    config: Arc<HomeConfig>,
    harnesses: Arc<Harnesses>,
}

/// Which file it is, how long, and when it was last changed.
type ConfigStamp = (u64, u64, i64, i64);

impl ConfigFile {
    /// Reads the settings in this file. It must be usable now.
    pub fn open(file: PathBuf) -> Result<ConfigFile, Problem> {
        let mark = mark(&file);
        let (config, harnesses) = read(&file)?;
        let kept = Mutex::new(LoadedConfig { mark, config: Arc::new(config), harnesses: Arc::new(harnesses) });
        Ok(ConfigFile { file, kept })
    }

    pub fn config(&self) -> Arc<HomeConfig> {
        self.now(|kept| kept.config.clone())
    }

    /// All harnesses: those that are known, and those of one's own.
    pub fn harnesses(&self) -> Arc<Harnesses> {
        self.now(|kept| kept.harnesses.clone())
    }

    fn now<T>(&self, take: impl FnOnce(&LoadedConfig) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = mark(&self.file);
        if mark != kept.mark {
            kept.mark = mark;
            match read(&self.file) {
                Ok((config, harnesses)) => {
                    kept.config = Arc::new(config);
                    kept.harnesses = Arc::new(harnesses);
                    tracing::info!("{} was read again", self.file.display());
                }
                Err(problem) => tracing::warn!("{}; what it said before stays in force", problem.message),
            }
        }
        take(&kept)
    }
}

fn mark(file: &Path) -> Option<ConfigStamp> {
    let about = file.metadata().ok()?;
    Some((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
}

fn read(file: &Path) -> Result<(HomeConfig, Harnesses), Problem> {
    let config = HomeConfig::read(file)?;
    let harnesses = config.known_harnesses();
    let harnesses = harnesses.map_err(|why| Problem::bad_request(format!("{}: {why}", file.display())))?;
    Ok((config, harnesses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_counts_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, log) = (folder.path().join("config.toml"), folder.path().join("log"));
        let _log = crate::machine::log::begin_here(&log);
        let settings = ConfigFile::open(file.clone()).expect("no file is none");
        let harness = || settings.config().defaults.harness.clone();
        assert_eq!(harness(), None);
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).expect("written");
            std::fs::rename(&new, &file).expect("in place");
        };
        write("[defaults]\nharness = \"demo\"\n");
        assert_eq!(harness().as_deref(), Some("demo"));
        write("[defaults\n");
        assert_eq!(harness().as_deref(), Some("demo"));
        write("[defaults]\nharness = \"codex\"\n");
        assert_eq!(harness().as_deref(), Some("codex"));
        let told = std::fs::read_to_string(log).expect("a log");
        assert!(told.contains("what it said before stays in force"), "{told}");
    }
}
