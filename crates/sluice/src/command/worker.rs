//! `sluice worker`: steps of runs and missions, on this machine, for an engine elsewhere.

use serde_json::json;
use sluice_api::Client;
use sluice_api::work::project_group;
use sluice_home::settings::config::ConfigFile;
use sluice_home::settings::lock::{FileLock, FileLockError};
use sluice_home::settings::log;
use sluice_home::settings::places::HomePaths;
use sluice_worker::perform::PerformContext;
use sluice_worker::worker::{WorkerNews, WorkerOptions, WorkerRuntime};

use crate::args;
use crate::engine::{make_home, places};
use crate::output::{CliExit, CliFailure, CliOutput, print, print_bytes, say};

pub(crate) fn run(arguments: args::WorkerArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let args::WorkerArgs { connect, project, colony, role, name } = arguments;
    let whose = match (&project, &colony) {
        (Some(project), _) => format!("project {project}"),
        (None, colony) => format!("colony {}", colony.as_deref().unwrap_or_default()),
    };
    let colony = colony.or_else(|| project.as_deref().map(project_group)).unwrap_or_default();
    must_be_a_name("role", &role)?;
    let name = name.unwrap_or_else(|| format!("{role}-{}", machine()));
    must_be_a_name("name", &name)?;
    let client = Client::at(&connect)?;
    let home = places()?;
    make_home(&home)?;
    // Each worker has a place of its own in the home: its sessions, its worktrees, its name.
    let own = HomePaths::new(home.home().join("workers").join(&name));
    make_home(&own)?;
    let _lock = FileLock::take(&own.lock()).map_err(|no| match no {
        FileLockError::Held { pid } => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            CliFailure::new(CliExit::Conflict, "already_running", format!("a worker called {name} runs already{who}"))
                .hint("give this one another name: --name")
        }
        FileLockError::Broken(error) => {
            let message = format!("{} cannot be used: {error}", own.lock().display());
            CliFailure::new(CliExit::Unavailable, "unavailable", message).hint("move it away, and try again")
        }
    })?;
    let program = std::env::current_exe().map_err(|error| {
        CliFailure::new(CliExit::Refused, "fault", format!("cannot find the path of the running program: {error}"))
    })?;
    log::begin(&own.log());
    let settings = ConfigFile::open(home.config())?;
    let _traces = sluice_server::traces(&settings.config());
    let bench = PerformContext::open(own, settings, program)?;
    let hiring = WorkerOptions { url: connect.clone(), group: colony.clone(), role: role.clone(), name: name.clone() };
    let worker = WorkerRuntime::new(bench, client, hiring)?;
    let told = worker.clone();
    let hears = move || {
        if told.stop() && output == CliOutput::People {
            print(
                "stopping: the worker finishes its current step and then exits; a second Ctrl-C gives the step back and exits now\n",
            );
        }
    };
    sluice_server::each_signal(hears)
        .map_err(|error| CliFailure::new(CliExit::Refused, "fault", format!("signals cannot be heard: {error}")))?;
    let crab = worker.id().to_owned();
    worker.run(move |news| match (output, news) {
        (CliOutput::Json, WorkerNews::Registered) => {
            print_bytes(format!("{}\n", json!({ "worker": name, "crab_id": crab, "colony_id": colony })).as_bytes());
        }
        (CliOutput::People, WorkerNews::Registered) => {
            print(&format!("working as {role} ({crab}) for {whose} at {connect}\n"));
        }
        (_, WorkerNews::Away(why)) => say(&format!("{why}; trying again")),
        (_, WorkerNews::Back) => say("connected again"),
    })?;
    Ok(CliExit::Done)
}

/// What this machine is called, as far as it fits a name.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let name: String = name.trim().chars().filter(plain).take(32).collect();
    if name.is_empty() { "machine".into() } else { name }
}

/// Refuses what cannot be the name or the role of a worker: the first is also the name of its folder.
fn must_be_a_name(what: &str, name: &str) -> Result<(), CliFailure> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(plain) {
        return Ok(());
    }
    let message = format!("`{name}` cannot be the {what} of a worker");
    Err(CliFailure::new(CliExit::Usage, "bad_request", message).hint("letters, digits, - _ and ., at most 64"))
}
