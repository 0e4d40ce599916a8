//! The page's own door: a loopback port that the system gives, open while a link waits or a session that a link made is in
//! force. An engine that serves the network has a door already and never opens this one.
//!
//! The name of the host is the home's own (`sluice-….localhost`, which browsers take for this machine): cookies know hosts
//! and no ports, so with `127.0.0.1` every server of this machine that the browser visits would be sent the session.
//! Port and name are remembered, so that an open browser finds the engine again after a restart.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_api::Problem;
use sluice_home::settings::file::{Durability, FileDraft};
use tokio::sync::watch;

/// The door while it is open.
#[derive(Clone)]
pub(crate) struct OpenPageDoor {
    pub(crate) listener: Arc<TcpListener>,
    url: String,
}

pub(crate) struct PageDoor(watch::Sender<Option<OpenPageDoor>>);

impl Default for PageDoor {
    fn default() -> PageDoor {
        PageDoor(watch::Sender::new(None))
    }
}

/// Where the page was last.
#[derive(Default, Serialize, Deserialize)]
struct PagePlace {
    port: u16,
    host: String,
}

impl PageDoor {
    /// Opens it, unless it is open; where it is.
    pub(crate) fn open(&self, file: &Path) -> Result<String, Problem> {
        if let Some(open) = self.0.borrow().as_ref() {
            return Ok(open.url.clone());
        }
        let last: Option<PagePlace> = std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let failed = |error: std::io::Error| {
            Problem::unavailable(format!("the page cannot listen on this machine: {error}"))
                .hint("`sluice serve --listen 127.0.0.1:PORT` serves the page at a port that you choose")
        };
        let at = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        // Another program may have the port by now; then an open browser needs a new link.
        let listener = last.as_ref().map_or_else(|| at(0), |last| at(last.port).or_else(|_| at(0))).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let host = match last {
            Some(last) if is_own_host(&last.host) => last.host,
            Some(_) | None => own_host()?,
        };
        let url = format!("http://{host}:{port}");
        let text = serde_json::to_vec(&PagePlace { port, host }).unwrap_or_default();
        let written = FileDraft::private(file, Durability::Synced).and_then(|draft| {
            draft.write(&text)?;
            draft.place()
        });
        if let Err(error) = written {
            tracing::warn!("{} cannot be written: {error}; a browser loses the page at a restart", file.display());
        }
        tracing::info!("the page is at {url}");
        self.0.send_replace(Some(OpenPageDoor { listener: Arc::new(listener), url: url.clone() }));
        Ok(url)
    }

    pub(crate) fn close(&self) {
        if self.0.send_replace(None).is_some() {
            tracing::info!("the page's door is closed: no link and no session is in force");
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Option<OpenPageDoor>> {
        self.0.subscribe()
    }
}

fn own_host() -> Result<String, Problem> {
    let mut bytes = [0u8; 5];
    getrandom::fill(&mut bytes)
        .map_err(|error| Problem::fault(format!("the system gives no random numbers: {error}")))?;
    let random: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sluice-{random}.localhost"))
}

/// Whether a name is one that this file makes, and not what a person wrote into the file of the home.
fn is_own_host(host: &str) -> bool {
    let random = host.strip_prefix("sluice-").and_then(|rest| rest.strip_suffix(".localhost"));
    random.is_some_and(|random| random.len() == 10 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_opens_at_the_same_place_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.json");
        let door = PageDoor::default();
        let url = door.open(&file).expect("open");
        assert!(url.starts_with("http://sluice-") && url.contains(".localhost:"), "{url}");
        assert_eq!(door.open(&file).expect("still open"), url);
        door.close();
        assert!(!door.is_open());
        assert_eq!(door.open(&file).expect("open again"), url);
    }

    #[test]
    fn a_place_that_another_program_has_or_a_name_that_is_not_ours_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.json");
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        std::fs::write(&file, format!(r#"{{"port":{port},"host":"example.com"}}"#)).expect("written");
        let url = PageDoor::default().open(&file).expect("open");
        assert!(!url.ends_with(&format!(":{port}")) && !url.contains("example.com"), "{url}");
    }
}
