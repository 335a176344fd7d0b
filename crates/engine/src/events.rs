//! Events: what happened, for `kubectl describe`. Repetitions are counted in one object by kube's recorder.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tracing::debug;

use crate::meta::Meta;
use crate::views::Kind;

/// The server refuses longer notes.
const LONGEST_NOTE: usize = 1024;
/// An event is not worth more of a reconcile's time.
const DEADLINE: Duration = Duration::from_secs(5);

/// Tells events under the name of one controller; clones share what was told, so that repetitions are counted.
#[derive(Clone)]
pub struct Events {
    recorder: Arc<Recorder>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Events")
    }
}

impl Events {
    #[must_use]
    pub fn new(client: Client, controller: &str, instance: &str) -> Self {
        let reporter = Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        Self { recorder: Arc::new(Recorder::new(client, reporter)) }
    }

    /// Something went as it should.
    pub async fn normal(&self, kind: Kind, object: &Meta, reason: &str, note: &str) {
        self.publish(kind, object, EventType::Normal, reason, note).await;
    }

    /// Something that somebody should look at.
    pub async fn warning(&self, kind: Kind, object: &Meta, reason: &str, note: &str) {
        self.publish(kind, object, EventType::Warning, reason, note).await;
    }

    /// An event that cannot be told is no failure of what it tells about.
    async fn publish(&self, kind: Kind, object: &Meta, type_: EventType, reason: &str, note: &str) {
        let about = ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.kind.to_owned()),
            name: Some(object.name().to_string()),
            namespace: Some(object.namespace().to_string()).filter(|namespace| !namespace.is_empty()),
            uid: Some(object.uid.to_string()),
            ..ObjectReference::default()
        };
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(shortened(note, LONGEST_NOTE)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        match tokio::time::timeout(DEADLINE, self.recorder.publish(&event, &about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, reason, "an event could not be told"),
            Err(_) => debug!(reason, "an event could not be told in time"),
        }
    }
}

/// At most so many bytes of a text for people.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(shortened("short", LONGEST_NOTE), "short");
        for long in ["ä".repeat(2000), "x".repeat(1025), "漢".repeat(400)] {
            let cut = shortened(&long, LONGEST_NOTE);
            assert!(cut.len() <= LONGEST_NOTE, "{}", cut.len());
        }
    }
}
