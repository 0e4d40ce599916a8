//! A start without a terminal: its stream is read as a step of a run reads it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sluice_os::harness::HarnessMode;
use sluice_os::harness::stream::{HarnessExit, HarnessReader};
use sluice_os::redact::shown_of;
use sluice_os::session::{AgentEnd, EndedSession, SessionEnding, SessionId, SessionPlace, SessionStream};

use super::{KitBench, KitFailure, KitRun, last_lines};

/// How often the stream is read.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

pub(super) fn run(bench: &KitBench<'_>) -> Result<KitRun, KitFailure> {
    let mut run = KitRun { place: "headless", ..KitRun::default() };
    let spec = bench.spec(HarnessMode::Headless, SessionPlace::Headless { input: None })?;
    let started = Instant::now();
    bench.sessions.start(&spec)?;
    let (over, ended) = channel();
    bench.sessions.watch(&spec.id, move |_, gone| drop(over.send(gone)))?;
    let mut reader = HarnessReader::new(bench.order.harness.output);
    let (mut first, mut last, mut gone) = (None, None, None);
    while gone.is_none() && started.elapsed() < bench.order.within {
        match ended.recv_timeout(LOOK) {
            Ok(end) => gone = Some(end?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let is_more = read_on(bench, &spec.id, &mut reader, &mut run.printed);
        if is_more {
            first = first.or_else(|| Some(started.elapsed()));
        }
        last = reader.is_final().then(|| last.unwrap_or_else(|| started.elapsed()));
    }
    run.signal("first output", "stream", first);
    let exited = gone.as_ref().map(|_| started.elapsed());
    if gone.is_none() && !bench.order.dry {
        run.fail(format!("it has not ended within {} seconds", bench.order.within.as_secs()));
    }
    if gone.is_none() {
        bench.end(&spec.id);
    }
    // What reports as text has no last words but its end.
    run.signal("result", "stream", last);
    run.signal("end", "exit", exited);
    judge(bench, &mut run, &spec.id, reader, gone.as_ref());
    bench.heard(&mut run, started);
    Ok(run)
}

fn read_on(bench: &KitBench<'_>, id: &SessionId, reader: &mut HarnessReader, printed: &mut Vec<u8>) -> bool {
    let before = printed.len();
    while let Ok(chunk) = bench.sessions.output_from(id, SessionStream::Output, printed.len() as u64, PIECE) {
        if chunk.bytes.is_empty() {
            break;
        }
        reader.feed(&chunk.bytes);
        printed.extend(&chunk.bytes);
    }
    printed.len() > before
}

/// What is made of its stream and its end, as for a step.
fn judge(bench: &KitBench<'_>, run: &mut KitRun, id: &SessionId, reader: HarnessReader, gone: Option<&EndedSession>) {
    let exit = match gone.map(|gone| &gone.how) {
        Some(SessionEnding::Exited(record)) => match &record.end {
            AgentEnd::Code(code) => {
                run.ended = format!("exit code {code}");
                HarnessExit::Code(*code)
            }
            AgentEnd::Signal(signal) => {
                run.ended = format!("signal {signal}");
                HarnessExit::Signal(*signal)
            }
            AgentEnd::NotStarted(why) => {
                run.ended = format!("not started: {why}");
                HarnessExit::Code(127)
            }
        },
        Some(SessionEnding::Lost { why }) => {
            run.ended = why.clone();
            HarnessExit::Signal(9)
        }
        None => {
            run.ended = "ended by the check".to_owned();
            HarnessExit::Signal(15)
        }
    };
    let errors = bench.sessions.output_tail(id, SessionStream::Errors, PIECE).map(|it| it.bytes).unwrap_or_default();
    let shown = format!("{}\n{}", shown_of(&run.printed), shown_of(&errors));
    let end = reader.finish(exit, &errors);
    run.input_tokens = end.usage.input;
    run.output_tokens = end.usage.output;
    run.cost = end.usage.cost.map(|millionths| millionths as f64 / 1e6);
    if bench.model.is_some() {
        run.result_read = Some(end.text.contains(&bench.sentence));
        if run.result_read == Some(false) {
            run.fail("the model's answer did not come back as the result");
        }
    }
    match &end.error {
        Some(why) if bench.order.dry => run.ended = format!("{}: {why}", run.ended),
        Some(why) => run.fail(format!("it was taken for a failure: {why}")),
        None if bench.order.dry => run.fail("without a key and a model it was taken for a success"),
        None => {}
    }
    if !run.fails.is_empty() || bench.order.dry {
        run.last_lines = last_lines(&shown);
    }
}
