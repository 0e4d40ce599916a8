//! A span: something that took its time. It never holds what was said, only what was asked for and how it went.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::context::{SpanContext, TraceParent, cause};
use crate::queue::SpanQueue;

/// The most letters of a value that are told.
const LONGEST_VALUE: usize = 256;
/// The most links of one span; it is what collectors take.
const MOST_LINKS: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// A text. Of a long one only its beginning is told.
    Text(String),
    Number(i64),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        SpanValue::Text(text.chars().take(LONGEST_VALUE).collect())
    }
}

impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        SpanValue::Number(number.into())
    }
}

impl From<usize> for SpanValue {
    fn from(number: usize) -> Self {
        SpanValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal,
    Server,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanRecord {
    pub(crate) context: SpanContext,
    pub(crate) parent: Option<[u8; 8]>,
    /// What led to it, or follows from it, in other traces.
    pub(crate) links: Vec<SpanContext>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    pub(crate) values: Vec<(&'static str, SpanValue)>,
    pub(crate) failed: bool,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct HttpRequestFacts<'a> {
    /// Its method; `None`: one that no route has.
    pub method: Option<&'a str>,
    pub scheme: &'a str,
    /// The route that answers it; `None`: it leads nowhere.
    pub route: Option<&'a str>,
}

struct OpenSpan {
    queue: Arc<SpanQueue>,
    since: Instant,
    /// When it ended, if that is known; else it ends when it is dropped.
    ended: Option<u64>,
    record: SpanRecord,
}

impl OpenSpan {
    fn link(&mut self, to: SpanContext) {
        if self.record.links.len() < MOST_LINKS && !self.record.links.contains(&to) {
            self.record.links.push(to);
        }
    }
}

/// Something that goes on. It ends when it is dropped.
#[must_use = "a span ends when it is dropped"]
pub struct TraceSpan(Option<Box<OpenSpan>>);

impl TraceSpan {
    pub(crate) fn new(queue: Option<&Arc<SpanQueue>>, name: &'static str) -> TraceSpan {
        let open = queue.and_then(|queue| {
            let mut random = [0; 24];
            // Without an id it cannot be told from others.
            getrandom::fill(&mut random).ok()?;
            let (id, trace) = random.split_first_chunk::<8>()?;
            let record = SpanRecord {
                context: SpanContext { trace: trace.try_into().ok()?, id: *id },
                parent: None,
                links: Vec::new(),
                name: name.into(),
                kind: SpanKind::Internal,
                values: Vec::new(),
                failed: false,
                began: now(),
                ended: 0,
            };
            Some(Box::new(OpenSpan { queue: queue.clone(), since: Instant::now(), ended: None, record }))
        });
        TraceSpan(open)
    }

    /// It is a request over HTTP, and `traceparent` is what was sent as that header. A caller who says there that its own
    /// trace is not recorded gets none here either.
    pub fn request(mut self, request: &HttpRequestFacts<'_>, traceparent: Option<&str>) -> TraceSpan {
        let Some(open) = &mut self.0 else { return self };
        let HttpRequestFacts { method, scheme, route } = *request;
        // The names are those of OpenTelemetry: a method that is unknown is `_OTHER`, and `HTTP` in the span's name.
        let named = method.unwrap_or("HTTP");
        open.record.name = route.map_or_else(|| named.to_owned(), |route| format!("{named} {route}")).into();
        open.record.kind = SpanKind::Server;
        if let Some(TraceParent { context, is_recorded }) = traceparent.and_then(TraceParent::read) {
            (open.record.context.trace, open.record.parent) = (context.trace, Some(context.id));
            if !is_recorded {
                self.0 = None;
            }
        }
        self.set("http.request.method", method.unwrap_or("_OTHER"));
        self.set("url.scheme", scheme);
        if let Some(route) = route {
            self.set("http.route", route);
        }
        self
    }

    /// It is done for this stream, a task or a run: a part of its trace.
    pub fn within(mut self, stream: &str) -> TraceSpan {
        if let Some(open) = &mut self.0 {
            let root = SpanContext::root_of(stream);
            (open.record.context.trace, open.record.parent) = (root.trace, Some(root.id));
        }
        self
    }

    /// It is all of what was done for this stream, between these moments, in milliseconds since 1970.
    pub fn whole(mut self, stream: &str, began: i64, ended: i64) -> TraceSpan {
        if let Some(open) = &mut self.0 {
            let nanoseconds = |at: i64| u64::try_from(at).unwrap_or(0).saturating_mul(1_000_000);
            open.record.context = SpanContext::root_of(stream);
            open.record.began = nanoseconds(began);
            open.ended = Some(nanoseconds(ended.max(began)));
        }
        self
    }

    /// It is linked to what leads to it, as far as that is known on this thread.
    pub fn with_cause(mut self) -> TraceSpan {
        if let (Some(open), Some(cause)) = (&mut self.0, cause()) {
            open.link(cause);
        }
        self
    }

    /// It has to do with this stream, whose trace is another.
    pub fn link(&mut self, stream: &str) {
        if let Some(open) = &mut self.0 {
            open.link(SpanContext::root_of(stream));
        }
    }

    /// By what others name it; `None` without a collector.
    pub fn context(&self) -> Option<SpanContext> {
        self.0.as_ref().map(|open| open.record.context)
    }

    /// Says something about it: an id, a word, a count. Never a secret, and never what a person or an agent said.
    pub fn with(mut self, key: &'static str, value: impl Into<SpanValue>) -> TraceSpan {
        self.set(key, value);
        self
    }

    /// Says something about it that was not known when it began.
    pub fn set(&mut self, key: &'static str, value: impl Into<SpanValue>) {
        if let Some(open) = &mut self.0 {
            open.record.values.push((key, value.into()));
        }
    }

    pub fn outcome(&mut self, word: &str, failed: bool) {
        self.set("sluice.outcome", word);
        if failed {
            self.fail(word);
        }
    }

    /// It did not go well, for a reason of this kind: one of few words, never a message.
    pub fn fail(&mut self, kind: &str) {
        self.set("error.type", kind);
        if let Some(open) = &mut self.0 {
            open.record.failed = true;
        }
    }
}

impl Drop for TraceSpan {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let OpenSpan { queue, since, ended, mut record } = *open;
            // The clock of the system may be set meanwhile; this one may not.
            let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            record.ended = ended.unwrap_or_else(|| record.began.saturating_add(took));
            queue.push(record);
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_collector_a_span_is_nothing() {
        let mut span = TraceSpan::new(None, "step").within("run/a").with_cause().with("key", "value");
        span.link("task/a");
        span.outcome("failed", true);
        assert!(span.0.is_none());
    }
}
