//! The conformance kit: an agent program is started for real, without a terminal and in one, as Sluice starts it for its
//! work, and what came of it is said. The model is [`crate::model`]; home, configuration and repository are scratch ones, and
//! go away with the check. It judges a program and changes nothing of the person's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;
use sluice_os::harness::{
    Harness, HarnessError, HarnessMode, HarnessPermissions, HarnessRequest, HarnessScene, HarnessScriptedModel,
    read_version,
};
use sluice_os::session::{
    SessionConfig, SessionFailure, SessionId, SessionLimits, SessionPlace, SessionSpec, Sessions,
};
use sluice_os::tmux::Tmux;
use tempfile::TempDir;

use crate::model::{ModelScript, ScriptedModel};

mod ear;
mod headless;
mod terminal;

use ear::HookEar;

/// The file that the model has the program make.
const MADE: &str = "sluice-harness-check";
/// Letters that make the words of a check its own.
const NONCE: usize = 10;
/// Lines that are shown of what a program printed last.
const LAST_LINES: usize = 12;
/// How long a program may take to end when the check is over, before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What a check is made with.
pub struct KitOrder<'a> {
    pub harness: &'a Harness,
    /// Sluice's own program: it is the shim around the agent, and the program of `demo`.
    pub sluice: &'a Path,
    /// The environment of a session; the kit takes what it needs of it.
    pub environment: &'a BTreeMap<String, String>,
    /// Without a key and without a model.
    pub dry: bool,
    /// How long each start may take.
    pub within: Duration,
    /// Where the engine of a home listens: hooks look for it there.
    pub socket: fn(&Path) -> PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum KitFailure {
    #[error(transparent)]
    Harness(#[from] HarnessError),
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
    #[error(transparent)]
    Session(#[from] SessionFailure),
}

/// What a check has found.
#[derive(Clone, Debug, Serialize)]
pub struct KitReport {
    pub harness: String,
    pub version: Option<String>,
    /// `scripted`: it asked the scripted model. `dry`: it was started without a key. `none`: it is not known how it is led
    /// to another model, and it was started as it is.
    pub model: &'static str,
    pub runs: Vec<KitRun>,
}

/// One start of the program, in one place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KitRun {
    /// The place: `headless` or `terminal`.
    pub place: &'static str,
    /// Whether the model heard the prompt; absent where there is none to hear it.
    pub prompt_arrived: Option<bool>,
    /// Whether the program ran the command that the model wanted; absent where the model did not ask for it.
    pub command_ran: Option<bool>,
    /// Whether the model's sentence came back as the result; absent where there is none to say it.
    pub result_read: Option<bool>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// What it cost, in US dollars.
    pub cost: Option<f64>,
    /// How it ended, in words.
    pub ended: String,
    pub signals: Vec<KitSignal>,
    /// What does not work.
    pub fails: Vec<String>,
    /// The end of what it printed, or what stood on its screen.
    pub last_lines: Vec<String>,
    /// Everything that it printed, as it printed it.
    #[serde(skip)]
    pub printed: Vec<u8>,
}

/// Something that tells Sluice how the program fares.
#[derive(Clone, Debug, Serialize)]
pub struct KitSignal {
    pub signal: String,
    /// By what it came: `model`, `stream`, `hook`, `screen`, `exit`.
    pub channel: &'static str,
    pub seen: bool,
    /// Milliseconds from the start; absent if it was not seen.
    pub ms: Option<u64>,
}

impl KitReport {
    pub fn is_well(&self) -> bool {
        self.runs.iter().all(|run| run.fails.is_empty())
    }
}

impl KitRun {
    fn signal(&mut self, signal: &str, channel: &'static str, after: Option<Duration>) {
        let ms = after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        self.signals.push(KitSignal { signal: signal.to_owned(), channel, seen: after.is_some(), ms });
    }

    fn fail(&mut self, what: impl Into<String>) {
        self.fails.push(what.into());
    }
}

/// Everything around a start: the scratch folders, the model and the sessions.
struct KitBench<'a> {
    order: &'a KitOrder<'a>,
    model: Option<ScriptedModel>,
    /// Hears the hooks; absent where the program has none.
    ear: Option<HookEar>,
    sessions: Sessions,
    environment: BTreeMap<String, String>,
    /// The word in the prompt.
    asked: String,
    /// The sentence of the model.
    sentence: String,
    tmux: PathBuf,
    // The last, so that it goes when nothing uses it any more.
    folder: TempDir,
}

