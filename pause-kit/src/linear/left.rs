//! The operations that are left, in the order of their beginnings.

/// A list of numbers `from..to` of which any can be taken out, and put back in the reverse order.
pub(super) struct Left {
    from: usize,
    /// By number less `from`, the next one and the one before; the last place is the end's.
    next: Vec<u32>,
    before: Vec<u32>,
}

impl Left {
    pub(super) fn new(from: usize, to: usize) -> Left {
        let count =
            u32::try_from(to - from).expect("histories have fewer than four thousand million operations");
        Left {
            from,
            next: (1..=count).chain([0]).collect(),
            before: [count].into_iter().chain(0..count).collect(),
        }
    }

    /// The first one that is left.
    pub(super) fn first(&self) -> Option<usize> {
        self.after_place(self.next.len() - 1)
    }

    /// The next one that is left.
    pub(super) fn after(&self, number: usize) -> Option<usize> {
        self.after_place(number - self.from)
    }

    pub(super) fn take(&mut self, number: usize) {
        let place = number - self.from;
        let (before, next) = (self.before[place], self.next[place]);
        self.next[before as usize] = next;
        self.before[next as usize] = before;
    }

    /// Puts back the one that was taken last of those that are out.
    pub(super) fn put_back(&mut self, number: usize) {
        let place = number - self.from;
        let (before, next) = (self.before[place], self.next[place]);
        self.next[before as usize] = place as u32;
        self.before[next as usize] = place as u32;
    }

    fn after_place(&self, place: usize) -> Option<usize> {
        let next = self.next[place] as usize;
        (next + 1 < self.next.len()).then_some(self.from + next)
    }
}
