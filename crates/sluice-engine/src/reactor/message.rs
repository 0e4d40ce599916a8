//! What the reactor is told and what it wants: the whole of its border.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sluice_core::machine::Refusal;
use sluice_store::{Append, Conflict, Effect, OpenEffect, StreamId};

use crate::actor::{Actor, ActorChange, ActorInput, EffectOutcome};
use crate::workers::{Dispatch, WorkerId, WorkerOffer};

/// A caller that asked and waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReactorToken(pub u64);

pub enum ReactorMessage {
    Create {
        token: Option<ReactorToken>,
        stream: StreamId,
        actor: Box<dyn Actor>,
        change: ActorChange,
        /// Its definition, by digest.
        blobs: Vec<(sluice_store::Digest, Vec<u8>)>,
    },
    /// Whatever is asked with this token, a person of this name asks.
    Named {
        token: ReactorToken,
        /// What the person is called.
        name: String,
    },
    /// Something is said to a task or run.
    Say { token: Option<ReactorToken>, stream: StreamId, said: ActorInput },
    /// A stream that was asked for, or found at the start.
    Loaded { stream: StreamId, found: Option<LoadedStream> },
    /// A stream that was asked for is there and cannot be understood. Only that one stops; what is stored stays as it
    /// is, for whoever looks into it.
    Unreadable { stream: StreamId, why: String },
    /// These streams are open in the store; those that are not in memory are taken up.
    Open(Vec<StreamId>),
    /// The store has answered the last batch.
    Committed(Vec<Result<u64, Conflict>>),
    /// An effect that was handed out has ended.
    Ended {
        /// Who waits to hear whether it counts: one that was given up comes too late, and is refused.
        token: Option<ReactorToken>,
        stream: StreamId,
        effect: String,
        /// Which handing-out of it.
        dispatch: Dispatch,
        outcome: EffectOutcome,
    },
    /// A lasting worker begins with what it was handed, and calls it so: after a restart it is still known by that name.
    Begun {
        /// Who waits to hear that it is known.
        token: Option<ReactorToken>,
        stream: StreamId,
        effect: String,
        /// Which handing-out of it.
        dispatch: Dispatch,
        /// What the worker calls it.
        name: String,
    },
    /// A worker offers itself.
    Joined(WorkerOffer),
    /// A worker is still there, and is at these handings-out. One that it does not name is not renewed: it may never
    /// have heard of it.
    Heard {
        worker: WorkerId,
        /// What it is at.
        at: Vec<Dispatch>,
    },
    /// Nothing happened but time.
    Nothing,
    /// A worker says goodbye; what it holds is given to another.
    Left(WorkerId),
}

pub struct LoadedStream {
    pub actor: Box<dyn Actor>,
    /// How many events it has.
    pub version: u64,
    pub effects: Vec<OpenEffect>,
    pub timers: Vec<(String, i64)>,
}

#[derive(Debug)]
pub enum ReactorAction {
    /// Store this batch, and answer with [`ReactorMessage::Committed`]. There is never more than one on its way.
    Commit(Vec<Append>),
    /// Load a stream, and answer with [`ReactorMessage::Loaded`].
    Load(StreamId),
    /// Perform an effect, and answer with [`ReactorMessage::Ended`].
    Perform(Assignment),
    /// A worker was at this before the engine began, and may still be: nobody else is asked. It may have given it a name.
    Held(Assignment, Option<String>),
    /// What a lasting worker was handed is not its any more: it is done, lost, or not wanted.
    Withdrawn {
        worker: WorkerId,
        dispatch: Dispatch,
        /// Its lease ran out, or it left.
        is_lost: bool,
    },
    Reply(ReactorToken, ReactorAnswer),
}

#[derive(Clone, Debug)]
pub struct Assignment {
    pub stream: StreamId,
    pub effect: Effect,
    /// Which handing-out of it: an answer to an older one is refused.
    pub dispatch: Dispatch,
    /// To whom; `None` are the engine's own hands.
    pub worker: Option<WorkerId>,
    pub withdrawal: Withdrawal,
}

/// Whether something that was handed out is wanted no more. The engine's own hands look at it before they begin: what waits
/// for a free thread may be of a run that has been cancelled meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Withdrawal(Arc<AtomicBool>);

impl Withdrawal {
    pub(super) fn withdraw(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReactorAnswer {
    /// It is done and durable.
    Done(EventRange),
    Refused(Refusal),
    NotFound,
    /// Another writer changed it at the same time.
    Conflict,
    /// It is there and has stopped, because of a fault of ours or of the disk.
    Fault(String),
}

/// Which events were recorded for an answer, by their numbers in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRange {
    /// How many there were before.
    pub after: u64,
    /// The number of the last; as large as `after` when nothing followed.
    pub last: u64,
}
