//! The language of scripts: sections for roles and attempts, steps in them. The README shows it by examples.

use super::prompt;
use super::task::TaskText;

mod words;

use words::{pieces, words};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DemoScript {
    sections: Vec<DemoSection>,
}

#[derive(Debug, PartialEq, Eq)]
struct DemoSection {
    /// `None` is any role.
    role: Option<String>,
    first: u32,
    /// `None` is without end.
    last: Option<u32>,
    steps: Vec<DemoStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DemoStep {
    pub(super) verb: DemoVerb,
    pub(super) expectation: DemoExpectation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoExpectation {
    /// It is done; if not, the agent ends.
    Done,
    Either,
    /// It is refused; if not, the agent ends with 9.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DemoVerb {
    Work,
    Commit(Option<String>),
    Edit { path: String, text: Option<String> },
    Delete(String),
    Write { section: String, text: Option<String>, stale: bool },
    Update(String),
    Review { pass: bool, text: Option<String> },
    Sluice(Vec<String>),
    Git(Vec<String>),
    Say(String),
    Json(String),
    WaitForNotification,
    WaitFor(String),
    Tell(String),
    Exit(u8),
    Drop(String),
    Misbehave(Misbehaviour),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misbehaviour {
    Crash(String),
    Hang,
    IgnoreTerm,
    LeaveDaemon(Option<String>),
    TalkForever,
    Print { megabytes: u64 },
    Forge { key: String, value: String },
    TouchMain(String),
}

impl DemoStep {
    pub(super) fn plain(verb: DemoVerb) -> DemoStep {
        DemoStep { verb, expectation: DemoExpectation::Done }
    }
}

/// The script for an agent: from its environment, its task or its prompt, in this order.
///
/// A task's script without headings is about the worker, and about the reviewer where it begins with `review`.
pub(super) fn find(variable: Option<&str>, task: Option<&TaskText>, prompt: &str) -> Result<DemoScript, String> {
    if let Some(text) = variable.filter(|text| !text.trim().is_empty()) {
        return match text.strip_prefix('@') {
            None => DemoScript::read(text, None),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                DemoScript::read(&text, None)
            }
        };
    }
    if let Some(task) = task {
        let summary = task.field("summary").unwrap_or_default();
        let own =
            prompt::script_in(&task.body).or_else(|| summary.split_once("demo:").map(|(_, script)| script.to_owned()));
        if let Some(text) = own {
            return DemoScript::read(&text, Some("worker"));
        }
    }
    prompt::script_in(prompt).map_or_else(|| Ok(DemoScript::default()), |text| DemoScript::read(&text, None))
}

impl DemoScript {
    /// Reads a script; steps without a heading are for `role`, or for any.
    pub(super) fn read(text: &str, role: Option<&str>) -> Result<DemoScript, String> {
        let mut script = DemoScript::default();
        let mut open = OpenDemoSection::new(role.map(str::to_owned), role.is_some(), 1, None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line == "---" {
                open.close(&mut script);
                open = OpenDemoSection::new(role.map(str::to_owned), role.is_some(), 1, None);
                continue;
            }
            let rest = match heading(line) {
                None => line,
                Some((role, first, last, rest)) => {
                    open.close(&mut script);
                    open = OpenDemoSection::new(role, false, first, last);
                    rest
                }
            };
            for piece in pieces(rest) {
                let (piece, times) = repetition(piece);
                open.steps.push(step(piece)?);
                if let Some(times) = times {
                    open.close_after(times, &mut script);
                }
            }
        }
        open.close(&mut script);
        Ok(script)
    }

    /// The steps for this attempt of this role; what is said for exactly it goes before what is said for many.
    pub(super) fn section(&self, role: &str, attempt: u32) -> Option<&[DemoStep]> {
        let fits = |section: &&DemoSection| {
            section.role.as_deref().is_none_or(|wanted| wanted == role)
                && section.first <= attempt
                && section.last.is_none_or(|last| attempt <= last)
        };
        let best = self
            .sections
            .iter()
            .filter(fits)
            .max_by_key(|section| (section.role.is_some(), section.last.is_some(), section.first));
        best.map(|section| section.steps.as_slice())
    }
}

struct OpenDemoSection {
    role: Option<String>,
    /// Whether a first step `review` makes it the reviewer's.
    guesses_role: bool,
    first: u32,
    last: Option<u32>,
    steps: Vec<DemoStep>,
}

impl OpenDemoSection {
    fn new(role: Option<String>, guesses_role: bool, first: u32, last: Option<u32>) -> OpenDemoSection {
        OpenDemoSection { role, guesses_role, first, last, steps: Vec::new() }
    }

    fn close_after(&mut self, times: u32, script: &mut DemoScript) {
        let next = self.first.saturating_add(times);
        let last = self.last.replace(next - 1);
        self.close(script);
        (self.first, self.last) = (next, last);
    }

    fn close(&mut self, script: &mut DemoScript) {
        let steps = std::mem::take(&mut self.steps);
        let Some(first) = steps.first() else { return };
        let is_review = self.guesses_role && matches!(first.verb, DemoVerb::Review { .. });
        let role = if is_review { Some("reviewer".to_owned()) } else { self.role.clone() };
        script.sections.push(DemoSection { role, first: self.first, last: self.last, steps });
    }
}

/// `worker:`, `reviewer 2:`, `any 3+:`, `attempt 2:` at the beginning of a line.
fn heading(line: &str) -> Option<(Option<String>, u32, Option<u32>, &str)> {
    let (head, rest) = line.split_once(':')?;
    let mut parts = head.split_whitespace();
    let role = parts.next()?;
    let is_role = role.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_role || words::VERBS.contains(&role) {
        return None;
    }
    let (first, last) = match parts.next() {
        None => (1, None),
        Some(number) => match number.strip_suffix('+') {
            Some(number) => (number.parse().ok()?, None),
            None => (number.parse().ok()?, Some(number.parse().ok()?)),
        },
    };
    if parts.next().is_some() {
        return None;
    }
    let role = (!matches!(role, "any" | "attempt")).then(|| role.to_owned());
    Some((role, first, last, rest.trim()))
}

/// `crash once`, `crash twice`, `crash 3 times`.
fn repetition(piece: &str) -> (&str, Option<u32>) {
    for (word, times) in [(" once", 1), (" twice", 2)] {
        if let Some(piece) = piece.strip_suffix(word) {
            return (piece.trim_end(), Some(times));
        }
    }
    let times = piece.strip_suffix(" times").and_then(|rest| rest.rsplit_once(' '));
    match times.and_then(|(piece, number)| Some((piece, number.parse::<u32>().ok().filter(|number| *number > 0)?))) {
        Some((piece, number)) => (piece.trim_end(), Some(number)),
        None => (piece, None),
    }
}

fn step(piece: &str) -> Result<DemoStep, String> {
    for (word, expectation) in [("try ", DemoExpectation::Either), ("refused ", DemoExpectation::Refused)] {
        if let Some(rest) = piece.strip_prefix(word) {
            return Ok(DemoStep { verb: verb(rest.trim())?, expectation });
        }
    }
    Ok(DemoStep::plain(verb(piece)?))
}

fn verb(piece: &str) -> Result<DemoVerb, String> {
    let unknown = || format!("I do not understand `{piece}`; I know: {}", words::VERBS.join(", "));
    let all = words(piece);
    let list: Vec<&str> = all.iter().map(String::as_str).collect();
    let owned = |word: &str| word.to_owned();
    let rest = |word: &str| piece[word.len()..].trim().to_owned();
    let optional = |words: &[&str]| (!words.is_empty()).then(|| words.join(" "));
    Ok(match list.as_slice() {
        ["work" | "ok"] => DemoVerb::Work,
        ["commit", message @ ..] => DemoVerb::Commit(optional(message)),
        ["edit", path, text @ ..] => DemoVerb::Edit { path: owned(path), text: optional(text) },
        ["delete", path] => DemoVerb::Delete(owned(path)),
        ["write", "stale", section, text @ ..] => {
            DemoVerb::Write { section: owned(section), text: optional(text), stale: true }
        }
        ["write", section, text @ ..] => {
            DemoVerb::Write { section: owned(section), text: optional(text), stale: false }
        }
        ["update", status] => DemoVerb::Update(owned(status)),
        ["review", verdict @ ("pass" | "fail"), text @ ..] => {
            DemoVerb::Review { pass: *verdict == "pass", text: optional(text) }
        }
        ["pass"] => DemoVerb::Review { pass: true, text: None },
        ["sluice", ..] => DemoVerb::Sluice(all[1..].to_vec()),
        ["git", ..] => DemoVerb::Git(all[1..].to_vec()),
        ["say", words @ ..] => DemoVerb::Say(words.join(" ")),
        ["json", ..] => DemoVerb::Json(rest("json")),
        ["wait", "for", "notification"] => DemoVerb::WaitForNotification,
        ["wait", "for", path] => DemoVerb::WaitFor(owned(path)),
        ["tell", path] => DemoVerb::Tell(owned(path)),
        ["exit", code] => DemoVerb::Exit(code.parse().map_err(|_| unknown())?),
        ["exit"] => DemoVerb::Exit(0),
        ["drop", "token"] => DemoVerb::Drop("SLUICE_TOKEN".to_owned()),
        ["drop", name] => DemoVerb::Drop(owned(name)),
        ["merge"] => DemoVerb::Sluice(["task", "merge", "$SLUICE_TASK", "--local"].map(owned).to_vec()),
        ["crash"] => DemoVerb::Misbehave(Misbehaviour::Crash("KILL".to_owned())),
        ["crash", signal] => DemoVerb::Misbehave(Misbehaviour::Crash(owned(signal))),
        ["hang"] => DemoVerb::Misbehave(Misbehaviour::Hang),
        ["ignore", "term" | "TERM"] => DemoVerb::Misbehave(Misbehaviour::IgnoreTerm),
        ["leave", "daemon"] => DemoVerb::Misbehave(Misbehaviour::LeaveDaemon(None)),
        ["leave", "daemon", path] => DemoVerb::Misbehave(Misbehaviour::LeaveDaemon(Some(owned(path)))),
        ["talk", "forever"] => DemoVerb::Misbehave(Misbehaviour::TalkForever),
        ["print", megabytes, "MB"] => {
            DemoVerb::Misbehave(Misbehaviour::Print { megabytes: megabytes.parse().map_err(|_| unknown())? })
        }
        ["forge", key, value @ ..] => {
            DemoVerb::Misbehave(Misbehaviour::Forge { key: owned(key), value: value.join(" ") })
        }
        ["touch", "main"] => DemoVerb::Misbehave(Misbehaviour::TouchMain("index".to_owned())),
        ["touch", "main", what @ ("file" | "index" | "head" | "stash")] => {
            DemoVerb::Misbehave(Misbehaviour::TouchMain(owned(what)))
        }
        _ => return Err(unknown()),
    })
}
