//! What a session tells about its own agent: that it asks, has ended its turn, or works. No other session may say it.

use sluice_api::attention::{AgentNews, SignalAnswer, SignalSession};
use sluice_api::problem::Problem;
use sluice_core::attention::{AttentionChannel, DialogKind};

use super::{Requester, Service};
use crate::home::session_id;
use crate::home::signals::{self, HeardNews};

impl Service {
    /// Takes what the hook of an agent program says. It is answered at once: an agent waits for its hooks.
    pub fn signal(&self, who: &Requester, said: &SignalSession) -> Result<SignalAnswer, Problem> {
        let (task, number) = who.must_be_session(&said.session)?;
        let what = said.what.map_or("", |what| what.word());
        let news = match said.news {
            AgentNews::Waits => HeardNews::Waits {
                what: DialogKind::ALL.into_iter().find(|kind| kind.word() == what).unwrap_or(DialogKind::Other),
                text: &said.text,
            },
            AgentNews::TurnEnded => HeardNews::TurnEnded { text: &said.text },
            AgentNews::Works => HeardNews::Works,
        };
        Ok(SignalAnswer { taken: signals::heard(&self.home, task, number, &news)? })
    }

    /// A session that asks for something works, whatever its screen shows: the only exact sign of many programs.
    pub(super) fn is_at_work(&self, who: &Requester) {
        let Requester::Session { task, number } = who else { return };
        if let Ok(id) = session_id(task, *number) {
            signals::works(&self.home, &id, (task, *number), AttentionChannel::Hook);
        }
    }
}
