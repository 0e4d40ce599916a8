//! The shapes of recipes: manifests, grimoires (the native format) and templates.
//!
//! All three take the same keys for what a recipe and a step can do; each has its own words for the few that its
//! first users know by another name.

use sluice_core::name::RESERVED;
use sluice_core::recipe::RecipeDialect;

use crate::shape::FieldForm::{self, Filled, Kebab, Name, Not, NotEmpty};
use crate::shape::FieldKind::{Any, Bool, Choice, Duration, Either, Integer, List, Table, Text};
use crate::shape::{Field, Shape};

const LARGEST_LIMIT: i64 = 1_000_000;
const AGENTS: &[&str] = &["agent", "agent-loop", "parallel-agents"];
/// A name that conditions and texts can read.
const VARIABLE: &[FieldForm] = &[Name, Not(&RESERVED)];
const COMMANDS: &[&str] = &["script", "gate"];
/// In the run's worktree, in one of its own, in a scratch folder, in the checkout; `shared` is an older word for `run`.
const WORKSPACES: &[&str] = &["run", "own", "none", "here", "shared"];
const DESCRIPTION: Field = Field::new("description", Text, "what it is for");
const VERSION: Field = Field::new("version", Either(&[Text, Integer(0, LARGEST_LIMIT)]), "the author's own version");
const NEEDS: Field = Field::new("needs", List(&Text), "the steps that must have ended before")
    .form(&[Name])
    .also(&["depends_on", "after"]);
const WAY_BACK: Field = Field::new("loop", Table(&LOOP), "a bounded way back to an earlier step").also(&["loop_to"]);

pub(super) static MANIFEST: Shape = Shape::new(
    "a manifest",
    &[
        &[
            Field::required("workflow", Table(&HEADER), "its name and what it is for"),
            Field::required("steps", List(&Table(&MANIFEST_STEP)), "the steps").form(&[NotEmpty]),
        ],
        RUN,
    ],
);
static HEADER: Shape = Shape::new(
    "the table `workflow`",
    &[&[Field::required("name", Text, "the recipe's name, in kebab-case").form(&[Kebab]), DESCRIPTION, VERSION]],
);
static MANIFEST_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", Text, "the step's name").form(VARIABLE).also(&["name"]),
            Field::new("depends_on", List(&Text), "the steps that must have ended before")
                .form(&[Name])
                .also(&["needs", "after"]),
            Field::new("condition", Text, "whether it runs: `review.result == 'FAIL'`")
                .form(&[Filled])
                .also(&["when", "if"]),
            Field::new("max_retries", Integer(0, LARGEST_LIMIT), "how often it loops back or is tried again"),
            Field::new("loop_to", Text, "the step that runs again when this one has completed").form(&[Name]),
            DESCRIPTION,
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

/// A grimoire, and the native format, which is the same.
pub(super) static GRIMOIRE: Shape = Shape::new(
    "a recipe",
    &[
        &[
            Field::required("name", Text, "the recipe's name, in kebab-case").form(&[Kebab]),
            DESCRIPTION,
            VERSION,
            Field::required("steps", List(&Table(&GRIMOIRE_STEP)), "the steps; a sequence unless one has `needs`")
                .form(&[NotEmpty]),
        ],
        RUN,
    ],
);
static GRIMOIRE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("name", Text, "the step's name").form(VARIABLE).also(&["id"]),
            NEEDS,
            Field::new("when", Text, "whether it runs: `review.result == 'FAIL'`")
                .form(&[Filled])
                .also(&["condition", "if"]),
            WAY_BACK,
            DESCRIPTION,
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

pub(super) static TEMPLATE: Shape = Shape::new(
    "a template",
    &[
        &[
            Field::required("template", Text, "the template's name, in kebab-case").form(&[Kebab]).also(&["name"]),
            DESCRIPTION,
            Field::new("version", Either(&[Integer(0, LARGEST_LIMIT), Text]), "the version of its schema"),
            Field::required("steps", List(&Table(&TEMPLATE_STEP)), "the steps").form(&[NotEmpty]),
        ],
        RUN,
    ],
);
static TEMPLATE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", Text, "the step's name").form(VARIABLE).also(&["name"]),
            Field::new("description", Text, "the instructions, for the person or agent that does the step"),
            NEEDS,
            Field::new("when", Text, "whether it runs: `judge.result == 'PASS'`")
                .form(&[Filled])
                .also(&["condition", "if"]),
            WAY_BACK,
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

pub(super) fn step(dialect: RecipeDialect) -> &'static Shape {
    match dialect {
        RecipeDialect::Manifest => &MANIFEST_STEP,
        RecipeDialect::Grimoire => &GRIMOIRE_STEP,
        RecipeDialect::Template => &TEMPLATE_STEP,
    }
}

static RUN: &[Field] = &[
    Field::new("trigger", Either(&[Choice(&["manual"]), Table(&TRIGGER)]), "what starts it besides a person"),
    Field::new("input", List(&Table(&INPUT)), "what it must be given"),
    Field::new("inputs", List(&Table(&INPUT)), "the same as `input`"),
    Field::new("max_parallel", Integer(1, 1000), "how many steps may run at once; 1 unless said otherwise"),
    Field::new("repeat", Table(&REPEAT), "start again when it has ended"),
    Field::new("timeout", Duration, "how long a run may take").form(&[NotEmpty]),
    Field::new("workspace", Choice(WORKSPACES), "where its steps work; `run` unless said otherwise"),
    Field::new("on_complete", List(&Table(&RUN_HOOK)), "what is done when a run has completed"),
    Field::new("on_fail", List(&Table(&RUN_HOOK)), "what is done when a run has failed"),
];

