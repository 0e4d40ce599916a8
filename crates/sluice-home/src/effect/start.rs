//! Starting an agent: its command line, its environment, its window.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::id::TaskId;
use sluice_core::lifecycle::{AgentPermissions, HarnessChoice};
use sluice_core::task::effect::StartSession;
use sluice_core::task::input::TaskEffectProduct;
use sluice_os::git::GitError;
use sluice_os::harness::{Harness, HarnessMode, HarnessPermissions, HarnessRequest, HarnessRetry, HarnessScene};
use sluice_os::session::{
    AgentEnd, SessionEnding, SessionId, SessionLimits, SessionPlace, SessionSpec, SessionStanding, SessionWindow,
    TypedText,
};
use sluice_os::workspace::WorkspacePool;

use super::EffectResult;
use crate::home::{Home, pool_name, session_id, tmux_name};
use crate::perform::{inherited, token};
use crate::read::files;
use crate::read::tasks::TaskSnapshot;
use crate::undone::PerformError;

/// The size of a terminal that no person looks at.
const ROWS: u16 = 50;
const COLUMNS: u16 = 200;
/// How long after its end an agent is started again that went down with what was around it; longer each time.
const BACKOFF: Duration = Duration::from_secs(1);

pub(super) fn session(home: &Arc<Home>, seen: &TaskSnapshot, wanted: &StartSession) -> EffectResult {
    let id = session_id(&seen.id, wanted.session)?;
    let name = match wanted.harness {
        HarnessChoice::Task => &seen.state.about.harness,
        HarnessChoice::Review => &seen.state.about.review_harness,
    };
    let harnesses = home.context.harnesses();
    let harness = harnesses.get(name).map_err(|error| error.to_string())?;
    let workspace = PathBuf::from(&wanted.workspace.0);
    must_be_its_worktree(home, seen, &workspace)?;
    let private = home.context.places.attempt(id.as_str());
    let mut environment = told(home, seen, wanted);
    environment.insert("SLUICE_TOKEN".into(), token(&id, &private)?);
    let lookup = |name: &str| environment.get(name).map(OsString::from);
    let invocation = harness
        .invocation(&HarnessRequest {
            mode: HarnessMode::Interactive,
            permissions: permissions(wanted.permissions),
            prompt: &files::told(&workspace, &wanted.prompt),
            workspace: &workspace,
            private: &private,
            sluice: &home.context.program,
            session: Some(id.as_str()),
            environment: &lookup,
        })
        .map_err(|error| error.to_string())?;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let arguments: Vec<String> = invocation.argv.iter().map(text).collect();
    let mode = HarnessMode::Interactive;
    let scene = HarnessScene { mode, arguments: &arguments, environment: &environment, workspace: &workspace };
    must_be_startable(home, &id, harness, &scene, &seen.id)?;
    invocation.prepare().map_err(PerformError::at("cannot prepare", &private))?;
    for gone in &invocation.env_unset {
        environment.remove(gone);
    }
    environment.extend(invocation.env_set.iter().map(|(name, value)| (name.clone(), text(value))));
    let window = SessionWindow { key: seen.id.to_string(), session: tmux_name(seen), name: wanted.window.clone() };
    let spec = SessionSpec {
        id: id.clone(),
        arguments,
        environment,
        folder: workspace,
        place: SessionPlace::Terminal { rows: ROWS, columns: COLUMNS, window: Some(window) },
        typed: invocation.typed.clone().map(|text| TypedText {
            text,
            ready_within_ms: u64::try_from(harness.watchdogs.start_up.as_millis()).unwrap_or(u64::MAX),
        }),
        limits: SessionLimits::default(),
        keeper: None,
        lease: home.context.lease(),
        may_leave: false,
    };
    if let Some(since) = home.take_uprooted(&seen.id) {
        let doublings = seen.state.visit.uprooted.saturating_sub(1).min(4);
        std::thread::park_timeout((BACKOFF * (1 << doublings)).saturating_sub(since.elapsed()));
    }
    home.remember_checkout(&id, seen);
    home.context.note_program(harness, &private);
    let started = home.context.start_session(&spec).map_err(PerformError::by)?;
    if let SessionStanding::Gone(gone) = &started.standing
        && let SessionEnding::Exited(record) = &gone.how
        && let AgentEnd::NotStarted(why) = &record.end
    {
        return Err(cannot_start(&spec, &seen.id, why).into());
    }
    home.watch(&seen.id, wanted.session);
    Ok(TaskEffectProduct::Nothing)
}

