//! Words and forms that a person has sent off.

use serde_json::{Map, Value, json};
use sluice_api::board::{BoardAction, MOST_VIEWS, SavedView, Views};
use sluice_api::changes::MOST_COMMENTS;

use super::{answer, orders};
use crate::look::RowTone;
use crate::model::asking::{Form, FormField, Making, Purpose};
use crate::model::facts::ScreenAsk;
use crate::model::requests::{PersonRequest, RequestVerb};
use crate::model::{AwaitedAnswer, DashboardCommand, ListSubject, Model, Overlay};

/// A line of words is sent off.
pub(in crate::model) fn said(model: &mut Model, purpose: Purpose, text: &str) -> Vec<DashboardCommand> {
    let text = text.trim();
    match purpose {
        Purpose::Filter => {
            super::filter(model, text);
            Vec::new()
        }
        Purpose::Command => command(model, text),
        Purpose::RequestChanges(id) => request_changes(model, &id, text),
        Purpose::Nudge(_) | Purpose::Answer { .. } if text.is_empty() => {
            model.say(RowTone::Quiet, "nothing was said, and nothing sent");
            Vec::new()
        }
        Purpose::Nudge(id) => orders::ask_with(model, &id, BoardAction::Nudge, json!({ "message": text })),
        Purpose::Answer { attention, row, option: Some(option) } => {
            answer(model, &attention, &row, &option, Some(text))
        }
        Purpose::Answer { attention, row, option: None } => answer(model, &attention, &row, text, None),
        Purpose::Comment(id, spot) => {
            let comments = &mut model.readings.entry(id).or_default().comments;
            if comments.len() >= MOST_COMMENTS && !comments.contains_key(&spot) {
                model.say(RowTone::Bad, format!("{MOST_COMMENTS} comments wait; [X] sends them"));
                return Vec::new();
            }
            match text.is_empty() {
                true => comments.remove(&spot),
                false => comments.insert(spot, text.to_owned()),
            };
            Vec::new()
        }
        Purpose::Restore(id) => restore(model, &id, text),
        Purpose::SaveView => {
            let filter = model.board.as_ref().map(|board| board.filter.clone()).unwrap_or_default();
            let view = SavedView { name: text.to_owned(), ..filter };
            // The page saves views too: those that were read before are asked for again.
            model.facts.age_if(|ask| *ask == ScreenAsk::Views);
            model.saving = Some(view);
            Vec::new()
        }
    }
}

/// A command that was typed.
fn command(model: &mut Model, text: &str) -> Vec<DashboardCommand> {
    let name = orders::completed(text);
    match name.as_str() {
        "inbox" => super::opening::inbox(model),
        "workers" => super::opening::list(model, ListSubject::Workers),
        "workspaces" => super::opening::list(model, ListSubject::Workspaces),
        "costs" => super::opening::list(model, ListSubject::Costs(sluice_api::usage::CostsBy::Day)),
        "schedules" => super::opening::list(model, ListSubject::Schedules),
        "events" => super::opening::list(model, ListSubject::Events),
        "doctor" => return vec![DashboardCommand::Doctor],
        "create" => create(model),
        "start" => start(model),
        "help" => model.overlay = Some(Overlay::Help { scroll: 0 }),
        "quit" => return vec![DashboardCommand::Quit],
        _ => {
            let known: Vec<&str> = orders::COMMANDS.iter().map(|(name, _)| *name).collect();
            model.say(RowTone::Bad, format!("there is no command `{text}`; there are {}", known.join(", ")));
        }
    }
    Vec::new()
}

/// Sends a task back: with words, with the comments at lines, or both.
fn request_changes(model: &mut Model, id: &str, text: &str) -> Vec<DashboardCommand> {
    let comments = model.readings.get(id).map(super::super::diff::DiffReading::gathered).unwrap_or_default();
    if text.is_empty() && comments.is_empty() {
        model.say(RowTone::Quiet, "nothing was said, and nothing sent");
        return Vec::new();
    }
    let body = json!({ "message": text, "comments": comments });
    orders::ask_with(model, id, BoardAction::RequestChanges, body)
}

fn restore(model: &mut Model, id: &str, folder: &str) -> Vec<DashboardCommand> {
    if folder.is_empty() {
        return Vec::new();
    }
    let request = PersonRequest {
        number: 0,
        what: format!("restore {} into {folder}", super::name_of(model, id)),
        verb: RequestVerb::Post,
        path: "/v1/workspaces/restore".to_owned(),
        body: json!({ "task": id, "into": folder }),
        about: None,
    };
    orders::send(model, request)
}

/// Adds a view to those that are saved; one of the same name is replaced, and keeps its number.
pub(super) fn save_view(model: &mut Model, view: SavedView) -> Vec<DashboardCommand> {
    let mut views = model.facts.views(&ScreenAsk::Views).cloned().unwrap_or_default();
    let at = views.iter().position(|other| other.name == view.name).unwrap_or(views.len());
    if view.name.is_empty() || at >= MOST_VIEWS {
        model.say(RowTone::Bad, format!("a view needs a name, and there are at most {MOST_VIEWS}"));
        return Vec::new();
    }
    views.splice(at..(at + 1).min(views.len()), [view]);
    let request = PersonRequest {
        number: 0,
        what: format!("save view {}", at + 1),
        verb: RequestVerb::Put,
        path: "/v1/views".to_owned(),
        body: json!(Views { views }),
        about: None,
    };
    orders::send(model, request)
}

