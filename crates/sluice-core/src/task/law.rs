//! The law of tasks as a table: what a task in the middle of this answers to an input of that kind. The law of
//! sessions is [`Session::after`]; both are drawn here for `docs/machines/task.md`.

use super::input::InputKind;
use super::session::{Change, Next, Session};
use super::state::Phase;
use crate::machine::RefusalCode;

/// What the task does with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Takes the first transition that starts an agent, or begins where it was created.
    Begin,
    /// Moves: transition, guard, asker, gate; then its hooks, behind those under way.
    Move,
    /// Keeps which verdict a reviewer asks for, if it is about to be refused.
    Keep,
    /// Says whether it may be merged, and changes nothing.
    Check,
    /// Moves to `done`.
    Close,
    /// Starts the agent of its state again.
    Respawn,
    /// Changes what it is about.
    Update,
    /// Is no longer marked.
    Clear,
    /// Notes what became of the session, and asks the exit rules if it was watched and ended by itself.
    Watch,
    /// Notes what became of the session.
    Note,
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
    /// Says no.
    Refuse(RefusalCode),
}

/// The law.
pub fn answer(phase: Phase, input: InputKind) -> Answer {
    use InputKind as I;
    use Phase::{Closing, Finished, Settling, Standing, Waiting};
    match (phase, input) {
        (Waiting, I::Spawn) => Answer::Begin,
        (Standing | Settling, I::Spawn) => Answer::Refuse(RefusalCode::NoTransition),
        (Waiting | Standing | Settling, I::Move | I::Cancel | I::RequestChanges) => Answer::Move,
        (Waiting | Standing | Settling, I::Verdict) => Answer::Keep,
        (Waiting | Standing | Settling, I::Merge) => Answer::Check,
        (Waiting | Standing | Settling, I::Merged) => Answer::Close,
        (Waiting | Standing | Settling, I::Respawn) => Answer::Respawn,
        (Waiting | Standing | Settling, I::Update) => Answer::Update,
        (Waiting | Standing | Settling | Closing, I::ClearAttention) => Answer::Clear,
        (Waiting | Standing | Settling, I::SessionExited) => Answer::Watch,
        (Closing, I::SessionExited) => Answer::Note,
        (Waiting | Standing | Settling | Closing, I::SessionAdopted) => Answer::Note,
        (Waiting | Standing | Settling, I::RunReopened) => Answer::Await,
        (Waiting | Standing | Settling, I::RunEnded) => Answer::Follow,
        (Closing | Finished, I::RunReopened | I::RunEnded | I::Verdict) => Answer::Ignore,
        (Settling | Closing, I::EffectDone) => Answer::Settle,
        (Waiting | Standing, I::EffectDone) => Answer::Report,
        (Finished, I::SessionExited | I::SessionAdopted | I::EffectDone) => Answer::Ignore,
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
            | I::ClearAttention,
        ) => Answer::Refuse(RefusalCode::Finished),
    }
}

/// A row of the law that a decision used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// Of the law of tasks.
    Task(Phase, InputKind),
    /// Of the law of sessions, by the words for session and change.
    Session(&'static str, &'static str),
}

impl Row {
    /// Every row that can be used.
    pub fn all() -> Vec<Row> {
        let tasks =
            Phase::ALL.into_iter().flat_map(|phase| InputKind::ALL.iter().map(move |input| Row::Task(phase, *input)));
        let sessions = Session::samples().into_iter().flat_map(|session| {
            Change::samples().into_iter().filter_map(move |change| match session.after(&change) {
                Next::Never => None,
                Next::Becomes(_) | Next::Died(_) | Next::Stays => Some(Row::Session(session.word(), change.word())),
            })
        });
        tasks.chain(sessions).collect()
    }
}

/// The page about this machine.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    let phases: Vec<String> = Phase::ALL.iter().map(|phase| format!("{phase:?}").to_lowercase()).collect();
    table(
        &mut page,
        "",
        &phases,
        InputKind::ALL.iter().map(|input| {
            (input.words().to_owned(), Phase::ALL.into_iter().map(|phase| words(answer(phase, *input))).collect())
        }),
    );
    page.push_str(SESSIONS);
    let kinds: Vec<String> = Session::samples().iter().map(|session| session.word().to_owned()).collect();
    table(
        &mut page,
        "",
        &kinds,
        Change::samples().iter().map(|change| {
            let cell = |session: &Session| match session.after(change) {
                Next::Becomes(next) => next.word().to_owned(),
                Next::Died(next) => format!("{}, and the exit rules are asked", next.word()),
                Next::Stays => "stays".to_owned(),
                Next::Never => "–".to_owned(),
            };
            (change.word().to_owned(), Session::samples().iter().map(cell).collect())
        }),
    );
    page
}

fn words(answer: Answer) -> String {
    match answer {
        Answer::Begin => "begins".into(),
        Answer::Move => "moves".into(),
        Answer::Keep => "keeps".into(),
        Answer::Check => "checks".into(),
        Answer::Close => "closes".into(),
        Answer::Respawn => "respawns".into(),
        Answer::Update => "updates".into(),
        Answer::Clear => "clears".into(),
        Answer::Watch => "watches".into(),
        Answer::Note => "notes".into(),
        Answer::Await => "awaits".into(),
        Answer::Follow => "follows".into(),
        Answer::Settle => "settles".into(),
        Answer::Report => "reports".into(),
        Answer::Ignore => "ignores".into(),
        Answer::Refuse(code) => format!("refuses: `{}`", code.as_str()),
    }
}

fn table(page: &mut String, corner: &str, head: &[String], rows: impl Iterator<Item = (String, Vec<String>)>) {
    page.push_str(&format!("| {corner} | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(head.len())));
    for (name, cells) in rows {
        page.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
}

const INTRODUCTION: &str = "\
# The task machine

Drawn from `crates/sluice-core/src/task/law.rs` and `session.rs`; `UPDATE_DOCS=1 cargo test -p sluice-core` draws it
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
- **checks** a merge, **closes** after one. **respawns**: prompt, workspace, dead session; not a transition.
- **watches**: notes that the session ended. If it is the one this status watches, ended by itself, and no queued hook
  was going to end it, the first exit rule that matches is applied. **notes**: the same without the rules.
- **follows**: the run of its state has ended, and the task moves where the state says, as the engine's own move: guard
  and gate are asked. Where that is refused, or the state says nothing, it stays and is marked. An end of another run
  changes nothing. Leaving such a state by any other way cancels its run first, before the hooks of the transition.
- **settles**: the hook that waited is over, and the next one begins. **reports**: only a TASK.md that could not be
  written still matters.

";

const SESSIONS: &str = "
## What becomes of a session

A task has room for two: its own, and a reviewer beside it. `–` cannot happen: hooks run one after another, and a living
session is ended before another takes its place.

";
