//! What processes are told about themselves, and what they inherit.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sluice_engine::loader::pin;
use sluice_worker::session::SessionId;

use super::{Order, Voice, Workbench};
use crate::tokens;

/// The digests of the secrets that a session was given.
const DIGESTS: &str = "token.sha256";

/// What a session inherits: the engine's environment, less what is Sluice's own and what a person denies.
pub(crate) fn inherited(bench: &Workbench) -> BTreeMap<String, String> {
    let config = bench.config();
    let denied = |name: &str| name.starts_with("SLUICE_") || config.env.deny.iter().any(|it| it == name);
    let own = std::env::vars().filter(|(name, _)| !denied(name) && name != "TMUX" && name != "TMUX_PANE");
    let mut environment: BTreeMap<String, String> = own.collect();
    let programs = bench.places.programs().display().to_string();
    let path = environment.get("PATH").map(|path| format!("{programs}:{path}")).unwrap_or(programs);
    environment.insert("PATH".into(), path);
    environment.insert("SLUICE_HOME".into(), bench.places.home().display().to_string());
    let (name, value) = bench.within.assignment();
    environment.insert(name.into(), value);
    environment
}

/// What a step of a run is told about itself.
pub(super) fn about(bench: &Workbench, order: &Order) -> BTreeMap<String, String> {
    let mut told = BTreeMap::from([
        ("SLUICE_RUN".to_owned(), order.run.clone()),
        ("SLUICE_STEP".to_owned(), order.step.clone()),
        ("SLUICE_ATTEMPT".to_owned(), order.attempt.to_string()),
        ("SLUICE_ROLE".to_owned(), order.role.clone()),
        ("SLUICE_BIN".to_owned(), bench.program.display().to_string()),
    ]);
    if let Voice::Elsewhere { environment } = &order.voice {
        told.extend(environment.iter().cloned());
    }
    told
}

/// A secret that is this session's alone; only its digest stays here. On this machine a session is known by its processes
/// and needs none; over the network the secret says who asks. It names its session, so that nobody has to search.
///
/// A session that is adopted has the secret it was started with: digests are added, never replaced.
pub(crate) fn token(session: &SessionId, private: &Path) -> Result<String, String> {
    let secret = tokens::secret(&format!("{session}~"))?;
    let digest = format!("{}\n", pin(secret.as_bytes()));
    let written = std::fs::create_dir_all(private).and_then(|()| {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(private.join(DIGESTS));
        file?.write_all(digest.as_bytes())
    });
    written.map_err(|error| format!("cannot prepare {}: {error}", private.display()))?;
    Ok(secret)
}

/// Whether this secret was given to a session, by what is kept of it.
pub(crate) fn is_secret_of(private: &Path, secret: &str) -> bool {
    let digest = pin(secret.as_bytes()).to_string();
    let kept = std::fs::read_to_string(private.join(DIGESTS)).unwrap_or_default();
    kept.lines().any(|line| tokens::is_same(line, &digest))
}
