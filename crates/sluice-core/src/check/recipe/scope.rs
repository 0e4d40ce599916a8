//! Which values a text or a condition can read, and where they come from.

use std::collections::{BTreeMap, BTreeSet};

use super::order::RecipeOrder;
use crate::expr::{Comparison, ExprValue, ValuePath};
use crate::findings::CheckFindings;
use crate::problem::{Code, Diagnosis, clip, list, suggest};
use crate::recipe::StepId;
use crate::recipe::draft::{InputDraft, RecipeDraft, StepWorkDraft};
use crate::span::Span;
use crate::text::{Placeholder, PlaceholderSyntax};

/// What a prompt of a manifest can show.
const MISSION_VARIABLES: [&str; 3] = ["mission_prompt", "context", "worktree_path"];
/// What every run knows about itself: `${run.id}`.
const RUN_FIELDS: [&str; 5] = ["id", "prompt", "context", "workspace", "work_order"];
/// How a step can end.
const STATUSES: [&str; 4] = ["completed", "failed", "skipped", "cancelled"];
/// What any step gives.
const STEP_FIELDS: [&str; 4] = ["output", "result", "status", "summary"];
/// What a command gives.
const COMMAND_FIELDS: [&str; 6] = ["output", "result", "status", "summary", "exit_code", "stderr"];

/// Where a text stands, which decides what else it can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    Prompt,
    Command,
    LoopPrompt,
    ArbiterPrompt,
    FanOutPrompt,
}

impl TextPlace {
    fn own_variables(self) -> &'static [&'static str] {
        match self {
            TextPlace::Prompt | TextPlace::Command => &[],
            TextPlace::LoopPrompt => &["iteration", "history"],
            TextPlace::ArbiterPrompt => &["iteration", "history", "output"],
            TextPlace::FanOutPrompt => &["item", "index"],
        }
    }
}

pub(super) struct RecipeScope<'a> {
    order: &'a RecipeOrder,
    draft: &'a RecipeDraft,
    steps: BTreeMap<&'a str, StepId>,
    /// The steps that store their output under a name.
    outputs: BTreeMap<&'a str, Vec<StepId>>,
    /// The declared inputs; `None` if the file declares none, and then every name will do.
    inputs: Option<BTreeSet<&'a str>>,
}

enum UnknownPath {
    /// The step or variable comes too late.
    Late(StepId),
    /// The step does not give that.
    Field(String, &'static [&'static str]),
    /// There is no such input.
    Input(String),
    /// Nothing is called that.
    Nothing,
}

impl<'a> RecipeScope<'a> {
    pub(super) fn of(draft: &'a RecipeDraft, order: &'a RecipeOrder) -> Self {
        let mut steps = BTreeMap::new();
        let mut outputs: BTreeMap<&str, Vec<StepId>> = BTreeMap::new();
        for (id, step) in (0u32..).map(StepId).zip(&draft.steps) {
            steps.entry(step.name.value.as_str()).or_insert(id);
            if let Some(output) = &step.output {
                outputs.entry(&output.value).or_default().push(id);
            }
        }
        let names = |inputs: &'a Vec<InputDraft>| inputs.iter().map(|input| input.name.value.as_str()).collect();
        RecipeScope { order, draft, steps, outputs, inputs: draft.inputs.as_ref().map(names) }
    }

    pub(super) fn step(&self, name: &str) -> Option<StepId> {
        self.steps.get(name).copied()
    }