/// Checks a program. What does not work stands in the report; an error says that it could not be checked.
pub fn check(order: &KitOrder<'_>) -> Result<KitReport, KitFailure> {
    let bench = KitBench::new(order)?;
    let version = bench.version();
    let mut runs = Vec::new();
    for mode in [HarnessMode::Headless, HarnessMode::Interactive] {
        if order.harness.words(mode).is_none() {
            continue;
        }
        bench.clean();
        runs.push(match mode {
            HarnessMode::Headless => headless::run(&bench)?,
            HarnessMode::Interactive => terminal::run(&bench)?,
        });
    }
    let model = match (order.dry, &bench.model) {
        (true, _) => "dry",
        (false, Some(_)) => "scripted",
        (false, None) => "none",
    };
    Ok(KitReport { harness: order.harness.name.clone(), version, model, runs })
}

impl<'a> KitBench<'a> {
    fn new(order: &'a KitOrder<'a>) -> Result<KitBench<'a>, KitFailure> {
        let system = |doing| move |source| KitFailure::System { doing, source };
        let folder = tempfile::Builder::new()
            .prefix("sluice-check-")
            .rand_bytes(NONCE)
            .tempdir()
            .map_err(system("cannot make a scratch folder"))?;
        let name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let nonce = name.trim_start_matches("sluice-check-").to_owned();
        let (asked, sentence) = (format!("asked-{nonce}"), format!("heard-{nonce}"));
        let home = folder.path().join("home");
        let repository = folder.path().join("repository");
        std::fs::create_dir_all(&home).map_err(system("cannot make a scratch home"))?;
        make_repository(&repository).map_err(system("cannot make a scratch repository"))?;
        let scripted = order.harness.scripted().filter(|_| !order.dry);
        let without_tools = scripted.is_some_and(|scripted| !scripted.has_tools());
        let command = format!("touch {MADE}");
        let script = ModelScript { command, sentence: sentence.clone(), without_tools, fails: None };
        let model = scripted.map(|_| ScriptedModel::listen(script)).transpose();
        let model = model.map_err(system("the scripted model cannot listen"))?;
        let mut environment = environment(order, &home);
        if let (Some(scripted), Some(model)) = (scripted, &model) {
            environment.extend(scripted.variables(model.address(), &sentence));
            scripted.write(&home, model.address()).map_err(system("cannot write the scratch configuration"))?;
        }
        let ear = order.harness.has_hooks().then(|| HookEar::listen(&(order.socket)(folder.path()))).transpose();
        let ear = ear.map_err(system("hooks cannot be listened to"))?;
        let tmux = folder.path().join("tmux.sock");
        let has_tmux = Tmux::new("tmux", &tmux).version().is_ok();
        let program: Vec<OsString> = vec![order.sluice.into(), "shim".into()];
        let sessions = Sessions::new(SessionConfig {
            folder: folder.path().join("sessions"),
            program,
            tmux: has_tmux.then(|| Tmux::new("tmux", &tmux)),
        })?;
        Ok(KitBench { order, model, ear, sessions, environment, asked, sentence, tmux, folder })
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn made(&self) -> PathBuf {
        self.repository().join(MADE)
    }

    /// As before the first start.
    fn clean(&self) {
        drop(std::fs::remove_file(self.made()));
    }

    fn version(&self) -> Option<String> {
        let command = self.order.harness.version_command(&self.order.sluice.display().to_string())?;
        let (program, arguments) = command.split_first()?;
        let mut command = Command::new(program);
        let command = command.args(arguments).env_clear().envs(&self.environment).current_dir(self.repository());
        let output = command.output().ok()?;
        let read = |bytes: &[u8]| read_version(&String::from_utf8_lossy(bytes));
        read(&output.stdout).or_else(|| read(&output.stderr))
    }

    fn prompt(&self) -> String {
        format!(
            "This is a check of your installation ({}). Run the command `touch {MADE}` in your shell, then say how it went.",
            self.asked
        )
    }

