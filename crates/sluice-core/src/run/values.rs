//! The values that texts and conditions of a run read.

use super::effect::{AttemptPart, RunScript};
use super::event::{Answerer, StepFailure, StepOutcome};
use super::pending::RunPending;
use super::plan::RunPlan;
use super::record::RunRecord;
use super::state::{AgentQuestion, RunState, RunTurn};
use crate::expr::{Expr, ExprValue, Number, ValuePath};
use crate::machine::environment;
use crate::recipe::{Data, FailureKind, StepId, StepPrompt, StepWorkspace};
use crate::text::{ShellCommand, Template};

/// The longest context that an agent is given, in bytes. What is left out is said.
const CONTEXT_LIMIT: usize = 64 * 1024;

/// Whether a variable is the folder that a run works in.
pub fn is_folder(path: &ValuePath) -> bool {
    match (path.head(), path.tail()) {
        ("worktree_path", []) => true,
        ("run", [field]) => field == "workspace",
        _ => false,
    }
}

/// Values that exist only where a text stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Locals {
    /// `${item}` and `${index}` of a fan-out.
    pub(super) item: Option<(Data, u32)>,
    /// `${iteration}` and `${history}` of a loop of agent and arbiter.
    pub(super) turn: Option<(u32, String)>,
    /// `${output}`: what the arbiter judges.
    pub(super) output: Option<Data>,
    /// Where a hook of the run works, which is no step.
    pub(super) workspace: Option<StepWorkspace>,
}

