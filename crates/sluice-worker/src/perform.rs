//! Where work is done: sessions, harnesses, folders, and the one way in which a step of a run is carried out. The engine's
//! local executor and a worker on another machine do it here alike.
//!
//! It knows neither tasks nor runs beyond what an order says, and decides nothing.

mod agent;
mod environment;
pub mod fence;
pub mod lists;
pub mod outside;
pub mod performer;
mod script;
mod versions;

pub use agent::DEFAULT_HARNESS;
pub use environment::{InheritedEnvironment, can_be_set, inherited, is_secret_of, of_this_command, token};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluice_api::Problem;
use sluice_core::id::RunId;
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::run::effect::RunScript;
use sluice_core::run::{AttemptReport, StepOutcome};
use sluice_os::harness::{Harness, Harnesses};
use sluice_os::ports::PortRanges;
use sluice_os::process::{self, HomeNesting, ProcessIdentity, ScriptCancel, end_marked};
use sluice_os::session::{SessionConfig, SessionFailure, SessionId, SessionKeeper, Sessions};
use sluice_os::tmux::Tmux;

use crate::machine::config::{ConfigFile, HomeConfig};
use crate::machine::places::HomePaths;
use crate::perform::fence::{StoreFence, shim};
use crate::undone::described;
use crate::undone::{PerformError, PerformFailure, UnavailableReason, settled};
pub use versions::ProgramNote;
use versions::ProgramVersions;

/// How long an agent may take to end.
pub const GRACE: Duration = Duration::from_secs(5);
/// The exit code of a command that a signal ended is the signal's number above this, as a shell has it.
pub const SIGNALLED: i32 = 128;
/// How long what a cancelled run has started may take to end by itself.
const HURRY: Duration = Duration::from_millis(500);

pub struct PerformContext {
    pub places: HomePaths,
    settings: ConfigFile,
    pub sessions: Sessions,
    pub program: PathBuf,
    pub within: HomeNesting,
    /// What stops everything here when the store is not this engine's any more; nothing where it cannot be another's.
    pub fence: Option<Arc<dyn StoreFence>>,
    /// What runs are at, by its name; and what was ended before it began.
    performing: Mutex<ActivePerformances>,
    versions: ProgramVersions,
    pub surroundings: InheritedEnvironment,
    ports: PortRanges,
}

/// A part of a step that is to be carried out, with all that is needed for it.
#[derive(Clone, Debug)]
pub struct LocalOrder {
    /// Its name, the same however often it is asked for: of its session and its notes.
    pub name: String,
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    pub role: String,
    /// With which agent program; the usual one unless given.
    pub harness: Option<String>,
    pub permissions: AgentPermissions,
    pub folder: PathBuf,
    pub voice: StepIdentity,
    /// The keeper that must be there for it to go on; none unless given.
    pub keeper: Option<SessionKeeper>,
    pub work: OrderWork,
}

#[derive(Clone, Debug)]
pub enum StepIdentity {
    /// To the engine of this home, which knows its processes.
    OfThisHome,
    /// To an engine elsewhere, with what stands in these variables.
    Elsewhere { environment: Vec<(String, String)> },
}

#[derive(Clone, Debug)]
pub enum OrderWork {
    Agent { prompt: String },
    Script(RunScript),
}

pub type PerformResult = Result<StepOutcome, PerformError>;

/// What came of it, for the run and without secrets. What could not be done now has no report.
pub fn reported(bench: &PerformContext, performed: PerformResult) -> Result<AttemptReport, UnavailableReason> {
    let report = match settled(performed)? {
        Ok(outcome) => AttemptReport::Completed(outcome),
        Err(PerformFailure { kind, error, outcome }) => {
            AttemptReport::Failed { kind, error: error.to_string(), outcome: *outcome }
        }
    };
    Ok(bench.clean().report(report))
}

#[derive(Default)]
struct ActivePerformances {
    scripts: BTreeMap<String, ScriptCancel>,
    stopped: BTreeSet<String>,
}

/// A script that can be ended while this lives.
pub struct StoppableScript<'a> {
    bench: &'a PerformContext,
    name: String,
}

impl Drop for StoppableScript<'_> {
    fn drop(&mut self) {
        self.bench.performing().scripts.remove(&self.name);
    }
}

impl PerformContext {
    pub fn open(places: HomePaths, settings: ConfigFile, program: PathBuf) -> Result<PerformContext, Problem> {
        link_programs(&places, &program)?;
        let within = HomeNesting::enter(places.home());
        if let Err(error) = within.mark() {
            tracing::warn!("what this process starts carries no mark: {error}; it is recognised by its ancestors");
        }
        let tmux = Tmux::new("tmux", places.tmux_socket());
        let sessions = Sessions::new(SessionConfig {
            folder: places.sessions().join("live"),
            program: shim(&program),
            tmux: tmux.version().is_ok().then_some(tmux),
        })
        .map_err(|failure| Problem::fault(described(&failure)))?;
        let caller = ProcessIdentity::of(std::os::unix::process::parent_id().cast_signed());
        let given = caller.and_then(|caller| sessions.given_to(&caller, &within));
        let surroundings = InheritedEnvironment::own(given, &settings.config().env);
        let ports = PortRanges::new(places.ports());
        Ok(PerformContext {
            places,
            settings,
            sessions,
            program,
            within,
            fence: None,
            performing: Mutex::default(),
            versions: ProgramVersions::default(),
            surroundings,
            ports,
        })
    }

