//! What the doors bear: every limit with its name, and a bucket that counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_home::config::Serve;
use tokio::sync::Semaphore;

/// The largest request that is read at the socket, in bytes.
pub(crate) const LARGEST_AT_SOCKET: usize = 64 << 20;
/// The largest request that is read over the network, in bytes.
pub(crate) const LARGEST_OVER_TCP: usize = 8 << 20;
/// So many follow the log at once, at each door.
pub(crate) const MOST_FOLLOWERS: usize = 1000;
/// So many connections a door has beside those of followers. Further ones wait until one ends.
pub(crate) const MOST_CONNECTIONS: usize = 512;
/// So many pages of the log are read at once for those who follow it.
pub(crate) const MOST_READING: usize = 8;
/// How long somebody may take to say what they want: the head of a request, or the next one on the same connection.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a greeting (TLS) may take.
pub(crate) const GREETING_WITHIN: Duration = Duration::from_secs(10);
/// How long a request over the network may take in all. What waits for effects takes up to a minute.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// How long somebody over the network may take nothing of what is sent to them.
pub(crate) const TAKE_WITHIN: Duration = Duration::from_secs(60);
/// So many who were turned away are written down in a minute, of all together; the others are counted.
pub(crate) const RECORDS_PER_MINUTE: u32 = 6;
/// So many who were turned away are written down at once.
pub(crate) const MOST_RECORDS: u32 = 100;
/// So many tokens are counted; beyond, those are forgotten that have their whole allowance.
const MOST_COUNTED: usize = 10_000;

/// Room at a door.
#[derive(Debug)]
pub(crate) struct Room {
    /// For connections.
    pub(crate) connections: Arc<Semaphore>,
    /// For those who follow the log.
    pub(crate) followers: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            connections: Arc::new(Semaphore::new(MOST_CONNECTIONS + MOST_FOLLOWERS)),
            followers: Arc::new(Semaphore::new(MOST_FOLLOWERS)),
        }
    }
}

impl Room {
    /// How many connections there are, and how many follow the log.
    pub(crate) fn present(&self) -> (i64, i64) {
        let taken = |most: usize, left: usize| i64::try_from(most.saturating_sub(left)).unwrap_or(i64::MAX);
        let connections = taken(MOST_CONNECTIONS + MOST_FOLLOWERS, self.connections.available_permits());
        (connections, taken(MOST_FOLLOWERS, self.followers.available_permits()))
    }
}

/// A bucket: so many at once, and so many more with every second.
#[derive(Debug)]
pub(crate) struct Bucket {
    most: f64,
    per_second: f64,
    left: f64,
    looked: Instant,
}

impl Bucket {
    pub(crate) fn new(most: u32, per_second: f64, now: Instant) -> Self {
        Bucket { most: most.into(), per_second, left: most.into(), looked: now }
    }

    /// Takes one. Otherwise, how long it is until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let since = now.saturating_duration_since(self.looked).as_secs_f64();
        self.left = (self.left + since * self.per_second).min(self.most);
        self.looked = now;
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.left) / self.per_second))
    }

    fn is_full(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.looked).as_secs_f64();
        self.left + since * self.per_second >= self.most
    }
}

/// A bucket for each token.
#[derive(Debug)]
pub(crate) struct Rates {
    allowed: Serve,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl Rates {
    /// Each token may ask as often as this says.
    pub(crate) fn new(allowed: Serve) -> Self {
        Rates { allowed, buckets: Mutex::default() }
    }

    /// A token asks for something.
    pub(crate) fn take(&self, token: &str, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_COUNTED {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let new = || Bucket::new(self.allowed.burst.get(), self.allowed.requests_per_second.get().into(), now);
        buckets.entry(token.to_owned()).or_insert_with(new).take(now)
    }
}

/// Who was turned away is written down, but not more often than this allows.
#[derive(Debug)]
pub(crate) struct Records(Mutex<(Bucket, u64)>);

impl Records {
    pub(crate) fn new(now: Instant) -> Self {
        Records(Mutex::new((Bucket::new(MOST_RECORDS, f64::from(RECORDS_PER_MINUTE) / 60.0, now), 0)))
    }

    /// Whether this one is to be written down, and then how many before it were not.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bucket, unrecorded) = &mut *records;
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
        let mut bucket = Bucket::new(2, 1.0, start);
        assert!(bucket.take(start).is_ok() && bucket.take(start).is_ok());
        assert_eq!(bucket.take(start), Err(Duration::from_secs(1)));
        assert!(bucket.take(at(1.0)).is_ok());
        assert!(bucket.take(at(1.5)).is_err());
        assert!(bucket.take(at(100.0)).is_ok() && bucket.take(at(100.0)).is_ok(), "never more than it holds");
        assert!(bucket.take(at(100.0)).is_err());
    }

    #[test]
    fn a_flood_is_counted_and_not_written_down() {
        let start = Instant::now();
        let records = Records::new(start);
        let written = (0..1000).filter(|_| records.take(start).is_some()).count();
        assert_eq!(written, MOST_RECORDS as usize);
        assert_eq!(records.take(start + Duration::from_secs(11)), Some(1000 - u64::from(MOST_RECORDS)));
    }
}
