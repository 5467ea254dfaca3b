//! The judge beside Porcupine: alike on Jepsen's logs of etcd and on every history of a whole proof, and how quick each is.

mod commits;
mod etcd;
mod made;
mod proof;
mod speed;

use super::{Failure, Figure};
use crate::outsider::Outsider;

pub(crate) fn kit_judge() -> Result<Figure, Failure> {
    let outsider = Outsider::build()?;
    let etcd = etcd::alike(&outsider)?;
    let proof = proof::alike(&outsider)?;
    let speed = speed::beside(&outsider)?;
    let commits = commits::rate()?;
    let legs = [etcd, proof, speed, commits];
    Ok(Figure {
        line: legs.each_ref().map(|leg| leg.line.as_str()).join("; "),
        reached: legs.iter().all(|leg| leg.reached),
    })
}
