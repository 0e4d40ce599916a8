//! What is known here about the agent programs: which are installed, in which version, and what a start would meet. The
//! command `harness` and the doctor show it. It starts a program for its version alone, and changes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use sluice_api::problem::Problem;
use sluice_os::harness::{
    Harness, HarnessAnswer, HarnessLook, HarnessMode, HarnessScene, Harnesses, find_program, repository_of,
};
use sluice_os::process::{GRACE, ProcessEnding, ProcessScript, ScriptCancel, ScriptProgram, run};
use sluice_worker::perform::of_this_command;

use super::config::HomeConfig;
use super::places::HomePaths;

/// What a harness calls a program that comes with Sluice.
const OWN_PROGRAM: &str = "{sluice}";
/// How long a program may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(20);
/// Bytes of an answer to `--version` that are read.
const LONGEST_ANSWER: usize = 4096;

/// One harness, as it is found here.
#[derive(Clone, Debug, Serialize)]
pub struct HarnessReport {
    pub name: String,
    pub program: String,
    /// Where it is found with the PATH of a session; absent if it is not.
    pub path: Option<String>,
    /// The first line of its answer; absent if it was not asked, or did not answer.
    pub version: Option<String>,
    /// The version that was tried with Sluice last.
    pub tried: Option<String>,
    pub looks: Vec<HarnessLookReport>,
    /// How long the looks took, in microseconds: each start takes so much longer because of them.
    pub looked_us: u64,
    /// Whether reviewers or arbiters have full permissions with it.
    pub is_unreduced: bool,
    /// What to know before one relies on it.
    pub remarks: Vec<String>,
}

/// What a look before a start finds.
#[derive(Clone, Debug, Serialize)]
pub struct HarnessLookReport {
    pub look: &'static str,
    /// `yes`, `no` or `unknown`.
    pub answer: &'static str,
    pub why: String,
    /// What a person can do about a no.
    pub cure: Option<String>,
}

impl HarnessReport {
    pub fn comes_with_sluice(&self) -> bool {
        self.program == OWN_PROGRAM
    }

    pub fn look(&self, look: HarnessLook) -> Option<&HarnessLookReport> {
        self.looks.iter().find(|it| it.look == look.word())
    }
}

/// The programs of this home as a command of this shell would start them, and the folder in which they would work.
pub struct HarnessSurvey {
    pub harnesses: Harnesses,
    environment: BTreeMap<String, String>,
}

impl HarnessSurvey {
    pub fn of(places: &HomePaths) -> Result<HarnessSurvey, Problem> {
        let config = HomeConfig::read(&places.config())?;
        let harnesses = config.known_harnesses().map_err(Problem::bad_request)?;
        Ok(HarnessSurvey { harnesses, environment: of_this_command(places, &config.env) })
    }

    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// All harnesses, or the one of this name. The programs are asked for their versions at the same time.
    pub fn reports(&self, folder: &Path, name: Option<&str>) -> Result<Vec<HarnessReport>, Problem> {
        let chosen: Vec<&Harness> = match name {
            Some(name) => vec![self.harnesses.get(name).map_err(|error| Problem::not_found(error.to_string()))?],
            None => self.harnesses.iter().collect(),
        };
        Ok(std::thread::scope(|scope| {
            let asked: Vec<_> =
                chosen.into_iter().map(|harness| scope.spawn(|| self.report(harness, folder))).collect();
            asked.into_iter().filter_map(|it| it.join().ok()).collect()
        }))
    }

    /// How a start of this harness in a terminal would be; without one, where it has no command for a terminal.
    pub fn scene<'a>(&'a self, harness: &'a Harness, folder: &'a Path) -> HarnessScene<'a> {
        let mode = [HarnessMode::Interactive, HarnessMode::Headless]
            .into_iter()
            .find(|mode| harness.words(*mode).is_some())
            .unwrap_or(HarnessMode::Headless);
        let arguments = harness.words(mode).unwrap_or_default();
        HarnessScene { mode, arguments, environment: &self.environment, workspace: folder }
    }

    fn report(&self, harness: &Harness, folder: &Path) -> HarnessReport {
        let program = harness.program().unwrap_or_default();
        let mut report = HarnessReport {
            name: harness.name.clone(),
            program: program.to_owned(),
            path: None,
            version: None,
            tried: harness.tried.clone(),
            looks: Vec::new(),
            looked_us: 0,
            is_unreduced: !harness.warnings().is_empty(),
            remarks: harness.warnings().into_iter().take(1).chain(harness.remark.clone()).collect(),
        };
        if report.comes_with_sluice() {
            report.version = Some(env!("CARGO_PKG_VERSION").to_owned());
            return report;
        }
        let path = find_program(program, self.environment.get("PATH").map(String::as_str), folder);
        report.version = path.as_ref().and_then(|path| self.version(harness, &path.display().to_string()));
        report.path = path.map(|path| path.display().to_string());
        let is_elsewhere = repository_of(folder).is_none();
        let began = Instant::now();
        let looks = harness.looks(&self.scene(harness, folder));
        report.looked_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        // Outside repositories no work is done.
        let told = looks.into_iter().filter(|it| !(is_elsewhere && it.look == HarnessLook::Trust));
        report.looks = told.map(|it| look_report(it.look, it.answer)).collect();
        report
    }

    fn version(&self, harness: &Harness, path: &str) -> Option<String> {
        let command = harness.version_command(path)?;
        let scratch = tempfile::tempdir().ok()?;
        let script = ProcessScript {
            program: ScriptProgram::Arguments(
                std::iter::once(path.to_owned()).chain(command.into_iter().skip(1)).collect(),
            ),
            environment: self.environment.clone(),
            folder: scratch.path().to_owned(),
            input: Vec::new(),
            timeout: Some(VERSION_WITHIN),
            grace: GRACE,
            output_limit: LONGEST_ANSWER,
            output_file: None,
            record: scratch.path().join("version"),
            speaks_for: None,
            ward: None,
        };
        let outcome = run(&script, &ScriptCancel::new().ok()?).ok()?;
        // Some say it among their complaints.
        let answer = format!("{}\n{}", outcome.stdout.text(), outcome.stderr.text());
        let line = answer.lines().map(str::trim).find(|line| !line.is_empty())?;
        (outcome.ending == ProcessEnding::Code(0)).then(|| line.to_owned())
    }
}

fn look_report(look: HarnessLook, answer: HarnessAnswer) -> HarnessLookReport {
    let word = answer.word();
    let (why, cure) = match answer {
        HarnessAnswer::Yes(by) => (by, None),
        HarnessAnswer::No { why, cure } => (why, Some(cure.text().to_owned())),
        HarnessAnswer::Unknown(why) => (why, None),
    };
    HarnessLookReport { look: look.word(), answer: word, why, cure }
}
