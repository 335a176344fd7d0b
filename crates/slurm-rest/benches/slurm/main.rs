//! One measurement: `slurm wake NODES JOBS`, or of decoding: `slurm time|peak ours|value|typed nodes|jobs COUNT
//! compact|indented`. `cargo xtask bench slurm` runs it, each time as a process of its own, and compares. Without
//! arguments it checks that all contenders decode a small answer rightly.
//!
//! The allocator is that of `slipway`. For a time the whole text is in memory, for all contenders; ours has it in
//! pieces, as they come from a network, and is told how long it will be, as the head of an answer does. It ends when
//! all records are there: giving them back is not in it. For a peak nobody has the text: it is made while it is read,
//! so that only what is kept and what decoding needs is counted.

mod answers;
mod memory;
mod seen;
mod typed;
mod wake;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slurm_rest::decode::{Decoder, Keep, Limits};
use slurm_rest::record::{Record, job, node};

use crate::answers::{Answer, Form, List};
use crate::seen::Kept;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As much as comes from a network at once.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
enum Measure {
    Time,
    Peak,
}

#[derive(Debug, Clone, Copy)]
enum Contender {
    Ours,
    Value,
    Typed,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
struct Run {
    measure: Measure,
    contender: Contender,
    list: List,
    count: u64,
    form: Form,
}

fn main() -> Result<()> {
    // cargo says `--bench` to every bench that it runs.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments.is_empty() {
        return check();
    }
    let measured = match *arguments {
        ["wake", nodes, jobs] => wake(nodes.parse()?, jobs.parse()?)?,
        _ => parse(&arguments)?.measured()?,
    };
    Ok(writeln!(io::stdout(), "{measured}")?)
}

fn wake(nodes: u32, jobs: u32) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(wake::measure(nodes, jobs))
}

fn parse(arguments: &[&str]) -> Result<Run> {
    let [measure, contender, list, count, form] = arguments else {
        bail!("expected: time|peak ours|value|typed nodes|jobs COUNT compact|indented");
    };
    Ok(Run {
        measure: match *measure {
            "time" => Measure::Time,
            "peak" => Measure::Peak,
            other => bail!("{other} is not time or peak"),
        },
        contender: match *contender {
            "ours" => Contender::Ours,
            "value" => Contender::Value,
            "typed" => Contender::Typed,
            other => bail!("{other} is not ours, value or typed"),
        },
        list: match *list {
            "nodes" => List::Nodes,
            "jobs" => List::Jobs,
            other => bail!("{other} is not nodes or jobs"),
        },
        count: count.parse().with_context(|| format!("{count} is no number of records"))?,
        form: match *form {
            "compact" => Form::Compact,
            "indented" => Form::Indented,
            other => bail!("{other} is not compact or indented"),
        },
    })
}

/// Every contender on every kind of answer, small.
fn check() -> Result<()> {
    for measure in [Measure::Time, Measure::Peak] {
        for contender in [Contender::Ours, Contender::Value, Contender::Typed] {
            for list in [List::Nodes, List::Jobs] {
                for form in [Form::Compact, Form::Indented] {
                    let run = Run { measure, contender, list, count: 100, form };
                    run.measured().with_context(|| format!("{run:?}"))?;
                }
            }
        }
    }
    Ok(writeln!(io::stdout(), "all contenders agree; `cargo xtask bench slurm` measures")?)
}

impl Run {
    fn measured(self) -> Result<Value> {
        let key = self.list.key();
        match (self.contender, self.list) {
            (Contender::Ours, List::Nodes) => self.decode(
                |text, total| ours::<node::Node>(key, text, total),
                |answer, total| ours::<node::Node>(key, answer, total),
            ),
            (Contender::Ours, List::Jobs) => self.decode(
                |text, total| ours::<job::Job>(key, text, total),
                |answer, total| ours::<job::Job>(key, answer, total),
            ),
            (Contender::Value, _) => self.parse::<Value>(),
            (Contender::Typed, List::Nodes) => self.parse::<typed::Nodes>(),
            (Contender::Typed, List::Jobs) => self.parse::<typed::Jobs>(),
        }
    }

    /// As `serde_json` does it.
    fn parse<T: DeserializeOwned + Kept>(self) -> Result<Value> {
        self.decode::<T>(
            |text, _| Ok(serde_json::from_slice(text)?),
            |answer, _| Ok(serde_json::from_reader(answer)?),
        )
    }

    fn decode<T: Kept>(
        self,
        from_text: impl FnOnce(&[u8], u64) -> Result<T>,
        from_answer: impl FnOnce(&mut BufReader<Answer>, u64) -> Result<T>,
    ) -> Result<Value> {
        let mut answer = Answer::new(self.list, self.form, self.count)?;
        let bytes = answer.length()?;
        let (made, decoded, mut measured) = match self.measure {
            Measure::Time => {
                // Of the right size at once: what a growing buffer leaves behind would be memory that is free of
                // charge.
                let mut text = Vec::with_capacity(usize::try_from(bytes)? + 1);
                answer.read_to_end(&mut text)?;
                let began = Instant::now();
                let kept = from_text(&text, bytes)?;
                let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
                (answer.sum(), kept.sum(), json!({ "ms": milliseconds }))
            }
            Measure::Peak => {
                let mut answer = BufReader::with_capacity(PIECE, answer);
                let before = memory::forget_peak()?;
                let kept = from_answer(&mut answer, bytes)?;
                let mebibytes = memory::peak()? - before;
                (answer.get_ref().sum(), kept.sum(), json!({ "mib": mebibytes }))
            }
        };
        ensure!(made.records == self.count, "{} records were made instead of {}", made.records, self.count);
        ensure!(made == decoded, "made {made:?}, decoded {decoded:?}");
        measured["bytes"] = bytes.into();
        measured["records"] = decoded.records.into();
        Ok(measured)
    }
}

fn ours<T: Record>(key: &'static str, mut text: impl BufRead, total: u64) -> Result<Vec<T>> {
    let mut records = Vec::new();
    let keep = Keep { records: &mut records, wanted: |_: &T| true };
    let mut decoder = Decoder::new(key, Limits::default(), keep).of_bytes(Some(total));
    loop {
        let piece = text.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        let length = piece.len().min(PIECE);
        decoder.push(piece.get(..length).unwrap_or(piece))?;
        text.consume(length);
    }
    let done = decoder.finish()?;
    ensure!(done.found && done.odd == 0, "not all was understood: {:?}", done.first_odd);
    Ok(records)
}
