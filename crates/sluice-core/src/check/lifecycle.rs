//! Checks a lifecycle. This file resolves names and makes the definition; the questions stand beside it:
//! [`guards`] (do clauses overlap or leave a gap), [`exits`] (the rules about ended agents), [`runs`] (what states
//! start), [`shape`] (can every state be reached and left), [`explore`] and [`behaviour`] (what can happen to a task).

mod behaviour;
mod exits;
mod explore;
mod guards;
mod runs;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use super::{texts, too_many};
use crate::artifact::{Gate, VerdictTest};
use crate::expr::{Expr, ExprValue};
use crate::findings::CheckFindings;
use crate::lifecycle::draft;
pub use crate::lifecycle::draft::LifecycleDraft;
use crate::lifecycle::{
    AgentSpawn, AssignedTaker, COUNTERS, CREATABLE, ExitMonitoring, FieldValue, Lifecycle, LifecycleState,
    LifecycleTransition, PlainHook, StateId, TransitionHook,
};
use crate::name::{DefinitionName, FieldName, PromptName, StateName, is_identifier};
use crate::problem::{Code, Diagnosis, clip};
use crate::span::{SourceText, SpannedValue};
use crate::task::TaskKey;
use crate::text::PlaceholderSyntax;
use shape::StatePaths;

/// The most states of one lifecycle.
pub const MOST_STATES: usize = 2_000;
/// The most transitions of one lifecycle.
pub const MOST_TRANSITIONS: usize = 20_000;
/// The most exit rules of one lifecycle.
pub const MOST_RULES: usize = 5_000;
/// Seconds between two looks at a session, unless the file says otherwise.
const POLL_INTERVAL: u32 = 30;

/// Checks `draft`, and adds what it finds to `findings`. Gives the definition, unless it has a hole.
pub fn check(mut draft: LifecycleDraft, findings: &mut CheckFindings) -> Option<Lifecycle> {
    let errors = findings.errors();
    if is_too_large(&draft, findings) {
        return None;
    }
    draft.transitions.iter_mut().for_each(|transition| count_before_spawning(transition, findings));
    let draft = &draft;
    let names = LifecycleNames::of(draft);
    let definition = resolve(draft, &names, findings);
    let ways = StatePaths::of(draft, &definition, &names);
    guards::check(draft, &definition, &ways, findings);
    let reached = shape::check(draft, &definition, &ways, findings);
    let definition = definition.finish()?;
    runs::check(draft, &definition, findings);
    if findings.errors() == errors {
        behaviour::check(draft, &definition, &reached, findings);
    }
    (!findings.has_hole()).then_some(definition)
}

fn is_too_large(draft: &LifecycleDraft, findings: &mut CheckFindings) -> bool {
    let states = too_many(draft.states.len(), MOST_STATES, "states", |at| draft.states[at].name.span, findings);
    let transitions =
        too_many(draft.transitions.len(), MOST_TRANSITIONS, "transitions", |at| draft.transitions[at].span, findings);
    let rules = too_many(draft.rules.len(), MOST_RULES, "exit rules", |at| draft.rules[at].status.span, findings);
    states || transitions || rules
}

/// Puts `increment_review_round` before the agent it counts, so that the agent's prompt and window say its own round.
fn count_before_spawning(transition: &mut draft::TransitionDraft, findings: &mut CheckFindings) {
    let spawns = |hook: &SpannedValue<draft::HookDraft>| {
        matches!(hook.value, draft::HookDraft::SpawnAgent(_) | draft::HookDraft::SpawnReviewer(_))
    };
    let Some(spawn) = transition.hooks.iter().position(spawns) else { return };
    let counts = |hook: &SpannedValue<draft::HookDraft>| {
        matches!(hook.value, draft::HookDraft::Ready(TransitionHook::Increment(_)))
    };
    let (late, rest): (Vec<_>, Vec<_>) = transition.hooks.split_off(spawn).into_iter().partition(counts);
    for hook in &late {
        let message = "`increment_review_round` is done before the agent is started, although it is written after";
        findings.add(Diagnosis::new(Code::CountedFirst, hook.span, message));
    }
    transition.hooks.extend(late);
    transition.hooks.extend(rest);
}

struct LifecycleNames<'a> {
    states: BTreeMap<&'a str, StateId>,
    prompts: BTreeSet<&'a str>,
    fields: BTreeSet<&'a str>,
}

