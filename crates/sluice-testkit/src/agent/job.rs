//! The job done well: what an agent does when its script says `work`, or says nothing.

use std::io::BufRead;

use super::prompt::DemoPromptKind;
use super::task::TaskText;
use super::{DemoAgent, DemoStop};

impl DemoAgent {
    pub(super) fn work(&mut self) -> Result<(), DemoStop> {
        if self.first.is_none() {
            return self.step();
        }
        let has_no_summary = self.field("summary").is_none();
        match self.prompt.kind(&self.role) {
            DemoPromptKind::Review => self.review(true, None),
            DemoPromptKind::Clarify => self.clarify(),
            DemoPromptKind::Work if has_no_summary => self.clarify(),
            DemoPromptKind::Stuck if self.prompt.waits_for_a_person() => {
                self.say("This task is stuck. What shall I do?")?;
                if self.notification()?.is_none() {
                    return Ok(());
                }
                self.build()
            }
            DemoPromptKind::Stuck => self.build(),
            DemoPromptKind::Work => {
                let status = self.field("status").or_else(|| self.prompt.field("Status").map(str::to_owned));
                match status.as_deref() {
                    Some("planning") => self.plan().and_then(|()| self.build())?,
                    Some("agent-review" | "reviewing") if self.prompt.stays() => {}
                    Some(_) | None => self.build()?,
                }
                self.stay()
            }
        }
    }

    /// A step of a run: the change, if one is asked for, and an answer like the example in the prompt.
    fn step(&mut self) -> Result<(), DemoStop> {
        let judges = ["reviewer", "planner", "arbiter", "judge"].contains(&self.role.as_str());
        if self.prompt.asks_for_commits() && !judges && self.ask_git(&["rev-parse", "--git-dir"]).is_some() {
            self.change_and_commit(None)?;
        }
        let answer = self.prompt.example().unwrap_or_else(|| {
            let summary = format!("The {} has done what was asked, attempt {}.", self.role, self.attempt);
            match self.prompt.kind(&self.role) {
                DemoPromptKind::Review => serde_json::json!({"summary": summary, "result": "PASS"}),
                DemoPromptKind::Clarify | DemoPromptKind::Stuck | DemoPromptKind::Work => {
                    serde_json::json!({ "summary": summary })
                }
            }
        });
        self.print(&format!("```json\n{answer}\n```\n"))
    }

    fn clarify(&mut self) -> Result<(), DemoStop> {
        self.write_section("Questions", None, false)?;
        let is_there = self.field("status").as_deref() == Some("clarification");
        if !is_there && self.prompt.names_status("clarification") {
            self.update("clarification")?;
        }
        let Some(answer) = self.notification()? else { return Ok(()) };
        self.sluice(&["task", "update", "--summary", answer.as_str()].map(str::to_owned))?;
        if self.prompt.names_status("planning") {
            self.update("planning")?;
            self.plan()?;
        } else {
            self.write_section("Notes", Some(&format!("Agreed: {answer}")), false)?;
            self.update("working")?;
        }
        self.build()?;
        self.stay()
    }

    fn plan(&mut self) -> Result<(), DemoStop> {
        self.write_section("Plan", None, false)?;
        self.update("working")
    }

    fn build(&mut self) -> Result<(), DemoStop> {
        self.change_and_commit(None)?;
        self.write_section("Handoff", None, false)?;
        match self.prompt.handover() {
            Some(status) => self.update(status),
            None => Ok(()),
        }
    }

    /// Waits for messages and does what they ask, until nobody can send one any more.
    fn stay(&mut self) -> Result<(), DemoStop> {
        if !self.prompt.stays() {
            return Ok(());
        }
        self.say("waiting for a message")?;
        while let Some(message) = self.notification()? {
            self.say(&format!("heard: {message}"))?;
            if ["## Review", "## Feedback", "fix", "changes"].iter().any(|words| message.contains(words)) {
                self.build()?;
            }
        }
        Ok(())
    }

