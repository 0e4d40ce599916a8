//! The way to the loop: messages that go there, questions whose answers are durable, and what of them can be taken back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluice_store::{Cursor, StoreError, StreamId};

use super::asked::{AnswerTicket, PendingAnswer};
use crate::reactor::{ReactorAnswer, ReactorMessage, ReactorToken};

/// How long the loop may take to say whether something can be taken back; then it cannot.
const WITHDRAW_WITHIN: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct EngineHandle {
    pub(super) messages: Sender<HostEvent>,
    tokens: Arc<AtomicU64>,
    pub(super) hindrance: StoreHindrance,
    pub(super) taken_up: Arc<AtomicBool>,
}

/// Why nothing can be stored at the moment.
pub(super) type StoreHindrance = Arc<Mutex<Option<String>>>;

thread_local! {
    /// In whose name this thread asks.
    static SPEAKER: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whatever is asked of the loop meanwhile by this thread is a person's of this name: what comes of it says so.
pub fn in_the_name_of<T>(name: &str, ask: impl FnOnce() -> T) -> T {
    struct SpeakerReset;
    impl Drop for SpeakerReset {
        fn drop(&mut self) {
            SPEAKER.set(None);
        }
    }
    SPEAKER.set(Some(name.to_owned()));
    let _silent = SpeakerReset;
    ask()
}

impl EngineHandle {
    /// Sends a message to the loop. A loop that has ended takes no message, and the sender need not know.
    pub fn send(&self, message: ReactorMessage) {
        let _ = self.messages.send(HostEvent::Message(message));
    }

    /// Sends a message that carries this token, and gives what will hold the answer once it is durable. It never will
    /// when the loop has ended.
    pub fn ask(&self, message: impl FnOnce(ReactorToken) -> ReactorMessage) -> PendingAnswer {
        let token = ReactorToken(self.tokens.fetch_add(1, Ordering::Relaxed));
        if let Some(name) = SPEAKER.with_borrow(Clone::clone) {
            self.send(ReactorMessage::Named { token, name });
        }
        let (reply, answer) = channel();
        let ticket = AnswerTicket::default();
        let _ = self.messages.send(HostEvent::Ask(message(token), token, reply, ticket.clone()));
        PendingAnswer { answer, token, ticket }
    }

    /// Takes back what was asked. Whether that worked: then it was not done, and never will be. What is on its way to the
    /// store, or was built on, cannot be taken back; it is done when the store answers.
    pub fn withdraw(&self, asked: &PendingAnswer) -> bool {
        if asked.ticket.is_withdrawn_first() {
            return true;
        }
        let (reply, heard) = channel();
        let _ = self.messages.send(HostEvent::Withdraw(asked.token, asked.ticket.clone(), reply));
        let _ = heard.recv_timeout(WITHDRAW_WITHIN);
        asked.ticket.is_withdrawn_at_last()
    }

    /// Why nothing can be stored at the moment, if that is so. It is tried again and again, unless the loop has ended.
    pub fn hindrance(&self) -> Option<String> {
        self.hindrance.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells every caller that asks from now on, or waits, why there is no answer.
    pub(super) fn hinder(&self, error: &StoreError) {
        *self.hindrance.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    /// Whether everything that was going on when the engine began has been taken up. Until then, what is not known may
    /// only not be known yet.
    pub fn has_taken_up(&self) -> bool {
        self.taken_up.load(Ordering::Acquire)
    }

    /// Writes down how far the log has been acted upon. What cannot be written down now is read again after a restart.
    pub fn followed(&self, upto: Cursor) {
        let _ = self.messages.send(HostEvent::Followed(upto));
    }

    /// Removes streams that are over, with everything of theirs. One that is not over stays, and so does one that cannot
    /// be removed now: its caller asks again.
    pub fn forget(&self, streams: Vec<StreamId>) {
        let _ = self.messages.send(HostEvent::Forget(streams));
    }
}

/// Where a loop that has not begun yet will find its messages. What is sent meanwhile waits.
pub struct EngineInbox {
    pub(super) handle: EngineHandle,
    pub(super) inbox: Receiver<HostEvent>,
}

impl Default for EngineInbox {
    fn default() -> EngineInbox {
        let (messages, inbox) = channel();
        let (tokens, taken_up) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
        EngineInbox { handle: EngineHandle { messages, tokens, hindrance: StoreHindrance::default(), taken_up }, inbox }
    }
}

impl EngineInbox {
    pub fn handle(&self) -> EngineHandle {
        self.handle.clone()
    }
}

pub(super) enum HostEvent {
    Message(ReactorMessage),
    Ask(ReactorMessage, ReactorToken, Sender<ReactorAnswer>, AnswerTicket),
    /// The caller that asked this does not wait any more.
    Withdraw(ReactorToken, AnswerTicket, Sender<()>),
    Forget(Vec<StreamId>),
    Followed(Cursor),
    Failed(StoreError),
    /// Every open stream has been named once.
    AllNamed,
    Stop,
}
