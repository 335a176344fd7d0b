//! Every call, on real slurmrestd of each release and in each API version that both know; and what happens when it
//! fails.
#![expect(clippy::print_stdout, reason = "what was asked and answered, shown where a test fails")]

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use slurm_rest::token::{Claims, Signed};
use slurm_rest::{ApiVersion, Client, Endpoint, Options};
use testkit::cache::SlurmVersion;
use testkit::slurm::{SlurmCluster, SlurmClusterBuilder};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

#[path = "slurm/auth.rs"]
mod auth;
#[path = "slurm/calls.rs"]
mod calls;
#[path = "slurm/described.rs"]
mod described;
#[path = "slurm/faults.rs"]
mod faults;
#[path = "slurm/view.rs"]
mod view;

/// One test for each release from one function.
macro_rules! on_each_release {
    ($($module:ident::$test:ident),* $(,)?) => {
        mod v24_11 {
            $(#[test] fn $test() -> anyhow::Result<()> { testkit::run(super::$module::$test(super::SlurmVersion::V24_11)) })*
        }
        mod v26_05 {
            $(#[test] fn $test() -> anyhow::Result<()> { testkit::run(super::$module::$test(super::SlurmVersion::V26_05)) })*
        }
    };
}

on_each_release![
    calls::controllers_are_asked_and_reconfigured,
    calls::nodes_are_read_and_changed,
    calls::nodes_come_and_go,
    calls::jobs_are_submitted_signalled_and_ended,
    calls::a_signal_reaches_those_it_is_for,
    calls::each_task_of_an_array_says_how_it_took_it,
    calls::partitions_licences_and_reservations,
    calls::accounting_is_read,
    described::every_field_and_state_is_described,
    auth::a_refused_token_is_replaced_at_once,
    auth::tokens_of_every_source_are_let_in,
    auth::sockets_and_tls_lead_to_slurmrestd,
    auth::a_name_beside_the_token_is_sent,
    auth::neither_errors_nor_logs_show_what_is_secret,
    faults::each_fault_is_an_error_of_its_own_kind,
    faults::a_yes_is_one_only_if_slurm_says_so,
    faults::a_write_that_never_left_is_tried_again,
    faults::an_endless_answer_ends_in_bounded_time_and_memory,
    faults::reads_are_tried_again_and_writes_are_not,
    faults::without_slurmctld_nothing_looks_empty,
    faults::without_slurmrestd_the_reason_is_said,
    faults::warnings_are_logged_once,
    faults::metrics_tell_what_calls_cost_and_how_they_end,
    view::who_waits_on_a_node_hears_when_its_job_ends,
    view::no_change_is_missed_when_asking_for_changes,
    view::silence_is_never_an_empty_cluster,
    view::a_lying_server_frees_nobody,
    view::who_begins_to_wait_is_answered_also_if_nothing_is_new,
    view::a_deleted_node_is_gone_soon,
    view::one_node_is_counted_anew,
    view::a_suspended_job_shows_by_its_memory,
];

/// The API versions that a release and we both know.
fn versions(release: SlurmVersion) -> &'static [ApiVersion] {
    use ApiVersion as V;
    match release {
        SlurmVersion::V24_11 => &[V::V0_0_41, V::V0_0_42],
        SlurmVersion::V26_05 => &[V::V0_0_42, V::V0_0_43, V::V0_0_44, V::V0_0_45],
    }
}

fn cluster(release: SlurmVersion) -> SlurmClusterBuilder {
    SlurmCluster::builder(release).extra_conf("Licenses=matlab:5")
}

fn root(cluster: &SlurmCluster) -> Signed {
    Signed {
        key: cluster.jwt_key().into(),
        user: "root".into(),
        claims: Claims::default(),
        lifetime: Duration::from_secs(600),
    }
}

/// Everything that this process logs, in any thread and of any test, from when this was made.
struct Log {
    file: Arc<File>,
    from: u64,
}

impl Log {
    fn begin() -> Result<Self> {
        static FILE: Mutex<Option<Arc<File>>> = Mutex::new(None);
        let mut begun = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &*begun {
            Some(file) => file.clone(),
            None => {
                let file = begun.insert(Arc::new(tempfile::tempfile()?)).clone();
                let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
                tracing::subscriber::set_global_default(log.with_writer(file.clone()).finish())?;
                file
            }
        };
        let from = file.metadata()?.len();
        Ok(Self { file, from })
    }

    fn read(&self) -> Result<String> {
        let length = self.file.metadata()?.len() - self.from;
        let mut text = vec![0; length.try_into()?];
        self.file.read_exact_at(&mut text, self.from)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Carries one connection on to slurmrestd.
async fn relay(mut outside: impl AsyncRead + AsyncWrite + Unpin, restd: SocketAddr) -> std::io::Result<()> {
    let mut inside = TcpStream::connect(restd).await?;
    tokio::io::copy_bidirectional(&mut outside, &mut inside).await.map(drop)
}

fn client_at(url: &str, cluster: &SlurmCluster, newest: ApiVersion) -> Result<Client> {
    let options = Options { newest, ..Options::new("test") };
    Ok(Client::new(Endpoint::parse(url, None)?, Arc::new(root(cluster)), options))
}

fn client(cluster: &SlurmCluster, newest: ApiVersion) -> Result<Client> {
    client_at(&cluster.rest_url(), cluster, newest)
}
