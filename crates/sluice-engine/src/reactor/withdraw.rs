//! Taking back what was asked for and has not gone to the store: whoever gave up is certain that it is not done.

use super::{CommitRelease, Reactor, ReactorToken};

impl Reactor {
    /// Whether something that was asked has left no trace but in what waits for the store: something new that nothing is
    /// built on, an answer that changes nothing, or words to a stream that is being loaded.
    pub fn can_withdraw(&self, token: ReactorToken) -> bool {
        let in_flight = self.in_flight.iter().flatten().map(|(_, releases)| releases);
        let mut on_their_way = self.gathered.iter().map(|(_, releases)| releases).chain(in_flight);
        self.created(token).is_some()
            || on_their_way.any(|releases| releases.iter().any(|release| release.is_answer_to(token)))
            || self.waiting.values().flatten().any(|(of, _)| *of == Some(token))
    }

    /// Takes back something that was asked and can be taken back. It never happened.
    pub fn withdraw(&mut self, token: ReactorToken) {
        self.waiting.values_mut().for_each(|said| said.retain(|(of, _)| *of != Some(token)));
        let in_flight = self.in_flight.iter_mut().flatten().map(|(_, releases)| releases);
        let on_their_way = self.gathered.iter_mut().map(|(_, releases)| releases).chain(in_flight);
        on_their_way.for_each(|releases| releases.retain(|release| !release.is_answer_to(token)));
        if let Some(at) = self.created(token) {
            let (append, _) = self.gathered.remove(at);
            self.drop_slot(&append.stream);
        }
    }

    /// Where a new stream of this token waits for the store, if nothing was added to it and no other answer waits for it.
    fn created(&self, token: ReactorToken) -> Option<usize> {
        let is_it = |release: &CommitRelease| matches!(release, CommitRelease::Reply(of, _) if *of == token);
        let at = self.gathered.iter().position(|(_, releases)| releases.iter().any(is_it))?;
        let (append, releases) = &self.gathered[at];
        let is_told = releases.iter().any(|release| matches!(release, CommitRelease::Answer(..)));
        let built_on = self.gathered.iter().filter(|(other, _)| other.stream == append.stream).count() > 1;
        (append.expected == 0 && !built_on && !is_told).then_some(at)
    }
}

impl CommitRelease {
    fn is_answer_to(&self, token: ReactorToken) -> bool {
        matches!(self, CommitRelease::Answer(of, _) if *of == token)
    }
}
