//! The judge beside Porcupine: alike on Jepsen's logs of etcd and on every history of a whole proof, and how quick each is. The
//! next argument may name one part of it, which is then all that is measured.

mod commits;
mod etcd;
mod made;
mod proof;
mod speed;

use super::{Failure, Figure};
use crate::outsider::Outsider;

type Leg = fn(&Outsider) -> Result<Figure, Failure>;

const LEGS: [(&str, Leg); 4] = [
    ("etcd", etcd::alike),
    ("proof", proof::alike),
    ("speed", speed::beside),
    ("commits", |_| commits::rate()),
];

pub(crate) fn kit_judge() -> Result<Figure, Failure> {
    let part = std::env::args().nth(2);
    let outsider = Outsider::build()?;
    let asked = LEGS
        .iter()
        .filter(|(name, _)| part.as_deref().is_none_or(|part| part == *name));
    let legs: Vec<Figure> = asked.map(|(_, leg)| leg(&outsider)).collect::<Result<_, _>>()?;
    let mut lines: Vec<&str> = legs.iter().map(|leg| leg.line.as_str()).collect();
    if legs.len() < LEGS.len() {
        lines.push("the rest was not measured");
    }
    Ok(Figure {
        line: lines.join("; "),
        reached: legs.len() == LEGS.len() && legs.iter().all(|leg| leg.reached),
    })
}
