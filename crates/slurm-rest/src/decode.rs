//! Decodes an answer while it arrives.
//!
//! An answer is one object: a list under one key, or in an object under another one, and beside it errors, warnings and
//! what they are about. Only a stretch of text and the fields that the caller asked for are ever held. Records are read from the stretch as they
//! stand, without a pass before to find where they end; one that ends in the next stretch is begun anew, which costs
//! one record in each.
//!
//! One odd record is counted and passed over. Text that is not JSON, or ends early, is an error, whatever came before
//! it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::record::{Failed, Record, Why};
use crate::scan::{self, Stop};
use crate::wire::{self, Number, Text};

/// How much text is gathered before records are looked for.
const STRETCH: usize = 64 * 1024;

/// What an answer may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one record, and of anything beside the list.
    pub record: usize,
    /// Bytes of the whole answer.
    pub total: u64,
    /// Records of the list, kept or not.
    pub records: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { record: 16 << 20, total: 4 << 30, records: 1 << 20 }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer ends after {bytes} bytes, in the middle of {place}")]
    Cut { bytes: u64, place: &'static str },
    #[error("the answer is no JSON: unexpected {shown:?} at byte {at}")]
    Garbage { at: u64, shown: String },
    #[error("the answer is over the limit of {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
}

/// An entry of `errors`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct SlurmError {
    /// 0 has a meaning of its own: of one thing that is not there slurmrestd says "no error".
    #[serde(rename = "error_number", default = "no_number")]
    pub number: i64,
    pub error: Text,
    pub description: Text,
    pub source: Text,
}

fn no_number() -> i64 {
    -1
}

/// An entry of `warnings`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Warning {
    pub description: Text,
    pub source: Text,
}

/// What stands beside the data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Envelope {
    pub errors: Vec<SlurmError>,
    pub warnings: Vec<Warning>,
    /// By slurmctld's clock; what to ask for changes since.
    pub last_update: Number,
    /// Of slurmrestd: `26.05.5`.
    pub release: Option<Text>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    slurm: MetaSlurm,
    // The key before 24.05.
    #[serde(rename = "Slurm")]
    slurm_before: MetaSlurm,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MetaSlurm {
    release: Option<Text>,
}

/// How a decoded answer turned out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    pub envelope: Envelope,
    pub bytes: u64,
    /// Whether the list was there at all.
    pub found: bool,
    /// Whether it has a list of errors, if only an empty one.
    pub says_errors: bool,
    pub records: u64,
    /// Records that could not be understood.
    pub odd: u64,
    /// What was odd about the first of them.
    pub first_odd: Option<String>,
}

/// Who takes the records of an answer.
pub trait Sink<T> {
    fn take(&mut self, record: T);

    /// About so many more will come, told once if it can be guessed: growing a long list in steps costs as much as
    /// reading it.
    fn expect(&mut self, _more: usize) {}
}

impl<T, F: FnMut(T)> Sink<T> for F {
    fn take(&mut self, record: T) {
        self(record);
    }
}

/// A list of the records that are wanted.
#[derive(Debug)]
pub struct Keep<'a, T, F> {
    pub records: &'a mut Vec<T>,
    pub wanted: F,
}

impl<T, F: Fn(&T) -> bool> Sink<T> for Keep<'_, T, F> {
    fn take(&mut self, record: T) {
        if (self.wanted)(&record) {
            self.records.push(record);
        }
    }

    fn expect(&mut self, more: usize) {
        // Of those so far, as many are wanted of those to come; room that is not used costs nothing but its address.
        if !self.records.is_empty() {
            self.records.reserve_exact(more);
        }
    }
}

/// Takes the text of an answer, gives records of `T` to `sink`. A value that is no list counts as a list of one.
#[derive(Debug)]
pub struct Decoder<T, S> {
    key: &'static str,
    /// The key of the object that the list is in, unless it is in the answer itself.
    outer: Option<&'static str>,
    sink: S,
    limits: Limits,
    text: Vec<u8>,
    at: usize,
    /// Bytes before `text`.
    before: u64,
    /// Do not look before there is this much.
    wanted: usize,
    stretch: usize,
    /// Bytes of the whole answer, until it was used to guess its records.
    total: Option<u64>,
    place: Place,
    /// Within the object that the list is in.
    inside: bool,
    done: Decoded,
    record: std::marker::PhantomData<fn() -> T>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Key { first: bool },
    Item { first: bool },
    End,
}

