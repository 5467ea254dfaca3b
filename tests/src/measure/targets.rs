//! Targets in other languages: proven as they are, violated without their one line of fencing.

use super::run::root;
use super::{Failure, Figure};
use crate::examples::EXAMPLES;

pub(crate) fn targets() -> Result<Figure, Failure> {
    let fence = root().join("target/release/fence");
    let (mut proven, mut violated) = (0, 0);
    for example in EXAMPLES {
        let whole = example.copy()?.prove(&fence, &[])?;
        print!("{}", whole.text);
        proven += usize::from(whole.is_proven());
        let without = example.copy()?.without_fence()?.prove(&fence, &[])?;
        print!("{}", without.text);
        violated += usize::from(without.is_violated());
    }
    let all = EXAMPLES.len();
    Ok(Figure {
        line: format!(
            "{proven} of {all} foreign targets proven, {violated} of {all} violated without their fence"
        ),
        reached: proven == all && violated == all,
    })
}
