//! Definitions for the tests of the drawings, built by hand, as the checker would make them.

use std::collections::BTreeMap;
use std::time::Duration;

use sluice_core::artifact::{Gate, Verdict, VerdictTest};
use sluice_core::expr;
use sluice_core::lifecycle::action::PlainAction;
use sluice_core::lifecycle::{
    AgentPermissions, AgentSpawn, ArtifactTest, ExitMonitoring, ExitReaction, ExitRule, HarnessChoice, Lifecycle,
    LifecycleState, LifecycleTransition, PlainHook, StateId, TransitionHook,
};
use sluice_core::name::{DefinitionName, FieldName, PromptName, Role, StateName, StepName};
use sluice_core::recipe::{
    FanOutItems, Join, LoopBack, OnExhausted, OnLimit, Recipe, RecipeDialect, Retry, Step, StepId, StepPrompt,
    StepWork, StepWorkspace, Trigger,
};
use sluice_core::text::{PlaceholderSyntax, Template};

/// `name`, or `name+` if it is terminal, or `name:prompt` if its agent can be started again.
pub(super) fn states(words: &str) -> Vec<LifecycleState> {
    words
        .split_whitespace()
        .map(|word| {
            let (name, prompt) = word.split_once(':').map_or((word, None), |(name, prompt)| (name, Some(prompt)));
            LifecycleState {
                name: StateName::new(name.trim_end_matches('+')),
                terminal: name.ends_with('+'),
                respawn_prompt: prompt.map(PromptName::new),
                enter_prompt: None,
                run: None,
            }
        })
        .collect()
}

/// A lifecycle of `FROM TO | GATE | GUARD | HOOKS` lines. The gate is `Title` or `Title PASS`.
pub(super) fn lifecycle(name: &str, state_words: &str, initial: &[u32], lines: &str) -> Lifecycle {
    let states = states(state_words);
    let id = |name: &str| StateId(states.iter().position(|state| state.name.as_str() == name).unwrap() as u32);
    let transitions = lines
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let parts: Vec<&str> = line.split('|').map(str::trim).chain(["", "", ""]).collect();
            let (from, to) = parts[0].split_once(' ').unwrap();
            LifecycleTransition {
                from: id(from),
                to: id(to),
                guard: (!parts[2].is_empty()).then(|| expr::parse(parts[2]).unwrap()),
                gate: gate(parts[1]),
                by: None,
                hooks: parts[3].split_whitespace().map(hook).collect(),
            }
        })
        .collect();
    Lifecycle {
        name: DefinitionName::new(name),
        version: 1,
        initial: initial.iter().map(|id| StateId(*id)).collect(),
        states,
        transitions,
        exits: ExitMonitoring { poll_interval: 30, rules: Vec::new() },
        prompts: BTreeMap::new(),
    }
}

fn gate(words: &str) -> Option<Gate> {
    let (title, verdict) = words.split_once(' ').unwrap_or((words, ""));
    let verdict = Verdict::read(verdict).map(|wanted| VerdictTest { wanted, strict: false });
    (!words.is_empty()).then(|| Gate { title: title.into(), filled: true, fields: vec![], verdict })
}

fn hook(word: &str) -> TransitionHook {
    let spawn = |prompt: &str, increment: Option<&str>| {
        TransitionHook::SpawnAgent(AgentSpawn {
            prompt: PromptName::new(prompt),
            harness: HarnessChoice::Task,
            permissions: AgentPermissions::Full,
            increment: increment.map(FieldName::new),
        })
    };
    let plain = |action| TransitionHook::Plain(PlainHook { action, texts: BTreeMap::new() });
    match word {
        "acquire" => TransitionHook::AcquireWorkspace,
        "release" => TransitionHook::ReleaseWorkspace,
        "kill" => TransitionHook::KillSession,
        "next" => plain(PlainAction::SpawnNext),
        "delete" => plain(PlainAction::DeleteRemoteBranch),
        "reviewer" => spawn("reviewer", Some("review_round")),
        prompt => spawn(prompt, None),
    }
}

pub(super) fn default_lifecycle() -> Lifecycle {
    let states = "pending clarification working:worker_respawn agent-review:reviewer reviewing stuck:stuck_fix done+ \
                  cancelled+";
    let mut lifecycle = lifecycle("default", states, &[0, 1, 3, 4], DEFAULT);
    let rule = |state: u32, artifact, reaction| ExitRule { state: StateId(state), artifact, reaction };
    let present = |words: &str| ArtifactTest::Present(gate(words).unwrap());
    let crash = || ExitReaction::Crash { stuck_after: Some(2), respawn: false };
    let clause = |guard: &str, to: u32| (expr::parse(guard).unwrap(), StateId(to));
    lifecycle.exits.rules = vec![
        rule(2, present("Handoff"), ExitReaction::Advance(StateId(3))),
        rule(2, ArtifactTest::Missing, crash()),
        rule(3, present("Review PASS"), ExitReaction::Advance(StateId(4))),
        rule(
            3,
            present("Review FAIL"),
            ExitReaction::Choose(vec![clause("review_round < 2", 2), clause("review_round >= 2", 5)]),
        ),
        rule(3, ArtifactTest::Missing, crash()),
        rule(1, ArtifactTest::Any, ExitReaction::MarkDead),
        rule(4, ArtifactTest::Any, ExitReaction::MarkDead),
        rule(5, ArtifactTest::Any, ExitReaction::MarkDead),
    ];
    lifecycle
}

