//! Who waits for whom: needs that lead somewhere, no cycles, and what comes before what.

use std::collections::BTreeMap;

use super::super::arrows;
use super::super::graph::{self, Edges};
use crate::findings::CheckFindings;
use crate::problem::{Code, Diagnosis, clip, list};
use crate::recipe::draft::RecipeDraft;
use crate::recipe::{RecipeDialect, StepId};

pub(super) struct RecipeOrder {
    needs: Edges,
    /// For each step of a graph a row of bits: what comes before it, directly or through others. Kept for all, because
    /// conditions and variables ask often. Of a sequence nothing: there it is what stands before it in the file.
    before: Option<Vec<u64>>,
}

impl RecipeOrder {
    pub(super) fn of(draft: &RecipeDraft, key: &str, findings: &mut CheckFindings) -> Self {
        let ids = names(draft, findings);
        let sequence = draft.dialect == RecipeDialect::Grimoire && draft.steps.iter().all(|step| step.needs.is_none());
        if sequence {
            let needs = (0..draft.steps.len()).map(|index| index.checked_sub(1).into_iter().collect()).collect();
            return RecipeOrder { needs, before: None };
        }
        let (needs, order) = without_cycles(draft, resolve(draft, &ids, key, findings), key, findings);
        let before = Some(closure(&needs, &order));
        RecipeOrder { needs, before }
    }

    pub(super) fn needs(&self, step: usize) -> Vec<StepId> {
        self.needs[step].iter().filter_map(|index| u32::try_from(*index).ok().map(StepId)).collect()
    }

    pub(super) fn is_upstream(&self, earlier: StepId, later: usize) -> bool {
        let earlier = earlier.0 as usize;
        let Some(before) = &self.before else { return earlier < later };
        let words = self.needs.len().div_ceil(64);
        before[later * words + earlier / 64] >> (earlier % 64) & 1 == 1
    }
}

/// The steps by name; a name that stands twice is reported and means the first.
fn names<'a>(draft: &'a RecipeDraft, findings: &mut CheckFindings) -> BTreeMap<&'a str, usize> {
    let mut ids = BTreeMap::new();
    for (index, step) in draft.steps.iter().enumerate() {
        let first = *ids.entry(step.name.value.as_str()).or_insert(index);
        if first != index {
            let message = format!("two steps are called `{}`", clip(&step.name.value));
            findings.hole(
                Diagnosis::new(Code::DuplicateName, step.name.span, message)
                    .other(draft.steps[first].name.span, "the first one")
                    .help("give each step a name of its own"),
            );
        }
    }
    ids
}

fn resolve(draft: &RecipeDraft, ids: &BTreeMap<&str, usize>, key: &str, findings: &mut CheckFindings) -> Edges {
    let mut edges: Edges = Vec::with_capacity(draft.steps.len());
    for step in &draft.steps {
        let mut needs = Vec::new();
        for need in step.needs.iter().flatten() {
            match ids.get(need.value.as_str()) {
                Some(index) => needs.push(*index),
                None => {
                    let message = format!(
                        "`{}` of `{}` names `{}`, which is not a step",
                        key,
                        clip(&step.name.value),
                        clip(&need.value)
                    );
                    findings.hole(
                        Diagnosis::new(Code::UnknownStep, need.span, message)
                            .maybe_help(findings.suggest(&need.value, ids.keys().copied())),
                    );
                }
            }
        }
        needs.sort_unstable();
        needs.dedup();
        edges.push(needs);
    }
    edges
}

/// Reports each cycle once, with the shortest way round, and takes its edges out. Gives the steps in an order in
/// which each comes after its needs.
fn without_cycles(draft: &RecipeDraft, needs: Edges, key: &str, findings: &mut CheckFindings) -> (Edges, Vec<usize>) {
    let component = graph::components(&needs);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (step, component) in component.iter().enumerate() {
        members.entry(*component).or_default().push(step);
    }
    for steps in members.values() {
        let first = steps[0];
        if steps.len() > 1 || needs[first].contains(&first) {
            report_cycle(draft, &needs, &component, first, key, findings);
        }
    }
    let inside = |from: usize, to: &usize| component[from] == component[*to];
    let cut: Edges = needs
        .iter()
        .enumerate()
        .map(|(from, targets)| targets.iter().copied().filter(|to| !inside(from, to)).collect())
        .collect();
    // Components are numbered against the edges, and an edge leads to what is needed: needs come first.
    (cut, members.into_values().flatten().collect())
}

/// A cycle of more steps than this is only counted.
const MOST_LISTED: usize = 8;

fn report_cycle(
    draft: &RecipeDraft,
    needs: &Edges,
    component: &[usize],
    first: usize,
    key: &str,
    findings: &mut CheckFindings,
) {
    let inside = |node: usize| component[node] == component[first];
    let round = graph::round(needs, first, inside).unwrap_or_default();
    let name = |index: &usize| draft.steps[*index].name.value.as_str();
    let way: Vec<&str> = std::iter::once(&first).chain(&round).map(name).collect();
    let next = round.first().map_or(first, |next| *next);
    let span = draft.steps[first]
        .needs
        .iter()
        .flatten()
        .find(|need| need.value == name(&next))
        .map_or(draft.steps[first].name.span, |need| need.span);
    let message = match round.len() {
        0 | 1 => format!("`{}` waits for itself", clip(name(&first))),
        2..=MOST_LISTED => format!("{} wait for each other", list(&way[..way.len() - 1], "and")),
        count => format!("{count} steps wait for each other, one of them `{}`", clip(name(&first))),
    };
    findings.hole(
        Diagnosis::new(Code::Cycle, span, message)
            .note(format!("{}, where `→` reads \"waits for\"", arrows(&way)))
            .help(format!("take one of them out of `{key}`; a way back is a loop with a bound, not a need")),
    );
}

/// For each step, everything before it.
fn closure(needs: &Edges, order: &[usize]) -> Vec<u64> {
    let words = needs.len().div_ceil(64);
    let mut bits = vec![0u64; words * needs.len()];
    for &step in order {
        for &need in &needs[step] {
            bits[step * words + need / 64] |= 1 << (need % 64);
            for word in 0..words {
                bits[step * words + word] |= bits[need * words + word];
            }
        }
    }
    bits
}
