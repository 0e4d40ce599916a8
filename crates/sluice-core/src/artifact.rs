//! What agents write, and what a gate asks of it: sections of a markdown text, fields and verdicts in them.
//!
//! A section is what stands under a `## ` heading up to the next one. Headings in code fences, lists and quotes
//! are text, and a `### ` heading stays inside its section: that is why this reads markdown instead of
//! splitting at `## `. When a heading stands twice, the last one counts, as the newest word.

use crate::words::words;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

words! {
    /// What a review says about the work: `PASS` or `FAIL`.
    Verdict {
        /// The work is good.
        Pass = "PASS",
        /// The work is not.
        Fail = "FAIL",
    }
}

impl Verdict {
    /// The verdict that `word` is, in any case.
    pub fn read(word: &str) -> Option<Self> {
        Verdict::ALL.into_iter().find(|verdict| word.eq_ignore_ascii_case(verdict.word()))
    }
}

/// What a transition asks of the artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gate {
    /// The section's title, without the `## `.
    pub title: String,
    /// It must have content.
    pub filled: bool,
    /// At least one of these stands there as `NAME: something`; none asked when empty.
    pub fields: Vec<String>,
    /// It must give this verdict.
    pub verdict: Option<VerdictTest>,
}

/// How a verdict is looked for, and which is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerdictTest {
    /// The verdict that the section must give for the gate to open.
    pub wanted: Verdict,
    /// Only as `Verdict: PASS`, and only on the first line that is not empty.
    pub strict: bool,
}

/// Why an artifact does not pass a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFailure {
    /// The section is not there.
    NoSection,
    /// It is there, and empty.
    Empty,
    /// None of the fields has a value.
    NoField,
    /// It gives no verdict.
    NoVerdict,
    /// It gives the other verdict.
    OtherVerdict(Verdict),
}

impl Gate {
    /// Whether `body` satisfies the gate, and if not, why.
    pub fn test(&self, body: &str) -> Result<(), GateFailure> {
        self.test_reading(body, |content| content)
    }

    /// The same, where a verdict is read only in that part of the section which `judged` gives.
    pub(crate) fn test_reading<'a>(
        &self,
        body: &'a str,
        judged: impl FnOnce(&'a str) -> &'a str,
    ) -> Result<(), GateFailure> {
        let content = section(body, &self.title).ok_or(GateFailure::NoSection)?;
        if self.filled && content.trim().is_empty() {
            return Err(GateFailure::Empty);
        }
        if !self.fields.is_empty() && !self.fields.iter().any(|field| has_field(content, field)) {
            return Err(GateFailure::NoField);
        }
        let Some(VerdictTest { wanted, strict }) = self.verdict else { return Ok(()) };
        match verdict(judged(content), strict) {
            Some(found) if found == wanted => Ok(()),
            Some(other) => Err(GateFailure::OtherVerdict(other)),
            None => Err(GateFailure::NoVerdict),
        }
    }

    /// In a few words, for edges and reports: `## Review: PASS`.
    pub fn describe(&self) -> String {
        let mut words = format!("## {}", self.title);
        if !self.fields.is_empty() {
            words.push_str(&format!(": {}", self.fields.join("/")));
        }
        if let Some(test) = self.verdict {
            words.push_str(&format!(": {}", test.wanted.word()));
        }
        words
    }
}

/// What stands under the last `## title` of `body`; `None` when there is no such heading.
pub fn section<'a>(body: &'a str, title: &str) -> Option<&'a str> {
    // Most have not been written yet, and reading Markdown costs more than looking for a word.
    if !body.contains(title) {
        return None;
    }
    let headings = headings(body);
    let index = headings.iter().rposition(|heading| heading.title == title)?;
    let end = headings.get(index + 1).map_or(body.len(), |next| next.start);
    Some(&body[headings[index].end..end])
}

struct Heading {
    title: String,
    start: usize,
    end: usize,
}

fn headings(body: &str) -> Vec<Heading> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut current: Option<Heading> = None;
    for (event, range) in Parser::new_ext(body, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. })
                if depth == 0 && body[range.start..].starts_with("##") =>
            {
                let title = heading_title(&body[range.clone()]).to_owned();
                current = Some(Heading { title, start: range.start, end: range.end });
            }
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::End(TagEnd::Heading(HeadingLevel::H2)) => found.extend(current.take()),
            _ => {}
        }
    }
    found
}

