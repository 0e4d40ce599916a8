//! Which sections of TASK.md are new: an artifact counts for the monitor, and a verdict for anybody, only if its
//! section has changed since the task entered its status; for a reviewer that is alone and says so itself, if it has written.
//!
//! A verdict is read only in what was added to its section since then: who adds to a section leaves what stood there before
//! at its head, and that is the worker's, or of an earlier round.
//!
//! Otherwise a worker that dies at once after a FAIL would advance on its old handoff, and an old verdict would win
//! over the one that is still being written. A digest is kept, not the text: states and events stay small.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::Asker;
use super::state::Visit;
use crate::artifact::{Gate, GateFailure, Verdict, says_both, section};
use crate::lifecycle::{ArtifactTest, Lifecycle, StateId};

/// What a section's text was, without saying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of a section's text. Blank space at the ends of lines and of the section is not part of it: a section added
    /// below must not make the one above look new.
    pub fn of(text: &str) -> Digest {
        let mut hasher = Sha256::new();
        text.trim().lines().for_each(|line| add(&mut hasher, line));
        Digest(hasher.finalize().into())
    }

    /// What stands in a section below the lines that this is the digest of; none if those are not its first ones.
    fn below(self, text: &str) -> Option<&str> {
        let (text, mut hasher, mut end) = (text.trim(), Sha256::new(), 0);
        for line in text.split_inclusive('\n') {
            add(&mut hasher, line);
            end += line.len();
            if Digest(hasher.clone().finalize().into()) == self {
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

/// The sections of `body` that gates and exit rules of `state` read.
pub(super) fn sections(lifecycle: &Lifecycle, state: StateId, body: &str) -> BTreeMap<String, Digest> {
    let gates = lifecycle.transitions.iter().filter(|edge| edge.from == state).filter_map(|edge| edge.gate.as_ref());
    let rules =
        lifecycle.exits.rules.iter().filter(|rule| rule.state == state).filter_map(|rule| match &rule.artifact {
            ArtifactTest::Present(gate) => Some(gate),
            ArtifactTest::Any | ArtifactTest::Missing => None,
        });
    let mut found = BTreeMap::new();
    for gate in gates.chain(rules) {
        if let Some(text) = section(body, &gate.title) {
            found.insert(gate.title.clone(), Digest::of(text));
        }
    }
    found
}

impl Visit {
    /// Whether `body` satisfies a gate, and if not, why. A verdict has to be of this stay. What was added may repeat none: then
    /// it is the old one for a reviewer or a person who says so, and for the engine if it is FAIL, of which no worker has
    /// anything.
    pub(super) fn test(&self, gate: &Gate, body: &str, by: Asker) -> Result<(), GateFailure> {
        let is_fail = gate.verdict.is_some_and(|test| test.wanted == Verdict::Fail);
        let says_both = section(body, &gate.title).is_some_and(|content| self.is_changed_to_both(gate, content));
        let may_stay = by != Asker::Engine || is_fail && !says_both;
        match gate.test_reading(body, |content| self.added(gate, content)) {
            Err(GateFailure::NoVerdict) if may_stay => gate.test(body),
            tested => tested,
        }
    }

    /// The part of a section that was written since the status was entered; all of it where nothing was added, or where it
    /// is another. What is in part another, and says one verdict and the other, gives none.
    fn added<'a>(&self, gate: &Gate, content: &'a str) -> &'a str {
        let Some(before) = self.seen.get(&gate.title) else { return content };
        match before.below(content).map(str::trim) {
            // In the whole section a code fence that the worker left open hides the reviewer's heading.
            Some(added) if !added.is_empty() => section(added, &gate.title).unwrap_or(added),
            Some(_) => content,
            None if self.is_changed_to_both(gate, content) => "",
            None => content,
        }
    }

    /// Whether what stood in a section is in part another now, and says one verdict and the other.
    fn is_changed_to_both(&self, gate: &Gate, content: &str) -> bool {
        let is_other = |before: &Digest| before.below(content).is_none();
        self.seen.get(&gate.title).is_some_and(is_other) && says_both(content)
    }

    /// Whether the section that `gate` reads has changed since the status was entered.
    pub(super) fn is_new(&self, gate: &Gate, body: &str) -> bool {
        section(body, &gate.title).map(Digest::of) != self.seen.get(&gate.title).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::VerdictTest;
    use crate::machine::Moment;
    use crate::task::session::Place;

    fn verdict(before: &str, now: &str, strict: bool) -> Option<Verdict> {
        let seen = section(before, "Review").map(|text| ("Review".to_owned(), Digest::of(text))).into_iter().collect();
        let (by, watch, asked, handed) = (Asker::Engine, Place::Main, None, None);
        let visit = Visit { turn: 1, since: Moment(0), by, watch, seen, uprooted: 0, asked, handed };
        let gate = |wanted| Gate {
            title: "Review".into(),
            filled: false,
            fields: Vec::new(),
            verdict: Some(VerdictTest { wanted, strict }),
        };
        let wins = |wanted: &Verdict| {
            visit.test(&gate(*wanted), now, Asker::Engine).is_ok() && visit.is_new(&gate(*wanted), now)
        };
        [Verdict::Pass, Verdict::Fail].into_iter().find(wins)
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
