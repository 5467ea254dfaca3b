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

#[cfg(test)]
mod tests {
    use super::*;

    /// A register of a number: what it is set to, and what it is read as.
    struct Number;

    impl Model for Number {
        type Op = (bool, u8);
        type State = u8;

        fn first(&self) -> u8 {
            0
        }

        fn after(&self, state: u8, (is_write, number): &(bool, u8)) -> Option<u8> {
            (*is_write || state == *number).then_some(*number)
        }
    }

    fn op(began: u64, ended: u64, op: (bool, u8)) -> Operation<(bool, u8)> {
        Operation {
            began: At::from_nanos(began),
            ended: Some(At::from_nanos(ended)),
            optional: false,
            op,
        }
    }

    #[test]
    fn an_order_is_found_after_others_that_failed() {
        let writes = [op(0, 10, (true, 1)), op(0, 11, (true, 2)), op(0, 12, (true, 3))];
        let all = [&writes[..], &[op(13, 14, (false, 1))]].concat();
        assert_eq!(check(&Number, &all), Answer::Explained);
    }

    #[test]
    fn what_was_tried_in_one_order_is_not_tried_in_every_other() {
        let mut all: Vec<_> = (1..=11).map(|number| op(0, 10, (true, number))).collect();
        all.push(op(13, 14, (false, 99)));
        assert_eq!(check(&Number, &all), Answer::Unexplained);
    }
}
