//! What stands around every page, and the rendering of a template: whole, or only the parts that a browser asks for again.

use std::sync::Arc;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use sluice_api::Problem;

use super::reply::{self, html};
use super::visitor::Visitor;
use super::{assets, orders, wording};
use crate::app::App;

/// The name of the parameter with the parts that are wanted.
const PART: &str = "part";
/// The most parts that one request asks for.
const MOST_PARTS: usize = 16;
/// The parameter that says what was just done, in a word of ours.
const DONE: &str = "done";

/// What follows the question mark, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressQuery(Vec<(String, String)>);

impl AddressQuery {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty())
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The same with one parameter set, or left out, as an address on `path`.
    pub(crate) fn with(&self, path: &str, name: &str, value: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(key, text)| key != name && key != PART && key != DONE && !text.is_empty());
        let mut pairs: Vec<(&str, &str)> = kept.map(|(key, value)| (key.as_str(), value.as_str())).collect();
        pairs.extend(value.map(|value| (name, value)));
        wording::address(path, &pairs)
    }
}

/// What stands around a page.
pub(crate) struct Frame {
    pub(crate) title: String,
    /// The part of the navigation that this is.
    pub(crate) here: &'static str,
    pub(crate) visitor: Visitor,
    pub(crate) query: AddressQuery,
    /// This page's own address, where forms lead back to.
    pub(crate) back: String,
    pub(crate) done: Option<&'static str>,
    pub(crate) cursor: u64,
    /// Whether the browser takes what is compressed.
    pub(crate) takes_gzip: bool,
    parts: Option<Vec<String>>,
}

impl Frame {
    /// Whether this part of the page is wanted: all are, unless the request names some.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.iter().any(|it| it == part))
    }

    pub(crate) fn is_part(&self) -> bool {
        self.parts.is_some()
    }

    pub(crate) fn may_act(&self) -> bool {
        self.visitor.may_act()
    }

    /// What forms carry. In parts they carry nothing: only script asks for parts, and it knows the key from the whole page.
    /// So a part holds no secret, and is the same for all who may do the same.
    pub(crate) fn form_key(&self) -> &str {
        if self.is_part() { "" } else { &self.visitor.form_key }
    }

    /// What parts of the page are known by that are the same for several visitors; none for a whole page.
    pub(crate) fn shared_part(&self) -> Option<String> {
        let parts = self.parts.as_ref()?.join(",");
        Some(format!("{} {parts} {}", self.may_act(), self.back))
    }

    pub(crate) fn style(&self) -> String {
        assets::style_address()
    }

    pub(crate) fn script(&self) -> String {
        assets::script_address()
    }

    pub(crate) fn is_here(&self, name: &str) -> bool {
        self.here == name
    }

    pub(crate) fn titled(mut self, title: impl Into<String>, here: &'static str) -> Frame {
        self.title = title.into();
        self.here = here;
        self
    }
}

#[cfg(test)]
impl Frame {
    /// The frame for the test of a page, with only these parts of it.
    pub(crate) fn sample(may_act: bool, query: &[(&str, &str)], parts: &[&str]) -> Frame {
        let query = AddressQuery(query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        Frame {
            title: String::new(),
            here: "",
            visitor: Visitor::sample(may_act),
            back: query.with("/here", PART, None),
            query,
            done: None,
            cursor: 7,
            takes_gzip: false,
            parts: Some(parts.iter().map(|part| (*part).to_owned()).collect()),
        }
    }
}

impl FromRequestParts<Arc<App>> for Frame {
    type Rejection = Response;

    async fn from_request_parts(request: &mut Parts, app: &Arc<App>) -> Result<Frame, Response> {
        let visitor = Visitor::from_request_parts(request, app).await?;
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&request.uri);
        let query = AddressQuery(pairs.map(|pairs| pairs.0).unwrap_or_default());
        let parts = query.get(PART).map(|parts| parts.split(',').take(MOST_PARTS).map(str::to_owned).collect());
        let back = query.with(request.uri.path(), PART, None);
        let done = query.get(DONE).and_then(orders::done);
        let cursor = app.feed.end().map_or(0, |cursor| cursor.0);
        let takes_gzip = takes_gzip(&request.headers);
        Ok(Frame { title: String::new(), here: "", visitor, query, back, done, cursor, takes_gzip, parts })
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|form| {
        let mut words = form.split(';').map(str::trim);
        let is_it = words.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_it && words.all(|word| !["q=0", "q=0.0", "q=0.00", "q=0.000"].contains(&word))
    })
}

/// A rendered page, or the problem that is in its way, in the same frame.
pub(crate) fn page<T: Template>(rendered: Result<T, (Frame, Problem)>) -> Response {
    match rendered {
        Ok(template) => match template.render() {
            Ok(text) => html(axum::http::StatusCode::OK, text),
            Err(error) => reply::bare_problem(&Problem::fault(format!("the page cannot be rendered: {error}"))),
        },
        Err((frame, problem)) => reply::problem(frame, &problem),
    }
}
