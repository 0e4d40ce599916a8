//! Checks a recipe. This file goes through the steps and makes the definition; the questions stand beside it:
//! [`order`] (who waits for whom), [`reach`] (who can run at all), [`scope`] (which values a text or condition can
//! read), [`cost`] (how many agents), [`workspace`] (where each works).

mod cost;
mod order;
mod reach;
mod scope;
mod workspace;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::{texts, too_many};
pub use crate::event_name::EVENTS;
use crate::expr::Expr;
use crate::findings::CheckFindings;
use crate::lifecycle::AgentPermissions;
use crate::name::{DefinitionName, InputName, RESERVED, Role, StepName, VariableName};
use crate::problem::{Code, Diagnosis, clip, closest};
use crate::recipe::draft;
pub use crate::recipe::draft::RecipeDraft;
use crate::recipe::{
    FanOutItems, Join, LoopBack, OnExhausted, Recipe, RecipeDialect, RecipeInput, Repeat, Retry, RunHook, Step,
    StepPrompt, StepWork, TaskWork, Trigger,
};
use crate::span::{FileId, SourceText, SpannedValue};
use crate::text::{PlaceholderSyntax, ShellCommand, Template, TextReading};
use order::RecipeOrder;
use scope::{RecipeScope, TextPlace};

/// How long a failed attempt waits before the next, unless the file says otherwise.
const BACKOFF: Duration = Duration::from_secs(1);
/// The most steps of one recipe.
pub const MOST_STEPS: usize = 10_000;
/// The most declared inputs of one recipe.
pub const MOST_INPUTS: usize = 1_000;

struct DialectWords {
    /// The key that lists the steps to wait for.
    needs: &'static str,
    /// The key that says whether a step runs: `condition` or `when`.
    condition: &'static str,
    /// The syntax in which prompts name a variable.
    prompts: PlaceholderSyntax,
}

impl DialectWords {
    fn of(dialect: RecipeDialect) -> Self {
        match dialect {
            RecipeDialect::Manifest => {
                DialectWords { needs: "depends_on", condition: "condition", prompts: PlaceholderSyntax::DoubleBraces }
            }
            RecipeDialect::Grimoire | RecipeDialect::Template => {
                DialectWords { needs: "needs", condition: "when", prompts: PlaceholderSyntax::Dollar }
            }
        }
    }
}

/// Checks `draft`, and adds what it finds to `findings`. Gives the definition, unless it has a hole.
pub fn check(draft: &RecipeDraft, findings: &mut CheckFindings) -> Option<Recipe> {
    let errors = findings.errors();
    let inputs = draft.inputs.as_deref().unwrap_or_default();
    let steps = too_many(draft.steps.len(), MOST_STEPS, "steps", |at| draft.steps[at].name.span, findings);
    if too_many(inputs.len(), MOST_INPUTS, "inputs", |at| inputs[at].name.span, findings) || steps {
        return None;
    }
    let words = DialectWords::of(draft.dialect);
    let inputs = draft.inputs.as_ref().map(|inputs| check_inputs(inputs, findings));
    let order = RecipeOrder::of(draft, words.needs, findings);
    let scope = RecipeScope::of(draft, &order);
    let files = BTreeMap::new();
    let definition = RecipeChecker { draft, words, scope, order: &order, files, findings }.definition(inputs)?;
    if findings.errors() == errors {
        reach::check(draft, &definition, findings);
        cost::check(draft, &definition, &order, findings);
    }
    (!findings.has_hole()).then_some(definition)
}

fn check_inputs(inputs: &[draft::InputDraft], findings: &mut CheckFindings) -> Vec<RecipeInput> {
    let mut known: BTreeMap<&str, &draft::InputDraft> = BTreeMap::new();
    for input in inputs {
        findings.identifier(&input.name, "an input");
        let first = *known.entry(&input.name.value).or_insert(input);
        if !std::ptr::eq(first, input) {
            let message = format!("two inputs are called `{}`", clip(&input.name.value));
            findings.add(
                Diagnosis::new(Code::DuplicateName, input.name.span, message).other(first.name.span, "the first one"),
            );
        }
        if let Some(default) = input.default.as_ref().filter(|default| !input.kind.admits(&default.value)) {
            let message = format!("the default of `{}` is not of type {}", clip(&input.name.value), input.kind.word());
            findings
                .add(Diagnosis::new(Code::BadDefault, default.span, message).help("change the default, or the `type`"));
        }
    }
    let made = |input: &draft::InputDraft| RecipeInput {
        name: InputName::new(input.name.value.as_str()),
        kind: input.kind,
        required: input.required.unwrap_or(input.default.is_none()),
        default: input.default.as_ref().map(|default| default.value.clone()),
    };
    inputs.iter().map(made).collect()
}

