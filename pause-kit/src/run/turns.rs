//! How many halves work at a time.

use tokio::sync::{Semaphore, SemaphorePermit};

/// A half is a handful of processes that mostly wait for each other, so that two of them leave two processors idle. More than
/// four take longer, each, without the run being over sooner.
pub(crate) const AT_WORK: usize = 4;

/// Lets so many halves work at a time, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns(Semaphore::new(AT_WORK))
    }

    /// Waits for a turn.
    pub(crate) async fn take(&self) -> Turn<'_> {
        Turn {
            turns: self,
            permit: Some(self.permit().await),
        }
    }

    async fn permit(&self) -> SemaphorePermit<'_> {
        let permit = self.0.acquire().await;
        permit.expect("nobody closes the semaphore")
    }
}

/// A half's turn. Dropping it gives it to the next.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    permit: Option<SemaphorePermit<'a>>,
}

impl Turn<'_> {
    /// Lets another one work meanwhile.
    pub(crate) fn give_up(&mut self) {
        self.permit = None;
    }

    /// Waits until it is this one's turn again, if it had been given up.
    pub(crate) async fn take_again(&mut self) {
        if self.permit.is_none() {
            self.permit = Some(self.turns.permit().await);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn no_more_than_so_many_work_at_a_time_and_one_that_gives_its_turn_up_waits_for_another() {
        let turns = Turns::new();
        let mut working = Vec::new();
        for _ in 0..AT_WORK {
            working.push(turns.take().now_or_never().expect("a turn is free"));
        }
        assert!(turns.take().now_or_never().is_none());
        let mut waits = working.pop().expect("there are some");
        waits.give_up();
        let other = turns.take().now_or_never().expect("one was given up");
        assert!(waits.take_again().now_or_never().is_none());
        drop(other);
        waits.take_again().now_or_never().expect("one is over");
        assert!(turns.take().now_or_never().is_none());
    }
}
