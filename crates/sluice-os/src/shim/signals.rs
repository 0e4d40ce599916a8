//! The signals that a shim hears, as something that can be waited for beside everything else.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShimSignal {
    ChildEnded,
    WindowChanged,
    WindowGone,
    /// A process wants the session to end.
    Asked,
}

pub(super) struct ShimSignals(SignalDelivery<UnixStream, SignalOnly>);

impl ShimSignals {
    pub(super) fn listen() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        // INT and QUIT are heard and ignored: they are for the agent, to whom the terminal hands the keys.
        let signals = [SIGCHLD, SIGHUP, SIGTERM, SIGWINCH, SIGINT, SIGQUIT];
        Ok(Self(SignalDelivery::with_pipe(read, write, SignalOnly, signals)?))
    }

    /// Can be read when something was heard.
    pub(super) fn handle(&self) -> impl AsFd + '_ {
        self.0.get_read().as_fd()
    }

    pub(super) fn heard(&mut self) -> Vec<ShimSignal> {
        let heard = self.0.pending().filter_map(|signal| match signal {
            SIGCHLD => Some(ShimSignal::ChildEnded),
            SIGHUP => Some(ShimSignal::WindowGone),
            SIGTERM => Some(ShimSignal::Asked),
            SIGWINCH => Some(ShimSignal::WindowChanged),
            _ => None,
        });
        heard.collect()
    }
}
