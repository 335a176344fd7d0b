//! Scalars as slurmrestd writes them: the same thing differently from version to version, and now and then oddly.
//!
//! Reading is lenient about form and strict about meaning: what cannot be understood is an error of its record and
//! never a default, since a zero that nobody wrote could free a busy node.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use slurm::state::{JobState, NodeState};

use crate::scan;

/// A value from its text. Text that is not UTF-8 has what is broken replaced, and numbers that JSON has no form for,
/// which slurmrestd writes all the same, are given one.
pub(crate) fn from_json<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(raw);
    let first = match serde_json::from_str(&text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match without_bare_infinity(&text) {
        Some(mended) => serde_json::from_str(&mended).map_err(|error| error.to_string()),
        None => Err(first.to_string()),
    }
}

/// The same text with `Infinity` in quotes and null for `NaN`, where they stand outside of strings. None if there are
/// none.
fn without_bare_infinity(text: &str) -> Option<String> {
    let mut mended = String::new();
    let (mut quoted, mut escaped, mut kept, mut skip_to) = (false, false, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        if quoted || at < skip_to {
            (quoted, escaped) = (quoted && (byte != b'"' || escaped), quoted && byte == b'\\' && !escaped);
            continue;
        }
        quoted = byte == b'"';
        let rest = text.get(at..).unwrap_or_default();
        let bare = [("-Infinity", "\"-Infinity\""), ("Infinity", "\"Infinity\""), ("NaN", "null")];
        if let Some((found, instead)) = bare.iter().find(|(word, _)| rest.starts_with(word)) {
            mended.push_str(text.get(kept..at).unwrap_or_default());
            mended.push_str(instead);
            skip_to = at + found.len();
            kept = skip_to;
        }
    }
    mended.push_str(text.get(kept..).unwrap_or_default());
    (kept > 0).then_some(mended)
}

/// What a field of a record can be: read from the text of its value.
pub trait Field: Sized {
    fn read(raw: &[u8]) -> Result<Self, String>;
}

/// The forms that nearly all values have are read by hand, all others by the JSON parser.
impl Field for Number {
    fn read(raw: &[u8]) -> Result<Self, String> {
        let digits = raw.strip_prefix(scan::SET).and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(raw);
        if !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) {
            let value = digits.iter().fold(0_u64, |value, digit| 10 * value + u64::from(digit - b'0'));
            return Ok(Self::Value(value as f64));
        }
        from_json(raw)
    }
}

impl Field for Text {
    fn read(raw: &[u8]) -> Result<Self, String> {
        match plain(raw) {
            Some(text) => Ok(Self(text.into())),
            None => from_json(raw),
        }
    }
}

/// The text between two quotes, if nothing in it is escaped or broken.
fn plain(raw: &[u8]) -> Option<&str> {
    let inside = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inside.contains(&b'\\') { None } else { std::str::from_utf8(inside).ok() }
}

macro_rules! fields_by_the_parser {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn read(raw: &[u8]) -> Result<Self, String> {
                from_json(raw)
            }
        })*
    };
}

fields_by_the_parser!(bool, u32, u64);

impl Field for Words {
    fn read(raw: &[u8]) -> Result<Self, String> {
        match plain_words(raw) {
            Some("") => Ok(Self::default()),
            Some(one) if !one.contains('"') => Ok(Self(Box::<str>::from(one).into())),
            Some(several) => Ok(Self(each(several).collect())),
            None => from_json(raw),
        }
    }
}

/// States are not kept as text.
impl Field for NodeState {
    fn read(raw: &[u8]) -> Result<Self, String> {
        match plain_words(raw) {
            Some(words) => Ok(Self::from_words(each(words))),
            None => Words::read(raw).map(|words| Self::from_words(words.iter())),
        }
    }
}

impl Field for JobState {
    fn read(raw: &[u8]) -> Result<Self, String> {
        match plain_words(raw) {
            Some(words) => Ok(Self::from_words(each(words))),
            None => Words::read(raw).map(|words| Self::from_words(words.iter())),
        }
    }
}

/// The words of a plain list; between two of them stand a quote, a comma and a quote.
fn each(words: &str) -> impl Iterator<Item = &str> {
    words.split('"').filter(|word| !matches!(*word, "" | ","))
}

