//! Where things stand in `evidence.json`, as it is written: one member a line.

use crate::evidence::ScenarioEvidence;

/// A text by its lines.
#[derive(Clone, Debug)]
pub(super) struct Lines(String);

impl Lines {
    pub(super) fn new(text: String) -> Lines {
        Lines(text)
    }

    /// The line that holds the last of these, each looked for from the line of the one before it on.
    pub(super) fn of(&self, parts: &[&str]) -> Option<usize> {
        let mut lines = self.0.lines().zip(1..).peekable();
        let mut found = None;
        for part in parts {
            while lines.next_if(|(line, _)| !line.contains(part)).is_some() {}
            found = lines.peek().map(|(_, number)| *number);
        }
        found
    }

    /// The line on which a scenario's name stands.
    pub(super) fn of_scenario(&self, scenario: &ScenarioEvidence) -> Option<usize> {
        let id = format!("\"id\": \"{}\"", scenario.id);
        let class = format!("\"class\": \"{}\"", scenario.class);
        let next = self.0.lines().skip(1);
        let pairs = self.0.lines().zip(next).zip(1..);
        let mut found = pairs.filter(|((line, next), _)| line.contains(&id) && next.contains(&class));
        found.next().map(|(_, number)| number)
    }
}