    pub fn config(&self) -> Arc<HomeConfig> {
        self.settings.config()
    }

    /// Why the file of the settings as it is now does not count, if it does not.
    pub fn config_trouble(&self) -> Option<String> {
        self.settings.trouble()
    }

    pub fn harnesses(&self) -> Arc<Harnesses> {
        self.settings.harnesses()
    }

    pub fn fenced(self, fence: Option<Arc<dyn StoreFence>>) -> PerformContext {
        PerformContext { fence, ..self }
    }

    /// Carries an order out, to its end. Asked for again after a crash, a living agent is adopted, and so is a script that
    /// somebody keeps; any other script is ended first and then run again.
    pub fn perform(&self, order: &LocalOrder) -> PerformResult {
        if self.was_stopped(&order.name) {
            return Err(PerformFailure::because("it was ended before it began").into());
        }
        match &order.work {
            OrderWork::Agent { prompt } => agent::run(self, order, prompt),
            OrderWork::Script(script) => script::run(self, order, script),
        }
    }

    /// Ends what is carried out under a name, or keeps it from beginning.
    pub fn stop(&self, name: &str) -> Result<(), PerformError> {
        self.stop_performance(name);
        let Ok(id) = SessionId::new(name) else { return Ok(()) };
        match self.sessions.end(&id, GRACE, "the run moved on") {
            Ok(_) | Err(SessionFailure::Unknown(_)) => Ok(()),
            Err(failure) => Err(PerformError::by(failure)),
        }
    }

    /// Notes which agent program an attempt is made with, and its version.
    pub fn note_program(&self, harness: &Harness, private: &Path) {
        self.versions.note(harness, &self.program, private);
    }

    pub fn program_of(&self, performance: &str) -> Option<ProgramNote> {
        versions::noted(&self.places.attempt(performance))
    }

    /// The variable with the first port of a worktree's own; nothing in a folder that is none. What works without it goes on.
    pub fn port_base(&self, folder: &Path) -> Option<(String, String)> {
        let base = self.ports.base(folder).unwrap_or_else(|error| {
            tracing::warn!("{} gets no ports of its own: {error}", folder.display());
            None
        });
        base.map(|base| ("SLUICE_PORT_BASE".to_owned(), base.to_string()))
    }

    /// Where notes about commands are.
    pub fn commands(&self) -> PathBuf {
        self.places.sessions().join("commands")
    }

    /// Where it is noted that a command of a task or run runs.
    pub fn record(&self, of: &str, effect: &str) -> PathBuf {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = effect.chars().map(plain).collect();
        self.commands().join(format!("{of}-{name}.json"))
    }

    fn performing(&self) -> MutexGuard<'_, ActivePerformances> {
        self.performing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A script of a run begins; it is ended when the run asks for that.
    pub fn performs(&self, name: &str, cancel: ScriptCancel) -> StoppableScript<'_> {
        let mut performing = self.performing();
        if performing.stopped.contains(name) {
            cancel.cancel();
        }
        performing.scripts.insert(name.to_owned(), cancel);
        StoppableScript { bench: self, name: name.to_owned() }
    }

    /// Something that a run is at is to end, or never to begin.
    pub fn stop_performance(&self, name: &str) {
        let mut performing = self.performing();
        performing.scripts.get(name).iter().for_each(|cancel| cancel.cancel());
        performing.stopped.insert(name.to_owned());
    }

    /// Something has come to its end, and cannot be asked for again.
    pub fn performed(&self, name: &str) {
        self.performing().stopped.remove(name);
    }

    /// Whether something was ended before it began.
    pub fn was_stopped(&self, name: &str) -> bool {
        self.performing().stopped.contains(name)
    }
}

/// Ends every process of a run that has ended, in its groups or not, also what steps left behind that are long over. Says
/// how many would not go.
pub fn sweep(run: &RunId) -> Result<usize, process::ProcessFailure> {
    end_marked(&format!("SLUICE_RUN={run}"), HURRY)
}

/// Whether something of a run that has ended may live: a process that a script left behind. It costs little, and speaks of
/// what was started since this process was.
pub fn may_have_left(run: &str) -> bool {
    process::has_marked_child(&format!("SLUICE_RUN={run}"))
}

/// Puts our program where every session finds it, under the names it answers to.
fn link_programs(places: &HomePaths, program: &Path) -> Result<(), Problem> {
    let folder = places.programs();
    let failed = |error: std::io::Error| Problem::fault(format!("{} cannot be used: {error}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for name in ["sluice", "orange", "wo"] {
        let link = folder.join(name);
        if std::fs::read_link(&link).is_ok_and(|target| target == program) {
            continue;
        }
        let draft = folder.join(format!(".{name}-{}", std::process::id()));
        let made = std::os::unix::fs::symlink(program, &draft).and_then(|()| std::fs::rename(&draft, &link));
        made.map_err(failed)?;
    }
    Ok(())
}
