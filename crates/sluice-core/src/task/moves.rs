//! Moving: which transition, whether it may be taken, and taking it.

use super::TaskInputResult;
use super::apply::{edge as edge_at, starts_beside};
use super::event::{TaskEvent, TaskMove};
use super::hooks;
use super::input::{Evidence, TaskAsker, WorkspaceReservation};
use super::pending::TaskPending;
use super::runs;
use super::seen;
use super::session::{SessionAgent, SessionRole};
use super::state::{EdgeId, RefusedVerdict, TaskAttention, TaskWorkspace, WorkSnapshot, WorkVerdict};
use crate::artifact::{Gate, GateFailure};
use crate::expr::{Expr, ExprValue, Number, ValuePath};
use crate::lifecycle::{Lifecycle, LifecycleTransition, PersonsOnlyReason, StateId, TransitionHook, TransitionTakers};
use crate::machine::{Refusal, RefusalCode};

/// The state in which a task has been given up.
pub(super) const CANCELLED: &str = "cancelled";
/// What an agent does that wants to take the transition of a run.
const WAIT_FOR_THE_RUN: &str = "wait for its end: then the engine takes the transition";
/// What an agent does that wants to take a person's transition.
const ASK_A_PERSON: &str = "wait for the person; a lifecycle opens the transition to agents with `by: agent`";

/// Moves to the state called `to`, if that may be.
pub(super) fn go(
    ledger: &mut TaskPending<'_>,
    by: TaskAsker,
    to: &str,
    evidence: &Evidence,
    room: &WorkspaceReservation,
) -> TaskInputResult {
    let from = ledger.state.status;
    let Some(to) = ledger.lifecycle.find(to) else {
        let message = format!("Transition not allowed: `{to}` is not a state of `{}`", ledger.lifecycle.name);
        return Err(Refusal::new(RefusalCode::NoTransition, message).hint(ways_out(ledger.lifecycle, from)));
    };
    if is_repeated(ledger, by, to) {
        return Ok(());
    }
    let edge = select(ledger, by, to, evidence)?;
    let needs_room =
        edge_at(ledger.lifecycle, edge).is_some_and(|edge| edge.hooks.contains(&TransitionHook::AcquireWorkspace));
    if needs_room && ledger.state.lent.is_none() && !make_room(ledger, room) {
        return Ok(());
    }
    let is_settled = matches!(ledger.state.marked(), Some(TaskAttention::PoolFull | TaskAttention::Disputed { .. }));
    if by == TaskAsker::Person {
        ledger.clear_attention();
    } else if is_settled {
        ledger.clear_mark();
    }
    take(ledger, Some(edge), to, by, evidence);
    Ok(())
}

/// Keeps which verdict a reviewer asks for, if the transition that gives it is about to be refused, whatever for: the
/// reviewer may end on that, and another may change the file.
pub(super) fn keep_verdict(ledger: &mut TaskPending<'_>, by: TaskAsker, to: &str, evidence: &Evidence) {
    let TaskAsker::Session(session) = by else { return };
    let Some(to) = ledger.lifecycle.find(to).filter(|_| is_reviewer(ledger, by)) else { return };
    let gates = || candidates(ledger.lifecycle, ledger.state.status, to).filter_map(|(_, edge)| edge.gate.as_ref());
    let Some((gate, test)) = gates().find_map(|gate| Some((gate, gate.verdict?))) else { return };
    if is_repeated(ledger, by, to) || select(ledger, by, to, evidence).is_ok() {
        return;
    }
    let found = match ledger.state.visit.test(gate, &evidence.body, by) {
        Ok(()) => Some(test.wanted),
        Err(GateFailure::OtherVerdict(other)) => Some(other),
        Err(GateFailure::NoSection | GateFailure::Empty | GateFailure::NoField | GateFailure::NoVerdict) => None,
    };
    let asked = RefusedVerdict { verdict: test.wanted, found };
    if ledger.state.visit.asked != Some(asked) {
        ledger.record(TaskEvent::VerdictRefused { session, asked });
    }
}

/// Whether the move has already happened: the monitor comes after a command, or a session asks again because it did
/// not hear the answer.
fn is_repeated(ledger: &TaskPending<'_>, by: TaskAsker, to: StateId) -> bool {
    let is_here = ledger.state.status == to && candidates(ledger.lifecycle, to, to).next().is_none();
    is_here
        && match by {
            TaskAsker::Engine => true,
            TaskAsker::Session(_) => ledger.state.visit.by == by,
            TaskAsker::Person | TaskAsker::Stranger => false,
        }
}

/// Takes up the reservation, or marks a task for which there is no room; then it stays where it is.
pub(super) fn make_room(ledger: &mut TaskPending<'_>, room: &WorkspaceReservation) -> bool {
    match (&ledger.state.workspace, room) {
        (TaskWorkspace::Unbound, WorkspaceReservation::Full) => {
            ledger.mark(TaskAttention::PoolFull);
            false
        }
        (TaskWorkspace::Unbound, WorkspaceReservation::Reserved(name)) => {
            ledger.record(TaskEvent::WorkspaceReserved(name.clone()));
            true
        }
        (TaskWorkspace::Unbound, WorkspaceReservation::Unasked)
        | (TaskWorkspace::Reserved(_) | TaskWorkspace::Bound(_), _) => true,
    }
}

