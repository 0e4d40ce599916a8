//! Lifecycles: states, transitions with gates, guards and hooks, rules for ended agents, prompts.

use sluice_core::artifact::Verdict;
use sluice_core::findings::CheckFindings;
use sluice_core::lifecycle::action::TaskAction;
use sluice_core::lifecycle::draft::{
    ClauseDraft, ExitRuleDraft, GateDraft, HookDraft, LifecycleDraft, ReactionDraft, SpawnDraft, StateDraft,
    StateRunDraft, TransitionDraft,
};
use sluice_core::lifecycle::{AgentPermissions, AssignedTaker, FieldValue, HarnessChoice, TransitionHook};
use sluice_core::name::FieldName;
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{SourceText, Span, SpannedValue};

use super::fields::{TableFields, named};
use super::sense::{empty, is_blank, told};
use crate::shape::FieldForm::{self, Filled, Heading, Kebab, Name, NotEmpty, Settable};
use crate::shape::FieldKind::{Bool, Choice, ChoiceAnyCase, Either, Integer, List, Named, Table, Text};
use crate::shape::{Field, Shape};
use crate::tree::{Node, NodeValue, TableEntry};

/// The largest number a field or limit may have.
const MOST: i64 = 1_000_000;
const HARNESSES: [(&str, HarnessChoice); 2] = [("task", HarnessChoice::Task), ("review", HarnessChoice::Review)];
const PERMISSIONS: [(&str, AgentPermissions); 2] =
    [("full", AgentPermissions::Full), ("reduced", AgentPermissions::Reduced)];
const TAKERS: [(&str, AssignedTaker); 2] = [("agent", AssignedTaker::Agent), ("person", AssignedTaker::Person)];
const SETTABLE: &[FieldForm] = &[Name, Settable];
const SPAWNS: &[&str] = &["spawn_agent", "spawn_reviewer"];

