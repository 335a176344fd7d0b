//! JSON log lines: one flat object per line, with the keys that people's queries already know from zap.
//!
//! `tracing-subscriber` has a JSON format of its own, but its keys are fixed and it nests what comes from spans.

use std::fmt;
use std::io::Write;

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::level_name;

pub(crate) struct JsonLayer<W> {
    writer: W,
}

impl<W> JsonLayer<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer }
    }
}

impl<S, W> Layer<S> for JsonLayer<W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            record.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                for (name, value) in &of_span.values {
                    fields.set(name, value.clone());
                }
            }
        }
        event.record(&mut fields);
        let line = Line { time: Timestamp::now(), metadata: event.metadata(), fields: &fields };
        // A line that cannot be written has nowhere to be reported to.
        if let Ok(mut bytes) = serde_json::to_vec(&line) {
            bytes.push(b'\n');
            // One write per line, so that lines of several threads do not mix.
            let _ = self.writer.make_writer_for(event.metadata()).write_all(&bytes);
        }
    }
}

/// The fields of one event or span. Few enough that a list beats a map, and a list keeps their order.
#[derive(Default)]
struct Fields {
    message: Option<String>,
    values: Vec<(&'static str, Value)>,
}

impl Fields {
    fn set(&mut self, name: &'static str, value: Value) {
        match self.values.iter_mut().find(|(existing, _)| *existing == name) {
            Some((_, old)) => *old = value,
            None => self.values.push((name, value)),
        }
    }

    fn record(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = Some(text),
            // A field that is also a Rust keyword is written `r#type`.
            (name, value) => self.set(name.strip_prefix("r#").unwrap_or(name), value),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, Value::String(format!("{value:?}")));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no NaN and no infinity; their names say more than null.
        let number = serde_json::Number::from_f64(value).map(Value::Number);
        self.record(field, number.unwrap_or_else(|| Value::String(value.to_string())));
    }
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record(field, Value::String(with_causes(value)));
    }
}

/// An error and what caused it, in one text.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

struct Line<'a> {
    time: Timestamp,
    metadata: &'a Metadata<'a>,
    fields: &'a Fields,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ts", &format_args!("{:.6}", self.time))?;
        map.serialize_entry("level", level_name(*self.metadata.level()))?;
        map.serialize_entry("logger", self.metadata.target())?;
        map.serialize_entry("msg", self.fields.message.as_deref().unwrap_or_default())?;
        for (name, value) in &self.fields.values {
            match *name {
                // Two equal keys in one object make a line that parsers read differently.
                "ts" | "level" | "logger" | "msg" => map.serialize_entry(&format_args!("{name}_"), value)?,
                name => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}
