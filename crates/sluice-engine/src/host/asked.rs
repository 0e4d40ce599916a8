//! Something that was asked of the loop, and whether it can still be taken back. Between whoever asks and the loop there is
//! one word, and whoever says it first has decided.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Receiver;

use crate::reactor::{ReactorAnswer, ReactorToken};

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
/// It was taken back: it is not done, and never will be.
const WITHDRAWN: u8 = 2;
/// It can not be taken back any more: the asker has been told so.
const ACCEPTED: u8 = 3;

/// Something that was asked. Its answer comes once it is durable.
pub struct PendingAnswer {
    pub(super) answer: Receiver<ReactorAnswer>,
    pub(super) token: ReactorToken,
    pub(super) ticket: AnswerTicket,
}

impl Deref for PendingAnswer {
    type Target = Receiver<ReactorAnswer>;

    fn deref(&self) -> &Receiver<ReactorAnswer> {
        &self.answer
    }
}

#[derive(Clone, Default)]
pub(super) struct AnswerTicket(Arc<AtomicU8>);

impl AnswerTicket {
    fn changes(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The loop takes it, unless it was taken back.
    pub(super) fn is_taken(&self) -> bool {
        self.changes(WAITING, TAKEN)
    }

    /// The asker takes it back before the loop has it.
    pub(super) fn is_withdrawn_first(&self) -> bool {
        self.changes(WAITING, WITHDRAWN)
    }

    /// The loop gives it back, unless the asker does not wait for that any more.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.changes(TAKEN, WITHDRAWN)
    }

    /// The asker waits no longer. Whether it was given back in time.
    pub(super) fn is_withdrawn_at_last(&self) -> bool {
        !self.changes(TAKEN, ACCEPTED) && self.0.load(Ordering::Acquire) == WITHDRAWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_of_both_decides() {
        let ticket = AnswerTicket::default();
        assert!(ticket.is_withdrawn_first() && !ticket.is_taken() && !ticket.is_withdrawn());
        let ticket = AnswerTicket::default();
        assert!(ticket.is_taken() && !ticket.is_withdrawn_first());
        assert!(ticket.is_withdrawn() && ticket.is_withdrawn_at_last());
        let ticket = AnswerTicket::default();
        assert!(ticket.is_taken() && !ticket.is_withdrawn_at_last());
        assert!(!ticket.is_withdrawn(), "whoever asked has been told that it will be done");
    }
}