const DEFAULT: &str = "
pending working | | | acquire worker
pending clarification | | | acquire clarification
pending cancelled
clarification working
clarification cancelled | | | kill release
working agent-review | Handoff | | kill reviewer
working clarification
working stuck
working cancelled | | | kill release
agent-review reviewing | Review PASS | | kill
agent-review working | Review FAIL | review_round < 2 | kill worker_fix
agent-review stuck | Review FAIL | review_round >= 2 | kill
agent-review cancelled | | | kill release
reviewing done | | | release delete next
reviewing cancelled | | | kill release
stuck working | | | stuck_fix
stuck agent-review | | | reviewer
stuck cancelled | | | kill release
";

/// The lifecycle of the persistent worker, which has one state and two transitions more.
pub(super) fn persistent_lifecycle() -> Lifecycle {
    lifecycle(
        "persistent",
        "pending planning clarification working agent-review reviewing stuck done+ cancelled+",
        &[0],
        "
pending planning | | | acquire worker
pending cancelled
planning working | Plan
planning clarification
planning cancelled | | | kill release
clarification planning
clarification cancelled | | | kill release
working agent-review | Handoff | | reviewer
working clarification
working stuck
working cancelled | | | kill release
agent-review reviewing | Review PASS | | kill
agent-review working | Review FAIL | review_round < 2 | kill
agent-review stuck | Review FAIL | review_round >= 2 | kill
agent-review cancelled | | | kill release
reviewing working
reviewing done | | | kill release delete next
reviewing cancelled | | | kill release
stuck reviewing
stuck cancelled | | | kill release
",
    )
}

pub(super) fn step(name: &str, role: &str, needs: &[u32]) -> Step {
    Step {
        name: StepName::new(name),
        title: None,
        role: Role::new(role),
        needs: needs.iter().map(|need| StepId(*need)).collect(),
        condition: None,
        work: StepWork::Agent { prompt: StepPrompt::Text(Template::literal("do it")) },
        output: None,
        timeout: None,
        retry: Retry { max: 0, backoff: Duration::ZERO, on: Vec::new() },
        loop_back: None,
        workspace: StepWorkspace::Run,
        join: Join::NoneFailed,
        always: false,
        harness: None,
        permissions: AgentPermissions::Full,
        acts_as_person: false,
    }
}

pub(super) fn when(step: Step, condition: &str) -> Step {
    Step { condition: Some(expr::parse(condition).unwrap()), ..step }
}

pub(super) fn back(step: Step, to: u32, max: u32) -> Step {
    Step { loop_back: Some(LoopBack { to: StepId(to), max, on_exhausted: OnExhausted::Fail }), ..step }
}

pub(super) fn recipe(name: &str, steps: Vec<Step>) -> Recipe {
    Recipe {
        name: DefinitionName::new(name),
        description: String::new(),
        version: "1".into(),
        dialect: RecipeDialect::Grimoire,
        trigger: Trigger::Manual,
        inputs: None,
        steps,
        max_parallel: 4,
        repeat: None,
        timeout: None,
        workspace: StepWorkspace::Run,
        on_complete: Vec::new(),
        on_fail: Vec::new(),
    }
}

pub(super) fn dev_task() -> Recipe {
    let steps = vec![
        step("plan", "planner", &[]),
        step("implement", "worker", &[0]),
        step("review", "reviewer", &[1]),
        back(when(step("fix", "worker", &[2]), "review.result == 'FAIL'"), 2, 3),
        when(step("pr", "any", &[2]), "review.result == 'PASS'"),
    ];
    Recipe { version: "1.0.0".into(), ..recipe("dev-task", steps) }
}

pub(super) fn verify_pipeline() -> Recipe {
    let names = ["elaborate", "strategize", "verify", "audit", "advocate", "criticize", "judge"];
    let needs: [&[u32]; 7] = [&[], &[0], &[1], &[2], &[3], &[3], &[4, 5]];
    let mut steps: Vec<Step> = names.iter().zip(needs).map(|(name, needs)| step(name, "any", needs)).collect();
    steps[4].title = Some("Argue for PASS".into());
    steps[5].title = Some("Argue for FAIL".into());
    recipe("verify-pipeline", steps)
}

/// A fork whose second branch alone feeds `e`.
pub(super) fn diamond() -> Recipe {
    let steps =
        vec![step("a", "any", &[]), step("b", "any", &[0]), step("c", "any", &[0]), step("d", "any", &[1, 2]), {
            step("e", "any", &[2])
        }];
    recipe("diamond", steps)
}

/// A bit of everything: a fan-out, an inner loop, joins, a long edge, and a step that always runs.
pub(super) fn release() -> Recipe {
    let mut steps = vec![
        step("list", "any", &[]),
        step("port", "worker", &[0]),
        step("docs", "writer", &[0]),
        step("polish", "writer", &[2]),
        when(step("merge", "any", &[1, 3]), "port.status == 'completed' && polish.result == 'done'"),
        step("cleanup", "any", &[0, 4]),
    ];
    steps[1].work = StepWork::ParallelAgents {
        items: FanOutItems::Variable(Template::read("${list.output}", PlaceholderSyntax::Dollar).text),
        prompt: StepPrompt::Text(Template::literal("port it")),
        max_concurrent: 4,
        on_failure: OnLimit::Block,
    };
    steps[3].work = StepWork::AgentLoop {
        prompt: StepPrompt::Text(Template::literal("polish")),
        arbiter: StepPrompt::Text(Template::literal("good?")),
        max_iterations: 3,
        on_max: OnLimit::Block,
    };
    steps[4].join = Join::AllCompleted;
    steps[5].always = true;
    steps[4] = back(steps[4].clone(), 0, 2);
    recipe("release", steps)
}
