//! The agent: reads its prompt and its script, does what they say in the repository it stands in, and ends.
//!
//! It never sleeps and never asks the clock: it waits by blocking on stdin or on a pipe that a script names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

mod attempt;
mod commands;
mod job;
mod misbehaviour;
mod prompt;
mod script;
mod task;

use prompt::DemoPrompt;
use script::{DemoScript, DemoStep, DemoVerb};
use task::TaskText;

/// Runs the agent in the current folder with these words and this environment, and says how it ended.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    let environment: BTreeMap<OsString, OsString> = environment.into_iter().collect();
    let ended = DemoOptions::read(arguments).and_then(|options| run(options, environment));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(DemoStop::Exit(code)) => ExitCode::from(code),
        Err(DemoStop::Error(problem)) => {
            // Nobody may be reading; then there is nobody to tell.
            drop(writeln!(std::io::stderr(), "demo: {problem}"));
            ExitCode::from(2)
        }
    }
}

#[derive(Debug)]
enum DemoStop {
    /// Its script, or an answer it got, ends it.
    Exit(u8),
    Error(String),
}

impl DemoStop {
    fn error(what: &str, error: impl std::fmt::Display) -> DemoStop {
        DemoStop::Error(format!("{what}: {error}"))
    }
}

#[derive(Default)]
struct DemoOptions {
    prompt: Option<String>,
    prompt_file: Option<PathBuf>,
    script: Option<PathBuf>,
    /// When it has started itself anew: the step to go on with, and the attempt it is.
    resume_at: usize,
    attempt: Option<u32>,
}

impl DemoOptions {
    fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<DemoOptions, DemoStop> {
        let mut options = DemoOptions::default();
        let mut arguments = arguments.into_iter();
        while let Some(word) = arguments.next() {
            let text = word.to_string_lossy().into_owned();
            let mut value = || arguments.next().ok_or_else(|| DemoStop::Error(format!("`{text}` needs a value")));
            match text.as_str() {
                // What it may do is not its own to decide: a reduced agent that does more is for others to stop.
                "--reduced" => {}
                "--prompt-file" => options.prompt_file = Some(value()?.into()),
                "--script" => options.script = Some(value()?.into()),
                "--resume-at" => options.resume_at = number(&value()?)?,
                "--attempt" => options.attempt = Some(number(&value()?)?),
                unknown if unknown.starts_with("--") => {
                    return Err(DemoStop::Error(format!("unknown option `{unknown}`")));
                }
                _ => options.prompt = Some(text),
            }
        }
        Ok(options)
    }

    fn prompt(&self) -> Result<String, DemoStop> {
        let file = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| DemoStop::error(&format!("{}", path.display()), error))
        };
        match (&self.prompt_file, &self.prompt) {
            (Some(path), _) => file(path),
            (None, Some(words)) => match prompt::file_named_in(words) {
                Some(path) => file(&path),
                None => Ok(words.clone()),
            },
            (None, None) => {
                let mut words = Vec::new();
                std::io::stdin().read_to_end(&mut words).map_err(|error| DemoStop::error("stdin", error))?;
                Ok(String::from_utf8_lossy(&words).into_owned())
            }
        }
    }
}

fn number<T: std::str::FromStr>(word: &OsString) -> Result<T, DemoStop> {
    let text = word.to_string_lossy();
    text.parse().map_err(|_| DemoStop::Error(format!("`{text}` is no number")))
}

struct DemoAgent {
    environment: BTreeMap<OsString, OsString>,
    folder: PathBuf,
    prompt: DemoPrompt,
    role: String,
    /// Which start of this role on this task or step it is, from 1.
    attempt: u32,
    /// TASK.md as it was when the agent first read it.
    first: Option<TaskText>,
}

