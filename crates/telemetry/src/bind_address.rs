//! The address a server listens on, in the form that charts written for the Go operators use: `:8081` is every
//! interface, `0` is no server at all.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// Where to listen, if at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// Written `0`, as controller-runtime does.
    Disabled,
    Listen {
        host: Host,
        port: u16,
    },
}

/// The part before the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Written as nothing: `:8081`.
    AllInterfaces,
    Ip(IpAddr),
    /// Resolved when the server binds.
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; expected ':PORT', 'HOST:PORT', '[IPV6]:PORT', or '0' for no server")]
pub struct BindAddressError {
    reason: &'static str,
}

impl BindAddress {
    /// Opens the socket, or answers `None` when the server is disabled.
    pub async fn bind(&self) -> std::io::Result<Option<TcpListener>> {
        let Self::Listen { host, port } = self else { return Ok(None) };
        let listener = match host {
            Host::Ip(ip) => TcpListener::bind((*ip, *port)).await,
            Host::Name(name) => TcpListener::bind((name.as_str(), *port)).await,
            Host::AllInterfaces => bind_all_interfaces(*port).await,
        };
        listener.map(Some)
    }
}

/// `[::]` takes IPv4 as well on Linux, as Go's `:PORT` does. On a machine without IPv6 it cannot be bound.
async fn bind_all_interfaces(port: u16) -> std::io::Result<TcpListener> {
    use std::io::ErrorKind::{AddrInUse, PermissionDenied};
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Err(error) if !matches!(error.kind(), AddrInUse | PermissionDenied) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        outcome => outcome,
    }
}

impl FromStr for BindAddress {
    type Err = BindAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |reason| Err(BindAddressError { reason });
        if text == "0" {
            return Ok(Self::Disabled);
        }
        let Some((host, port)) = text.rsplit_once(':') else { return fail("it has no ':PORT'") };
        // `u16::from_str` alone would take "+80".
        let Some(port) = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit())) else {
            return fail("the port is not a number from 0 to 65535");
        };
        if host.is_empty() {
            return Ok(Self::Listen { host: Host::AllInterfaces, port });
        }
        if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return match inner.parse::<Ipv6Addr>() {
                Ok(ip) => Ok(Self::Listen { host: Host::Ip(ip.into()), port }),
                Err(_) => fail("what stands in brackets is not an IPv6 address"),
            };
        }
        if let Ok(ip) = host.parse::<Ipv4Addr>() {
            return Ok(Self::Listen { host: Host::Ip(ip.into()), port });
        }
        if host.contains(':') {
            return fail("an IPv6 address must stand in brackets");
        }
        if !is_host_name(host) {
            return fail("the host is neither an address nor a host name");
        }
        Ok(Self::Listen { host: Host::Name(host.to_owned()), port })
    }
}

/// A name whose last label is a number is a mistyped IPv4 address, and no resolver should be asked about it.
fn is_host_name(host: &str) -> bool {
    let valid_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.split('.').all(valid_label) && !last.bytes().all(|b| b.is_ascii_digit())
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("0"),
            Self::Listen { host: Host::AllInterfaces, port } => write!(f, ":{port}"),
            Self::Listen { host: Host::Ip(IpAddr::V6(ip)), port } => write!(f, "[{ip}]:{port}"),
            Self::Listen { host: Host::Ip(IpAddr::V4(ip)), port } => write!(f, "{ip}:{port}"),
            Self::Listen { host: Host::Name(name), port } => write!(f, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listen(host: Host, port: u16) -> BindAddress {
        BindAddress::Listen { host, port }
    }

    #[test]
    fn go_form_without_host_means_all_interfaces() {
        assert_eq!(":8081".parse(), Ok(listen(Host::AllInterfaces, 8081)));
    }

    #[test]
    fn zero_disables_the_server() {
        assert_eq!("0".parse(), Ok(BindAddress::Disabled));
    }

    #[test]
    fn hosts_are_addresses_or_names() {
        assert_eq!("127.0.0.1:80".parse(), Ok(listen(Host::Ip(Ipv4Addr::LOCALHOST.into()), 80)));
        assert_eq!("[::1]:80".parse(), Ok(listen(Host::Ip(Ipv6Addr::LOCALHOST.into()), 80)));
        assert_eq!("localhost:80".parse(), Ok(listen(Host::Name("localhost".into()), 80)));
    }

    #[test]
    fn bad_addresses_say_what_is_wrong() {
        for (text, reason) in [
            ("", "it has no ':PORT'"),
            ("8081", "it has no ':PORT'"),
            ("localhost", "it has no ':PORT'"),
            (":", "not a number"),
            (":http", "not a number"),
            (":+80", "not a number"),
            (":-1", "not a number"),
            (":65536", "not a number"),
            ("::1:80", "must stand in brackets"),
            ("[::1:80", "must stand in brackets"),
            ("[10.0.0.1]:80", "not an IPv6 address"),
            ("300.0.0.1:80", "neither an address nor a host name"),
            ("a b:80", "neither an address nor a host name"),
            ("http//host:80", "neither an address nor a host name"),
        ] {
            let error = text.parse::<BindAddress>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
            assert!(error.contains("expected ':PORT'"), "{text:?}: {error}");
        }
    }

    #[tokio::test]
    async fn all_interfaces_take_ipv4_connections() {
        let listener = listen(Host::AllInterfaces, 0).bind().await.unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    }

    #[tokio::test]
    async fn disabled_opens_no_socket() {
        assert!(BindAddress::Disabled.bind().await.unwrap().is_none());
    }

    fn any_host() -> impl Strategy<Value = Host> {
        prop_oneof![
            Just(Host::AllInterfaces),
            any::<Ipv4Addr>().prop_map(|ip| Host::Ip(ip.into())),
            any::<Ipv6Addr>().prop_map(|ip| Host::Ip(ip.into())),
            "[a-z][a-z0-9-]{0,9}(\\.[a-z][a-z0-9]{0,5}){0,3}".prop_map(Host::Name),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(host in any_host(), port: u16) {
            let address = listen(host, port);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "[ -~]{0,20}") {
            if let Ok(address) = text.parse::<BindAddress>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
