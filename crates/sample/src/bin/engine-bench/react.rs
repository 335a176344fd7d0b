//! Controllers that note how long a change took from the watch to them, and do nothing else.
//!
//! A change is known by an annotation that names the round, so that what a list brings is not counted. For both the clock
//! starts when the object has been decoded, before anybody has seen it, and ends at the entry of the step that every
//! reconcile begins with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use engine::process::{self, ProcessArgs};
use engine::views::Whole;
use engine::{Child, Controller, Failure, Kind, Meta, Options, Primary, Reader, Report, Seen, Text, View};
use futures::StreamExt;
use kube::api::ObjectMeta;
use kube::runtime::controller::Action;
use kube::runtime::watcher;
use kube::{Api, Client, Config, Resource, ResourceExt};
use sample::api::Sample;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::BenchError;
use crate::load::CHANGE;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,
    /// Changes of this round are timed
    #[arg(long)]
    round: String,
    /// Where the times go at the end: microseconds, one JSON array
    #[arg(long, value_name = "FILE")]
    report: PathBuf,
}

/// The clock of each object that has changed and was not looked at yet, and the times taken.
#[derive(Debug)]
struct Clocks {
    round: String,
    running: BTreeMap<String, Instant>,
    taken: Vec<u64>,
}

/// Decoding has no place to carry a handle, so the one clock of the process is a static.
static CLOCKS: Mutex<Clocks> =
    Mutex::new(Clocks { round: String::new(), running: BTreeMap::new(), taken: Vec::new() });

fn clocks() -> MutexGuard<'static, Clocks> {
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clocks {
    /// The earliest change that was not looked at counts.
    fn start(&mut self, name: &str, change: Option<&str>) {
        let ours =
            change.and_then(|change| change.split_once('/')).is_some_and(|(round, _)| round == self.round);
        if ours {
            self.running.entry(name.to_owned()).or_insert_with(Instant::now);
        }
    }

    fn stop(&mut self, name: &str) {
        if let Some(started) = self.running.remove(name) {
            self.taken.push(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
    }
}

fn report(args: &Args) -> Result<(), BenchError> {
    let times = serde_json::to_vec(&clocks().taken).map_err(std::io::Error::from)?;
    Ok(std::fs::write(&args.report, times)?)
}

/// A Sample that starts its clock when it is decoded.
#[derive(Debug, PartialEq)]
struct Timed(Whole<Sample>);

impl<'de> Deserialize<'de> for Timed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Whole::deserialize(deserializer)?;
        clocks().start(whole.meta.name(), whole.meta.annotation(CHANGE).map(Text::as_str));
        Ok(Self(whole))
    }
}

impl View for Timed {
    fn kind() -> Kind {
        Whole::<Sample>::kind()
    }

    fn meta(&self) -> &Meta {
        &self.0.meta
    }
}

impl Primary for Timed {
    fn status(&self) -> Value {
        self.0.status()
    }
}

/// The same for kube's controller, which wants the typed object.
#[derive(Debug, Clone)]
struct StockTimed(Sample);

impl<'de> Deserialize<'de> for StockTimed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sample = Sample::deserialize(deserializer)?;
        clocks().start(&sample.name_any(), sample.annotations().get(CHANGE).map(String::as_str));
        Ok(Self(sample))
    }
}

impl Resource for StockTimed {
    type DynamicType = ();
    type Scope = <Sample as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Sample::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Sample::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Sample::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Sample::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

struct Watcher;

impl Controller for Watcher {
    type Object = Timed;
    type Facts = ();
    type Model = ();

    const NAME: &'static str = "react";

    async fn gather(&self, object: &Timed, _: &Reader) -> Result<(), Failure> {
        clocks().stop(object.meta().name());
        Ok(())
    }

    fn resolve(&self, _: &Timed, (): &()) -> Result<(), Failure> {
        Ok(())
    }

    fn render(&self, _: &Timed, (): &()) -> Result<Vec<Child>, Failure> {
        Ok(Vec::new())
    }

    fn report(&self, _: &Seen<'_, Self>) -> Report {
        Report::default()
    }
}

pub(crate) async fn engine(args: Args, shutdown: CancellationToken) -> Result<(), BenchError> {
    clocks().round.clone_from(&args.round);
    process::run(&args.process, shutdown, |manager, _| {
        manager.product("react", None)?;
        manager.controller(Options::default(), |_, _| Watcher);
        Ok(())
    })
    .await?;
    report(&args)
}

pub(crate) async fn stock(args: Args, shutdown: CancellationToken) -> Result<(), BenchError> {
    clocks().round.clone_from(&args.round);
    let samples: Api<StockTimed> = Api::all(Client::try_from(Config::infer().await?)?);
    let reconcile = async |sample: Arc<StockTimed>, _: Arc<()>| {
        clocks().stop(&sample.name_any());
        Ok::<_, Infallible>(Action::await_change())
    };
    let controller = kube::runtime::Controller::new(samples, watcher::Config::default())
        .run(reconcile, |_, never: &Infallible, _| match *never {}, Arc::new(()))
        .for_each(async |_| {});
    let working = tokio::spawn(controller);
    process::run(&args.process, shutdown, |_, _| Ok(())).await?;
    working.abort();
    report(&args)
}