impl RunPending<'_> {
    /// Whether a condition holds for `reader` now.
    pub(super) fn holds(&self, condition: &Expr, reader: StepId) -> bool {
        condition.holds(&|path| self.value(path, reader, &Locals::default()).and_then(|data| comparable(&data)))
    }

    /// Fills a text for `reader`; a value that is not there is why it cannot be done.
    pub(super) fn fill(&self, text: &Template, reader: StepId, locals: &Locals) -> Result<String, StepFailure> {
        text.fill(&|path| self.value(path, reader, locals).map(|data| data.to_text())).map_err(missing)
    }

    /// Fills a prompt; a prompt file that was missing when the recipe was read is an error too. With it, where the folder of
    /// a run stands that is done elsewhere.
    pub(super) fn prompt(
        &self,
        prompt: &StepPrompt,
        reader: StepId,
        locals: &Locals,
    ) -> Result<(String, Vec<usize>), StepFailure> {
        let text = match prompt {
            StepPrompt::Text(text) | StepPrompt::File { content: Some(text), .. } => text,
            StepPrompt::File { path, content: None } => return Err(StepFailure::Undefined(path.clone())),
        };
        let is_elsewhere = !self.folder(reader, locals).starts_with('/');
        let value = |path: &ValuePath| self.value(path, reader, locals).map(|data| data.to_text());
        let is_asked_for = |path: &ValuePath| is_elsewhere && is_folder(path);
        let (filled, folder_at) = text.fill_telling(&value, &is_asked_for).map_err(missing)?;
        let section = |title: &str, texts: &[String]| match texts.is_empty() {
            true => String::new(),
            false => format!("\n\n## {title}\n\n{}\n", texts.join("\n\n")),
        };
        let state = self.step(reader);
        // An item is told what it asked itself; the turns of one agent are told what any of them asked.
        let own = |asked: &&AgentQuestion| {
            locals.item.as_ref().is_none_or(|(_, item)| asked.part == AttemptPart::Item(*item))
        };
        let answers: Vec<String> = state.asked.iter().filter(own).filter_map(told).collect();
        let (guidance, answers) = (section("Guidance", &state.guidance), section("Answers", &answers));
        Ok((format!("{filled}{guidance}{answers}"), folder_at))
    }

    /// A command with the values that its environment carries, if they are there and it can.
    pub(super) fn script(
        &self,
        command: &ShellCommand,
        reader: StepId,
        locals: &Locals,
    ) -> Result<RunScript, StepFailure> {
        let value = |(_, path): &(String, ValuePath)| {
            let data = self.value(path, reader, locals).ok_or_else(|| missing(path.clone()))?;
            Ok(data.to_text())
        };
        let values = command.environment.iter().map(value).collect::<Result<_, _>>()?;
        let environment = environment::carried(command, values)
            .map_err(|error| StepFailure::Attempt { kind: FailureKind::Failed, error })?;
        Ok(RunScript { script: command.script.clone(), environment })
    }

    /// The value of `path` for `reader`, if there is one.
    pub(super) fn value(&self, path: &ValuePath, reader: StepId, locals: &Locals) -> Option<Data> {
        let (head, tail) = (path.head(), path.tail());
        match (head, tail) {
            ("item", tail) if locals.item.is_some() => return locals.item.as_ref()?.0.at(tail).cloned(),
            ("index", []) if locals.item.is_some() => return Some(Data::Number(locals.item.as_ref()?.1.to_string())),
            ("iteration", []) if locals.turn.is_some() => {
                return Some(Data::Number(locals.turn.as_ref()?.0.to_string()));
            }
            ("history", []) if locals.turn.is_some() => return Some(Data::Text(locals.turn.as_ref()?.1.clone())),
            ("output", tail) if locals.output.is_some() => return locals.output.as_ref()?.at(tail).cloned(),
            ("input", [name, rest @ ..]) => {
                return self.base.given.inputs.iter().find(|(key, _)| key == name)?.1.at(rest).cloned();
            }
            ("run", [field]) => return self.about_the_run(field, reader, locals),
            ("mission_prompt", []) => return self.about_the_run("prompt", reader, locals),
            ("context", []) => return self.about_the_run("context", reader, locals),
            ("worktree_path", []) => return self.about_the_run("workspace", reader, locals),
            _ => {}
        }
        self.step_field(head, tail).or_else(|| self.stored(head)?.output.at(tail).cloned())
    }

    fn about_the_run(&self, field: &str, reader: StepId, locals: &Locals) -> Option<Data> {
        let given = &self.base.given;
        match field {
            "id" => Some(Data::Text(given.id.to_string())),
            "prompt" => Some(Data::Text(given.prompt.clone())),
            "workspace" => Some(Data::Text(self.folder(reader, locals).to_owned())),
            "work_order" => Some(Data::Text(given.work_order.clone())),
            "context" => Some(Data::Text(self.context(reader))),
            _ => None,
        }
    }

    fn folder(&self, reader: StepId, locals: &Locals) -> &str {
        let workspace = locals.workspace.unwrap_or_else(|| self.plan.recipe.step(reader).workspace);
        self.base.given.folder(workspace)
    }

    /// The value of a path `STEP.field`, such as `review.result`; `None` when it is not there.
    fn step_field(&self, head: &str, tail: &[String]) -> Option<Data> {
        let (field, rest) = tail.split_first()?;
        let id = *self.plan.by_name.get(head)?;
        let state = self.step(id);
        let outcome = state.latest.as_ref();
        // A command has an exit code whichever way it ended, and what it printed then.
        let newest = state.left.as_ref().or(outcome);
        let is_command = self.plan.recipe.step(id).work.is_command();
        match field.as_str() {
            "status" => Some(Data::Text(state.word().into())),
            "output" => outcome.or_else(|| newest.filter(|_| is_command))?.output.at(rest).cloned(),
            "result" => outcome?.result.clone().map(Data::Text),
            "summary" => Some(Data::Text(outcome?.summary.clone())),
            "exit_code" => newest?.exit_code.map(|code| Data::Number(code.to_string())),
            "stderr" => newest?.stderr.clone().map(Data::Text),
            _ => None,
        }
    }

    /// What the step that stored its output under `name` gave; of several, the one that ended last.
    fn stored(&self, name: &str) -> Option<&StepOutcome> {
        let givers = self.plan.stores.get(name)?;
        givers
            .iter()
            .map(|id| self.step(*id))
            .filter(|state| state.latest.is_some())
            .max_by_key(|state| state.ended)?
            .latest
            .as_ref()
    }

    /// The summaries of what was done before `reader`, in the order of the file, within [`CONTEXT_LIMIT`].
    fn context(&self, reader: StepId) -> String {
        let mut before = vec![false; self.plan.recipe.steps.len()];
        let mut open: Vec<StepId> = self.plan.recipe.step(reader).needs.clone();
        // A loop that leads back to here makes what came round part of what was done before.
        open.extend(self.plan.loops.iter().filter(|it| it.body.contains(&reader)).map(|it| it.from));
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut before[step.0 as usize], true) {
                open.extend(self.plan.recipe.step(step).needs.iter().copied());
            }
        }
        before[reader.0 as usize] = false;
        let steps = (0u32..).map(StepId).zip(&before).filter(|(_, is)| **is).map(|(id, _)| id);
        let said: Vec<String> = steps
            .filter_map(|id| {
                let summary = &self.step(id).latest.as_ref()?.summary;
                Some(format!("## {}\n\n{summary}\n", self.plan.recipe.step(id).name))
            })
            .collect();
        within(&said)
    }
}

