//! The shapes of recipes: manifests, grimoires (the native format) and templates.
//!
//! All three take the same keys for what a recipe and a step can do; each has its own words for the few that its
//! first users know by another name.

use sluice_core::recipe::Dialect;

use crate::shape::{Field, Kind, Shape};

/// The largest number a limit may have.
const MOST: i64 = 1_000_000;
const AGENTS: &[&str] = &["agent", "agent-loop", "parallel-agents"];
const COMMANDS: &[&str] = &["script", "gate"];

/// A workflow manifest.
pub(super) static MANIFEST: Shape = Shape::new(
    "a manifest",
    &[
        &[
            Field::required("workflow", Kind::Table(&HEADER), "its name and what it is for"),
            Field::required("steps", Kind::List(&Kind::Table(&MANIFEST_STEP)), "the steps"),
        ],
        RUN,
    ],
);
static HEADER: Shape = Shape::new(
    "the table `workflow`",
    &[&[
        Field::required("name", Kind::Text, "the recipe's name, in kebab-case"),
        Field::new("description", Kind::Text, "what it is for"),
        Field::new("version", Kind::Either(&[Kind::Text, Kind::Integer(0, MOST)]), "the author's own version"),
    ]],
);
static MANIFEST_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", Kind::Text, "the step's name").also(&["name"]),
            Field::new("depends_on", Kind::List(&Kind::Text), "the steps that must have ended before")
                .also(&["needs", "after"]),
            Field::new("condition", Kind::Text, "whether it runs: `review.result == 'FAIL'`").also(&["when", "if"]),
            Field::new("max_retries", Kind::Integer(0, MOST), "how often it loops back or is tried again"),
            Field::new("loop_to", Kind::Text, "the step that runs again when this one has completed"),
            Field::new("description", Kind::Text, "what it is for"),
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
            Field::required("name", Kind::Text, "the recipe's name, in kebab-case"),
            Field::new("description", Kind::Text, "what it is for"),
            Field::new("version", Kind::Either(&[Kind::Text, Kind::Integer(0, MOST)]), "the author's own version"),
            Field::required(
                "steps",
                Kind::List(&Kind::Table(&GRIMOIRE_STEP)),
                "the steps; a sequence unless one has `needs`",
            ),
        ],
        RUN,
    ],
);
static GRIMOIRE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("name", Kind::Text, "the step's name").also(&["id"]),
            Field::new("needs", Kind::List(&Kind::Text), "the steps that must have ended before")
                .also(&["depends_on", "after"]),
            Field::new("when", Kind::Text, "whether it runs: `review.result == 'FAIL'`").also(&["condition", "if"]),
            Field::new("loop", Kind::Table(&LOOP), "a bounded way back to an earlier step").also(&["loop_to"]),
            Field::new("description", Kind::Text, "what it is for"),
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

/// A process template.
pub(super) static TEMPLATE: Shape = Shape::new(
    "a template",
    &[
        &[
            Field::required("template", Kind::Text, "the template's name, in kebab-case").also(&["name"]),
            Field::new("description", Kind::Text, "what it is for"),
            Field::new("version", Kind::Either(&[Kind::Integer(0, MOST), Kind::Text]), "the version of its schema"),
            Field::required("steps", Kind::List(&Kind::Table(&TEMPLATE_STEP)), "the steps"),
        ],
        RUN,
    ],
);
static TEMPLATE_STEP: Shape = Shape::new(
    "a step",
    &[
        &[
            Field::required("id", Kind::Text, "the step's name").also(&["name"]),
            Field::new("description", Kind::Text, "the instructions, for whoever does the step"),
            Field::new("needs", Kind::List(&Kind::Text), "the steps that must have ended before")
                .also(&["depends_on", "after"]),
            Field::new("when", Kind::Text, "whether it runs: `judge.result == 'PASS'`").also(&["condition", "if"]),
            Field::new("loop", Kind::Table(&LOOP), "a bounded way back to an earlier step").also(&["loop_to"]),
        ],
        WORK,
        STEP,
    ],
)
.tagged("type", Some("agent"));

/// A step of a recipe in `dialect`.
pub(super) fn step(dialect: Dialect) -> &'static Shape {
    match dialect {
        Dialect::Manifest => &MANIFEST_STEP,
        Dialect::Grimoire => &GRIMOIRE_STEP,
        Dialect::Template => &TEMPLATE_STEP,
    }
}

/// What every recipe can say about its runs.
static RUN: &[Field] = &[
    Field::new(
        "trigger",
        Kind::Either(&[Kind::Choice(&["manual"]), Kind::Table(&TRIGGER)]),
        "what starts it besides a person",
    ),
    Field::new("input", Kind::List(&Kind::Table(&INPUT)), "what it must be given"),
    Field::new("inputs", Kind::List(&Kind::Table(&INPUT)), "the same as `input`"),
    Field::new("max_parallel", Kind::Integer(1, 1000), "how many steps may run at once; 1 unless said otherwise"),
    Field::new("repeat", Kind::Table(&REPEAT), "start again when it has ended"),
    Field::new("timeout", Kind::Duration, "how long a run may take"),
    Field::new("on_complete", Kind::List(&Kind::Table(&RUN_HOOK)), "what is done when a run has completed"),
    Field::new("on_fail", Kind::List(&Kind::Table(&RUN_HOOK)), "what is done when a run has failed"),
];

