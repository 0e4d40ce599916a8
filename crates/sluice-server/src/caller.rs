//! Who asks, as the door that they came through knows it: a process at the socket, a token over the network.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::problem::Status;
use sluice_home::service::{Bearer, Identity, Service, Wants, Who};
use tokio::net::UnixStream;

use crate::answer::refuse;
use crate::whole::only_looks;

/// A process at the socket, as it was when it came. A connection that outlives it is nobody's: the next process with its
/// number is another.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) process: Identity,
    pub(crate) user: u32,
    wants: Wants,
}

impl Peer {
    /// Whoever is at the other end.
    pub(crate) fn of(stream: &UnixStream) -> Option<Peer> {
        let credentials = stream.peer_cred().ok()?;
        Some(Peer { process: Identity::of(credentials.pid()?)?, user: credentials.uid(), wants: Wants::Look })
    }
}

/// Who asks. The door puts it into the request; a handler takes it out.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// A process of this machine, at the socket; `None` if the system does not say which.
    Process(Option<Peer>),
    /// Somebody who showed a token.
    Bearer(Bearer),
}

impl Caller {
    /// By what their token is known, if they showed one.
    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Caller::Process(_) => None,
            Caller::Bearer(bearer) => Some(&bearer.token),
        }
    }

    /// Who that is. It may have to look at processes, and so it may wait.
    pub(crate) fn who(self, service: &Service) -> Result<Who, Problem> {
        match self {
            Caller::Process(peer) => {
                let Peer { process, user, wants } = peer.ok_or_else(Who::unknown)?;
                service.who(&process, user, wants)
            }
            Caller::Bearer(bearer) => Ok(bearer.who),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let unknown = || refuse(&Problem::new(Status::Unauthorized, "no_token", "nobody knows who asks"));
        let mut caller = parts.extensions.get::<Caller>().cloned().ok_or_else(unknown)?;
        if let (Caller::Process(Some(peer)), false) = (&mut caller, only_looks(&parts.method)) {
            peer.wants = Wants::Change;
        }
        Ok(caller)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get::<Caller>().cloned())
    }
}
