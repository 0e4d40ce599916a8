//! Lifecycles: states, transitions with gates, guards and hooks, rules for ended agents, prompts.

use sluice_core::artifact::Verdict;
use sluice_core::findings::Findings;
use sluice_core::lifecycle::draft::{Clause, Draft, Gate, Hook, Reaction, Rule, Run, Spawn, State, Transition};
use sluice_core::lifecycle::{By, FieldValue, HarnessChoice, Permissions};
use sluice_core::problem::{Code, Problem};
use sluice_core::span::{At, Span, Text};

use super::fields::{Fields, named};
use super::sense::{empty, is_blank, told};
use crate::shape::{Field, Kind, Shape};
use crate::tree::{Entry, Node, Value};

/// The largest number a field or limit may have.
const MOST: i64 = 1_000_000;
const HARNESSES: [(&str, HarnessChoice); 2] = [("task", HarnessChoice::Task), ("review", HarnessChoice::Review)];
const PERMISSIONS: [(&str, Permissions); 2] = [("full", Permissions::Full), ("reduced", Permissions::Reduced)];
const VERDICTS: [(&str, Verdict); 2] = [("PASS", Verdict::Pass), ("FAIL", Verdict::Fail)];
const TAKERS: [(&str, By); 2] = [("agent", By::Agent), ("person", By::Person)];
const SPAWNS: &[&str] = &["spawn_agent", "spawn_reviewer"];

