//! What every answer of the page has: the headers that keep a browser from doing anything but showing it, and a page for
//! what is in the way.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;

use super::frame::Frame;
use crate::app::App;

/// What a browser may do with a page of ours.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                 connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                                 require-trusted-types-for 'script'";

/// A page of HTML.
pub(crate) fn html(status: StatusCode, text: String) -> Response {
    as_html((status, harmless(text)).into_response())
}

/// An answer whose text is harmless already, as HTML.
pub(crate) fn as_html(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    guarded(response)
}

/// The text of a page without what deceives a reader. What agents print can hold characters that steer a terminal: none of
/// them is passed on. Those that turn the direction of writing, and so let a diff show another order than a compiler
/// reads, are made visible. Every text of the page comes by here; what forms carry is encoded, and stays as it is.
pub(crate) fn harmless(mut text: String) -> String {
    text.retain(|letter| !letter.is_control() || matches!(letter, '\n' | '\t'));
    if !text.contains(turns_writing) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for letter in text.chars() {
        match turns_writing(letter) {
            true => shown.push_str(&format!("&lt;U+{:04X}&gt;", u32::from(letter))),
            false => shown.push(letter),
        }
    }
    shown
}

/// Whether a character is one of Unicode's controls of the direction of writing (`Bidi_Control`).
fn turns_writing(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An answer with the headers that all of them have. The referrer is kept from other origins and not from ours: without
/// it a browser would send forms with the origin `null`.
pub(crate) fn guarded(mut response: Response) -> Response {
    let all = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in all {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    guarded(response)
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    heading: &'static str,
    problem: &'a Problem,
}

#[derive(Template)]
#[template(path = "bare.html")]
struct BarePage<'a> {
    heading: &'static str,
    problem: &'a Problem,
    style: String,
}

/// What is in the way, in the frame of the page.
pub(crate) fn problem(frame: Frame, problem: &Problem) -> Response {
    let frame = frame.titled(heading(problem), "");
    let page = ProblemPage { frame, heading: heading(problem), problem };
    html(status(problem), page.render().unwrap_or_else(|_| problem.message.clone()))
}

/// The same for a browser that has no session, or for a fault of the page itself.
pub(crate) fn bare_problem(problem: &Problem) -> Response {
    let page = BarePage { heading: heading(problem), problem, style: super::assets::style_address() };
    html(status(problem), page.render().unwrap_or_else(|_| "the page cannot be rendered".to_owned()))
}

pub(crate) async fn nothing_here(State(_): State<Arc<App>>, frame: Frame) -> Response {
    let missing = Problem::not_found("there is no page at this address").hint("the board shows every task and run");
    problem(frame, &missing)
}

pub(crate) fn status(problem: &Problem) -> StatusCode {
    StatusCode::from_u16(problem.status.number()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn heading(problem: &Problem) -> &'static str {
    match problem.status {
        ProblemStatus::NotFound => "Not found",
        ProblemStatus::Unauthorized => "Please log in",
        ProblemStatus::Forbidden => "Not allowed",
        ProblemStatus::Conflict => "Something changed meanwhile",
        ProblemStatus::Refused => "This cannot be done now",
        ProblemStatus::BadRequest | ProblemStatus::WrongForm | ProblemStatus::WrongMethod => {
            "This cannot be understood"
        }
        ProblemStatus::TooLarge => "This is too large",
        ProblemStatus::TooMany => "Too many requests",
        ProblemStatus::Unavailable => "The engine cannot answer now",
        ProblemStatus::Fault => "Sluice has a fault",
        ProblemStatus::Accepted => "Still under way",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_the_writing_is_made_visible_and_what_steers_a_terminal_is_left_out() {
        let trojan = "if x { /* \u{202e} } \u{2066}if is_admin\u{2069} \u{2066} */\u{200f}\u{61c}";
        let shown = harmless(trojan.to_owned());
        let expected = "if x { /* &lt;U+202E&gt; } &lt;U+2066&gt;if is_admin&lt;U+2069&gt; &lt;U+2066&gt; */&lt;U+200F&gt;&lt;U+061C&gt;";
        assert_eq!(shown, expected);
        assert_eq!(harmless("a\u{1b}[31m\tb\r\nשלום 👩\u{200d}🚀".to_owned()), "a[31m\tb\nשלום 👩\u{200d}🚀");
    }
}