fn run(options: DemoOptions, environment: BTreeMap<OsString, OsString>) -> Result<(), DemoStop> {
    let folder = std::env::current_dir().map_err(|error| DemoStop::error("the current folder", error))?;
    let prompt = DemoPrompt::new(options.prompt()?);
    let variable =
        |name: &str| environment.get(&OsString::from(name)).map(|value| value.to_string_lossy().into_owned());
    let role = variable("SLUICE_ROLE").filter(|role| !role.is_empty()).unwrap_or_else(|| prompt.role().to_owned());
    let first = TaskText::read(&folder)?;
    let script = match &options.script {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| DemoStop::error(&path.display().to_string(), error))?;
            DemoScript::read(&text, None)
        }
        None => script::find(variable("SLUICE_DEMO").as_deref(), first.as_ref(), &prompt.text),
    };
    let script = script.map_err(DemoStop::Error)?;
    let mut agent = DemoAgent { environment, folder, prompt, role, attempt: 1, first };
    agent.attempt = match options.attempt {
        Some(attempt) => attempt,
        None => agent.count_attempt()?,
    };
    let steps = match script.section(&agent.role, agent.attempt) {
        Some(steps) => steps.to_vec(),
        None => vec![DemoStep::plain(DemoVerb::Work)],
    };
    agent.say(&format!("{}, attempt {}", agent.role, agent.attempt))?;
    for (index, step) in steps.iter().enumerate().skip(options.resume_at) {
        agent.perform(step, index)?;
    }
    Ok(())
}

impl DemoAgent {
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(&OsString::from(name)).map(|value| value.to_string_lossy().into_owned())
    }

    fn say(&self, words: &str) -> Result<(), DemoStop> {
        self.print(&format!("demo: {words}\n"))
    }

    /// Prints. When no reader is left, that is the end.
    fn print(&self, words: &str) -> Result<(), DemoStop> {
        let mut out = std::io::stdout().lock();
        out.write_all(words.as_bytes()).and_then(|()| out.flush()).map_err(|_| DemoStop::Exit(1))
    }

    fn perform(&mut self, step: &DemoStep, index: usize) -> Result<(), DemoStop> {
        match step.expectation {
            script::DemoExpectation::Done => self.act(&step.verb, index),
            script::DemoExpectation::Either => match self.act(&step.verb, index) {
                Err(DemoStop::Exit(_)) | Ok(()) => Ok(()),
                error @ Err(DemoStop::Error(_)) => error,
            },
            script::DemoExpectation::Refused => match self.act(&step.verb, index) {
                Err(DemoStop::Exit(_)) => self.say("refused, as it should be"),
                Ok(()) => {
                    self.say("this should have been refused")?;
                    Err(DemoStop::Exit(9))
                }
                error @ Err(DemoStop::Error(_)) => error,
            },
        }
    }

    fn act(&mut self, verb: &DemoVerb, index: usize) -> Result<(), DemoStop> {
        match verb {
            DemoVerb::Work => self.work(),
            DemoVerb::Commit(message) => self.change_and_commit(message.as_deref()),
            DemoVerb::Edit { path, text } => self.edit(path, text.as_deref()),
            DemoVerb::Delete(path) => {
                std::fs::remove_file(self.folder.join(path)).map_err(|error| DemoStop::error(path, error))
            }
            DemoVerb::Write { section, text, stale } => self.write_section(section, text.as_deref(), *stale),
            DemoVerb::Update(status) => self.update(status),
            DemoVerb::Review { pass, text } => self.review(*pass, text.as_deref()),
            DemoVerb::Sluice(words) => self.sluice(words),
            DemoVerb::Git(words) => self.git(words).map(drop),
            DemoVerb::Say(words) => self.print(&format!("{words}\n")),
            DemoVerb::Json(value) => self.print(&format!("```json\n{value}\n```\n")),
            DemoVerb::WaitForNotification => match self.notification()? {
                Some(words) => self.say(&format!("heard: {words}")),
                None => Err(DemoStop::Exit(0)),
            },
            DemoVerb::WaitFor(path) => {
                std::fs::read(self.folder.join(path)).map(drop).map_err(|error| DemoStop::error(path, error))
            }
            DemoVerb::Tell(path) => {
                let words = format!("{} {}\n", self.role, self.attempt);
                let opened = std::fs::OpenOptions::new().write(true).open(self.folder.join(path));
                opened
                    .and_then(|mut pipe| pipe.write_all(words.as_bytes()))
                    .map_err(|error| DemoStop::error(path, error))
            }
            DemoVerb::Exit(code) => Err(DemoStop::Exit(*code)),
            DemoVerb::Drop(name) => {
                self.environment.remove(&OsString::from(name));
                Ok(())
            }
            DemoVerb::Misbehave(how) => self.misbehave(how, index),
        }
    }
}
