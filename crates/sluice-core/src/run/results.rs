//! The words that a step's result can be: those that conditions compare it with.
//!
//! A result in another spelling is the word that is meant, where only one can be. One that no condition knows would make
//! every condition false, and leave out what should have followed without a word: so it fails its step.

use std::collections::BTreeMap;

use super::event::StepOutcome;
use super::plan::RunPlan;
use crate::expr::{CompareOp, Expr, ExprValue};
use crate::recipe::{Recipe, RecipeDialect, StepId};

/// The two words of a verdict: whoever names one of them means that there is the other.
const VERDICT: [&str; 2] = ["FAIL", "PASS"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultWords {
    words: Vec<String>,
    /// Whether another word means something too: a condition says what it is not.
    any_other: bool,
}

/// For each step, the words that its result can be.
pub(super) fn results(recipe: &Recipe, by_name: &BTreeMap<String, StepId>) -> Vec<ResultWords> {
    let mut found = vec![ResultWords::default(); recipe.steps.len()];
    for condition in recipe.steps.iter().filter_map(|step| step.condition.as_ref()) {
        gather(condition, false, by_name, &mut found);
    }
    for results in found.iter_mut().filter(|results| !results.words.is_empty()) {
        let is_verdict = |word: &String| VERDICT.contains(&word.as_str());
        if results.words.iter().any(is_verdict) {
            results.words.extend(VERDICT.map(str::to_owned));
        }
        results.words.sort_unstable();
        results.words.dedup();
        // Other words than a verdict's are few only in a manifest, whose steps are all that there is to its results.
        let is_closed = results.words.iter().all(is_verdict);
        results.any_other = !is_closed && (results.any_other || recipe.dialect != RecipeDialect::Manifest);
    }
    found
}

fn gather(condition: &Expr, negated: bool, by_name: &BTreeMap<String, StepId>, found: &mut [ResultWords]) {
    match condition {
        Expr::Not(inner) => gather(inner, !negated, by_name, found),
        Expr::All(parts) | Expr::Any(parts) => parts.iter().for_each(|part| gather(part, negated, by_name, found)),
        Expr::Compare(compare) => {
            let step = by_name.get(compare.path.head()).filter(|_| compare.path.tail() == ["result"]);
            if let (Some(step), ExprValue::Text(word)) = (step, &compare.value) {
                let results = &mut found[step.0 as usize];
                results.words.push(word.clone());
                results.any_other |= (compare.op == CompareOp::NotEqual) != negated;
            }
        }
    }
}

impl ResultWords {
    pub(super) fn takes(&self, word: &str) -> bool {
        self.any_other || self.words.is_empty() || self.words.iter().any(|known| known == word)
    }

    pub(super) fn known(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    }

    /// The word that is meant: without its outer blanks and in any case, if only one can be.
    fn meant(&self, said: &str) -> Option<&String> {
        let mut alike = self.words.iter().filter(|word| word.trim().to_lowercase() == said.trim().to_lowercase());
        match self.words.iter().find(|word| *word == said) {
            Some(exact) => Some(exact),
            None => alike.next().filter(|_| alike.next().is_none()),
        }
    }
}

impl RunPlan {
    /// What a step gave, with its result in the spelling that conditions know.
    pub(super) fn heard(&self, id: StepId, outcome: &StepOutcome) -> StepOutcome {
        let said = outcome.result.as_deref();
        let meant = said.and_then(|said| self.results[id.0 as usize].meant(said)).cloned();
        StepOutcome { result: meant.or_else(|| outcome.result.clone()), ..outcome.clone() }
    }
}
