//! Whether a task may be merged, and closing it afterwards.
//!
//! What is merged is a commit, and it is the one that was judged: what the workspace holds must be on the task's branch
//! and in a commit, and the newest verdict must be a PASS for exactly that commit. So must the newest run that judges the
//! work have completed on it: neither makes up for the other. A task that nobody has judged is not asked for a verdict.
//! `force` is a person's word against the verdict or for leaving behind what no commit has; it never makes up for work
//! that lies elsewhere or cannot be read.

use super::TaskInputResult;
use super::apply::edge as edge_at;
use super::input::{Evidence, RunEnd, TaskAsker, WorkEvidence, WorkHead, WorkStanding};
use super::moves;
use super::pending::TaskPending;
use super::runs;
use super::state::{EdgeId, RunJudgement, TaskAttention, WorkSnapshot, WorkVerdict};
use crate::artifact::Verdict;
use crate::lifecycle::{DONE, LifecycleTransition, StateId, TransitionHook};
use crate::machine::{ASKED, Refusal, RefusalCode};

const REFUSED: &str = "Merge not allowed: ";

/// How much of a commit's name a message shows.
const SHORT: usize = 12;

/// Whether the task may be merged: it can go to `done`, its work is all in one commit of its branch, and what judges it
/// has passed that commit.
pub(super) fn may(ledger: &TaskPending<'_>, by: TaskAsker, force: bool, evidence: &Evidence) -> TaskInputResult {
    let (edge, _) = to_done(ledger, by, evidence)?;
    let standing = match &evidence.work {
        WorkEvidence::Unreadable(why) => {
            let why = format!("the work cannot be read: {why}");
            return Err(refused(RefusalCode::NotReady, &why).hint("mend the workspace, then merge again"));
        }
        WorkEvidence::Unseen => None,
        WorkEvidence::Read(standing) => Some(standing),
    };
    if let Some(standing) = standing {
        on_branch(ledger, standing)?;
    }
    if force {
        return Ok(());
    }
    let passed = passed(ledger, edge, standing);
    standing.map_or(Ok(()), |standing| committed(standing, passed.as_ref().err()))?;
    passed
}

/// What judges the work has passed it, as it stands.
fn passed(ledger: &TaskPending<'_>, edge: EdgeId, standing: Option<&WorkStanding>) -> TaskInputResult {
    checked(ledger, standing)?;
    agreed(ledger, standing)?;
    // A verdict that the way to `done` itself asks for is given now, for what is there now.
    let gate = edge_at(ledger.lifecycle, edge).and_then(|edge| edge.gate.as_ref());
    match (gate.and_then(|gate| gate.verdict), &ledger.state.judged) {
        (Some(test), _) if test.wanted == Verdict::Pass => Ok(()),
        (Some(_), _) => Err(failed(ledger, "the way to `done` asks for the verdict FAIL")),
        (None, Some(judged)) => judges(ledger, judged, standing),
        (None, None) => Ok(()),
    }
}

/// The work stands on the task's own branch.
fn on_branch(ledger: &TaskPending<'_>, standing: &WorkStanding) -> TaskInputResult {
    let branch = &ledger.state.about.branch;
    let at = short(&standing.commit.0);
    let there = ledger.state.workspace.bound().map_or("the workspace", |bound| bound.0.as_str());
    let (place, way) = match &standing.head {
        WorkHead::Branch(name) if name == branch => return Ok(()),
        WorkHead::Branch(name) => (
            format!("branch `{name}` is checked out in its workspace, at {at}"),
            format!(
                "`sluice task update {ASKED} --branch {name}` makes that the task's branch; or `git switch {branch}` in {there}"
            ),
        ),
        WorkHead::Rebasing(name) => (
            format!("its workspace is in the middle of a rebase of `{name}`, at {at}"),
            format!("`git rebase --continue` in {there} finishes the rebase, and `git rebase --abort` takes it back"),
        ),
        // Only a new branch is always safe: commits may be on the task's branch alone.
        WorkHead::Detached => (
            format!("no branch is checked out in its workspace, at {at}"),
            format!(
                "`git switch -c NEW` in {there} and `sluice task update {ASKED} --branch NEW` make what stands there the \
                 task's work; `git switch {branch}` goes back, and leaves commits behind that only stand there"
            ),
        ),
    };
    let why = format!("the task's branch is `{branch}`, and {place}");
    Err(refused(RefusalCode::NotOnBranch, &why).hint(way))
}

