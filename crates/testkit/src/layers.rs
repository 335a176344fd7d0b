//! The layers that images are stacked from: what `images/layers` makes from Debian packages, once per release of
//! Slurm. Tests that run Slurm as plain processes mount the same layers.

use crate::cache::SlurmVersion;

/// One layer: what `images/layers/NAME.sh` changes in the layers below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    Base,
    /// Every daemon and command of Slurm.
    Slurm,
    /// sshd and supervisord, for login and worker pods.
    Session,
    MariaDb,
    /// What users see.
    Jail,
    /// Users and an empty database for tests without pods; in no image.
    Testbed,
}

macro_rules! image_file {
    ($path:literal) => {
        include_str!(concat!("../../../images/", $path))
    };
}

/// What every layer is made with.
const TOOLS: [&str; 2] = [image_file!("layers/layer.sh"), image_file!("layers/install.sh")];

impl Layer {
    pub const ALL: [Self; 6] =
        [Self::Base, Self::Slurm, Self::Session, Self::MariaDb, Self::Jail, Self::Testbed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Slurm => "slurm",
            Self::Session => "session",
            Self::MariaDb => "mariadb",
            Self::Jail => "jail",
            Self::Testbed => "testbed",
        }
    }

    /// The layers that this one lies on, top first.
    pub fn below(self) -> &'static [Self] {
        match self {
            Self::Base => &[],
            Self::Slurm | Self::MariaDb | Self::Jail => &[Self::Base],
            Self::Session => &[Self::Slurm, Self::Base],
            Self::Testbed => &[Self::MariaDb, Self::Slurm, Self::Base],
        }
    }

    fn own_files(self) -> &'static [&'static str] {
        match self {
            Self::Base => &[image_file!("layers/base.sh"), image_file!("packages/base.txt")],
            Self::Slurm => &[
                image_file!("layers/slurm.sh"),
                image_file!("packages/slurm.txt"),
                image_file!("packages/slurm-trixie.txt"),
            ],
            Self::Session => &[image_file!("layers/session.sh"), image_file!("packages/session.txt")],
            Self::MariaDb => &[image_file!("layers/mariadb.sh"), image_file!("packages/mariadb.txt")],
            Self::Jail => &[
                image_file!("layers/jail.sh"),
                image_file!("packages/jail.txt"),
                image_file!("packages/jail-trixie.txt"),
            ],
            Self::Testbed => &[image_file!("layers/testbed.sh")],
        }
    }

    /// Everything of ours that decides what the layer contains.
    pub(crate) fn recipe(self, version: SlurmVersion) -> String {
        let below = self.below().iter().flat_map(|layer| layer.own_files());
        let files = TOOLS.iter().chain(below).chain(self.own_files());
        [&version.suite()].into_iter().chain(files).copied().collect::<Vec<_>>().join("\n")
    }
}
