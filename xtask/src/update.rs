//! `cargo xtask update`: writes everything that is made from the code or expected of it, so that the difference can be
//! read in one place. It changes no golden sample that is there: those are what earlier versions wrote.

use std::path::Path;
use std::process::Command;

use crate::served_home::target;
use crate::{generated, root};

/// What the tests write in place of comparing. Each variable stands for one kind of file:
///
/// - `UPDATE_DOCS`: pages and documents that are drawn from the code (`docs/machines/`, `docs/openapi.json`,
///   `docs/config.md`, `docs/dashboard.md`, `schemas/config.schema.json`).
/// - `UPDATE_EXPECTED`: what a test expects (the answers in `task/plays/`).
/// - `UPDATE_GOLDEN`: golden samples that are missing.
/// - `INSTA_UPDATE`: snapshots.
const WRITES: [(&str, &str); 4] =
    [("UPDATE_DOCS", "1"), ("UPDATE_EXPECTED", "1"), ("UPDATE_GOLDEN", "1"), ("INSTA_UPDATE", "always")];

/// The tests that compare with a file or a snapshot, without those that drive an engine.
const SUITES: [&[&str]; 10] = [
    &["--package", "sluice-core"],
    &["--package", "sluice-dialect", "--lib", "--test", "pin"],
    &["--package", "sluice-draw"],
    &["--package", "sluice-engine", "--test", "golden", "--test", "task"],
    &["--package", "sluice-api", "--test", "work"],
    &["--package", "sluice-telemetry", "--lib"],
    &["--package", "sluice-worker", "--lib", "the_committed_reference_is_current"],
    &["--package", "sluice-server", "--lib", "the_committed_document_is_current"],
    &["--package", "sluice-tui", "--lib"],
    &["--package", "sluice", "--test", "cli"],
];
/// Those that drive agents and engines; they take minutes.
const SLOW: [&[&str]; 2] = [&["--package", "sluice-os"], &["--package", "sluice", "--test", "e2e"]];

/// Writes the files that are made from the code without a test.
pub fn generate() -> std::io::Result<()> {
    for (path, content) in generated::files() {
        let path = root().join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&path, content)?;
    }
    Ok(())
}

/// Writes everything. With `all`, what is expected of agents and engines too.
///
/// A suite may fail: what it expects is written all the same. Which did is said at the end, and is what is left to mend.
pub fn update(all: bool) -> Result<(), String> {
    generate().map_err(|error| format!("what is generated cannot be written: {error}"))?;
    let suites = SUITES.iter().chain(SLOW.iter().filter(|_| all));
    let failed: Vec<String> = suites.filter(|suite| !tests(suite)).map(|suite| suite.join(" ")).collect();
    accept_inline_snapshots()?;
    if failed.is_empty() {
        return Ok(());
    }
    // A golden sample that is there and differs, or a test that expects no file.
    Err(format!("these still fail:\n  cargo test {}", failed.join("\n  cargo test ")))
}

fn tests(suite: &[&str]) -> bool {
    let mut command = cargo();
    command.args(["test", "--quiet", "--no-fail-fast"]).args(suite).envs(WRITES);
    // The first time writes, and may fail because of what it found; the second tells what is left.
    command.status().is_ok_and(|status| status.success()) || command.status().is_ok_and(|status| status.success())
}

/// Snapshots that stand in the code are written by insta's own program, which is installed below the target folder when
/// there are such to write.
fn accept_inline_snapshots() -> Result<(), String> {
    if !has_pending(&root().join("crates")) {
        return Ok(());
    }
    let tools = target().join("tools");
    let program = tools.join("bin/cargo-insta");
    if !program.exists() {
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", "cargo-insta", "--root"]).arg(&tools);
        let installed = install.env_remove("CARGO_TARGET_DIR").status();
        installed.ok().filter(|status| status.success()).ok_or("cargo-insta cannot be installed")?;
    }
    let accepted = Command::new(program).args(["insta", "accept"]).current_dir(root()).status();
    accepted.ok().filter(|status| status.success()).map(drop).ok_or_else(|| "`cargo insta accept` failed".into())
}

/// Whether a test has left a snapshot that belongs into its code.
fn has_pending(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => has_pending(&entry.path()),
        _ => entry.file_name().to_string_lossy().ends_with(".pending-snap"),
    })
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