impl<'a> LifecycleNames<'a> {
    fn of(draft: &'a LifecycleDraft) -> Self {
        let states = (0u32..).zip(&draft.states).map(|(id, state)| (state.name.value.as_str(), StateId(id))).collect();
        let prompts = draft.prompts.iter().map(|(name, _)| name.value.as_str()).collect();
        let mut fields = BTreeSet::from(COUNTERS);
        for hook in draft.transitions.iter().flat_map(|transition| &transition.hooks) {
            match &hook.value {
                draft::HookDraft::SpawnAgent(spawn) | draft::HookDraft::SpawnReviewer(spawn) => {
                    fields.extend(spawn.increment.iter().map(|field| field.value.as_str()));
                }
                draft::HookDraft::SetField(field, SpannedValue { value: FieldValue::Number(_), .. }) => {
                    fields.insert(&field.value);
                }
                _ => {}
            }
        }
        LifecycleNames { states, prompts, fields }
    }

    fn state(
        &self,
        name: &SpannedValue<String>,
        code: Code,
        what: &str,
        findings: &mut CheckFindings,
    ) -> Option<StateId> {
        let found = self.states.get(name.value.as_str()).copied();
        if found.is_none() {
            let message = format!("{what} `{}`, which is not a state", clip(&name.value));
            let help = findings.suggest(&name.value, self.states.keys().copied());
            findings.hole(Diagnosis::new(code, name.span, message).maybe_help(help));
        }
        found
    }

    fn prompt(&self, name: &SpannedValue<String>, code: Code, what: &str, findings: &mut CheckFindings) -> PromptName {
        if !self.prompts.contains(name.value.as_str()) {
            let message = format!("{what} `{}`, which is not a prompt", clip(&name.value));
            let help = findings.suggest(&name.value, self.prompts.iter().copied());
            findings.hole(Diagnosis::new(code, name.span, message).maybe_help(help));
        }
        PromptName::new(name.value.as_str())
    }

    /// Reads a guard: whole numbers, and fields that exist.
    fn guard(&self, text: &SourceText, findings: &mut CheckFindings) -> Option<Expr> {
        let expr = texts::expression(text, Code::BadGuard, "guard", findings)?;
        let mut sound = true;
        for compare in expr.comparisons() {
            let is_whole = matches!(&compare.value, ExprValue::Number(number) if number.as_whole().is_some());
            if !is_whole {
                let message =
                    format!("this guard cannot be read: it compares `{}` with {}", compare.path, compare.value);
                findings.add(
                    Diagnosis::new(Code::BadGuard, text.span, message)
                        .help("a lifecycle's guards compare fields with whole numbers: `review_round < 2`"),
                );
            } else if !compare.path.tail().is_empty() || !self.fields.contains(compare.path.head()) {
                let message = format!("this guard reads `{}`, which no task has", compare.path);
                findings.add(
                    Diagnosis::new(Code::UnknownField, text.span, message)
                        .maybe_help(findings.suggest(compare.path.head(), self.fields.iter().copied()))
                        .note("fields are `review_round`, `crash_count`, and those that an `increment` or `set_field` makes"),
                );
            } else {
                continue;
            }
            sound = false;
        }
        sound.then_some(expr)
    }
}

/// A lifecycle whose names have been looked up; what could not be found is `None`.
struct ResolvedLifecycle {
    name: Option<DefinitionName>,
    version: u64,
    states: Vec<LifecycleState>,
    transitions: Vec<ResolvedTransition>,
    rules: Vec<exits::ResolvedRule>,
    poll_interval: u32,
    prompts: BTreeMap<PromptName, crate::text::Template>,
}

struct ResolvedTransition {
    from: Option<StateId>,
    to: Option<StateId>,
    /// `None` inside: there is a guard, and it cannot be read.
    guard: Option<Option<Expr>>,
    gate: Option<Gate>,
    by: Option<AssignedTaker>,
    hooks: Vec<TransitionHook>,
}

