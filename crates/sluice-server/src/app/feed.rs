//! The newest events, made ready once for all who follow: the end of the log, in memory.
//!
//! Whoever keeps up takes them from here; whoever has fallen further behind, or comes from far back, reads the stored log
//! until they have caught up. So nobody misses anything, and five hundred who follow cost little more than one.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Bytes;
use sluice_api::event::EventShown;
use sluice_home::ask::Service;
use sluice_store::Cursor;

const MOST_READY: usize = 4_000;
/// The most bytes of events that are kept ready.
const MOST_READY_BYTES: usize = 2 << 20;
/// Events that are read at once. The store reads fewer where they are large.
pub(crate) const PAGE: usize = 500;

pub(crate) struct RenderedEvent {
    pub(crate) cursor: Cursor,
    pub(crate) kind: String,
    pub(crate) time: String,
    pub(crate) correlation: String,
    /// As a line of JSON, without its end.
    pub(crate) line: Bytes,
    /// As a server-sent event.
    pub(crate) sent: Bytes,
}

impl RenderedEvent {
    pub(crate) fn new(cursor: Cursor, event: EventShown) -> Arc<RenderedEvent> {
        let line = serde_json::to_string(&event).unwrap_or_default();
        let sent = Bytes::from(sent(Some(cursor), &event.kind, &line));
        // The line stands at the end of what is sent, before its two ends of lines.
        let end = sent.len() - 2;
        let line = sent.slice(end - line.len()..end);
        let EventShown { kind, time, correlation_id: correlation, .. } = event;
        Arc::new(RenderedEvent { cursor, kind, time, correlation, line, sent })
    }
}

pub(crate) fn sent(cursor: Option<Cursor>, kind: &str, line: &str) -> String {
    let id = cursor.map(|cursor| format!("id: {}\n", cursor.0)).unwrap_or_default();
    let kind: String = kind.chars().filter(|it| !it.is_control()).collect();
    format!("{id}event: {kind}\ndata: {line}\n\n")
}

/// The end of the log.
#[derive(Default)]
pub(crate) struct EventFeed(RwLock<FeedBuffer>);

#[derive(Default)]
struct FeedBuffer {
    /// Everything after this is here; nothing is, while no client follows.
    from: Option<Cursor>,
    events: VecDeque<Arc<RenderedEvent>>,
    bytes: usize,
}

impl FeedBuffer {
    fn end(&self) -> Option<Cursor> {
        self.events.back().map(|told| told.cursor).or(self.from)
    }
}

impl EventFeed {
    /// What comes after a place, at most a page; `None` if that is further back than this goes.
    pub(crate) fn after(&self, place: Cursor) -> Option<Vec<Arc<RenderedEvent>>> {
        let ready = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if ready.from.is_none_or(|from| place < from) {
            return None;
        }
        let start = ready.events.partition_point(|told| told.cursor <= place);
        Some(ready.events.range(start..).take(PAGE).cloned().collect())
    }

    /// The end, if nothing of this correlation has come between a place and there; `None` where something has, or may have.
    /// Whoever goes on from the end looks at each event once.
    pub(crate) fn quiet_until(&self, correlation: &str, place: Cursor) -> Option<Cursor> {
        let ready = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if ready.from.is_none_or(|from| place < from) {
            return None;
        }
        let start = ready.events.partition_point(|told| told.cursor <= place);
        let is_told = ready.events.range(start..).any(|told| told.correlation == correlation);
        ready.end().filter(|_| !is_told)
    }

