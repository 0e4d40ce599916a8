//! What the doors bear: every limit with its name, and a bucket that counts.

pub(crate) mod connections;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_home::settings::config::ServeConfig;

/// The largest request that is read at the socket, in bytes.
pub(crate) const LARGEST_AT_SOCKET: usize = 64 << 20;
/// The largest request that is read over the network, in bytes.
pub(crate) const LARGEST_OVER_TCP: usize = 8 << 20;
/// The longest text in a request, in bytes.
pub(crate) const LONGEST_FIELD: usize = 4 << 20;
/// So many bytes of a request over the network count as one request more.
pub(crate) const BYTES_OF_REQUEST: u64 = 64 << 10;
/// So many follow the log at once, at each door.
pub(crate) const MOST_FOLLOWERS: usize = 1000;
/// So many of them with one token.
pub(crate) const MOST_FOLLOWERS_OF_ONE: usize = 250;
/// So many workers listen at once, at each door.
pub(crate) const MOST_CRABS: usize = 1000;
/// So many of them with one token.
pub(crate) const MOST_CRABS_OF_ONE: usize = 500;
/// So many connections a door has beside those of followers and workers. At the socket further ones wait until one ends.
pub(crate) const MOST_CONNECTIONS: usize = 512;
/// So many connections one token has over the network, whatever they are for.
pub(crate) const MOST_CONNECTIONS_OF_ONE: usize = 1000;
/// So many connections there are over the network over which nobody has shown a token. A further one pushes the oldest
/// out.
pub(crate) const MOST_STRANGERS: usize = 512;
/// So many of them from one address.
pub(crate) const MOST_STRANGERS_OF_ONE: usize = 256;
/// So many pages of the log are read at once for those who follow it.
pub(crate) const MOST_READING: usize = 8;
/// How long a caller may take to say what they want: the head of a request, or the next one on the same connection.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a greeting (TLS) may take.
pub(crate) const GREETING_WITHIN: Duration = Duration::from_secs(10);
/// How long a request over the network may take in all. What waits for effects takes up to a minute.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// How long a client over the network may take nothing of what is sent to it.
pub(crate) const TAKE_WITHIN: Duration = Duration::from_secs(60);
/// So many messages a second one WebSocket may go on with. One that sends more is read more slowly, and no other.
pub(crate) const MESSAGES_PER_SECOND: u32 = 500;
/// So many messages one WebSocket may send at once.
pub(crate) const MESSAGES_AT_ONCE: u32 = 2000;
/// So many bytes count as one message.
pub(crate) const MESSAGE_BYTES: usize = 4096;
/// So often somebody's being turned away is written down in a minute; the other times are counted. Everybody who is known
/// has their own: whoever makes noise hides nobody else. Those who are not known share one.
pub(crate) const RECORDS_PER_MINUTE: u32 = 6;
/// So often a caller's being turned away is written down at once.
pub(crate) const MOST_RECORDS: u32 = 100;
/// So many who were turned away are told apart; those beyond share one allowance.
pub(crate) const MOST_TOLD_APART: usize = 1000;
/// So many tokens are counted; beyond, those are forgotten that have their whole allowance.
const MOST_COUNTED: usize = 10_000;

/// A bucket: so many at once, and so many more with every second.
#[derive(Debug)]
pub(crate) struct RateBucket {
    most: f64,
    per_second: f64,
    left: f64,
    looked: Instant,
}

impl RateBucket {
    pub(crate) fn new(most: u32, per_second: f64, now: Instant) -> Self {
        RateBucket { most: most.into(), per_second, left: most.into(), looked: now }
    }

    /// Takes one. Otherwise, how long it is until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.left) / self.per_second))
    }

    /// Takes so many that have been used already. How long it is until that is made up for.
    pub(crate) fn owe(&mut self, count: u32, now: Instant) -> Duration {
        self.fill(now);
        self.left -= f64::from(count);
        Duration::from_secs_f64((-self.left / self.per_second).max(0.0))
    }

    fn fill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.looked).as_secs_f64();
        self.left = (self.left + since * self.per_second).min(self.most);
        self.looked = now;
    }

    fn is_full(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.looked).as_secs_f64();
        self.left + since * self.per_second >= self.most
    }
}

/// How fast a client may talk over a WebSocket.
#[derive(Debug)]
pub(crate) struct SocketPace {
    bucket: RateBucket,
    /// They are not listened to before this.
    pub(crate) quiet_until: Option<Instant>,
}

impl SocketPace {
    pub(crate) fn new(now: Instant) -> Self {
        SocketPace { bucket: RateBucket::new(MESSAGES_AT_ONCE, MESSAGES_PER_SECOND.into(), now), quiet_until: None }
    }

    /// A message of so many bytes was heard.
    pub(crate) fn heard(&mut self, bytes: usize, now: Instant) {
        let count = u32::try_from(1 + bytes / MESSAGE_BYTES).unwrap_or(u32::MAX);
        let wait = self.bucket.owe(count, now);
        self.quiet_until = (!wait.is_zero()).then(|| now + wait);
    }

