//! Anything that operations are done to.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::subject::{Span, Subject};
use super::{Answer, explain};
use crate::history::At;

/// What operations are done to, and what each must answer in each state.
pub trait Model {
    /// An operation with its answer.
    type Op;
    /// Everything that later answers depend on.
    type State: Copy + Eq + Hash;

    /// The state before the first operation.
    fn first(&self) -> Self::State;

    /// What the operation makes of this state. `None` when its answer is not what it would be in this state.
    fn after(&self, state: Self::State, op: &Self::Op) -> Option<Self::State>;
}

/// An operation, and when it took place.
#[derive(Clone, Debug)]
pub struct Operation<O> {
    /// When it began.
    pub began: At,
    /// When it ended. `None`: it got no answer, and may have taken effect at any time after its beginning.
    pub ended: Option<At>,
    /// It may also have had no effect, as what got no answer may.
    pub optional: bool,
    /// What was done, and answered.
    pub op: O,
}

/// Whether some order of the operations, which stand in any order here, explains every answer.
pub fn check<M: Model>(model: &M, operations: &[Operation<M::Op>]) -> Answer {
    let mut operations: Vec<&Operation<M::Op>> = operations.iter().collect();
    operations.sort_by_key(|operation| operation.began);
    let spans: Vec<Span> = operations
        .iter()
        .map(|operation| Span {
            began: operation.began,
            ended: operation.ended,
            optional: operation.optional,
        })
        .collect();
    explain(OfModel { model, operations }, &spans)
}

struct OfModel<'m, M: Model> {
    model: &'m M,
    operations: Vec<&'m Operation<M::Op>>,
}

impl<M: Model> Subject for OfModel<'_, M> {
    type State = M::State;

    fn first(&self) -> M::State {
        self.model.first()
    }

    fn after(&self, state: M::State, number: usize) -> Option<M::State> {
        self.model.after(state, &self.operations[number].op)
    }

    fn fingerprint(&self, state: M::State) -> u128 {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            state.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }
}
