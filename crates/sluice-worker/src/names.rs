//! The names that an engine and its workers agree on (streams, branches, folders), new ids and secrets, and moments in words.

use sluice_core::id::RunId;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The stream of a run, by which traces know it too.
pub fn run_stream(run: &RunId) -> String {
    format!("run/{run}")
}

pub fn run_branch(run: &RunId) -> String {
    format!("sluice/run-{run}")
}

/// What the branches of runs, of their parts and of what their arbiters changed begin with.
pub const RUN_BRANCHES: [&str; 3] = ["sluice/run-", "sluice/part-", "sluice/arbiter-"];

/// The run that a branch is of: its own, or one of a part of it. An id can have a `-` in it: that of a turn of a patrol has.
pub fn run_of_branch(branch: &str) -> Option<&str> {
    let [own, part, arbiter] = RUN_BRANCHES;
    if let Some(id) = branch.strip_prefix(own) {
        return Some(id).filter(|id| !id.is_empty());
    }
    let performance = branch.strip_prefix(part).or_else(|| branch.strip_prefix(arbiter))?;
    // `RUN-STEP-ATTEMPT-PART`; a part is a word, or a word and a number.
    let attempt = match performance.strip_suffix("-whole") {
        Some(attempt) => attempt,
        None => {
            let (rest, number) = performance.rsplit_once('-')?;
            let (attempt, word) = rest.rsplit_once('-')?;
            let is_part = is_number(number) && ["item", "turn", "arbiter"].contains(&word);
            Some(attempt).filter(|_| is_part)?
        }
    };
    let (step, attempt) = attempt.rsplit_once('-')?;
    let (id, step) = step.rsplit_once('-')?;
    Some(id).filter(|id| !id.is_empty() && is_number(step) && is_number(attempt))
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

/// The name of the worktree of a run that is done elsewhere, on whichever machine its workers have it.
pub fn remote_folder(run: &RunId) -> String {
    format!("burrows/mission-{run}/")
}

/// The name of the scratch folder of a run that is done elsewhere.
pub fn remote_scratch(run: &RunId) -> String {
    format!("scratch/{run}/")
}

/// What every secret of Sluice begins with.
pub const PREFIX: &str = "slu_";

/// A moment as people and programs read it: RFC 3339, in UTC, to the millisecond.
pub fn written(at: i64) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => at.to_string(),
    }
}

/// Letters that are not mistaken for one another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A new id: short enough to type a part of, long enough that a million of them do not meet.
pub fn new_id() -> Result<String, String> {
    let mut bytes = [0u8; 10];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// An id made of these words: always the same, and of others another.
pub fn id_from(words: &[&str]) -> String {
    let mut sum = Sha256::new();
    for word in words {
        sum.update(word.as_bytes());
        sum.update([0]);
    }
    sum.finalize().iter().take(10).map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// The digest by which a secret is known, in hexadecimal digits.
pub fn digest(secret: &[u8]) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two digests are the same, in a time that does not say where they differ.
pub fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// A new secret of 256 random bits, with something readable in front.
pub fn secret(about: &str) -> Result<String, String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    let random: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{PREFIX}{about}{random}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_says_of_which_run_it_is() {
        for (branch, run) in [
            ("sluice/run-k3f9", Some("k3f9")),
            ("sluice/run-k3f9-r7", Some("k3f9-r7")),
            ("sluice/part-k3f9-0-1-whole", Some("k3f9")),
            ("sluice/part-k3f9-r7-2-1-whole", Some("k3f9-r7")),
            ("sluice/part-k3f9-r7-2-1-item-12", Some("k3f9-r7")),
            ("sluice/part-k3f9-2-1-turn-3", Some("k3f9")),
            ("sluice/arbiter-k3f9-r7-2-1-arbiter-3", Some("k3f9-r7")),
            ("sluice/part-k3f9-whole", None),
            ("sluice/part-k3f9-2-1-odd-3", None),
            ("sluice/run-", None),
            ("main", None),
        ] {
            assert_eq!(run_of_branch(branch), run, "{branch}");
        }
        assert_eq!(run_of_branch(&run_branch(&"k3f9-r7".parse().unwrap())), Some("k3f9-r7"));
    }

    #[test]
    fn moments_are_written_alike() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(1_794_700_800_123), "2026-11-15T00:00:00.123Z");
    }
}