/// The title in a heading's line. Hashes at its end belong to the heading only behind a blank: `## C#` is about C#.
fn heading_title(line: &str) -> &str {
    let title = line.trim_start_matches('#').trim();
    match title.trim_end_matches('#') {
        "" => "",
        open if open.len() < title.len() && open.ends_with([' ', '\t']) => open.trim_end(),
        _ => title,
    }
}

fn has_field(content: &str, name: &str) -> bool {
    content.lines().any(|line| {
        line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).is_some_and(|value| !value.trim().is_empty())
    })
}

/// Whether one line of a text says that the verdict is PASS, and another that it is FAIL.
pub(crate) fn says_both(content: &str) -> bool {
    let says = |wanted| content.lines().any(|line| verdict(line, true) == Some(wanted));
    says(Verdict::Pass) && says(Verdict::Fail)
}

/// Whether a verdict stands in a text as a word, wherever.
pub(crate) fn says(content: &str, wanted: Verdict) -> bool {
    words(content).any(|word| Verdict::read(word) == Some(wanted))
}

fn words(content: &str) -> impl Iterator<Item = &str> {
    content.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// The verdict that the text of a section gives.
pub fn verdict(content: &str, strict: bool) -> Option<Verdict> {
    match strict {
        true => {
            let line = content.lines().find(|line| !line.trim().is_empty())?.trim();
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case("verdict").then(|| Verdict::read(value.trim())).flatten()
        }
        false => words(content).find_map(Verdict::read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "\
intro

## Handoff
DONE: the parser
UNCERTAIN:

```md
## Review
FAIL
```
### Details
more

## Review

Verdict: pass

It bypasses nothing.

## Review
The old FAILURE is gone. I say FAIL, not PASS.
";

    #[test]
    fn sections_know_fences_and_levels_and_the_last_one_counts() {
        let handoff = section(BODY, "Handoff").unwrap();
        assert!(handoff.contains("## Review") && handoff.contains("### Details"));
        assert!(section(BODY, "Review").unwrap().starts_with("The old"));
        assert_eq!(section(BODY, "Plan"), None);
    }

    #[test]
    fn closing_hashes_are_no_part_of_a_title_but_those_of_a_name_are() {
        for (line, title) in [
            ("## C#", "C#"),
            ("## C# ##", "C#"),
            ("## Plan ##", "Plan"),
            ("## Plan\t#", "Plan"),
            ("## F# and C#", "F# and C#"),
        ] {
            assert_eq!(section(&format!("{line}\ntext\n"), title), Some("text\n"), "{line}");
        }
        assert_eq!(section("## ##\ntext\n", ""), Some("text\n"));
    }

    #[test]
    fn the_loose_verdict_is_the_first_whole_word() {
        assert_eq!(verdict("The old FAILURE is gone. I say FAIL, not PASS.", false), Some(Verdict::Fail));
        assert_eq!(verdict("bypass, passed", false), None);
        assert_eq!(verdict("**pass**", false), Some(Verdict::Pass));
    }

    #[test]
    fn the_strict_verdict_is_the_first_line() {
        assert_eq!(verdict("\n\n  verdict: Fail \nVerdict: PASS", true), Some(Verdict::Fail));
        assert_eq!(verdict("I say\nVerdict: PASS", true), None);
        assert_eq!(verdict("Verdict: PASS with remarks", true), None);
    }

    #[test]
    fn gates_say_what_is_missing() {
        let gate = |title: &str, fields: &[&str], verdict| Gate {
            title: title.into(),
            filled: true,
            fields: fields.iter().map(|field| (*field).into()).collect(),
            verdict,
        };
        let pass = Some(VerdictTest { wanted: Verdict::Pass, strict: false });
        assert_eq!(gate("Handoff", &["DONE", "REMAINING"], None).test(BODY), Ok(()));
        assert_eq!(gate("Handoff", &["UNCERTAIN"], None).test(BODY), Err(GateFailure::NoField));
        assert_eq!(gate("Review", &[], pass).test(BODY), Err(GateFailure::OtherVerdict(Verdict::Fail)));
        assert_eq!(gate("Plan", &[], None).test(BODY), Err(GateFailure::NoSection));
        assert_eq!(gate("Plan", &[], None).test("## Plan\n\n  \n"), Err(GateFailure::Empty));
    }
}