/// A whole file.
pub static LIFECYCLE: Shape = Shape::new(
    "a lifecycle",
    &[&[
        Field::required("name", Kind::Text, "the name that projects and tasks choose it by, in kebab-case"),
        Field::new("version", Kind::Integer(0, MOST), "the author's own version number"),
        Field::new("description", Kind::Text, "what it is for"),
        Field::required("states", Kind::Named(&Kind::Table(&STATE)), "the states, by name"),
        Field::required("transitions", Kind::List(&Kind::Table(&TRANSITION)), "the permitted moves"),
        Field::new("exit_monitoring", Kind::Table(&EXITS), "what happens when an agent's process ends by itself"),
        Field::new("prompts", Kind::Named(&Kind::Text), "what agents are told, by name"),
    ]],
);
static STATE: Shape = Shape::new(
    "a state",
    &[&[
        Field::new("terminal", Kind::Bool, "whether the task ends here"),
        Field::new("respawn_prompt", Kind::Text, "the prompt of an agent that is started here again"),
        Field::new("enter_prompt", Kind::Text, "the prompt of an agent that is started whenever the state is entered"),
        Field::new("run", Kind::Table(&RUN), "the run that is started whenever the state is entered"),
        Field::new("description", Kind::Text, "what it means"),
    ]],
);
static RUN: Shape = Shape::new(
    "a run of a state",
    &[&[
        Field::required("recipe", Kind::Text, "its recipe, by name; looked up when the run starts"),
        Field::new("inputs", Kind::Named(&Kind::Text), "what it is given, by name; may show the task's variables")
            .also(&["input", "with"]),
        Field::new("completed", Kind::Text, "the state that the task moves to when the run has completed"),
        Field::new("failed", Kind::Text, "the state that the task moves to when the run has failed"),
    ]],
);
static TRANSITION: Shape = Shape::new(
    "a transition",
    &[&[
        Field::required("from", Kind::Text, "the state it leaves"),
        Field::required("to", Kind::Text, "the state it leads to"),
        Field::new("gate", Kind::Table(&GATE), "what the task's artifact must have"),
        Field::new("when", Kind::Text, "a guard over the task's counters: `review_round < 2`").also(&[
            "condition",
            "if",
            "guard",
        ]),
        Field::new(
            "by",
            Kind::Choice(&["agent", "person"]),
            "who may take it; without it, agents take what has a gate or neither starts an agent nor ends the task",
        ),
        Field::new("hooks", Kind::List(&Kind::Table(&HOOK)), "what is done, in order").also(&["actions", "effects"]),
    ]],
);
static GATE: Shape = Shape::new(
    "a gate",
    &[&[
        Field::required("section", Kind::Text, "the heading in TASK.md: `## Handoff`"),
        Field::new("required", Kind::Bool, "whether the section must have content; true unless said otherwise"),
        Field::new("fields", Kind::List(&Kind::Text), "at least one of these stands there as `NAME: something`"),
        Field::new("verdict", Kind::ChoiceAnyCase(&["PASS", "FAIL"]), "the verdict that the section must give"),
        Field::new("strict", Kind::Bool, "whether the verdict must be the first line, as `Verdict: PASS`"),
    ]],
);
static HOOK: Shape = Shape::new(
    "a hook",
    &[&[
        Field::required("action", Kind::Choice(&ACTIONS), "what is done"),
        Field::required("prompt", Kind::Text, "the agent's prompt, by name").only(&["spawn_agent"]),
        Field::new("prompt", Kind::Text, "the reviewer's prompt, by name; `reviewer` unless said otherwise")
            .only(&["spawn_reviewer"]),
        Field::new("harness", Kind::Choice(&["task", "review"]), "which of the task's two harnesses").only(SPAWNS),
        Field::new("permissions", Kind::Choice(&["full", "reduced"]), "what the agent may do").only(SPAWNS),
        Field::new("increment", Kind::Text, "a counter that goes up before the agent starts").only(SPAWNS),
        Field::required("message", Kind::Text, "what a person is told").only(&["notify"]),
        Field::new("message", Kind::Text, "what the worker is told, in place of the engine's own words")
            .only(&["notify_worker"]),
        Field::new("start", Kind::Bool, "whether a worker is started where none is alive; true unless said otherwise")
            .only(&["notify_worker"]),
        Field::required("command", Kind::Text, "the command, run in the task's workspace").only(&["run_command"]),
        Field::required("field", Kind::Text, "the field that is set").only(&["set_field"]),
        Field::required("value", Kind::Either(&[Kind::Integer(-MOST, MOST), Kind::Text]), "what it is set to")
            .only(&["set_field"]),
    ]],
)
.tagged("action", None);
const ACTIONS: [&str; 15] = [
    "acquire_workspace",
    "release_workspace",
    "spawn_agent",
    "spawn_reviewer",
    "kill_session",
    "kill_reviewer",
    "notify_worker",
    "increment_review_round",
    "spawn_next",
    "push_branch",
    "create_pr",
    "delete_remote_branch",
    "notify",
    "run_command",
    "set_field",
];
static EXITS: Shape = Shape::new(
    "exit monitoring",
    &[&[
        Field::new("poll_interval", Kind::Integer(1, 86_400), "seconds between two looks, as a backstop"),
        Field::new("rules", Kind::List(&Kind::Table(&RULE)), "the first that matches is applied"),
    ]],
);
static RULE: Shape = Shape::new(
    "an exit rule",
    &[&[
        Field::required("status", Kind::Text, "the state it watches").also(&["state", "from"]),
        Field::new("has_artifact", Kind::Table(&GATE), "it applies if the artifact has this"),
        Field::new("no_artifact", Kind::Bool, "it applies if no `has_artifact` rule of this state does"),
        Field::new("then", Kind::Text, "the state that the task advances to").also(&["to"]),
        Field::new("then_when", Kind::List(&Kind::Table(&CLAUSE)), "the state it advances to, by guards"),
        Field::new("action", Kind::Choice(&["crash", "mark_dead"]), "what else can follow"),
        Field::new("stuck_after", Kind::Integer(1, MOST), "crashes after which the task is stuck"),
        Field::new("respawn", Kind::Bool, "start the agent again at once after a crash"),
    ]],
);
static CLAUSE: Shape = Shape::new(
    "a clause",
    &[&[
        Field::required("when", Kind::Text, "a guard over the task's counters"),
        Field::required("then", Kind::Text, "the state that the task advances to"),
    ]],
);

