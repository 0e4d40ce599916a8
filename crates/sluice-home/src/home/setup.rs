//! Making a worktree ready before anything works in it, and ending that when the worktree goes: what its project says, and what
//! its repository says in `.worktreeinclude`.
//!
//! It is done once in a worktree, and again when what it depends on has changed. A note in what git keeps for the worktree says
//! what was done, and is written afterwards: after a crash it is done again. A worktree that is not ready gets no agent.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_api::project::Project;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{RunParameters, StepOutcome};
use sluice_os::process::{
    ProcessEnding, ProcessFailure, ProcessOutcome, ProcessScript, ScriptCancel, ScriptProgram, kill_leftover,
};
use sluice_os::session::SessionId;
use sluice_os::workspace::{INCLUDE_FILE, SetupNote, SetupSite, SetupTraces, WorktreeFurniture};

use crate::background::locked;
use crate::home::Home;
use crate::home::hook::{hook, how_it_failed};
use crate::read::tasks::TaskSnapshot;
use crate::settings::projects::{open, shown};
use crate::undone::{PerformError, PerformFailure};

/// So long a command may take that sets a worktree up, or tears it down.
const SETUP_LIMIT: Duration = Duration::from_secs(600);
/// So many of the last lines of each output are told of a command that failed.
const LAST_LINES: usize = 20;
/// Letters that are told of one output.
const LONGEST_TOLD: usize = 2000;

/// How making a worktree ready went, where it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetupEnd {
    Ready,
    /// It was ended, because what was to work there is not wanted any more.
    Unwanted,
}

/// A worktree, and what its project says about it.
struct SetupPlace {
    site: SetupSite,
    folder: PathBuf,
    main: PathBuf,
    project: Option<Project>,
}

/// For what a worktree is made ready.
struct SetupReason<'a> {
    /// The variable that names the task or run.
    variable: (&'static str, &'a str),
    /// The command that tries again.
    again: String,
}

type ScriptRunner<'a> = dyn Fn(&ProcessScript, &ScriptCancel) -> Result<ProcessOutcome, ProcessFailure> + 'a;

/// Makes the worktree of a task ready for its agents and hooks. A task that ends meanwhile does not wait for it.
pub(crate) fn of_task(home: &Home, seen: &TaskSnapshot, folder: &Path) -> Result<SetupEnd, PerformError> {
    let project = home.projects.get(&seen.state.about.project).ok();
    let Some(place) = SetupPlace::of(project, folder) else { return Ok(SetupEnd::Ready) };
    let is_over = || {
        let open = home.tasks.open();
        let now = open.iter().find(|now| now.id == seen.id);
        now.is_none_or(|now| now.lifecycle.state(now.state.status).terminal)
    };
    let reason =
        SetupReason { variable: ("SLUICE_TASK", seen.id.as_str()), again: format!("sluice task respawn {}", seen.id) };
    place.ready(home, &reason, &|script, cancel| run_until(home, script, cancel, &is_over))
}

/// Whether an agent was started under this name by an earlier engine, and is at work or over: nothing is set up beneath it.
pub(crate) fn has_begun(home: &Home, session: Result<SessionId, String>) -> bool {
    session.is_ok_and(|id| home.context.sessions.has_begun(&id))
}

/// Makes a worktree of a run ready for what is performed there under this name: its own, one of its parts, or that of a task.
pub(crate) fn of_run(home: &Home, given: &RunParameters, folder: &Path, name: &str) -> Result<(), PerformError> {
    if !given.workspace.starts_with('/') || has_begun(home, SessionId::new(name)) {
        return Ok(()); // it works where it was started, or elsewhere, or has begun
    }
    let Some(place) = SetupPlace::of(home.projects.at(&given.origin.root), folder) else { return Ok(()) };
    let place = match place.project {
        Some(_) => place,
        None => SetupPlace { project: home.projects.at(&place.main.display().to_string()), ..place },
    };
    let reason =
        SetupReason { variable: ("SLUICE_RUN", given.id.as_str()), again: format!("sluice run retry {}", given.id) };
    let ended = place.ready(home, &reason, &|script, cancel| {
        let _running = home.context.performs(name, cancel.clone());
        home.context.run_script(script, cancel)
    })?;
    match ended {
        SetupEnd::Ready => Ok(()),
        SetupEnd::Unwanted => Err("it was ended while its worktree was made ready".into()),
    }
}

/// Whether a worktree is to be torn down before it is removed. That it is to be is noted: [`leave`] does it.
pub(crate) fn must_leave(home: &Home, main: &Path, folder: &Path) -> Result<bool, PerformError> {
    let Some((place, _, note)) = due(home, main, folder)? else { return Ok(false) };
    place
        .site
        .write(&SetupNote { leaves: true, ..note })
        .map_err(PerformError::at("cannot note the end of", folder))?;
    Ok(true)
}

