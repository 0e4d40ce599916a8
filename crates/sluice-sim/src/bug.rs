//! Engines that are broken on purpose. The simulation must catch every one of them, or it proves nothing.

/// How an engine is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// It says that something is stored before it is.
    AnswersBeforeDurable,
    /// It forgets an effect now and then.
    ForgetsEffects,
    /// It hands the same effect to two at once.
    HandsOutTwice,
    /// It does not take up what was going on when it starts again.
    SkipsRecovery,
    /// It does not take up the timers.
    ForgetsTimers,
    /// It takes the answer to an older handing-out for one to the newest.
    TakesLateAnswers,
    /// It stores only a part of a batch and says that all is stored.
    LosesPartOfABatch,
    /// After a restart it performs the effects of a task in the order of the outbox, not in the order asked for.
    ForgetsTheOrder,
    /// After a restart it does not read how sessions ended meanwhile.
    ForgetsExits,
    /// After a restart it does not look whether the runs of tasks' states ended meanwhile.
    ForgetsRunEnds,
    /// It starts a session that it has to start again, although it runs.
    StartsTwice,
    /// It ends sessions as soon as that is decided, not when it is stored.
    EndsBeforeDurable,
    /// It gives away workspaces that are kept free for a task.
    ForgetsReservations,
    /// It takes what a session asks for as if a person asked.
    TrustsSessions,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 14] = [
        Bug::AnswersBeforeDurable,
        Bug::ForgetsEffects,
        Bug::HandsOutTwice,
        Bug::SkipsRecovery,
        Bug::ForgetsTimers,
        Bug::TakesLateAnswers,
        Bug::LosesPartOfABatch,
        Bug::ForgetsTheOrder,
        Bug::ForgetsExits,
        Bug::ForgetsRunEnds,
        Bug::StartsTwice,
        Bug::EndsBeforeDurable,
        Bug::ForgetsReservations,
        Bug::TrustsSessions,
    ];
}
