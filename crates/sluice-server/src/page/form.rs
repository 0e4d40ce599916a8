//! A form that a browser sends: its fields, whether it is one of ours, and the way back. Every handler of a form takes a
//! [`SentForm`], so none can forget to look.
//!
//! What a person types comes as it is typed. What the page itself puts into a form stands there percent-encoded, under a
//! name that ends in `*`: in the text of a page some characters are left out or made visible, and a browser changes the
//! ends of lines.

use std::sync::Arc;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::client::unescape;
use sluice_home::ask::{Requester, Service};

use super::asked;
use super::frame::Frame;
use super::reply::{self, redirect};
use super::wording::address;
use crate::app::App;

/// The most fields of a form.
const MOST_FIELDS: usize = 2000;
/// What the name of a field ends with whose value is encoded.
const ENCODED: char = '*';

/// The fields of a form, in their order.
pub(super) struct Fields(Vec<SentField>);

struct SentField {
    name: String,
    value: String,
    is_typed: bool,
}

impl Fields {
    pub(super) fn new(sent: Vec<(String, String)>) -> Fields {
        let field = |(name, value): (String, String)| match name.strip_suffix(ENCODED) {
            Some(name) => SentField { name: name.to_owned(), value: unescape(&value), is_typed: false },
            None => SentField { name, value, is_typed: true },
        };
        Fields(sent.into_iter().map(field).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|field| field.name == name)?;
        let value = if field.is_typed { field.value.trim() } else { field.value.as_str() };
        Some(value).filter(|value| !value.is_empty())
    }

    pub(super) fn need(&self, name: &str) -> Result<String, Problem> {
        let missing = || Problem::bad_request(format!("the form has no `{name}`")).hint("load the page again");
        self.get(name).map(str::to_owned).ok_or_else(missing)
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |field| field.name == name).map(|field| field.value.as_str())
    }

    /// The fields whose names begin like this, by the rest of their names.
    pub(super) fn below(&self, begins: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(move |field| Some((field.name.strip_prefix(begins)?, field.value.as_str())))
    }

    /// Where the form leads back to: an address of this page, and of no other origin.
    fn back(&self) -> String {
        let own = |path: &&str| path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']);
        self.get("back").filter(own).unwrap_or("/").to_owned()
    }

    /// Where the form leads back to, with the word for what was done.
    pub(super) fn back_with(&self, done: &str) -> String {
        with_done(&self.back(), done)
    }
}

/// A form of our own origin, with the key of the visitor's session.
pub(crate) struct SentForm {
    frame: Frame,
    fields: Fields,
}

impl SentForm {
    /// Asks what the form wants, in the visitor's name, and leads to the address that the question gives. What is in the
    /// way is said on a page of its own, so that nothing looks done that is not.
    pub(super) async fn ask(
        self,
        app: &Arc<App>,
        question: impl FnOnce(&Service, &Requester, &Fields) -> Result<String, Problem> + Send + 'static,
    ) -> Response {
        let SentForm { mut frame, fields } = self;
        frame.back = fields.back();
        match asked(app, frame.visitor.who(), move |service, who| question(service, who, &fields)).await {
            Ok(to) => redirect(&to),
            Err(problem) => reply::problem(frame, &problem),
        }
    }
}

impl FromRequest<Arc<App>> for SentForm {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<SentForm, Response> {
        let (mut parts, body) = request.into_parts();
        let mut frame = Frame::from_request_parts(&mut parts, app).await?;
        let headers = parts.headers.clone();
        let read = Form::<Vec<(String, String)>>::from_request(Request::from_parts(parts, body), app).await;
        let unread = |rejected: axum::extract::rejection::FormRejection| {
            Problem::bad_request(format!("the form cannot be read: {}", rejected.body_text()))
        };
        let few = |Form(sent): Form<Vec<(String, String)>>| match sent.len() <= MOST_FIELDS {
            true => Ok(Fields::new(sent)),
            false => Err(Problem::bad_request(format!("a form has at most {MOST_FIELDS} fields"))),
        };
        let fields = match read.map_err(unread).and_then(few) {
            Ok(fields) => fields,
            Err(problem) => return Err(reply::problem(frame, &problem)),
        };
        match frame.visitor.must_have_sent(app, &headers, fields.get("key")) {
            Ok(()) => Ok(SentForm { frame, fields }),
            Err(problem) => {
                frame.back = fields.back();
                Err(reply::problem(frame, &problem))
            }
        }
    }
}

pub(super) fn with_done(back: &str, word: &str) -> String {
    let (path, query) = back.split_once('?').unwrap_or((back, ""));
    let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("done="));
    let mut pairs: Vec<&str> = kept.collect();
    let done = address("", &[("done", word)]);
    pairs.push(done.trim_start_matches('?'));
    format!("{path}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Fields {
        Fields::new(all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_form_leads_back_to_this_page_alone() {
        let back = |text: &str| fields(&[("back", text)]).back();
        assert_eq!(back("/tasks/k3f9?tab=changes"), "/tasks/k3f9?tab=changes");
        for elsewhere in ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\r\nSet-Cookie: x"] {
            assert_eq!(back(elsewhere), "/", "{elsewhere}");
        }
        assert_eq!(with_done("/tasks/a?tab=usage&done=merge", "cancel"), "/tasks/a?tab=usage&done=cancel");
        assert_eq!(with_done("/", "answer"), "/?done=answer");
    }

    #[test]
    fn what_the_page_puts_in_comes_back_unchanged_and_what_is_typed_is_trimmed() {
        let sent = fields(&[("option*", "%20a%1B%0A%E2%80%AEb%25 "), ("message", "  hello "), ("empty*", "")]);
        assert_eq!(sent.get("option"), Some(" a\u{1b}\n\u{202e}b% "));
        assert_eq!(sent.get("message"), Some("hello"));
        assert_eq!(sent.get("empty"), None);
    }
}
