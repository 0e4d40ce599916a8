//! What agents have used up, added up. What is not known is counted, and is not zero.

use std::collections::BTreeMap;

use sluice_api::usage::{USAGE_ATTEMPTS, UsageAttempt, UsageBy, UsageShown, UsageSum};
use sluice_core::recipe::StepId;
use sluice_core::run::{AgentUsage, RunParameters, RunPlan};
use sluice_worker::value::dollars;

use crate::read::attempts::{AttemptLog, AttemptSeen, is_of_agent, item, turn};
use crate::read::runs::RunSnapshot;
use crate::read::view_run;
use crate::settings::clock::written;

/// What several attempts have used up together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageTally {
    attempts: u64,
    tokens_told: u64,
    costs_told: u64,
    usage: AgentUsage,
}

impl UsageTally {
    /// An agent has begun.
    pub(crate) fn begin(&mut self) {
        self.attempts += 1;
    }

    /// An agent has used this up.
    pub(crate) fn take(&mut self, used: &AgentUsage) {
        let AgentUsage { input, cached, output, total, cost } = *used;
        let tells = [input, output, total].iter().any(Option::is_some);
        self.tokens_told += u64::from(tells);
        self.costs_told += u64::from(cost.is_some());
        add(&mut self.usage, &AgentUsage { input, cached, output, total, cost });
    }

    pub(crate) fn add(&mut self, other: &UsageTally) {
        self.attempts += other.attempts;
        self.tokens_told += other.tokens_told;
        self.costs_told += other.costs_told;
        add(&mut self.usage, &other.usage);
    }

    /// What it cost, in millionths of a dollar, and how many tokens it took: by this costs are ordered.
    pub(crate) fn weight(&self) -> (u64, u64) {
        (self.usage.cost.unwrap_or(0), self.usage.total.unwrap_or(0))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == UsageTally::default()
    }

    pub(crate) fn shown(&self) -> UsageSum {
        let AgentUsage { input, cached, output, total, cost } = self.usage;
        UsageSum {
            attempts: self.attempts.max(self.tokens_told).max(self.costs_told),
            input_tokens: input,
            cached_tokens: cached,
            output_tokens: output,
            total_tokens: total,
            cost_usd: cost.map(dollars),
            without_tokens: self.attempts.saturating_sub(self.tokens_told),
            without_cost: self.attempts.saturating_sub(self.costs_told),
        }
    }
}

fn add(sum: &mut AgentUsage, other: &AgentUsage) {
    let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
    *sum = AgentUsage {
        input: both(sum.input, other.input),
        cached: both(sum.cached, other.cached),
        output: both(sum.output, other.output),
        total: both(sum.total, other.total),
        cost: both(sum.cost, other.cost),
    };
}

/// The agent program of a step, as far as the run itself says; else the one that the home uses.
pub(crate) fn harness(plan: &RunPlan, given: &RunParameters, step: StepId, usual: &str) -> String {
    let named = plan.recipe.step(step).harness.clone();
    named.or_else(|| view_run::unless_empty(&given.origin.harness)).unwrap_or_else(|| usual.to_owned())
}

/// What agents of one task or run have used up, attempt by attempt.
#[derive(Debug, Default)]
pub(crate) struct UsageTable {
    attempts: Vec<UsageAttempt>,
    by: BTreeMap<Option<String>, UsageTally>,
    dropped: usize,
}

impl UsageTable {
    /// Adds the attempts of a run.
    pub(crate) fn take_run(&mut self, seen: &RunSnapshot, log: &AttemptLog, usual: &str) {
        self.dropped += log.dropped;
        for it in log.all().filter(|it| is_of_agent(&seen.plan, it.step, it.part)) {
            let AttemptSeen { step, part, attempt, began, ended, usage, .. } = it;
            self.take(
                UsageAttempt {
                    run: Some(seen.id.to_string()),
                    step: seen.plan.recipe.step(*step).name.to_string(),
                    attempt: *attempt,
                    item: item(*part),
                    turn: turn(*part),
                    harness: Some(harness(&seen.plan, &seen.state.given, *step, usual)),
                    model: None,
                    usage: usage.as_ref().map(view_run::usage),
                    started_at: Some(written(*began)),
                    finished_at: ended.map(written),
                },
                usage.as_ref(),
            );
        }
    }

    /// Adds an attempt, with what is known of what it has used up.
    pub(crate) fn take(&mut self, attempt: UsageAttempt, used: Option<&AgentUsage>) {
        let tally = self.by.entry(attempt.harness.clone()).or_default();
        tally.begin();
        used.into_iter().for_each(|used| tally.take(used));
        self.attempts.push(attempt);
    }

    pub(crate) fn shown(mut self) -> UsageShown {
        self.attempts.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        let excess = self.attempts.len().saturating_sub(USAGE_ATTEMPTS);
        self.attempts.drain(..excess);
        let mut total = UsageTally::default();
        self.by.values().for_each(|tally| total.add(tally));
        let by = |(harness, tally): (&Option<String>, &UsageTally)| UsageBy {
            harness: harness.clone(),
            model: None,
            sum: tally.shown(),
        };
        let mut notes = Vec::new();
        if self.dropped > 0 {
            notes.push(format!("{} older attempts are not counted: the log is read from its newer end", self.dropped));
        }
        if excess > 0 {
            notes.push(format!("{excess} older attempts are counted, and are not listed"));
        }
        UsageShown { total: total.shown(), by: self.by.iter().map(by).collect(), attempts: self.attempts, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_not_zero() {
        let mut tally = UsageTally::default();
        (0..3).for_each(|_| tally.begin());
        assert_eq!((tally.shown().cost_usd, tally.shown().without_cost), (None, 3));
        tally.take(&AgentUsage { input: Some(5), total: Some(7), cost: Some(1_500_000), ..AgentUsage::default() });
        tally.take(&AgentUsage { total: Some(3), ..AgentUsage::default() });
        let sum = tally.shown();
        assert_eq!((sum.attempts, sum.total_tokens, sum.output_tokens, sum.cost_usd), (3, Some(10), None, Some(1.5)));
        assert_eq!((sum.without_tokens, sum.without_cost), (1, 2));
    }
}
