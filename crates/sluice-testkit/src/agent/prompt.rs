//! What a prompt asks for, as far as an agent without a model can tell from its words.

use std::path::PathBuf;

pub(super) struct DemoPrompt {
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoPromptKind {
    Review,
    /// Ask, wait for a person, then work.
    Clarify,
    /// Go on where others got stuck.
    Stuck,
    Work,
}

impl DemoPrompt {
    pub(super) fn new(text: String) -> DemoPrompt {
        DemoPrompt { text }
    }

    fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    pub(super) fn role(&self) -> &'static str {
        if self.text.trim_start().starts_with("# Review") { "reviewer" } else { "worker" }
    }

    pub(super) fn kind(&self, role: &str) -> DemoPromptKind {
        let title = self.text.trim_start().lines().next().unwrap_or_default();
        if role == "reviewer" || title.starts_with("# Review") {
            DemoPromptKind::Review
        } else if title.contains("Stuck") {
            DemoPromptKind::Stuck
        } else if title.starts_with("# Task to be made clear") || self.says("unclear. Write ## Questions") {
            DemoPromptKind::Clarify
        } else {
            DemoPromptKind::Work
        }
    }

    /// Whether the agent stays and waits for messages after it has handed over.
    pub(super) fn stays(&self) -> bool {
        ["WAIT", "Stay in the session", "stay until the end", "Then wait for a message"]
            .iter()
            .any(|words| self.says(words))
    }

    /// Whether a stuck task is taken up only together with a person.
    pub(super) fn waits_for_a_person(&self) -> bool {
        self.says("WITH the human") || self.says("together with a person")
    }

    pub(super) fn names_status(&self, status: &str) -> bool {
        let wanted = format!("--status {status}");
        self.text.match_indices(&wanted).any(|(index, _)| {
            !self.text[index + wanted.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
        })
    }

    pub(super) fn handover(&self) -> Option<&'static str> {
        ["agent-review", "reviewing", "done"].into_iter().find(|status| self.names_status(status))
    }

    /// What stands behind `name:` at the beginning of a line.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let line = self.text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()
    }

    pub(super) fn asks_for_commits(&self) -> bool {
        let words = self.text.to_ascii_lowercase();
        words.contains("commit") && !words.contains("no commits") && !words.contains("change nothing")
    }

    /// The last example of a JSON answer in it.
    pub(super) fn example(&self) -> Option<serde_json::Value> {
        let mut found = None;
        let mut block: Option<String> = None;
        for line in self.text.lines().map(str::trim) {
            match (&mut block, line) {
                (None, "```json") => block = Some(String::new()),
                (Some(text), "```") => {
                    found = serde_json::from_str(text).ok().or(found);
                    block = None;
                }
                (Some(text), line) => text.push_str(&format!("{line}\n")),
                (None, _) => {}
            }
        }
        found
    }
}

/// A prompt that was too long for a command line names the file that holds it.
pub(super) fn file_named_in(words: &str) -> Option<PathBuf> {
    let (path, _) = words.strip_prefix("Read the file ")?.split_once(" to its end.")?;
    Some(PathBuf::from(path))
}

/// A script in a text: a fenced block `demo`, or all lines that begin with `demo:`, each a chain of its own.
pub(super) fn script_in(text: &str) -> Option<String> {
    let mut block: Option<Vec<&str>> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        match &mut block {
            Some(block) if trimmed.starts_with("```") => return Some(block.join("\n")),
            Some(block) => block.push(line),
            None if trimmed == "```demo" => block = Some(Vec::new()),
            None => lines.extend(trimmed.strip_prefix("demo:")),
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n---\n"))
}