    /// Judges the work, and moves the task where the verdict leads.
    pub(super) fn review(&mut self, pass: bool, text: Option<&str>) -> Result<(), DemoStop> {
        let word = if pass { "PASS" } else { "FAIL" };
        let round = self.field("review_round").or_else(|| self.prompt.field("Review round").map(str::to_owned));
        let round = round.and_then(|text| text.parse::<u32>().ok()).unwrap_or(1);
        let commit = self.commit();
        let findings = match (text, pass) {
            (Some(text), _) => text.to_owned(),
            (None, true) => "The change does what was asked.".to_owned(),
            (None, false) => format!("1. {}: a line for round {round} is missing.", self.file()),
        };
        if self.first.is_none() {
            let answer = serde_json::json!({"summary": findings, "result": word});
            return self.print(&format!("```json\n{answer}\n```\n"));
        }
        let section =
            format!("Verdict: {word}\n\nRound {round}, commit {commit}, attempt {}.\n\n{findings}", self.attempt);
        self.write_section("Review", Some(&section), false)?;
        self.update(match (pass, round) {
            (true, _) => "reviewing",
            (false, 0 | 1) => "working",
            (false, _) => "stuck",
        })
    }

    /// Writes a section by writing the whole file, with the frontmatter as it was when the agent first read it.
    pub(super) fn write_section(&mut self, section: &str, text: Option<&str>, stale: bool) -> Result<(), DemoStop> {
        let first = self.first.clone().ok_or_else(|| DemoStop::Error("there is no TASK.md to write to".to_owned()))?;
        let now = TaskText::read(&self.folder)?.filter(|_| !stale).unwrap_or_else(|| first.clone());
        let mut task = TaskText { frontmatter: first.frontmatter, body: now.body };
        let text = text.map_or_else(|| self.words_for(section), str::to_owned);
        task.set_section(section, &text);
        task.write(&self.folder)?;
        self.say(&format!("wrote ## {section}"))
    }

    fn words_for(&self, section: &str) -> String {
        let (file, commit) = (self.file(), self.commit());
        match section {
            "Plan" => format!("APPROACH: add a line to {file}\nTOUCHING: {file}"),
            "Handoff" => format!(
                "DONE: a line in {file}, commit {commit}, attempt {}\nREMAINING: nothing\n\
                 DECISIONS: none\nUNCERTAIN: nothing",
                self.attempt
            ),
            "Questions" => "1. What is wanted?\n2. How will we know that it works?".to_owned(),
            "Review" => format!("Verdict: PASS\n\nCommit {commit} does what was asked."),
            other => format!("{other} of attempt {}.", self.attempt),
        }
    }

    pub(super) fn edit(&self, path: &str, text: Option<&str>) -> Result<(), DemoStop> {
        let file = self.folder.join(path);
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let text =
            text.map_or_else(|| format!("Line {} by the {}.", before.lines().count() + 1, self.role), str::to_owned);
        let parent = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        parent
            .and_then(|()| std::fs::write(&file, format!("{before}{text}\n")))
            .map_err(|error| DemoStop::error(path, error))
    }

    pub(super) fn change_and_commit(&self, message: Option<&str>) -> Result<(), DemoStop> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if self.git(&words(&["status", "--porcelain"]))?.is_empty() {
            self.edit(&self.file(), None)?;
        }
        self.git(&words(&["add", "-A"]))?;
        let message = message.map_or_else(|| format!("{}: attempt {}", self.file(), self.attempt), str::to_owned);
        let who = ["-c", "user.name=Demo Agent", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"];
        self.git(&words(&[&who[..], &["commit", "--quiet", "-m", &message]].concat()))?;
        self.say(&format!("committed {}", self.commit()))
    }

    /// A line that was typed; `None` when no more can be.
    pub(super) fn notification(&self) -> Result<Option<String>, DemoStop> {
        loop {
            let mut line = Vec::new();
            let read = std::io::stdin()
                .lock()
                .read_until(b'\n', &mut line)
                .map_err(|error| DemoStop::error("stdin", error))?;
            if read == 0 {
                return Ok(None);
            }
            // A terminal marks what is pasted.
            let text = String::from_utf8_lossy(&line).replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
            if !text.trim().is_empty() {
                return Ok(Some(text.trim().to_owned()));
            }
        }
    }

    /// The file that this task's or step's change goes into: one each, so that tasks can be merged in any order.
    fn file(&self) -> String {
        let whose = ["SLUICE_TASK", "SLUICE_RUN"].into_iter().find_map(|name| self.variable(name));
        let name = whose.or_else(|| self.field("id")).unwrap_or_else(|| "work".to_owned());
        let is_harmless = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name: String = name.chars().map(|c| if is_harmless(c) { c } else { '_' }).collect();
        format!("demo/{name}.md")
    }

    fn commit(&self) -> String {
        self.ask_git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "none".to_owned())
    }

    fn field(&self, key: &str) -> Option<String> {
        let now = TaskText::read(&self.folder).ok().flatten();
        now.as_ref().or(self.first.as_ref()).and_then(|task| task.field(key))
    }
}
