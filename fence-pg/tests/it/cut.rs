//! A way to the database that is cut at COMMIT.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pause_kit::services::for_tests;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Database;

/// Where the way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// COMMIT never reaches the server.
    Before,
    /// The server has answered COMMIT, and the answer is lost.
    After,
}

/// Forwards bytes both ways until the client sends COMMIT; later connections pass whole.
pub(crate) struct CutAtCommit {
    address: SocketAddr,
}

impl CutAtCommit {
    pub(crate) async fn open(cut: Cut) -> CutAtCommit {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = ("127.0.0.1", for_tests().await.postgres().port());
        tokio::spawn(async move {
            let armed = Arc::new(AtomicBool::new(true));
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(forward(client, server, cut, armed.clone()));
            }
        });
        CutAtCommit { address }
    }

    /// The database's URL on this way.
    pub(crate) fn url(&self, database: &Database) -> String {
        let (credentials, _) = database.url.as_str().split_once('@').unwrap();
        format!("{credentials}@{}/{}", self.address, database.url.database())
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, cut: Cut, armed: Arc<AtomicBool>) {
    let (mut from_client, mut from_server) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(bytes @ 1..) = read else { return };
                let chunk = &from_client[..bytes];
                let commit = chunk.windows(7).any(|window| window == b"COMMIT\0");
                if commit && armed.swap(false, Ordering::SeqCst) {
                    if cut == Cut::After {
                        server.write_all(chunk).await.unwrap();
                        let answered = server.read(&mut from_server).await.unwrap();
                        assert!(answered > 0, "the server answers COMMIT");
                    }
                    return;
                }
                server.write_all(chunk).await.unwrap();
            }
            read = server.read(&mut from_server) => {
                let Ok(bytes @ 1..) = read else { return };
                client.write_all(&from_server[..bytes]).await.unwrap();
            }
        }
    }
}