/// Whether a step could be made with the text that is there.
enum Step {
    Made,
    NeedsMore,
}

impl<T: Record, S: Sink<T>> Decoder<T, S> {
    pub fn new(key: &'static str, limits: Limits, sink: S) -> Self {
        Self {
            key,
            outer: None,
            sink,
            limits,
            text: Vec::new(),
            at: 0,
            before: 0,
            wanted: STRETCH,
            stretch: STRETCH,
            total: None,
            place: Place::Start,
            inside: false,
            done: Decoded::default(),
            record: std::marker::PhantomData,
        }
    }

    /// The list is in an object under this key.
    #[must_use]
    pub fn within(self, outer: Option<&'static str>) -> Self {
        Self { outer, ..self }
    }

    /// The answer will have so many bytes, by what its head says.
    #[must_use]
    pub fn of_bytes(self, total: Option<u64>) -> Self {
        Self { total, ..self }
    }

    pub fn push(&mut self, chunk: &[u8]) -> Result<(), DecodeError> {
        self.done.bytes += chunk.len() as u64;
        if self.done.bytes > self.limits.total {
            return Err(DecodeError::TooLarge { what: "bytes in all", limit: self.limits.total });
        }
        self.text.extend_from_slice(chunk);
        if self.text.len() < self.wanted {
            return Ok(());
        }
        self.advance()?;
        self.guess();
        self.text.drain(..self.at);
        self.before += self.at as u64;
        self.at = 0;
        if self.text.len() > self.limits.record {
            return Err(DecodeError::TooLarge {
                what: "bytes for one record",
                limit: self.limits.record as u64,
            });
        }
        // Twice what did not suffice, so that a large record is not begun anew with each chunk.
        self.wanted = self.stretch.max(2 * self.text.len());
        Ok(())
    }

    pub fn finish(mut self) -> Result<Decoded, DecodeError> {
        self.advance()?;
        let place = match self.place {
            Place::End => return Ok(self.done),
            Place::Start if self.done.bytes == 0 => "nothing",
            Place::Start | Place::Key { .. } => "what stands beside the list",
            Place::Item { .. } => "a list",
        };
        Err(DecodeError::Cut { bytes: self.done.bytes, place })
    }

    /// Tells how many records are still to come, by the size of the first ones.
    fn guess(&mut self) {
        /// A head that lies must not cost more than addresses.
        const MOST: u64 = 1 << 20;
        let read = self.before + self.at as u64;
        if let (Some(total), true) = (self.total, self.done.records > 0 && read > 0) {
            let more = total.saturating_sub(read).saturating_mul(self.done.records) / read;
            self.sink.expect(more.min(MOST).try_into().unwrap_or_default());
            self.total = None;
        }
    }

