//! A certificate and its key in files that others renew: cert-manager by way of the kubelet, which swaps a link under
//! both files at once, or anything that writes one after the other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{info, warn};

use super::{CertificateError, provider};
use crate::log::with_causes;

/// How often the files are looked at, at most. Nobody looks while nobody connects.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A pair of files, read again when they change.
#[derive(Debug)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pair: Arc<CertifiedKey>,
    /// The files as they were when `pair` was read.
    read: Stamps,
    /// The files as they were when it was last said that they are of no use.
    told: Option<Stamps>,
    looked: Instant,
}

impl CertificateFiles {
    /// Reads both files; at the start there is no pair to fall back to.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let read = Stamps::of(&certificate, &key);
        let pair = read_pair(&certificate, &key)?;
        let state = Mutex::new(State { pair, read, told: None, looked: Instant::now() });
        Ok(Self { certificate, key, state })
    }

    /// The pair to serve at `now`.
    fn pair(&self, now: Instant) -> Arc<CertifiedKey> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.looked) >= LOOK_EVERY {
            state.looked = now;
            self.look(&mut state);
        }
        Arc::clone(&state.pair)
    }

    fn look(&self, state: &mut State) {
        // Taken before reading: a change in between shows at the next look.
        let stamps = Stamps::of(&self.certificate, &self.key);
        if stamps == state.read {
            return;
        }
        let path = self.certificate.display();
        match read_pair(&self.certificate, &self.key) {
            Ok(pair) => {
                info!(certificate = %path, "certificate changed, serving the new one");
                *state = State { pair, read: stamps, told: None, looked: state.looked };
            }
            // The files changed while they were read: half old and half new says nothing.
            Err(_) if Stamps::of(&self.certificate, &self.key) != stamps => {}
            Err(_) if state.told == Some(stamps) => {}
            Err(error) => {
                state.told = Some(stamps);
                let error = with_causes(&error);
                warn!(certificate = %path, error, "certificate changed but is of no use, serving the old one");
            }
        }
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair(Instant::now()))
    }
}

/// What tells one state of both files from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamps {
    certificate: Option<Stamp>,
    key: Option<Stamp>,
}

/// The time of the last change of a file's status is there because tools may set the other one back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamps {
    fn of(certificate: &Path, key: &Path) -> Self {
        Self { certificate: Stamp::of(certificate), key: Stamp::of(key) }
    }
}

impl Stamp {
    /// Of the file at the end of all links.
    fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self {
            file: (meta.dev(), meta.ino()),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

fn read_pair(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, CertificateError> {
    let read = |path: &Path| {
        fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let not_pem = |path: &Path, source| CertificateError::Pem { path: path.to_owned(), source };
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| not_pem(certificate, source))?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|source| not_pem(key, source))?;
    // Refuses an empty chain, and a key of another certificate.
    let pair = CertifiedKey::from_der(chain, secret, &provider()).map_err(|source| {
        CertificateError::Pair { certificate: certificate.to_owned(), key: key.to_owned(), source }
    })?;
    Ok(Arc::new(pair))
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::os::unix::fs::symlink;

    use rcgen::{CertifiedKey as Made, KeyPair};
    use tempfile::TempDir;
    use tracing::Level;

    use super::*;
    use crate::log::LogFormat;
    use crate::log::tests::logged;

    fn made() -> Made<KeyPair> {
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
    }

    fn write(folder: &Path, certificate: &Made<KeyPair>, key: &Made<KeyPair>) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("tls.crt"), certificate.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), key.signing_key.serialize_pem()).unwrap();
    }

    fn load(folder: &Path) -> Result<CertificateFiles, CertificateError> {
        CertificateFiles::load(folder.join("tls.crt"), folder.join("tls.key"))
    }

    /// Which certificate is served when the files may be looked at again for the `looks`th time.
    fn served(files: &CertificateFiles, looks: u32) -> CertificateDer<'static> {
        files.pair(Instant::now() + LOOK_EVERY * looks).cert[0].clone()
    }

    #[test]
    fn changed_files_are_served_without_a_restart() {
        let folder = TempDir::new().unwrap();
        let (first, second) = (made(), made());
        write(folder.path(), &first, &first);
        let files = load(folder.path()).unwrap();
        assert_eq!(served(&files, 0), *first.cert.der());
        write(folder.path(), &second, &second);
        assert_eq!(served(&files, 0), *first.cert.der(), "looked too often");
        assert_eq!(served(&files, 1), *second.cert.der());
    }

    /// The kubelet's way: the files are links into `..data`, a link that is renamed over.
    #[test]
    fn a_swapped_folder_is_noticed() {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let (first, second) = (made(), made());
        write(&path.join("..1"), &first, &first);
        symlink("..1", path.join("..data")).unwrap();
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), path.join(file)).unwrap();
        }
        let files = load(path).unwrap();
        write(&path.join("..2"), &second, &second);
        symlink("..2", path.join("..data_tmp")).unwrap();
        fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
        fs::remove_dir_all(path.join("..1")).unwrap();
        assert_eq!(served(&files, 1), *second.cert.der());
    }

    #[test]
    fn a_key_of_another_certificate_keeps_the_old_pair_until_both_fit() {
        let folder = TempDir::new().unwrap();
        let (first, second) = (made(), made());
        write(folder.path(), &first, &first);
        let files = load(folder.path()).unwrap();
        write(folder.path(), &second, &first);
        assert_eq!(served(&files, 1), *first.cert.der());
        assert!(files.state.lock().unwrap().told.is_some());
        write(folder.path(), &second, &second);
        assert_eq!(served(&files, 2), *second.cert.der());
        assert!(files.state.lock().unwrap().told.is_none());
    }

    #[test]
    fn files_that_vanish_or_break_keep_the_old_pair() {
        let folder = TempDir::new().unwrap();
        let first = made();
        write(folder.path(), &first, &first);
        let files = load(folder.path()).unwrap();
        fs::remove_file(folder.path().join("tls.key")).unwrap();
        assert_eq!(served(&files, 1), *first.cert.der());
        fs::write(folder.path().join("tls.key"), "nonsense").unwrap();
        assert_eq!(served(&files, 2), *first.cert.der());
        fs::write(folder.path().join("tls.crt"), "").unwrap();
        assert_eq!(served(&files, 3), *first.cert.der());
    }

    #[test]
    fn trouble_is_told_once_for_each_state_of_the_files() {
        let folder = TempDir::new().unwrap();
        let first = made();
        write(folder.path(), &first, &first);
        let files = load(folder.path()).unwrap();
        fs::remove_file(folder.path().join("tls.key")).unwrap();
        let log = logged(LogFormat::Json, Level::WARN, || {
            for looks in 1..5 {
                served(&files, looks);
            }
            fs::write(folder.path().join("tls.key"), "nonsense").unwrap();
            for looks in 5..9 {
                served(&files, looks);
            }
        });
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("tls.key': No such file"), "{lines:?}");
        assert!(lines[1].contains("tls.key' as PEM"), "{lines:?}");
    }

    #[test]
    fn at_the_start_everything_must_be_there_and_fit() {
        let folder = TempDir::new().unwrap();
        let error = load(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), format!("read '{}/tls.crt'", folder.path().display()));
        assert!(error.source().unwrap().to_string().contains("No such file"));
        let (one, other) = (made(), made());
        write(folder.path(), &one, &other);
        assert!(matches!(load(folder.path()), Err(CertificateError::Pair { .. })));
        fs::write(folder.path().join("tls.crt"), "# nothing\n").unwrap();
        assert!(matches!(load(folder.path()), Err(CertificateError::Pair { .. })));
    }
}
