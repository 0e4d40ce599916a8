//! The doors: connections at the socket of the home and over the network, and what holds for every request that comes in.

mod connection;
mod cors;
mod error_shape;
pub(crate) mod home_socket;
pub(crate) mod network;
mod write_timeout;

pub(crate) use connection::serve;