/// The draft that `node` says.
pub fn lower(node: &Node, findings: &mut Findings) -> Draft {
    let file = Fields::of(node);
    let exits = file.table("exit_monitoring");
    let states = file.table("states").map(Fields::entries).unwrap_or_default();
    let says_none = file.node("states").is_some_and(|node| matches!(&node.value, Value::Null | Value::Table(_)));
    if let Some(span) = file.key("states").filter(|_| says_none && states.is_empty()) {
        let message = "there are no states";
        findings.hole(Problem::new(Code::MissingKey, span, message).help("add at least one, and one that is terminal"));
    }
    let prompts = file.table("prompts").map(Fields::entries).unwrap_or_default();
    Draft {
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
fn prompt(entry: &Entry, findings: &mut Findings) -> Option<(At<String>, Text)> {
    let text = entry.value.as_text()?;
    if is_blank(text) {
        findings.add(empty(&entry.key.value, text).help("say what the agent is to do"));
    }
    Some((entry.key.clone(), text.clone()))
}

fn state(name: &At<String>, node: &Node, findings: &mut Findings) -> State {
    let fields = Fields::of(node);
    State {
        name: name.clone(),
        terminal: fields.flag("terminal").unwrap_or(false),
        respawn_prompt: fields.name("respawn_prompt"),
        enter_prompt: fields.name("enter_prompt"),
        run: fields.table("run").zip(fields.key("run")).and_then(|(run, key)| self::run(run, key, findings)),
    }
}

fn run(fields: Fields<'_>, key: Span, findings: &mut Findings) -> Option<Run> {
    let inputs = fields.table("inputs").map(Fields::entries).unwrap_or_default();
    Some(Run {
        span: key,
        recipe: named(told(fields, "recipe", findings)?),
        inputs: inputs.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.as_text()?.clone()))).collect(),
        completed: fields.name("completed"),
        failed: fields.name("failed"),
    })
}

fn transition(fields: Fields<'_>, findings: &mut Findings) -> Transition {
    Transition {
        span: fields.span(),
        from: fields.name("from"),
        to: fields.name("to"),
        gate: fields.table("gate").and_then(|gate| self::gate(gate, findings)),
        when: fields.text("when").cloned(),
        by: fields.choice("by", &TAKERS),
        hooks: fields.tables("hooks").filter_map(|entry| hook(entry, findings)).collect(),
    }
}

fn gate(fields: Fields<'_>, findings: &mut Findings) -> Option<Gate> {
    let verdict = fields.choice("verdict", &VERDICTS).zip(fields.text("verdict"));
    if let (None, Some(key)) = (&verdict, fields.key("strict").filter(|_| fields.key("verdict").is_none())) {
        findings.add(
            Problem::new(Code::KeyConflict, key, "`strict` without a `verdict`")
                .help("`strict` says how the verdict is written; add `verdict: PASS` or remove it"),
        );
    }
    Some(Gate {
        section: fields.name("section")?,
        required: fields.flag("required"),
        fields: fields.names("fields").unwrap_or_default(),
        verdict: verdict.map(|(verdict, text)| At::new(verdict, text.span)),
        strict: fields.flag("strict").unwrap_or(false),
    })
}

fn hook(fields: Fields<'_>, findings: &mut Findings) -> Option<At<Hook>> {
    let action = fields.text("action")?;
    let hook = match action.value.as_str() {
        "acquire_workspace" => Hook::AcquireWorkspace,
        "release_workspace" => Hook::ReleaseWorkspace,
        "spawn_agent" => {
            Hook::SpawnAgent(spawn(fields, fields.name("prompt")?, HarnessChoice::Task, Permissions::Full))
        }
        "spawn_reviewer" => {
            let prompt = fields.name("prompt").unwrap_or_else(|| At::new("reviewer".into(), action.span));
            Hook::SpawnReviewer(spawn(fields, prompt, HarnessChoice::Review, Permissions::Reduced))
        }
        "kill_session" => Hook::KillSession,
        "kill_reviewer" => Hook::KillReviewer,
        "notify_worker" => {
            Hook::NotifyWorker { message: fields.text("message").cloned(), start: fields.flag("start").unwrap_or(true) }
        }
        "increment_review_round" => Hook::IncrementReviewRound,
        "spawn_next" => Hook::SpawnNext,
        "push_branch" => Hook::PushBranch,
        "create_pr" => Hook::CreatePr,
        "delete_remote_branch" => Hook::DeleteRemoteBranch,
        "notify" => Hook::Notify(told(fields, "message", findings)?.clone()),
        "run_command" => Hook::RunCommand(told(fields, "command", findings)?.clone()),
        "set_field" => {
            let value = fields.node("value")?;
            Hook::SetField(fields.name("field")?, At::new(field_value(value)?, value.span))
        }
        _ => return None,
    };
    Some(At::new(hook, action.span))
}