pub static LIFECYCLE: Shape = Shape::new(
    "a lifecycle",
    &[&[
        Field::required("name", Text, "the name that projects and tasks choose it by, in kebab-case").form(&[Kebab]),
        Field::new("version", Integer(0, MOST), "the author's own version number"),
        Field::new("description", Text, "what it is for"),
        Field::required("states", Named(&Table(&STATE)), "the states, by name").form(&[NotEmpty, Name]),
        Field::required("transitions", List(&Table(&TRANSITION)), "the permitted moves"),
        Field::new("exit_monitoring", Table(&EXITS), "what happens when an agent's process ends by itself"),
        Field::new("prompts", Named(&Text), "what agents are told, by name").form(&[Filled]),
    ]],
);
static STATE: Shape = Shape::new(
    "a state",
    &[&[
        Field::new("terminal", Bool, "whether the task ends here"),
        Field::new("respawn_prompt", Text, "the prompt of an agent that is started here again"),
        Field::new("enter_prompt", Text, "the prompt of an agent that is started whenever the state is entered"),
        Field::new("run", Table(&RUN), "the run that is started whenever the state is entered"),
        Field::new("description", Text, "what it means"),
    ]],
);
static RUN: Shape = Shape::new(
    "a run of a state",
    &[&[
        Field::required("recipe", Text, "its recipe, by name; looked up when the run starts").form(&[Filled]),
        Field::new("inputs", Named(&Text), "what it is given, by name; may show the task's variables")
            .form(&[Name])
            .also(&["input", "with"]),
        Field::new("completed", Text, "the state that the task moves to when the run has completed").form(&[Name]),
        Field::new("failed", Text, "the state that the task moves to when the run has failed").form(&[Name]),
    ]],
);
static TRANSITION: Shape = Shape::new(
    "a transition",
    &[&[
        Field::required("from", Text, "the state it leaves").form(&[Name]),
        Field::required("to", Text, "the state it leads to").form(&[Name]),
        Field::new("gate", Table(&GATE), "what the task's artifact must have"),
        Field::new("when", Text, "a guard over the task's counters: `review_round < 2`").form(&[Filled]).also(&[
            "condition",
            "if",
            "guard",
        ]),
        Field::new(
            "by",
            Choice(&["agent", "person"]),
            "who may take it; without it, agents take what has a gate or neither starts an agent nor ends the task",
        ),
        Field::new("hooks", List(&Table(&HOOK)), "what is done, in order").also(&["actions", "effects"]),
    ]],
);
static GATE: Shape = Shape::new(
    "a gate",
    &[&[
        Field::required("section", Text, "the heading in TASK.md: `## Handoff`").form(&[Heading]),
        Field::new("required", Bool, "whether the section must have content; true unless said otherwise"),
        Field::new("fields", List(&Text), "at least one of these stands there as `NAME: something`").form(&[Name]),
        Field::new("verdict", ChoiceAnyCase(&["PASS", "FAIL"]), "the verdict that the section must give"),
        Field::new("strict", Bool, "whether the verdict must be the first line, as `Verdict: PASS`"),
    ]],
);
static HOOK: Shape = Shape::new(
    "a hook",
    &[&[
        Field::required("action", Choice(TaskAction::HOOK_WORDS), "what is done"),
        Field::required("prompt", Text, "the agent's prompt, by name").only(&["spawn_agent"]),
        Field::new("prompt", Text, "the reviewer's prompt, by name; `reviewer` unless said otherwise")
            .only(&["spawn_reviewer"]),
        Field::new("harness", Choice(&["task", "review"]), "which of the task's two harnesses").only(SPAWNS),
        Field::new("permissions", Choice(&["full", "reduced"]), "what the agent may do").only(SPAWNS),
        Field::new("increment", Text, "a counter that goes up before the agent starts").form(SETTABLE).only(SPAWNS),
        Field::required("message", Text, "what a person is told").form(&[Filled]).only(&["notify"]),
        Field::new("message", Text, "what the worker is told, in place of the engine's own words")
            .only(&["notify_worker"]),
        Field::new("start", Bool, "whether a worker is started where none is alive; true unless said otherwise")
            .only(&["notify_worker"]),
        Field::required("command", Text, "the command, run in the task's workspace")
            .form(&[Filled])
            .only(&["run_command"]),
        Field::required("field", Text, "the field that is set").form(SETTABLE).only(&["set_field"]),
        Field::required("value", Either(&[Integer(-MOST, MOST), Text]), "what it is set to").only(&["set_field"]),
    ]],
)
.tagged("action", None);
static EXITS: Shape = Shape::new(
    "exit monitoring",
    &[&[
        Field::new("poll_interval", Integer(1, 86_400), "seconds between two looks, as a backstop"),
        Field::new("rules", List(&Table(&RULE)), "the first that matches is applied"),
    ]],
);
static RULE: Shape = Shape::new(
    "an exit rule",
    &[&[
        Field::required("status", Text, "the state it watches").form(&[Name]).also(&["state", "from"]),
        Field::new("has_artifact", Table(&GATE), "it applies if the artifact has this"),
        Field::new("no_artifact", Bool, "it applies if no `has_artifact` rule of this state does"),
        Field::new("then", Text, "the state that the task advances to").form(&[Name]).also(&["to"]),
        Field::new("then_when", List(&Table(&CLAUSE)), "the state it advances to, by guards"),
        Field::new("action", Choice(&["crash", "mark_dead"]), "what else can follow"),
        Field::new("stuck_after", Integer(1, MOST), "crashes after which the task is stuck"),
        Field::new("respawn", Bool, "start the agent again at once after a crash"),
    ]],
);
static CLAUSE: Shape = Shape::new(
    "a clause",
    &[&[
        Field::required("when", Text, "a guard over the task's counters").form(&[Filled]),
        Field::required("then", Text, "the state that the task advances to").form(&[Name]),
    ]],
);

pub fn lower(node: &Node, findings: &mut CheckFindings) -> LifecycleDraft {
    let file = TableFields::of(node);
    let exits = file.table("exit_monitoring");
    let states = file.table("states").map(TableFields::entries).unwrap_or_default();
    let says_none =
        file.node("states").is_some_and(|node| matches!(&node.value, NodeValue::Null | NodeValue::Table(_)));
    if let Some(span) = file.key("states").filter(|_| says_none && states.is_empty()) {
        let message = "there are no states";
        findings
            .hole(Diagnosis::new(Code::MissingKey, span, message).help("add at least one, and one that is terminal"));
    }
    let prompts = file.table("prompts").map(TableFields::entries).unwrap_or_default();
    LifecycleDraft {
        span: file.span(),
        name: file.name("name"),
        version: file.number("version").map(|version| version.value),
        states: states.iter().map(|entry| state(&entry.key, &entry.value, findings)).collect(),
        transitions: file.tables("transitions").map(|entry| transition(entry, findings)).collect(),
        poll_interval: exits.and_then(|exits| exits.number("poll_interval")).map(|seconds| seconds.value),
        rules: exits
            .map(|exits| exits.tables("rules").filter_map(|entry| rule(entry, findings)).collect())
            .unwrap_or_default(),
        prompts: prompts.iter().filter_map(|entry| prompt(entry, findings)).collect(),
    }
}

