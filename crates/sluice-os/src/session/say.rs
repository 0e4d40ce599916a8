//! Text for a living agent: it is handed to the shim, which owns the agent's terminal and types it there.
//!
//! There is one way, with and without tmux. The shim knows what no look at a screen can tell: whether the program
//! wants pasted text in brackets, whether it reads lines or keys, and whether it has read what was typed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::folder::{CONTROL, SessionFolder};
use super::record::SessionId;

/// Bytes that can be typed at once.
pub const LONGEST_TEXT: usize = 4 << 20;

/// How much longer than agreed a shim may take to answer: a slow reader of a long text takes its time.
const SHIM_MARGIN: Duration = Duration::from_secs(120);

/// How long an agent may read nothing, unless the caller knows better.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be typed, and how long to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SayRequest {
    /// The text, typed byte for byte.
    pub text: String,
    /// Whether Enter follows, as a key of its own.
    pub enter: bool,
    /// How long to wait for an agent that has just started to read keys. After that it is taken for one that reads
    /// lines.
    pub ready_within: Duration,
    /// How long the agent may read nothing before it is given up.
    pub patience: Duration,
    /// How much longer than that it may wait behind what was said before.
    pub turn_within: Duration,
    /// A name under which the session's shim remembers that this was delivered. Whoever was killed before the answer
    /// came can say it again under the same name: it is typed once.
    pub once: Option<String>,
}

impl SayRequest {
    pub fn new(text: impl Into<String>) -> Self {
        let patience = PATIENCE;
        let (ready_within, turn_within) = (Duration::ZERO, Duration::ZERO);
        Self { text: text.into(), enter: true, ready_within, patience, turn_within, once: None }
    }

    /// The same, typed once however often it is said under this name.
    #[must_use]
    pub fn once(self, name: impl Into<String>) -> Self {
        Self { once: Some(name.into()), ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SayDelivery {
    /// The agent has read all of it, and Enter.
    Delivered {
        /// It was marked as pasted, because the agent asked for that.
        brackets: bool,
        /// Control characters that would have acted as keys were replaced by their pictures.
        altered: bool,
        /// The agent printed something meanwhile.
        answered: bool,
    },
    /// The agent has not read all of it. What it has not read was taken back, and Enter was not pressed after it.
    NotDelivered { reason: String },
}

/// The first line of what is sent to the shim; the text follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SayOrder {
    pub(crate) length: usize,
    pub(crate) enter: bool,
    pub(crate) ready_within_ms: u64,
    pub(crate) patience_ms: u64,
    #[serde(default)]
    pub(crate) turn_within_ms: u64,
    #[serde(default)]
    pub(crate) once: Option<String>,
}

/// The texts of which a caller waits to hear what came of them, so that they can be cut short.
#[derive(Debug, Default)]
pub(super) struct PendingSays(Mutex<Vec<(SessionId, Arc<UnixStream>)>>);

impl PendingSays {
    fn all(&self) -> MutexGuard<'_, Vec<(SessionId, Arc<UnixStream>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No caller waits any longer for what is said to this session.
    pub(super) fn cut_short(&self, id: &SessionId) {
        for (_, stream) in self.all().iter().filter(|(to, _)| to == id) {
            // One that is closed has its answer.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Hands a text to the shim of a session and waits for what came of it.
pub(super) fn say(
    id: &SessionId,
    folder: &SessionFolder,
    say: &SayRequest,
    saying: &PendingSays,
) -> io::Result<SayDelivery> {
    let not = |reason: &str| Ok(SayDelivery::NotDelivered { reason: reason.to_owned() });
    if say.text.len() > LONGEST_TEXT {
        return not(&format!("it has {} bytes, and {LONGEST_TEXT} can be typed: put it in a file", say.text.len()));
    }
    let stream = match connect(folder) {
        Ok(stream) => Arc::new(stream),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return not("the session has ended");
        }
        Err(error) => return Err(error),
    };
    let order = SayOrder {
        length: say.text.len(),
        enter: say.enter,
        ready_within_ms: super::record::milliseconds(say.ready_within),
        patience_ms: super::record::milliseconds(say.patience),
        turn_within_ms: super::record::milliseconds(say.turn_within),
        once: say.once.clone(),
    };
    let mut bytes = serde_json::to_vec(&order)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(say.text.as_bytes());
    let mut reply = String::new();
    stream.set_read_timeout(Some(say.ready_within + say.patience + say.turn_within + SHIM_MARGIN))?;
    saying.all().push((id.clone(), stream.clone()));
    // The shim may end in the middle of it; then there is no answer.
    let sent = (&*stream).write_all(&bytes).and_then(|()| BufReader::new(&*stream).read_line(&mut reply).map(drop));
    saying.all().retain(|(_, other)| !Arc::ptr_eq(other, &stream));
    match sent {
        Ok(()) if !reply.is_empty() => Ok(serde_json::from_str(&reply)?),
        Ok(()) => not("the session has ended"),
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            not("the session has ended")
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => not("its shim does not answer"),
        Err(error) => Err(error),
    }
}

/// A socket's path may have 107 bytes, and a home may be deeper: the folder is named by an open handle of it.
fn connect(folder: &SessionFolder) -> io::Result<UnixStream> {
    let handle = File::open(folder.path())?;
    UnixStream::connect(format!("/proc/self/fd/{}/{CONTROL}", handle.as_raw_fd()))
}
