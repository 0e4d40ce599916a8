//! The end of a run, and what is done because of it.

use std::time::Duration;

use super::effect::{RunEffect, TimerKey};
use super::event::{RunEvent, StepFailure};
use super::input::RunMode;
use super::law::StepStatusKind;
use super::pending::RunPending;
use super::plan::RunPlan;
use super::record::RunRecord;
use super::state::RunConclusion;
use super::values::Locals;
use crate::recipe::{RunHook, StepId};

/// How long the steps that always run may take after a run was cancelled or took too long.
pub(super) const LONGEST_ENDING: Duration = Duration::from_secs(600);

impl RunPending<'_> {
    /// Ends the run before its steps have ended. The steps that always run do so first, within [`LONGEST_ENDING`].
    pub(super) fn end_as(&mut self, end: RunConclusion) {
        let all = || self.plan.recipe.ids();
        let cleans_up = |id: &StepId| {
            let kind = self.kind(*id);
            self.plan.recipe.step(*id).always && kind != StepStatusKind::Held && !kind.has_ended()
        };
        if self.base.given.mode == RunMode::ByHand || self.ending.is_some() || !all().any(|id| cleans_up(&id)) {
            return self.ends_now(end);
        }
        let at = self.now;
        let others: Vec<StepId> = all().filter(|id| !cleans_up(id) && !self.kind(*id).has_ended()).collect();
        for id in &others {
            self.withdraw(*id, None);
            self.clear_timers(*id);
        }
        self.happens(RunEvent::Ending { end, at });
        others.into_iter().for_each(|id| self.stops(id, StepFailure::Aborted));
        self.wants(RunEffect::SetTimer(TimerKey::Run, at.after(LONGEST_ENDING)));
    }

    pub(super) fn ends_now(&mut self, end: RunConclusion) {
        for step in self.asking() {
            self.withdraw(step, None);
        }
        for (step, attempt, part) in self.base.under_way() {
            self.wants(RunEffect::Stop { step, attempt, part });
        }
        self.ends(end);
    }

    /// Every step has ended, and so has the run.
    pub(super) fn finish(&mut self) {
        if let Some(end) = self.ending.clone() {
            return self.ends(end);
        }
        let failed = self.plan.recipe.ids().find_map(|id| {
            let failure = self.step(id).status.own_failure()?;
            Some(format!("`{}` failed: {}", self.name(id), failure.words(self.plan)))
        });
        self.ends(match failed {
            Some(error) => RunConclusion::Failed { error },
            None => RunConclusion::Completed { summary: String::new() },
        });
    }

    pub(super) fn ends(&mut self, end: RunConclusion) {
        let recipe = &self.plan.recipe;
        // A turn that failed is no reason for the next to be left out; only a person ends a patrol.
        let (hooks, repeats, failed) = match &end {
            RunConclusion::Completed { .. } => (recipe.on_complete.as_slice(), true, None),
            RunConclusion::Failed { error } => (recipe.on_fail.as_slice(), true, Some(error.clone())),
            RunConclusion::Cancelled { .. } => (&[][..], false, None),
        };
        let at = self.now;
        if recipe.timeout.is_some() || self.ending.is_some() {
            self.wants(RunEffect::ClearTimer(TimerKey::Run));
        }
        if self.counts.open > 0 {
            recipe.ids().for_each(|id| self.clear_timers(id));
        }
        self.happens(RunEvent::Ended { end, at });
        for hook in hooks {
            let effect = self.run_hook(hook);
            self.wants(effect);
        }
        // What failed may be tried again, where it was.
        let given = &self.base.given;
        if failed.is_none() && !(given.origin.base.is_empty() && given.scratch.is_empty()) {
            self.wants(RunEffect::Release);
        }
        if let Some(repeat) = recipe.repeat.as_ref().filter(|_| repeats) {
            if let Some(error) = failed {
                self.wants(RunEffect::Notify(format!("a turn of the patrol `{}` failed: {error}", recipe.name)));
            }
            self.wants(RunEffect::Repeat { at: at.after(repeat.every) });
        }
    }

    fn run_hook(&self, hook: &RunHook) -> RunEffect {
        // Hooks read values as the last step would.
        let reader = StepId(u32::try_from(self.plan.recipe.steps.len().saturating_sub(1)).unwrap_or(0));
        let locals = Locals { workspace: Some(self.plan.recipe.workspace), ..Locals::default() };
        let undone = |failure: StepFailure| {
            RunEffect::Notify(format!("a hook of the run was not done: {}", failure.words(self.plan)))
        };
        match hook {
            RunHook::Notify(text) => self.fill(text, reader, &locals).map_or_else(undone, RunEffect::Notify),
            RunHook::RunCommand(command) => {
                self.script(command, reader, &locals).map_or_else(undone, RunEffect::RunCommand)
            }
            RunHook::Start(recipe) => RunEffect::Start { recipe: recipe.clone() },
        }
    }
}

impl StepFailure {
    /// In words, with the names of this plan's steps.
    pub fn words(&self, plan: &RunPlan) -> String {
        match self {
            StepFailure::Attempt { error, .. } => error.clone(),
            StepFailure::Upstream(need) => format!("`{}` failed", plan.recipe.step(*need).name),
            StepFailure::Undefined(name) => format!("`{name}` is not defined"),
            StepFailure::LoopExhausted => "loop_exhausted: its loop has used up its turns".into(),
            StepFailure::Aborted => "a person gave it up".into(),
        }
    }
}