    /// Waits until they are listened to again; for ever if they are.
    pub(crate) async fn until_heard_again(&mut self) {
        match self.quiet_until {
            None => std::future::pending().await,
            Some(until) => tokio::time::sleep_until(until.into()).await,
        }
        self.quiet_until = None;
    }
}

pub(crate) struct TokenRates {
    /// How often each may ask, as it is set now.
    allowed: Box<dyn Fn() -> ServeConfig + Send + Sync>,
    buckets: Mutex<(ServeConfig, BTreeMap<String, RateBucket>)>,
}

impl TokenRates {
    /// Each token may ask as often as this says.
    pub(crate) fn new(allowed: impl Fn() -> ServeConfig + Send + Sync + 'static) -> Self {
        let buckets = Mutex::new((allowed(), BTreeMap::new()));
        TokenRates { allowed: Box::new(allowed), buckets }
    }

    pub(crate) fn take(&self, token: &str, now: Instant) -> Result<(), Duration> {
        let allowed = (self.allowed)();
        let mut inner = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, buckets) = &mut *inner;
        if *before != allowed {
            buckets.clear();
            *before = allowed;
        }
        if buckets.len() >= MOST_COUNTED {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let new = || RateBucket::new(before.burst.get(), before.requests_per_second.get().into(), now);
        buckets.entry(token.to_owned()).or_insert_with(new).take(now)
    }

    /// What a token asks for is large: it counts as several. Whoever cannot pay it pays it all the same, and has to wait
    /// before the next.
    pub(crate) fn owe(&self, token: &str, count: u32, now: Instant) {
        let mut inner = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = inner.1.get_mut(token) {
            bucket.owe(count, now);
        }
    }
}

/// Who was turned away is written down, but not more often than this allows to each of them.
#[derive(Debug, Default)]
pub(crate) struct DenialRecords(Mutex<BTreeMap<String, (RateBucket, u64)>>);

impl DenialRecords {
    /// Whether this one of somebody's is to be written down, and then how many before it were not. Those who are not known
    /// have no name.
    pub(crate) fn take(&self, whose: &str, now: Instant) -> Option<u64> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= MOST_TOLD_APART && !records.contains_key(whose) {
            records.retain(|_, (bucket, _)| !bucket.is_full(now));
        }
        let is_known = records.len() < MOST_TOLD_APART || records.contains_key(whose);
        let new = || (RateBucket::new(MOST_RECORDS, f64::from(RECORDS_PER_MINUTE) / 60.0, now), 0);
        let key = if is_known { whose } else { "" };
        let (bucket, unrecorded) = records.entry(key.to_owned()).or_insert_with(new);
        match bucket.take(now) {
            Ok(()) => Some(std::mem::take(unrecorded)),
            Err(_) => {
                *unrecorded += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_holds_and_then_what_comes() {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut bucket = RateBucket::new(2, 1.0, start);
        assert!(bucket.take(start).is_ok() && bucket.take(start).is_ok());
        assert_eq!(bucket.take(start), Err(Duration::from_secs(1)));
        assert!(bucket.take(at(1.0)).is_ok());
        assert!(bucket.take(at(1.5)).is_err());
        assert!(bucket.take(at(100.0)).is_ok() && bucket.take(at(100.0)).is_ok(), "never more than it holds");
        assert!(bucket.take(at(100.0)).is_err());
    }

    #[test]
    fn whoever_took_more_than_there_is_waits_until_it_is_made_up_for() {
        let start = Instant::now();
        let mut bucket = RateBucket::new(10, 2.0, start);
        assert_eq!(bucket.owe(10, start), Duration::ZERO);
        assert_eq!(bucket.owe(4, start), Duration::from_secs(2));
        assert_eq!(bucket.owe(0, start + Duration::from_secs(2)), Duration::ZERO);
    }

    #[test]
    fn a_flood_is_counted_and_not_written_down_and_hides_nobody_else() {
        let start = Instant::now();
        let records = DenialRecords::default();
        let written = (0..1000).filter(|_| records.take("loud", start).is_some()).count();
        assert_eq!(written, MOST_RECORDS as usize);
        assert_eq!(records.take("quiet", start), Some(0));
        assert_eq!(records.take("loud", start + Duration::from_secs(11)), Some(1000 - u64::from(MOST_RECORDS)));
        // Whoever shows another name each time fills no memory, and hides nobody who is known.
        for number in 0..2 * MOST_TOLD_APART + MOST_RECORDS as usize {
            let _ = records.take(&number.to_string(), start);
        }
        assert_eq!(records.take("one more", start), None);
        assert_eq!(records.take("quiet", start), Some(0));
        let count = records.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert!(count <= MOST_TOLD_APART + 1, "{count}");
    }
}
