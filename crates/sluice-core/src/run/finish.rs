//! The end of a run, and what is done because of it.

use super::effect::{Effect, TimerKey};
use super::event::{Event, Failure};
use super::plan::Plan;
use super::record::Book;
use super::sketch::Sketch;
use super::state::{End, StepStatus};
use super::values::Locals;
use crate::recipe::{RunHook, StepId};

impl Sketch<'_> {
    /// Every step has ended, and so has the run.
    pub(super) fn finish(&mut self) {
        let failed =
            (0u32..).map(StepId).take(self.plan.recipe.steps.len()).find_map(|id| match &self.step(id).status {
                StepStatus::Failed(failure) if !matches!(failure, Failure::Upstream(_)) => {
                    Some(format!("`{}` failed: {}", self.name(id), failure.describe(self)))
                }
                _ => None,
            });
        self.ends(match failed {
            Some(error) => End::Failed { error },
            None => End::Completed { summary: String::new() },
        });
    }

    pub(super) fn ends(&mut self, end: End) {
        let recipe = &self.plan.recipe;
        let hooks = match &end {
            End::Completed { .. } => recipe.on_complete.as_slice(),
            End::Failed { .. } => recipe.on_fail.as_slice(),
            End::Cancelled { .. } => &[],
        };
        // One that failed waits for whoever looks after it; tried again and completed, it repeats.
        let repeats = matches!(end, End::Completed { .. });
        let at = self.now;
        if recipe.timeout.is_some() {
            self.wants(Effect::ClearTimer(TimerKey::Run));
        }
        self.happens(Event::Ended { end, at });
        for hook in hooks {
            let effect = self.run_hook(hook);
            self.wants(effect);
        }
        if let Some(repeat) = recipe.repeat.as_ref().filter(|_| repeats) {
            self.wants(Effect::Repeat { at: at.after(repeat.every) });
        }
    }

    fn run_hook(&self, hook: &RunHook) -> Effect {
        // Hooks read values as the last step would.
        let reader = StepId(u32::try_from(self.plan.recipe.steps.len().saturating_sub(1)).unwrap_or(0));
        let undone =
            |failure: Failure| Effect::Notify(format!("a hook of the run was not done: {}", failure.describe(self)));
        match hook {
            RunHook::Notify(text) => self.fill(text, reader, &Locals::default()).map_or_else(undone, Effect::Notify),
            RunHook::RunCommand(command) => self.script(command, reader).map_or_else(undone, Effect::RunCommand),
            RunHook::Start(recipe) => Effect::Start { recipe: recipe.clone() },
        }
    }
}

impl Failure {
    /// In words.
    pub(super) fn describe(&self, sketch: &Sketch<'_>) -> String {
        self.words(sketch.plan)
    }

    /// In words, with the names of this plan's steps.
    pub fn words(&self, plan: &Plan) -> String {
        match self {
            Failure::Attempt { error, .. } => error.clone(),
            Failure::Upstream(need) => format!("`{}` failed", plan.recipe.step(*need).name),
            Failure::Undefined(name) => format!("`{name}` is not defined"),
            Failure::LoopExhausted => "loop_exhausted: its loop has used up its turns".into(),
            Failure::Aborted => "a person gave it up".into(),
        }
    }
}