/// The transition to `to` that may be taken: it exists, its guard holds, the asker may take it, its gate passes.
pub(super) fn select(
    ledger: &TaskPending<'_>,
    by: TaskAsker,
    to: StateId,
    evidence: &Evidence,
) -> Result<EdgeId, Refusal> {
    let (lifecycle, from) = (ledger.lifecycle, ledger.state.status);
    let name = |state| lifecycle.state_name(state);
    let way = format!("{} → {}", name(from), name(to));
    let mut guards = Vec::new();
    for (id, edge) in candidates(lifecycle, from, to) {
        match &edge.guard {
            Some(guard) if !holds(ledger, guard) => guards.push(guard),
            Some(_) | None => {
                may_take(ledger, by, edge, &way)?;
                passes(ledger, by, edge, evidence, &way)?;
                return Ok(id);
            }
        }
    }
    if guards.is_empty() {
        let message = format!("Transition not allowed: no transition leads from `{}` to `{}`", name(from), name(to));
        return Err(Refusal::new(RefusalCode::NoTransition, message).hint(ways_out(lifecycle, from)));
    }
    let wanted: Vec<String> = guards.iter().map(ToString::to_string).collect();
    let mut values: Vec<String> = guards
        .iter()
        .flat_map(|guard| guard.comparisons())
        .map(|compare| format!("{} is {}", compare.path, ledger.state.number(compare.path.head())))
        .collect();
    values.dedup();
    let message = format!("Transition not allowed: {way} needs {}, and {}", wanted.join(" or "), values.join(" and "));
    Err(Refusal::new(RefusalCode::GuardFailed, message).hint(ways_out(lifecycle, from)))
}

fn candidates(
    lifecycle: &Lifecycle,
    from: StateId,
    to: StateId,
) -> impl Iterator<Item = (EdgeId, &LifecycleTransition)> {
    edges(lifecycle).filter(move |(_, edge)| edge.from == from && edge.to == to)
}

/// The transitions with their ids, in the order of the file.
pub(super) fn edges(lifecycle: &Lifecycle) -> impl Iterator<Item = (EdgeId, &LifecycleTransition)> {
    (0u32..).map(EdgeId).zip(&lifecycle.transitions)
}

pub(super) fn holds(ledger: &TaskPending<'_>, guard: &Expr) -> bool {
    guard.holds(&|path: &ValuePath| Some(ExprValue::Number(Number::whole(ledger.state.number(path.head())))))
}

/// Whether the asker may take this transition. A person may take every one, and the engine follows the lifecycle's rules.
fn may_take(ledger: &TaskPending<'_>, by: TaskAsker, edge: &LifecycleTransition, way: &str) -> TaskInputResult {
    match by {
        TaskAsker::Person | TaskAsker::Engine => return Ok(()),
        TaskAsker::Session(_) | TaskAsker::Stranger => {}
    }
    let (why, hint) = match ledger.lifecycle.takers(edge) {
        TransitionTakers::Agents => return Ok(()),
        TransitionTakers::Reviewer if is_reviewer(ledger, by) => return Ok(()),
        TransitionTakers::Reviewer => {
            ("is the reviewer's verdict, and you are being reviewed", "wait for the reviewer")
        }
        TransitionTakers::Persons(PersonsOnlyReason::Said) => {
            ("is for a person: the lifecycle says `by: person`", ASK_A_PERSON)
        }
        TransitionTakers::Persons(PersonsOnlyReason::EndsRun) => {
            ("is the run's, which has not ended", WAIT_FOR_THE_RUN)
        }
        TransitionTakers::Persons(PersonsOnlyReason::EndsTask) => {
            ("ends the task, and that is for a person", ASK_A_PERSON)
        }
        TransitionTakers::Persons(PersonsOnlyReason::StartsAgent) => {
            ("starts an agent, and that is for a person", ASK_A_PERSON)
        }
    };
    Err(Refusal::new(RefusalCode::NotYours, format!("Transition not allowed: {way} {why}")).hint(hint))
}

