//! Which sections of TASK.md are new: an artifact counts for the monitor, and a verdict for anybody, only if its
//! section has changed since the task entered its status; for a reviewer that is alone and says so itself, if it has written.
//!
//! Otherwise a worker that dies at once after a FAIL would advance on its old handoff, and an old verdict would win
//! over the one that is still being written. A digest is kept, not the text: states and events stay small.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::state::Visit;
use crate::artifact::{Gate, section};
use crate::lifecycle::{ArtifactTest, Lifecycle, StateId};

/// What a section's text was, without saying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of a section's text. Blank space at the ends of lines and of the section is not part of it: a section added
    /// below must not make the one above look new.
    pub fn of(text: &str) -> Digest {
        let mut hasher = Sha256::new();
        for line in text.trim().lines() {
            hasher.update(line.trim_end().as_bytes());
            hasher.update(b"\n");
        }
        Digest(hasher.finalize().into())
    }
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
    /// Whether the section that `gate` reads has changed since the status was entered.
    pub(super) fn is_new(&self, gate: &Gate, body: &str) -> bool {
        section(body, &gate.title).map(Digest::of) != self.seen.get(&gate.title).copied()
    }
}
