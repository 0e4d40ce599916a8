//! How a command answers: data to stdout, the rest to stderr, and an exit code that scripts can rely on.
//!
//! Whatever is shown to people goes through [`print`] and [`say`], which make it harmless: most of it was written by others.
//! Only what we colour ourselves goes past them.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::json;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::machine::RefusalCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExit {
    /// The command did what was asked.
    Done = 0,
    /// The engine refused the request, or it failed.
    Refused = 1,
    /// The arguments of the command are wrong.
    Usage = 2,
    /// What the command names does not exist.
    NotFound = 3,
    /// The caller may not do this.
    NotPermitted = 4,
    /// Another request has changed the same thing first.
    Conflict = 5,
    /// The engine cannot be reached, or what it has stored cannot be read.
    Unavailable = 6,
    /// A person is needed.
    Held = 10,
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct CliFailure {
    pub(crate) exit: CliExit,
    pub(crate) code: String,
    pub(crate) message: String,
    /// What to do about the failure; absent where there is no advice.
    pub(crate) hint: Option<String>,
}

impl CliFailure {
    pub(crate) fn new(exit: CliExit, code: impl Into<String>, message: impl Into<String>) -> Self {
        CliFailure { exit, code: code.into(), message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn document(&self) -> serde_json::Value {
        json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } })
    }
}

impl From<Problem> for CliFailure {
    fn from(problem: Problem) -> Self {
        let exit = match problem.status {
            ProblemStatus::BadRequest
            | ProblemStatus::WrongMethod
            | ProblemStatus::TooLarge
            | ProblemStatus::WrongForm => CliExit::Usage,
            ProblemStatus::Unauthorized | ProblemStatus::Forbidden => CliExit::NotPermitted,
            ProblemStatus::NotFound => CliExit::NotFound,
            ProblemStatus::Conflict => CliExit::Conflict,
            ProblemStatus::Fault if problem.code == Problem::DAMAGED => CliExit::Unavailable,
            ProblemStatus::Refused | ProblemStatus::Fault => CliExit::Refused,
            ProblemStatus::TooMany | ProblemStatus::Unavailable | ProblemStatus::Accepted => CliExit::Unavailable,
        };
        let hint = problem.hint.map(|hint| in_flags(&hint));
        CliFailure { exit, code: problem.code, message: problem.message, hint }
    }
}

