//! TASK.md as an agent sees it: a text to be rewritten as a whole, with the frontmatter it once read.

use std::path::Path;

use super::DemoStop;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskText {
    pub(super) frontmatter: String,
    pub(super) body: String,
}

/// Where it is: in a project that has a TASK.md of its own, agents are told of another name.
fn place(folder: &Path) -> std::path::PathBuf {
    let other = folder.join(".sluice-task.md");
    if other.exists() { other } else { folder.join("TASK.md") }
}

impl TaskText {
    /// The one in `folder`, if there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<TaskText>, DemoStop> {
        match std::fs::read(place(folder)) {
            Ok(bytes) => Ok(Some(TaskText::new(&String::from_utf8_lossy(&bytes)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DemoStop::error("TASK.md", error)),
        }
    }

    pub(super) fn new(text: &str) -> TaskText {
        let end = text.starts_with("---\n").then(|| text[3..].find("\n---\n")).flatten();
        let length = end.map_or(0, |end| 3 + end + "\n---\n".len());
        TaskText { frontmatter: text[..length].to_owned(), body: text[length..].to_owned() }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), DemoStop> {
        let text = format!("{}{}", self.frontmatter, self.body);
        std::fs::write(place(folder), text).map_err(|error| DemoStop::error("TASK.md", error))
    }

    pub(super) fn field(&self, key: &str) -> Option<String> {
        let value = self.frontmatter.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
        let text = serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
        (!text.is_empty() && text != "null").then_some(text)
    }

    /// Puts another value behind `key`, as no agent should.
    pub(super) fn forge(&mut self, key: &str, value: &str) {
        let lines = self.frontmatter.lines().map(|line| {
            let is_it = line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
            if is_it { format!("{key}: {value}\n") } else { format!("{line}\n") }
        });
        self.frontmatter = lines.collect();
    }

    /// Puts `text` under `## title`, in place of what stands there.
    pub(super) fn set_section(&mut self, title: &str, text: &str) {
        let section = format!("## {title}\n\n{}\n", text.trim());
        match self.find(title) {
            Some((start, end)) => {
                let gap = if self.body[end..].is_empty() { "" } else { "\n" };
                self.body.replace_range(start..end, &format!("{section}{gap}"));
            }
            None => {
                let gap = match self.body.as_str() {
                    "" => "",
                    body if body.ends_with("\n\n") => "",
                    body if body.ends_with('\n') => "\n",
                    _ => "\n\n",
                };
                self.body.push_str(&format!("{gap}{section}"));
            }
        }
    }

    /// Where the last section of this title begins, and where it ends.
    fn find(&self, title: &str) -> Option<(usize, usize)> {
        let mut found = None;
        let mut is_fenced = false;
        let mut place = 0;
        for line in self.body.split_inclusive('\n') {
            if line.starts_with("```") || line.starts_with("~~~") {
                is_fenced = !is_fenced;
            } else if !is_fenced && line.starts_with("## ") {
                if let Some((_, end @ None)) = &mut found {
                    *end = Some(place);
                }
                if line[3..].trim() == title {
                    found = Some((place, None));
                }
            }
            place += line.len();
        }
        found.map(|(start, end)| (start, end.unwrap_or(self.body.len())))
    }
}