/// What the agent of a step is told about the steps before it, as things stand.
pub fn context(plan: &RunPlan, state: &RunState, step: StepId) -> String {
    RunPending::new(plan, state, state.started).context(step)
}

/// What the agent of a step is told, as things stand; `None` while a value is missing, or if it has no agent.
pub fn prompt(plan: &RunPlan, state: &RunState, step: StepId) -> Option<String> {
    let prompt = plan.recipe.step(step).work.prompt()?;
    RunPending::new(plan, state, state.started).prompt(prompt, step, &Locals::default()).ok().map(|(prompt, _)| prompt)
}

fn missing(path: ValuePath) -> StepFailure {
    StepFailure::Undefined(path.to_string())
}

fn told(asked: &AgentQuestion) -> Option<String> {
    let answer = asked.answer.as_ref()?;
    let said: Vec<&str> = [answer.option.as_str(), answer.message.as_deref().unwrap_or_default()]
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect();
    let by = match answer.by {
        Answerer::Person => "A person answered",
        Answerer::Deadline => "No answer came in time, so it is",
    };
    Some(format!("You asked: {}\n{by}: {}", asked.question.reason, said.join(". ")))
}

/// The texts one after the other; the oldest are left out when there is too much, and that is said.
fn within(said: &[String]) -> String {
    let mut kept = 0;
    let mut size = 0;
    for text in said.iter().rev() {
        if size + text.len() + 1 > CONTEXT_LIMIT {
            break;
        }
        size += text.len() + 1;
        kept += 1;
    }
    let left_out = said.len() - kept;
    let text = said[left_out..].join("\n");
    match left_out {
        0 => text,
        count => format!("(the summaries of {count} earlier steps are left out: together they are too long)\n\n{text}"),
    }
}

pub(super) fn history(said: &[RunTurn]) -> String {
    let turn = |(index, turn): (usize, &RunTurn)| {
        let verdict = turn
            .verdict
            .as_ref()
            .map(|verdict| format!("Arbiter: {} {}\n", verdict.result.as_deref().unwrap_or_default(), verdict.summary));
        format!("Turn {}: {}\n{}", index + 1, turn.work.summary, verdict.unwrap_or_default())
    };
    said.iter().enumerate().map(turn).collect()
}

fn comparable(data: &Data) -> Option<ExprValue> {
    match data {
        Data::Bool(value) => Some(ExprValue::Bool(*value)),
        Data::Number(number) => Number::read(number).map(ExprValue::Number),
        Data::Text(text) => Some(ExprValue::Text(text.clone())),
        Data::Null | Data::List(_) | Data::Table(_) => None,
    }
}

impl Data {
    /// What `path` leads to inside.
    pub fn at(&self, path: &[String]) -> Option<&Data> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self {
            Data::Table(entries) => entries.iter().find(|(key, _)| key == first)?.1.at(rest),
            Data::List(items) => items.get(first.parse::<usize>().ok()?)?.at(rest),
            Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) => None,
        }
    }

    /// As it stands in a prompt or a command: text as it is, everything else as JSON, nothing as nothing.
    pub fn to_text(&self) -> String {
        match self {
            Data::Null => String::new(),
            Data::Text(text) => text.clone(),
            Data::Bool(_) | Data::Number(_) | Data::List(_) | Data::Table(_) => self.to_json(),
        }
    }

    /// The value as JSON, without blanks between its parts.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    fn write_json(&self, json: &mut String) {
        match self {
            Data::Null => json.push_str("null"),
            Data::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
            Data::Number(number) => json.push_str(number),
            Data::Text(text) => write_text(text, json),
            Data::List(items) => {
                json.push('[');
                for (index, item) in items.iter().enumerate() {
                    json.push_str(if index > 0 { "," } else { "" });
                    item.write_json(json);
                }
                json.push(']');
            }
            Data::Table(entries) => {
                json.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    json.push_str(if index > 0 { "," } else { "" });
                    write_text(key, json);
                    json.push(':');
                    value.write_json(json);
                }
                json.push('}');
            }
        }
    }
}

fn write_text(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if u32::from(c) < 0x20 => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}
