//! A start in a terminal, as a task has it: the prompt must reach the model, and the answer the screen. A program in a
//! terminal does not end by itself as a rule, so the check ends it.

use std::process::Command;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use sluice_os::harness::HarnessMode;
use sluice_os::redact::shown_of;
use sluice_os::session::{
    AgentEnd, EndedSession, SessionEnding, SessionFailure, SessionId, SessionPlace, SessionStream, SessionWindow,
};

use super::{KitBench, KitFailure, KitRun, last_lines};

/// How often the screen is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of the log that are looked at.
const PIECE: usize = 1 << 20;
const ROWS: u16 = 50;
const COLUMNS: u16 = 200;
/// What a hook tells at the end of a turn, and how long after the answer it may come.
const TURN_ENDED: &str = "turn ended";
const HOOK_WITHIN: Duration = Duration::from_secs(5);
/// How long a screen must stay as it is to be one that waits, where no answer is to come.
const STILL: Duration = Duration::from_secs(3);

pub(super) fn run(bench: &KitBench<'_>) -> Result<KitRun, KitFailure> {
    let mut run = KitRun { place: "terminal", ..KitRun::default() };
    let window = SessionWindow { key: "check".into(), session: "check".into(), name: "check".into() };
    let place = SessionPlace::Terminal { rows: ROWS, columns: COLUMNS, window: Some(window) };
    let spec = bench.spec(HarnessMode::Interactive, place)?;
    let started = Instant::now();
    bench.sessions.start(&spec)?;
    let (over, ended) = channel();
    bench.sessions.watch(&spec.id, move |_, gone| drop(over.send(gone)))?;
    let seen = watch(bench, &spec.id, started, &ended);
    run.signal("first output", "screen", seen.first);
    run.ended = match &seen.gone {
        None => "lives, and was ended by the check".to_owned(),
        Some(gone) => words(gone),
    };
    bench.heard(&mut run, started);
    if bench.model.is_some() {
        run.signal("answer", "screen", seen.answered);
        run.result_read = Some(seen.answered.is_some());
        if seen.answered.is_none() {
            run.fail("the model's answer did not appear on its screen");
        }
    }
    hooks(bench, &mut run, &spec.id, started);
    let is_failure = seen.gone.as_ref().is_some_and(|gone| words(gone) != "exit code 0");
    if is_failure && !bench.order.dry {
        run.fail(format!("it ended by itself: {}", run.ended));
    }
    if seen.gone.is_none() {
        let asked = Instant::now();
        bench.end(&spec.id);
        run.signal("end when told to", "exit", Some(asked.elapsed()));
    }
    let tail = bench.sessions.output_tail(&spec.id, SessionStream::Output, PIECE);
    run.printed = tail.map(|chunk| chunk.bytes).unwrap_or_default();
    if !run.fails.is_empty() || bench.order.dry {
        run.last_lines = last_lines(&seen.screen);
    }
    Ok(run)
}

/// What the hooks of the program told. Where its turn has ended, they must have said so.
fn hooks(bench: &KitBench<'_>, run: &mut KitRun, id: &SessionId, started: Instant) {
    let Some(ear) = &bench.ear else { return };
    let is_expected = run.result_read == Some(true);
    let patience = if is_expected { HOOK_WITHIN } else { Duration::ZERO };
    let heard = ear.wait(id.as_str(), TURN_ENDED, patience);
    for call in &heard {
        run.signal(&call.news, "hook", Some(call.at.saturating_duration_since(started)));
    }
    if is_expected && !heard.iter().any(|call| call.news == TURN_ENDED) {
        run.signal(TURN_ENDED, "hook", None);
        run.fail("no hook told that its turn has ended: Sluice would take it for one that works");
    }
}

/// What was seen of a start.
#[derive(Default)]
struct TerminalSight {
    first: Option<Duration>,
    answered: Option<Duration>,
    gone: Option<EndedSession>,
    screen: String,
}

/// Looks until the answer is there, the program is gone or the time is over. Where no answer can come, until the screen
/// stands still.
fn watch(
    bench: &KitBench<'_>,
    id: &SessionId,
    started: Instant,
    ended: &Receiver<Result<EndedSession, SessionFailure>>,
) -> TerminalSight {
    let mut sight = TerminalSight::default();
    let mut changed = Instant::now();
    while started.elapsed() < bench.order.within {
        match ended.try_recv() {
            Ok(gone) => sight.gone = gone.ok(),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        let screen = screen(bench, id);
        if screen != sight.screen && !screen.trim().is_empty() {
            sight.first = sight.first.or_else(|| Some(started.elapsed()));
            sight.screen = screen;
            changed = Instant::now();
        }
        if bench.model.is_some() && sight.screen.contains(&bench.sentence) {
            sight.answered = Some(started.elapsed());
            return sight;
        }
        let stands_still = bench.model.is_none() && sight.first.is_some() && changed.elapsed() > STILL;
        if sight.gone.is_some() || stands_still {
            return sight;
        }
        std::thread::park_timeout(LOOK);
    }
    sight
}

/// What stands on the screen; for a program that is gone, or without tmux, what it printed.
fn screen(bench: &KitBench<'_>, id: &SessionId) -> String {
    let shown = bench.sessions.pane(id).ok().and_then(|(socket, pane)| {
        let output = Command::new("tmux").arg("-S").arg(socket).args(["capture-pane", "-p", "-t", &pane]).output();
        output.ok().filter(|output| output.status.success())
    });
    match shown {
        Some(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        None => {
            let tail = bench.sessions.output_tail(id, SessionStream::Output, PIECE);
            shown_of(&tail.map(|chunk| chunk.bytes).unwrap_or_default())
        }
    }
}

fn words(gone: &EndedSession) -> String {
    match &gone.how {
        SessionEnding::Exited(record) => match &record.end {
            AgentEnd::Code(code) => format!("exit code {code}"),
            AgentEnd::Signal(signal) => format!("signal {signal}"),
            AgentEnd::NotStarted(why) => format!("not started: {why}"),
        },
        SessionEnding::Lost { why } => why.clone(),
    }
}
