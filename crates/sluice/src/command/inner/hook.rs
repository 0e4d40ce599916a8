//! `sluice hook PROGRAM SESSION`: an agent program calls it when its agent asks, stops or goes on, and hands it JSON.
//!
//! It tells the engine that runs, and starts none. It prints nothing, because programs read what hooks print; it never
//! fails, because programs take that for a verdict; and whatever happens it ends within [`WITHIN`].

use std::ffi::OsString;
use std::io::Read as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use sluice_api::Client;
use sluice_api::attention::{AgentDialogKind, AgentNews, SignalAnswer, SignalSession};
use sluice_home::settings::places::HomePaths;
use sluice_os::harness::hooks::HookCall;
use sluice_os::harness::stream::HarnessFormat;

/// An agent waits for its hooks: for this one no longer.
const WITHIN: Duration = Duration::from_secs(2);
/// Bytes of what a program hands over that are read. What a tool answered stands in it, too.
const LONGEST: u64 = 4 << 20;
/// Characters of a text that are sent. The engine cuts it further.
const LONGEST_TEXT: usize = 4000;

/// Tells the engine, if there is something to tell and an engine that hears it in time.
pub(super) fn tell(arguments: &[OsString]) {
    let [program, session] = arguments else { return };
    let (Some(program), Some(session)) = (program.to_str().and_then(HarnessFormat::read), session.to_str()) else {
        return;
    };
    let session = session.to_owned();
    let (done, ended) = channel::<()>();
    let told = std::thread::Builder::new().spawn(move || {
        let _done = done;
        said(program, session);
    });
    if told.is_ok() {
        // The thread has ended when its end of the channel is gone.
        let waited = ended.recv_timeout(WITHIN);
        debug_assert!(matches!(waited, Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)));
    }
}

fn said(program: HarnessFormat, session: String) -> Option<()> {
    let mut input = Vec::new();
    std::io::stdin().lock().take(LONGEST).read_to_end(&mut input).ok()?;
    let cut = |text: String| text.chars().take(LONGEST_TEXT).collect::<String>();
    let (news, what, text) = match HookCall::read(program, &input)? {
        HookCall::Waits { what, text } => (AgentNews::Waits, AgentDialogKind::read(what.word()), cut(text)),
        HookCall::TurnEnded { text } => (AgentNews::TurnEnded, None, cut(text)),
        HookCall::Works => (AgentNews::Works, None, String::new()),
    };
    let client = Client::new(&HomePaths::of_environment()?.socket()).ok()?;
    client.post::<SignalAnswer>("/v1/lifecycle/signal", &SignalSession { session, news, what, text }).ok().map(drop)
}
