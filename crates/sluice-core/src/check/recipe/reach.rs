//! Which steps can never run, whatever the others give.

use super::{DialectWords, RecipeDraft};
use crate::expr::Expr;
use crate::expr::decide::{Decider, ExprTooComplex, ValueDomain};
use crate::findings::CheckFindings;
use crate::name::StepName;
use crate::problem::{Code, Diagnosis};
use crate::recipe::{Join, Recipe, StepId};
use crate::span::Span;

/// Steps whose condition, with those of the steps that must have completed, can never hold.
pub(super) fn check(draft: &RecipeDraft, recipe: &Recipe, findings: &mut CheckFindings) {
    let words = DialectWords::of(draft.dialect);
    let mut decider = Decider::new(ValueDomain::Anything);
    for (step, written) in recipe.steps.iter().zip(&draft.steps) {
        let needed: &[StepId] = match step.join {
            Join::AllCompleted => &step.needs,
            Join::NoneFailed | Join::AnyCompleted => &[],
        };
        let others = needed.iter().filter_map(|need| recipe.step(*need).condition.as_ref());
        let all: Vec<&Expr> = step.condition.iter().chain(others).collect();
        if all.is_empty() {
            continue;
        }
        let span = written.condition.as_ref().map_or(written.name.span, |text| text.span);
        match decider.witness(&all, &[]) {
            Ok(None) => {}
            Ok(Some(_)) => continue,
            Err(ExprTooComplex) => return findings.add(undecided(&step.name, words.condition, span)),
        }
        let why = match all.len() {
            1 => format!("no values satisfy its `{}`", words.condition),
            _ => format!(
                "no values satisfy its `{}` and those of the steps it needs, all of which must complete",
                words.condition
            ),
        };
        findings.add(
            Diagnosis::new(Code::UnreachableStep, span, format!("the step `{}` can never run", step.name)).note(why),
        );
    }
}

fn undecided(step: &StepName, condition: &str, span: Span) -> Diagnosis {
    let message = format!("whether the step `{step}` can ever run was not decided: its `{condition}` is too entangled");
    Diagnosis::new(Code::Undecided, span, message)
        .note(format!("because of it no `{condition}` of the steps after it was judged"))
}
