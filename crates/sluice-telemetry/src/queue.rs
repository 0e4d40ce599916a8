//! The queue of spans, and the thread that hands them on. Whoever ends a span never waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::form;
use crate::span::SpanRecord;

/// So many spans wait to be handed on; more are counted and forgotten.
const MOST_WAITING: usize = 2048;
/// So many spans go into one body.
const MOST_TOGETHER: usize = 512;
/// So long it is waited for others that go into the same body.
const GATHER: Duration = Duration::from_secs(1);
/// So long the end of a process waits for the last ones.
const FAREWELL: Duration = Duration::from_secs(2);

/// Delivers a body; the error says why that did not work.
pub type SpanDelivery = Box<dyn Fn(Vec<u8>) -> Result<(), String> + Send>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    pub delivered: u64,
    /// The collector could not be reached, or did not want them.
    pub undelivered: u64,
    pub overflowed: u64,
}

#[derive(Default)]
struct SpanQueueState {
    waiting: VecDeque<SpanRecord>,
    counts: SpanCounts,
    ending: bool,
    ended: bool,
}

pub(crate) struct SpanQueue {
    state: Mutex<SpanQueueState>,
    changed: Condvar,
}

impl SpanQueue {
    /// A queue, and its thread. `None` if the system gives no thread.
    pub(crate) fn start(
        resource: Vec<(String, String)>,
        deliver: SpanDelivery,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Option<Arc<SpanQueue>> {
        let queue = Arc::new(SpanQueue { state: Mutex::default(), changed: Condvar::new() });
        let theirs = queue.clone();
        let work = move || theirs.hand_on(&resource, &deliver, &tell);
        std::thread::Builder::new().name("traces".into()).spawn(work).ok()?;
        Some(queue)
    }

    fn lock(&self) -> MutexGuard<'_, SpanQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, record: SpanRecord) {
        let mut state = self.lock();
        if state.waiting.len() >= MOST_WAITING || state.ending {
            state.counts.overflowed += 1;
            return;
        }
        state.waiting.push_back(record);
        if [1, MOST_TOGETHER].contains(&state.waiting.len()) {
            self.changed.notify_all();
        }
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        self.lock().counts
    }

    /// Hands on what waits, for a short time. Nothing new is taken.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ending = true;
        self.changed.notify_all();
        // Whoever does not answer by then is not waited for.
        let _ = self.changed.wait_timeout_while(state, FAREWELL, |state| !state.ended);
    }

    fn hand_on(&self, resource: &[(String, String)], deliver: &SpanDelivery, tell: &impl Fn(&str)) {
        let mut is_away = false;
        while let Some(records) = self.next() {
            let count = records.len() as u64;
            let delivered = deliver(form::body(resource, &records));
            // Told once, and not for every body: it may be away for days.
            match &delivered {
                Err(why) if !is_away => {
                    tell(&format!("traces cannot be delivered, and are counted and forgotten: {why}"))
                }
                Ok(()) if is_away => tell("traces are delivered again"),
                Ok(()) | Err(_) => {}
            }
            is_away = delivered.is_err();
            let counts = &mut self.lock().counts;
            *(if is_away { &mut counts.undelivered } else { &mut counts.delivered }) += count;
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// The next spans that go together; `None` at the end.
    fn next(&self) -> Option<Vec<SpanRecord>> {
        let wait = |state, is_patient: fn(&mut SpanQueueState) -> bool| {
            self.changed.wait_while(state, is_patient).unwrap_or_else(PoisonError::into_inner)
        };
        let state = wait(self.lock(), |state| state.waiting.is_empty() && !state.ending);
        let is_patient = |state: &mut SpanQueueState| state.waiting.len() < MOST_TOGETHER && !state.ending;
        let gathered = self.changed.wait_timeout_while(state, GATHER, is_patient);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.len().min(MOST_TOGETHER);
        (count > 0).then(|| state.waiting.drain(..count).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;
    use crate::span::{HttpRequestFacts, TraceSpan};

    fn names(body: &[u8]) -> Vec<String> {
        let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone();
        spans.iter().map(|span| span["name"].as_str().expect("a name").to_owned()).collect()
    }

    #[test]
    fn what_waits_is_delivered_at_the_end() {
        let (sender, bodies) = channel();
        let deliver = move |body| sender.send(body).map_err(|error| error.to_string());
        let queue = SpanQueue::start(Vec::new(), Box::new(deliver), |_| {}).expect("a thread");
        drop(TraceSpan::new(Some(&queue), "one"));
        let request = HttpRequestFacts { method: Some("GET"), scheme: "http", route: Some("/") };
        drop(TraceSpan::new(Some(&queue), "two").request(&request, None));
        queue.end();
        let told: Vec<String> = bodies.try_iter().flat_map(|body: Vec<u8>| names(&body)).collect();
        assert_eq!(told, ["one", "GET /"]);
        assert_eq!(queue.counts(), SpanCounts { delivered: 2, ..SpanCounts::default() });
        drop(TraceSpan::new(Some(&queue), "too late"));
        assert_eq!(queue.counts().overflowed, 1);
    }

    #[test]
    fn nobody_waits_for_a_collector_that_does_not_answer() {
        // It has taken one body, and does not come back.
        let (taken, was_taken) = channel();
        let (answer, answers) = sync_channel::<()>(0);
        let deliver = move |body: Vec<u8>| {
            let _ = taken.send(names(&body).len());
            answers.recv().map_err(|error| error.to_string())
        };
        let queue = SpanQueue::start(Vec::new(), Box::new(deliver), |_| {}).expect("a thread");
        (0..MOST_TOGETHER).for_each(|_| drop(TraceSpan::new(Some(&queue), "first")));
        assert_eq!(was_taken.recv().expect("a body"), MOST_TOGETHER);
        (0..MOST_WAITING + 7).for_each(|_| drop(TraceSpan::new(Some(&queue), "later")));
        assert_eq!(queue.counts(), SpanCounts { overflowed: 7, ..SpanCounts::default() });
        drop(answer);
        queue.end();
        let all = (MOST_TOGETHER + MOST_WAITING) as u64;
        assert_eq!(queue.counts(), SpanCounts { undelivered: all, overflowed: 7, ..SpanCounts::default() });
    }

    #[test]
    fn a_collector_that_is_away_is_told_once_and_so_is_its_return() {
        let (sender, told) = channel();
        let (outcome, outcomes) = channel::<Result<(), String>>();
        let (asked, was_asked) = channel();
        let deliver = move |_| {
            let _ = asked.send(());
            outcomes.recv().unwrap_or(Ok(()))
        };
        let tell = move |words: &str| drop(sender.send(words.to_owned()));
        let queue = SpanQueue::start(Vec::new(), Box::new(deliver), tell).expect("a thread");
        for said in [Err("away".to_owned()), Err("away".to_owned()), Ok(())] {
            (0..MOST_TOGETHER).for_each(|_| drop(TraceSpan::new(Some(&queue), "span")));
            was_asked.recv().expect("a body");
            outcome.send(said).expect("it waits");
        }
        queue.end();
        let told: Vec<String> = told.try_iter().collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].ends_with("forgotten: away") && told[1] == "traces are delivered again", "{told:?}");
    }
}
