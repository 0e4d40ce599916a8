//! Where the shim takes text for its agent: a socket in the session's folder, which only its owner can enter.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::session::folder::CONTROL;
use crate::session::record::{TypedText, milliseconds};
use crate::session::say::{LONGEST_TEXT, PATIENCE, SayDelivery, SayOrder};

/// Callers that may be connected at once; more wait.
const MOST_CALLERS: usize = 16;
/// Bytes of the first line of an order.
const LONGEST_HEADER: usize = 4096;

/// An order that has come in whole.
pub(super) struct ReceivedSay {
    pub(super) order: SayOrder,
    pub(super) text: Vec<u8>,
    pub(super) caller: SayCaller,
}

/// The caller that waits for an answer; none, if the text was the session's own.
pub(super) struct SayCaller(pub(super) Option<UnixStream>);

impl ReceivedSay {
    /// What is typed first, without anybody who waits for it.
    pub(super) fn first(typed: &TypedText) -> Self {
        let order = SayOrder {
            length: typed.text.len(),
            enter: true,
            ready_within_ms: typed.ready_within_ms,
            patience_ms: milliseconds(PATIENCE),
            turn_within_ms: 0,
            once: None,
        };
        Self { order, text: typed.text.clone().into_bytes(), caller: SayCaller(None) }
    }

    /// When it is given up, if what was said before is not over by then.
    pub(super) fn give_up(&self, came: Instant) -> Instant {
        let SayOrder { ready_within_ms, patience_ms, turn_within_ms, .. } = self.order;
        came + Duration::from_millis(ready_within_ms.saturating_add(patience_ms).saturating_add(turn_within_ms))
    }
}

impl SayCaller {
    /// Tells the caller what came of the order. One who has gone is not told.
    pub(super) fn answer(self, delivery: &SayDelivery) {
        let Some(mut stream) = self.0 else { return };
        let mut line = serde_json::to_vec(delivery).unwrap_or_default();
        line.push(b'\n');
        let _ = stream.write_all(&line);
    }
}

struct ControlConnection {
    stream: UnixStream,
    bytes: Vec<u8>,
}

pub(super) struct ShimControl {
    listener: UnixListener,
    connections: Vec<ControlConnection>,
}

impl ShimControl {
    /// Listens in the current folder, which is the session's: the short name keeps within the limit of socket paths.
    pub(super) fn listen() -> io::Result<Self> {
        let _ = std::fs::remove_file(CONTROL);
        let listener = UnixListener::bind(CONTROL)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: Vec::new() })
    }

    pub(super) fn handles(&self) -> Vec<BorrowedFd<'_>> {
        let mut handles: Vec<BorrowedFd<'_>> = self.connections.iter().map(|it| it.stream.as_fd()).collect();
        if self.connections.len() < MOST_CALLERS {
            handles.push(self.listener.as_fd());
        }
        handles
    }

    /// Takes what has come; gives the orders that are whole.
    pub(super) fn serve(&mut self) -> Vec<ReceivedSay> {
        while self.connections.len() < MOST_CALLERS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(ControlConnection { stream, bytes: Vec::new() });
            }
        }
        let mut received = Vec::new();
        for mut connection in std::mem::take(&mut self.connections) {
            let open = connection.read();
            match connection.order() {
                Ok(Some((order, text))) => {
                    // The answer is short; a caller who does not take it is not waited for.
                    received.push(ReceivedSay { order, text, caller: SayCaller(Some(connection.stream)) });
                }
                Ok(None) if open => self.connections.push(connection),
                Ok(None) | Err(_) => {}
            }
        }
        received
    }
}

impl ControlConnection {
    /// Reads what is there. Says whether more can come.
    fn read(&mut self) -> bool {
        let mut buffer = vec![0; 64 * 1024];
        while self.bytes.len() <= LONGEST_HEADER + LONGEST_TEXT {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        false
    }

    fn order(&mut self) -> Result<Option<(SayOrder, Vec<u8>)>, serde_json::Error> {
        let Some(line) = self.bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let order: SayOrder = serde_json::from_slice(&self.bytes[..line])?;
        if self.bytes.len() - line - 1 < order.length {
            return Ok(None);
        }
        let text = self.bytes[line + 1..line + 1 + order.length].to_vec();
        Ok(Some((order, text)))
    }
}
