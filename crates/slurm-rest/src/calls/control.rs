//! slurmctld itself: whether it is there, how it does, what it runs with; partitions, licences and shares.

use serde_json::{Map, Value};

use super::nodes::exactly;
use crate::call::{Call, segment};
use crate::client::{Client, Listed};
use crate::error::{RestError, numbers};
use crate::record::cluster::{Diag, License, Partition, Ping, Share};

/// A controller, and whether it answered slurmrestd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPing {
    pub hostname: Box<str>,
    pub responding: bool,
    pub primary: bool,
}

impl Client {
    /// Every controller, primary and backup. slurmrestd answers this for itself: of a slurmctld that is down, and
    /// before v0.0.45 also of a token that is refused, it says "not responding".
    pub async fn ping(&self) -> Result<Vec<ControllerPing>, RestError> {
        const NAME: &str = "ping";
        let call = Call::read(NAME, "ping/").template("ping").key("pings");
        let listed = self.list_json::<Ping>(&call).await?;
        if let Some(ping) = listed.records.iter().find(|ping| ping.status.contains("authentication")) {
            return Err(RestError::Refused { call: NAME, why: ping.status.to_string() });
        }
        Ok(listed.records.into_iter().map(Into::into).collect())
    }

    /// What slurmctld counts of itself.
    pub async fn diag(&self) -> Result<Diag, RestError> {
        self.one(&Call::read("diag", "diag/").template("diag").key("statistics")).await
    }

    /// Has slurmctld read its files again. A file that it cannot read ends a `slurmctld -D`, after this has said yes:
    /// check files before.
    pub async fn reconfigure(&self) -> Result<(), RestError> {
        let call = Call::write("reconfigure", http::Method::GET, "reconfigure/").template("reconfigure");
        self.done(&call).await
    }

    /// What slurmctld runs with, by the names of slurm.conf. From v0.0.45 on.
    pub async fn conf(&self) -> Result<Map<String, Value>, RestError> {
        self.one(&Call::read("conf", "conf").template("conf").key("slurm_conf")).await
    }

    pub async fn licenses(&self) -> Result<Listed<License>, RestError> {
        self.list_json(&Call::read("licenses", "licenses/").template("licenses").key("licenses")).await
    }

    /// Fair share of every association.
    pub async fn shares(&self) -> Result<Listed<Share>, RestError> {
        self.list_json(&Call::read("shares", "shares").template("shares").within("shares").key("shares"))
            .await
    }

    pub async fn partitions(&self) -> Result<Listed<Partition>, RestError> {
        self.list_json(&Call::read("partitions", "partitions/").template("partitions").key("partitions"))
            .await
    }

    pub async fn partition(&self, name: &str) -> Result<Partition, RestError> {
        const NAME: &str = "partition";
        let what = || format!("partition `{name}`");
        let call = Call::read(NAME, format!("partition/{}", segment(NAME, name)?))
            .template("partition/{partition_name}")
            .key("partitions")
            .about(what(), numbers::INVALID_PARTITION)
            .one();
        let listed = self.list_json::<Partition>(&call).await?;
        exactly(NAME, listed, |found| &*found.name == name, what)
    }
}