fn passes(
    ledger: &TaskPending<'_>,
    by: TaskAsker,
    edge: &LifecycleTransition,
    evidence: &Evidence,
    way: &str,
) -> TaskInputResult {
    let Some(gate) = &edge.gate else { return Ok(()) };
    let refuse = |problem: &str, hint: String| {
        let message = format!("Transition not allowed: {way} needs `{}` in TASK.md: {problem}", gate.describe());
        Err(Refusal::new(RefusalCode::GateFailed, message).hint(hint))
    };
    let again = format!("write `## {}` in TASK.md, then ask again", gate.title);
    let is_taken = gate.verdict.is_none_or(|test| ledger.state.visit.takes(test.wanted));
    match ledger.state.visit.test(gate, &evidence.body, by) {
        Ok(()) if by == TaskAsker::Engine && !is_taken => {
            refuse("a reviewer was refused a verdict here, and must ask for one itself", again)
        }
        Ok(()) if gate.verdict.is_some() && !is_given_here(ledger, by, gate, evidence) => {
            let state = ledger.lifecycle.state_name(ledger.state.status);
            let old = format!("its verdict is from before the task entered `{state}`");
            match is_reviewer(ledger, by) && evidence.is_written {
                true => refuse(
                    &format!("{old}, or says the same, and a living worker may have written it"),
                    format!("write `## {}` in other words, then ask again", gate.title),
                ),
                false => refuse(&old, again),
            }
        }
        Ok(()) => Ok(()),
        Err(failure) => refuse(&explain(gate, &failure), again),
    }
}

/// Whether a verdict was given since the task entered its status. Two reviews may say the same in the same words: what a
/// reviewer has written since then, and takes for its verdict, is one.
fn is_given_here(ledger: &TaskPending<'_>, by: TaskAsker, gate: &Gate, evidence: &Evidence) -> bool {
    // Beside a living worker the file does not tell which agent wrote it.
    let is_alone = !(ledger.state.main.is_living() && ledger.state.beside.is_living());
    let is_written = is_reviewer(ledger, by) && is_alone && evidence.is_written;
    ledger.state.visit.is_new(gate, &evidence.body) || is_written
}

fn is_reviewer(ledger: &TaskPending<'_>, by: TaskAsker) -> bool {
    agent_of(ledger, by).is_some_and(|agent| agent.role == SessionRole::Reviewer)
}

/// The agent that asks, if one of the task's own does.
fn agent_of<'a>(ledger: &'a TaskPending<'_>, by: TaskAsker) -> Option<&'a SessionAgent> {
    match by {
        TaskAsker::Session(id) => ledger.place_of(id).and_then(|place| ledger.state.session(place).agent()),
        TaskAsker::Person | TaskAsker::Engine | TaskAsker::Stranger => None,
    }
}

fn explain(gate: &Gate, failure: &GateFailure) -> String {
    match failure {
        GateFailure::NoSection => "the section is missing".into(),
        GateFailure::Empty => "the section is empty".into(),
        GateFailure::NoField => {
            format!("no line there starts with `{}:` and says something", gate.fields.join(":`, `"))
        }
        GateFailure::NoVerdict => "it gives no verdict".into(),
        GateFailure::OtherVerdict(other) => format!("its verdict is {}", other.word()),
    }
}

fn ways_out(lifecycle: &Lifecycle, from: StateId) -> String {
    let mut ways: Vec<&str> =
        edges(lifecycle).filter(|(_, edge)| edge.from == from).map(|(_, edge)| lifecycle.state_name(edge.to)).collect();
    ways.dedup();
    format!("from `{}` it can go to: {}", lifecycle.state_name(from), ways.join(", "))
}

/// What a verdict was given for: where another commit stands than the reviewer was handed, not that.
fn judged_work(handed: Option<WorkSnapshot>, now: WorkSnapshot) -> WorkSnapshot {
    match handed {
        Some(handed) if handed.commit != now.commit => handed,
        Some(_) | None => now,
    }
}

/// Changes the status and sets the hooks going. Nothing is asked any more.
pub(super) fn take(
    ledger: &mut TaskPending<'_>,
    edge: Option<EdgeId>,
    to: StateId,
    by: TaskAsker,
    evidence: &Evidence,
) {
    let transition = edge.and_then(|id| edge_at(ledger.lifecycle, id));
    let verdict = transition.and_then(|edge| edge.gate.as_ref()?.verdict);
    let now = || WorkSnapshot::of(&evidence.work);
    // A reviewer beside a worker has looked at what it was handed; a person at what is there.
    let handed =
        || ledger.state.visit.handed.clone().filter(|handed| by != TaskAsker::Person && handed.commit.is_some());
    let judged = verdict.map(|test| WorkVerdict { verdict: test.wanted, work: judged_work(handed(), now()) });
    let handed = transition.filter(|edge| starts_beside(edge)).map(|_| now());
    let unchecked = runs::unchecked(ledger).filter(|_| !ledger.lifecycle.state(to).terminal);
    ledger.record(TaskEvent::Moved(TaskMove {
        turn: ledger.next_turn(),
        from: ledger.state.status,
        to,
        edge,
        by,
        at: ledger.now,
        seen: seen::sections(ledger.lifecycle, Some((ledger.state.status, &ledger.state.visit)), to, &evidence.body),
        judged,
        unchecked,
        handed,
        said: ledger.feedback.is_some(),
    }));
    if ledger.lifecycle.state_name(to) == CANCELLED {
        ledger.record(TaskEvent::Cancelled);
    }
    hooks::run(ledger);
}
