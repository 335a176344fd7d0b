//! What answers hold, as lean as it is needed: a field that nobody reads is never built.
//!
//! Field names are those of v0.0.45; where a version has another form the type takes both. A caller that needs other
//! fields describes its own record with [`record!`](crate::record!), for [`crate::Client::nodes_as`] and its like.

pub mod accounting;
pub mod cluster;
pub mod job;
pub mod node;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;

use crate::scan::{self, Fields, Stop};
use crate::wire;

/// Something that is read from the text of an answer.
pub trait Record: Sized {
    /// The keys that are read, where they are known.
    const KEYS: &'static [&'static [u8]] = &[];

    /// From the value that begins at `at`; also where it ends.
    #[doc(hidden)]
    fn read(text: &[u8], at: usize) -> Result<(Self, usize), Failed>;
}

/// Why a record could not be read.
#[doc(hidden)]
#[derive(Debug)]
pub struct Failed(pub(crate) Why);

#[derive(Debug)]
pub(crate) enum Why {
    Stop(Stop),
    /// It is there, and not what it should be.
    Odd(String),
}

impl Failed {
    fn odd(what: String) -> Self {
        Self(Why::Odd(what))
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self(Why::Stop(stop))
    }
}

/// A record of any form that serde can read; for answers that are not large.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> Record for Json<T> {
    fn read(text: &[u8], at: usize) -> Result<(Self, usize), Failed> {
        let end = scan::value(text, at)?;
        let raw = text.get(at..end).unwrap_or_default();
        wire::from_json(raw).map(|value| (Self(value), end)).map_err(Failed::odd)
    }
}

/// Reads the fields of an object for [`record!`](crate::record!). Inlined, all that is kept of a record would live in registers, and
/// be moved about at every key: nodes would take twice as long.
#[doc(hidden)]
#[inline(never)]
pub fn fields(
    text: &[u8],
    at: usize,
    mut field: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
) -> Result<usize, Failed> {
    let mut fields = match Fields::of(text, at) {
        Err(Stop::Garbage(_)) => return Err(Failed::odd("not an object".to_owned())),
        fields => fields?,
    };
    while let Some((key, raw)) = fields.step()? {
        if let Err(odd) = field(key, raw) {
            return Err(Failed::odd(format!("{}: {odd}", String::from_utf8_lossy(key))));
        }
    }
    Ok(fields.end())
}

/// A number that few keys share: comparing a key with all that are wanted takes no longer than stepping over its value. A `match`
/// on the bytes themselves becomes a tree that is slower than all the rest.
#[doc(hidden)]
#[must_use]
pub const fn code(key: &[u8]) -> u64 {
    let mut code = key.len() as u64;
    let mut at = 0;
    if let [a, b, c, d, .., e, f, g, h] = *key {
        return u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ (code << 24);
    }
    while at < key.len() {
        code = (code << 8) | key[at] as u64;
        at += 1;
    }
    code
}

/// A required field.
#[doc(hidden)]
pub fn given<T>(value: Option<T>, key: &[u8]) -> Result<T, Failed> {
    value.ok_or_else(|| Failed::odd(format!("{} is missing", String::from_utf8_lossy(key))))
}

/// A record: a struct whose fields say under which key they stand. What is not `required` may be missing and is then
/// its default.
///
///     slurm_rest::record! {
///         /// As much of a node as a page of features needs.
///         pub struct Features {
///             name: slurm_rest::wire::Text = required b"name",
///             features: slurm_rest::wire::Words = b"features",
///         }
///     }
#[macro_export]
macro_rules! record {
    ($(#[$about:meta])* $visible:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $($required:ident)? $key:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        $visible struct $name {
            $($(#[$doc])* $visible $field: $type,)*
        }

        impl $crate::record::Record for $name {
            const KEYS: &'static [&'static [u8]] = &[$($key),*];

            fn read(text: &[u8], at: usize) -> Result<(Self, usize), $crate::record::Failed> {
                $(let mut $field: Option<$type> = None;)*
                let end = $crate::record::fields(text, at, |key, raw| {
                    let code = $crate::record::code(key);
                    $(if code == const { $crate::record::code($key) } && key == $key {
                        $field = Some($crate::wire::Field::read(raw)?);
                        return Ok(());
                    })*
                    Ok(())
                })?;
                let record = Self { $($field: $crate::record!(@value $field, $key $(, $required)?),)* };
                Ok((record, end))
            }
        }
    };
    (@value $field:ident, $key:literal, required) => { $crate::record::given($field, $key)? };
    (@value $field:ident, $key:literal) => { $field.unwrap_or_default() };
}
