//! The path X: the kit's own TCP proxy between two of the parties of a run.
//!
//! A [`Path`] stands between a holder and the resource (HTTP), or between the resource or a holder and PostgreSQL. It
//! knows nothing of the protocol that it carries. It
//!
//! - **records** every byte of both directions with the time at which it arrived and the time at which it was handed
//!   on, in a [`Log`] that can be read at any time and awaited ([`Path::wait`]);
//! - **holds** bytes of a direction from an offset on until they are released ([`Path::hold`]);
//! - **replaces** a pattern by another of the same length, whatever the borders of the chunks ([`Path::replace`]);
//! - **keeps back a close**: a holder's end or reset reaches the resource only once the resource has answered
//!   ([`CloseRule`]);
//! - **routes** connections accepted from now on to another upstream ([`Path::route_to`]);
//! - **measures** how many bytes lie unread in the resource's socket ([`Path::unread_by_resource`]).
//!
//! Times are [`std::time::Instant`]s, that is this host's monotonic clock. Both times of a byte lie between its sender's
//! write and its receiver's read: that of its arrival is taken once the path has it, and that of its handing on just before
//! the kernel takes it for the receiver. What follows from having seen a byte is therefore never earlier than the byte:
//!
//! - The interval from a request's first arrival to its answer's last handing on contains all that the resource did for it.
//!   An operation is over when its answer is handed on: by then the resource had done it, so that whatever arrives later
//!   comes after it in real time. A later stamp would let the next request seem to begin before the answer that caused it.
//! - Waiting begins when a request's last byte is handed on and has room in the kernel: waiting for room is not the
//!   resource's. The stamp can be early by one system call, which the slack on a bound covers.
//! - What a hold kept is handed on no earlier than the time that its release returned.
//!
//! ```
//! use pause_kit::path::{Direction, Hold, Path, PathOptions};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let resource = TcpListener::bind("127.0.0.1:0").await?;
//! let path = Path::open(resource.local_addr()?, PathOptions::http()).await?;
//!
//! let hold = path.hold(Hold::new(Direction::ToResource).at_byte(4));
//! let mut holder = TcpStream::connect(path.address()).await?;
//! holder.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
//! assert_eq!(hold.engaged().await.at_byte, 4);
//! // The resource has `GET `. Meanwhile the lock goes to somebody else.
//! let released = hold.release();
//!
//! let (mut server, _) = resource.accept().await?;
//! let mut request = [0; 18];
//! server.read_exact(&mut request).await?;
//! assert_eq!(&request, b"GET / HTTP/1.1\r\n\r\n");
//! assert!(path.read(|log| log.connections()[0].to_resource.forwarded_at(4)) >= Some(released));
//! # Ok(())
//! # }
//! ```
//!
//! # What a path does not do
//!
//! It speaks no TLS, it changes the number of bytes only by what it [asks aside](Path::ask_aside), and it forgets nothing: its
//! log holds every byte for as long as the path lives.

mod close;
mod control;
mod hold;
mod log;
mod proxy;
mod pump;
mod replace;
mod state;
mod unread;

pub use close::CloseRule;
pub use hold::{Held, Hold, Kept};
pub use log::{Close, Connection, ConnectionNumber, Direction, Flow, Log, Mark, Replaced};
pub use proxy::{OpenPathError, Path, PathOptions};
pub use replace::{Replacement, ReplacementError, ReplacementHandle};
pub use unread::UnreadError;