/// What every step can say about how it is run.
static STEP: &[Field] = &[
    Field::new("title", Kind::Text, "its name for people"),
    Field::new("role", Kind::Text, "what its worker must be; `any` unless said otherwise"),
    Field::new("output", Kind::Text, "the variable that its output is stored under"),
    Field::new("timeout", Kind::Duration, "how long one attempt may take"),
    Field::new("retry", Kind::Table(&RETRY), "what follows a failed attempt"),
    Field::new("workspace", Kind::Choice(&["shared", "own"]), "whether it works in the run's worktree or in its own"),
    Field::new(
        "join",
        Kind::Choice(&["none_failed", "all_completed", "any_completed"]),
        "when its needs are satisfied",
    ),
    Field::new("always", Kind::Bool, "run even after a failure"),
    Field::new("harness", Kind::Text, "the agent program").only(AGENTS_AND_TASK),
    Field::new("permissions", Kind::Choice(&["full", "reduced"]), "what the agent may do").only(AGENTS),
    Field::new("acts_as", Kind::Choice(&["person"]), "its command may do what a person may").only(COMMANDS),
];
const AGENTS_AND_TASK: &[&str] = &["agent", "agent-loop", "parallel-agents", "task"];

/// What a step does, by its type.
static WORK: &[Field] = &[
    Field::new(
        "type",
        Kind::Choice(&["agent", "agent-loop", "parallel-agents", "script", "gate", "task"]),
        "what it does; `agent` unless said otherwise",
    ),
    Field::new("prompt", Kind::Text, "what the agent is told").only(AGENTS),
    Field::new("prompt_file", Kind::Text, "the file that says it, below the prompts' root").only(AGENTS),
    Field::required("arbiter_prompt", Kind::Text, "what the arbiter is told").only(&["agent-loop"]),
    Field::new("max_iterations", Kind::Integer(1, 1000), "how often at most; 3 unless said otherwise")
        .only(&["agent-loop"]),
    Field::new("on_max_iterations", Kind::Choice(&["block", "continue"]), "what follows then").only(&["agent-loop"]),
    Field::required(
        "for_each",
        Kind::Either(&[Kind::Text, Kind::List(&Kind::Any)]),
        "the list it goes over: `${plan.output}`",
    )
    .only(&["parallel-agents"]),
    Field::new("max_concurrent", Kind::Integer(1, 1000), "how many agents at once; 4 unless said otherwise")
        .only(&["parallel-agents"]),
    Field::new("on_failure", Kind::Choice(&["block", "continue"]), "what follows when some have failed")
        .only(&["parallel-agents"]),
    Field::required("command", Kind::Text, "what the shell runs").only(COMMANDS),
    Field::new("message", Kind::Text, "what a person is told when it fails").only(&["gate"]),
    Field::required("summary", Kind::Text, "what is wanted of the task").only(&["task"]),
    Field::new("branch", Kind::Text, "the task's branch").only(&["task"]),
    Field::new("workflow", Kind::Text, "the task's lifecycle").only(&["task"]),
    Field::new("project", Kind::Text, "the task's project").only(&["task"]),
    Field::new("context", Kind::Text, "what else its agent should know").only(&["task"]),
];
static TRIGGER: Shape = Shape::new(
    "a trigger",
    &[&[
        Field::required("event", Kind::Text, "the type of the event: `status.changed`"),
        Field::new("where", Kind::Text, "a condition on its data: `to == 'done'`").also(&["when", "if", "condition"]),
    ]],
);
static INPUT: Shape = Shape::new(
    "an input",
    &[&[
        Field::required("name", Kind::Text, "`${input.NAME}`"),
        Field::new(
            "type",
            Kind::Choice(&["string", "number", "integer", "boolean", "array", "object", "any"]),
            "what it must be; anything unless said otherwise",
        ),
        Field::new("required", Kind::Bool, "whether it must be given; so if it has no default"),
        Field::new("default", Kind::Any, "what it is otherwise"),
        Field::new("description", Kind::Text, "what it is for"),
    ]],
);
static REPEAT: Shape = Shape::new(
    "`repeat`",
    &[&[
        Field::new("every", Kind::Duration, "how long after the end; at once unless said otherwise"),
        Field::new("keep", Kind::Integer(1, 10_000), "how many ended runs are kept; 20 unless said otherwise"),
    ]],
);
static RUN_HOOK: Shape = Shape::new(
    "a hook",
    &[&[
        Field::required("action", Kind::Choice(&["notify", "run_command", "start"]), "what is done"),
        Field::required("message", Kind::Text, "what a person is told").only(&["notify"]),
        Field::required("command", Kind::Text, "what the shell runs").only(&["run_command"]),
        Field::required("recipe", Kind::Text, "the recipe that is started").only(&["start"]),
    ]],
)
.tagged("action", None);
static RETRY: Shape = Shape::new(
    "`retry`",
    &[&[
        Field::required("max", Kind::Integer(0, 1000), "how often at most"),
        Field::new("backoff", Kind::Duration, "how long before the first; doubled each time; 1s unless said otherwise"),
        Field::new(
            "on",
            Kind::List(&Kind::Choice(&["failed", "timeout", "crashed"])),
            "after which failures; all unless said otherwise",
        ),
    ]],
);
static LOOP: Shape = Shape::new(
    "a loop",
    &[&[
        Field::required("to", Kind::Text, "the step that runs again when this one has completed"),
        Field::required("max", Kind::Integer(1, MOST), "how often at most"),
        Field::new("on_exhausted", Kind::Choice(&["fail", "hold"]), "what follows then; `fail` unless said otherwise"),
    ]],
);
