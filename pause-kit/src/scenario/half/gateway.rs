//! A proxy between the paths of the holders and the resource.

use super::{Ground, Half, Replica};
use crate::path::{Path, PathOptions};
use crate::run::RunError;
use crate::scenario::front::Door;
use crate::services::{Nginx, Services};
use crate::target::{Http, Proxy, Transport};

/// The proxy of a half, with an address for each process of the resource, and a path of the kit's from there to it.
pub(super) struct Gateway {
    nginx: Nginx,
    behind: Vec<Path>,
}

impl Gateway {
    /// Puts a proxy before these, where the transport asks for one.
    pub(super) async fn before(
        replicas: &mut [Replica],
        services: &Services,
        transport: Transport,
    ) -> Result<Option<Gateway>, RunError> {
        let Some(Proxy::Nginx) = transport.through else {
            return Ok(None);
        };
        let mut behind = Vec::new();
        for replica in &*replicas {
            let path = Path::open(replica.address, PathOptions::http()).await;
            behind.push(path.map_err(RunError::lost("no path behind the proxy"))?);
        }
        let upstreams: Vec<_> = behind.iter().map(Path::address).collect();
        let nginx = services.start_nginx(&upstreams, transport.http).await;
        let nginx = nginx.map_err(RunError::lost("the proxy could not be started"))?;
        for (replica, address) in replicas.iter_mut().zip(nginx.addresses()) {
            replica.address = *address;
        }
        Ok(Some(Gateway { nginx, behind }))
    }

    /// Has the proxy's address of that number lead to this process from now on.
    pub(super) fn leads_to(&self, number: usize, replica: &mut Replica) {
        self.behind[number].route_to(replica.address);
        replica.address = self.nginx.addresses()[number];
    }

    pub(super) async fn end(&self) -> Result<(), RunError> {
        let ended = self.nginx.process().kill().await;
        ended
            .map(drop)
            .map_err(RunError::lost("the proxy could not be ended"))
    }
}

impl Ground<'_> {
    /// Where clients reach this process.
    pub(super) fn door(&self, replica: &Replica) -> Door {
        Door {
            address: replica.address,
            http: self.transport.http,
        }
    }
}

impl Half<'_> {
    /// Where clients reach a process of the resource.
    pub(crate) fn door(&self, number: usize) -> Door {
        self.ground.door(self.replica(number))
    }

    /// What clients speak to it, where there is a front.
    pub(crate) fn door_speaks(&self) -> Option<Http> {
        let front = self.task.class.proof.front.as_ref();
        front.map(|_| self.ground.transport.http)
    }

    /// Where clients reach its last process.
    pub(crate) fn last_door(&self) -> Door {
        self.ground.door(self.last_replica())
    }

    /// The path from the proxy to a process of the resource, where there is a proxy.
    pub(crate) fn behind(&self, number: usize) -> Option<&Path> {
        Some(&self.gateway.as_ref()?.behind[number])
    }
}
