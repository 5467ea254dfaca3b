//! The kit's view of the lock store, on etcd.

use fence_core::{ClassName, GrantId, Key, TierName};
use fence_lock::{EtcdStore, GrantEvent, Revoked};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use pause_kit::store::{Store, StoreError, StoreEvent, StoreEvents, Stores};

/// Opens etcd stores.
pub(super) struct EtcdStores;

struct Etcd(EtcdStore);

impl Stores for EtcdStores {
    fn open<'a>(
        &'a self,
        tier: &'a TierName,
        endpoint: &'a str,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn Store>, StoreError>> {
        Box::pin(async move {
            let store = EtcdStore::connect(&[endpoint], prefix, tier.clone()).await;
            let store = store.map_err(|error| StoreError(Box::new(error)))?;
            Ok(Box::new(Etcd(store)) as Box<dyn Store>)
        })
    }
}

impl Store for Etcd {
    fn watch(&self) -> BoxFuture<'_, Result<StoreEvents, StoreError>> {
        Box::pin(async {
            let watch = self
                .0
                .watch_grants()
                .await
                .map_err(|error| StoreError(Box::new(error)))?;
            let events = stream::unfold(Some(watch), |watch| async {
                let mut watch = watch?;
                match watch.next().await {
                    Ok(event) => Some((Ok(translated(event)), Some(watch))),
                    Err(error) => Some((Err(StoreError(Box::new(error))), None)),
                }
            });
            Ok(events.boxed())
        })
    }

    fn revoke<'a>(
        &'a self,
        class: &'a ClassName,
        key: &'a Key,
        grant: &'a GrantId,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let revoked = self.0.revoke_grant(class, key, grant).await;
            Ok(revoked.map_err(|error| StoreError(Box::new(error)))? == Revoked::Revoked)
        })
    }
}

fn translated(event: GrantEvent) -> StoreEvent {
    match event {
        GrantEvent::Granted {
            class,
            key,
            token,
            grant_id,
            ..
        } => StoreEvent::Granted {
            class,
            key,
            token,
            grant: grant_id,
        },
        GrantEvent::Released { grant_id, .. } => StoreEvent::Ended {
            grant: grant_id,
            released: true,
        },
        GrantEvent::Gone { grant_id, .. } => StoreEvent::Ended {
            grant: grant_id,
            released: false,
        },
    }
}
