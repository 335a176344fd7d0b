//! Reservations. Writing them is served from v0.0.43 on.

use http::Method;
use serde::Serialize;
use tokio::time::Instant;

use super::Set;
use super::nodes::exactly;
use crate::call::{Call, segment};
use crate::client::{Client, Listed};
use crate::error::{RestError, numbers};
use crate::record::cluster::Reservation;

const ONE: &str = "reservation/{reservation_name}";

/// A reservation to make, or to change: what is None is left to Slurm, or as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ReservationRequest {
    pub name: String,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Set>,
    /// Minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Set>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Set>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_list: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Vec<String>>,
    /// `MAINT`, `IGNORE_JOBS`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl Client {
    pub async fn reservations(&self) -> Result<Listed<Reservation>, RestError> {
        let call = Call::read("reservations", "reservations/").template("reservations").key("reservations");
        self.list_json(&call).await
    }

    pub async fn reservation(&self, name: &str) -> Result<Reservation, RestError> {
        const NAME: &str = "reservation";
        let path = format!("reservation/{}", segment(NAME, name)?);
        let call = about(Call::read(NAME, path), name).template(ONE).key("reservations").one();
        let listed = self.list_json::<Reservation>(&call).await?;
        exactly(NAME, listed, |found| &*found.name == name, || what(name))
    }

    /// Fails if there is one of this name.
    pub async fn create_reservation(&self, wanted: &ReservationRequest) -> Result<(), RestError> {
        const NAME: &str = "create_reservation";
        // One call of slurmrestd makes and changes. Making must not change what somebody else has made.
        self.post(NAME, wanted, async |found| match found {
            Ok(_) => Err(RestError::Invalid {
                call: NAME,
                why: format!("there is a {} already", what(&wanted.name)),
            }),
            Err(RestError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }

    /// Fails if there is none of this name.
    pub async fn update_reservation(&self, wanted: &ReservationRequest) -> Result<(), RestError> {
        self.post("update_reservation", wanted, async |found| found.map(drop)).await
    }

    async fn post(
        &self,
        name: &'static str,
        wanted: &ReservationRequest,
        check: impl AsyncFnOnce(Result<Reservation, RestError>) -> Result<(), RestError>,
    ) -> Result<(), RestError> {
        let begin = Instant::now();
        segment(name, &wanted.name)?;
        let call = Call::write(name, Method::POST, "reservation").template("reservation");
        let call = about(call, &wanted.name).body(wanted)?;
        if self.serves(&call).await? {
            check(self.rest_of(begin).reservation(&wanted.name).await).await?;
        }
        self.rest_of(begin).done(&call).await
    }

    pub async fn delete_reservation(&self, name: &str) -> Result<(), RestError> {
        const NAME: &str = "delete_reservation";
        let path = format!("reservation/{}", segment(NAME, name)?);
        self.done(&about(Call::write(NAME, Method::DELETE, path), name).template(ONE)).await
    }
}

fn about(call: Call, name: &str) -> Call {
    call.about(what(name), numbers::INVALID_RESERVATION)
}

fn what(name: &str) -> String {
    format!("reservation `{name}`")
}
