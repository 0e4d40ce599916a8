//! `sluice hook PROGRAM SESSION`: an agent program calls it when its agent asks, stops or goes on, and hands it JSON.
//!
//! It tells the engine that runs, and starts none; what no engine hears it leaves in the session's folder. It prints nothing, because programs read what hooks print; it never
//! fails, because programs take that for a verdict; and whatever happens it ends within [`WITHIN`].

use std::ffi::OsString;
use std::io::Read as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use sluice_api::Client;
use sluice_api::attention::{AgentDialogKind, AgentNews, SignalAnswer, SignalSession};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_home::settings::left_signal::LeftSignal;
use sluice_home::settings::places::HomePaths;
use sluice_os::harness::hooks::HookCall;
use sluice_os::harness::screens::AgentDialog;
use sluice_os::harness::stream::HarnessFormat;
use sluice_os::session::SessionId;

/// An agent waits for its hooks: for this one no longer.
const WITHIN: Duration = Duration::from_secs(2);
/// Bytes of what a program hands over that are read. What a tool answered stands in it, too.
const LONGEST: u64 = 4 << 20;
/// Characters of a text that are sent. The engine takes secrets out and cuts it further.
const LONGEST_TEXT: usize = 64 << 10;

/// Tells the engine, if there is something to tell and an engine that hears it in time.
pub(super) fn tell(arguments: &[OsString]) {
    let [program, session] = arguments else { return };
    let (Some(program), Some(session)) = (program.to_str().and_then(HarnessFormat::read), session.to_str()) else {
        return;
    };
    let (Some(places), Ok(id)) = (HomePaths::of_environment(), SessionId::new(session)) else { return };
    let (begun, ended) = channel::<SignalSession>();
    let until = Instant::now() + WITHIN;
    let left = LeftSignal::of(&places, &id);
    let told = std::thread::Builder::new().spawn(move || said(program, &id, &places, &begun));
    let Ok(said) = ended.recv_timeout(WITHIN) else { return };
    // The thread has ended when its end of the channel is gone.
    if told.is_ok()
        && let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        left.leave(&said);
    }
}

/// Reads what is said, hands it back, and tells the engine. What no engine hears is left to the next.
fn said(program: HarnessFormat, id: &SessionId, places: &HomePaths, begun: &Sender<SignalSession>) -> Option<()> {
    let mut input = Vec::new();
    std::io::stdin().lock().take(LONGEST).read_to_end(&mut input).ok()?;
    let (news, what, text) = match HookCall::read(program, &input)? {
        HookCall::Waits { what, text } => (AgentNews::Waits, Some(kind_of(what)), cut(text)),
        HookCall::TurnEnded { text } => (AgentNews::TurnEnded, None, cut(text)),
        HookCall::Works => (AgentNews::Works, None, String::new()),
    };
    let dialog = HookCall::dialog(program, &input);
    let said = SignalSession { session: id.to_string(), news, what, text, dialog };
    begun.send(said.clone()).ok()?;
    let left = LeftSignal::of(places, id);
    let tell = || Client::new(&places.socket())?.post::<SignalAnswer>("/v1/lifecycle/signal", &said);
    // The engine that comes next takes it up. One that has come meanwhile may have looked already.
    if is_away(&tell()) {
        left.leave(&said);
        if tell().is_ok() {
            left.take();
        }
    }
    Some(())
}

/// Whether no engine has judged what was said: none is there, or one of an older version.
fn is_away(answer: &Result<SignalAnswer, Problem>) -> bool {
    let is_unheard =
        |problem: &Problem| matches!(problem.status, ProblemStatus::Unavailable | ProblemStatus::BadRequest);
    answer.as_ref().is_err_and(is_unheard)
}

/// As much of a text as is sent. The word at which it is cut goes too: a part of a secret is not known for one.
fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        None => text,
        Some((end, _)) => {
            let whole = text[..end].rfind(char::is_whitespace).unwrap_or(0);
            text[..whole].to_owned()
        }
    }
}

fn kind_of(dialog: AgentDialog) -> AgentDialogKind {
    match dialog {
        AgentDialog::Trust => AgentDialogKind::Trust,
        AgentDialog::Login => AgentDialogKind::Login,
        AgentDialog::Permission => AgentDialogKind::Permission,
        AgentDialog::Question => AgentDialogKind::Question,
        AgentDialog::Update => AgentDialogKind::Update,
        AgentDialog::Limit => AgentDialogKind::Limit,
        AgentDialog::Network => AgentDialogKind::Network,
        AgentDialog::Other => AgentDialogKind::Other,
    }
}