/// Nothing lies beside the commit. Where the commit was not passed either, both are said: `--force` is a word against both.
fn committed(standing: &WorkStanding, also: Option<&Refusal>) -> TaskInputResult {
    if standing.dirty.is_empty() {
        return Ok(());
    }
    let mut why = format!("the workspace holds changes that no commit has: {}", standing.dirty);
    let mut hint = "`commit=true` commits them first; `force=true` merges without them, and they are kept";
    if let Some(also) = also {
        why.push_str(&format!("; and {}", also.message.strip_prefix(REFUSED).unwrap_or(&also.message)));
        hint = "`commit=true` commits them first; `force=true` merges without them, and against that; they are kept";
    }
    Err(refused(RefusalCode::Uncommitted, &why).hint(hint))
}

/// The verdict is a PASS, and was given for exactly this.
fn judges(ledger: &TaskPending<'_>, judged: &WorkVerdict, standing: Option<&WorkStanding>) -> TaskInputResult {
    match (is_same(&judged.work, standing), judged.verdict) {
        (true, Verdict::Pass) => Ok(()),
        (true, Verdict::Fail) => Err(failed(ledger, "the last verdict is FAIL, and nothing has changed since")),
        (false, verdict) => {
            let given = format!("the verdict {} was given for", verdict.word());
            Err(stale(ledger, &given, &judged.work, standing))
        }
    }
}

/// The newest run that judges the work has completed, on exactly this. One that has not ended says nothing yet.
fn checked(ledger: &TaskPending<'_>, standing: Option<&WorkStanding>) -> TaskInputResult {
    if let Some(open) = runs::unchecked(ledger) {
        let run = open.run.map_or("its run".to_owned(), |id| format!("run {id}"));
        let why = format!("{run}, which checks the work, has not ended");
        let hint = "wait for its end; `force=true` merges without it";
        return Err(refused(RefusalCode::NotReady, &why).hint(hint));
    }
    let Some(checked @ RunJudgement { run, end, work }) = &ledger.state.checked else { return Ok(()) };
    let Some(run) = run.as_ref().map(|id| format!("run {id}")) else {
        return Err(failed(ledger, "the task went on before the run that checks the work was started"));
    };
    let ended = match end {
        None => {
            let why = format!("the task went on before {run}, which checks the work, had ended");
            return Err(failed(ledger, &why));
        }
        Some(RunEnd::Completed) => "has completed",
        Some(RunEnd::Failed) => "has failed",
        Some(RunEnd::Cancelled) => "was cancelled",
    };
    match (is_same(work, standing), checked.verdict()) {
        (true, Verdict::Pass) => Ok(()),
        (true, Verdict::Fail) => {
            Err(failed(ledger, &format!("{run}, which checks the work, {ended}, and nothing has changed since")))
        }
        (false, Verdict::Pass) => Err(stale(ledger, &format!("{run} checked"), work, standing)),
        (false, Verdict::Fail) => Err(stale(ledger, &format!("{run} {ended} on"), work, standing)),
    }
}

/// Where the branch is gone, what was judged is merged: then a verdict and a run must have judged the same.
fn agreed(ledger: &TaskPending<'_>, standing: Option<&WorkStanding>) -> TaskInputResult {
    let (None, Some(judged), Some(checked)) = (standing, &ledger.state.judged, &ledger.state.checked) else {
        return Ok(());
    };
    if judged.work.commit == checked.work.commit {
        return Ok(());
    }
    let at = |work: &WorkSnapshot| work.commit.as_ref().map_or("unknown work".to_owned(), |it| short(&it.0).to_owned());
    let (verdict, run) = (at(&judged.work), at(&checked.work));
    let why = format!("the task's branch is gone, and the verdict was given for {verdict}, the check for {run}");
    let hint = format!("make the branch `{}` again where the work is, and have it judged", ledger.state.about.branch);
    Err(refused(RefusalCode::StaleVerdict, &why).hint(hint))
}

