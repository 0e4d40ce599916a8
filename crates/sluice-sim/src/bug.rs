//! Engines that are broken on purpose. The simulation must catch every one of them, or it proves nothing.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimBug {
    /// It says that something is stored before it is.
    AnswersBeforeDurable,
    ForgetsEffects,
    /// It hands the same effect to two at once.
    HandsOutTwice,
    /// It does not take up what was going on when it starts again.
    SkipsRecovery,
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
    /// It takes every commit for the run's own that came while the run of a task's state went on.
    TakesAllCommitsForTheRuns,
    /// It forgets which verdict it has refused a reviewer, and takes the other from the file when that has gone.
    ForgetsWhatReviewersAskedFor,
    /// It starts a session that it has to start again, although it runs.
    StartsTwice,
    /// It ends sessions as soon as that is decided, not when it is stored.
    EndsBeforeDurable,
    /// It gives away workspaces that are kept free for a task.
    ForgetsReservations,
    /// It takes what a session asks for as if a person asked.
    TrustsSessions,
    /// What it has started goes on when its time is over, and beside what the next owner starts.
    LeavesWorkRunning,
    /// It acts and answers after its time, until a write tells it that the store is another's.
    ActsWithoutOwnership,
    /// It takes a store again that has been another's, and goes on with what it remembers.
    KeepsOldMemory,
    /// It takes up what it had started, although the store has been another's meanwhile.
    AdoptsWhatWasAnothers,
    /// It has the name of another engine, for which the store takes it.
    SharesItsName,
    /// It takes a batch whose fate is unknown for one that is not stored.
    TakesDoubtForNo,
    /// It takes a batch whose fate is unknown for one that is stored.
    TakesDoubtForYes,
    /// It takes a stream that cannot be read now for one that is not there.
    TakesAFailedReadForNothing,
    /// It takes it for the outcome of an effect that the store cannot be reached.
    TakesAFailedReadForAnOutcome,
    /// It takes it for the outcome of an effect that the machine has nothing left to begin it with.
    TakesAShortageForAnOutcome,
    /// It says nothing about an effect at which its hands panicked.
    SwallowsPanics,
    /// It settles a performance that could not be made, and tells the step nothing.
    SettlesWithoutReport,
    /// It starts a session whose end is recorded, because what has to start it was not settled.
    StartsWhatHasEnded,
    /// It begins a step that waited for a thread, although its run has been cancelled.
    BeginsWhatIsWithdrawn,
    /// It finds an agent dead whose death it has noted, and takes that for another one.
    AdoptsTheDead,
    TrustsTheWallClock,
    /// It slept, and takes the silence of workers for their death.
    SleepsThroughLeases,
    /// It leaves the timers of a run that has ended.
    LeavesTimers,
    /// It waits for the task of a step on a thread.
    WaitsOnAThread,
    /// It begins another task when it is not known whether it has begun the next.
    BeginsOneMore,
    /// It does what it has said that it does not.
    DoesWhatWasGivenUp,
    /// It gives a worktree to another task without asking the one that has it.
    LendsWithoutAsking,
    /// It takes a worktree up again that it has lent on, although another task has it.
    TakesBackWhatIsLent,
    /// It does not record that a task needs a person where that follows from where the task stands.
    ForgetsAttention,
    /// It tells a person of where a task stands only in the moment in which it comes there, and not when its hooks have settled
    /// later.
    TellsAtTheMoveOnly,
    /// It puts a mark in front of what keeps the task more from going on.
    HidesBehindMarks,
}

impl SimBug {
    pub const ALL: [SimBug; 42] = [
        SimBug::AnswersBeforeDurable,
        SimBug::ForgetsEffects,
        SimBug::HandsOutTwice,
        SimBug::SkipsRecovery,
        SimBug::ForgetsTimers,
        SimBug::TakesLateAnswers,
        SimBug::LosesPartOfABatch,
        SimBug::ForgetsTheOrder,
        SimBug::ForgetsExits,
        SimBug::ForgetsRunEnds,
        SimBug::TakesAllCommitsForTheRuns,
        SimBug::ForgetsWhatReviewersAskedFor,
        SimBug::StartsTwice,
        SimBug::EndsBeforeDurable,
        SimBug::ForgetsReservations,
        SimBug::TrustsSessions,
        SimBug::LeavesWorkRunning,
        SimBug::ActsWithoutOwnership,
        SimBug::KeepsOldMemory,
        SimBug::AdoptsWhatWasAnothers,
        SimBug::SharesItsName,
        SimBug::TakesDoubtForNo,
        SimBug::TakesDoubtForYes,
        SimBug::TakesAFailedReadForNothing,
        SimBug::TakesAFailedReadForAnOutcome,
        SimBug::TakesAShortageForAnOutcome,
        SimBug::SwallowsPanics,
        SimBug::SettlesWithoutReport,
        SimBug::StartsWhatHasEnded,
        SimBug::BeginsWhatIsWithdrawn,
        SimBug::AdoptsTheDead,
        SimBug::TrustsTheWallClock,
        SimBug::SleepsThroughLeases,
        SimBug::LeavesTimers,
        SimBug::WaitsOnAThread,
        SimBug::BeginsOneMore,
        SimBug::DoesWhatWasGivenUp,
        SimBug::LendsWithoutAsking,
        SimBug::TakesBackWhatIsLent,
        SimBug::ForgetsAttention,
        SimBug::TellsAtTheMoveOnly,
        SimBug::HidesBehindMarks,
    ];
}
