//! The style, the script and the icon, inside the program. Their addresses carry a digest, so that a browser keeps them for
//! as long as they are the same.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::reply::guarded;

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");
/// How long a browser keeps what has a digest in its address.
const KEEP: &str = "public, max-age=31536000, immutable";

static STYLE_ADDRESS: LazyLock<String> = LazyLock::new(|| address("/page/page.css", STYLE));
static SCRIPT_ADDRESS: LazyLock<String> = LazyLock::new(|| address("/page/page.js", SCRIPT));

fn address(path: &str, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let short: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{path}?v={short}")
}

pub(super) fn style_address() -> String {
    STYLE_ADDRESS.clone()
}

pub(super) fn script_address() -> String {
    SCRIPT_ADDRESS.clone()
}

pub(super) async fn style() -> Response {
    kept(STYLE, "text/css; charset=utf-8")
}

pub(super) async fn script() -> Response {
    kept(SCRIPT, "text/javascript; charset=utf-8")
}

pub(super) async fn icon() -> Response {
    kept(ICON, "image/svg+xml")
}

fn kept(text: &'static str, form: &'static str) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(KEEP));
    guarded(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_short_and_takes_no_text_for_html() {
        assert!(SCRIPT.lines().count() <= 300, "{} lines", SCRIPT.lines().count());
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "parseFromString",
        ] {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
    }

    #[test]
    fn what_a_browser_loads_is_small_before_it_is_compressed() {
        let all = STYLE.len() + SCRIPT.len() + ICON.len();
        assert!(all < 60_000, "{all} bytes");
    }

    #[test]
    fn nothing_leads_to_another_origin() {
        for (name, text) in [("style", STYLE), ("script", SCRIPT)] {
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("url(//"), "{name}");
        }
        let of_icon = ICON.replace("http://www.w3.org/2000/svg", "");
        assert!(!of_icon.contains("http"), "{of_icon}");
    }
}
