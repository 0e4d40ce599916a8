//! The rules about agents whose process has ended: their names, and rules that can never fire.

use std::collections::{BTreeMap, BTreeSet};

use super::LifecycleNames;
use crate::expr::Expr;
use crate::findings::CheckFindings;
use crate::lifecycle::draft::{self, LifecycleDraft};
use crate::lifecycle::{ArtifactTest, ExitReaction, ExitRule, Lifecycle, STUCK, StateId};
use crate::problem::{Code, Diagnosis};

pub(super) struct ResolvedRule {
    state: Option<StateId>,
    artifact: ArtifactTest,
    pub(super) reaction: ResolvedReaction,
}

/// What a rule leads to; what could not be found or read is `None`.
pub(super) enum ResolvedReaction {
    Advance(Option<StateId>),
    Choose(Vec<(Option<Expr>, Option<StateId>)>),
    Other(ExitReaction),
}

pub(super) fn resolve(
    rule: &draft::ExitRuleDraft,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> ResolvedRule {
    let state = names.state(&rule.status, Code::UnknownRuleState, "the rule watches", findings);
    let advance = |target, findings: &mut CheckFindings| {
        names.state(target, Code::UnknownRuleTarget, "the rule advances to", findings)
    };
    let reaction = match &rule.reaction {
        draft::ReactionDraft::Then(target) => ResolvedReaction::Advance(advance(target, findings)),
        draft::ReactionDraft::ThenWhen(clauses) => ResolvedReaction::Choose(
            clauses
                .value
                .iter()
                .map(|clause| (names.guard(&clause.when, findings), advance(&clause.then, findings)))
                .collect(),
        ),
        draft::ReactionDraft::Crash { stuck_after, respawn } => {
            if let Some(limit) = stuck_after.as_ref().filter(|_| !names.states.contains_key(STUCK)) {
                let times = super::super::count(u64::from(limit.value), "crash").replace("crashs", "crashes");
                findings.add(
                    Diagnosis::new(Code::NoStuckState, limit.span, "`stuck_after` without a state `stuck`")
                        .note(format!("after {times} the task stays where it is and is marked for attention"))
                        .help("add a state `stuck`, or remove `stuck_after`"),
                );
            }
            let stuck_after = stuck_after.as_ref().map(|limit| limit.value);
            ResolvedReaction::Other(ExitReaction::Crash { stuck_after, respawn: *respawn })
        }
        draft::ReactionDraft::MarkDead => ResolvedReaction::Other(ExitReaction::MarkDead),
    };
    let artifact = match (&rule.has_artifact, rule.no_artifact) {
        (Some(gate), _) => ArtifactTest::Present(super::resolve_gate(gate, findings)),
        (None, Some(_)) => ArtifactTest::Missing,
        (None, None) => ArtifactTest::Any,
    };
    ResolvedRule { state, artifact, reaction }
}

impl ResolvedRule {
    pub(super) fn finish(self) -> Option<ExitRule> {
        let reaction = match self.reaction {
            ResolvedReaction::Advance(target) => ExitReaction::Advance(target?),
            ResolvedReaction::Choose(clauses) => {
                let clause = |(guard, target): (Option<Expr>, Option<StateId>)| Some((guard?, target?));
                ExitReaction::Choose(clauses.into_iter().map(clause).collect::<Option<_>>()?)
            }
            ResolvedReaction::Other(reaction) => reaction,
        };
        Some(ExitRule { state: self.state?, artifact: self.artifact, reaction })
    }
}

/// Rules that can never fire, and targets that no transition leads to.
pub(super) fn check(draft: &LifecycleDraft, lifecycle: &Lifecycle, findings: &mut CheckFindings) {
    let moves: BTreeSet<(StateId, StateId)> = lifecycle.transitions.iter().map(|edge| (edge.from, edge.to)).collect();
    let mut earlier = EarlierRules::of(lifecycle);
    for (index, (rule, written)) in lifecycle.exits.rules.iter().zip(&draft.rules).enumerate() {
        if let Some(reason) = earlier.why_dead(lifecycle, index) {
            let message = format!("this rule can never fire: {reason}");
            findings.add(Diagnosis::new(Code::DeadRule, written.status.span, message));
        }
        let targets: Vec<_> = match (&rule.reaction, &written.reaction) {
            (ExitReaction::Advance(to), draft::ReactionDraft::Then(target)) => vec![(*to, target)],
            (ExitReaction::Choose(clauses), draft::ReactionDraft::ThenWhen(written)) => {
                clauses.iter().map(|(_, to)| *to).zip(written.value.iter().map(|clause| &clause.then)).collect()
            }
            _ => Vec::new(),
        };
        for (to, target) in targets.into_iter().filter(|(to, _)| !moves.contains(&(rule.state, *to))) {
            let (from, to) = (lifecycle.state_name(rule.state), lifecycle.state_name(to));
            let why = "a rule moves the task along a transition, with its gate and hooks; without one it is refused";
            findings.add(
                Diagnosis::new(Code::NoSuchMove, target.span, format!("no transition leads from `{from}` to `{to}`"))
                    .note(why)
                    .help(format!("add a transition from `{from}` to `{to}`, or advance to another state")),
            );
        }
    }
}

/// What the rules before the one that is looked at ask, state by state.
struct EarlierRules<'a> {
    asked: BTreeMap<StateId, BTreeSet<&'a ArtifactTest>>,
    /// The last rule of each state that asks for an artifact.
    last_present: BTreeMap<StateId, usize>,
}

impl<'a> EarlierRules<'a> {
    fn of(lifecycle: &Lifecycle) -> Self {
        let rules = lifecycle.exits.rules.iter().enumerate();
        let present = rules.filter(|(_, rule)| matches!(rule.artifact, ArtifactTest::Present(_)));
        EarlierRules {
            asked: BTreeMap::new(),
            last_present: present.map(|(index, rule)| (rule.state, index)).collect(),
        }
    }

    /// Why the rule at `index`, the next one, never fires, if so.
    fn why_dead(&mut self, lifecycle: &'a Lifecycle, index: usize) -> Option<String> {
        let rule = &lifecycle.exits.rules[index];
        let name = lifecycle.state_name(rule.state);
        let asked = self.asked.entry(rule.state).or_default();
        let has = |test: &ArtifactTest| asked.contains(test);
        let (any, missing, same) = (has(&ArtifactTest::Any), has(&ArtifactTest::Missing), has(&rule.artifact));
        asked.insert(&rule.artifact);
        if lifecycle.state(rule.state).terminal {
            return Some(format!("`{name}` is terminal, so no agent is watched there"));
        }
        if any {
            return Some(format!("an earlier rule for `{name}` always matches"));
        }
        if same {
            return Some(format!("an earlier rule for `{name}` asks the same of the artifact"));
        }
        let all_present_before = self.last_present.get(&rule.state).is_none_or(|last| *last < index);
        (rule.artifact == ArtifactTest::Any && missing && all_present_before)
            .then(|| format!("earlier rules for `{name}` cover both cases, with and without the artifact"))
    }
}