fn resolve(draft: &LifecycleDraft, names: &LifecycleNames<'_>, findings: &mut CheckFindings) -> ResolvedLifecycle {
    if let Some(name) = &draft.name {
        findings.definition_name(name, "a lifecycle");
    }
    for state in &draft.states {
        findings.identifier(&state.name, "a state");
    }
    let states = draft.states.iter().map(|state| resolve_state(state, names, findings)).collect();
    let transitions: Vec<_> =
        draft.transitions.iter().map(|transition| resolve_transition(transition, draft, names, findings)).collect();
    let rules = draft.rules.iter().map(|rule| exits::resolve(rule, names, findings)).collect();
    let prompts =
        draft.prompts.iter().map(|(name, text)| (PromptName::new(name.value.as_str()), texts::prompt(text, findings)));
    ResolvedLifecycle {
        name: draft.name.as_ref().map(|name| DefinitionName::new(name.value.as_str())),
        version: draft.version.unwrap_or(1),
        states,
        transitions,
        rules,
        poll_interval: draft.poll_interval.unwrap_or(POLL_INTERVAL),
        prompts: prompts.collect(),
    }
}

fn resolve_state(
    state: &draft::StateDraft,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> LifecycleState {
    let mut prompt = |name: &Option<SpannedValue<String>>, key: &str| {
        let what = format!("`{key}` of state `{}` names", state.name.value);
        name.as_ref().map(|name| names.prompt(name, Code::UnknownRespawnPrompt, &what, findings))
    };
    LifecycleState {
        name: StateName::new(state.name.value.as_str()),
        terminal: state.terminal,
        respawn_prompt: prompt(&state.respawn_prompt, "respawn_prompt"),
        enter_prompt: prompt(&state.enter_prompt, "enter_prompt"),
        run: state.run.as_ref().map(|run| runs::resolve(state, run, names, findings)),
    }
}

fn resolve_transition(
    transition: &draft::TransitionDraft,
    draft: &LifecycleDraft,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> ResolvedTransition {
    let mut state = |name: &Option<SpannedValue<String>>, code, what| {
        name.as_ref().and_then(|name| names.state(name, code, what, findings))
    };
    let from = state(&transition.from, Code::UnknownSource, "the transition starts from");
    let to = state(&transition.to, Code::UnknownTarget, "the transition leads to");
    let left = from.map(|id| &draft.states[id.0 as usize]).filter(|state| state.terminal);
    if let (Some(state), Some(from)) = (left, &transition.from) {
        let name = &state.name.value;
        findings.add(
            Diagnosis::new(Code::LeavesTerminal, from.span, format!("a transition leaves `{name}`, which is terminal"))
                .other(state.name.span, "terminal, so a task ends here")
                .help(format!("remove the transition, or `terminal: true` from `{name}`")),
        );
    }
    ResolvedTransition {
        from,
        to,
        guard: transition.when.as_ref().map(|text| names.guard(text, findings)),
        gate: transition.gate.as_ref().map(|gate| resolve_gate(gate, findings)),
        by: transition.by,
        hooks: transition.hooks.iter().map(|hook| resolve_hook(hook, names, findings)).collect(),
    }
}

fn resolve_gate(gate: &draft::GateDraft, findings: &mut CheckFindings) -> Gate {
    let title = gate.section.value.strip_prefix("## ").map(str::trim).filter(|title| !title.is_empty());
    if title.is_none() {
        let shown = clip(&gate.section.value);
        findings.hole(
            Diagnosis::new(Code::BadName, gate.section.span, format!("`{shown}` is not the heading of a section"))
                .help("a section is a second-level heading of TASK.md: `## Handoff`"),
        );
    }
    for field in &gate.fields {
        findings.identifier(field, "a field");
    }
    Gate {
        title: title.unwrap_or_default().to_owned(),
        filled: gate.required.unwrap_or(true),
        fields: gate.fields.iter().map(|field| field.value.clone()).collect(),
        verdict: gate.verdict.as_ref().map(|verdict| VerdictTest { wanted: verdict.value, strict: gate.strict }),
    }
}

fn resolve_hook(
    hook: &SpannedValue<draft::HookDraft>,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> TransitionHook {
    match &hook.value {
        draft::HookDraft::Ready(hook) => hook.clone(),
        draft::HookDraft::SpawnAgent(spawn) => {
            TransitionHook::SpawnAgent(resolve_spawn(spawn, "spawn_agent", names, findings))
        }
        draft::HookDraft::SpawnReviewer(spawn) => {
            TransitionHook::SpawnReviewer(resolve_spawn(spawn, "spawn_reviewer", names, findings))
        }
        draft::HookDraft::NotifyWorker { message, start } => {
            let message = message.as_ref().map(|text| texts::prompt(text, findings));
            TransitionHook::NotifyWorker { message, start: *start }
        }
        draft::HookDraft::Plain(action, keys) => {
            let texts = keys.iter().map(|(key, text)| (*key, texts::prompt(text, findings))).collect();
            TransitionHook::Plain(PlainHook { action: *action, texts })
        }
        draft::HookDraft::RunCommand(text) => {
            TransitionHook::RunCommand(texts::command(text, findings, known_variable))
        }
        draft::HookDraft::SetField(field, value) => {
            settable(field, findings);
            if matches!(value.value, FieldValue::Text(_)) && names.fields.contains(field.value.as_str()) {
                let message = format!("`{}` is a number, and here it is set to text", field.value);
                findings.add(
                    Diagnosis::new(Code::WrongType, value.span, message)
                        .note("guards compare it with numbers, and hooks count it up")
                        .help("set it to a whole number, without quotes"),
                );
            }
            TransitionHook::SetField { field: FieldName::new(field.value.as_str()), value: value.value.clone() }
        }
    }
}

fn resolve_spawn(
    spawn: &draft::SpawnDraft,
    hook: &str,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> AgentSpawn {
    if let Some(field) = &spawn.increment {
        settable(field, findings);
    }
    AgentSpawn {
        prompt: names.prompt(&spawn.prompt, Code::UnknownPrompt, &format!("`{hook}` names"), findings),
        harness: spawn.harness,
        permissions: spawn.permissions,
        increment: spawn.increment.as_ref().map(|field| FieldName::new(field.value.as_str())),
    }
}

fn settable(field: &SpannedValue<String>, findings: &mut CheckFindings) {
    if !is_identifier(&field.value) {
        findings.identifier(field, "a field");
    } else if TaskKey::read(&field.value).is_some_and(|key| !key.is_settable()) {
        findings.add(
            Diagnosis::new(Code::NotAChoice, field.span, format!("`{}` is written by the engine alone", field.value))
                .help("set `review_round`, `crash_count`, `summary`, or a field of your own"),
        );
    }
}

/// A variable in a command. In prompts there are none but these, by the way they are read.
fn known_variable(found: &crate::text::Placeholder, span: crate::span::Span, findings: &mut CheckFindings) {
    if found.path.tail().is_empty() && TaskKey::variable(found.path.head()).is_some() {
        return;
    }
    let shown = PlaceholderSyntax::Dollar.wrap(&found.path);
    findings.add(
        Diagnosis::new(Code::UnknownVariable, span, format!("`{}` is not a variable of a task", clip(&shown)))
            .maybe_help(findings.suggest(found.path.head(), TaskKey::variables()))
            .note(format!("for the shell's own variable, write `$${{{}}}`", found.path)),
    );
}

impl ResolvedLifecycle {
    /// The definition, if every name was found and every guard read.
    fn finish(self) -> Option<Lifecycle> {
        let transition = |found: ResolvedTransition| {
            Some(LifecycleTransition {
                from: found.from?,
                to: found.to?,
                guard: match found.guard {
                    Some(guard) => Some(guard?),
                    None => None,
                },
                gate: found.gate,
                by: found.by,
                hooks: found.hooks,
            })
        };
        Some(Lifecycle {
            initial: initial_states(&self.states),
            name: self.name?,
            version: self.version,
            states: self.states,
            transitions: self.transitions.into_iter().map(transition).collect::<Option<_>>()?,
            exits: ExitMonitoring {
                poll_interval: self.poll_interval,
                rules: self.rules.into_iter().map(exits::ResolvedRule::finish).collect::<Option<_>>()?,
            },
            prompts: self.prompts,
        })
    }
}

/// The states that a task can be created in: those that `task create` can set. It must be creatable at all: without
/// `pending`, the first state that is not terminal takes its place.
fn initial_states(states: &[LifecycleState]) -> Vec<StateId> {
    let find = |name: &&str| states.iter().position(|state| state.name.as_str() == *name);
    let usual = find(&CREATABLE[0]).or_else(|| states.iter().position(|state| !state.terminal));
    let others = CREATABLE[1..].iter().filter_map(find).filter(|index| Some(*index) != usual);
    usual.into_iter().chain(others).filter_map(|index| u32::try_from(index).ok().map(StateId)).collect()
}
