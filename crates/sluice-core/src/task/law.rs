//! The law of tasks as a table: what a task in the middle of this answers to an input of that kind. The law of
//! sessions is [`TaskSession::after`]; both are drawn here for `docs/machines/task.md`.

use super::input::TaskInputKind;
use super::session::{SessionChange, SessionTransition, TaskSession};
use super::state::TaskPhase;
use crate::machine::RefusalCode;

/// What the task does with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskResponse {
    /// Takes the first transition that starts an agent, or begins where it was created.
    Begin,
    /// Moves: transition, guard, asker, gate; then its hooks, behind those under way.
    Move,
    /// Keeps which verdict a reviewer asks for, if it is about to be refused.
    Keep,
    /// Says whether it may be merged, and changes nothing.
    Check,
    /// Moves to `done`, because its branch was merged.
    Close,
    /// Starts the agent of its state again.
    Respawn,
    /// Changes what it is about.
    Update,
    /// Is no longer marked.
    Clear,
    /// Does again what failed since it came to its state.
    Retry,
    /// Leaves its worktree to another task, if nothing in it is in use or would be lost.
    Lend,
    /// Goes on in the worktree that it has waited for, after its own was lent on.
    TakeUp,
    /// Notes what became of the session, and asks the exit rules if it was watched and ended by itself.
    Watch,
    /// Notes what became of the session.
    Note,
    /// Keeps what is heard of the agent in a living session of its own, if the channel may say it.
    Hear,
    /// Waits for the run of its state again, if it is that one, and is no longer marked with its end.
    Await,
    /// Moves as the run of its state ended, if it is that one; where it cannot, it is marked.
    Follow,
    /// Settles the hook that waited for it, and goes on to the next.
    Settle,
    /// Is marked if TASK.md could not be written; any other outcome comes late.
    Report,
    /// Nothing: it comes too late.
    Ignore,
    /// Refuses the input, with this code.
    Refuse(RefusalCode),
}

/// The law of tasks: what a task in `phase` does with an input of this kind.
pub fn answer(phase: TaskPhase, input: TaskInputKind) -> TaskResponse {
    use TaskInputKind as I;
    use TaskPhase::{Closing, Finished, Settling, Standing, Waiting};
    match (phase, input) {
        (Waiting, I::Spawn) => TaskResponse::Begin,
        (Standing | Settling, I::Spawn) => TaskResponse::Refuse(RefusalCode::NoTransition),
        (Waiting | Standing | Settling, I::Move | I::Cancel | I::RequestChanges) => TaskResponse::Move,
        (Waiting | Standing | Settling, I::Verdict) => TaskResponse::Keep,
        (Waiting | Standing | Settling, I::Merge) => TaskResponse::Check,
        (Waiting | Standing | Settling, I::Merged) => TaskResponse::Close,
        (Waiting | Standing | Settling, I::Respawn) => TaskResponse::Respawn,
        (Waiting | Standing | Settling, I::Update) => TaskResponse::Update,
        // What is over may still owe something: a push, a worktree that could not be given back.
        (Waiting | Standing | Settling | Closing | Finished, I::ClearAttention) => TaskResponse::Clear,
        (Waiting | Standing | Settling | Closing | Finished, I::Retry) => TaskResponse::Retry,
        (Standing, I::Lend) => TaskResponse::Lend,
        (Waiting | Settling | Closing, I::Lend) => TaskResponse::Refuse(RefusalCode::NotReady),
        (Waiting | Standing | Settling | Closing, I::TakeUp) => TaskResponse::TakeUp,
        (Waiting | Standing | Settling, I::SessionExited) => TaskResponse::Watch,
        (Closing, I::SessionExited) => TaskResponse::Note,
        (Waiting | Standing | Settling | Closing, I::SessionAdopted) => TaskResponse::Note,
        (Waiting | Standing | Settling, I::Signal) => TaskResponse::Hear,
        (Waiting | Standing | Settling, I::RunReopened) => TaskResponse::Await,
        (Waiting | Standing | Settling, I::RunEnded) => TaskResponse::Follow,
        (Closing | Finished, I::RunReopened | I::RunEnded | I::Verdict | I::Signal) => TaskResponse::Ignore,
        (Settling | Closing, I::EffectDone) => TaskResponse::Settle,
        (Waiting | Standing, I::EffectDone) => TaskResponse::Report,
        (Finished, I::TakeUp | I::SessionExited | I::SessionAdopted | I::EffectDone) => TaskResponse::Ignore,
        (
            Closing,
            I::Spawn | I::Move | I::Cancel | I::RequestChanges | I::Merge | I::Merged | I::Respawn | I::Update,
        )
        | (
            Finished,
            I::Spawn
            | I::Move
            | I::Cancel
            | I::RequestChanges
            | I::Merge
            | I::Merged
            | I::Respawn
            | I::Update
            | I::Lend,
        ) => TaskResponse::Refuse(RefusalCode::Finished),
    }
}

/// A row of the law that a decision used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LawRow {
    /// Of the law of tasks.
    Task(TaskPhase, TaskInputKind),
    /// Of the law of sessions, by the words for session and change.
    Session(&'static str, &'static str),
}