/// Whether what was judged is what is there now.
fn is_same(work: &WorkSnapshot, standing: Option<&WorkStanding>) -> bool {
    match (standing, &work.commit, &work.tree) {
        // Its branch is gone: what was judged is all there is.
        (None, _, _) => true,
        (Some(standing), Some(commit), _) => standing.commit == *commit && !work.dirty,
        // A verdict of an older engine.
        (Some(standing), None, Some(tree)) => standing.tree == *tree,
        (Some(_), None, None) => false,
    }
}

fn refused(code: RefusalCode, why: &str) -> Refusal {
    Refusal::new(code, format!("{REFUSED}{why}"))
}

fn failed(ledger: &TaskPending<'_>, why: &str) -> Refusal {
    refused(RefusalCode::FailedVerdict, why).hint(format!("{}; `force=true` merges against the verdict", again(ledger)))
}

/// How a person has the work judged again from here. Many a lifecycle knows no way back.
fn again(ledger: &TaskPending<'_>) -> String {
    let here = ledger.state.status;
    if ledger.lifecycle.judges(here) && runs::only(ledger.lifecycle, here) {
        return format!("`sluice task respawn {ASKED}` has it judged again");
    }
    let from = |state: StateId| ledger.lifecycle.transitions.iter().filter(move |edge| edge.from == state);
    let is_judged = |state: StateId| ledger.lifecycle.is_reviewed(state) || ledger.lifecycle.judges(state);
    // The nearest first; each state with the transition by which it is reached from here.
    let mut reached: Vec<(StateId, &LifecycleTransition)> = Vec::new();
    let mut next = 0;
    for edge in from(here).filter(|edge| edge.gate.is_none()) {
        reached.push((edge.to, edge));
    }
    while let Some((state, first)) = reached.get(next).copied() {
        if state != here && is_judged(state) {
            let tells = first.hooks.iter().any(|hook| matches!(hook, TransitionHook::NotifyWorker { .. }));
            let to = ledger.lifecycle.state_name(first.to);
            return match tells {
                true => format!(
                    "`sluice task request-changes {ASKED} --message TEXT` lets the worker change it and a reviewer judge it again"
                ),
                false => format!("`sluice task update {ASKED} --status {to}` has it judged again"),
            };
        }
        for edge in from(state) {
            if edge.to != here && !reached.iter().any(|(known, _)| *known == edge.to) {
                reached.push((edge.to, first));
            }
        }
        next += 1;
    }
    let what = if ledger.state.checked.is_some() { "check" } else { "review" };
    let here = ledger.lifecycle.state_name(here);
    format!("look at the work yourself: no transition leads from `{here}` back to a {what}")
}

fn stale(ledger: &TaskPending<'_>, judged: &str, work: &WorkSnapshot, standing: Option<&WorkStanding>) -> Refusal {
    let now = standing.map_or("unknown", |standing| short(&standing.commit.0));
    let given = match (&work.commit, &work.tree) {
        (Some(commit), _) if work.dirty => format!("{} with changes that no commit had", short(&commit.0)),
        (Some(commit), _) => short(&commit.0).to_owned(),
        (None, Some(tree)) => format!("the content {}", short(&tree.0)),
        (None, None) => "work that could not be read or was put elsewhere meanwhile".to_owned(),
    };
    refused(RefusalCode::StaleVerdict, &format!("{judged} {given}, and the work is now {now}"))
        .hint(format!("{}; `force=true` merges it as it is now", again(ledger)))
}

fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

fn to_done(ledger: &TaskPending<'_>, by: TaskAsker, evidence: &Evidence) -> Result<(EdgeId, StateId), Refusal> {
    let Some(done) = ledger.lifecycle.find(DONE) else {
        let why = format!("`{}` has no state `{DONE}`", ledger.lifecycle.name);
        return Err(refused(RefusalCode::NoTransition, &why));
    };
    moves::select(ledger, by, done, evidence).map(|edge| (edge, done))
}

/// Moves a merged task to its end. The merge is a fact, so nothing is refused any more.
pub(super) fn closed(ledger: &mut TaskPending<'_>, by: TaskAsker, push_failed: Option<&String>, evidence: &Evidence) {
    if let Some(reason) = push_failed {
        ledger.mark(TaskAttention::NotPushed(reason.clone()));
    }
    match to_done(ledger, by, evidence) {
        Ok((edge, done)) => moves::take(ledger, Some(edge), done, by, evidence),
        Err(refusal) => ledger.mark(TaskAttention::NotClosed(refusal.message)),
    }
}
