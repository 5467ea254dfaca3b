//! A lock store that a half has for itself, because it stops it or ends it.

use crate::path::{Path, PathOptions};
use crate::run::RunError;
use crate::services::{Etcd, Services};

/// An etcd of one member. Whoever the half starts reaches it over `path`; the kit itself does not.
pub(crate) struct OwnStore {
    pub(crate) etcd: Etcd,
    pub(crate) path: Path,
}

impl OwnStore {
    pub(super) async fn start(services: &Services, name: &str) -> Result<OwnStore, RunError> {
        let started = services.start_etcd(name).await;
        let etcd = started.map_err(RunError::lost("the half's own etcd could not be started"))?;
        let path = Path::open(etcd.address(), PathOptions::plain()).await;
        let path = path.map_err(RunError::lost("no path to the half's own etcd"))?;
        Ok(OwnStore { etcd, path })
    }

    /// Where the processes of the half reach it.
    pub(super) fn endpoint_on_path(&self) -> String {
        format!("http://{}", self.path.address())
    }
}
