//! Versions of etcd that no lock should be trusted to.

use etcd_client::{Client, Error};

use super::EtcdStore;
use crate::error::StoreError;

/// What is wrong with a version of etcd. Holds may outlive their locks there; the resource's refusal covers that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionWarning {
    /// Below 3.4.38, 3.5.23 and 3.6.5. Upgrade the cluster.
    #[error(
        "can confirm a renewal falsely and serve stale reads around a pause; use 3.4.42, 3.5.28, 3.6.9 or newer"
    )]
    FalseRenewals,
    /// Below 3.4.42, 3.5.28 and 3.6.9. Upgrade the cluster.
    #[error("can serve stale reads around a pause; use 3.4.42, 3.5.28, 3.6.9 or newer")]
    StaleReads,
}

impl VersionWarning {
    /// What is known about an etcd of this version, such as `3.4.23`, if anything.
    pub fn of(version: &str) -> Option<VersionWarning> {
        let [major, minor, patch] = parts(version)?;
        let (renewals, reads) = match (major, minor) {
            (3, 4) => (38, 42),
            (3, 5) => (23, 28),
            (3, 6) => (5, 9),
            (3, 0..4) | (0..3, _) => (u32::MAX, u32::MAX),
            _ => return None,
        };
        if patch < renewals {
            Some(VersionWarning::FalseRenewals)
        } else if patch < reads {
            Some(VersionWarning::StaleReads)
        } else {
            None
        }
    }
}

/// One member of the cluster, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberVersion {
    /// The endpoint that was asked.
    pub endpoint: String,
    /// Its version; none when it did not answer, or does not tell this user.
    pub version: Option<String>,
}

impl MemberVersion {
    /// What is wrong with this member's version, if that is known.
    pub fn warning(&self) -> Option<VersionWarning> {
        self.version.as_deref().and_then(VersionWarning::of)
    }
}

impl EtcdStore {
    /// The version of each member, by endpoint. Ask once at start, and log the [warnings](MemberVersion::warning): a cluster
    /// is as old as its oldest member.
    pub async fn member_versions(&self) -> Vec<MemberVersion> {
        let members = &self.inner.members;
        let asked = members.endpoints().iter().map(|endpoint| async {
            MemberVersion {
                endpoint: endpoint.clone(),
                version: self.version_at(endpoint).await.ok(),
            }
        });
        futures_util::future::join_all(asked).await
    }

    async fn version_at(&self, endpoint: &str) -> Result<String, StoreError> {
        let asking = async {
            let options = self.inner.members.options().clone();
            let mut client = Client::connect([endpoint], Some(options)).await?;
            Ok::<_, Error>(client.status().await?.version().to_owned())
        };
        match tokio::time::timeout(self.inner.timeout, asking).await {
            Ok(answer) => answer.map_err(|error| self.sort(error)),
            Err(_) => Err(StoreError::TimedOut {
                endpoints: endpoint.to_owned(),
                after: self.inner.timeout,
            }),
        }
    }
}

fn parts(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::VersionWarning::{self, FalseRenewals, StaleReads};

    #[test]
    fn the_first_sound_version_of_each_line_gets_no_warning_and_the_one_before_does() {
        for sound in ["3.4.42", "3.5.28", "3.6.9", "3.7.0", "4.0.0", "3.6.10-rc.1"] {
            assert_eq!(VersionWarning::of(sound), None, "{sound}");
        }
        for stale in ["3.4.41", "3.4.38", "3.5.27", "3.5.23", "3.6.8", "3.6.5"] {
            assert_eq!(VersionWarning::of(stale), Some(StaleReads), "{stale}");
        }
        for false_renewal in ["3.4.37", "3.5.22", "3.6.4", "3.3.25", "2.3.8"] {
            assert_eq!(
                VersionWarning::of(false_renewal),
                Some(FalseRenewals),
                "{false_renewal}"
            );
        }
    }
}