/// What stands between the outer quotes of a compact list of plain words, so that `","` is between two of them.
fn plain_words(raw: &[u8]) -> Option<&str> {
    if raw == b"[]" {
        return Some("");
    }
    let inside = plain(raw.strip_prefix(b"[")?.strip_suffix(b"]")?)?;
    if !inside.contains('"') {
        return Some(inside);
    }
    let quotes = inside.bytes().filter(|byte| *byte == b'"').count();
    let between = inside.as_bytes().windows(3).filter(|three| three == b"\",\"").count();
    // A blank after the comma, as in indented text, is for the parser.
    (quotes == 2 * between).then_some(inside)
}

/// A number that may be missing or without end: bare, or `{"set": true, "infinite": false, "number": 7}`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Number {
    #[default]
    Unset,
    Infinite,
    Value(f64),
}

impl Number {
    /// Rounded towards zero; none if unset, without end, negative or not a number.
    #[must_use]
    pub fn to_u64(self) -> Option<u64> {
        match self {
            // `as` saturates, and what is above 2^53 is no count that anybody makes.
            Self::Value(value) if value >= 0.0 => Some(value as u64),
            _ => None,
        }
    }

    /// The same, and none for zero: Slurm's way to say that a moment has not come.
    #[must_use]
    pub fn to_time(self) -> Option<slurm::facts::UnixTime> {
        self.to_u64().filter(|seconds| *seconds > 0).map(slurm::facts::UnixTime)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = Number;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number, or an object with set, infinite and number")
            }

            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Value(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Value(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Value(value))
            }

            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number::Unset)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                match text {
                    "" => Ok(Number::Unset),
                    "Infinity" | "-Infinity" => Ok(Number::Infinite),
                    _ => text
                        .parse()
                        .map(Number::Value)
                        .map_err(|_| E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
                #[derive(serde::Deserialize)]
                #[serde(field_identifier, rename_all = "lowercase")]
                enum Key {
                    Set,
                    Infinite,
                    Number,
                    #[serde(other)]
                    Other,
                }
                let (mut set, mut infinite, mut number) = (None, false, None::<Number>);
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Set => set = Some(map.next_value::<bool>()?),
                        Key::Infinite => infinite = map.next_value()?,
                        Key::Number => number = Some(map.next_value::<Number>()?),
                        Key::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                match (infinite, set, number) {
                    (true, _, _) => Ok(Number::Infinite),
                    (false, Some(false), _) => Ok(Number::Unset),
                    (false, _, Some(number)) => Ok(number),
                    (false, _, None) => Err(de::Error::missing_field("number")),
                }
            }
        }

        deserializer.deserialize_any(Form)
    }
}

/// Text; null is empty. Numbers are taken as they stand, which is how older versions write some names.
#[derive(Clone, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct Text(pub Box<str>);

impl fmt::Debug for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text> for Box<str> {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl Visitor<'_> for Form {
            type Value = Text;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Text, E> {
                Ok(Text(value.to_string().into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Text, E> {
                Ok(Text(value.to_string().into()))
            }

            fn visit_unit<E>(self) -> Result<Text, E> {
                Ok(Text::default())
            }
        }

        deserializer.deserialize_any(Form)
    }
}

/// Words: an array, or text with commas between them, as some versions have it. Nulls in it are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub slurm::facts::Words);

impl std::ops::Deref for Words {
    type Target = slurm::facts::Words;

    fn deref(&self) -> &slurm::facts::Words {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = Words;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of words")
            }

