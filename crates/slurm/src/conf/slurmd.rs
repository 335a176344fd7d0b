//! What `slurmd --conf` takes of a node that makes itself known: the pairs of its line, without its name.

use super::file::ConfFile;
use super::keys::FileKind;
use super::line::ConfLine;
use super::lines::NodeLine;
use super::problem::Problem;
use super::quote;
use super::release::Release;

impl NodeLine {
    /// The pairs of the line in one text, checked as those of a file are, for `slurmd -Z --conf`. slurmd itself says how the
    /// node is called. It takes the text apart without looking for comments and backslashes.
    pub fn slurmd_conf(self, release: Release) -> Result<String, Problem> {
        let line = ConfFile::new(FileKind::Slurm, release).checked_line(&ConfLine::from(self))?;
        let mut pairs = Vec::new();
        for (key, value) in &line.pairs {
            let value = quote::unescaped(value);
            let value = value.map_err(|unwritable| line.problem(key, unwritable.into()))?;
            pairs.push(format!("{}={value}", key.name));
        }
        Ok(pairs.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::keys::slurm as key;
    use crate::conf::{Extra, HostExpr};

    fn conf(extra: Extra) -> Result<String, Problem> {
        let line = NodeLine { weight: Some(3), extra, ..NodeLine::new(HostExpr::new("n1").unwrap()) };
        line.slurmd_conf(Release::V26_05)
    }

    fn extra(text: &str) -> Extra {
        Extra::read(text, key::node::ALL, &[]).unwrap()
    }

    #[test]
    fn the_pairs_are_one_text_without_the_name() {
        assert_eq!(
            conf(extra("Gres=gpu:2 Reason=\"a  b\" weight=5")).unwrap(),
            "Gres=gpu:2 Reason=\"a  b\" Weight=5"
        );
        assert_eq!(conf(extra("")).unwrap(), "Weight=3");
    }

    #[test]
    fn pairs_are_checked_as_those_of_a_file() {
        for (text, expected) in [
            ("AutoResume=no", "AutoResume on the line NodeName=n1: known to no release"),
            ("CPUs=many", "CPUs on the line NodeName=n1: the value is not a whole number"),
            ("Reason=a\"b", "Reason on the line NodeName=n1: the value has quotes"),
        ] {
            let problem = conf(extra(text)).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
