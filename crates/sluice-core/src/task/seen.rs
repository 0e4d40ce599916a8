//! Which sections of TASK.md are new: an artifact counts for the monitor, and a verdict for anybody, only if its
//! section has changed since the task entered its status; for a reviewer that is alone and says so itself, if it has written.
//!
//! A verdict is read only in what was added to its section since then: what stood there before stays at the head of the
//! section, and is the worker's, or of an earlier round. Where the old text was changed instead, the engine takes no PASS
//! from it if a PASS got there in a status in which the section is not judged: that one may still stand there.
//!
//! Otherwise a worker that dies at once after a FAIL would advance on its old handoff, and an old verdict would win
//! over the one that is still being written. A digest is kept, not the text: states and events stay small.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::TaskAsker;
use super::state::StatusVisit;
use crate::artifact::{Gate, GateFailure, Verdict, says, says_both, section};
use crate::lifecycle::{ArtifactTest, Lifecycle, StateId};

/// What a section's text was, without saying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectionDigest(pub [u8; 32]);

impl SectionDigest {
    /// Of a section's text. Blank space at the ends of lines and of the section is not part of it: a section added
    /// below must not make the one above look new.
    pub fn of(text: &str) -> SectionDigest {
        let mut hasher = Sha256::new();
        text.trim().lines().for_each(|line| add(&mut hasher, line));
        SectionDigest(hasher.finalize().into())
    }

    /// What stands in a section below the lines that this is the digest of; none if those are not its first ones.
    fn below(self, text: &str) -> Option<&str> {
        let (text, mut hasher, mut end) = (text.trim(), Sha256::new(), 0);
        if self == SectionDigest::of("") {
            return Some(text);
        }
        for line in text.split_inclusive('\n') {
            add(&mut hasher, line);
            end += line.len();
            if SectionDigest(hasher.clone().finalize().into()) == self {
                return Some(&text[end..]);
            }
        }
        None
    }
}

fn add(hasher: &mut Sha256, line: &str) {
    hasher.update(line.trim_end().as_bytes());
    hasher.update(b"\n");
}

/// A section as it was when a status was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionSnapshot {
    /// The digest of the section's text, to find out what was added since.
    pub digest: SectionDigest,
    /// A PASS got there in a status in which the section is not judged.
    pub is_planted: bool,
}

/// The sections of `body` that gates and exit rules of the status `to` read, and all that verdicts are read in. `before` is
/// the stay that ends; none where a person creates the task.
pub(super) fn sections(
    lifecycle: &Lifecycle,
    before: Option<(StateId, &StatusVisit)>,
    to: StateId,
    body: &str,
) -> BTreeMap<String, SectionSnapshot> {
    let is_wanted = |(state, gate): &(StateId, &Gate)| *state == to || gate.verdict.is_some();
    let titles: BTreeSet<&String> = gates(lifecycle).filter(is_wanted).map(|(_, gate)| &gate.title).collect();
    let is_judged = |title: &str, from: StateId| {
        gates(lifecycle).any(|(state, gate)| state == from && gate.title == title && gate.verdict.is_some())
    };
    let mut found = BTreeMap::new();
    for title in titles {
        let Some(text) = section(body, title) else { continue };
        let digest = SectionDigest::of(text);
        // What was planted may still stand there after a review: it says PASS for as long as anything does.
        let is_planted = before.is_some_and(|(from, stay)| match stay.seen.get(title) {
            Some(old) if old.digest == digest => old.is_planted,
            old => (old.is_some_and(|old| old.is_planted) || !is_judged(title, from)) && says(text, Verdict::Pass),
        });
        found.insert(title.clone(), SectionSnapshot { digest, is_planted });
    }
    found
}

/// All gates, and the tests of exit rules, each with its status.
fn gates(lifecycle: &Lifecycle) -> impl Iterator<Item = (StateId, &Gate)> {
    let edges = lifecycle.transitions.iter().filter_map(|edge| Some((edge.from, edge.gate.as_ref()?)));
    let rules = lifecycle.exits.rules.iter().filter_map(|rule| match &rule.artifact {
        ArtifactTest::Present(gate) => Some((rule.state, gate)),
        ArtifactTest::Any | ArtifactTest::Missing => None,
    });
    edges.chain(rules)
}

impl StatusVisit {
    /// Whether `body` satisfies a gate, and if not, why. A verdict has to be of this stay. What was added may repeat none: then
    /// it is the old one for a reviewer or a person who says so, and for the engine if it is FAIL: a worker gains nothing by
    /// that.
    pub(super) fn test(&self, gate: &Gate, body: &str, by: TaskAsker) -> Result<(), GateFailure> {
        let is_fail = gate.verdict.is_some_and(|test| test.wanted == Verdict::Fail);
        let says_both = section(body, &gate.title).is_some_and(|content| self.is_changed_to_both(gate, content));
        let may_stay = by != TaskAsker::Engine || is_fail && !says_both;
        match gate.test_reading(body, |content| self.added(gate, content, by)) {
            Err(GateFailure::NoVerdict) if may_stay => gate.test(body),
            tested => tested,
        }
    }

