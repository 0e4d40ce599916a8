//! Guards against each other: clauses that overlap, clauses that leave a gap, verdicts that nobody takes.
//!
//! All of it is decided over all whole numbers, and shown with values.

use std::collections::BTreeMap;

use super::exits::ResolvedReaction;
use super::shape::StatePaths;
use super::{ResolvedLifecycle, ResolvedTransition};
use crate::artifact::Verdict;
use crate::expr::Expr;
use crate::expr::decide::{Decider, ExprTooComplex, ValueDomain, Witness, show};
use crate::findings::CheckFindings;
use crate::lifecycle::StateId;
use crate::lifecycle::draft::{self, LifecycleDraft};
use crate::problem::{Code, Diagnosis};
use crate::span::{SourceText, Span};

/// The most clauses of one choice that are compared with each other.
const MOST_CLAUSES: usize = 64;

pub(super) fn check(
    draft: &LifecycleDraft,
    resolved: &ResolvedLifecycle,
    ways: &StatePaths<'_>,
    findings: &mut CheckFindings,
) {
    let written: Vec<(&draft::TransitionDraft, &ResolvedTransition)> =
        draft.transitions.iter().zip(&resolved.transitions).collect();
    let mut asker = GuardChecker { decider: Decider::new(ValueDomain::Integers), findings };
    for (transition, found) in &written {
        if let (Some(text), Some(Some(guard))) = (&transition.when, &found.guard) {
            asker.can_hold(text, guard);
        }
    }
    overlapping_transitions(&written, &mut asker);
    for (rule, found) in draft.rules.iter().zip(&resolved.rules) {
        if let (draft::ReactionDraft::ThenWhen(clauses), ResolvedReaction::Choose(guards)) =
            (&rule.reaction, &found.reaction)
        {
            then_when(clauses.span, &clauses.value, guards, &mut asker);
        }
    }
    verdicts(draft, &written, ways, &mut asker);
}

/// Asks about guards, and reports.
struct GuardChecker<'a> {
    decider: Decider,
    findings: &'a mut CheckFindings,
}

impl GuardChecker<'_> {
    /// Asks for a witness. The first question that is too hard is reported, at `span`; the rest is not asked.
    fn ask(&mut self, all: &[&Expr], none: &[&Expr], span: Span) -> Result<Option<Witness>, ExprTooComplex> {
        let answer = self.decider.witness(all, none);
        if answer.is_err() && self.decider.refused_first() {
            self.findings.add(
                Diagnosis::new(Code::BadGuard, span, "these guards are too entangled to be compared with each other")
                    .note("because of it no guard of the file was judged any further")
                    .help("use fewer fields in them, or fewer `||`"),
            );
        }
        answer
    }

    /// Values that show that something is wrong, if they were found.
    fn shown(&mut self, all: &[&Expr], none: &[&Expr], span: Span) -> Option<Witness> {
        self.ask(all, none, span).ok().flatten()
    }

    fn can_hold(&mut self, text: &SourceText, guard: &Expr) {
        if self.ask(&[guard], &[], text.span) == Ok(None) {
            self.findings.add(
                Diagnosis::new(Code::NeverHolds, text.span, "this guard can never hold")
                    .note("no whole numbers satisfy it, so the transition is never taken"),
            );
        }
    }
}

/// One clause of a choice: where it stands, and its guard, if it has one.
struct GuardClause<'a> {
    span: Span,
    guard: Option<&'a Expr>,
}

fn overlapping_transitions(written: &[(&draft::TransitionDraft, &ResolvedTransition)], asker: &mut GuardChecker<'_>) {
    let mut pairs: BTreeMap<(StateId, StateId), Vec<GuardClause<'_>>> = BTreeMap::new();
    for (transition, found) in written {
        let (Some(from), Some(to)) = (found.from, found.to) else { continue };
        let guard = match &found.guard {
            None => None,
            Some(Some(guard)) => Some(guard),
            Some(None) => continue, // cannot be read, and has been reported
        };
        pairs.entry((from, to)).or_default().push(GuardClause { span: transition.clause_span(), guard });
    }
    for clauses in pairs.values() {
        overlap(clauses, "transitions between the same two states", asker);
    }
}