/// A prompt by its name. An empty one is still there for whatever names it.
fn prompt(entry: &TableEntry, findings: &mut CheckFindings) -> Option<(SpannedValue<String>, SourceText)> {
    let text = entry.value.as_text()?;
    if is_blank(text) {
        findings.add(empty(&entry.key.value, text).help("say what the agent is to do"));
    }
    Some((entry.key.clone(), text.clone()))
}

fn state(name: &SpannedValue<String>, node: &Node, findings: &mut CheckFindings) -> StateDraft {
    let fields = TableFields::of(node);
    StateDraft {
        name: name.clone(),
        terminal: fields.flag("terminal").unwrap_or(false),
        respawn_prompt: fields.name("respawn_prompt"),
        enter_prompt: fields.name("enter_prompt"),
        run: fields.table("run").zip(fields.key("run")).and_then(|(run, key)| self::run(run, key, findings)),
    }
}

fn run(fields: TableFields<'_>, key: Span, findings: &mut CheckFindings) -> Option<StateRunDraft> {
    let inputs = fields.table("inputs").map(TableFields::entries).unwrap_or_default();
    Some(StateRunDraft {
        span: key,
        recipe: named(told(fields, "recipe", findings)?),
        inputs: inputs.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.as_text()?.clone()))).collect(),
        completed: fields.name("completed"),
        failed: fields.name("failed"),
    })
}

fn transition(fields: TableFields<'_>, findings: &mut CheckFindings) -> TransitionDraft {
    TransitionDraft {
        span: fields.span(),
        from: fields.name("from"),
        to: fields.name("to"),
        gate: fields.table("gate").and_then(|gate| self::gate(gate, findings)),
        when: fields.text("when").cloned(),
        by: fields.choice("by", &TAKERS),
        hooks: fields.tables("hooks").filter_map(|entry| hook(entry, findings)).collect(),
    }
}

fn gate(fields: TableFields<'_>, findings: &mut CheckFindings) -> Option<GateDraft> {
    let verdict = fields.text("verdict").and_then(|text| Some((Verdict::read(&text.value)?, text)));
    if let (None, Some(key)) = (&verdict, fields.key("strict").filter(|_| fields.key("verdict").is_none())) {
        findings.add(
            Diagnosis::new(Code::KeyConflict, key, "`strict` without a `verdict`")
                .help("`strict` says how the verdict is written; add `verdict: PASS` or remove it"),
        );
    }
    Some(GateDraft {
        section: fields.name("section")?,
        required: fields.flag("required"),
        fields: fields.names("fields").unwrap_or_default(),
        verdict: verdict.map(|(verdict, text)| SpannedValue::new(verdict, text.span)),
        strict: fields.flag("strict").unwrap_or(false),
    })
}

fn hook(fields: TableFields<'_>, findings: &mut CheckFindings) -> Option<SpannedValue<HookDraft>> {
    let action = fields.text("action")?;
    // What is no action has been reported with the words that are.
    let hook = match *TaskAction::HOOKS.iter().find(|known| known.word() == action.value)? {
        TaskAction::AcquireWorkspace => HookDraft::Ready(TransitionHook::AcquireWorkspace),
        TaskAction::ReleaseWorkspace => HookDraft::Ready(TransitionHook::ReleaseWorkspace),
        TaskAction::SpawnAgent => {
            HookDraft::SpawnAgent(spawn(fields, fields.name("prompt")?, HarnessChoice::Task, AgentPermissions::Full))
        }
        TaskAction::SpawnReviewer => {
            let prompt = fields.name("prompt").unwrap_or_else(|| SpannedValue::new("reviewer".into(), action.span));
            HookDraft::SpawnReviewer(spawn(fields, prompt, HarnessChoice::Review, AgentPermissions::Reduced))
        }
        TaskAction::KillSession => HookDraft::Ready(TransitionHook::KillSession),
        TaskAction::KillReviewer => HookDraft::Ready(TransitionHook::KillReviewer),
        TaskAction::NotifyWorker => HookDraft::NotifyWorker {
            message: fields.text("message").cloned(),
            start: fields.flag("start").unwrap_or(true),
        },
        TaskAction::Increment => HookDraft::Ready(TransitionHook::Increment(FieldName::new("review_round"))),
        TaskAction::RunCommand => HookDraft::RunCommand(told(fields, "command", findings)?.clone()),
        TaskAction::SetField => {
            let value = fields.node("value")?;
            HookDraft::SetField(fields.name("field")?, SpannedValue::new(field_value(value)?, value.span))
        }
        TaskAction::Plain(plain) => {
            let texts = plain.keys().iter().map(|key| Some((*key, told(fields, key, findings)?.clone())));
            HookDraft::Plain(plain, texts.collect::<Option<_>>()?)
        }
        // The engine's own, of which no hook speaks.
        TaskAction::StartRun | TaskAction::CancelRun | TaskAction::WriteArtifact => return None,
    };
    Some(SpannedValue::new(hook, action.span))
}