/// What an agent inherits, and what it is told about itself.
fn told(home: &Home, seen: &TaskSnapshot, wanted: &StartSession) -> BTreeMap<String, String> {
    let mut environment = inherited(&home.context);
    environment.extend(about(home, seen));
    environment.insert("SLUICE_ROLE".into(), wanted.role.word().into());
    environment.insert("SLUICE_ATTEMPT".into(), wanted.session.0.to_string());
    environment
}

fn permissions(wanted: AgentPermissions) -> HarnessPermissions {
    match wanted {
        AgentPermissions::Full => HarnessPermissions::Full,
        AgentPermissions::Reduced => HarnessPermissions::Reduced,
    }
}

/// An agent is started nowhere but in its own worktree. What led elsewhere there is put right, or nothing is started.
fn must_be_its_worktree(home: &Home, seen: &TaskSnapshot, workspace: &Path) -> Result<(), PerformError> {
    let gone = || {
        let (place, task) = (workspace.display(), &seen.id);
        PerformError::from(format!(
            "{place} is not the task's worktree any more: something else stands there, or nothing; put it back, then \
             `sluice task respawn {task}`"
        ))
    };
    if !std::fs::symlink_metadata(workspace).is_ok_and(|it| it.is_dir()) {
        return Err(gone());
    }
    // An engine that takes over for that of another home may not know the project yet.
    let name = pool_name(&workspace.display().to_string());
    let (Ok((_, pool)), Ok(name), Some(folder)) = (home.pool_of(seen), name, workspace.parent()) else {
        return Ok(());
    };
    let pool = WorkspacePool::at(pool.repository().clone(), folder).map_err(PerformError::by)?;
    pool.mend(&name).map_err(|error| match error {
        GitError::NoWorkspace { .. } => gone(),
        error => PerformError::by(error),
    })
}

/// A start that would come to nothing is no crash: nothing is started, and the task says what to do. One that was asked for
/// before is adopted, whatever has changed since.
fn must_be_startable(
    home: &Home,
    id: &SessionId,
    harness: &Harness,
    scene: &HarnessScene<'_>,
    task: &TaskId,
) -> Result<(), String> {
    if home.context.sessions.is_known(id) {
        return Ok(());
    }
    harness.refusal(scene, HarnessRetry::AfterSetup(&respawn(task))).map_or(Ok(()), Err)
}

fn respawn(task: &TaskId) -> String {
    format!("`sluice task respawn {task}`")
}

fn cannot_start(spec: &SessionSpec, task: &TaskId, why: &str) -> String {
    let program = spec.arguments.first().map_or("", String::as_str);
    format!(
        "`{program}` cannot be started: {why}. Install it, or mend its harness in config.toml (`sluice doctor` looks); \
         then {}",
        respawn(task)
    )
}

pub(super) fn about(home: &Home, seen: &TaskSnapshot) -> BTreeMap<String, String> {
    let project = home.projects.get(&seen.state.about.project);
    let told = [
        ("SLUICE_TASK", seen.id.to_string()),
        ("SLUICE_PROJECT_PATH", project.map(|it| it.path).unwrap_or_default()),
        ("SLUICE_BIN", home.context.program.display().to_string()),
    ];
    let ports = seen.state.workspace.bound().and_then(|name| home.context.port_base(Path::new(&name.0)));
    told.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(ports).collect()
}