            fn visit_str<E>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()))
            }

            fn visit_unit<E>(self) -> Result<Words, E> {
                Ok(Words::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element::<Option<Text>>()? {
                    words.extend(word);
                }
                Ok(Words(words.iter().map(|word| &**word).collect()))
            }
        }

        deserializer.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &str) -> Result<Number, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_is_read_in_every_form_it_is_written_in() {
        for (json, expected) in [
            (r#"{"set":true,"infinite":false,"number":7}"#, Number::Value(7.0)),
            (r#"{"set":true,"infinite":false,"number":2.5e-10}"#, Number::Value(2.5e-10)),
            (r#"{"set":false,"infinite":false,"number":7}"#, Number::Unset),
            (r#"{"set":false,"infinite":true,"number":0}"#, Number::Infinite),
            (r#"{"number":7,"later":{"x":[1]}}"#, Number::Value(7.0)),
            ("7", Number::Value(7.0)),
            ("-2", Number::Value(-2.0)),
            ("null", Number::Unset),
            (r#""12""#, Number::Value(12.0)),
            (r#""Infinity""#, Number::Infinite),
            (r#"{"set":true,"infinite":false,"number":"Infinity"}"#, Number::Infinite),
        ] {
            assert_eq!(number(json), Ok(expected), "{json}");
        }
        for odd in [r#""many""#, "[]", "true", r#"{"set":true}"#, r#"{"set":true,"number":"x"}"#] {
            assert!(number(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_short_way_reads_what_the_parser_reads() {
        let words = [
            r#"[]"#,
            r#"["IDLE"]"#,
            r#"["IDLE","DRAIN"]"#,
            "[ \"IDLE\",\n \"DRAIN\" ]",
            r#"["a\"b","c"]"#,
            r#""a,b""#,
            "null",
        ];
        for raw in words {
            assert_eq!(Words::read(raw.as_bytes()), from_json(raw.as_bytes()), "{raw}");
        }
        for raw in [
            "7",
            "0",
            r#"{"set":true,"infinite":false,"number":1794777026}"#,
            "123456789012345678",
            "-1",
            "1.5",
            "{ \"number\": 3 }",
        ] {
            assert_eq!(Number::read(raw.as_bytes()), from_json(raw.as_bytes()), "{raw}");
        }
        for raw in [r#""""#, r#""a b""#, r#""a\nb""#, "null", "7"] {
            assert_eq!(Text::read(raw.as_bytes()), from_json(raw.as_bytes()), "{raw}");
        }
        let state = |raw: &str| NodeState::read(raw.as_bytes()).map(|state| state.to_string());
        assert_eq!(state(r#"["IDLE","DRAIN"]"#), Ok("IDLE+DRAIN".to_owned()));
        assert_eq!(state("[ \"IDLE\" ]"), Ok("IDLE".to_owned()));
        assert_eq!(state("[]"), Ok("?".to_owned()));
        for raw in ["7", "{}", "[[]]", "[\"a", "\""] {
            assert!(
                Words::read(raw.as_bytes()).is_err() && NodeState::read(raw.as_bytes()).is_err(),
                "{raw}"
            );
        }
    }

    #[test]
    fn numbers_that_are_no_json_are_read_all_the_same() {
        let text = r#"[{"number": Infinity}, -Infinity, NaN, {"number":NaN}, 7]"#;
        let numbers: Vec<Number> = from_json(text.as_bytes()).unwrap();
        use Number::{Infinite, Unset, Value};
        assert_eq!(numbers, [Infinite, Infinite, Unset, Unset, Value(7.0)]);
        let text = r#"["NaN", "a\"Infinity", Infinity]"#;
        assert_eq!(without_bare_infinity(text).unwrap(), r#"["NaN", "a\"Infinity", "Infinity"]"#);
        assert_eq!(without_bare_infinity(r#"["NaN"]"#), None);
        assert!(from_json::<Number>(b"Infinit").is_err());
    }

    #[test]
    fn only_a_count_is_a_count() {
        assert_eq!(Number::Value(7.9).to_u64(), Some(7));
        for none in [Number::Value(-1.0), Number::Value(f64::NAN), Number::Unset, Number::Infinite] {
            assert_eq!(none.to_u64(), None, "{none:?}");
        }
        assert_eq!(Number::Value(0.0).to_time(), None);
    }

    #[test]
    fn words_and_text_are_read_in_every_form_they_are_written_in() {
        let words = |json: &str| {
            serde_json::from_str::<Words>(json).map(|words| words.iter().collect::<Vec<_>>().join("|"))
        };
        assert_eq!(words(r#"["IDLE",null,"DRAIN"]"#).unwrap(), "IDLE|DRAIN");
        assert_eq!(words(r#""a, b,""#).unwrap(), "a|b");
        assert_eq!(words("null").unwrap(), "");
        assert!(words("7").is_err() && words("[[]]").is_err());
        let text = |json: &str| serde_json::from_str::<Text>(json).map(|text| text.0.into_string());
        assert_eq!(
            (text("null").unwrap(), text("7").unwrap(), text(r#""x""#).unwrap()),
            ("".into(), "7".into(), "x".into())
        );
        assert!(text("[]").is_err() && text("{}").is_err());
    }
}
