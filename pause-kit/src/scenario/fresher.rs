//! Defeating a guard that is not ours: the late write gets its successor's claim on the path.

use std::sync::PoisonError;

use super::grants::Granted;
use super::half::Half;
use super::trouble::Trouble;
use crate::path::{Direction, Replacement};
use crate::run::RunError;
use crate::target::{Defeat, Place};

impl Half<'_> {
    /// Has every holder's path put the newest holder's claim in the place of each older one's, from now on. What else a
    /// request holds of the older grant, such as the id of its write, stays.
    pub(super) fn freshen(&self) -> Result<(), Trouble> {
        if !self.is_freshened() {
            return Ok(());
        }
        let holders = self.holders();
        let mut grants: Vec<Granted> = holders
            .iter()
            .filter_map(|holder| holder.grant().cloned())
            .collect();
        grants.sort_by_key(|granted| granted.token.as_i64());
        let Some((newest, older)) = grants.split_last() else {
            return Ok(());
        };
        let mut rules = Vec::new();
        for granted in older.iter().filter(|granted| granted.grant != newest.grant) {
            for (find, replace) in claims(granted).into_iter().zip(claims(newest)) {
                let rule = Replacement::new(Direction::ToResource, find.as_bytes(), replace.as_bytes());
                rules.push(rule.map_err(|_| Trouble::Declared(self.unequal(&find, &replace)))?);
            }
        }
        for holder in &holders {
            let mut fresher = holder.fresher.lock().unwrap_or_else(PoisonError::into_inner);
            for known in &fresher.in_force {
                holder.path.withdraw(known);
            }
            let added: Vec<_> = rules
                .iter()
                .map(|rule| holder.path.replace(rule.anew()))
                .collect();
            let before = std::mem::replace(&mut fresher.in_force, added);
            fresher.fired.extend(before);
        }
        Ok(())
    }

    /// That something was replaced, once the half has been played: a defeat that changes nothing shows nothing.
    pub(super) fn was_freshened(&self) -> Result<(), RunError> {
        if !self.is_freshened() {
            return Ok(());
        }
        let fired = self.holders().iter().any(|holder| {
            let fresher = holder.fresher.lock().unwrap_or_else(PoisonError::into_inner);
            fresher
                .in_force
                .iter()
                .chain(&fresher.fired)
                .any(|rule| rule.fired() > 0)
        });
        if fired {
            return Ok(());
        }
        let late = self.holders().first().and_then(|first| first.grant().cloned());
        let [field, _] = late.as_ref().map(claims).unwrap_or_default();
        Err(RunError::Declared {
            at: self.defeat(),
            why: format!(
                "nothing was replaced in {}: the late write did not carry the field `Fencing-Token: {field}` letter for letter",
                self.task.slot.scenario
            ),
        })
    }

    fn is_freshened(&self) -> bool {
        let defeated = self.is_twin() && self.task.slot.scenario.defeats_the_guard();
        defeated && self.task.class.target.defeat == Some(Defeat::FresherToken)
    }

    fn unequal(&self, find: &str, replace: &str) -> RunError {
        RunError::Declared {
            at: self.defeat(),
            why: format!(
                "`{find}` cannot be replaced by its successor's `{replace}`, which is not as long; give all grant ids one length"
            ),
        }
    }

    fn defeat(&self) -> Place {
        Place::target(&self.task.class.proof.target).key("defeat")
    }
}

/// A claim as a field holds it, without and with a space before its parameter.
fn claims(granted: &Granted) -> [String; 2] {
    ["", " "].map(|space| format!("\"{}\";{space}grant=\"{}\"", granted.token, granted.grant))
}
