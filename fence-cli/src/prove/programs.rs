//! The programs that `fence.toml` names, looked for before anything starts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pause_kit::plan::Plan;
use pause_kit::target::{Step as TargetStep, Target, Template, Values};

use crate::config::{ConfigError, Manifest, Step};

/// The first program of the plan that is not there.
pub(super) fn find(plan: &Plan, manifest: &Manifest) -> Result<(), ConfigError> {
    let folder = plan.fence.parent().unwrap_or(Path::new("."));
    let values = Values::default()
        .with("fence", plan.fence.display().to_string())
        .with("bin", folder.display().to_string());
    for class in &plan.classes {
        let search = Search {
            manifest,
            values: &values,
            target: &class.target,
        };
        let target = ["targets", &class.proof.target];
        search.steps(&class.target.setup, &target, "setup")?;
        if let Some(resource) = &class.target.resource {
            search.command(&resource.command, way(&target, &["resource", "command"]))?;
        }
        let proof = ["classes", class.name.as_str(), "proof"];
        search.steps(&class.proof.prepare, &proof, "prepare")?;
        search.command(&class.proof.holder.command, way(&proof, &["holder", "command"]))?;
    }
    Ok(())
}

struct Search<'a> {
    manifest: &'a Manifest,
    values: &'a Values,
    target: &'a Target,
}

impl Search<'_> {
    fn steps(&self, steps: &[TargetStep], at: &[&str], list: &str) -> Result<(), ConfigError> {
        for (index, step) in steps.iter().enumerate() {
            if let Some(command) = &step.command {
                let mut way = way(at, &[list]);
                way.extend([Step::Index(index), Step::Key("command".to_owned())]);
                self.command(command, way)?;
            }
        }
        Ok(())
    }

    fn command(&self, command: &[Template], mut way: Vec<Step>) -> Result<(), ConfigError> {
        let program = command.first().expect("a command that was checked has a program");
        let Ok(path) = program.fill(self.values) else {
            // Its name is only known to the run.
            return Ok(());
        };
        let why = if path.contains('/') {
            let file = self.target.program(&path);
            match (is_program(&file), file.is_file()) {
                (true, _) => return Ok(()),
                (_, true) => format!(
                    "\"{program}\" is no program: {} may not be executed; chmod +x it, or name the program that runs it first",
                    file.display()
                ),
                _ => format!(
                    "\"{program}\" is no program: there is no executable file {}",
                    file.display()
                ),
            }
        } else {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            match std::env::split_paths(&folders).any(|folder| is_program(&folder.join(&path))) {
                true => return Ok(()),
                false => format!(
                    "\"{program}\" is no program of PATH; install it, or give its path, such as ./{path} beside fence.toml"
                ),
            }
        };
        way.push(Step::Index(0));
        Err(self.manifest.fault(&way, why))
    }
}

fn way(at: &[&str], rest: &[&str]) -> Vec<Step> {
    let keys = at.iter().chain(rest);
    keys.map(|key| Step::Key((*key).to_owned())).collect()
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