impl LawRow {
    /// Every row that can be used.
    pub fn all() -> Vec<LawRow> {
        let tasks = TaskPhase::ALL
            .into_iter()
            .flat_map(|phase| TaskInputKind::ALL.iter().map(move |input| LawRow::Task(phase, *input)));
        let sessions = TaskSession::samples().into_iter().flat_map(|session| {
            SessionChange::samples().into_iter().filter_map(move |change| match session.after(&change) {
                SessionTransition::Never => None,
                SessionTransition::Becomes(_) | SessionTransition::Died(_) | SessionTransition::Stays => {
                    Some(LawRow::Session(session.word(), change.word()))
                }
            })
        });
        tasks.chain(sessions).collect()
    }
}

/// The page about this machine.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let phases: Vec<String> = TaskPhase::ALL.iter().map(|phase| format!("{phase:?}").to_lowercase()).collect();
    table(
        &mut page,
        &phases,
        TaskInputKind::ALL.iter().map(|input| {
            (input.words().to_owned(), TaskPhase::ALL.into_iter().map(|phase| words(answer(phase, *input))).collect())
        }),
    );
    page.push_str(SESSIONS);
    let kinds: Vec<String> = TaskSession::samples().iter().map(|session| session.word().to_owned()).collect();
    table(
        &mut page,
        &kinds,
        SessionChange::samples().iter().map(|change| {
            let cell = |session: &TaskSession| match session.after(change) {
                SessionTransition::Becomes(next) => next.word().to_owned(),
                SessionTransition::Died(next) => format!("{}, and the exit rules are asked", next.word()),
                SessionTransition::Stays => "stays".to_owned(),
                SessionTransition::Never => "–".to_owned(),
            };
            (change.word().to_owned(), TaskSession::samples().iter().map(cell).collect())
        }),
    );
    page
}

fn words(answer: TaskResponse) -> String {
    match answer {
        TaskResponse::Begin => "begins".into(),
        TaskResponse::Move => "moves".into(),
        TaskResponse::Keep => "keeps".into(),
        TaskResponse::Check => "checks".into(),
        TaskResponse::Close => "closes".into(),
        TaskResponse::Respawn => "respawns".into(),
        TaskResponse::Update => "updates".into(),
        TaskResponse::Clear => "clears".into(),
        TaskResponse::Retry => "retries".into(),
        TaskResponse::Lend => "lends".into(),
        TaskResponse::TakeUp => "takes up".into(),
        TaskResponse::Watch => "watches".into(),
        TaskResponse::Note => "notes".into(),
        TaskResponse::Hear => "hears".into(),
        TaskResponse::Await => "awaits".into(),
        TaskResponse::Follow => "follows".into(),
        TaskResponse::Settle => "settles".into(),
        TaskResponse::Report => "reports".into(),
        TaskResponse::Ignore => "ignores".into(),
        TaskResponse::Refuse(code) => format!("refuses: `{}`", code.as_str()),
    }
}

fn table(page: &mut String, head: &[String], rows: impl Iterator<Item = (String, Vec<String>)>) {
    page.push_str(&format!("|  | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(head.len())));
    for (name, cells) in rows {
        page.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
}

const INTRODUCTION: &str = "\
# The task machine

Drawn from `crates/sluice-core/src/task/law.rs` and `session.rs`; `cargo xtask update` draws it
again. A test fails when this page is not what the code says, or when a row of it is taken by no script in
`crates/sluice-core/tests/task/plays/`.

## What a task answers

A task is *waiting* until its agent is first started, *settling* while hooks are under way, *standing* when they have
settled, *closing* while the hooks of its last move are under way, and then *finished*.

- **begins**: takes the first transition that starts an agent, or gets the agent of the state it was created in.
- **moves**: transition exists → guard holds → asker may → gate passes; then the status changes and the hooks of the
  transition queue up behind those under way. When they have settled, `crash_count` drops by what it was at the move.
- **keeps**: a reviewer asks for a transition that gives a verdict, and will be refused. From then on the engine takes no
  verdict of this stay from TASK.md, but for the one that the reviewer asked for where the file gave none or the same.
- **clears**: a person has looked, and a mark or what was heard of an agent is gone. **retries**: what failed since the task
  came to its state is done again, in the same order and under new keys; with it the worktree is given back that could not
  be because of that. A task that is finished can owe that as well; it stays in its state.
- **checks** a merge, **closes** after one. **respawns**: prompt, workspace, dead session or one
  that waits for a person; not a transition.
- **lends**: its worktree goes to another task, if no session lives, no run of a state is left, and all of the work is in a
  commit of its branch. When something is to be done in a worktree again, the task moves at once, and its first job waits
  until there is one. **takes up**: there is one, and the job goes on; a later move does not wait for it.
- **watches**: notes that the session ended. If it is the one this status watches, ended by itself, and no queued hook
  was going to end it, the first exit rule that matches is applied. **notes**: the same without the rules.
- **follows**: the run of its state has ended, and the task moves where the state says, as the engine's own move: guard
  and gate are asked. Where that is refused, or the state says nothing, it stays and is marked. An end of another run
  changes nothing. Leaving such a state by any other way cancels its run first, before the hooks of the transition.
- **hears**: the agent of a living session waits for a person, is quiet, or works again. Of a session that is not the
  task's living one nothing is heard. A screen raises and never clears; no channel clears or replaces what one that is
  trusted more has said: protocol, hook, exit, screen. A move, the end of the session and a person who has looked end it.
- **settles**: the hook that waited is over, and the next one begins. **reports**: only a TASK.md that could not be
  written still matters.

";

const SESSIONS: &str = "
## What becomes of a session

A task has room for two: its own, and a reviewer beside it. `–` cannot happen: hooks run one after another, and a living
session is ended before another takes its place.

";
