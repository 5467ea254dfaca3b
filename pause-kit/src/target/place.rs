//! Where in a declaration a value stands.

use std::fmt;

/// The way to a value in the file that declares targets and classes, such as `targets.paydb.setup[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    steps: Vec<PlaceStep>,
}

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceStep {
    /// Into a table.
    Key(String),
    /// Into an array, counted from 0.
    Index(usize),
}

impl Place {
    /// A value of a target, by the target's name.
    pub(crate) fn target(name: &str) -> Place {
        Place { steps: Vec::new() }.key("targets").key(name)
    }

    /// A value of a class's proof, by the class's name.
    pub(crate) fn proof(class: &str) -> Place {
        Place { steps: Vec::new() }.key("classes").key(class).key("proof")
    }

    pub(crate) fn key(&self, key: &str) -> Place {
        self.step(PlaceStep::Key(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Place {
        self.step(PlaceStep::Index(index))
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> &[PlaceStep] {
        &self.steps
    }

    fn step(&self, step: PlaceStep) -> Place {
        let mut steps = self.steps.clone();
        steps.push(step);
        Place { steps }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                PlaceStep::Key(key) => {
                    let dot = if number == 0 { "" } else { "." };
                    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                    match key.bytes().all(bare) {
                        true => write!(f, "{dot}{key}")?,
                        false => write!(f, "{dot}\"{key}\"")?,
                    }
                }
                PlaceStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_written_as_toml_would_name_it() {
        let setup = Place::target("paydb").key("setup").index(2).key("sql");
        assert_eq!(setup.to_string(), "targets.paydb.setup[2].sql");
        let writes = Place::proof("paydb.account").key("writes");
        assert_eq!(writes.to_string(), "classes.\"paydb.account\".proof.writes");
    }
}
