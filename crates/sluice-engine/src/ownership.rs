//! Until when an engine may act on what it has started, decided from nothing but times: the store is its own until its
//! term there is over, and it stops to act well before that.
//!
//! Pure: whoever drives it brings a clock that never goes back and goes on while the machine sleeps, in milliseconds, and
//! the answers of the store. [`crate::host`] does so with real ones.
//!
//! A term in the store begins when the store hears the question, which is never before it was asked. So an engine that
//! counts from when it asked, and stops at [`KEPT`] of the term, has stopped before another can own the store: the rest
//! of the term is for clocks that do not go alike and for whoever takes a moment to hear that it is over.

use std::time::Duration;

/// The part of a term in which an engine acts: two thirds.
const KEPT: (u64, u64) = (2, 3);
/// So often in a term it asks for another: an answer or two may be lost without harm.
const ASKED: u64 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    epoch: u64,
    term_ms: u64,
    /// When it was asked for, in the question that was answered last.
    asked_ms: u64,
    is_lost: bool,
}

/// The store is another engine's now, or has been meanwhile: nothing that is remembered of it counts any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenureLoss;

impl Tenure {
    /// The store was taken, by a question of this moment.
    pub fn taken(epoch: u64, asked_ms: u64, term: Duration) -> Tenure {
        let term_ms = u64::try_from(term.as_millis()).unwrap_or(u64::MAX).max(1);
        Tenure { epoch, term_ms, asked_ms, is_lost: false }
    }

    /// The store answered a question of this moment. Another epoch is another ownership, with another memory.
    pub fn renewed(&mut self, epoch: u64, asked_ms: u64) -> Result<(), TenureLoss> {
        if self.is_lost || epoch != self.epoch {
            self.is_lost = true;
            return Err(TenureLoss);
        }
        self.asked_ms = self.asked_ms.max(asked_ms);
        Ok(())
    }

    /// The store is another engine's. It never becomes this one's again.
    pub fn lose(&mut self) {
        self.is_lost = true;
    }

    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Until when it may act, if nothing is heard before.
    pub fn until_ms(&self) -> u64 {
        let (part, of) = KEPT;
        if self.is_lost { 0 } else { self.asked_ms.saturating_add(self.term_ms / of * part) }
    }

    /// Whether it may act now: begin something, let something go on, tell a worker that its step is still its own.
    pub fn may_act(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms()
    }

    /// When to ask for another term.
    pub fn ask_at_ms(&self) -> u64 {
        self.asked_ms.saturating_add((self.term_ms / ASKED).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(30);

    #[test]
    fn it_acts_for_two_thirds_of_its_term_counted_from_the_question() {
        let mut tenure = Tenure::taken(3, 1_000, TERM);
        assert!(tenure.may_act(20_999) && !tenure.may_act(21_000));
        assert_eq!(tenure.ask_at_ms(), 6_000);
        assert_eq!(tenure.renewed(3, 6_000), Ok(()));
        assert!(tenure.may_act(25_999) && !tenure.may_act(26_000));
        // Late, and no engine has taken the store meanwhile: it goes on.
        assert_eq!(tenure.renewed(3, 90_000), Ok(()));
        assert!(tenure.may_act(90_001));
        // An answer that comes after a later one takes nothing away.
        assert_eq!(tenure.renewed(3, 7_000), Ok(()));
        assert!(tenure.may_act(109_999));
    }

    #[test]
    fn what_was_lost_is_never_its_own_again() {
        let mut tenure = Tenure::taken(3, 1_000, TERM);
        assert_eq!(tenure.renewed(5, 2_000), Err(TenureLoss));
        assert!(tenure.is_lost() && !tenure.may_act(2_001));
        assert_eq!(tenure.renewed(3, 3_000), Err(TenureLoss));
        let mut tenure = Tenure::taken(3, 1_000, TERM);
        tenure.lose();
        assert!(!tenure.may_act(1_001));
    }
}
