//! Every history of a whole proof, guarded and defeated.

use super::super::run::finish;
use super::{Failure, Figure};
use crate::outsider::Outsider;

pub(super) fn alike(outsider: &Outsider) -> Result<Figure, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence");
    let run = finish(&["--out", &folder.display().to_string()])?;
    if run.exit != Some(0) {
        return Err(format!("fence prove ended with {:?}\n{}", run.exit, run.text()).into());
    }
    let compared = outsider.compare(&folder)?;
    println!("a proof: {compared}");
    Ok(Figure {
        line: format!("a proof: {compared}"),
        // Twins must be among them that no order explains, or nothing was compared.
        reached: compared.same == compared.all && compared.unexplained > 0,
    })
}
