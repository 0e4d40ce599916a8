//! Under which names the page answers.
//!
//! A browser keeps pages apart by the name of the host. A page of another site can let its own name lead to this machine
//! after it was loaded (DNS rebinding), and its script then speaks to the engine as if that were its own server. So the
//! page answers under names that only this engine can have: loopback names and addresses, the address and the name that it
//! listens at, and what the settings name (`[serve] hosts`, and the host of `[notify] page`).
//!
//! Callers of the API come under any name, as workers do: no browser adds their token by itself, so a page that does not
//! have it reaches nothing.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_home::settings::config::HomeConfig;

use super::wording::cut;

/// The most letters of a name that a refusal shows.
const LONGEST_SHOWN: usize = 100;

/// Refuses a request that comes under a name that is not this engine's. `reached` is the address that the connection came
/// to, `listened` what `--listen` says.
pub(super) fn must_be_ours(
    headers: &HeaderMap,
    reached: Option<IpAddr>,
    listened: Option<&str>,
    config: &HomeConfig,
) -> Result<(), Problem> {
    let mut all = headers.get_all(header::HOST).iter();
    let shown = all.next().and_then(|value| value.to_str().ok()).filter(|_| all.next().is_none()).unwrap_or_default();
    let is_ours = host_of(shown).is_some_and(|host| is_ours(&host, reached, listened, config));
    if is_ours {
        return Ok(());
    }
    let message = format!("this engine does not serve its page under the name `{}`", cut(shown, LONGEST_SHOWN));
    Err(Problem::new(ProblemStatus::Forbidden, "wrong_host", message).hint(
        "open the page at the address that the engine listens at, or name this host in `hosts` under `[serve]` in \
         config.toml",
    ))
}

fn is_ours(host: &str, reached: Option<IpAddr>, listened: Option<&str>, config: &HomeConfig) -> bool {
    if let Some(address) = address_of(host) {
        let is_reached = reached.is_some_and(|reached| reached.to_canonical() == address);
        return address.is_loopback() || is_reached || named(config).any(|name| address_of(&name) == Some(address));
    }
    let is_local = host == "localhost" || host.ends_with(".localhost");
    is_local || listened.and_then(host_of).is_some_and(|name| name == host) || named(config).any(|name| name == host)
}

/// The hosts that the settings name.
fn named(config: &HomeConfig) -> impl Iterator<Item = String> {
    let page = config.notify.page.as_deref().and_then(|page| page.split_once("://")).map(|(_, rest)| rest);
    let page = page.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let hosts = config.serve.hosts.iter().map(String::as_str);
    hosts.chain(page).filter_map(host_of).collect::<Vec<_>>().into_iter()
}

/// A host as browsers compare it, without its port; none if it is no host.
fn host_of(text: &str) -> Option<String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (format!("[{address}]"), rest.strip_prefix(':').or(rest.is_empty().then_some(""))?),
        None => text.split_once(':').map_or((text.to_owned(), ""), |(host, port)| (host.to_owned(), port)),
    };
    let host = host.strip_suffix('.').unwrap_or(&host).to_ascii_lowercase();
    let is_host =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
    (is_host && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(host)
}

fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_taken(host: &'static str, reached: &str, listened: Option<&str>, config: &HomeConfig) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
        must_be_ours(&headers, reached.parse().ok(), listened, config).is_ok()
    }

    #[test]
    fn names_of_this_machine_and_of_the_settings_are_ours() {
        let none = HomeConfig::default();
        let plain = |host| is_taken(host, "127.0.0.1", None, &none);
        for ours in
            ["localhost", "localhost:7433", "LocalHost.", "a.localhost:1", "127.0.0.1:7433", "127.9.9.9", "[::1]:1"]
        {
            assert!(plain(ours), "{ours}");
        }
        let others = [
            "",
            ":7433",
            "evil.example",
            "localhost.evil",
            "notlocalhost",
            "10.0.0.1",
            "[::2]",
            "[::1]x",
            "a@localhost",
            "localhost:x",
        ];
        for other in others {
            assert!(!plain(other), "{other}");
        }
        assert!(is_taken("10.0.0.1:7433", "10.0.0.1", None, &none), "the address that it listens at");
        assert!(is_taken("10.0.0.1", "::ffff:10.0.0.1", None, &none));
        assert!(is_taken("box.lan:7433", "10.0.0.1", Some("box.lan:7433"), &none), "the name that it listens at");
        let mut config = none.clone();
        config.serve.hosts = vec!["Sluice.Example".to_owned(), "192.0.2.7".to_owned()];
        config.notify.page = Some("https://page.example:8443/x".to_owned());
        for ours in ["sluice.example", "192.0.2.7:80", "page.example"] {
            assert!(is_taken(ours, "127.0.0.1", None, &config), "{ours}");
        }
        assert!(!is_taken("x.sluice.example", "127.0.0.1", None, &config));
    }

    #[test]
    fn a_request_has_one_host() {
        assert!(must_be_ours(&HeaderMap::new(), None, None, &HomeConfig::default()).is_err());
        let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(must_be_ours(&headers, None, None, &HomeConfig::default()).is_err());
    }
}
