//! Programs that the agent calls: git and `sluice`. What they say is shown as the agent's own output.

use std::ffi::OsString;
use std::process::{Command, Output, Stdio};

use super::{DemoAgent, DemoStop};

impl DemoAgent {
    pub(super) fn git(&self, words: &[String]) -> Result<String, DemoStop> {
        let words: Vec<String> = words.iter().map(|word| self.filled(word)).collect();
        let output = self.call(OsString::from("git"), &words)?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() {
            return Ok(text);
        }
        self.print(&String::from_utf8_lossy(&output.stderr))?;
        self.say(&format!("git {} failed", words.join(" ")))?;
        Err(DemoStop::Exit(1))
    }

    pub(super) fn ask_git(&self, words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let output = self.call(OsString::from("git"), &words).ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs `sluice`. When it refuses, the agent ends with its exit status.
    pub(super) fn sluice(&self, words: &[String]) -> Result<(), DemoStop> {
        let words: Vec<String> = words.iter().map(|word| self.filled(word)).collect();
        let program = self.variable("SLUICE_BIN").unwrap_or_else(|| "sluice".to_owned());
        self.say(&format!("$ sluice {}", words.join(" ")))?;
        let output = self.call(OsString::from(program), &words)?;
        self.print(&String::from_utf8_lossy(&output.stdout))?;
        self.print(&String::from_utf8_lossy(&output.stderr))?;
        match output.status.code() {
            Some(0) => Ok(()),
            code => Err(DemoStop::Exit(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
        }
    }

    pub(super) fn update(&self, status: &str) -> Result<(), DemoStop> {
        self.sluice(&["task", "update", "--status", status].map(str::to_owned))
    }

    /// `$NAME` as a whole word is that variable.
    fn filled(&self, word: &str) -> String {
        word.strip_prefix('$').and_then(|name| self.variable(name)).unwrap_or_else(|| word.to_owned())
    }

    fn call(&self, program: OsString, words: &[String]) -> Result<Output, DemoStop> {
        let mut command = Command::new(&program);
        command.args(words).current_dir(&self.folder).env_clear().envs(&self.environment);
        // What is typed is for the agent, not for what it calls.
        command.stdin(Stdio::null());
        command.output().map_err(|error| DemoStop::error(&program.to_string_lossy(), error))
    }
}