fn field_value(node: &Node) -> Option<FieldValue> {
    match &node.value {
        NodeValue::Integer(number) => Some(FieldValue::Number(*number)),
        NodeValue::Text(text) => Some(FieldValue::Text(text.value.clone())),
        _ => None,
    }
}

fn spawn(
    fields: TableFields<'_>,
    prompt: SpannedValue<String>,
    harness: HarnessChoice,
    permissions: AgentPermissions,
) -> SpawnDraft {
    SpawnDraft {
        prompt,
        harness: fields.choice("harness", &HARNESSES).unwrap_or(harness),
        permissions: fields.choice("permissions", &PERMISSIONS).unwrap_or(permissions),
        increment: fields.name("increment"),
    }
}

fn rule(fields: TableFields<'_>, findings: &mut CheckFindings) -> Option<ExitRuleDraft> {
    let status = fields.name("status")?;
    conflicts(fields, &status, findings);
    let reaction = reaction(fields)?;
    let has_artifact = fields.table("has_artifact").and_then(|gate| self::gate(gate, findings));
    let no_artifact = fields.key("no_artifact").filter(|_| fields.flag("no_artifact") == Some(true));
    Some(ExitRuleDraft { status, has_artifact, no_artifact, reaction })
}

fn reaction(fields: TableFields<'_>) -> Option<ReactionDraft> {
    if let Some(target) = fields.name("then") {
        return Some(ReactionDraft::Then(target));
    }
    if let Some(key) = fields.key("then_when") {
        let clause = |clause: TableFields<'_>| {
            let when: SourceText = clause.text("when")?.clone();
            Some(ClauseDraft { when, then: named(clause.text("then")?) })
        };
        // A clause that is not whole has been reported; without it the rest cannot be judged.
        let clauses: Option<Vec<ClauseDraft>> = fields.tables("then_when").map(clause).collect();
        return clauses.map(|clauses| ReactionDraft::ThenWhen(SpannedValue::new(clauses, key)));
    }
    match fields.text("action")?.value.as_str() {
        "crash" => Some(ReactionDraft::Crash {
            stuck_after: fields.number("stuck_after"),
            respawn: fields.flag("respawn").unwrap_or(false),
        }),
        "mark_dead" => Some(ReactionDraft::MarkDead),
        _ => None,
    }
}

/// Keys of a rule that exclude each other, or that are all missing.
fn conflicts(fields: TableFields<'_>, status: &SpannedValue<String>, findings: &mut CheckFindings) {
    let reactions: Vec<_> =
        ["then", "then_when", "action"].into_iter().filter_map(|key| Some((key, fields.key(key)?))).collect();
    match reactions.as_slice() {
        [] => findings.hole(
            Diagnosis::new(Code::MissingKey, status.span, "an exit rule needs a `then`, a `then_when` or an `action`")
                .help("say what follows: `then: STATE`, `action: crash` or `action: mark_dead`"),
        ),
        [(first, _), (second, span), ..] => findings.add(
            Diagnosis::new(Code::KeyConflict, *span, format!("`{first}` and `{second}` in one rule"))
                .help("a rule has one of `then`, `then_when` and `action`"),
        ),
        [_] => {}
    }
    if let (Some(_), Some(span)) = (fields.key("has_artifact"), fields.key("no_artifact")) {
        findings.add(
            Diagnosis::new(Code::KeyConflict, span, "`has_artifact` and `no_artifact` in one rule")
                .help("make them two rules"),
        );
    }
    if let Some(span) = fields.node("no_artifact").filter(|node| node.as_bool() == Some(false)).map(|node| node.span) {
        findings.add(
            Diagnosis::new(Code::NotAChoice, span, "`no_artifact` cannot be `false`")
                .help("leave it out: a rule without it applies whatever the artifact has"),
        );
    }
    let crashes = fields.text("action").is_some_and(|action| action.value == "crash");
    for key in ["stuck_after", "respawn"] {
        if let Some(span) = fields.key(key).filter(|_| !crashes) {
            findings.add(
                Diagnosis::new(Code::KeyConflict, span, format!("`{key}` goes only with `action: crash`"))
                    .help(format!("add `action: crash`, or remove `{key}`")),
            );
        }
    }
}
