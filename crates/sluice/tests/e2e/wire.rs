//! A wire of the test's own between a worker and its engine, which can be broken in two ways and mended.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What a wire does with what is sent over it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// Nothing comes through, not even that somebody has hung up. Nothing is lost either.
    Broken,
    /// It is gone.
    Removed,
}

struct Inner {
    state: State,
    /// Both ends of every connection: the worker's, the engine's.
    ends: Vec<(TcpStream, TcpStream)>,
}

struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

/// A wire to an engine.
pub(crate) struct Wire {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Wire {
    /// A wire to the engine at this address.
    pub(crate) fn to(engine: &str) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Mutex::new(Inner { state: State::Whole, ends: Vec::new() });
        let shared = Arc::new(Shared { inner, changed: Condvar::new() });
        let (theirs, engine) = (shared.clone(), engine.split("://").nth(1).unwrap().to_owned());
        std::thread::spawn(move || {
            for worker in listener.incoming().map_while(Result::ok) {
                if theirs.inner().state == State::Removed {
                    return;
                }
                let (shared, engine) = (theirs.clone(), engine.clone());
                std::thread::spawn(move || shared.connect(worker, &engine));
            }
        });
        Wire { shared, address }
    }

    /// Where workers connect to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Nothing comes through any more, and nobody is told.
    pub(crate) fn breaks(&self) {
        self.set(State::Broken);
    }

    /// The same, but the engine is told that its side is closed.
    pub(crate) fn is_cut(&self) {
        self.breaks();
        for (_, engine) in &self.shared.inner().ends {
            let _ = engine.shutdown(Shutdown::Both);
        }
    }

    /// Everything comes through again, also what was sent meanwhile.
    pub(crate) fn is_mended(&self) {
        self.set(State::Whole);
    }

    fn set(&self, state: State) {
        self.shared.inner().state = state;
        self.shared.changed.notify_all();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.set(State::Removed);
        for (worker, engine) in self.shared.inner().ends.drain(..) {
            let _ = (worker.shutdown(Shutdown::Both), engine.shutdown(Shutdown::Both));
        }
        let _ = TcpStream::connect(self.address); // whoever waits for the next one sees that there is none
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Waits while nothing comes through. Whether something does now.
    fn is_whole(&self) -> bool {
        let inner = self.changed.wait_while(self.inner(), |inner| inner.state == State::Broken).unwrap();
        inner.state == State::Whole
    }

    fn connect(self: Arc<Self>, worker: TcpStream, engine: &str) {
        if !self.is_whole() {
            return;
        }
        let Ok(engine) = TcpStream::connect(engine) else { return };
        let copy = |stream: &TcpStream| stream.try_clone().unwrap();
        self.inner().ends.push((copy(&worker), copy(&engine)));
        let (shared, back, forth) = (self.clone(), copy(&worker), copy(&engine));
        std::thread::spawn(move || shared.carry(&forth, &back));
        self.carry(&worker, &engine);
    }

    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            if count == 0 || !self.is_whole() || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        self.is_whole(); // that somebody has hung up does not come through either
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
