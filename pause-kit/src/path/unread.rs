//! How many bytes lie unread in a socket, from the kernel's tables.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::log::ConnectionNumber;

/// Why the bytes in the resource's socket could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum UnreadError {
    /// The path has carried no such connection. Take the number from the path's log.
    #[error("the path has no connection {connection}")]
    NoConnection {
        /// The number asked for.
        connection: ConnectionNumber,
    },
    /// The path has not reached the upstream. Wait for `upstream_local` in the log.
    #[error("connection {connection} has not reached its upstream")]
    NotConnected {
        /// The number asked for.
        connection: ConnectionNumber,
    },
    /// The kernel lists no such socket: the resource has closed it, or runs on another host or in another network
    /// namespace.
    #[error("no socket of {resource} that is connected to {path} on this host")]
    NoSocket {
        /// The resource's address.
        resource: SocketAddr,
        /// The path's address on that connection.
        path: SocketAddr,
    },
    /// The kernel's table could not be read. The kit needs /proc.
    #[error("{table} could not be read")]
    Table {
        /// Which table.
        table: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The bytes did not come in time.
    #[error("{seen} unread bytes in the resource's socket after {within:?}, not the {wanted} awaited")]
    TooFew {
        /// How many were awaited.
        wanted: u64,
        /// How many there were at the last look.
        seen: u64,
        /// How long they were awaited.
        within: Duration,
    },
}

/// The bytes unread by the owner of the socket at the first address that is connected to the second.
pub(crate) fn unread(&(resource, path): &(SocketAddr, SocketAddr)) -> Result<u64, UnreadError> {
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let lines = match std::fs::read_to_string(table) {
            Ok(lines) => lines,
            // A kernel without IPv6 has no such table.
            Err(source) if source.kind() == io::ErrorKind::NotFound && table.ends_with('6') => continue,
            Err(source) => return Err(UnreadError::Table { table, source }),
        };
        if let Some(bytes) = lines.lines().find_map(|line| receive_queue(line, resource, path)) {
            return Ok(bytes);
        }
    }
    Err(UnreadError::NoSocket { resource, path })
}

/// Asks again and again until enough bytes are there.
pub(crate) async fn wait_for_unread(
    count: impl Fn() -> Result<u64, UnreadError>,
    wanted: u64,
    within: Duration,
) -> Result<Instant, UnreadError> {
    let deadline = Instant::now() + within;
    loop {
        let seen = count();
        let at = Instant::now();
        match seen {
            Ok(seen) if seen >= wanted => return Ok(at),
            Ok(seen) if at >= deadline => return Err(UnreadError::TooFew { wanted, seen, within }),
            Err(error) if at >= deadline => return Err(error),
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// The receive queue in one line of the table, if the line is about the socket at `local` connected to `remote`.
fn receive_queue(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if address(fields.next()?)? != local || address(fields.next()?)? != remote {
        return None;
    }
    let (_, received) = fields.nth(1)?.split_once(':')?;
    u64::from_str_radix(received, 16).ok()
}

/// An address as the kernel prints it: 32-bit words of network order, each read as a number of this machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let host = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_for_both_families() {
        let local: SocketAddr = "127.0.0.1:5432".parse().unwrap();
        let remote: SocketAddr = "127.0.0.1:40000".parse().unwrap();
        let v4 =
            "   3: 0100007F:1538 0100007F:9C40 01 00000000:000000B3 00:00000000 00000000   104        0 1";
        let v6 = "   3: 0000000000000000FFFF00000100007F:1538 0000000000000000FFFF00000100007F:9C40 01 00000000:00000001 00:0";
        if cfg!(target_endian = "little") {
            assert_eq!(receive_queue(v4, local, remote), Some(0xB3));
            assert_eq!(receive_queue(v6, local, remote), Some(1));
        }
        assert_eq!(receive_queue(v4, remote, local), None);
        assert_eq!(
            receive_queue(
                "  sl  local_address rem_address   st tx_queue rx_queue",
                local,
                remote
            ),
            None
        );
    }
}