    /// The part of a section that was written since the status was entered; all of it where nothing was added, or where the
    /// old text was changed. If a changed text gives both verdicts, or may give one that was planted, it gives none.
    fn added<'a>(&self, gate: &Gate, content: &'a str, by: TaskAsker) -> &'a str {
        let Some(before) = self.seen.get(&gate.title) else { return content };
        let is_pass = gate.verdict.is_some_and(|test| test.wanted == Verdict::Pass);
        match before.digest.below(content).map(str::trim) {
            // In the whole section a code fence that the worker left open hides the reviewer's heading.
            Some(added) if !added.is_empty() => section(added, &gate.title).unwrap_or(added),
            Some(_) => content,
            None if before.is_planted && is_pass && by == TaskAsker::Engine => "",
            None if self.is_changed_to_both(gate, content) => "",
            None => content,
        }
    }

    /// Whether the text that stood in a section was changed, and both verdicts stand there now.
    fn is_changed_to_both(&self, gate: &Gate, content: &str) -> bool {
        let is_other = |before: &SectionSnapshot| before.digest.below(content).is_none();
        self.seen.get(&gate.title).is_some_and(is_other) && says_both(content)
    }

    /// Whether the section that `gate` reads has changed since the status was entered.
    pub(super) fn is_new(&self, gate: &Gate, body: &str) -> bool {
        section(body, &gate.title).map(SectionDigest::of) != self.seen.get(&gate.title).map(|seen| seen.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::VerdictTest;
    use crate::machine::Moment;
    use crate::task::session::TaskSessionPlace;

    /// The verdict that the engine takes from `now`, where the status was entered with `before`; by a worker or not.
    fn verdict_after(before: &str, is_planted: bool, now: &str, strict: bool) -> Option<Verdict> {
        let seen = |text: &str| ("Review".to_owned(), SectionSnapshot { digest: SectionDigest::of(text), is_planted });
        let seen = section(before, "Review").map(seen).into_iter().collect();
        let (by, watch, asked, handed) = (TaskAsker::Engine, TaskSessionPlace::Main, None, None);
        let visit =
            StatusVisit { turn: 1, since: Moment(0), by, watch, seen, uprooted: 0, asked, handed, helped: false };
        let gate = |wanted| Gate {
            title: "Review".into(),
            filled: false,
            fields: Vec::new(),
            verdict: Some(VerdictTest { wanted, strict }),
        };
        let wins = |wanted: &Verdict| {
            visit.test(&gate(*wanted), now, TaskAsker::Engine).is_ok() && visit.is_new(&gate(*wanted), now)
        };
        [Verdict::Pass, Verdict::Fail].into_iter().find(wins)
    }

    fn verdict(before: &str, now: &str, strict: bool) -> Option<Verdict> {
        verdict_after(before, false, now, strict)
    }

    #[test]
    fn a_pass_that_a_worker_planted_is_not_taken_from_a_text_that_was_changed() {
        let bold = "## Review\n\nVerdict: **PASS**\n\n(findings here)\n";
        let plain = "## Review\n\nVerdict: PASS\n\n- findings: (fill in)\n";
        for (before, strict) in [(bold, false), (plain, false), (plain, true)] {
            let changed = |to: &str| before.replace("(findings here)", to).replace("(fill in)", to);
            assert_eq!(verdict_after(before, true, &changed("leak at x:1"), strict), None);
            assert_eq!(verdict_after(before, true, &changed("\nVerdict: FAIL"), strict), None);
            // An earlier reviewer wrote it: its words stay in the next round.
            assert_eq!(verdict(before, &changed("none"), strict), Some(Verdict::Pass));
            // What is added is read by itself.
            let added = format!("{before}\nVerdict: PASS\n");
            assert_eq!(verdict_after(before, true, &added, strict), Some(Verdict::Pass));
            let anew = "## Review\n\nVerdict: FAIL\n\nIt does not pass.\n";
            assert_eq!(verdict_after(before, true, anew, strict), Some(Verdict::Fail));
        }
    }

    #[test]
    fn an_empty_section_is_filled_by_its_reviewer() {
        let filled = "## Review\n\nVerdict: FAIL\n\nIt said:\n\nVerdict: PASS\n";
        for strict in [true, false] {
            assert_eq!(verdict("## Review\n", filled, strict), Some(Verdict::Fail));
        }
    }

    #[test]
    fn a_verdict_that_stood_there_before_counts_for_nobody_who_adds_to_it() {
        let fail = "\n## Review\n\nVerdict: FAIL\nbad work\n";
        let pass = "## Handoff\nDONE: it\n\n## Review\n\nVerdict: PASS\n";
        for strict in [true, false] {
            assert_eq!(verdict(pass, pass, strict), None);
            assert_eq!(verdict(pass, &format!("{pass}  \n\nVerdict: FAIL\nbad work\n"), strict), Some(Verdict::Fail));
            assert_eq!(verdict(pass, &format!("{pass}\nthanks\n"), strict), None);
            assert_eq!(verdict(fail, &format!("{fail}\nand worse\n"), strict), Some(Verdict::Fail));
            assert_eq!(verdict(pass, &format!("{pass}{fail}"), strict), Some(Verdict::Fail));
            // What the worker has left open swallows the heading of the reviewer.
            for open in ["```\n", "<!--\n", "<pre>\n", "~~~ md\n"] {
                let before = format!("{pass}\n{open}");
                assert_eq!(verdict(&before, &format!("{before}{fail}"), strict), Some(Verdict::Fail), "{open}");
            }
            // The reviewer writes it anew, or there was none.
            for before in ["", pass] {
                assert_eq!(verdict(before, fail, strict), Some(Verdict::Fail));
                assert_eq!(verdict(before, "## Review\n\nVerdict: PASS, and well\n", false), Some(Verdict::Pass));
            }
        }
        // It is not the same any more, and says both.
        let both = "## Review\n\nVerdict: PASS\n\nsee below\n\nVerdict: FAIL\n";
        assert_eq!(verdict(&format!("{pass}\nso good\n"), both, true), None);
        let other = "## Review\n\nVerdict: FAIL\n- [x] leak\n\nVerdict: PASS\n";
        assert_eq!(verdict("## Review\n\nVerdict: FAIL\n- [ ] leak\n", other, true), None);
        assert_eq!(verdict("", both, true), Some(Verdict::Pass), "who wrote all of it meant the first");
    }
}