fn project_field(model: &Model) -> FormField {
    let board = model.board.as_ref();
    let names: Vec<String> =
        board.map(|board| board.projects.iter().map(|it| it.name.clone()).collect()).unwrap_or_default();
    let of_row = model.subject().and_then(|row| row.project.clone());
    let now = board.and_then(|board| board.filter.project.clone()).or(of_row).or_else(|| names.first().cloned());
    FormField::new("project", true, names, &now.unwrap_or_default())
}

/// The form of a new task.
pub(super) fn create(model: &mut Model) {
    let plain = |name: &str| FormField::new(name, false, Vec::new(), "");
    let fields = vec![project_field(model), plain("branch"), plain("summary"), plain("workflow"), plain("harness")];
    model.overlay = Some(Overlay::Form(Form::new(Making::Task, "create a task", fields)));
}

/// A recipe is to be started: in which project, where there are several.
pub(super) fn start(model: &mut Model) {
    let field = project_field(model);
    match &field.choices[..] {
        [] => model.say(RowTone::Quiet, "there is no project yet; `sluice project add` makes a repository one"),
        [project] => model.awaits = Some(AwaitedAnswer::Recipes(project.clone())),
        _ => {
            let form = Form::new(Making::Project, "start a recipe: in which project?", vec![field]);
            model.overlay = Some(Overlay::Form(form));
        }
    }
}

/// The choice of a recipe of a project.
pub(super) fn recipes(model: &mut Model, project: &str) {
    let names = names_of(model, project);
    if names.is_empty() {
        let text = format!("{project} has no recipe; `sluice workflow list` says where recipes are looked for");
        return model.say(RowTone::Quiet, text);
    }
    let fields = vec![FormField::new("recipe", true, names, "")];
    let form = Form::new(Making::Recipe(project.to_owned()), format!("start a recipe in {project}"), fields);
    model.overlay = Some(Overlay::Form(form));
}

fn names_of(model: &Model, project: &str) -> Vec<String> {
    let recipes = model.facts.recipes(&ScreenAsk::Recipes(project.to_owned()));
    recipes.into_iter().flatten().map(|recipe| recipe.name.clone()).collect()
}

/// A form is sent off. One that lacks something stays.
pub(in crate::model) fn filled(model: &mut Model, mut form: Form) -> Vec<DashboardCommand> {
    if let Some(lacking) = form.lacks() {
        model.say(RowTone::Bad, format!("`{}` is needed", form.fields[lacking].name));
        form.at = lacking;
        model.overlay = Some(Overlay::Form(form));
        return Vec::new();
    }
    let value = |name: &str| form.fields.iter().find(|field| field.name == name).map(|it| it.value().to_owned());
    match &form.making {
        Making::Task => {
            let given = form.fields.iter().filter(|field| !field.value().is_empty());
            let body: Map<String, Value> = given.map(|field| (field.name.clone(), json!(field.value()))).collect();
            let what = format!("create {}", value("branch").filter(|it| !it.is_empty()).unwrap_or("a task".to_owned()));
            let path = "/v1/lifecycle/tasks".to_owned();
            orders::send(
                model,
                PersonRequest { number: 0, what, verb: RequestVerb::Post, path, body: body.into(), about: None },
            )
        }
        Making::Project => {
            model.awaits = value("project").map(AwaitedAnswer::Recipes);
            Vec::new()
        }
        Making::Recipe(project) => inputs(model, &value("recipe").unwrap_or_default(), project),
        Making::Run { recipe, project } => {
            let given = form.fields.iter().filter(|field| !field.value().is_empty());
            let input: Map<String, Value> = given.map(|field| (field.name.clone(), read(field))).collect();
            begin(model, recipe, project, input)
        }
    }
}

/// Starts a recipe with these inputs.
fn begin(model: &mut Model, recipe: &str, project: &str, input: Map<String, Value>) -> Vec<DashboardCommand> {
    let request = PersonRequest {
        number: 0,
        what: format!("start {recipe}"),
        verb: RequestVerb::Post,
        path: "/workflows".to_owned(),
        body: json!({ "grimoire": recipe, "input": input, "project": project }),
        about: None,
    };
    orders::send(model, request)
}

/// What stands in a field: a number, a list or a truth as such, unless it is to be words.
fn read(field: &FormField) -> Value {
    let words = || json!(field.value());
    if field.is_text { words() } else { serde_json::from_str(field.value()).unwrap_or_else(|_| words()) }
}

/// The form of a recipe's inputs; one without inputs is started at once.
fn inputs(model: &mut Model, name: &str, project: &str) -> Vec<DashboardCommand> {
    let ask = ScreenAsk::Recipes(project.to_owned());
    let recipe = model.facts.recipes(&ask).and_then(|recipes| recipes.iter().find(|recipe| recipe.name == name));
    let Some(recipe) = recipe else {
        let names = names_of(model, project).join(", ");
        model.say(RowTone::Bad, format!("there is no recipe `{name}`; there are {names}"));
        return Vec::new();
    };
    let fields: Vec<FormField> = recipe.input.iter().map(super::field).collect();
    if fields.is_empty() {
        return begin(model, name, project, Map::new());
    }
    let making = Making::Run { recipe: name.to_owned(), project: project.to_owned() };
    model.overlay = Some(Overlay::Form(Form::new(making, format!("start {name} in {project}"), fields)));
    Vec::new()
}