    fn advance(&mut self) -> Result<(), DecodeError> {
        while let Step::Made = self.step()? {
            if self.done.records > self.limits.records {
                return Err(DecodeError::TooLarge { what: "records", limit: self.limits.records });
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Step, DecodeError> {
        self.at = scan::blanks(&self.text, self.at);
        let Some(&next) = self.text.get(self.at) else { return Ok(Step::NeedsMore) };
        let made = match (self.place, next) {
            (Place::Start, b'{') => Ok((self.at + 1, Place::Key { first: true })),
            (Place::Key { .. }, b'}') if self.inside => {
                self.inside = false;
                Ok((self.at + 1, Place::Key { first: false }))
            }
            (Place::Key { .. }, b'}') => Ok((self.at + 1, Place::End)),
            (Place::Item { .. }, b']') => Ok((self.at + 1, Place::Key { first: false })),
            (Place::Key { first: true }, b'"') => self.entry(self.at),
            (Place::Key { first: false }, b',') => self.entry(scan::blanks(&self.text, self.at + 1)),
            (Place::Item { first: true }, _) => self.item(self.at, Place::Item { first: false }),
            (Place::Item { first: false }, b',') => {
                self.item(scan::blanks(&self.text, self.at + 1), Place::Item { first: false })
            }
            (Place::Start | Place::Key { .. } | Place::Item { .. } | Place::End, _) => {
                Err(Stop::Garbage(self.at))
            }
        };
        match made {
            Ok((at, place)) => {
                (self.at, self.place) = (at, place);
                Ok(Step::Made)
            }
            Err(Stop::More) => Ok(Step::NeedsMore),
            Err(Stop::Garbage(at)) => {
                let from = self.text.get(at..).unwrap_or_default();
                let shown = String::from_utf8_lossy(from.get(..20).unwrap_or(from)).into_owned();
                Err(DecodeError::Garbage { at: self.before + at as u64, shown })
            }
        }
    }

    /// A key, and its value unless that is the list.
    fn entry(&mut self, at: usize) -> Result<(usize, Place), Stop> {
        let text = &self.text;
        if *text.get(at).ok_or(Stop::More)? != b'"' {
            return Err(Stop::Garbage(at));
        }
        let end = scan::value(text, at)?;
        let colon = scan::blanks(text, end);
        if *text.get(colon).ok_or(Stop::More)? != b':' {
            return Err(Stop::Garbage(colon));
        }
        let value = scan::blanks(text, colon + 1);
        let key = text.get(at + 1..end - 1).unwrap_or_default();
        let opens = |bracket: u8| Ok(*text.get(value).ok_or(Stop::More)? == bracket);
        let then = Place::Key { first: false };
        let outer = self.outer.filter(|_| !self.inside);
        let wanted = key == outer.unwrap_or(self.key).as_bytes();
        if wanted && outer.is_some() && opens(b'{')? {
            self.inside = true;
            return Ok((value + 1, Place::Key { first: true }));
        }
        if wanted && outer.is_none() {
            if opens(b'[')? {
                self.done.found = true;
                return Ok((value + 1, Place::Item { first: true }));
            }
            let made = self.item(value, then)?;
            self.done.found = true;
            return Ok(made);
        }
        let end = scan::value(text, value)?;
        if !self.inside {
            self.done.says_errors |= key == b"errors";
            beside(&mut self.done.envelope, key, text.get(value..end).unwrap_or_default());
        }
        Ok((end, then))
    }

    fn item(&mut self, at: usize, then: Place) -> Result<(usize, Place), Stop> {
        match T::read(&self.text, at) {
            Ok((record, end)) => {
                self.done.records += 1;
                self.sink.take(record);
                Ok((end, then))
            }
            Err(Failed(Why::Stop(stop))) => Err(stop),
            Err(Failed(Why::Odd(odd))) => {
                let end = scan::value(&self.text, at)?;
                self.done.odd += 1;
                self.done.first_odd.get_or_insert(odd);
                Ok((end, then))
            }
        }
    }
}

/// What stands beside the list: kept if it is known, else passed over.
fn beside(envelope: &mut Envelope, key: &[u8], raw: &[u8]) {
    match key {
        // Errors that cannot be read are errors all the same.
        b"errors" => match read::<Option<Vec<SlurmError>>>(raw) {
            Ok(errors) => envelope.errors.extend(errors.into_iter().flatten()),
            Err(why) => {
                let description = Text(format!("errors that cannot be read: {why}").into());
                envelope.errors.push(SlurmError {
                    number: no_number(),
                    description,
                    ..SlurmError::default()
                });
            }
        },
        b"warnings" => {
            let warnings = read::<Option<Vec<Warning>>>(raw).unwrap_or_default();
            envelope.warnings.extend(warnings.into_iter().flatten());
        }
        b"last_update" => envelope.last_update = read(raw).unwrap_or_default(),
        b"meta" => {
            let meta = read::<Meta>(raw).unwrap_or_default();
            envelope.release = meta.slurm.release.or(meta.slurm_before.release);
        }
        _ => {}
    }
}

fn read<T: DeserializeOwned>(raw: &[u8]) -> Result<T, String> {
    wire::from_json(raw)
}

/// What has to hold for any text, for fuzzing: the size of the pieces that it comes in changes nothing, and of JSON
/// no record is lost.
#[doc(hidden)]
pub fn check_invariants(text: &[u8]) {
    use crate::record::node::Node;

    let limits = Limits::default();
    let decode = |size: usize| {
        let mut nodes = Vec::new();
        let mut decoder = Decoder::new("nodes", limits, |node: Node| nodes.push(node));
        decoder.stretch = 1;
        decoder.wanted = 1;
        let pushed = text.chunks(size).try_for_each(|piece| decoder.push(piece));
        (pushed.and_then(|()| decoder.finish()), nodes)
    };
    let (whole, nodes) = decode(text.len().max(1));
    for size in [1, 7, 64] {
        let (pieces, again) = decode(size);
        match (&whole, &pieces) {
            (Ok(whole), Ok(pieces)) => {
                assert_eq!(whole, pieces);
                // Not the records themselves: a number that is none is unlike itself.
                assert_eq!(format!("{nodes:?}"), format!("{again:?}"));
            }
            (whole, pieces) => assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?} and {pieces:?}"),
        }
    }
    // A parser gives the last of two values of one key, and knows other spellings of a key.
    let plain =
        !text.contains(&b'\\') && text.windows(7).filter(|window| window == b"\"nodes\"").count() == 1;
    let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(text) else { return };
    let decoded = whole.unwrap_or_else(|error| unreachable!("JSON is refused: {error}"));
    if let Some(serde_json::Value::Array(list)) = object.get("nodes").filter(|_| plain) {
        assert_eq!(decoded.records + decoded.odd, list.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    crate::record! {
        struct Named {
            name: Text = required b"name",
            count: Number = b"count",
        }
    }

    fn decode_in(text: &[u8], chunk: usize, limits: Limits) -> (Vec<Named>, Result<Decoded, DecodeError>) {
        let mut records = Vec::new();
        let mut decoder = Decoder::new("nodes", limits, |record| records.push(record));
        // Small stretches, so that small texts come in several.
        (decoder.wanted, decoder.stretch) = (1, 1);
        let pushed = text.chunks(chunk).try_for_each(|chunk| decoder.push(chunk));
        let end = pushed.and_then(|()| decoder.finish());
        (records, end)
    }

    fn decode(text: &str) -> (Vec<Named>, Result<Decoded, DecodeError>) {
        decode_in(text.as_bytes(), text.len().max(1), Limits::default())
    }

    fn names(records: &[Named]) -> String {
        records.iter().map(|record| &*record.name).collect::<Vec<_>>().join(" ")
    }

    const ANSWER: &str = r#"{
      "nodes": [ {"name": "n1", "count": {"set": true, "infinite": false, "number": 7}, "deep": [{"a": "]}"}]}, {"name": "n2", "count": 8} ],
      "last_update": {"set": true, "infinite": false, "number": 1794777026},
      "meta": {"slurm": {"release": "26.05.5"}}, "other": 12,
      "errors": [], "warnings": [{"description": "Zero licenses to dump", "source": ""}]
    }"#;

    #[test]
    fn an_answer_is_the_same_in_pieces_of_any_size() {
        let (whole, end) = decode(ANSWER);
        let end = end.unwrap();
        assert_eq!(names(&whole), "n1 n2");
        assert_eq!(whole[0].count, Number::Value(7.0));
        assert_eq!((end.records, end.odd, end.found, end.says_errors), (2, 0, true, true));
        assert_eq!(end.envelope.last_update.to_u64(), Some(1_794_777_026));
        assert_eq!(end.envelope.release.as_deref(), Some("26.05.5"));
        assert_eq!(&*end.envelope.warnings[0].description, "Zero licenses to dump");
        for chunk in 1..ANSWER.len() {
            let (records, again) = decode_in(ANSWER.as_bytes(), chunk, Limits::default());
            assert_eq!((&records, again.as_ref()), (&whole, Ok(&end)), "in chunks of {chunk}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        for length in 0..ANSWER.trim_end().len() {
            let (_, end) = decode(&ANSWER[..length]);
            assert!(matches!(end, Err(DecodeError::Cut { .. })), "cut after {length}: {end:?}");
        }
        assert!(decode("{\"nodes\":[1").1.unwrap_err().to_string().contains("in the middle of a list"));
    }

    #[test]
    fn an_odd_record_is_passed_over_and_counted() {
        let (records, end) =
            decode(r#"{"nodes":[{"name":"n1"},{"name":["no"]},7,null,{"count":1},{"name":"n2"}]}"#);
        let end = end.unwrap();
        assert_eq!(names(&records), "n1 n2");
        assert_eq!((end.records, end.odd, end.says_errors), (2, 4, false));
        assert!(end.first_odd.unwrap().contains("name"));
    }

    #[test]
    fn broken_text_is_replaced() {
        let (records, end) =
            decode_in(b"{\"nodes\":[{\"name\":\"caf\xe9\"},{\"name\":\"n2\"}]}", 1000, Limits::default());
        assert_eq!(names(&records), "caf\u{fffd} n2");
        assert_eq!(end.unwrap().odd, 0);
    }

    #[test]
    fn errors_are_kept_also_where_they_cannot_be_read() {
        let (_, end) = decode(
            r#"{"errors":[{"error_number":2017,"error":"Invalid job id specified","description":"x"}]}"#,
        );
        let end = end.unwrap();
        assert_eq!((end.envelope.errors[0].number, end.found), (2017, false));
        let (_, end) = decode(r#"{"nodes":[],"errors":"many"}"#);
        let error = &end.unwrap().envelope.errors[0];
        assert!(error.description.contains("cannot be read") && error.number != 0, "{error:?}");
        let (_, end) = decode(r#"{"errors":[{"error":"nameless"}]}"#);
        assert_ne!(end.unwrap().envelope.errors[0].number, 0);
    }

    #[test]
    fn one_value_is_a_list_of_one() {
        assert_eq!(names(&decode(r#"{"nodes":{"name":"n1"},"errors":[]}"#).0), "n1");
    }

    #[test]
    fn a_list_in_an_object_is_read_like_any_other() {
        let text = r#"{"nodes":[],"shares":{"errors":[{"error_number":1}],"nodes":[{"name":"n1"},7,{"name":"n2"}],"total":2},"errors":[]}"#;
        for (outer, expected) in [(Some("shares"), "n1 n2"), (None, "")] {
            for size in [1, 7, 1000] {
                let mut records: Vec<Named> = Vec::new();
                let mut decoder =
                    Decoder::new("nodes", Limits::default(), |record| records.push(record)).within(outer);
                (decoder.wanted, decoder.stretch) = (1, 1);
                text.as_bytes().chunks(size).try_for_each(|piece| decoder.push(piece)).unwrap();
                let end = decoder.finish().unwrap();
                assert_eq!((&*names(&records), end.odd), (expected, u64::from(outer.is_some())));
                assert!(end.found && end.says_errors && end.envelope.errors.is_empty(), "{end:?}");
            }
        }
        // No such object, and one without the list.
        for text in
            [r#"{"nodes":[],"errors":[]}"#, r#"{"shares":{},"errors":[]}"#, r#"{"shares":[],"errors":[]}"#]
        {
            let mut decoder =
                Decoder::<Named, _>::new("nodes", Limits::default(), drop).within(Some("shares"));
            decoder.push(text.as_bytes()).unwrap();
            assert!(!decoder.finish().unwrap().found, "{text}");
        }
    }

    #[test]
    fn what_is_no_answer_is_said_with_its_place() {
        for garbage in ["Authentication failure", "[]", "{\"nodes\":[}", "{\"nodes\" 1}", "{} x", "{1:2}"] {
            let end = decode(garbage).1;
            assert!(matches!(end, Err(DecodeError::Garbage { .. })), "{garbage}: {end:?}");
        }
    }

    #[test]
    fn a_record_without_end_is_given_up() {
        let limits = Limits { record: 200_000, total: 10 << 20, ..Limits::default() };
        let mut decoder = Decoder::<Named, _>::new("nodes", limits, drop);
        decoder.push(b"{\"nodes\":[{\"name\":\"").unwrap();
        let mut pushed = 0;
        let error = loop {
            pushed += 1;
            if let Err(error) = decoder.push(&[b'x'; 10_000]) {
                break error;
            }
        };
        assert_eq!(error, DecodeError::TooLarge { what: "bytes for one record", limit: 200_000 });
        assert!(pushed < 50, "given up after {pushed} pieces");
    }

    #[test]
    fn room_is_made_once_for_all_records_that_are_to_come() {
        let record = br#"{"name":"n"},"#;
        let text = [b"{\"nodes\":[".as_slice(), &record.repeat(20_000), br#"{"name":"last"}]}"#].concat();
        for (total, enough) in [(Some(text.len() as u64), true), (None, false), (Some(u64::MAX), true)] {
            let mut records: Vec<Named> = Vec::new();
            let kept = Keep { records: &mut records, wanted: |_: &Named| true };
            let mut decoder = Decoder::new("nodes", Limits::default(), kept).of_bytes(total);
            let (begin, rest) = text.split_at(100_000);
            decoder.push(begin).unwrap();
            let room = decoder.sink.records.capacity();
            assert_eq!(room >= 20_000, enough, "room for {room}");
            assert!(room < 2_000_000, "a head that lies: {room}");
            decoder.push(rest).unwrap();
            decoder.finish().unwrap();
            assert_eq!(records.len(), 20_001);
        }
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let limits = Limits { record: 1 << 20, total: 1 << 20, ..Limits::default() };
        let mut decoder = Decoder::<Named, _>::new("nodes", limits, drop);
        decoder.push(b"{\"nodes\":[{\"name\":\"n\"}").unwrap();
        let error = (0..).find_map(|_| decoder.push(b",{\"name\":\"n\"}").err()).unwrap();
        assert_eq!(error, DecodeError::TooLarge { what: "bytes in all", limit: 1 << 20 });
    }

    #[test]
    fn ten_thousand_mutated_answers_keep_the_invariants() {
        let recorded = include_str!("../tests/recorded/26.05.5-v0.0.45/nodes.json");
        let two: Vec<&str> = recorded.lines().take(4).collect();
        let two = format!("{}]}}", two.join("\n").trim_end_matches(','));
        let seeds = [ANSWER, "{}", r#"{"nodes":[],"errors":[]}"#, r#"{"errors":[{"error_number":1}]}"#, &two];
        check_invariants(two.as_bytes());
        testkit::mutate::cases(&seeds.map(str::as_bytes), 10_000, check_invariants);
    }

    #[test]
    fn a_list_of_too_many_records_is_given_up() {
        let limits = Limits { records: 100, ..Limits::default() };
        let text = |records: usize| {
            format!(r#"{{"nodes":[{}{{"name":"n"}}]}}"#, r#"{"name":"n"},"#.repeat(records - 1))
        };
        assert_eq!(decode_in(text(100).as_bytes(), 7, limits).1.unwrap().records, 100);
        let error = decode_in(text(101).as_bytes(), 7, limits).1.unwrap_err();
        assert_eq!(error.to_string(), "the answer is over the limit of 100 records");
    }

    /// In one piece and in many.
    fn agree(text: &str, chunk: usize) -> Result<bool, TestCaseError> {
        let (whole, pieces) = (decode(text), decode_in(text.as_bytes(), chunk, Limits::default()));
        prop_assert_eq!(whole.1.is_ok(), pieces.1.is_ok());
        if whole.1.is_ok() {
            prop_assert_eq!(&whole, &pieces);
        }
        Ok(whole.1.is_ok())
    }

    proptest! {
        #[test]
        fn pieces_never_change_a_list(
            records in proptest::collection::vec(
                "\\{\"name\":\"[a-z\\]}]{0,4}\", ?\"count\":[0-9]{1,3}\\}|[0-9]{1,3}|\"[a-z{,]\"|null|\\[\\]|\\{\\}",
                0..6,
            ),
            chunk in 1_usize..20,
        ) {
            let text = format!("{{\"nodes\":[{}],\"errors\":[]}}", records.join(" ,"));
            prop_assert!(agree(&text, chunk)?, "{}", text);
        }

        #[test]
        fn pieces_never_change_what_is_no_list(text in "[\\[\\]{}:,\" 0-9a-z\\\\]{0,60}", chunk in 1_usize..20) {
            agree(&format!("{{\"nodes\":{text}"), chunk)?;
        }
    }
}
