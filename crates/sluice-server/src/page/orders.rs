//! What a person can order on the page, and every word about it: the button, what it asks before, the message that goes
//! with it, and what is said afterwards.

use sluice_api::board::BoardAction;

/// The words of an order.
pub(super) struct OrderWords {
    pub(super) label: &'static str,
    /// What the page says before it is done.
    pub(super) asks: Option<&'static str>,
    /// The words for a message that goes with it, if one can.
    pub(super) message: Option<&'static str>,
    pub(super) must_say: bool,
    /// What cannot be taken back.
    pub(super) is_grave: bool,
    /// What is said when it is done.
    done: &'static str,
}

const fn plain(label: &'static str, done: &'static str) -> OrderWords {
    OrderWords { label, asks: None, message: None, must_say: false, is_grave: false, done }
}

pub(super) fn order(action: BoardAction) -> OrderWords {
    match action {
        BoardAction::Merge => {
            OrderWords { asks: Some("The judged commit goes into the default branch."), ..plain("Merge", "Merged.") }
        }
        BoardAction::Cancel => OrderWords {
            asks: Some("The agent is ended and the worktree is given back. Work that is not merged is kept."),
            is_grave: true,
            ..plain("Cancel", "Cancelled.")
        },
        BoardAction::CreatePr => plain("Open pull request", "The pull request is open."),
        BoardAction::Spawn => plain("Start the agent", "The agent was started."),
        BoardAction::Respawn => plain("Start the agent again", "The agent was started again."),
        BoardAction::Attach => plain("Attach", ""),
        BoardAction::Approve => {
            OrderWords { message: Some("A message for the record, if you like"), ..plain("Approve", "Approved.") }
        }
        BoardAction::RequestChanges => OrderWords {
            message: Some("What should change?"),
            must_say: true,
            ..plain("Request changes", "Sent back to the worker with your comments.")
        },
        BoardAction::Answer => plain("Answer", "Your answer was taken."),
        BoardAction::Nudge => OrderWords {
            message: Some("A message for the agent"),
            must_say: true,
            ..plain("Send a message", "The message was sent to the agent.")
        },
        BoardAction::Retry => plain("Retry", "The run goes on."),
        BoardAction::Delete => OrderWords {
            asks: Some("It leaves every list. Its history stays in the log."),
            is_grave: true,
            ..plain("Delete", "Deleted. Its history stays in the log.")
        },
    }
}

/// What was done, by the word that a form leads back with. Other words say nothing.
pub(super) fn done(word: &str) -> Option<&'static str> {
    match word {
        "forget_view" => Some("The view is gone."),
        "move" => Some("Moved."),
        "save_view" => Some("The view is saved; the dashboard has it too."),
        "start" => Some("Started."),
        _ => BoardAction::read(word).map(|action| order(action).done).filter(|said| !said.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_in_words_of_ours_alone() {
        assert_eq!(done("merge"), Some("Merged."));
        assert_eq!(done("answer"), Some("Your answer was taken."));
        assert_eq!((done("attach"), done("nonsense")), (None, None));
    }
}
