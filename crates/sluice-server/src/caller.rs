//! Who asks, as the door that they came through knows it: a process at the socket, a token over the network.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_home::ask::{Bearer, ProcessIdentity, RequestAccess, Requester, Service};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::answer::refuse;

/// A process at the socket, as it was when it came. A connection that outlives it is nobody's: the next process with its
/// number is another.
#[derive(Clone, Debug)]
pub(crate) struct SocketPeer {
    pub(crate) process: ProcessIdentity,
    pub(crate) user: u32,
    wants: RequestAccess,
}

impl SocketPeer {
    pub(crate) fn of(stream: &UnixStream) -> Option<SocketPeer> {
        let credentials = stream.peer_cred().ok()?;
        Some(SocketPeer {
            process: ProcessIdentity::of(credentials.pid()?)?,
            user: credentials.uid(),
            wants: RequestAccess::Look,
        })
    }
}

/// Who asks. The door puts it into the request; a handler takes it out.
#[derive(Clone, Debug)]
pub(crate) enum RequestCaller {
    /// A process of this machine, at the socket; `None` if the system does not say which.
    Process(Option<SocketPeer>),
    Bearer(Bearer),
}

impl RequestCaller {
    /// By what their token is known, if they showed one.
    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            RequestCaller::Process(_) => None,
            RequestCaller::Bearer(bearer) => Some(&bearer.token),
        }
    }

    /// Who that is. It may have to look at processes, and so it may wait.
    pub(crate) fn who(self, service: &Service) -> Result<Requester, Problem> {
        match self {
            RequestCaller::Process(peer) => {
                let SocketPeer { process, user, wants } = peer.ok_or_else(Requester::unknown)?;
                service.who(&process, user, wants)
            }
            RequestCaller::Bearer(bearer) => Ok(bearer.who),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let unknown = || refuse(&Problem::new(ProblemStatus::Unauthorized, "no_token", "the caller is not known"));
        let mut caller = parts.extensions.get::<RequestCaller>().cloned().ok_or_else(unknown)?;
        if let (RequestCaller::Process(Some(peer)), false) = (&mut caller, only_looks(&parts.method)) {
            peer.wants = RequestAccess::Change;
        }
        Ok(caller)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for RequestCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get::<RequestCaller>().cloned())
    }
}

pub(crate) fn only_looks(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkPeer(pub(crate) SocketAddr);

/// The address of this machine that a connection came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachedAddress(pub(crate) IpAddr);

/// While one of these lives the engine waits with its end. What outlives its request takes it along.
#[derive(Clone)]
pub(crate) struct EnginePresence(#[expect(dead_code, reason = "it is held, not read")] pub(crate) mpsc::Sender<()>);