fn field_value(node: &Node) -> Option<FieldValue> {
    match &node.value {
        Value::Integer(number) => Some(FieldValue::Number(*number)),
        Value::Text(text) => Some(FieldValue::Text(text.value.clone())),
        _ => None,
    }
}

fn spawn(fields: Fields<'_>, prompt: At<String>, harness: HarnessChoice, permissions: Permissions) -> Spawn {
    Spawn {
        prompt,
        harness: fields.choice("harness", &HARNESSES).unwrap_or(harness),
        permissions: fields.choice("permissions", &PERMISSIONS).unwrap_or(permissions),
        increment: fields.name("increment"),
    }
}

fn rule(fields: Fields<'_>, findings: &mut Findings) -> Option<Rule> {
    let status = fields.name("status")?;
    conflicts(fields, &status, findings);
    let reaction = reaction(fields)?;
    let has_artifact = fields.table("has_artifact").and_then(|gate| self::gate(gate, findings));
    let no_artifact = fields.key("no_artifact").filter(|_| fields.flag("no_artifact") == Some(true));
    Some(Rule { span: fields.span(), status, has_artifact, no_artifact, reaction })
}

fn reaction(fields: Fields<'_>) -> Option<Reaction> {
    if let Some(target) = fields.name("then") {
        return Some(Reaction::Then(target));
    }
    if let Some(key) = fields.key("then_when") {
        let clause = |clause: Fields<'_>| {
            let when: Text = clause.text("when")?.clone();
            Some(Clause { when, then: named(clause.text("then")?) })
        };
        // A clause that is not whole has been reported; without it the rest cannot be judged.
        let clauses: Option<Vec<Clause>> = fields.tables("then_when").map(clause).collect();
        return clauses.map(|clauses| Reaction::ThenWhen(At::new(clauses, key)));
    }
    match fields.text("action")?.value.as_str() {
        "crash" => Some(Reaction::Crash {
            stuck_after: fields.number("stuck_after"),
            respawn: fields.flag("respawn").unwrap_or(false),
        }),
        "mark_dead" => Some(Reaction::MarkDead),
        _ => None,
    }
}

/// Keys of a rule that exclude each other, or that are all missing.
fn conflicts(fields: Fields<'_>, status: &At<String>, findings: &mut Findings) {
    let reactions: Vec<_> =
        ["then", "then_when", "action"].into_iter().filter_map(|key| Some((key, fields.key(key)?))).collect();
    match reactions.as_slice() {
        [] => findings.hole(
            Problem::new(Code::MissingKey, status.span, "an exit rule needs a `then`, a `then_when` or an `action`")
                .help("say what follows: `then: STATE`, `action: crash` or `action: mark_dead`"),
        ),
        [(first, _), (second, span), ..] => findings.add(
            Problem::new(Code::KeyConflict, *span, format!("`{first}` and `{second}` in one rule"))
                .help("a rule has one of `then`, `then_when` and `action`"),
        ),
        [_] => {}
    }
    if let (Some(_), Some(span)) = (fields.key("has_artifact"), fields.key("no_artifact")) {
        findings.add(
            Problem::new(Code::KeyConflict, span, "`has_artifact` and `no_artifact` in one rule")
                .help("make them two rules"),
        );
    }
    if let Some(span) = fields.node("no_artifact").filter(|node| node.as_bool() == Some(false)).map(|node| node.span) {
        findings.add(
            Problem::new(Code::NotAChoice, span, "`no_artifact` cannot be `false`")
                .help("leave it out: a rule without it applies whatever the artifact has"),
        );
    }
    let crashes = fields.text("action").is_some_and(|action| action.value == "crash");
    for key in ["stuck_after", "respawn"] {
        if let Some(span) = fields.key(key).filter(|_| !crashes) {
            findings.add(
                Problem::new(Code::KeyConflict, span, format!("`{key}` goes only with `action: crash`"))
                    .help(format!("add `action: crash`, or remove `{key}`")),
            );
        }
    }
}
