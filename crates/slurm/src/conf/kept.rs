//! Options of ours that a user's text must not take away: the daemons would no longer know the operator.

use super::document::Document;
use super::file::{ConfFile, Item};
use super::keys::Key;
use super::merge::{option, options};
use super::owned::kept;
use super::problem::{Problem, Reason};

/// A value of ours for which a user's stands, and where.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) key: &'static Key,
    ours: String,
    theirs: String,
    line: usize,
}

impl Replaced {
    /// What is replaced of a key that is kept.
    pub(super) fn by(user: &Document, key: &'static Key, ours: &str) -> Option<Self> {
        let (line, theirs) = user.last(key.name).filter(|_| kept(user.kind()).contains(&key.name))?;
        Some(Self { key, ours: ours.to_owned(), theirs: theirs.value.clone(), line })
    }
}

impl ConfFile {
    /// What no value of ours makes up for, such as one that was made by [`ConfFile::unions`].
    pub(super) fn lost(&self) -> Vec<Problem> {
        let names = kept(self.kind).iter();
        names.filter_map(|name| self.kind.key(name)).filter_map(|key| self.lost_of(key)).collect()
    }

    fn lost_of(&self, wanted: &'static Key) -> Option<Problem> {
        let mut replaced = self.replaced.iter().rfind(|replaced| replaced.key == wanted).cloned();
        let mut ours = None;
        // What counts in the end, as far as this file knows.
        let mut value = None;
        for item in &self.items {
            match item {
                Item::Setting { key, value: own, .. } if *key == wanted => {
                    (ours, value) = (Some(own), Some(own));
                }
                Item::Text(text) => {
                    let Some((_, theirs)) = text.last(wanted.name) else { continue };
                    value = Some(&theirs.value);
                    replaced = replaced.or_else(|| Replaced::by(text, wanted, ours?));
                }
                Item::Setting { .. } | Item::Other(_) => {}
            }
        }
        let Replaced { ours, theirs, line, .. } = replaced?;
        let reason = Reason::OursLost { line };
        // A text that is not in this file is in one of its own.
        let lost = !has_all(value.unwrap_or(&theirs), &ours);
        lost.then(|| Problem { place: wanted.name.to_owned(), reason })
    }
}

/// Whether the value has each option of ours, and none of them in another way.
fn has_all(value: &str, ours: &str) -> bool {
    options(ours).map(option).all(|ours| {
        let mut same = options(value).map(option).filter(|theirs| theirs.0 == ours.0).peekable();
        same.peek().is_some() && same.all(|theirs| theirs == ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::keys::{slurm as key, slurmdbd};
    use crate::conf::{FileKind, Release, unions};

    fn slurm() -> ConfFile {
        let mut file = ConfFile::new(FileKind::Slurm, Release::V26_05);
        file.set(&key::AuthAltParameters, "jwt_key=/ours").set(&key::KillWait, 1);
        file
    }

    fn user(text: &str) -> Document {
        Document::read(FileKind::Slurm, text)
    }

    const LOST: &str = "write slurm.conf: AuthAltParameters: line 2 of the text takes options of the operator away, \
                        without which Slurm no longer knows it: remove the line";

    #[test]
    fn a_text_that_takes_our_key_away_is_refused() {
        let user = user("KillWait=2\nauthaltparameters=jwks=/x\n");
        let mut file = slurm();
        file.drop_overridden(&user);
        // In a file of its own, and after ours.
        assert_eq!(file.render().unwrap_err().to_string(), LOST);
        assert_eq!(file.text(&user).render().unwrap_err().to_string(), LOST);
        assert_eq!(slurm().text(&user).render().unwrap_err().to_string(), LOST);

        let mut file = ConfFile::new(FileKind::Slurmdbd, Release::V26_05);
        file.set(&slurmdbd::AuthInfo, "use_client_ids");
        file.drop_overridden(&Document::read(FileKind::Slurmdbd, "AuthInfo=socket=/x"));
        assert!(file.render().is_err());
    }

    #[test]
    fn a_text_whose_options_are_joined_with_ours_is_none_of_them() {
        let user = user("\nAuthAltParameters=jwt_key=/theirs,jwks=/x\n");
        for drop in [true, false] {
            let mut file = slurm();
            let unions = file.unions(&user, unions(FileKind::Slurm));
            if drop {
                file.drop_overridden(&user);
            }
            file.text(&user);
            assert_eq!(file.render().unwrap_err().to_string(), LOST);
            for union in unions {
                file.set(union.key, union.options);
            }
            assert!(file.render().unwrap().ends_with("AuthAltParameters=jwks=/x,jwt_key=/ours\n"));
        }
    }

    #[test]
    fn a_text_that_has_ours_too_or_comes_before_them_is_let_through() {
        for text in ["AuthAltParameters=jwks=/x,JWT_KEY=/ours", "AuthAltTypes=auth/jwt", "AuthInfo=x"] {
            assert!(slurm().text(&user(text)).render().is_ok(), "{text}");
            // In a file of its own.
            let mut file = slurm();
            file.drop_overridden(&user(text));
            assert!(file.render().is_ok(), "{text}");
        }
        assert!(slurm().text(&user("AuthAltParameters=jwt_key=/ours,jwt_key=/x")).render().is_err());
        let mut file = ConfFile::new(FileKind::Slurm, Release::V26_05);
        file.text(&user("AuthInfo=x")).text(&user("AuthInfo=y"));
        file.text(&user("AuthAltParameters=jwks=/x")).set(&key::AuthAltParameters, "jwt_key=/ours");
        assert!(file.render().is_ok());
    }
}
