//! Room at a door: for connections, for those who follow the log, for workers that listen. Nobody takes all of it: each token
//! has its share, and whoever has shown no token yet waits in an anteroom, out of which newcomers push the oldest.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::limits::{
    MOST_CONNECTIONS, MOST_CONNECTIONS_OF_ONE, MOST_CRABS, MOST_CRABS_OF_ONE, MOST_FOLLOWERS, MOST_FOLLOWERS_OF_ONE,
    MOST_STRANGERS, MOST_STRANGERS_OF_ONE,
};

const ALL_CONNECTIONS: usize = MOST_CONNECTIONS + MOST_FOLLOWERS + MOST_CRABS;

#[derive(Debug)]
pub(crate) struct DoorLimits {
    pub(crate) connections: Arc<Semaphore>,
    connected: TokenShares,
    followers: Arc<Semaphore>,
    following: TokenShares,
    workers: Arc<Semaphore>,
    listening: TokenShares,
    anteroom: Arc<UnverifiedVisits>,
}

impl Default for DoorLimits {
    fn default() -> Self {
        let room = |most| Arc::new(Semaphore::new(most));
        DoorLimits {
            connections: room(ALL_CONNECTIONS),
            connected: TokenShares::new(MOST_CONNECTIONS_OF_ONE),
            followers: room(MOST_FOLLOWERS),
            following: TokenShares::new(MOST_FOLLOWERS_OF_ONE),
            workers: room(MOST_CRABS),
            listening: TokenShares::new(MOST_CRABS_OF_ONE),
            anteroom: Arc::default(),
        }
    }
}

/// A place that a connection has for as long as this lives.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    _share: Option<TokenShare>,
}

fn place(all: &Arc<Semaphore>, shares: &TokenShares, token: Option<&str>) -> Option<ConnectionSlot> {
    let share = match token {
        None => None,
        Some(token) => Some(shares.take(token)?),
    };
    let permit = all.clone().try_acquire_owned().ok()?;
    Some(ConnectionSlot { _permit: permit, _share: share })
}

impl DoorLimits {
    pub(crate) fn follow(&self, token: Option<&str>) -> Option<ConnectionSlot> {
        place(&self.followers, &self.following, token)
    }

    pub(crate) fn listen(&self, token: Option<&str>) -> Option<ConnectionSlot> {
        place(&self.workers, &self.listening, token)
    }

    /// A caller comes who has shown no token yet.
    pub(crate) fn enter(&self, address: IpAddr) -> ConnectionVisit {
        self.anteroom.enter(address)
    }

    /// A caller in the anteroom has shown a token: their connection gets a place of its own. Whether there was one.
    pub(crate) fn admit(&self, visit: &ConnectionVisit, token: &str) -> bool {
        let mut inside = visit.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.is_none() {
            *inside = place(&self.connections, &self.connected, Some(token));
            if inside.is_some() {
                self.anteroom.leave(visit.number);
            }
        }
        inside.is_some()
    }

    /// How many connections there are, and how many follow the log or listen.
    pub(crate) fn present(&self) -> (i64, i64) {
        let taken = |most: usize, room: &Semaphore| most.saturating_sub(room.available_permits());
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let connections = taken(ALL_CONNECTIONS, &self.connections) + self.anteroom.waiting().all.len();
        (count(connections), count(taken(MOST_FOLLOWERS, &self.followers) + taken(MOST_CRABS, &self.workers)))
    }

    pub(crate) fn has_followers(&self) -> bool {
        self.followers.available_permits() < MOST_FOLLOWERS
    }
}

#[derive(Clone, Debug)]
struct TokenShares {
    most: usize,
    taken: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// One more, until this is dropped.
#[derive(Debug)]
struct TokenShare {
    of: String,
    taken: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl TokenShares {
    fn new(most: usize) -> Self {
        TokenShares { most, taken: Arc::default() }
    }

    fn take(&self, of: &str) -> Option<TokenShare> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(of.to_owned()).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(TokenShare { of: of.to_owned(), taken: self.taken.clone() })
    }
}

impl Drop for TokenShare {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[derive(Debug, Default)]
struct UnverifiedVisits(Mutex<UnverifiedQueue>);

#[derive(Debug, Default)]
struct UnverifiedQueue {
    next: u64,
    /// By the order in which they came: from where, and how they are told to go.
    all: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    of_address: BTreeMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
pub(crate) struct ConnectionVisit {
    number: u64,
    anteroom: Arc<UnverifiedVisits>,
    leave: Arc<Notify>,
    /// Its place, once a token was shown.
    inside: Mutex<Option<ConnectionSlot>>,
}

impl ConnectionVisit {
    pub(crate) async fn must_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for ConnectionVisit {
    fn drop(&mut self) {
        self.anteroom.leave(self.number);
    }
}

impl UnverifiedVisits {
    fn waiting(&self) -> MutexGuard<'_, UnverifiedQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> ConnectionVisit {
        let mut waiting = self.waiting();
        let of_address = waiting.of_address.get(&address).filter(|of| of.len() >= MOST_STRANGERS_OF_ONE);
        let is_full = waiting.all.len() >= MOST_STRANGERS;
        let oldest = of_address.and_then(|of| of.first().copied());
        let oldest = oldest.or_else(|| waiting.all.keys().next().copied().filter(|_| is_full));
        oldest.into_iter().for_each(|number| waiting.push_out(number));
        let (number, leave) = (waiting.next, Arc::new(Notify::new()));
        waiting.next += 1;
        waiting.all.insert(number, (address, leave.clone()));
        waiting.of_address.entry(address).or_default().insert(number);
        ConnectionVisit { number, anteroom: self.clone(), leave, inside: Mutex::default() }
    }

    fn leave(&self, number: u64) {
        self.waiting().remove(number);
    }
}

impl UnverifiedQueue {
    fn push_out(&mut self, number: u64) {
        self.remove(number).into_iter().for_each(|leave| leave.notify_one());
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Notify>> {
        let (address, leave) = self.all.remove(&number)?;
        if let Some(of) = self.of_address.get_mut(&address) {
            of.remove(&number);
            if of.is_empty() {
                self.of_address.remove(&address);
            }
        }
        Some(leave)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures_util::FutureExt;

    use super::*;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn is_out(visit: &ConnectionVisit) -> bool {
        visit.must_leave().now_or_never().is_some()
    }

    #[test]
    fn who_has_shown_no_token_makes_way_for_newcomers_of_the_same_address_first() {
        let room = DoorLimits::default();
        let other = room.enter(address(9));
        let many: Vec<ConnectionVisit> = (0..=MOST_STRANGERS_OF_ONE).map(|_| room.enter(address(1))).collect();
        assert!(!is_out(&other) && is_out(&many[0]) && !is_out(&many[1]));
        assert!(room.admit(&many[1], "t"), "it has shown a token");
        drop(many);
        let _all: Vec<ConnectionVisit> =
            (0..MOST_STRANGERS).map(|it| room.enter(address(u8::try_from(it % 200).unwrap()))).collect();
        assert!(is_out(&other), "the oldest of all");
    }

    #[test]
    fn a_token_has_its_share_and_gives_it_back() {
        let room = DoorLimits::default();
        let mut all: Vec<ConnectionSlot> = std::iter::from_fn(|| room.follow(Some("one"))).collect();
        assert_eq!(all.len(), MOST_FOLLOWERS_OF_ONE);
        assert!(room.follow(Some("other")).is_some(), "others have theirs");
        assert!(room.has_followers());
        drop(all.pop());
        assert!(room.follow(Some("one")).is_some());
        drop(all);
        assert!(!room.has_followers());
    }
}
