//! Losses of history that the cluster's id does not show, and what is issued after them.

use fence_core::{Epoch, GrantId, Token};
use fence_lock::{AcquireError, InitError};

use crate::support::{Etcd, class, cluster_of, key, session, store_at};

const PREFIX: &str = "lost";

/// What a process that starts now is granted for `acct-1`.
async fn granted(etcd: &Etcd) -> (Token, GrantId) {
    let session = session(&store_at(&etcd.endpoint(), PREFIX).await).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    (hold.token().unwrap(), hold.grant_id().clone())
}

async fn init(etcd: &Etcd, epoch: u16) {
    let store = store_at(&etcd.endpoint(), PREFIX).await;
    store.init(Epoch::new(epoch).unwrap(), "a test").await.unwrap();
}

#[tokio::test]
async fn an_emptied_store_keeps_its_cluster_id_and_grants_the_very_same_token_again() {
    let mut etcd = Etcd::start().await;
    init(&etcd, 1).await;
    let (token, grant) = granted(&etcd).await;
    let before = cluster_of(&etcd.endpoint()).await;

    etcd.kill().await;
    etcd.empty();
    etcd.start_again().await;
    let after = cluster_of(&etcd.endpoint()).await;
    assert_eq!(after.id, before.id, "the same flags make the same cluster id");
    assert!(after.revision < before.revision, "{after:?}, {before:?}");

    // What stands between: the epoch record went with the rest, and its absence is not taken for a new store.
    let session = session(&store_at(&etcd.endpoint(), PREFIX).await).await;
    let error = session.acquire(&class(), &key("acct-1")).await.unwrap_err();
    assert!(matches!(error, AcquireError::NotInitialised { .. }), "{error:?}");

    // An operator who then begins the old epoch anew has every token issued twice.
    init(&etcd, 1).await;
    let (again, another) = granted(&etcd).await;
    assert_eq!(again, token);
    assert_ne!(another, grant);
}

#[tokio::test]
async fn an_emptied_store_whose_epoch_begins_above_the_old_one_grants_no_token_twice() {
    let mut etcd = Etcd::start().await;
    init(&etcd, 1).await;
    let (old, _) = granted(&etcd).await;
    etcd.kill().await;
    etcd.empty();
    etcd.start_again().await;
    init(&etcd, 2).await;
    let (new, _) = granted(&etcd).await;
    let (epoch, _) = new.split().unwrap();
    let (first, _) = epoch.tokens();
    assert_eq!(epoch, Epoch::new(2).unwrap());
    assert!(first.as_i64() > old.as_i64(), "{new} comes after {old}");
}

#[tokio::test]
async fn a_data_directory_put_back_keeps_id_and_record_and_grants_the_very_same_token_again() {
    let mut etcd = Etcd::start().await;
    init(&etcd, 1).await;
    let before = cluster_of(&etcd.endpoint()).await;
    etcd.kill().await;
    let kept = etcd.copy_of_the_data();
    etcd.start_again().await;
    let (token, grant) = granted(&etcd).await;

    etcd.kill().await;
    etcd.put_back(&kept);
    etcd.start_again().await;
    let after = cluster_of(&etcd.endpoint()).await;
    assert_eq!(after.id, before.id);
    assert!(i64::try_from(token.split().unwrap().1.as_u64()).unwrap() > after.revision);
    // Not even the record is missing: a process that starts now has nothing to notice.
    let (again, another) = granted(&etcd).await;
    assert_eq!(again, token);
    assert_ne!(another, grant);
    // What an operator does: the old record has to go before a higher epoch can begin.
    let store = store_at(&etcd.endpoint(), PREFIX).await;
    let error = store.init(Epoch::new(2).unwrap(), "put back").await.unwrap_err();
    assert!(matches!(error, InitError::Exists { .. }), "{error:?}");
    let mut etcdctl = etcd_client::Client::connect([etcd.endpoint()], None)
        .await
        .unwrap();
    etcdctl.delete(format!("{PREFIX}/epoch"), None).await.unwrap();
    init(&etcd, 2).await;
    let session = session(&store).await;
    let hold = session.acquire(&class(), &key("acct-2")).await.unwrap();
    assert_eq!(hold.token().unwrap().split().unwrap().0, Epoch::new(2).unwrap());
}
