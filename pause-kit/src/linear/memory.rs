//! What was tried already.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A set of operations, exactly: the largest number in it, and the smaller ones that are not. It is about as long as what is
/// in flight at once.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct DoneSet {
    pub(super) to: u32,
    pub(super) without: Box<[u32]>,
}

/// Remembers what was tried.
pub(super) trait Memory<S>: Default {
    fn is_empty(&self) -> bool;

    fn contains(&self, fingerprint: u128, exactly: impl FnOnce() -> (DoneSet, S)) -> bool;

    /// Remembers a set and a state.
    fn insert(&mut self, fingerprint: u128, exactly: impl FnOnce() -> (DoneSet, S));

    /// How many bytes are taken, about.
    fn bytes(&self) -> usize;
}

/// By 128 bits: small, and wrong once in more runs than there ever will be.
#[derive(Default)]
pub(super) struct Fingerprints(HashSet<u128, BuildHasherDefault<Itself>>);

impl<S> Memory<S> for Fingerprints {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn contains(&self, fingerprint: u128, _: impl FnOnce() -> (DoneSet, S)) -> bool {
        self.0.contains(&fingerprint)
    }

    fn insert(&mut self, fingerprint: u128, _: impl FnOnce() -> (DoneSet, S)) {
        self.0.insert(fingerprint);
    }

    fn bytes(&self) -> usize {
        self.0.len() * 2 * size_of::<u128>()
    }
}

/// The sets themselves.
pub(super) struct Exact<S> {
    tried: HashSet<(DoneSet, S)>,
    bytes: usize,
}

impl<S> Default for Exact<S> {
    fn default() -> Exact<S> {
        Exact {
            tried: HashSet::new(),
            bytes: 0,
        }
    }
}

impl<S: Eq + Hash> Memory<S> for Exact<S> {
    fn is_empty(&self) -> bool {
        self.tried.is_empty()
    }

    fn contains(&self, _: u128, exactly: impl FnOnce() -> (DoneSet, S)) -> bool {
        self.tried.contains(&exactly())
    }

    fn insert(&mut self, _: u128, exactly: impl FnOnce() -> (DoneSet, S)) {
        let (set, state) = exactly();
        self.bytes += 2 * size_of::<(DoneSet, S)>() + 16 + 4 * set.without.len();
        self.tried.insert((set, state));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Fingerprints look like chance already.
#[derive(Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, bits: u128) {
        self.0 = (bits >> 64) as u64;
    }
}

/// 128 bits that look like chance, of a number; each salt gives others.
pub(crate) fn bits_of(number: u64, salt: u64) -> u128 {
    // SplitMix64.
    let half = |salt: u64| {
        let mut bits = number.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    u128::from(half(salt)) << 64 | u128::from(half(salt ^ 1 << 40))
}
