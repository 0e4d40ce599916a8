//! What a person has asked the engine to do and has no answer for yet. A key that is pressed while the engine is away is not
//! lost: its request is kept, and sent when the engine is back.

use serde_json::Value;
use sluice_api::board::{BoardAction, BoardRow};

/// The most requests that wait for an answer.
pub(crate) const MOST_REQUESTS: usize = 32;

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestVerb {
    /// It has something done.
    Post,
    /// It replaces something as a whole.
    Put,
    /// It takes something away.
    Delete,
}

/// Something that the engine is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PersonRequest {
    pub(crate) number: u64,
    /// What is done, to what, for people: `merge latte`.
    pub(crate) what: String,
    pub(crate) verb: RequestVerb,
    pub(crate) path: String,
    pub(crate) body: Value,
    /// The row that it is about, as it was when the key was pressed.
    pub(crate) about: Option<RequestAbout>,
}

/// The row that a request is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestAbout {
    pub(crate) id: String,
    status: String,
    since: String,
    action: BoardAction,
}

impl RequestAbout {
    pub(crate) fn new(row: &BoardRow, action: BoardAction) -> RequestAbout {
        RequestAbout { id: row.id.clone(), status: row.status.clone(), since: row.since.clone(), action }
    }

    pub(crate) fn action(&self) -> BoardAction {
        self.action
    }

    /// Whether the row still stands where it stood, and allows the same.
    pub(crate) fn still_holds(&self, row: &BoardRow) -> bool {
        row.status == self.status && row.since == self.since && row.actions.contains(&self.action)
    }
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// It was sent, and its answer is awaited.
    Sent,
    /// The engine was away: it was not sent.
    Unsent,
    /// The engine went away: it is not known whether it heard.
    Lost,
}

/// A request without an answer.
#[derive(Clone, Debug)]
struct Pending {
    request: PersonRequest,
    sending: Sending,
    /// Whether it was sent again once: an engine that goes away whenever it hears it is not told a third time.
    is_again: bool,
}

/// The requests without an answer, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pending: Vec<Pending>,
    last: u64,
}

/// What becomes of the requests whose answers were lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovered {
    /// To be sent again.
    pub(crate) again: Vec<PersonRequest>,
    /// Not to be sent again: the row stands elsewhere, or what was asked for could be done twice.
    pub(crate) dropped: Vec<PersonRequest>,
}

impl Requests {
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= MOST_REQUESTS
    }

    /// How many wait for an answer.
    pub(crate) fn count(&self) -> usize {
        self.pending.len()
    }

    /// A new request. Where the engine is away it waits.
    pub(crate) fn add(&mut self, mut request: PersonRequest, is_away: bool) -> PersonRequest {
        self.last += 1;
        request.number = self.last;
        let sending = if is_away { Sending::Unsent } else { Sending::Sent };
        self.pending.push(Pending { request: request.clone(), sending, is_again: false });
        request
    }

    /// The request with this number is answered.
    pub(crate) fn answered(&mut self, number: u64) -> Option<PersonRequest> {
        let at = self.pending.iter().position(|it| it.request.number == number)?;
        Some(self.pending.remove(at).request)
    }

    /// The answer is lost: it is not known whether the engine heard.
    pub(crate) fn lost(&mut self, number: u64) -> Option<&PersonRequest> {
        let pending = self.pending.iter_mut().find(|it| it.request.number == number)?;
        pending.sending = Sending::Lost;
        Some(&pending.request)
    }

    /// The engine is back, and these are its rows now. What was never sent is sent. What may have been heard is sent again only
    /// if its row stands where it stood: then it cannot have been carried out.
    pub(crate) fn recover<'a>(&mut self, row: impl Fn(&str) -> Option<&'a BoardRow>) -> Recovered {
        let mut recovered = Recovered::default();
        let mut kept = Vec::new();
        for mut pending in std::mem::take(&mut self.pending) {
            let holds = |about: &RequestAbout| row(&about.id).is_some_and(|row| about.still_holds(row));
            let about = pending.request.about.as_ref();
            let is_again = match pending.sending {
                Sending::Sent => {
                    kept.push(pending);
                    continue;
                }
                Sending::Unsent => about.is_none_or(holds),
                // A message to an agent leaves no trace in its row.
                Sending::Lost => {
                    !pending.is_again && about.is_some_and(|about| about.action != BoardAction::Nudge && holds(about))
                }
            };
            if !is_again {
                recovered.dropped.push(pending.request);
                continue;
            }
            pending.is_again = pending.sending == Sending::Lost;
            pending.sending = Sending::Sent;
            recovered.again.push(pending.request.clone());
            kept.push(pending);
        }
        self.pending = kept;
        recovered
    }
}
