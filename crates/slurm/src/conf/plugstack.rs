//! plugstack.conf: the SPANK plugins. Its grammar is its own: words between blanks, without quotes and escapes.

use super::problem::{Problem, Problems, Reason};
use super::quote::Unwritable;

const FILE: &str = "plugstack.conf";
/// Slurm reads so many bytes at once; the rest of a longer line would be a line of its own.
const LONGEST: usize = 4094;
/// What separates words in this file.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// A SPANK plugin and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Whether jobs fail when it cannot be loaded.
    pub required: bool,
    /// The path, or the name of a file in the plugin folders.
    pub path: String,
    pub args: Vec<String>,
}

/// plugstack.conf, being made. The order of plugins is that in which Slurm runs them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlugStack {
    lines: Vec<String>,
    problems: Vec<Problem>,
}

impl PlugStack {
    pub fn new() -> Self {
        Self::default()
    }

    /// `#` and the text as it is; each line of it becomes a comment.
    pub fn comment(&mut self, text: &str) -> &mut Self {
        if text.chars().any(|letter| letter.is_control() && letter != '\n') {
            return self.fail("a comment", Reason::Comment(Unwritable::Control));
        }
        for line in text.split('\n') {
            self.push("a comment", format!("#{line}"));
        }
        self
    }

    pub fn empty_line(&mut self) -> &mut Self {
        self.lines.push(String::new());
        self
    }

    pub fn plugin(&mut self, plugin: &Plugin) -> &mut Self {
        let Plugin { required, path, args } = plugin;
        let mut line = if *required { "required" } else { "optional" }.to_owned();
        for word in [path].into_iter().chain(args) {
            if let Err(unwritable) = check_word(word) {
                return self.fail(&format!("plugin {path:?}"), unwritable.into());
            }
            line.push(' ');
            line += word;
        }
        self.push(&format!("plugin {path:?}"), line)
    }

    /// Another file, or all that a pattern with `*` matches. None is no error.
    pub fn include(&mut self, pattern: &str) -> &mut Self {
        match check_word(pattern) {
            Ok(()) => self.push("include", format!("include {pattern}")),
            Err(unwritable) => self.fail("include", Reason::Include(unwritable)),
        }
    }

    pub fn render(&self) -> Result<String, Problems> {
        if !self.problems.is_empty() {
            return Err(Problems { file: FILE, problems: self.problems.clone() });
        }
        Ok(self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect())
    }

    fn push(&mut self, place: &str, line: String) -> &mut Self {
        if line.len() > LONGEST {
            return self.fail(place, Reason::Long(LONGEST));
        }
        self.lines.push(line);
        self
    }

    fn fail(&mut self, place: &str, reason: Reason) -> &mut Self {
        self.problems.push(Problem { place: place.to_owned(), reason });
        self
    }
}

fn check_word(word: &str) -> Result<(), Unwritable> {
    if word.is_empty() {
        return Err(Unwritable::Empty);
    }
    if word.chars().any(char::is_control) {
        return Err(Unwritable::Control);
    }
    let bad = |letter: &char| letter.is_whitespace() || *letter == '#';
    word.chars().find(bad).map_or(Ok(()), |letter| Err(Unwritable::Letter(letter)))
}

/// A line of a user's plugstack.conf that does not do what it should. Slurm reads over it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct PluginFinding {
    pub line: usize,
    pub message: &'static str,
}

/// What is wrong with the text of a plugstack.conf.
pub fn check_plugstack(text: &str) -> Vec<PluginFinding> {
    let message = |line: &str| {
        let content = line.split('#').next().unwrap_or_default();
        let mut words = content.split(BLANKS).filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            _ if line.len() > LONGEST => Some("the line is longer than Slurm reads: make it shorter"),
            _ if line.contains(|letter: char| letter.is_control() && letter != '\t') => {
                Some("the line has a control character: take it out")
            }
            (None, _) | (Some("required" | "optional" | "include"), Some(_)) => None,
            (Some("required" | "optional" | "include"), None) => {
                Some("a path is missing: write it after the first word")
            }
            (Some(_), _) => Some("the first word must be required, optional or include"),
        }
    };
    let numbered = text.split('\n').enumerate();
    numbered
        .filter_map(|(index, line)| message(line).map(|message| PluginFinding { line: index + 1, message }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(path: &str, args: &[&str]) -> Plugin {
        let args = args.iter().map(ToString::to_string).collect();
        Plugin { required: true, path: path.to_owned(), args }
    }

    #[test]
    fn an_argument_can_neither_end_nor_hide() {
        for arg in ["", "a b", "a#b", "a\nb", "a\tb", "a\u{a0}b"] {
            let problems = PlugStack::new().plugin(&plugin("x.so", &[arg])).render().unwrap_err();
            assert!(
                problems.to_string().starts_with("write plugstack.conf: plugin \"x.so\": "),
                "{problems}"
            );
        }
        assert!(PlugStack::new().plugin(&plugin("x.so", &[&"a".repeat(5000)])).render().is_err());
    }

    #[test]
    fn what_slurm_would_read_over_is_found() {
        let text = "# a\nrequired x.so a=b # c\n\nOptional y.so\noptional\ninclude plugstack.conf.d/*\n";
        let lines: Vec<usize> = check_plugstack(text).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4, 5]);
    }

    #[test]
    fn what_is_written_has_no_findings() {
        let mut stack = PlugStack::new();
        stack.comment("plugins\nmore").empty_line().plugin(&plugin("/x.so", &["a=b"])).include("d/*.conf");
        assert_eq!(check_plugstack(&stack.render().unwrap()), []);
    }
}
