//! Requests as the API server's audit log saw them: the proof of what a controller really asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;

use crate::process::eventually;

/// What this module asks for itself, to find its place in the log; it is nobody's call.
const MARKER: &str = "/readyz/ping?mark=";

/// The audit log of one API server.
#[derive(Debug, Clone)]
pub struct ApiCalls {
    log: PathBuf,
}

/// A place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Mark(u64);

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The user that the server authenticated.
    pub client: String,
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// `pods`, `pods/status`, or the path of a request that is for no resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub code: u16,
    pub received: Timestamp,
}

/// A set of requests, to be narrowed down and counted.
#[derive(Clone, Default)]
pub struct Calls(Vec<Call>);

impl ApiCalls {
    pub(crate) fn of(log: PathBuf) -> Self {
        Self { log }
    }

    /// Everything from here on is asked for by [`ApiCalls::since`]. Waits until the log has caught up.
    pub async fn mark(&self, client: &Client) -> Result<Mark> {
        let (_, after) = self.settle(client).await?;
        Ok(Mark(after))
    }

    /// The calls since a mark, also those that are just being logged.
    pub async fn since(&self, client: &Client, mark: Mark) -> Result<Calls> {
        let (end, _) = self.settle(client).await?;
        let mut calls = Vec::new();
        self.read(mark.0, end, |call| calls.push(call))?;
        Ok(Calls(calls))
    }

    /// Sends a request of its own and waits until the log shows it: what came before is then there too.
    /// Returns the places in the log before and after that request.
    async fn settle(&self, client: &Client) -> Result<(u64, u64)> {
        let begin = std::fs::metadata(&self.log).map(|meta| meta.len()).unwrap_or_default();
        let marker = format!("{MARKER}{}", Timestamp::now().as_nanosecond());
        client.request_text(http::Request::get(&marker).body(Vec::new())?).await?;
        eventually("the audit log", Duration::from_secs(10), async || {
            let mut found = None;
            self.scan(begin, u64::MAX, |at, line| {
                if line.contains(&marker) {
                    found = Some((at, at + line.len() as u64));
                }
            })?;
            Ok(found)
        })
        .await
    }

    fn scan(&self, begin: u64, end: u64, mut line_at: impl FnMut(u64, &str)) -> Result<()> {
        let mut file = File::open(&self.log).with_context(|| format!("open {}", self.log.display()))?;
        file.seek(SeekFrom::Start(begin))?;
        let (mut reader, mut at, mut line) = (BufReader::new(file), begin, String::new());
        while at < end {
            line.clear();
            let read = reader.read_line(&mut line)?;
            // A line without its end is still being written.
            if read == 0 || !line.ends_with('\n') {
                break;
            }
            line_at(at, &line);
            at += read as u64;
        }
        Ok(())
    }

    fn read(&self, begin: u64, end: u64, mut call: impl FnMut(Call)) -> Result<()> {
        let mut broken = None;
        self.scan(begin, end, |_, line| match parse(line) {
            Ok(Some(one)) => call(one),
            Ok(None) => {}
            Err(error) => broken = Some(error),
        })?;
        broken.map_or(Ok(()), |error| Err(error).context("read the audit log"))
    }
}

impl Calls {
    /// Those of one client.
    pub fn by(&self, client: &str) -> Self {
        self.filter(|call| call.client == client)
    }

    /// Those for one resource, such as `pods` or `pods/status`.
    pub fn of(&self, resource: &str) -> Self {
        self.filter(|call| call.resource == resource)
    }

    /// Those in one namespace.
    pub fn within(&self, namespace: &str) -> Self {
        self.filter(|call| call.namespace == namespace)
    }

    /// Those that change something; renewals of Leases are not counted.
    pub fn writes(&self) -> Self {
        self.filter(|call| {
            !matches!(call.verb.as_str(), "get" | "list" | "watch") && call.resource != "leases"
        })
    }

    pub fn filter(&self, keep: impl Fn(&Call) -> bool) -> Self {
        Self(self.0.iter().filter(|call| keep(call)).cloned().collect())
    }

    /// How many there are of each (client, verb, resource).
    pub fn counts(&self) -> BTreeMap<(String, String, String), usize> {
        let mut counts = BTreeMap::new();
        for call in &self.0 {
            *counts.entry((call.client.clone(), call.verb.clone(), call.resource.clone())).or_default() += 1;
        }
        counts
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.0.iter()
    }
}

/// A table of counts, for the message of an assertion.
impl fmt::Debug for Calls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{} calls", self.len())?;
        for ((client, verb, resource), count) in self.counts() {
            writeln!(out, "{count:6} {verb} {resource} by {client}")?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// A watch is logged when it starts and when it ends, one call; a refused one has no start.
fn parse(line: &str) -> Result<Option<Call>> {
    let event: Event = serde_json::from_str(line)?;
    let code = event.response_status.map(|status| status.code).unwrap_or_default();
    let counted = if event.verb == "watch" && code < 400 { "ResponseStarted" } else { "ResponseComplete" };
    if event.stage != counted || event.request_uri.starts_with(MARKER) {
        return Ok(None);
    }
    let object = event.object_ref.unwrap_or_default();
    let path = || event.request_uri.split('?').next().unwrap_or_default().to_owned();
    let resource = match (object.resource.as_str(), object.subresource.as_str()) {
        ("", _) => path(),
        (resource, "") => resource.to_owned(),
        (resource, subresource) => format!("{resource}/{subresource}"),
    };
    Ok(Some(Call {
        client: event.user.username,
        user_agent: event.user_agent,
        verb: event.verb,
        resource,
        namespace: object.namespace,
        name: object.name,
        code,
        received: event.request_received_timestamp,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &str, stage: &str, reference: &str) -> String {
        format!(
            r#"{{"stage":"{stage}","verb":"{verb}","requestURI":"/version?x=1","user":{{"username":"op"}},
               "objectRef":{reference},"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z"}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn a_call_is_named_by_resource_and_subresource() {
        let reference = r#"{"resource":"pods","subresource":"status","namespace":"a","name":"b"}"#;
        let call = parse(&line("patch", "ResponseComplete", reference)).unwrap().unwrap();
        assert_eq!((call.resource.as_str(), call.client.as_str()), ("pods/status", "op"));
        assert_eq!(call.received.to_string(), "2026-01-02T03:04:05.678901Z");
    }

    #[test]
    fn a_request_for_no_resource_is_named_by_its_path() {
        let call = parse(&line("get", "ResponseComplete", "null")).unwrap().unwrap();
        assert_eq!(call.resource, "/version");
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_not_again_when_it_ends() {
        let reference = r#"{"resource":"pods"}"#;
        assert!(parse(&line("watch", "ResponseStarted", reference)).unwrap().is_some());
        assert!(parse(&line("watch", "ResponseComplete", reference)).unwrap().is_none());
    }
}
