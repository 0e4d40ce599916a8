//! The shapes of recipes: manifests, grimoires (the native format) and templates.
//!
//! All three take the same keys for what a recipe and a step can do; each has its own words for the few that its
//! first users know by another name.

use sluice_core::name::RESERVED;
use sluice_core::recipe::RecipeDialect;

use crate::shape::{Field, FieldForm, FieldKind, Shape};

/// The largest number a limit may have.
const MOST: i64 = 1_000_000;
const AGENTS: &[&str] = &["agent", "agent-loop", "parallel-agents"];
/// A name that conditions and texts can read.
const VARIABLE: &[FieldForm] = &[FieldForm::Name, FieldForm::Not(&RESERVED)];
const COMMANDS: &[&str] = &["script", "gate"];

pub(super) static MANIFEST: Shape = Shape::new(
    "a manifest",
    &[
        &[
            Field::required("workflow", FieldKind::Table(&HEADER), "its name and what it is for"),
            Field::required("steps", FieldKind::List(&FieldKind::Table(&MANIFEST_STEP)), "the steps")
                .form(&[FieldForm::NotEmpty]),
        ],
        RUN,
    ],
);
static HEADER: Shape = Shape::new(
    "the table `workflow`",
    &[&[
        Field::required("name", FieldKind::Text, "the recipe's name, in kebab-case").form(&[FieldForm::Kebab]),
        Field::new("description", FieldKind::Text, "what it is for"),
        Field::new(
            "version",
            FieldKind::Either(&[FieldKind::Text, FieldKind::Integer(0, MOST)]),
            "the author's own version",
        ),
    ]],
);
static MANIFEST_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", FieldKind::Text, "the step's name").form(VARIABLE).also(&["name"]),
            Field::new("depends_on", FieldKind::List(&FieldKind::Text), "the steps that must have ended before")
                .form(&[FieldForm::Name])
                .also(&["needs", "after"]),
            Field::new("condition", FieldKind::Text, "whether it runs: `review.result == 'FAIL'`")
                .form(&[FieldForm::Filled])
                .also(&["when", "if"]),
            Field::new("max_retries", FieldKind::Integer(0, MOST), "how often it loops back or is tried again"),
            Field::new("loop_to", FieldKind::Text, "the step that runs again when this one has completed")
                .form(&[FieldForm::Name]),
            Field::new("description", FieldKind::Text, "what it is for"),
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
            Field::required("name", FieldKind::Text, "the recipe's name, in kebab-case").form(&[FieldForm::Kebab]),
            Field::new("description", FieldKind::Text, "what it is for"),
            Field::new(
                "version",
                FieldKind::Either(&[FieldKind::Text, FieldKind::Integer(0, MOST)]),
                "the author's own version",
            ),
            Field::required(
                "steps",
                FieldKind::List(&FieldKind::Table(&GRIMOIRE_STEP)),
                "the steps; a sequence unless one has `needs`",
            )
            .form(&[FieldForm::NotEmpty]),
        ],
        RUN,
    ],
);
static GRIMOIRE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("name", FieldKind::Text, "the step's name").form(VARIABLE).also(&["id"]),
            Field::new("needs", FieldKind::List(&FieldKind::Text), "the steps that must have ended before")
                .form(&[FieldForm::Name])
                .also(&["depends_on", "after"]),
            Field::new("when", FieldKind::Text, "whether it runs: `review.result == 'FAIL'`")
                .form(&[FieldForm::Filled])
                .also(&["condition", "if"]),
            Field::new("loop", FieldKind::Table(&LOOP), "a bounded way back to an earlier step").also(&["loop_to"]),
            Field::new("description", FieldKind::Text, "what it is for"),
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
            Field::required("template", FieldKind::Text, "the template's name, in kebab-case")
                .form(&[FieldForm::Kebab])
                .also(&["name"]),
            Field::new("description", FieldKind::Text, "what it is for"),
            Field::new(
                "version",
                FieldKind::Either(&[FieldKind::Integer(0, MOST), FieldKind::Text]),
                "the version of its schema",
            ),
            Field::required("steps", FieldKind::List(&FieldKind::Table(&TEMPLATE_STEP)), "the steps")
                .form(&[FieldForm::NotEmpty]),
        ],
        RUN,
    ],
);
static TEMPLATE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", FieldKind::Text, "the step's name").form(VARIABLE).also(&["name"]),
            Field::new("description", FieldKind::Text, "the instructions, for the person or agent that does the step"),
            Field::new("needs", FieldKind::List(&FieldKind::Text), "the steps that must have ended before")
                .form(&[FieldForm::Name])
                .also(&["depends_on", "after"]),
            Field::new("when", FieldKind::Text, "whether it runs: `judge.result == 'PASS'`")
                .form(&[FieldForm::Filled])
                .also(&["condition", "if"]),
            Field::new("loop", FieldKind::Table(&LOOP), "a bounded way back to an earlier step").also(&["loop_to"]),
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