static STEP: &[Field] = &[
    Field::new("title", Text, "its name for people"),
    Field::new("role", Text, "what its worker must be; `any` unless said otherwise").form(&[Name]),
    Field::new("output", Text, "the variable that its output is stored under").form(VARIABLE),
    Field::new("timeout", Duration, "how long one attempt may take").form(&[NotEmpty]),
    Field::new("retry", Table(&RETRY), "what follows a failed attempt"),
    Field::new("workspace", Choice(WORKSPACES), "where it works; where the recipe says unless it says otherwise"),
    Field::new("join", Choice(&["none_failed", "all_completed", "any_completed"]), "when its needs are satisfied"),
    Field::new("always", Bool, "run even after a failure"),
    Field::new("harness", Text, "the agent program").only(AGENTS_AND_TASK),
    Field::new("permissions", Choice(&["full", "reduced"]), "what the agent may do").only(AGENTS),
    Field::new("acts_as", Choice(&["person"]), "its command may do what a person may").only(COMMANDS),
];
const AGENTS_AND_TASK: &[&str] = &["agent", "agent-loop", "parallel-agents", "task"];

static WORK: &[Field] = &[
    Field::new(
        "type",
        Choice(&["agent", "agent-loop", "parallel-agents", "script", "gate", "task"]),
        "what it does; `agent` unless said otherwise",
    ),
    Field::new("prompt", Text, "what the agent is told").form(&[Filled]).only(AGENTS),
    Field::new("prompt_file", Text, "the file that says it, below the prompts' root").form(&[Filled]).only(AGENTS),
    Field::required("arbiter_prompt", Text, "what the arbiter is told").form(&[Filled]).only(&["agent-loop"]),
    Field::new("max_iterations", Integer(1, 1000), "how often at most; 3 unless said otherwise").only(&["agent-loop"]),
    Field::new("on_max_iterations", Choice(&["block", "continue"]), "what follows then").only(&["agent-loop"]),
    Field::required("for_each", Either(&[Text, List(&Any)]), "the list it goes over: `${plan.output}`")
        .only(&["parallel-agents"]),
    Field::new("max_concurrent", Integer(1, 1000), "how many agents at once; 4 unless said otherwise")
        .only(&["parallel-agents"]),
    Field::new("on_failure", Choice(&["block", "continue"]), "what follows when some have failed")
        .only(&["parallel-agents"]),
    Field::required("command", Text, "what the shell runs").form(&[Filled]).only(COMMANDS),
    Field::new("message", Text, "what a person is told when it fails").only(&["gate"]),
    Field::new("answer_timeout", Duration, "how long a person has to answer; without end unless said otherwise")
        .form(&[NotEmpty])
        .only(&["gate"]),
    Field::new("default", Choice(&["retry", "skip", "abort"]), "the answer that is taken then").only(&["gate"]),
    Field::required("summary", Text, "what is wanted of the task").form(&[Filled]).only(&["task"]),
    Field::new("branch", Text, "the task's branch").only(&["task"]),
    Field::new("workflow", Text, "the task's lifecycle").only(&["task"]),
    Field::new("project", Text, "the task's project").only(&["task"]),
    Field::new("context", Text, "what else its agent should know").only(&["task"]),
];
static TRIGGER: Shape = Shape::new(
    "a trigger",
    &[&[
        Field::required("event", Text, "the type of the event: `status.changed`"),
        Field::new("where", Text, "a condition on its data: `to == 'done'`").also(&["when", "if", "condition"]),
    ]],
);
static INPUT: Shape = Shape::new(
    "an input",
    &[&[
        Field::required("name", Text, "`${input.NAME}`").form(&[Name]),
        Field::new(
            "type",
            Choice(&["string", "number", "integer", "boolean", "array", "object", "any"]),
            "what it must be; anything unless said otherwise",
        ),
        Field::new("required", Bool, "whether it must be given; so if it has no default"),
        Field::new("default", Any, "what it is otherwise"),
        DESCRIPTION,
    ]],
);
static REPEAT: Shape = Shape::new(
    "`repeat`",
    &[&[
        Field::new("every", Duration, "how long after the end; at once unless said otherwise"),
        Field::new("keep", Integer(1, 10_000), "how many ended runs are kept; 20 unless said otherwise"),
    ]],
);
static RUN_HOOK: Shape = Shape::new(
    "a hook",
    &[&[
        Field::required("action", Choice(&["notify", "run_command", "start"]), "what is done"),
        Field::required("message", Text, "what a person is told").form(&[Filled]).only(&["notify"]),
        Field::required("command", Text, "what the shell runs").form(&[Filled]).only(&["run_command"]),
        Field::required("recipe", Text, "the recipe that is started").only(&["start"]),
    ]],
)
.tagged("action", None);
static RETRY: Shape = Shape::new(
    "`retry`",
    &[&[
        Field::required("max", Integer(0, 1000), "how often at most"),
        Field::new("backoff", Duration, "how long before the first; doubled each time; 1s unless said otherwise"),
        Field::new(
            "on",
            List(&Choice(&["failed", "timeout", "crashed"])),
            "after which failures; all unless said otherwise",
        ),
    ]],
);
static LOOP: Shape = Shape::new(
    "a loop",
    &[&[
        Field::required("to", Text, "the step that runs again when this one has completed").form(&[Name]),
        Field::required("max", Integer(1, LARGEST_LIMIT), "how often at most"),
        Field::new("on_exhausted", Choice(&["fail", "hold"]), "what follows then; `fail` unless said otherwise"),
    ]],
);
