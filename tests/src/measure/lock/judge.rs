//! What the independent record of a store says: who held what, in which order, and how each hold ended.

use std::collections::{BTreeMap, HashMap};

/// One change of one lock, in the store's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Granted {
        key: String,
        /// The token's.
        number: i64,
        grant: String,
        session: String,
    },
    Ended {
        key: String,
        grant: String,
        how: End,
    },
    /// The record says by itself that a hold was given away while its lease lived.
    TakenAlive {
        key: String,
        grant: String,
    },
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Released,
    /// Without a release: its lease ended.
    Gone,
}

/// What a process said of one of its grants, and what became of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It was released, and the store had said so.
    Released,
    /// It was left to lapse, or lost to a stop, or its process was killed while it held.
    Gone,
    /// Its process was killed in the middle of a release.
    Either,
}

/// The verdict.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) grants: usize,
    /// Grants of a key to another session than the one before.
    pub(super) hand_overs: usize,
    pub(super) released: usize,
    pub(super) gone: usize,
    /// Grants of a key that was held.
    pub(super) two_live: usize,
    /// Tokens that are not above the key's last.
    pub(super) disorder: usize,
    /// Ends that a process had told of, by what it told.
    pub(super) released_as_told: usize,
    pub(super) gone_as_told: usize,
    /// Ends that the record classifies otherwise than the process that caused them.
    pub(super) misjudged: usize,
    /// Grants that a process was given and the record does not have, or with another token.
    pub(super) unknown: usize,
}

impl Verdict {
    pub(super) fn holds(&self) -> bool {
        self.two_live + self.disorder + self.misjudged + self.unknown == 0
    }
}

/// Judges a record against what the processes told: by grant, the token and the end.
pub(super) fn judge(changes: &[Change], told: &HashMap<String, (i64, Told)>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut live: BTreeMap<&str, &str> = BTreeMap::new();
    let mut last: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
    let (mut tokens, mut ends) = (HashMap::new(), HashMap::new());
    for change in changes {
        match change {
            Change::Granted {
                key,
                number,
                grant,
                session,
            } => {
                verdict.grants += 1;
                verdict.two_live += usize::from(live.insert(key, grant).is_some());
                if let Some((before, by)) = last.insert(key, (*number, session)) {
                    verdict.disorder += usize::from(*number <= before);
                    verdict.hand_overs += usize::from(by != session);
                }
                tokens.insert(grant.as_str(), *number);
            }
            Change::Ended { key, grant, how } => {
                if live.get(key.as_str()) == Some(&grant.as_str()) {
                    live.remove(key.as_str());
                }
                match how {
                    End::Released => verdict.released += 1,
                    End::Gone => verdict.gone += 1,
                }
                ends.insert(grant.as_str(), *how);
            }
            Change::TakenAlive { .. } => verdict.two_live += 1,
        }
    }
    for (grant, (number, told)) in told {
        if tokens.get(grant.as_str()) != Some(number) {
            verdict.unknown += 1;
        }
        match (told, ends.get(grant.as_str())) {
            (Told::Released, Some(End::Released)) => verdict.released_as_told += 1,
            (Told::Gone, Some(End::Gone)) => verdict.gone_as_told += 1,
            // The last holds of the storm end after the record does.
            (Told::Gone | Told::Either, None) | (Told::Either, Some(_)) => {}
            (Told::Released, Some(End::Gone) | None) | (Told::Gone, Some(End::Released)) => {
                verdict.misjudged += 1;
            }
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(key: &str, number: i64, grant: &str, session: &str) -> Change {
        let [key, grant, session] = [key, grant, session].map(str::to_owned);
        Change::Granted {
            key,
            number,
            grant,
            session,
        }
    }

    fn ended(key: &str, grant: &str, how: End) -> Change {
        let [key, grant] = [key, grant].map(str::to_owned);
        Change::Ended { key, grant, how }
    }

    fn good() -> (Vec<Change>, HashMap<String, (i64, Told)>) {
        let changes = vec![
            granted("a", 1, "g1", "s1"),
            granted("b", 2, "g2", "s2"),
            ended("a", "g1", End::Released),
            granted("a", 3, "g3", "s2"),
            ended("a", "g3", End::Gone),
            granted("a", 4, "g4", "s2"),
        ];
        let told = [
            ("g1", 1, Told::Released),
            ("g2", 2, Told::Gone),
            ("g3", 3, Told::Gone),
            ("g4", 4, Told::Either),
        ];
        let told = told.map(|(grant, number, told)| (grant.to_owned(), (number, told)));
        (changes, told.into())
    }

    #[test]
    fn a_sound_record_holds_and_is_counted() {
        let (changes, told) = good();
        let verdict = judge(&changes, &told);
        assert!(verdict.holds(), "{verdict:?}");
        let counted = [
            verdict.grants,
            verdict.hand_overs,
            verdict.released_as_told,
            verdict.gone_as_told,
        ];
        assert_eq!(counted, [4, 1, 1, 1]);
    }

    #[test]
    fn each_fault_in_a_record_is_counted_as_what_it_is() {
        let (sound, told) = good();
        let with = |change: &dyn Fn(&mut Vec<Change>)| {
            let mut changes = sound.clone();
            change(&mut changes);
            judge(&changes, &told)
        };
        // The release never happened.
        let verdict = with(&|changes| drop(changes.remove(2)));
        assert_eq!((verdict.two_live, verdict.misjudged), (1, 1), "{verdict:?}");
        let verdict = with(&|changes| changes[3] = granted("a", 1, "g3", "s2"));
        assert_eq!((verdict.disorder, verdict.unknown), (1, 1), "{verdict:?}");
        let verdict = with(&|changes| changes[4] = ended("a", "g3", End::Released));
        assert_eq!(verdict.misjudged, 1, "{verdict:?}");
        let verdict = with(&|changes| drop(changes.remove(1)));
        assert_eq!(verdict.unknown, 1, "{verdict:?}");
        let taken = |changes: &mut Vec<Change>| {
            let [key, grant] = ["b", "g2"].map(str::to_owned);
            changes.push(Change::TakenAlive { key, grant });
        };
        assert_eq!(with(&taken).two_live, 1);
    }
}
