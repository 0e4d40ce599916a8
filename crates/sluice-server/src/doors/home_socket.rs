//! The socket of a home, through which processes of this machine reach the engine. The engine makes a removed socket again:
//! without it no command reaches the engine or ends it. Who connects and what they may do stands in `door` and `caller`.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_home::settings::lock::FileLock;
use sluice_home::settings::places::HomePaths;
use tokio::net::{UnixListener, UnixStream};

/// How often the engine looks at its socket while no connection comes.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct HomeSocket {
    path: PathBuf,
    listener: UnixListener,
    /// The file that has its name.
    id: Option<(u64, u64)>,
    /// By which the home is this engine's, and where that stands.
    lock: (Arc<FileLock>, PathBuf),
    /// Why it could not be made again, as long as that is so: it is told once.
    failed: Option<io::ErrorKind>,
}

impl HomeSocket {
    /// Makes it. Whatever listens there is dead: the engine holds the lock.
    pub(crate) fn bind(places: &HomePaths, lock: &Arc<FileLock>) -> io::Result<HomeSocket> {
        let path = places.socket();
        let listener = bind(&path)?;
        tracing::info!("listens at {}", path.display());
        let (id, lock) = (id_of(&path), (lock.clone(), places.lock()));
        Ok(HomeSocket { path, listener, id, lock, failed: None })
    }

    pub(crate) async fn accept(&mut self) -> io::Result<UnixStream> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => return accepted.map(|(stream, _)| stream),
                () = tokio::time::sleep(LOOK) => self.mend(),
            }
        }
    }

    /// Makes it again if it is not there any more, and the home still is this engine's.
    fn mend(&mut self) {
        let (lock, place) = &self.lock;
        if id_of(&self.path) == self.id || !lock.is_at(place) {
            return;
        }
        match bind(&self.path) {
            Ok(listener) => {
                tracing::info!("{} was removed, and is made again", self.path.display());
                (self.listener, self.id, self.failed) = (listener, id_of(&self.path), None);
            }
            Err(error) if self.failed.replace(error.kind()) != Some(error.kind()) => {
                tracing::warn!("{} cannot be made again: {error}", self.path.display());
            }
            Err(_) => {}
        }
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn id_of(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|about| (about.dev(), about.ino()))
}
