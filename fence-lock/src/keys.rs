//! The keys that one acquisition asks for.

use fence_core::Key;

/// The keys of one acquisition, all of one class: at least one, each once, in the order of their bytes. All are granted in
/// one step, with one token and one grant id, or none is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys(Vec<Key>);

/// No key was named. Name the locks that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an acquisition needs at least one key")]
pub struct NoKeys;

impl Keys {
    /// Takes keys in any order; a key that is named twice counts once.
    ///
    /// # Errors
    ///
    /// [`NoKeys`] when there is none.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Keys, NoKeys> {
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.sort();
        keys.dedup();
        if keys.is_empty() {
            return Err(NoKeys);
        }
        Ok(Keys(keys))
    }

    /// The keys, in the order of their bytes; never empty.
    pub fn as_slice(&self) -> &[Key] {
        &self.0
    }

    /// The keys, in the order of their bytes.
    pub fn iter(&self) -> std::slice::Iter<'_, Key> {
        self.0.iter()
    }

    /// The first key in that order.
    pub fn first(&self) -> &Key {
        &self.0[0]
    }

    /// How many there are: 1 or more.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Keys {
        Keys(vec![key])
    }
}

impl<'a> IntoIterator for &'a Keys {
    type Item = &'a Key;
    type IntoIter = std::slice::Iter<'a, Key>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_counted_once_and_never_none() {
        let key = |text: &str| Key::text(text).expect("a key");
        let keys = Keys::new([key("b"), key("a"), key("b")]).expect("two keys");
        assert_eq!(keys.as_slice(), [key("a"), key("b")]);
        assert_eq!((keys.count(), keys.first()), (2, &key("a")));
        assert_eq!(Keys::new([]), Err(NoKeys));
        assert_eq!(Keys::from(key("a")), Keys::new([key("a")]).expect("one key"));
    }
}