    pub(super) fn step_names(&self) -> impl Iterator<Item = &'a str> {
        self.steps.keys().copied()
    }

    fn name(&self, id: StepId) -> &'a str {
        &self.draft.steps[id.0 as usize].name.value
    }

    /// Whether `path` can be read by step `reader`, or at the end of the run.
    fn look_up(&self, path: &ValuePath, reader: Option<usize>, place: TextPlace) -> Result<(), UnknownPath> {
        let (head, field) = (path.head(), path.tail().first().map(String::as_str));
        if place.own_variables().contains(&head) {
            return Ok(());
        }
        match (head, field) {
            ("input", Some(name)) => return self.input(name),
            ("run", Some(field)) if RUN_FIELDS.contains(&field) => return Ok(()),
            ("run", Some(field)) => return Err(UnknownPath::Field(field.to_owned(), &RUN_FIELDS)),
            _ => {}
        }
        let comes_before = |id: StepId| reader.is_none_or(|reader| self.order.is_upstream(id, reader));
        let step = self.step(head).filter(|_| field.is_some());
        let outputs = self.outputs.get(head).map(Vec::as_slice).unwrap_or_default();
        let fields = step.map(|id| self.fields(id)).unwrap_or_default();
        // A step and its own output may share a name: `${plan.output}` is the step's, `${plan.items}` the output's.
        match step.filter(|_| outputs.is_empty() || field.is_some_and(|field| fields.contains(&field))) {
            Some(_) if !field.is_some_and(|field| fields.contains(&field)) => {
                Err(UnknownPath::Field(field.unwrap_or_default().to_owned(), fields))
            }
            Some(id) if comes_before(id) => Ok(()),
            Some(id) => Err(UnknownPath::Late(id)),
            None => match outputs {
                [] => Err(UnknownPath::Nothing),
                [first, ..] => {
                    outputs.iter().any(|id| comes_before(*id)).then_some(()).ok_or(UnknownPath::Late(*first))
                }
            },
        }
    }

    fn input(&self, name: &str) -> Result<(), UnknownPath> {
        match &self.inputs {
            Some(inputs) if !inputs.contains(name) => Err(UnknownPath::Input(name.to_owned())),
            Some(_) | None => Ok(()),
        }
    }

    fn fields(&self, id: StepId) -> &'static [&'static str] {
        match &self.draft.steps[id.0 as usize].work {
            Some(StepWorkDraft::Script { .. } | StepWorkDraft::Gate { .. }) | None => &COMMAND_FIELDS,
            Some(
                StepWorkDraft::Agent { .. }
                | StepWorkDraft::AgentLoop { .. }
                | StepWorkDraft::ParallelAgents { .. }
                | StepWorkDraft::Task { .. },
            ) => &STEP_FIELDS,
        }
    }

    /// Reports a placeholder of the text of step `reader` that leads nowhere, as `syntax` has it.
    pub(super) fn written(
        &self,
        syntax: PlaceholderSyntax,
        found: &Placeholder,
        span: Span,
        reader: usize,
        place: TextPlace,
        findings: &mut CheckFindings,
    ) {
        match syntax {
            PlaceholderSyntax::DoubleBraces => mission_variable(found, span, findings),
            PlaceholderSyntax::Braces | PlaceholderSyntax::Dollar => {
                self.variable(found, span, Some(reader), place, findings);
            }
        }
    }

    pub(super) fn variable(
        &self,
        found: &Placeholder,
        span: Span,
        reader: Option<usize>,
        place: TextPlace,
        findings: &mut CheckFindings,
    ) {
        let Err(unknown) = self.look_up(&found.path, reader, place) else { return };
        let shown = clip(&PlaceholderSyntax::Dollar.wrap(&found.path));
        let problem = match unknown {
            UnknownPath::Late(id) if reader == Some(id.0 as usize) => {
                let own = clip(self.name(id));
                let message = format!("`{shown}` is what `{own}` itself gives, and is there only when it has ended");
                Diagnosis::new(Code::VariableTooLate, span, message)
                    .help(format!("read it in a step that comes after `{own}`, or name another step"))
            }
            UnknownPath::Late(id) => {
                let own = clip(reader.map_or("the run", |reader| &self.draft.steps[reader].name.value));
                let giver = clip(self.name(id));
                let message = format!("`{shown}` is given by `{giver}`, which does not come before `{own}`");
                Diagnosis::new(Code::VariableTooLate, span, message)
                    .other(self.draft.steps[id.0 as usize].name.span, "given here")
                    .help(format!("let `{own}` wait for `{giver}`"))
            }
            other => Diagnosis::new(Code::UnknownVariable, span, format!("`{shown}` is not defined"))
                .maybe_help(self.advice(&found.path, &other, place, findings)),
        };
        findings.add(match place {
            TextPlace::Command => problem.note("for the shell's own variable, write `$${NAME}`"),
            TextPlace::Prompt | TextPlace::LoopPrompt | TextPlace::ArbiterPrompt | TextPlace::FanOutPrompt => problem,
        });
    }

    fn advice(
        &self,
        path: &ValuePath,
        unknown: &UnknownPath,
        place: TextPlace,
        findings: &CheckFindings,
    ) -> Option<String> {
        match unknown {
            UnknownPath::Field(field, known) => {
                let named =
                    self.step(path.head()).map(|id| format!("`{}` gives {}", clip(self.name(id)), list(known, "and")));
                suggest(field, known.iter().copied()).filter(|help| help.starts_with("did")).or(named)
            }
            UnknownPath::Input(name) => {
                let inputs = self.inputs.iter().flatten().copied();
                findings.suggest(name, inputs).or_else(|| Some("declare it under `input`".into()))
            }
            UnknownPath::Nothing | UnknownPath::Late(_) => {
                // A step or `run` alone is no value: what is suggested must be one.
                let plain = self.outputs.keys().copied().chain(place.own_variables().iter().copied());
                let help = findings.suggest(path.head(), plain.chain(self.step_names()))?;
                let step = self.step_names().find(|name| help == format!("did you mean `{name}`?"));
                Some(match step.filter(|name| !self.outputs.contains_key(name)) {
                    Some(name) => format!("did you mean `{name}.output`?"),
                    None if help.starts_with("did") => help,
                    None => format!("{help}; of a step write `{}`", PlaceholderSyntax::Dollar.wrap("STEP.output")),
                })
            }
        }
    }

    /// Reports a comparison that reads what is not there, or waits for what nobody gives.
    pub(super) fn compared(&self, compare: &Comparison, span: Span, reader: usize, findings: &mut CheckFindings) {
        let path = &compare.path;
        let own = clip(&self.draft.steps[reader].name.value);
        let reads = || format!("the condition of `{own}` reads `{path}`");
        let problem = match self.look_up(path, Some(reader), TextPlace::Command) {
            Ok(()) => match self.never_given(compare, span) {
                Some(problem) => problem,
                None => return,
            },
            Err(UnknownPath::Late(id)) => {
                let name = clip(self.name(id));
                Diagnosis::new(Code::NotUpstream, span, format!("{}, but `{name}` does not come before it", reads()))
                    .other(self.draft.steps[id.0 as usize].name.span, "may not have run by then")
                    .help(format!("let `{own}` wait for `{name}`"))
            }
            Err(unknown @ UnknownPath::Field(..)) => {
                Diagnosis::new(Code::NobodyGives, span, format!("{}, which nothing gives", reads()))
                    .maybe_help(self.advice(path, &unknown, TextPlace::Command, findings))
            }
            Err(unknown @ UnknownPath::Input(_)) => {
                Diagnosis::new(Code::UnknownVariable, span, format!("{}, which is not an input", reads()))
                    .maybe_help(self.advice(path, &unknown, TextPlace::Command, findings))
            }
            Err(UnknownPath::Nothing) => {
                let what = if path.tail().is_empty() { "an output of a step" } else { "a step" };
                let help = findings.suggest(path.head(), self.step_names().chain(self.outputs.keys().copied()));
                let message = format!("{}, but `{}` is not {what}", reads(), clip(path.head()));
                return findings.hole(Diagnosis::new(Code::UnknownStep, span, message).maybe_help(help));
            }
        };
        findings.add(problem);
    }

    /// A value that the step's kind can never have.
    fn never_given(&self, compare: &Comparison, span: Span) -> Option<Diagnosis> {
        let id = self.step(compare.path.head())?;
        let [field] = compare.path.tail() else { return None };
        let possible: &[&str] = match (field.as_str(), &self.draft.steps[id.0 as usize].work) {
            ("status", _) => &STATUSES,
            ("result", Some(StepWorkDraft::AgentLoop { .. })) => &["done", "actionable"],
            ("result", Some(StepWorkDraft::Gate { .. })) => &["PASS"],
            _ => return None,
        };
        let known = matches!(&compare.value, ExprValue::Text(text) if possible.contains(&text.as_str()));
        let message = format!("`{}` is never {}", compare.path, compare.value);
        let help = match &compare.value {
            ExprValue::Text(text) => suggest(text, possible.iter().copied()),
            ExprValue::Number(_) | ExprValue::Bool(_) => suggest("", possible.iter().copied()),
        };
        (!known).then(|| {
            Diagnosis::new(Code::NobodyGives, span, message)
                .note(format!("it is one of {}", list(possible, "and")))
                .maybe_help(help.filter(|help| help.starts_with("did")))
        })
    }
}

/// Reports a `{{placeholder}}` that a manifest's prompts do not have.
fn mission_variable(found: &Placeholder, span: Span, findings: &mut CheckFindings) {
    if !MISSION_VARIABLES.contains(&found.path.head()) {
        let shown = clip(&PlaceholderSyntax::DoubleBraces.wrap(&found.path));
        findings.add(
            Diagnosis::new(Code::UnknownVariable, span, format!("`{shown}` is not a variable of a mission"))
                .maybe_help(suggest(found.path.head(), MISSION_VARIABLES)),
        );
    }
}
