//! Looks whether everything that Sluice needs is there, and says what to do where it is not.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use sluice_api::workspace::WorkspaceList;
use sluice_api::{Client, Problem};
use sluice_store::{Meaning, Store, StoreError};

use self::DoctorStatus::{Broken, Missing, Warning};
use crate::home::channels::has_desktop;
use crate::perform::of_this_command;
use crate::settings::attached::{self, StoreChoice};
use crate::settings::config::HomeConfig;
use crate::settings::config_check;
use crate::settings::harnesses::{HarnessLookReport, HarnessReport, HarnessSurvey};
use crate::settings::places::HomePaths;
use crate::settings::room;
use crate::settings::units::written_size;
use crate::undone::described;

/// The oldest git that can do what is asked of it here.
const GIT: (u32, u32) = (2, 38);

/// Fewer file descriptors left than this are worth a word: starting one agent takes about ten.
const LITTLE_LEFT: usize = 32;
/// So many things that are damaged are named.
const MOST_NAMED: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DoctorStatus {
    Ok,
    /// It works, and something is worth knowing.
    Warning,
    /// It is not there, and nothing needs it yet.
    Missing,
    /// It keeps Sluice from working.
    Broken,
}

impl DoctorStatus {
    pub fn word(self) -> &'static str {
        match self {
            DoctorStatus::Ok => "ok",
            DoctorStatus::Warning => "warning",
            DoctorStatus::Missing => "missing",
            DoctorStatus::Broken => "broken",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct DoctorFinding {
    pub name: String,
    pub status: DoctorStatus,
    pub found: String,
    pub remedy: Option<String>,
}

fn finding(name: &str, status: DoctorStatus, found: impl Into<String>, remedy: Option<&str>) -> DoctorFinding {
    DoctorFinding { name: name.into(), status, found: found.into(), remedy: remedy.map(str::to_owned) }
}

fn broken(name: &str, problem: Problem) -> DoctorFinding {
    finding(name, Broken, problem.message, problem.hint.as_deref())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineSign {
    Answers,
    /// It runs and does not answer.
    Silent,
    None,
}

/// The engine that `SLUICE_URL` names. The rest is about this machine, and so that is said first.
pub fn elsewhere(places: &HomePaths, url: &str) -> DoctorFinding {
    let rest = format!("the rest is about this machine and its home {}", places.home().display());
    match Client::at(url).and_then(|client| client.health()) {
        Ok(health) => {
            finding("SLUICE_URL", DoctorStatus::Ok, format!("{url} answers (version {}); {rest}", health.version), None)
        }
        Err(problem) => {
            let found = format!("{url} cannot be asked: {}; {rest}", problem.message);
            let remedy = problem.hint.unwrap_or_else(|| "mend that, or unset SLUICE_URL to ask the engine here".into());
            finding("SLUICE_URL", Broken, found, Some(&remedy))
        }
    }
}

/// Looks at everything. An engine that runs has the store. `deep`: everything in it is read.
pub fn examine(places: &HomePaths, sign: EngineSign, deep: bool) -> Vec<DoctorFinding> {
    let running = sign != EngineSign::None;
    let mut findings = vec![home(places)];
    findings.extend(disk(places));
    findings.push(engine(sign));
    findings.extend(running.then(|| descriptors(places)).flatten());
    findings.extend(store(places, running, deep));
    findings.extend([git(), tmux()]);
    findings.extend(replication(places));
    let (config, harnesses) = settings(places);
    findings.push(config);
    findings.extend(harnesses);
    findings.push(finding(
        "isolation",
        DoctorStatus::Ok,
        "agents run as this user: Sluice stops mistakes, not malice",
        Some("for real isolation give agents another user, or a sandbox"),
    ));
    findings
}

/// What the engine says about worktrees and sessions; without it there is no telling who is known to whom.
pub fn worktrees(list: Option<&WorkspaceList>) -> Vec<DoctorFinding> {
    let Some(list) = list else {
        let remedy = Some("`sluice workspace list` starts one; then ask again");
        return vec![finding("worktrees", DoctorStatus::Ok, "not looked at: only a running engine knows them", remedy)];
    };
    let strays = list.strays.iter().map(|it| {
        let found = format!("{} lives in {}, and no task knows it", it.session, it.path);
        let remedy = format!(
            "`sluice workspace adopt {0}` gives it its task back, `sluice workspace end {0}` ends it; \
             its worktree is lent to nobody until then",
            it.session
        );
        finding("session", Warning, found, Some(&remedy))
    });
    let doubts = list.workspaces.iter().filter_map(|it| {
        let found = format!("{}: {}", it.path, it.doubt.as_ref()?);
        Some(finding("worktree", Warning, found, None))
    });
    let mut found: Vec<DoctorFinding> = strays.chain(doubts).collect();
    if found.is_empty() {
        found.push(finding("worktrees", DoctorStatus::Ok, format!("{}, all known", list.workspaces.len()), None));
    }
    found
}

pub fn paused(words: String) -> DoctorFinding {
    let remedy = "bring the store's server back, or the way to it: then they go on by themselves";
    finding("agents", Broken, words, Some(remedy))
}

fn home(places: &HomePaths) -> DoctorFinding {
    let home = places.home();
    let shown = home.display().to_string();
    let unwritable = |folder: &Path| {
        let remedy = "make it yours (chown, chmod 700) on a disk that can be written, or set SLUICE_HOME";
        finding("home", Broken, format!("{} cannot be written", folder.display()), Some(remedy))
    };
    match std::fs::metadata(home) {
        Err(_) if home.ancestors().find(|folder| folder.is_dir()).is_some_and(|folder| !can_write(folder)) => {
            let remedy = "make the folder that it lies in writable, or set SLUICE_HOME";
            finding("home", Broken, format!("{shown} is not there, and cannot be made"), Some(remedy))
        }
        Err(_) => finding("home", DoctorStatus::Ok, format!("{shown}: the first command makes it"), None),
        Ok(there) if !there.is_dir() => {
            finding("home", Broken, format!("{shown} is no folder"), Some("move it away, or set SLUICE_HOME"))
        }
        // Before what others may do: a folder that all can read, and none can write, is the worse of the two.
        Ok(_) if !can_write(home) => unwritable(home),
        Ok(there) if there.permissions().mode() & 0o077 != 0 => {
            finding("home", Warning, format!("{shown} can be read by others"), Some("chmod 700 on it"))
        }
        Ok(_) => match folders_in(home).iter().find(|folder| !can_write(folder)) {
            Some(folder) => unwritable(folder),
            None => finding("home", DoctorStatus::Ok, shown, None),
        },
    }
}

/// Whether files can be made in a folder, by the rights of this user and on that disk.
fn can_write(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

/// The folders that Sluice keeps its own files in: those directly in the home.
fn folders_in(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// The room on every file system of the home, by the settings; with those of no file where the file cannot be used.
fn disk(places: &HomePaths) -> Vec<DoctorFinding> {
    let config = HomeConfig::read(&places.config()).unwrap_or_default().workspaces; // what is wrong with it is told beside
    let rooms = room::rooms(places, &config);
    if rooms.is_empty() {
        return vec![finding("disk", Warning, "cannot be asked how much room it has", None)];
    }
    let found = rooms.iter().map(|it| match it.is_low {
        true => finding("disk", Warning, room::warning(it, &config), Some(room::WAY_OUT)),
        false => finding("disk", DoctorStatus::Ok, format!("{} free", written_size(it.free_bytes)), None),
    });
    found.collect()
}

fn engine(sign: EngineSign) -> DoctorFinding {
    match sign {
        EngineSign::Answers => finding("engine", DoctorStatus::Ok, "runs", None),
        EngineSign::None => {
            finding("engine", DoctorStatus::Ok, "does not run; the next command that needs it starts it", None)
        }
        EngineSign::Silent => {
            let remedy = "it may be stopped (`kill -CONT` lets it go on) or have too much to do; ask again later";
            finding("engine", Broken, "runs and does not answer", Some(remedy))
        }
    }
}

/// How many files the engine has open, and how many it may have. Without one it begins nothing, and waits.
fn descriptors(places: &HomePaths) -> Option<DoctorFinding> {
    // An engine runs, so the file is its.
    let lock = std::fs::read_to_string(places.lock()).ok()?;
    let pid: u32 = lock.split_whitespace().next()?.parse().ok()?;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let most: usize = line.split_whitespace().next()?.parse().ok()?;
    let found = format!("the engine (process {pid}) has {open} of {most} open");
    let remedy = "raise it for the engine that runs: `prlimit --pid PID --nofile=65536`, and `ulimit -n` for the next; \
                  what waits for one then goes on";
    Some(match open + LITTLE_LEFT > most {
        true => finding("descriptors", Warning, found, Some(remedy)),
        false => finding("descriptors", DoctorStatus::Ok, found, None),
    })
}

/// The name of findings about something that is stored and is not as it was written.
pub const DAMAGE: &str = "damage";

fn chosen(places: &HomePaths) -> Result<StoreChoice, Problem> {
    let config = HomeConfig::read(&places.config()).unwrap_or_default(); // what is wrong with it is told beside
    let asked = std::env::var("SLUICE_STORE").ok().filter(|address| !address.is_empty());
    attached::choose(places, &config, asked)
}

/// Which store the home has, and how it is. What is damaged is named, a finding each.
fn store(places: &HomePaths, running: bool, deep: bool) -> Vec<DoctorFinding> {
    let choice = match chosen(places) {
        Ok(choice) => choice,
        Err(problem) => return vec![broken("store", problem)],
    };
    let own = choice.address.strip_prefix("sqlite:").map(Path::new);
    if own.is_some_and(|file| !file.exists()) {
        let found = format!("{}: the first command makes it", choice.name);
        return vec![finding("store", DoctorStatus::Ok, found, None)];
    }
    let in_use = || {
        let found = format!("{}, in use by the engine", choice.name);
        vec![finding("store", DoctorStatus::Ok, found, Some("`sluice doctor --deep` reads all of it"))]
    };
    if running && !deep && own.is_some() {
        return in_use();
    }
    let mut is_older = None;
    let looked = Store::open(&choice.address).and_then(|store| {
        is_older = attached::must_hold_what_was_saved(&choice, &store).err();
        if deep || own.is_some() { store.verify() } else { Ok(Vec::new()) }
    });
    if let Some(problem) = is_older {
        return vec![broken("store", problem)];
    }
    let remedy = Some("`sluice restore FILE` puts a backup back");
    match looked {
        Ok(damage) if damage.is_empty() && running && !deep => in_use(),
        Ok(damage) if damage.is_empty() => {
            let read = if deep { ", read whole: every checksum is correct" } else { "" };
            vec![finding("store", DoctorStatus::Ok, format!("{}{read}", choice.name), None)]
        }
        Ok(damage) => {
            let damaged = damage.into_iter().take(MOST_NAMED).map(|it| {
                let what = it.stream.map_or_else(|| "the store".to_owned(), |stream| stream.to_string());
                finding(DAMAGE, Broken, format!("{what}: {}", it.why), None)
            });
            let store = finding("store", Broken, format!("{} is damaged", choice.name), remedy);
            std::iter::once(store).chain(damaged).collect()
        }
        // Nothing in it is damaged, and a backup would not help: the error says what does.
        Err(error @ StoreError::ReadOnly { .. }) => {
            vec![finding("store", Broken, described(&error), None)]
        }
        Err(error) => match error.meaning() {
            Meaning::Damaged | Meaning::Unusable => vec![
                finding("store", Broken, described(&error), remedy),
                finding(DAMAGE, Broken, format!("the store: {}", described(&error)), None),
            ],
            Meaning::Unavailable(_) | Meaning::Refused => {
                let remedy = "bring its server back, or the way to it; until then nothing is stored";
                vec![finding("store", Broken, described(&error), Some(remedy))]
            }
        },
    }
}

/// Whether a server that is named for the store keeps what it says it has stored.
fn replication(places: &HomePaths) -> Vec<DoctorFinding> {
    let Some(choice) = chosen(places).ok().filter(|choice| choice.address.starts_with("postgres")) else {
        return Vec::new();
    };
    match Store::open(&choice.address).and_then(|store| store.hazards()) {
        Ok(hazards) if hazards.is_empty() => {
            vec![finding("replication", DoctorStatus::Ok, "the server keeps what it says it has stored", None)]
        }
        Ok(hazards) => hazards
            .into_iter()
            .map(|it| {
                let found = format!("{}: {}", it.setting, it.means);
                finding("replication", Warning, found, Some(it.remedy))
            })
            .collect(),
        Err(error) => vec![finding("replication", Warning, described(&error), None)],
    }
}

fn git() -> DoctorFinding {
    let remedy = Some("install git 2.38 or later");
    match output("git", &["--version"]) {
        None => finding("git", Broken, "is not there", remedy),
        Some(text) => {
            let numbers: Vec<u32> =
                text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
            match numbers.as_slice() {
                [major, minor, ..] if (*major, *minor) < GIT => finding("git", Broken, text, remedy),
                _ => finding("git", DoctorStatus::Ok, text, None),
            }
        }
    }
}

fn tmux() -> DoctorFinding {
    match output("tmux", &["-V"]) {
        Some(text) => finding("tmux", DoctorStatus::Ok, text, None),
        None => {
            let found = "is not there; sessions run without it, and cannot be attached to";
            finding("tmux", Warning, found, Some("install tmux"))
        }
    }
}

fn settings(places: &HomePaths) -> (DoctorFinding, Vec<DoctorFinding>) {
    let file = places.config();
    let config = match config_check::read(&file) {
        Ok(config) => config,
        Err(problem) => return (broken("config", problem), Vec::new()),
    };
    if let Err(why) = config.known_harnesses() {
        return (finding("config", Broken, why, Some("mend [harnesses] in it")), Vec::new());
    }
    let shown = if file.exists() { file.display().to_string() } else { "none, and none is needed".into() };
    let told = notify(places, &config);
    let config = finding("config", DoctorStatus::Ok, shown, None);
    let here = std::env::current_dir().unwrap_or_default();
    match HarnessSurvey::of(places).and_then(|survey| survey.reports(&here, None)) {
        Ok(reports) => (config, reports.iter().map(harness).chain([told]).collect()),
        Err(problem) => (broken("config", problem), Vec::new()),
    }
}

/// How a person is told of what waits for them.
fn notify(places: &HomePaths, config: &HomeConfig) -> DoctorFinding {
    let set = &config.notify;
    let desktop = match set.desktop {
        true => match has_desktop(&of_this_command(places, &config.env), places.home()) {
            Ok(()) => "the desktop".to_owned(),
            Err(why) => format!("no desktop ({why})"),
        },
        false => "no desktop (`[notify] desktop` is false)".to_owned(),
    };
    let command = (!set.command.is_empty()).then(|| "a command".to_owned());
    let webhooks = (!set.webhook.is_empty()).then(|| format!("webhooks: {}", set.webhook.len()));
    let found = [Some(desktop), command, webhooks].into_iter().flatten().collect::<Vec<_>>().join(", ");
    finding("notify", DoctorStatus::Ok, found, Some("`sluice notify test` sends a message through each"))
}

fn harness(report: &HarnessReport) -> DoctorFinding {
    let HarnessReport { name, program, path, version, looks, remarks, .. } = report;
    if report.comes_with_sluice() {
        return finding(name, DoctorStatus::Ok, "comes with Sluice", None);
    }
    let Some(path) = path else {
        let place = if program.contains('/') { "there" } else { "on PATH" };
        return finding(name, Missing, format!("{program} is not {place}"), Some("install it to use this harness"));
    };
    let found = version.as_ref().unwrap_or(path);
    let refusing: Vec<&HarnessLookReport> = looks.iter().filter(|look| look.answer == "no").collect();
    if !refusing.is_empty() {
        let whys: Vec<&str> = refusing.iter().map(|look| look.why.as_str()).collect();
        let cures: Vec<&str> = refusing.iter().filter_map(|look| look.cure.as_deref()).collect();
        return finding(name, Warning, format!("{found}; {}", whys.join("; ")), Some(&cures.join("; ")));
    }
    let health = if report.is_unreduced { Warning } else { DoctorStatus::Ok };
    let advice = (!remarks.is_empty()).then(|| remarks.join(". "));
    finding(name, health, found, advice.as_deref())
}

/// The first line that a program prints.
fn output(program: &str, arguments: &[impl AsRef<OsStr>]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}