/// Reports each clause that can hold together with an earlier one.
fn overlap(clauses: &[GuardClause<'_>], what: &str, asker: &mut GuardChecker<'_>) {
    if clauses.len() > MOST_CLAUSES {
        let message = format!("more than {MOST_CLAUSES} {what}");
        asker.findings.add(Diagnosis::new(Code::TooMuchStructure, clauses[MOST_CLAUSES].span, message));
        return;
    }
    for (index, later) in clauses.iter().enumerate() {
        let first = clauses[..index].iter().find_map(|earlier| {
            let guards: Vec<&Expr> = earlier.guard.into_iter().chain(later.guard).collect();
            asker.shown(&guards, &[], later.span).map(|found| (earlier, found))
        });
        let Some((earlier, found)) = first else { continue };
        let message = match (earlier.guard, later.guard) {
            (None, None) => format!("two {what}, and no guard tells them apart"),
            _ => format!("two {what} overlap: both hold at {}", show(&found)),
        };
        asker.findings.add(
            Diagnosis::new(Code::Overlap, later.span, message)
                .other(earlier.span, "holds there too")
                .help("make the guards exclude each other, so that exactly one holds"),
        );
    }
}

fn then_when(
    key: Span,
    clauses: &[draft::ClauseDraft],
    guards: &[(Option<Expr>, Option<StateId>)],
    asker: &mut GuardChecker<'_>,
) {
    let read: Option<Vec<&Expr>> = guards.iter().map(|(guard, _)| guard.as_ref()).collect();
    let Some(read) = read else { return };
    let spans = clauses.iter().map(|clause| clause.when.span);
    let clauses: Vec<GuardClause<'_>> =
        spans.zip(&read).map(|(span, guard)| GuardClause { span, guard: Some(*guard) }).collect();
    overlap(&clauses, "clauses of this rule", asker);
    if clauses.len() > MOST_CLAUSES {
        return;
    }
    if let Some(found) = asker.shown(&[], &read, key) {
        asker.findings.add(
            Diagnosis::new(Code::Gap, key, format!("no clause of `then_when` holds at {}", show(&found)))
                .note("exactly one clause must hold for every whole number, negative ones too")
                .help("widen a clause, or add one for the rest"),
        );
    }
}

#[derive(Default)]
struct VerdictTransitions<'a> {
    /// Where the first gate for it stands.
    gate: Option<Span>,
    clauses: Vec<(Span, Option<&'a Expr>)>,
    unread: bool,
}

fn verdicts(
    draft: &LifecycleDraft,
    written: &[(&draft::TransitionDraft, &ResolvedTransition)],
    ways: &StatePaths<'_>,
    asker: &mut GuardChecker<'_>,
) {
    let mut taken: BTreeMap<(StateId, &str), BTreeMap<Verdict, VerdictTransitions<'_>>> = BTreeMap::new();
    for (transition, found) in written {
        let (Some(from), Some(gate), Some(written)) = (found.from, &found.gate, &transition.gate) else { continue };
        let Some(verdict) = &written.verdict else { continue };
        let entry = taken.entry((from, &gate.title)).or_default().entry(verdict.value).or_default();
        entry.gate.get_or_insert(verdict.span);
        match &found.guard {
            Some(None) => entry.unread = true,
            Some(Some(guard)) => entry.clauses.push((transition.clause_span(), Some(guard))),
            None => entry.clauses.push((transition.clause_span(), None)),
        }
    }
    for ((state, title), verdicts) in &taken {
        let index = state.0 as usize;
        let section = VerdictSection { state: &draft.states[index].name.value, title, index, ways };
        for (verdict, other) in [(Verdict::Pass, Verdict::Fail), (Verdict::Fail, Verdict::Pass)] {
            match (verdicts.get(&verdict), verdicts.get(&other)) {
                (Some(entry), None) => section.not_taken(entry, other, asker.findings),
                (Some(entry), Some(_)) => section.gap(entry, verdict, asker),
                (None, _) => {}
            }
        }
    }
}

struct VerdictSection<'a> {
    state: &'a str,
    title: &'a str,
    index: usize,
    ways: &'a StatePaths<'a>,
}

impl VerdictSection<'_> {
    fn not_taken(&self, entry: &VerdictTransitions<'_>, missing: Verdict, findings: &mut CheckFindings) {
        let Some(span) = entry.gate else { return };
        let (missing, state) = (missing.word(), self.state);
        let message = format!("no transition leaves `{state}` when `## {}` says {missing}", self.title);
        findings.add(
            Diagnosis::new(Code::VerdictNotTaken, span, message)
                .maybe_note(self.ways.to(self.index))
                .note(format!("with the verdict {missing} it can only be moved on by hand"))
                .help(format!("add a transition from `{state}` with `verdict: {missing}`")),
        );
    }

    fn gap(&self, entry: &VerdictTransitions<'_>, verdict: Verdict, asker: &mut GuardChecker<'_>) {
        let guards: Option<Vec<&Expr>> = entry.clauses.iter().map(|(_, guard)| *guard).collect();
        let (Some(guards), Some((span, _))) = (guards, entry.clauses.last()) else { return };
        if entry.unread || guards.len() > MOST_CLAUSES {
            return;
        }
        if let Some(found) = asker.shown(&[], &guards, *span) {
            let (verdict, values, state) = (verdict.word(), show(&found), self.state);
            let message = format!("no transition leaves `{state}` when `## {}` says {verdict} at {values}", self.title);
            asker.findings.add(
                Diagnosis::new(Code::VerdictGap, *span, message)
                    .maybe_note(self.ways.to(self.index))
                    .help("widen a guard, or add a transition for the rest"),
            );
        }
    }
}
