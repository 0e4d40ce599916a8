//! `config.toml` as an engine or a worker uses it: read again when it has changed, and told of when it cannot be used.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sluice_api::Problem;
use sluice_os::harness::Harnesses;

use super::HomeConfig;

/// The settings of a home, as the file has them now.
pub struct ConfigFile {
    file: PathBuf,
    kept: Mutex<LoadedConfig>,
}

struct LoadedConfig {
    mark: Option<ConfigStamp>,
    config: Arc<HomeConfig>,
    harnesses: Arc<Harnesses>,
    /// Why the file as it is now does not count, if it does not.
    trouble: Option<String>,
}

/// Which file it is, how long, and when it was last changed.
type ConfigStamp = (u64, u64, i64, i64);

impl ConfigFile {
    /// Reads the settings in this file. It must be usable now.
    pub fn open(file: PathBuf) -> Result<ConfigFile, Problem> {
        let mark = mark(&file);
        let (config, harnesses) = read(&file)?;
        let kept =
            Mutex::new(LoadedConfig { mark, config: Arc::new(config), harnesses: Arc::new(harnesses), trouble: None });
        Ok(ConfigFile { file, kept })
    }

    pub fn config(&self) -> Arc<HomeConfig> {
        self.now(|kept| kept.config.clone())
    }

    /// All harnesses: those that are known, and those of one's own.
    pub fn harnesses(&self) -> Arc<Harnesses> {
        self.now(|kept| kept.harnesses.clone())
    }

    /// Why the file as it is now does not count, and what it said before stays in force; nothing if it counts.
    pub fn trouble(&self) -> Option<String> {
        self.now(|kept| kept.trouble.clone())
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
                    kept.trouble = None;
                    tracing::info!("{} was read again", self.file.display());
                }
                Err(problem) => {
                    let trouble = format!("{}; what it said before stays in force", problem.message);
                    tracing::warn!("{trouble}");
                    kept.trouble = Some(trouble);
                }
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
        assert!(settings.trouble().is_some_and(|why| why.contains("stays in force")));
        write("[defaults]\nharness = \"codex\"\n");
        assert_eq!((harness().as_deref(), settings.trouble()), (Some("codex"), None));
        let told = std::fs::read_to_string(log).expect("a log");
        assert!(told.contains("what it said before stays in force"), "{told}");
    }
}
