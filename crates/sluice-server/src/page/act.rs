//! What a form of the page does: each is a question to the home that a route of the API asks too.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::attention::AnswerAttention;
use sluice_api::board::BoardAction;
use sluice_api::changes::{LineComment, RequestChanges};
use sluice_api::diff::MergeRun;
use sluice_api::run::StartRun;
use sluice_api::task::{MergeTask, UpdateTask};
use sluice_home::ask::{KeyedId, Requester, Service};

use super::changes::CommentPlace;
use super::form::{Fields, SentForm, with_done};
use super::orders::order;
use super::wording::escape;
use crate::app::App;

/// The field in front of the name of each input of a recipe.
const INPUT: &str = "input.";

/// `POST /page/act`: one action on a task or a run, or an answer to what waits.
pub(super) async fn act(State(app): State<Arc<App>>, form: SentForm) -> Response {
    let act = |service: &Service, who: &Requester, fields: &Fields| {
        let (word, id) = (fields.need("act")?, fields.need("id")?);
        let message = fields.get("message").map(str::to_owned);
        match fields.get("kind") {
            Some("task") => of_task(service, who, &word, &id, fields, message)?,
            Some("run") => of_run(service, who, &word, &id, message)?,
            Some(_) | None if word == BoardAction::Answer.word() => {
                let option = fields.need("option")?;
                service.answer_attention(who, &id, AnswerAttention { option, message }).map(drop)?;
            }
            Some(_) | None => return Err(unknown(&word)),
        }
        Ok(fields.back_with(&word))
    };
    form.ask(&app, act).await
}

fn of_task(
    service: &Service,
    who: &Requester,
    word: &str,
    id: &str,
    fields: &Fields,
    message: Option<String>,
) -> Result<(), Problem> {
    if word == "move" {
        let status = Some(fields.need("to")?);
        return service.update(who, id, UpdateTask { status, ..UpdateTask::default() }).map(drop);
    }
    let action = BoardAction::read(word).ok_or_else(|| unknown(word))?;
    if order(action).must_say && message.is_none() {
        return Err(Problem::bad_request("the message is empty"));
    }
    let said = message.clone().unwrap_or_default();
    let done = match action {
        BoardAction::Merge => {
            let strategy = fields.get("strategy").map(str::to_owned);
            let commit = fields.get("commit").is_some();
            service.merge(who, id, &MergeTask { strategy, commit, ..MergeTask::default() })
        }
        BoardAction::Cancel => service.cancel(who, id),
        BoardAction::CreatePr => service.create_pr(who, id),
        BoardAction::Spawn => service.spawn(who, id),
        BoardAction::Respawn => service.respawn(who, id),
        BoardAction::Approve => service.approve(who, id, message),
        BoardAction::RequestChanges => {
            service.request_changes(who, id, &RequestChanges { message: said, comments: Vec::new() })
        }
        BoardAction::Nudge => service.nudge(who, id, &said),
        BoardAction::Delete => service.delete(who, id),
        BoardAction::Attach | BoardAction::Answer | BoardAction::Retry => return Err(unknown(word)),
    };
    done.map(drop)
}

fn of_run(service: &Service, who: &Requester, word: &str, id: &str, message: Option<String>) -> Result<(), Problem> {
    match BoardAction::read(word).ok_or_else(|| unknown(word))? {
        BoardAction::Cancel => service.cancel_run(who, id, message.unwrap_or_default()).map(drop),
        BoardAction::Retry => service.retry_run(who, id, None, message).map(drop),
        BoardAction::Merge => service.merge_run(who, id, &MergeRun::default()).map(drop),
        BoardAction::Delete => service.delete_run(who, id).map(drop),
        BoardAction::CreatePr
        | BoardAction::Spawn
        | BoardAction::Respawn
        | BoardAction::Attach
        | BoardAction::Approve
        | BoardAction::RequestChanges
        | BoardAction::Answer
        | BoardAction::Nudge => Err(unknown(word)),
    }
}

/// `POST /page/review`: the comments at lines, gathered into one request for changes.
pub(super) async fn review(State(app): State<Arc<App>>, form: SentForm) -> Response {
    let review = |service: &Service, who: &Requester, fields: &Fields| {
        let (id, comments) = (fields.need("id")?, comments(fields));
        let message = fields.get("message").unwrap_or_default().to_owned();
        service.request_changes(who, &id, &RequestChanges { message, comments })?;
        Ok(fields.back_with(BoardAction::RequestChanges.word()))
    };
    form.ask(&app, review).await
}

/// The comments of a form: each `at` has the `comment` beside it.
fn comments(fields: &Fields) -> Vec<LineComment> {
    let comment = |(at, text): (&str, &str)| {
        let comment = CommentPlace::read(at)?.saying(text.trim());
        (!comment.text.is_empty()).then_some(comment)
    };
    fields.all("at").zip(fields.all("comment")).filter_map(comment).collect()
}

/// `POST /page/start`: a run of a recipe.
pub(super) async fn start(State(app): State<Arc<App>>, form: SentForm) -> Response {
    let start = |service: &Service, who: &Requester, fields: &Fields| {
        let given = fields.below(INPUT).filter(|(_, value)| !value.is_empty());
        let inputs = given.map(|(name, value)| (name.to_owned(), value.into())).collect();
        let wanted = StartRun {
            recipe: fields.need("recipe")?,
            cwd: service.folder_of_project(fields.get("project"))?,
            inputs,
            prompt: fields.get("prompt").map(str::to_owned),
            ..StartRun::default()
        };
        let run = service.start(who, &KeyedId::default(), &wanted)?;
        Ok(with_done(&format!("/runs/{}", escape(run.id.as_str())), "start"))
    };
    form.ask(&app, start).await
}

pub(super) fn unknown(word: &str) -> Problem {
    Problem::bad_request(format!("there is no action `{word}` here")).hint("load the page again")
}

#[cfg(test)]
mod tests {
    use sluice_api::changes::CommentedPart;

    use super::*;

    #[test]
    fn comments_at_lines_become_one_request() {
        let given = [
            ("at*", "uncommitted%3Anew%3A7%3Asrc%2Fa%3Ab%E2%80%AE.rs"),
            ("comment", " rename this "),
            ("at*", "committed%3Aold%3A3%3Ax"),
            ("comment", ""),
            ("at*", "nonsense"),
            ("comment", "lost"),
            ("at*", "since_verdict:old:3:x"),
            ("comment", "why?"),
        ];
        let given = Fields::new(given.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec());
        let comment = |part, file: &str, line, removed, text: &str| LineComment {
            file: file.to_owned(),
            line: Some(line),
            removed,
            part: Some(part),
            text: text.to_owned(),
        };
        let expected = [
            comment(CommentedPart::Uncommitted, "src/a:b\u{202e}.rs", 7, false, "rename this"),
            comment(CommentedPart::SinceVerdict, "x", 3, true, "why?"),
        ];
        assert_eq!(comments(&given), expected);
    }
}
