//! Walks over JSON without building it: where a value ends, and which fields an object has.
//!
//! Most of an answer are fields that nobody reads, and how fast they are stepped over decides how often ten thousand
//! nodes can be looked at. What is kept is checked when it is read; what is stepped over is not.

/// Why a step cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text ends first.
    More,
    /// At this byte stands what cannot stand there.
    Garbage(usize),
}

pub(crate) fn blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// Where the value that begins at `at` ends. A number at the end of the text may go on, so something has to follow
/// it.
pub(crate) fn value(text: &[u8], at: usize) -> Result<usize, Stop> {
    match text.get(at).ok_or(Stop::More)? {
        b'"' => string(text, at + 1),
        b'{' => match number(text, at) {
            Some(end) => Ok(end),
            None => container(text, at + 1),
        },
        b'[' => container(text, at + 1),
        b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
            let mut end = at + 1;
            loop {
                match text.get(end).ok_or(Stop::More)? {
                    b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' => return Ok(end),
                    b'"' | b'{' | b'[' | b':' => return Err(Stop::Garbage(end)),
                    _ => end += 1,
                }
            }
        }
        _ => Err(Stop::Garbage(at)),
    }
}

/// How a number that is set begins where nothing is indented; every other value of a job is one.
pub(crate) const SET: &[u8] = br#"{"set":true,"infinite":false,"number":"#;

/// Where such a number ends, if it is one of digits alone.
fn number(text: &[u8], at: usize) -> Option<usize> {
    let digits = text.get(at..)?.strip_prefix(SET)?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (*digits.get(length)? == b'}').then(|| at + SET.len() + length + 1)
}

/// Behind the quote that ends a string whose first byte is at `at`.
fn string(text: &[u8], mut at: usize) -> Result<usize, Stop> {
    loop {
        let rest = text.get(at..).ok_or(Stop::More)?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(Stop::More)?;
        at += length + 1;
        if rest.get(length) == Some(&b'"') {
            return Ok(at);
        }
        // What is escaped is no quote.
        at += 1;
    }
}

fn container(text: &[u8], mut at: usize) -> Result<usize, Stop> {
    let mut depth = 1_usize;
    loop {
        match text.get(at).ok_or(Stop::More)? {
            b'"' => at = string(text, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => at += 1,
        }
    }
}

/// A key and its value, as they are written.
pub(crate) type Entry<'a> = (&'a [u8], &'a [u8]);

/// The fields of one object, one after the other.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    text: &'a [u8],
    at: usize,
    first: bool,
}

impl<'a> Fields<'a> {
    /// Of the object that begins at `at`.
    pub(crate) fn of(text: &'a [u8], at: usize) -> Result<Self, Stop> {
        match text.get(at).ok_or(Stop::More)? {
            b'{' => Ok(Self { text, at: at + 1, first: true }),
            _ => Err(Stop::Garbage(at)),
        }
    }

    /// Behind the object, once there are no more fields.
    pub(crate) fn end(&self) -> usize {
        self.at
    }

    /// The next key, as it is written, and the text of its value.
    pub(crate) fn step(&mut self) -> Result<Option<Entry<'a>>, Stop> {
        let text = self.text;
        let mut at = blanks(text, self.at);
        match (text.get(at).ok_or(Stop::More)?, self.first) {
            (b'}', _) => {
                self.at = at + 1;
                return Ok(None);
            }
            (b',', false) => at = blanks(text, at + 1),
            (_, true) => {}
            _ => return Err(Stop::Garbage(at)),
        }
        let begin = at + 1;
        if *text.get(at).ok_or(Stop::More)? != b'"' {
            return Err(Stop::Garbage(at));
        }
        let behind = string(text, begin)?;
        at = blanks(text, behind);
        if *text.get(at).ok_or(Stop::More)? != b':' {
            return Err(Stop::Garbage(at));
        }
        let from = blanks(text, at + 1);
        let to = value(text, from)?;
        (self.at, self.first) = (to, false);
        Ok(Some((text.get(begin..behind - 1).unwrap_or_default(), text.get(from..to).unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            "[a-z{}\\[\\]\":,\\\\\n é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"\\\\]{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_ends_where_a_parser_says_it_ends(value in json(), pretty: bool, behind in "[,}\\] ]") {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let longer = format!("{text}{behind}and more");
            prop_assert_eq!(super::value(longer.as_bytes(), 0), Ok(text.len()));
            for cut in 0..text.len() {
                prop_assert_eq!(super::value(&text.as_bytes()[..cut], 0), Err(Stop::More));
            }
        }

        #[test]
        fn fields_are_those_a_parser_sees(value in json(), pretty: bool) {
            let Value::Object(expected) = &value else { return Ok(()) };
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let mut fields = Fields::of(text.as_bytes(), 0).unwrap();
            let mut seen = serde_json::Map::new();
            while let Some((key, raw)) = fields.step().unwrap() {
                let key: String = serde_json::from_str(&format!("\"{}\"", std::str::from_utf8(key).unwrap())).unwrap();
                seen.insert(key, serde_json::from_slice(raw).unwrap());
            }
            prop_assert_eq!(&seen, expected);
            prop_assert_eq!(fields.end(), text.len());
        }
    }

    #[test]
    fn what_cannot_stand_there_is_said_with_its_place() {
        for (text, at) in [("}", 0), (":", 0), ("tr\"", 2), ("1{", 1)] {
            assert_eq!(value(text.as_bytes(), 0), Err(Stop::Garbage(at)), "{text}");
        }
        for text in ["{1", "{,", "{\"a\"}", "{\"a\":1 \"b\"", "{\"a\":}", "{\"a\":1,}"] {
            let mut fields = Fields::of(text.as_bytes(), 0).unwrap();
            let end =
                std::iter::from_fn(|| Some(fields.step())).find(|step| !matches!(step, Ok(Some(_)))).unwrap();
            assert!(matches!(end, Err(Stop::Garbage(_))), "{text}: {end:?}");
        }
    }
}