/// A step of a recipe in `dialect`.
pub(super) fn step(dialect: RecipeDialect) -> &'static Shape {
    match dialect {
        RecipeDialect::Manifest => &MANIFEST_STEP,
        RecipeDialect::Grimoire => &GRIMOIRE_STEP,
        RecipeDialect::Template => &TEMPLATE_STEP,
    }
}

/// What every recipe can say about its runs.
static RUN: &[Field] = &[
    Field::new(
        "trigger",
        FieldKind::Either(&[FieldKind::Choice(&["manual"]), FieldKind::Table(&TRIGGER)]),
        "what starts it besides a person",
    ),
    Field::new("input", FieldKind::List(&FieldKind::Table(&INPUT)), "what it must be given"),
    Field::new("inputs", FieldKind::List(&FieldKind::Table(&INPUT)), "the same as `input`"),
    Field::new("max_parallel", FieldKind::Integer(1, 1000), "how many steps may run at once; 1 unless said otherwise"),
    Field::new("repeat", FieldKind::Table(&REPEAT), "start again when it has ended"),
    Field::new("timeout", FieldKind::Duration, "how long a run may take").form(&[FieldForm::NotEmpty]),
    Field::new("on_complete", FieldKind::List(&FieldKind::Table(&RUN_HOOK)), "what is done when a run has completed"),
    Field::new("on_fail", FieldKind::List(&FieldKind::Table(&RUN_HOOK)), "what is done when a run has failed"),
];

/// What every step can say about how it is run.
static STEP: &[Field] = &[
    Field::new("title", FieldKind::Text, "its name for people"),
    Field::new("role", FieldKind::Text, "what its worker must be; `any` unless said otherwise")
        .form(&[FieldForm::Name]),
    Field::new("output", FieldKind::Text, "the variable that its output is stored under").form(VARIABLE),
    Field::new("timeout", FieldKind::Duration, "how long one attempt may take").form(&[FieldForm::NotEmpty]),
    Field::new("retry", FieldKind::Table(&RETRY), "what follows a failed attempt"),
    Field::new(
        "workspace",
        FieldKind::Choice(&["shared", "own"]),
        "whether it works in the run's worktree or in its own",
    ),
    Field::new(
        "join",
        FieldKind::Choice(&["none_failed", "all_completed", "any_completed"]),
        "when its needs are satisfied",
    ),
    Field::new("always", FieldKind::Bool, "run even after a failure"),
    Field::new("harness", FieldKind::Text, "the agent program").only(AGENTS_AND_TASK),
    Field::new("permissions", FieldKind::Choice(&["full", "reduced"]), "what the agent may do").only(AGENTS),
    Field::new("acts_as", FieldKind::Choice(&["person"]), "its command may do what a person may").only(COMMANDS),
];
const AGENTS_AND_TASK: &[&str] = &["agent", "agent-loop", "parallel-agents", "task"];