/// Tears the worktree of a run down, if that was noted.
pub(crate) fn leave(home: &Home, given: &RunParameters) -> Result<(), PerformError> {
    let folder = Path::new(&given.workspace);
    let site = SetupSite::of(folder).filter(|_| folder.is_absolute() && !given.origin.base.is_empty());
    let note =
        site.as_ref().map(SetupSite::note).transpose().map_err(PerformError::at("cannot read the note of", folder))?;
    match (site, note.flatten().is_some_and(|note| note.leaves)) {
        (Some(site), true) => tear_down(home, &site.main(), folder),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Runs the command of a project that ends what was set up in a worktree, before that is removed. A worktree in which nothing
/// was set up, or no more is, needs none.
pub(crate) fn tear_down(home: &Home, main: &Path, folder: &Path) -> Result<(), PerformError> {
    if let Some(site) = SetupSite::of(folder) {
        // An engine that died may have left it at work.
        kill_leftover(&home.context.record(&site.key(), "setup")).map_err(PerformError::by)?;
    }
    let Some((place, command, _)) = due(home, main, folder)? else { return Ok(()) };
    let turn = home.setups.of(&folder.display().to_string());
    let _alone = locked(&turn);
    let script = place.script(home, "teardown", &command)?;
    let cancel = ScriptCancel::new().map_err(PerformError::by)?;
    let outcome = home.context.run_script(&script, &cancel).map_err(PerformError::by)?;
    if let Some(how) = how_it_failed(outcome.ending) {
        let name = place.project.as_ref().map_or("", |project| &project.name);
        let what = format!(
            "the project's `teardown` (`{}`) failed in {}, {how}; mend it, or change it with `sluice project update {} \
             --teardown`",
            shown(&command),
            folder.display(),
            shown(name),
        );
        return Err(failed(home, &what, outcome).into());
    }
    place.site.forget().map_err(PerformError::at("cannot note the end of", folder))
}

/// A worktree in which something was set up, with the command that ends it.
fn due(home: &Home, main: &Path, folder: &Path) -> Result<Option<(SetupPlace, String, SetupNote)>, PerformError> {
    let Some(place) = SetupPlace::of(home.projects.at(&main.display().to_string()), folder) else { return Ok(None) };
    let Some(command) = place.project.as_ref().and_then(|project| project.teardown.clone()) else { return Ok(None) };
    let note = place.site.note().map_err(PerformError::at("cannot read the note of", folder))?;
    Ok(note.map(|note| (place, command, note)))
}

impl SetupPlace {
    /// A folder that is a worktree; nothing for another, which is not ours to make ready.
    fn of(project: Option<Project>, folder: &Path) -> Option<SetupPlace> {
        let site = SetupSite::of(folder)?;
        let main = project.as_ref().map_or_else(|| site.main(), |project| PathBuf::from(&project.path));
        Some(SetupPlace { site, folder: folder.to_owned(), main, project })
    }

    fn furniture(&self) -> WorktreeFurniture {
        let of = |paths: fn(&Project) -> &Vec<String>| self.project.as_ref().map(paths).cloned().unwrap_or_default();
        WorktreeFurniture { copy: of(|project| &project.copy), link: of(|project| &project.link) }
    }

    /// The note of a worktree that is ready.
    fn wanted(&self) -> std::io::Result<SetupNote> {
        let furniture = self.furniture();
        let include = std::fs::read(self.main.join(INCLUDE_FILE)).unwrap_or_default();
        let command = self.project.as_ref().and_then(|project| project.setup.as_deref());
        let has_teardown = self.project.as_ref().is_some_and(|project| project.teardown.is_some());
        if furniture == WorktreeFurniture::default() && include.is_empty() && command.is_none() && !has_teardown {
            return Ok(SetupNote::default());
        }
        let texts = [&furniture.copy, &furniture.link].map(|paths| paths.join("\n").into_bytes());
        let furnished = self.site.digest_of_lending(&[&texts[0], &texts[1], &include]);
        let files = self.project.as_ref().map(|project| project.setup_when.as_slice()).unwrap_or_default();
        let setup = command.map_or(Ok(String::new()), |command| self.site.digest_of_files(command, files))?;
        Ok(SetupNote { furnished, setup, leaves: false })
    }

    fn ready(&self, home: &Home, reason: &SetupReason<'_>, run: &ScriptRunner<'_>) -> Result<SetupEnd, PerformError> {
        let unseen = || PerformError::at("cannot make ready", &self.folder);
        let wanted = self.wanted().map_err(unseen())?;
        if self.site.note().map_err(unseen())?.unwrap_or_default() == wanted {
            return Ok(SetupEnd::Ready);
        }
        let turn = home.setups.of(&self.folder.display().to_string());
        let _alone = locked(&turn);
        let note = self.site.note().map_err(unseen())?.unwrap_or_default();
        // What was about to be torn down may be so by now.
        let mut note = if note.leaves { SetupNote::default() } else { note };
        if note.furnished != wanted.furnished {
            let furniture = self.furniture();
            if furniture != WorktreeFurniture::default() || self.main.join(INCLUDE_FILE).exists() {
                let repository = open(&self.main, None)?;
                furniture.bring(&repository, &self.folder).map_err(PerformError::by)?;
            }
            note.furnished = wanted.furnished.clone();
            self.site.write(&note).map_err(unseen())?;
        }
        if note.setup != wanted.setup {
            if let Some(command) = self.project.as_ref().and_then(|project| project.setup.as_deref()) {
                let traces = SetupTraces::before(&open(&self.main, None)?, &self.folder).map_err(PerformError::by)?;
                let ended = self.set_up(home, reason, command, run);
                // What one that failed has left is no work either.
                traces.map_or(Ok(()), |traces| traces.note()).map_err(PerformError::by)?;
                if ended? == SetupEnd::Unwanted {
                    return Ok(SetupEnd::Unwanted);
                }
            }
            // A command may itself change what it depends on.
            note.setup = self.wanted().map_err(unseen())?.setup;
            self.site.write(&note).map_err(unseen())?;
        }
        Ok(SetupEnd::Ready)
    }

    fn set_up(
        &self,
        home: &Home,
        reason: &SetupReason<'_>,
        command: &str,
        run: &ScriptRunner<'_>,
    ) -> Result<SetupEnd, PerformError> {
        let mut script = self.script(home, "setup", command)?;
        let (name, value) = reason.variable;
        script.environment.insert(name.to_owned(), value.to_owned());
        let cancel = ScriptCancel::new().map_err(PerformError::by)?;
        let outcome = run(&script, &cancel).map_err(PerformError::by)?;
        if outcome.ending == ProcessEnding::Cancelled {
            return Ok(SetupEnd::Unwanted);
        }
        let Some(how) = how_it_failed(outcome.ending) else { return Ok(SetupEnd::Ready) };
        let project = self.project.as_ref().map_or("", |project| &project.name);
        let what = format!(
            "its worktree is not ready: the project's `setup` (`{}`) failed, {how}; mend it, or change it with `sluice \
             project update {} --setup`; then `{}`",
            shown(command),
            shown(project),
            reason.again,
        );
        Err(failed(home, &what, outcome).into())
    }

    /// A command that runs in the worktree. What an engine that died left running of it is ended.
    fn script(&self, home: &Home, what: &str, command: &str) -> Result<ProcessScript, PerformError> {
        let shell = ScriptProgram::Shell(command.to_owned());
        let mut script = hook(home, &self.site.key(), what, shell, &self.folder)?;
        script.environment.insert("SLUICE_PROJECT_PATH".into(), self.main.display().to_string());
        script.environment.insert("SLUICE_BIN".into(), home.context.program.display().to_string());
        Ok(ProcessScript { timeout: Some(SETUP_LIMIT), ..script })
    }
}

/// Runs a script to its end, or until it is not wanted any more.
fn run_until(
    home: &Home,
    script: &ProcessScript,
    cancel: &ScriptCancel,
    is_unwanted: &(dyn Fn() -> bool + Sync),
) -> Result<ProcessOutcome, ProcessFailure> {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let found = home.tasks.wait(SETUP_LIMIT, || match has_ended.load(Ordering::Acquire) {
                true => Some(false),
                false => is_unwanted().then_some(true),
            });
            if found == Some(true) {
                cancel.cancel();
            }
        });
        let ended = home.context.run_script(script, cancel);
        has_ended.store(true, Ordering::Release);
        home.tasks.stir();
        ended
    })
}

/// Why a command failed, with what it said last. What is secret goes before anything is cut.
fn failed(home: &Home, what: &str, outcome: ProcessOutcome) -> PerformFailure {
    let clean = home.context.clean();
    let (stdout, stderr) = (clean.text(&outcome.stdout.text()), clean.text(&outcome.stderr.text()));
    let told: Vec<String> =
        [&stdout, &stderr].map(|text| last_lines(text)).into_iter().filter(|it| !it.is_empty()).collect();
    let kind = match outcome.ending {
        ProcessEnding::TimedOut => FailureKind::Timeout,
        ProcessEnding::Signal(_) => FailureKind::Crashed,
        ProcessEnding::Code(_) | ProcessEnding::Cancelled => FailureKind::Failed,
    };
    let outcome = StepOutcome { output: Data::Text(stdout), stderr: Some(stderr), ..StepOutcome::default() };
    let error = std::iter::once(what.to_owned()).chain(told).collect::<Vec<_>>().join("\n");
    PerformFailure { kind, error: error.into(), outcome: Box::new(outcome) }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let cut = last.chars().count().saturating_sub(LONGEST_TOLD);
    last.chars().skip(cut).collect()
}
