//! What a session tells about its own agent: that it asks, has ended its turn, or works. No other session may say it.

use sluice_api::attention::{SignalAnswer, SignalSession};
use sluice_api::problem::Problem;
use sluice_core::attention::AttentionChannel;

use super::{Requester, Service};
use crate::home::session_id;
use crate::home::signals::{self, HeardNews, WorkedOn};

impl Service {
    /// Takes what the hook of an agent program says. It is answered at once: an agent waits for its hooks.
    pub fn signal(&self, who: &Requester, said: &SignalSession) -> Result<SignalAnswer, Problem> {
        let (task, number) = who.must_be_session(&said.session)?;
        let taken = signals::heard(&self.home, task, number, &HeardNews::of(said), said.dialog.as_deref())?;
        Ok(SignalAnswer { taken })
    }

    /// A session that asks for something works, whatever its screen shows: the only exact sign of many programs. One of its tools
    /// may wait meanwhile, and a hook has told of that.
    pub(super) fn is_at_work(&self, who: &Requester) {
        let Requester::Session { task, number } = who else { return };
        if let Ok(id) = session_id(task, *number) {
            signals::works(&self.home, &id, (task, *number), WorkedOn::Unnamed, AttentionChannel::Hook);
        }
    }
}
