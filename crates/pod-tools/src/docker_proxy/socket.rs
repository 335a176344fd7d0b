//! The listening socket: a file that outlives the process that made it.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use super::Error;

/// Binds `path`, in place of a socket that nobody listens on any more.
pub(super) async fn bind(path: &Path, mode: u32) -> Result<UnixListener, Error> {
    let failed = |source| Error::Listen { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(Error::NotASocket(path.to_owned())),
        Ok(_) => match UnixStream::connect(path).await {
            Ok(_) => return Err(Error::InUse(path.to_owned())),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed)?;
            }
            // A listener with a full queue, perhaps: not known to be stale.
            Err(error) => return Err(failed(error)),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Connecting takes the permission to write, which no umask in use gives to others: nobody slips in before this.
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        // A listener that is dropped leaves its file behind.
        drop(bind(&path, 0o600).await.unwrap());
        assert!(path.exists());
        let _listener = bind(&path, 0o640).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let error = bind(&path, 0o640).await.unwrap_err();
        assert!(matches!(error, Error::InUse(_)), "{error}");
    }

    #[tokio::test]
    async fn file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        fs::write(&path, "precious").unwrap();
        let error = bind(&path, 0o660).await.unwrap_err();
        assert!(error.to_string().contains("exists and is no socket"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let error = bind(&dir.path().join("missing/docker.sock"), 0o660).await.unwrap_err();
        assert!(matches!(error, Error::Listen { .. }), "{error}");
    }
}
