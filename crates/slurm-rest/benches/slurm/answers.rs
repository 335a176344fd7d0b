//! Answers as large as those of a large cluster: recorded records, again and again, each with a number of its own.
//!
//! Text is made while it is read, a record at a time. Names and ids differ from record to record, so that nothing can
//! be kept once for two of them.

use std::io::{self, Read, Write};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::seen::{Seen, Sum};

const NODES: &str = include_str!("../../tests/recorded/26.05.5-v0.0.45/nodes.json");
const JOBS: &str = include_str!("../../tests/recorded/26.05.5-v0.0.45/jobs.json");

/// Where the number of a record goes; good in a name, and as a number where one is.
const MARK: &str = "987654321";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Nodes,
    Jobs,
}

impl List {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Jobs => "jobs",
        }
    }
}

/// How slurmrestd writes: without blanks where its environment says so, else indented, which takes nearly twice the
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Compact,
    Indented,
}

impl Form {
    fn write(self, record: &str) -> String {
        match self {
            Self::Compact => record.to_owned(),
            Self::Indented => indented(record),
        }
    }
}

/// As slurmrestd indents it, fields in their order. A pretty-printer would sort them, and sorted fields flatter a
/// map.
fn indented(record: &str) -> String {
    let mut text = String::new();
    // A record stands in the list of an answer.
    let mut depth = 2;
    let (mut quoted, mut escaped) = (false, false);
    for letter in record.chars() {
        if quoted {
            text.push(letter);
            (quoted, escaped) = (letter != '"' || escaped, letter == '\\' && !escaped);
            continue;
        }
        if matches!(letter, '}' | ']') {
            depth -= 1;
            new_line(&mut text, depth);
        }
        text.push(letter);
        match letter {
            '"' => quoted = true,
            ':' => text.push(' '),
            ',' => new_line(&mut text, depth),
            '{' | '[' => {
                depth += 1;
                new_line(&mut text, depth);
            }
            _ => {}
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// A recorded record, cut where the number goes.
#[derive(Debug, Clone)]
struct Template {
    pieces: Vec<String>,
    seen: Seen,
}

impl Template {
    fn new(list: List, form: Form, recorded: &str) -> Result<Self> {
        let marked = mark(list, recorded)?;
        let seen = Seen::of_value(list, &serde_json::from_str(&marked)?);
        let pieces = form.write(&marked).split(MARK).map(str::to_owned).collect();
        Ok(Self { pieces, seen })
    }
}

/// Puts the mark into what differs between any two nodes or jobs.
fn mark(list: List, recorded: &str) -> Result<String> {
    let record: Value = serde_json::from_str(recorded)?;
    let mut marked = recorded.to_owned();
    let mut replace = |from: String, to: String| {
        ensure!(marked.matches(&from).count() == 1, "{from} does not stand once in {recorded}");
        marked = marked.replace(&from, &to);
        Ok(())
    };
    let text = |key: &'static str| record[key].as_str().with_context(|| format!("no {key} in {recorded}"));
    match list {
        List::Nodes => {
            for key in ["name", "hostname", "address"] {
                let text = text(key)?;
                replace(format!(r#""{key}":"{text}""#), format!(r#""{key}":"{text}-{MARK}""#))?;
            }
        }
        List::Jobs => {
            let (id, name) = (&record["job_id"], text("name")?);
            replace(format!(r#""job_id":{id},"#), format!(r#""job_id":{MARK},"#))?;
            let step = |id: &str| format!(r#""job_id":{{"set":true,"infinite":false,"number":{id}}}"#);
            replace(step(&id.to_string()), step(MARK))?;
            replace(format!(r#""name":"{name}""#), format!(r#""name":"{name}-{MARK}""#))?;
        }
    }
    Ok(marked)
}

/// The text of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    templates: Vec<Template>,
    tail: String,
    next: u64,
    count: u64,
    /// The next text to be read, from `at` on.
    ready: Vec<u8>,
    at: usize,
    sum: Sum,
}

impl Answer {
    pub(crate) fn new(list: List, form: Form, count: u64) -> Result<Self> {
        let recorded = match list {
            List::Nodes => NODES,
            List::Jobs => JOBS,
        };
        ensure!(!recorded.contains(MARK), "the mark stands in the recorded answer");
        let key = list.key();
        let (_, rest) = recorded.split_once(&format!("\"{key}\": [\n")).context("no list is recorded")?;
        let (records, beside) = rest.split_once("\n ],\n").context("the recorded list has no end")?;
        let templates = records
            .lines()
            .map(|line| Template::new(list, form, line.trim().trim_end_matches(',')))
            .collect::<Result<Vec<_>>>()?;
        let ready = format!("{{\"{key}\":[").into_bytes();
        Ok(Self { templates, tail: format!("],{beside}"), next: 0, count, ready, at: 0, sum: Sum::default() })
    }

    /// Of all records that were read so far.
    pub(crate) fn sum(&self) -> Sum {
        self.sum
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        io::copy(&mut self.clone(), &mut io::sink())
    }

    fn refill(&mut self) -> io::Result<()> {
        (self.at, self.next) = (0, self.next + 1);
        self.ready.clear();
        let number = self.next;
        if number > self.count {
            if number == self.count + 1 {
                self.ready.extend_from_slice(self.tail.as_bytes());
            }
            return Ok(());
        }
        let index = (number - 1) as usize % self.templates.len();
        let Some(template) = self.templates.get(index) else { return Ok(()) };
        if number > 1 {
            self.ready.push(b',');
        }
        for (place, piece) in template.pieces.iter().enumerate() {
            if place > 0 {
                write!(self.ready, "{number}")?;
            }
            self.ready.extend_from_slice(piece.as_bytes());
        }
        self.sum.add(&template.seen.numbered(MARK, number));
        Ok(())
    }
}

impl Read for Answer {
    /// Fills `out` unless the answer ends.
    fn read(&mut self, mut out: &mut [u8]) -> io::Result<usize> {
        let wanted = out.len();
        while !out.is_empty() {
            if self.at == self.ready.len() {
                self.refill()?;
                if self.ready.is_empty() {
                    break;
                }
            }
            let taken = out.write(self.ready.get(self.at..).unwrap_or_default())?;
            self.at += taken;
        }
        Ok(wanted - out.len())
    }
}