/// A hint of the engine in the words of the command line. The engine names the fields of a request, `project=NAME`, which here
/// are flags: `--project NAME`; a field that is `true` is a flag alone, and one of the inputs is one `--input`.
fn in_flags(hint: &str) -> String {
    let flag = |quoted: &str| {
        let (field, value) = quoted.split_once('=').filter(|_| !quoted.contains(' '))?;
        let (field, value) = match field.strip_prefix("inputs.") {
            Some(name) => ("input", format!(" {name}={value}")),
            None if value == "true" => (field, String::new()),
            None => (field, format!(" {value}")),
        };
        let is_field = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_field.then(|| format!("--{}{value}", field.replace('_', "-")))
    };
    // Every second part stands between backquotes.
    let parts = hint.split('`').enumerate().map(|(index, part)| match flag(part).filter(|_| index % 2 == 1) {
        Some(flag) => flag,
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliOutput {
    /// Words, with colour where the terminal has it.
    People,
    Json,
}

impl CliOutput {
    /// The exit code of a command that has ended; a failure is told first.
    pub(crate) fn finish(self, result: Result<ExitCode, CliFailure>) -> ExitCode {
        sluice_api::client::paused().iter().for_each(|words| say(&format!("warning: {words}")));
        if let Some(words) = sluice_api::client::config_trouble() {
            say(&format!("warning: {words}"));
            say("hint: `sluice config check` shows every problem and what to do about it");
        }
        match result {
            Ok(exit) => match sluice_api::client::damage() {
                None => exit,
                // The answer holds what could be read; nobody must take that for all there is.
                Some(damage) => {
                    say(&format!("error: the store is damaged, and what is shown lacks it ({damage})"));
                    say("hint: `sluice doctor --deep` names everything; `sluice restore FILE` puts a backup back");
                    CliExit::Unavailable.into()
                }
            },
            Err(failure) => {
                self.tell(&failure);
                failure.exit.into()
            }
        }
    }

    /// Shows what was asked for: this document to programs, or what is printed to people.
    pub(crate) fn show(
        self,
        document: &impl serde::Serialize,
        to_people: impl FnOnce(),
    ) -> Result<CliExit, CliFailure> {
        match self {
            CliOutput::Json => print_json(document),
            CliOutput::People => to_people(),
        }
        Ok(CliExit::Done)
    }

    pub(crate) fn tell(self, failure: &CliFailure) {
        match self {
            CliOutput::Json => print_json(&failure.document()),
            CliOutput::People => {
                say(&format!("error: {}", failure.message));
                if let Some(hint) = &failure.hint {
                    say(&format!("hint: {hint}"));
                }
                if let Some(code) = RefusalCode::parse(&failure.code) {
                    say(&format!("note: `sluice workflow explain {}` tells more about this refusal", code.as_str()));
                }
            }
        }
    }
}

/// Writes data to stdout, for people.
pub(crate) fn print(text: &str) {
    print_coloured(&harmless(text));
}

/// Writes what others have written to stdout: byte by byte into a file or to a program, harmless on a terminal.
pub(crate) fn print_as_written(bytes: &[u8]) {
    if io::stdout().is_terminal() { print(&String::from_utf8_lossy(bytes)) } else { print_bytes(bytes) }
}

/// Writes to stdout what we have coloured ourselves. What others have written in it has been made harmless.
pub(crate) fn print_coloured(text: &str) {
    let mut stdout = anstream::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// A text with what a terminal would obey made visible, and what would show it in another order. Lines and tabs stay.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter.to_string(),
        // As `cat -v` shows them.
        '\0'..='\u{1f}' => format!("^{}", u8::try_from(letter).map_or('?', |byte| char::from(byte + b'@'))),
        '\u{7f}' => "^?".to_owned(),
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => letter.escape_unicode().to_string(),
        other => other.to_string(),
    };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// Writes bytes to stdout as they are, whatever the terminal can show.
pub(crate) fn print_bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// A reader that has gone away (`| head`) is no failure. Anything else is: who redirects into a file on a full disk
/// must not take the half of it for the whole.
fn written(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            say(&format!("error: cannot write the answer: {error}"));
            std::process::exit(i32::from(CliExit::Refused as u8));
        }
    }
}

/// Writes a JSON document to stdout.
pub(crate) fn print_json(document: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    print_bytes(format!("{text}\n").as_bytes());
}

/// Tells a person something on stderr.
pub(crate) fn say(line: &str) {
    say_coloured(&harmless(line));
}

/// The same with what we have coloured ourselves. What others have written in it has been made harmless.
pub(crate) fn say_coloured(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::{harmless, in_flags};

    #[test]
    fn fields_of_a_hint_are_flags_here() {
        assert_eq!(in_flags("`project=NAME` names it"), "`--project NAME` names it");
        assert_eq!(in_flags("`force=true`, or not"), "`--force`, or not");
        assert_eq!(in_flags("`inputs.word=…` gives it"), "`--input word=…` gives it");
        assert_eq!(in_flags("`review_harness=NAME`"), "`--review-harness NAME`");
        for same in ["`sluice task show x`", "`SLUICE_HOME=x` a=b", "`git -c a=b status`", "", "`"] {
            assert_eq!(in_flags(same), same);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(
            harmless("\u{1b}]0;owned\u{7}ok\r\n\tred\u{1b}[31m\u{9b}1m\u{7f}é\u{202e}"),
            "^[]0;owned^Gok\n\tred^[[31m\\u{9b}1m^?é\\u{202e}"
        );
    }
}