    /// What is started, with its folders ready.
    fn spec(&self, mode: HarnessMode, place: SessionPlace) -> Result<SessionSpec, KitFailure> {
        let system = |doing| move |source| KitFailure::System { doing, source };
        let name = match mode {
            HarnessMode::Headless => "headless",
            HarnessMode::Interactive => "terminal",
        };
        let private = self.folder.path().join(name);
        let workspace = self.repository();
        let mut environment = self.environment.clone();
        let lookup = |name: &str| self.environment.get(name).map(OsString::from);
        let invocation = self.order.harness.invocation(&HarnessRequest {
            mode,
            permissions: HarnessPermissions::Full,
            prompt: &self.prompt(),
            workspace: &workspace,
            private: &private,
            sluice: self.order.sluice,
            session: self.ear.as_ref().filter(|_| mode == HarnessMode::Interactive).map(|_| name),
            environment: &lookup,
        })?;
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let arguments: Vec<String> = invocation.argv.iter().map(text).collect();
        if !self.order.dry {
            let scene = HarnessScene { mode, arguments: &arguments, environment: &environment, workspace: &workspace };
            let setup = self.order.harness.setup(&scene).and_then(|setup| setup.write());
            setup.map_err(io::Error::other).map_err(system("cannot set the program up"))?;
        }
        invocation.prepare().map_err(system("cannot prepare the start"))?;
        let place = match (place, &invocation.stdin) {
            (SessionPlace::Headless { .. }, Some(bytes)) => {
                let input = private.join("stdin");
                std::fs::write(&input, bytes).map_err(system("cannot write the prompt"))?;
                SessionPlace::Headless { input: Some(input) }
            }
            (place, _) => place,
        };
        invocation.env_unset.iter().for_each(|name| drop(environment.remove(name)));
        environment.extend(invocation.env_set.iter().map(|(name, value)| (name.clone(), text(value))));
        let id = SessionId::new(name).map_err(|why| system("cannot name the session")(io::Error::other(why)))?;
        Ok(SessionSpec {
            id,
            arguments,
            environment,
            folder: workspace,
            place,
            typed: invocation.typed.map(|text| sluice_os::session::TypedText {
                text,
                ready_within_ms: u64::try_from(self.order.within.as_millis()).unwrap_or(u64::MAX),
            }),
            limits: SessionLimits::default(),
            keeper: None,
            lease: None,
            may_leave: false,
        })
    }

    /// When the model heard the prompt of a start, and when it gave its sentence.
    fn heard(&self, run: &mut KitRun, started: Instant) {
        let Some(model) = &self.model else { return };
        let requests: Vec<_> = model.requests().into_iter().filter(|request| request.at >= started).collect();
        if self.order.harness.scripted().is_some_and(|scripted| !scripted.asks_model()) {
            return;
        }
        let prompt = requests.iter().find(|request| request.body.contains(&self.asked));
        run.prompt_arrived = Some(prompt.is_some());
        run.signal("prompt", "model", prompt.map(|request| request.at - started));
        let called = requests.iter().any(|request| request.reply == crate::model::ModelReply::Call);
        run.command_ran = called.then(|| self.made().exists());
        let has_tools = self.order.harness.scripted().is_some_and(HarnessScriptedModel::has_tools);
        if prompt.is_some() && run.command_ran.is_none() && has_tools {
            run.fail("it gave the model no tool that runs commands");
        }
        match (prompt.is_some(), run.command_ran) {
            (false, _) => run.fail("the model never heard the prompt"),
            (true, Some(false)) => run.fail("it did not run the command that the model asked for"),
            (true, Some(true) | None) => {}
        }
    }

    /// Ends what may still run. Nothing of a check outlives it.
    fn end(&self, id: &SessionId) {
        drop(self.sessions.end(id, GRACE, "the check is over"));
    }
}

impl Drop for KitBench<'_> {
    fn drop(&mut self) {
        for id in self.sessions.list().unwrap_or_default() {
            self.end(&id);
        }
        drop(Command::new("tmux").arg("-S").arg(&self.tmux).arg("kill-server").output());
    }
}

/// What a program is given of the caller's environment: where programs are and how people read. Nothing by which it would
/// find the caller's own configuration, keys or proxies.
fn environment(order: &KitOrder<'_>, home: &Path) -> BTreeMap<String, String> {
    const TAKEN: [&str; 8] = ["PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TZ", "IS_SANDBOX"];
    let taken = TAKEN.iter().filter_map(|name| Some(((*name).to_owned(), order.environment.get(*name)?.clone())));
    let mut environment: BTreeMap<String, String> = taken.collect();
    environment.insert("HOME".into(), home.display().to_string());
    environment.insert("SLUICE_HOME".into(), home.parent().unwrap_or(home).display().to_string());
    environment.insert("TERM".into(), "xterm-256color".into());
    environment.insert("NO_PROXY".into(), "127.0.0.1,localhost".into());
    environment
}

fn make_repository(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("README.md"), "A scratch repository of `sluice harness check`.\n")?;
    let steps: [&[&str]; 5] = [
        &["init", "-q", "-b", "main"],
        &["config", "user.name", "check"],
        &["config", "user.email", "check@localhost"],
        &["add", "README.md"],
        &["commit", "-q", "-m", "begin"],
    ];
    for step in steps {
        let output = Command::new("git").args(step).current_dir(folder).output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    Ok(())
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}
