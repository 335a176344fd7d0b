//! A certificate that the process makes for itself. Nobody can check it, so it only keeps others from listening.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{info, warn};

use super::{CertificateError, provider};
use crate::log::with_causes;

const VALID_DAYS: i32 = 365;

/// A process may run for years: a new certificate is made when the old one has this long left.
const RENEW_DAYS: i32 = 30;

/// How long to wait after a failure.
const TRY_AGAIN: SignedDuration = SignedDuration::from_hours(1);

/// A certificate signed by its own key, made anew before it ends.
#[derive(Debug)]
pub struct SelfMade {
    names: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pair: Arc<CertifiedKey>,
    renew_at: Timestamp,
}

impl SelfMade {
    /// A certificate for this machine: `localhost`, its addresses, and the host's name.
    pub fn new() -> Result<Self, CertificateError> {
        let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        names.extend(host_name());
        Self::at(names, Timestamp::now())
    }

    fn at(names: Vec<String>, now: Timestamp) -> Result<Self, CertificateError> {
        let state = Mutex::new(make(&names, now)?);
        Ok(Self { names, state })
    }

    /// The pair to serve at `now`.
    fn pair(&self, now: Timestamp) -> Arc<CertifiedKey> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= state.renew_at {
            match make(&self.names, now) {
                Ok(made) => {
                    info!("made a new certificate, the old one is about to end");
                    *state = made;
                }
                Err(error) => {
                    warn!(
                        error = with_causes(&error),
                        "could not make a new certificate, serving the old one"
                    );
                    state.renew_at = now.saturating_add(TRY_AGAIN).unwrap_or(Timestamp::MAX);
                }
            }
        }
        Arc::clone(&state.pair)
    }
}

impl ResolvesServerCert for SelfMade {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair(Timestamp::now()))
    }
}

fn make(names: &[String], now: Timestamp) -> Result<State, CertificateError> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let end = today.saturating_add(VALID_DAYS.days());
    let (certificate, key) = sign(names, today.saturating_sub(1.day()), end)
        .map_err(|source| CertificateError::Make { names: names.join(", "), source })?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let pair = CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider())
        .map_err(|source| CertificateError::Made { names: names.join(", "), source })?;
    let renew_on = end.saturating_sub(RENEW_DAYS.days());
    let renew_at = renew_on.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |day| day.timestamp());
    Ok(State { pair: Arc::new(pair), renew_at })
}

/// Valid from the day before: clocks differ.
fn sign(names: &[String], begin: Date, end: Date) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let midnight =
        |day: Date| date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs());
    params.not_before = midnight(begin);
    params.not_after = midnight(end);
    let certificate = params.self_signed(&key)?;
    Ok((certificate, key))
}

/// As the kernel knows it: in a pod the pod's name. A host may have none that can be used.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let usable = !name.is_empty() && name != "localhost" && name != "(none)" && name.is_ascii();
    usable.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn at(text: &str) -> (SelfMade, Timestamp) {
        let now = text.parse().unwrap();
        (SelfMade::at(vec!["localhost".into()], now).unwrap(), now)
    }

    #[test]
    fn it_is_kept_until_it_nears_its_end_and_then_made_anew() {
        let (made, now) = at("2026-02-03T04:05:06Z");
        let first = made.pair(now);
        assert!(Arc::ptr_eq(&first, &made.pair(now + DAY * (VALID_DAYS - RENEW_DAYS - 1))));
        let second = made.pair(now + DAY * (VALID_DAYS - RENEW_DAYS));
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &made.pair(now + DAY * VALID_DAYS)));
    }

    /// A day that the next year does not have.
    #[test]
    fn a_leap_day_is_a_day_like_any_other() {
        let (made, now) = at("2028-02-29T23:59:59Z");
        assert_eq!(made.pair(now).cert.len(), 1);
    }

    #[test]
    fn this_machine_gets_one() {
        let made = SelfMade::new().unwrap();
        assert!(made.names.contains(&"localhost".to_owned()), "{:?}", made.names);
        assert_eq!(made.pair(Timestamp::now()).cert.len(), 1);
    }
}
