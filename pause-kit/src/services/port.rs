//! Free ports on the loopback address, and who listens on one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports that were handed out; none of them is given to two servers of one process.
static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port on 127.0.0.1 on which nobody listens now. Nothing keeps it free, so whoever starts a server on it has to be
/// ready to try another one.
///
/// # Errors
///
/// When the system has no port left.
pub fn free_port() -> io::Result<u16> {
    loop {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.get_or_insert_default().insert(port) {
            return Ok(port);
        }
    }
}

/// Whether the process `pid` itself listens on this port of 127.0.0.1: an answer on a port that was thought free may
/// come from a stranger.
pub(super) fn listens(pid: u32, port: u16) -> bool {
    let Ok(table) = fs::read_to_string("/proc/net/tcp") else {
        return false;
    };
    let wanted: HashSet<String> = listeners(&table, port)
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links
        .filter_map(|link| link.to_str().map(str::to_owned))
        .any(|link| wanted.contains(&link))
}

/// The sockets in a table of the form of `/proc/net/tcp` that listen on this port of 127.0.0.1.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    let address = format!(
        "{:08X}:{port:04X}",
        u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets())
    );
    let rows = table
        .lines()
        .map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    let listening = rows.filter(|row| row.get(1) == Some(&address.as_str()) && row.get(3) == Some(&"0A"));
    listening.filter_map(|row| row.get(9)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_this_process_is_told_from_a_port_on_which_nobody_listens() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        assert!(listens(std::process::id(), port));
        let _client = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
        let _accepted = listener.accept().expect("somebody connected");
        drop(listener);
        assert!(
            !listens(std::process::id(), port),
            "a connection from that port is no listener"
        );
    }

    #[test]
    fn no_port_is_handed_out_twice() {
        let ports: HashSet<u16> = (0..200).map(|_| free_port().expect("a port is free")).collect();
        assert_eq!(ports.len(), 200);
    }
}