    pub(crate) fn end(&self) -> Option<Cursor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).end()
    }

    /// Takes up what is new, while a client follows.
    pub(crate) fn refresh(&self, service: &Service, has_followers: bool) {
        if !has_followers {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = FeedBuffer::default();
            return;
        }
        loop {
            let Some(last) = self.end() else {
                let Ok(end) = service.home().tasks.end_of_log() else { return };
                self.0.write().unwrap_or_else(PoisonError::into_inner).from = Some(end);
                return;
            };
            let Ok(page) = service.events(last, PAGE) else { return };
            if page.is_empty() {
                return;
            }
            self.add(page.into_iter().map(|(cursor, event)| RenderedEvent::new(cursor, event)).collect());
        }
    }

    fn add(&self, events: Vec<Arc<RenderedEvent>>) {
        let mut ready = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for told in events {
            ready.bytes += told.sent.len();
            ready.events.push_back(told);
        }
        while ready.events.len() > MOST_READY || ready.bytes > MOST_READY_BYTES {
            let Some(oldest) = ready.events.pop_front() else { break };
            ready.bytes -= oldest.sent.len();
            ready.from = Some(oldest.cursor);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(seq: u64, kind: &str, correlation: &str, data: serde_json::Value) -> EventShown {
        let (id, kind) = (format!("run/a:{seq}"), kind.to_owned());
        let (time, actor) = ("2026-11-15T12:00:00.000Z".to_owned(), "engine".to_owned());
        EventShown {
            seq,
            id,
            kind,
            time,
            actor,
            correlation_id: correlation.to_owned(),
            subject: None,
            caused_by: None,
            data,
        }
    }

    fn told(number: u64, correlation: &str) -> Arc<RenderedEvent> {
        RenderedEvent::new(Cursor(number), event(number, "step.started", correlation, json!({})))
    }

    fn numbers(feed: &EventFeed, place: u64) -> Option<Vec<u64>> {
        feed.after(Cursor(place)).map(|all| all.iter().map(|told| told.cursor.0).collect())
    }

    #[test]
    fn an_event_is_told_in_its_own_name_and_place() {
        let told = RenderedEvent::new(Cursor(7), event(7, "workflow.step.started", "a", json!({ "attempt": 1 })));
        let line = concat!(
            r#"{"seq":7,"id":"run/a:7","type":"workflow.step.started","time":"2026-11-15T12:00:00.000Z","#,
            r#""actor":"engine","correlation_id":"a","caused_by":null,"data":{"attempt":1}}"#
        );
        assert_eq!(told.sent, format!("id: 7\nevent: workflow.step.started\ndata: {line}\n\n"));
        assert_eq!(told.line, line);
    }

    #[test]
    fn whoever_comes_from_further_back_than_is_ready_is_sent_to_the_log() {
        let feed = EventFeed::default();
        assert_eq!(numbers(&feed, 0), None);
        feed.0.write().unwrap().from = Some(Cursor(4));
        assert_eq!(numbers(&feed, 3), None);
        assert_eq!(numbers(&feed, 4), Some(vec![]));
        feed.add((5..8).map(|number| told(number, "a")).collect());
        assert_eq!(numbers(&feed, 4), Some(vec![5, 6, 7]));
        assert_eq!(numbers(&feed, 6), Some(vec![7]));
        let many = u64::try_from(MOST_READY).unwrap();
        feed.add((8..8 + many).map(|number| told(number, "a")).collect());
        assert_eq!(numbers(&feed, 6), None);
        assert_eq!(numbers(&feed, 7).unwrap().len(), PAGE);
    }

    #[test]
    fn what_is_ready_is_bounded_in_bytes() {
        let feed = EventFeed::default();
        feed.0.write().unwrap().from = Some(Cursor(0));
        let large = event(1, "step.completed", "a", "x".repeat(MOST_READY_BYTES / 4).into());
        feed.add((1..9).map(|number| RenderedEvent::new(Cursor(number), large.clone())).collect());
        assert_eq!(numbers(&feed, 4), None);
        assert_eq!(numbers(&feed, 5), Some(vec![6, 7, 8]));
        assert!(feed.0.read().unwrap().bytes <= MOST_READY_BYTES);
    }

    #[test]
    fn who_waits_for_one_correlation_is_not_woken_by_others() {
        let feed = EventFeed::default();
        assert_eq!(feed.quiet_until("one", Cursor(0)), None, "it knows nothing yet");
        feed.0.write().unwrap().from = Some(Cursor(0));
        assert_eq!(feed.quiet_until("one", Cursor(0)), Some(Cursor(0)));
        feed.add(vec![told(1, "one"), told(2, "another")]);
        assert_eq!(feed.quiet_until("one", Cursor(0)), None);
        assert_eq!(feed.quiet_until("one", Cursor(1)), Some(Cursor(2)));
        assert_eq!(feed.quiet_until("other", Cursor(0)), Some(Cursor(2)), "it goes on behind what it has seen");
    }
}
