//! Tokens for slurmrestd, signed as `scontrol token` signs them.
//!
//! The raw bytes of the key file are the HMAC key. Slurm refuses a token without `exp`.

use std::time::Duration;

use anyhow::{Context, Result};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde::Serialize;

#[derive(Serialize)]
struct Claims<'a> {
    iat: u64,
    exp: u64,
    sun: &'a str,
}

/// A token of `user` that holds from now on for `ttl`.
pub fn sign(key: &[u8], user: &str, ttl: Duration) -> Result<String> {
    let now = get_current_timestamp();
    encode_claims(key, &Claims { iat: now, exp: now + ttl.as_secs(), sun: user })
}

/// A token of `user`, well signed, whose time was over an hour ago.
pub fn sign_expired(key: &[u8], user: &str) -> Result<String> {
    let now = get_current_timestamp();
    encode_claims(key, &Claims { iat: now - 7200, exp: now - 3600, sun: user })
}

fn encode_claims(key: &[u8], claims: &Claims<'_>) -> Result<String> {
    encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key))
        .with_context(|| format!("sign a token for {}", claims.sun))
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode, errors::ErrorKind};
    use serde_json::Value;

    use super::*;

    fn read(key: &[u8], token: &str) -> Result<Value, ErrorKind> {
        decode::<Value>(token, &DecodingKey::from_secret(key), &Validation::new(Algorithm::HS256))
            .map(|data| data.claims)
            .map_err(jsonwebtoken::errors::Error::into_kind)
    }

    #[test]
    fn a_token_names_its_user_and_its_end() {
        let token = sign(b"key", "alice", Duration::from_secs(60)).unwrap();
        let claims = read(b"key", &token).unwrap();
        assert_eq!(claims["sun"], "alice");
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 60);
        assert_eq!(read(b"another key", &token).unwrap_err(), ErrorKind::InvalidSignature);
    }

    #[test]
    fn an_expired_token_is_well_signed() {
        let token = sign_expired(b"key", "alice").unwrap();
        assert_eq!(read(b"key", &token).unwrap_err(), ErrorKind::ExpiredSignature);
    }
}