/// What a step does, by its type.
static WORK: &[Field] = &[
    Field::new(
        "type",
        FieldKind::Choice(&["agent", "agent-loop", "parallel-agents", "script", "gate", "task"]),
        "what it does; `agent` unless said otherwise",
    ),
    Field::new("prompt", FieldKind::Text, "what the agent is told").form(&[FieldForm::Filled]).only(AGENTS),
    Field::new("prompt_file", FieldKind::Text, "the file that says it, below the prompts' root")
        .form(&[FieldForm::Filled])
        .only(AGENTS),
    Field::required("arbiter_prompt", FieldKind::Text, "what the arbiter is told")
        .form(&[FieldForm::Filled])
        .only(&["agent-loop"]),
    Field::new("max_iterations", FieldKind::Integer(1, 1000), "how often at most; 3 unless said otherwise")
        .only(&["agent-loop"]),
    Field::new("on_max_iterations", FieldKind::Choice(&["block", "continue"]), "what follows then")
        .only(&["agent-loop"]),
    Field::required(
        "for_each",
        FieldKind::Either(&[FieldKind::Text, FieldKind::List(&FieldKind::Any)]),
        "the list it goes over: `${plan.output}`",
    )
    .only(&["parallel-agents"]),
    Field::new("max_concurrent", FieldKind::Integer(1, 1000), "how many agents at once; 4 unless said otherwise")
        .only(&["parallel-agents"]),
    Field::new("on_failure", FieldKind::Choice(&["block", "continue"]), "what follows when some have failed")
        .only(&["parallel-agents"]),
    Field::required("command", FieldKind::Text, "what the shell runs").form(&[FieldForm::Filled]).only(COMMANDS),
    Field::new("message", FieldKind::Text, "what a person is told when it fails").only(&["gate"]),
    Field::required("summary", FieldKind::Text, "what is wanted of the task")
        .form(&[FieldForm::Filled])
        .only(&["task"]),
    Field::new("branch", FieldKind::Text, "the task's branch").only(&["task"]),
    Field::new("workflow", FieldKind::Text, "the task's lifecycle").only(&["task"]),
    Field::new("project", FieldKind::Text, "the task's project").only(&["task"]),
    Field::new("context", FieldKind::Text, "what else its agent should know").only(&["task"]),
];
static TRIGGER: Shape = Shape::new(
    "a trigger",
    &[&[
        Field::required("event", FieldKind::Text, "the type of the event: `status.changed`"),
        Field::new("where", FieldKind::Text, "a condition on its data: `to == 'done'`").also(&[
            "when",
            "if",
            "condition",
        ]),
    ]],
);
static INPUT: Shape = Shape::new(
    "an input",
    &[&[
        Field::required("name", FieldKind::Text, "`${input.NAME}`").form(&[FieldForm::Name]),
        Field::new(
            "type",
            FieldKind::Choice(&["string", "number", "integer", "boolean", "array", "object", "any"]),
            "what it must be; anything unless said otherwise",
        ),
        Field::new("required", FieldKind::Bool, "whether it must be given; so if it has no default"),
        Field::new("default", FieldKind::Any, "what it is otherwise"),
        Field::new("description", FieldKind::Text, "what it is for"),
    ]],
);
static REPEAT: Shape = Shape::new(
    "`repeat`",
    &[&[
        Field::new("every", FieldKind::Duration, "how long after the end; at once unless said otherwise"),
        Field::new("keep", FieldKind::Integer(1, 10_000), "how many ended runs are kept; 20 unless said otherwise"),
    ]],
);
static RUN_HOOK: Shape = Shape::new(
    "a hook",
    &[&[
        Field::required("action", FieldKind::Choice(&["notify", "run_command", "start"]), "what is done"),
        Field::required("message", FieldKind::Text, "what a person is told")
            .form(&[FieldForm::Filled])
            .only(&["notify"]),
        Field::required("command", FieldKind::Text, "what the shell runs")
            .form(&[FieldForm::Filled])
            .only(&["run_command"]),
        Field::required("recipe", FieldKind::Text, "the recipe that is started").only(&["start"]),
    ]],
)
.tagged("action", None);
static RETRY: Shape = Shape::new(
    "`retry`",
    &[&[
        Field::required("max", FieldKind::Integer(0, 1000), "how often at most"),
        Field::new(
            "backoff",
            FieldKind::Duration,
            "how long before the first; doubled each time; 1s unless said otherwise",
        ),
        Field::new(
            "on",
            FieldKind::List(&FieldKind::Choice(&["failed", "timeout", "crashed"])),
            "after which failures; all unless said otherwise",
        ),
    ]],
);
static LOOP: Shape = Shape::new(
    "a loop",
    &[&[
        Field::required("to", FieldKind::Text, "the step that runs again when this one has completed")
            .form(&[FieldForm::Name]),
        Field::required("max", FieldKind::Integer(1, MOST), "how often at most"),
        Field::new(
            "on_exhausted",
            FieldKind::Choice(&["fail", "hold"]),
            "what follows then; `fail` unless said otherwise",
        ),
    ]],
);
