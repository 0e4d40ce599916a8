//! Runs the built binary in a folder, with an empty home of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command answered.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// Everything it said, for snapshots.
    pub(crate) fn shown(&self) -> String {
        let mut shown = self.stdout.clone();
        if !self.stderr.is_empty() {
            shown.push_str(&format!("--- stderr\n{}", self.stderr));
        }
        format!("{shown}--- exit {}", self.code)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout))
    }

    /// `code line:column` of each finding in a JSON report, in the order of the report.
    pub(crate) fn findings(&self) -> Vec<String> {
        let report = self.json();
        let shown = |problem: &serde_json::Value| {
            format!("{} {}:{}", problem["code"].as_str().unwrap(), problem["line"], problem["column"])
        };
        report["problems"].as_array().unwrap().iter().map(shown).collect()
    }
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs `sluice` with `arguments` in `folder`.
pub(crate) fn run_in(folder: &Path, arguments: &[&str]) -> Answer {
    let home = tempfile::tempdir().unwrap();
    run_with(folder, home.path(), arguments)
}

/// What it writes to stdout, as it is.
pub(crate) fn bytes_in(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let home = tempfile::tempdir().unwrap();
    command(folder, home.path(), arguments).output().unwrap().stdout
}

/// `sluice` with `arguments` in `folder`, with the home `home`.
pub(crate) fn command(folder: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(arguments).current_dir(folder).env_clear().env("SLUICE_HOME", home);
    command
}

/// Runs it.
pub(crate) fn run_with(folder: &Path, home: &Path, arguments: &[&str]) -> Answer {
    let output = command(folder, home, arguments).output().unwrap();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `sluice` in the checkout.
pub(crate) fn run(arguments: &[&str]) -> Answer {
    run_in(&root(), arguments)
}

/// A folder with these files in it.
pub(crate) fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}