struct RecipeChecker<'a> {
    draft: &'a RecipeDraft,
    words: DialectWords,
    scope: RecipeScope<'a>,
    order: &'a RecipeOrder,
    /// The prompt files that were read already: a thousand steps may share one.
    files: BTreeMap<FileId, TextReading<Template>>,
    findings: &'a mut CheckFindings,
}

impl RecipeChecker<'_> {
    fn definition(&mut self, inputs: Option<Vec<RecipeInput>>) -> Option<Recipe> {
        let draft = self.draft;
        if let Some(name) = &draft.name {
            self.findings.definition_name(name, "a recipe");
        }
        let trigger = self.trigger();
        let mut steps: Vec<Option<Step>> = (0..draft.steps.len()).map(|index| self.step(index)).collect();
        if draft.dialect == RecipeDialect::Manifest {
            self.reviews_again(&mut steps);
        }
        let on_complete = draft.on_complete.iter().map(|hook| self.hook(hook)).collect();
        let on_fail = draft.on_fail.iter().map(|hook| self.hook(hook)).collect();
        let workspace = workspace::of_recipe(draft, self.findings);
        let steps = steps.into_iter().collect::<Option<Vec<Step>>>()?;
        Some(Recipe {
            name: DefinitionName::new(draft.name.as_ref()?.value.as_str()),
            description: draft.description.clone(),
            version: draft.version.clone(),
            dialect: draft.dialect,
            trigger: trigger?,
            inputs,
            workspace: workspace::of_run(workspace, &steps),
            steps,
            max_parallel: draft.max_parallel.unwrap_or(1),
            repeat: draft.repeat.map(|(every, keep)| Repeat { every, keep }),
            timeout: draft.timeout,
            on_complete,
            on_fail,
        })
    }

    fn trigger(&mut self) -> Option<Trigger> {
        let Some(trigger) = &self.draft.trigger else { return Some(Trigger::Manual) };
        let event = &trigger.event;
        if !EVENTS.contains(&event.value.as_str()) {
            let help = closest(&event.value, EVENTS).map(|close| format!("did you mean `{close}`?"));
            let message = format!("`{}` is not an event that is recorded", clip(&event.value));
            self.findings.add(Diagnosis::new(Code::UnknownEvent, event.span, message).maybe_help(help));
        }
        let filter = match &trigger.filter {
            Some(text) => Some(texts::expression(text, Code::BadCondition, "condition", self.findings)?),
            None => None,
        };
        Some(Trigger::Event { event: event.value.clone(), filter })
    }

    fn step(&mut self, index: usize) -> Option<Step> {
        let draft = self.draft;
        let step = &draft.steps[index];
        self.variable_name(&step.name, "a step");
        if let Some(output) = &step.output {
            self.variable_name(output, "an output");
        }
        if let Some(role) = &step.role {
            self.findings.identifier(role, "a role");
        }
        let condition = step.condition.as_ref().map(|text| self.condition(text, index));
        let loop_back = self.loop_back(step, condition.as_ref().and_then(Option::as_ref), index);
        let retry = self.retry(step, loop_back.is_some());
        let work = step.work.as_ref().map(|work| self.work(work, index));
        Some(Step {
            name: StepName::new(step.name.value.as_str()),
            title: step.title.clone(),
            role: Role::new(step.role.as_ref().map_or("any", |role| role.value.as_str())),
            needs: self.order.needs(index),
            condition: match condition {
                Some(condition) => Some(condition?),
                None => None,
            },
            work: work?,
            output: step.output.as_ref().map(|output| VariableName::new(output.value.as_str())),
            timeout: step.timeout,
            retry,
            loop_back,
            workspace: workspace::of_step(draft, step, self.findings),
            join: step.join.unwrap_or(Join::NoneFailed),
            always: step.always,
            harness: step.harness.clone(),
            permissions: step.permissions.unwrap_or(AgentPermissions::Full),
            acts_as_person: self.acts_as_person(step),
        })
    }

    /// Whether a command may do what a person may. Whoever reads the file should see it at once.
    fn acts_as_person(&mut self, step: &draft::StepDraft) -> bool {
        let Some(acts) = &step.acts_as_person else { return false };
        let message = format!("the command of `{}` may do all that a person may", clip(&step.name.value));
        let help =
            "answer questions, move and merge tasks, make tokens; anyone who can change what it runs can do that too";
        self.findings.add(Diagnosis::new(Code::ActsAsPerson, acts.span, message).help(help));
        true
    }

    /// Names that conditions and texts can read; some of them mean something else in every text.
    fn variable_name(&mut self, name: &SpannedValue<String>, what: &str) {
        if RESERVED.contains(&name.value.as_str()) {
            let message = format!("`{}` cannot be the name of {what}: it is a variable of its own", name.value);
            self.findings.add(Diagnosis::new(Code::BadName, name.span, message).help("choose another name"));
        } else {
            self.findings.identifier(name, what);
        }
    }

    fn condition(&mut self, text: &SourceText, index: usize) -> Option<Expr> {
        let expr = texts::expression(text, Code::BadCondition, "condition", self.findings)?;
        for compare in expr.comparisons() {
            self.scope.compared(compare, text.span, index, self.findings);
        }
        Some(expr)
    }

    /// An explicit loop, or the one that a manifest's `max_retries` on a failed review means.
    fn loop_back(&mut self, step: &draft::StepDraft, condition: Option<&Expr>, index: usize) -> Option<LoopBack> {
        if let Some(written) = &step.loop_back {
            return self.explicit_loop(step, written, index);
        }
        let max = step.max_retries.as_ref()?;
        let reviewed = condition?.failed_review()?;
        let to = self.scope.step(reviewed)?;
        let back = LoopBack { to, max: max.value, on_exhausted: OnExhausted::Fail };
        self.order.needs(index).contains(&back.to).then_some(back)
    }

    /// In a manifest whoever mends what a review found is reviewed again, once, without saying so: else nobody would
    /// know whether it is mended. Of several that follow a failed review, the first does.
    fn reviews_again(&self, steps: &mut [Option<Step>]) {
        for index in 0..steps.len() {
            let written = &self.draft.steps[index];
            let Some(step) = steps[index].as_ref().filter(|step| step.loop_back.is_none()) else { continue };
            let reviewed = step.condition.as_ref().and_then(Expr::failed_review).and_then(|name| self.scope.step(name));
            let Some(to) = reviewed.filter(|to| written.max_retries.is_none() && step.needs.contains(to)) else {
                continue;
            };
            let loops_there = |step: &Step| step.loop_back.as_ref().is_some_and(|back| back.to == to);
            if !steps.iter().flatten().any(loops_there) {
                let back = LoopBack { to, max: 1, on_exhausted: OnExhausted::Fail };
                steps[index].iter_mut().for_each(|step| step.loop_back = Some(back.clone()));
            }
        }
    }

    fn explicit_loop(
        &mut self,
        step: &draft::StepDraft,
        written: &draft::LoopBackDraft,
        index: usize,
    ) -> Option<LoopBack> {
        let target = &written.to;
        let name = clip(&target.value);
        let Some(to) = self.scope.step(&target.value) else {
            let help = self.findings.suggest(&target.value, self.scope.step_names());
            let message = format!("the loop leads to `{name}`, which is not a step");
            self.findings.hole(Diagnosis::new(Code::UnknownStep, target.span, message).maybe_help(help));
            return None;
        };
        if !self.order.is_upstream(to, index) {
            let own = clip(&step.name.value);
            let message = format!("the loop leads from `{own}` to `{name}`, which does not come before it");
            let help = format!("lead it to a step that `{own}` needs, directly or through others");
            self.findings.hole(Diagnosis::new(Code::BadLoop, target.span, message).help(help));
            return None;
        }
        let Some(max) = written.max else {
            self.findings.hole(
                Diagnosis::new(Code::UnboundedLoop, target.span, format!("this loop to `{name}` has no bound"))
                    .help("add `max_retries`, the number of times it may go back"),
            );
            return None;
        };
        Some(LoopBack { to, max, on_exhausted: written.on_exhausted })
    }

    fn retry(&mut self, step: &draft::StepDraft, loops: bool) -> Retry {
        let own = step.max_retries.as_ref().filter(|_| !loops && step.loop_back.is_none()).map_or(0, |max| max.value);
        match &step.retry {
            Some(retry) => Retry { max: retry.max, backoff: retry.backoff.unwrap_or(BACKOFF), on: retry.on.clone() },
            // Whoever writes `max_retries` says nothing of waiting: what is queued can be taken.
            None => Retry { max: own, backoff: Duration::ZERO, on: Vec::new() },
        }
    }

    fn work(&mut self, work: &draft::StepWorkDraft, index: usize) -> StepWork {
        match work {
            draft::StepWorkDraft::Agent { prompt } => {
                StepWork::Agent { prompt: self.prompt(prompt, index, TextPlace::Prompt) }
            }
            draft::StepWorkDraft::AgentLoop { prompt, arbiter, max_iterations, on_max } => StepWork::AgentLoop {
                prompt: self.prompt(prompt, index, TextPlace::LoopPrompt),
                arbiter: self.prompt(arbiter, index, TextPlace::ArbiterPrompt),
                max_iterations: *max_iterations,
                on_max: *on_max,
            },
            draft::StepWorkDraft::ParallelAgents { items, prompt, max_concurrent, on_failure } => {
                StepWork::ParallelAgents {
                    items: self.items(items, index),
                    prompt: self.prompt(prompt, index, TextPlace::FanOutPrompt),
                    max_concurrent: *max_concurrent,
                    on_failure: *on_failure,
                }
            }
            draft::StepWorkDraft::Script { command } => StepWork::Script { command: self.command(command, index) },
            draft::StepWorkDraft::Gate { command, message, unanswered } => StepWork::Gate {
                command: self.command(command, index),
                message: message.as_ref().map(|text| self.plain(text, index)),
                unanswered: *unanswered,
            },
            draft::StepWorkDraft::Task { summary, branch, workflow, project, context } => {
                StepWork::Task(Box::new(TaskWork {
                    summary: self.plain(summary, index),
                    branch: branch.as_ref().map(|text| self.plain(text, index)),
                    workflow: workflow.clone(),
                    project: project.clone(),
                    context: context.as_ref().map(|text| self.plain(text, index)),
                }))
            }
        }
    }

    fn prompt(&mut self, prompt: &draft::PromptDraft, index: usize, place: TextPlace) -> StepPrompt {
        let syntax = self.words.prompts;
        match prompt {
            draft::PromptDraft::Inline(text) => StepPrompt::Text(self.text(text, index, place, syntax)),
            draft::PromptDraft::File { path, found } => {
                let name = clip(&path.value);
                let problem = match found {
                    draft::PromptFileDraft::Read(text) => {
                        let content = Some(self.file(text, index, place, syntax));
                        return StepPrompt::File { path: path.value.clone(), content };
                    }
                    draft::PromptFileDraft::Missing(reason) => {
                        let message = format!("the prompt file `{name}` cannot be read: {reason}");
                        Diagnosis::new(Code::PromptFileMissing, path.span, message)
                            .note("a run that needs it is refused until it is there")
                    }
                    draft::PromptFileDraft::Outside(reason) => {
                        let message = format!("the prompt file `{name}` lies outside the prompts' root: {reason}");
                        Diagnosis::new(Code::PromptOutsideRoot, path.span, message)
                            .help("name a file below the root, without `..` and without a leading `/`")
                    }
                };
                self.findings.add(problem);
                StepPrompt::File { path: path.value.clone(), content: None }
            }
        }
    }

    /// A prompt file: read once, while its variables are looked up for each step that uses it.
    fn file(&mut self, text: &SourceText, index: usize, place: TextPlace, syntax: PlaceholderSyntax) -> Template {
        let reading = match self.files.entry(text.span.file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(texts::read_file(text, syntax, self.findings)),
        };
        for found in &reading.placeholders {
            let span = text.locate(found.at.clone());
            self.scope.written(syntax, found, span, index, place, self.findings);
        }
        reading.text.clone()
    }

    fn items(&mut self, items: &draft::ItemsDraft, index: usize) -> FanOutItems {
        match items {
            draft::ItemsDraft::Listed(list) => FanOutItems::Listed(list.clone()),
            draft::ItemsDraft::Text(text) => {
                let template = self.plain(text, index);
                if template.as_variable().is_none() {
                    let message = "`for_each` must be one variable that holds a list";
                    let help = "write `for_each: ${plan.output}`, or a list";
                    self.findings.add(Diagnosis::new(Code::BadPlaceholder, text.span, message).help(help));
                }
                FanOutItems::Variable(template)
            }
        }
    }

    fn text(&mut self, text: &SourceText, index: usize, place: TextPlace, syntax: PlaceholderSyntax) -> Template {
        let scope = &self.scope;
        texts::template(text, syntax, self.findings, |found, span, findings| {
            scope.written(syntax, found, span, index, place, findings);
        })
    }

    /// A text that is no prompt: `${…}` in every format.
    fn plain(&mut self, text: &SourceText, index: usize) -> Template {
        self.text(text, index, TextPlace::Prompt, PlaceholderSyntax::Dollar)
    }

    fn command(&mut self, text: &SourceText, index: usize) -> ShellCommand {
        let scope = &self.scope;
        texts::command(text, self.findings, |found, span, findings| {
            scope.variable(found, span, Some(index), TextPlace::Command, findings);
        })
    }

    fn hook(&mut self, hook: &draft::RunHookDraft) -> RunHook {
        let scope = &self.scope;
        match hook {
            draft::RunHookDraft::Notify(text) => {
                let syntax = PlaceholderSyntax::Dollar;
                RunHook::Notify(texts::template(text, syntax, self.findings, |found, span, findings| {
                    scope.variable(found, span, None, TextPlace::Prompt, findings);
                }))
            }
            draft::RunHookDraft::RunCommand(text) => {
                RunHook::RunCommand(texts::command(text, self.findings, |found, span, findings| {
                    scope.variable(found, span, None, TextPlace::Command, findings);
                }))
            }
            draft::RunHookDraft::Start(name) => RunHook::Start(name.clone()),
        }
    }
}
