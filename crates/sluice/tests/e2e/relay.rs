//! A relay of the test's own between an engine and its PostgreSQL: it passes on what both say, or does to it what networks
//! do.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What a relay does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Whole,
    /// Nothing comes through, and nobody is told.
    HalfOpen,
    /// Connections are closed, and new ones at once.
    Cut,
}

struct Inner {
    mode: Mode,
    /// So many commits still go to the server, and their answers nowhere.
    resets: usize,
    ends: Vec<(TcpStream, UnixStream)>,
}

struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
    server: PathBuf,
}

/// A relay to a server.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    address: SocketAddr,
    database: String,
}

impl Relay {
    /// To the database at an address that a [`sluice_store::testing::Cluster`] gave.
    pub(crate) fn to(address: &str) -> Relay {
        let (database, folder) = address.split_once("?host=").unwrap();
        let database = database.rsplit('/').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Mutex::new(Inner { mode: Mode::Whole, resets: 0, ends: Vec::new() });
        let server = PathBuf::from(folder).join(".s.PGSQL.5432");
        let shared = Arc::new(Shared { inner, changed: Condvar::new(), server });
        let theirs = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = theirs.clone();
                std::thread::spawn(move || shared.connect(client));
            }
        });
        Relay { shared, address, database }
    }

    /// The address of the store behind it.
    pub(crate) fn store(&self) -> String {
        format!("postgres://sluice@{}/{}", self.address, self.database)
    }

    /// Nothing comes through any more, and nobody is told.
    pub(crate) fn is_half_open(&self) {
        self.set(Mode::HalfOpen);
    }

    /// Every connection is closed, and so is every new one.
    pub(crate) fn is_cut(&self) {
        self.set(Mode::Cut);
        self.drop_all();
    }

    /// The next commits are done, and their answers lost with their connections.
    pub(crate) fn loses_answers(&self, commits: usize) {
        self.shared.inner().resets = commits;
    }

    /// Everything comes through again, over new connections.
    pub(crate) fn is_mended(&self) {
        self.set(Mode::Whole);
        self.drop_all();
    }

    fn set(&self, mode: Mode) {
        self.shared.inner().mode = mode;
        self.shared.changed.notify_all();
    }

    fn drop_all(&self) {
        for (client, server) in self.shared.inner().ends.drain(..) {
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_cut();
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Waits while nothing comes through. Whether something does now.
    fn is_whole(&self) -> bool {
        let inner = self.changed.wait_while(self.inner(), |inner| inner.mode == Mode::HalfOpen).unwrap();
        inner.mode == Mode::Whole
    }

    fn connect(self: Arc<Self>, client: TcpStream) {
        if !self.is_whole() {
            return;
        }
        let Ok(server) = UnixStream::connect(&self.server) else { return };
        let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        self.inner().ends.push((client.try_clone().unwrap(), server.try_clone().unwrap()));
        let shared = self.clone();
        std::thread::spawn(move || {
            shared.carry(forth, &back, |_| false);
            let _ = back.shutdown(Shutdown::Both);
        });
        let resets = |bytes: &[u8]| {
            let mut inner = self.inner();
            let loses = inner.resets > 0 && bytes.windows(6).any(|word| word == b"COMMIT");
            inner.resets -= usize::from(loses);
            loses
        };
        self.carry(client.try_clone().unwrap(), &server, |bytes| {
            let loses = resets(bytes);
            if loses {
                let _ = client.shutdown(Shutdown::Both);
            }
            loses
        });
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    }

    /// Carries bytes until one side has hung up. `is_last` says of what was read that nothing follows it.
    fn carry(&self, mut from: impl Read, mut to: impl Write, is_last: impl Fn(&[u8]) -> bool) {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            if count == 0 || !self.is_whole() {
                return;
            }
            let ends = is_last(&buffer[..count]);
            if to.write_all(&buffer[..count]).is_err() || ends {
                return;
            }
        }
    }
}
