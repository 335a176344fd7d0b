//! A real control plane without nodes: etcd, kube-apiserver and kube-controller-manager on loopback.

pub(crate) mod programs;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::api_calls::ApiCalls;
use crate::cache::Cache;
use crate::pki::{MASTERS, Pki, client_from};
use crate::process::{Process, bound_command, eventually, while_running};
use crate::scratch::Scratch;
use programs::Place;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A control plane. There is no scheduler and no node: `FakeKubelet` gives pods a place.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields drop in order: clients of a server before the server.
    controller_manager: Process,
    api_server: Process,
    etcd: Process,
    pki: Pki,
    ports: Ports,
    cache: Cache,
    scratch: Scratch,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    api: u16,
    etcd: u16,
    etcd_peer: u16,
}

static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();

impl ControlPlane {
    /// The control plane that all tests of this process share. Use [`ControlPlane::namespace`] to stay apart.
    pub async fn start() -> Result<&'static Self> {
        SHARED.get_or_try_init(Self::own).await
    }

    /// A control plane of one's own, for tests that restart it or count every call.
    pub async fn own() -> Result<Self> {
        let cache = Cache::locate()?;
        // A port that was free a moment ago may be taken by the time a server binds it.
        let mut attempts = 3;
        loop {
            match Self::launch(&cache).await {
                Ok(plane) => return Ok(plane),
                Err(error) if attempts > 1 && format!("{error:#}").contains("address already in use") => {
                    attempts -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn launch(cache: &Cache) -> Result<Self> {
        let scratch = Scratch::new("control-plane")?;
        let pki = Pki::create(&scratch.join("pki"), &[LOOPBACK, Ipv4Addr::new(10, 96, 0, 1).into()])?;
        fs::write(scratch.join("audit-policy.json"), programs::AUDIT_POLICY)?;
        let ports = Ports::free()?;
        let server = server_url(ports);
        let manager = pki.client("system:kube-controller-manager", MASTERS)?;
        let kubeconfig = pki.write_kubeconfig("controller-manager.kubeconfig", &server, &manager)?;

        let mut etcd = spawn(&scratch, "etcd", &cache.etcd()?, |command| {
            programs::etcd(command, &place(&scratch, &pki, ports));
        })?;
        let mut api_server = start_api_server(cache, &scratch, &pki, ports)?;
        let client = client_from(pki.kubeconfig(&server, &pki.client("testkit", MASTERS)?)).await?;
        // The controller-manager gives up on an API server that takes longer than 10 s, so it comes after.
        while_running([&mut etcd, &mut api_server], serves(&client)).await?;
        let program = cache.kubernetes("kube-controller-manager")?;
        let mut controller_manager = spawn(&scratch, "kube-controller-manager", &program, |command| {
            programs::controller_manager(command, &place(&scratch, &pki, ports), &kubeconfig);
            // Nodes here have no kubelet that renews a lease; a test that loses a node says so itself.
            command.arg("--node-monitor-grace-period=24h");
        })?;
        while_running([&mut controller_manager], controllers_work(client)).await?;
        Ok(Self { controller_manager, api_server, etcd, pki, ports, cache: cache.clone(), scratch })
    }

    /// A client that may do everything, known to the server (and to `ApiCalls`) as `name`.
    pub async fn client(&self, name: &str) -> Result<Client> {
        self.client_as(name, MASTERS).await
    }

    /// A client of a user in a group, for tests of permissions.
    pub async fn client_as(&self, name: &str, group: &str) -> Result<Client> {
        client_from(self.kubeconfig(name, group)?).await
    }

    /// A kubeconfig for `name`, for programs under test.
    pub fn kubeconfig(&self, name: &str, group: &str) -> Result<Value> {
        Ok(self.pki.kubeconfig(&server_url(self.ports), &self.pki.client(name, group)?))
    }

    /// A new namespace for one test.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{prefix}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let namespaces: Api<Namespace> = Api::all(self.client("testkit").await?);
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.context("create a namespace")?;
        Ok(name)
    }

    /// What the API server's audit log has seen.
    pub fn api_calls(&self) -> ApiCalls {
        ApiCalls::of(self.scratch.join("audit.log"))
    }

    /// Certificates of this control plane, for webhooks that a test serves.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// Ends the API server at once, as a crash would.
    pub fn kill_api_server(&mut self) {
        self.api_server.kill();
    }

    /// Starts the API server again after [`ControlPlane::kill_api_server`], on the same port and data.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.api_server.kill();
        self.api_server = start_api_server(&self.cache, &self.scratch, &self.pki, self.ports)?;
        let client = self.client("testkit").await?;
        while_running([&mut self.etcd, &mut self.api_server], serves(&client)).await?;
        self.controller_manager.check_running()
    }
}

/// Waits until the API server serves.
pub(crate) async fn serves(client: &Client) -> Result<()> {
    eventually("kube-apiserver", Duration::from_secs(90), async || {
        let ready = client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
        Ok((ready == "ok").then_some(()))
    })
    .await
}

/// Waits until the controllers do something: namespaces get their account.
async fn controllers_work(client: Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
    eventually("kube-controller-manager", Duration::from_secs(60), async || {
        Ok(accounts.get_opt("default").await?.map(|_| ()))
    })
    .await
}

fn server_url(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api)
}

fn start_api_server(cache: &Cache, scratch: &Scratch, pki: &Pki, ports: Ports) -> Result<Process> {
    spawn(scratch, "kube-apiserver", &cache.kubernetes("kube-apiserver")?, |command| {
        programs::api_server(command, &place(scratch, pki, ports));
    })
}

fn spawn(
    scratch: &Scratch,
    name: &str,
    program: &Path,
    arguments: impl FnOnce(&mut Command),
) -> Result<Process> {
    let mut command = bound_command(program);
    arguments(&mut command);
    Process::spawn(name, command, &scratch.join(&format!("{name}.log")))
}

fn place(scratch: &Scratch, pki: &Pki, ports: Ports) -> Place {
    Place {
        pki: pki.folder().to_owned(),
        data: scratch.path().to_owned(),
        address: LOOPBACK,
        api_port: ports.api,
        etcd_port: ports.etcd,
        etcd_peer_port: ports.etcd_peer,
        audit_log: scratch.join("audit.log"),
        audit_policy: scratch.join("audit-policy.json"),
        audit_log_megabytes: 1_000_000,
    }
}

impl Ports {
    fn free() -> Result<Self> {
        // All are held until all are known, so that no two are the same.
        let held = [(); 3].map(|()| TcpListener::bind((LOOPBACK, 0)));
        let mut ports = Vec::new();
        for listener in &held {
            let listener = listener.as_ref().map_err(|error| anyhow::anyhow!("no free port: {error}"))?;
            ports.push(listener.local_addr()?.port());
        }
        Ok(Self { api: ports[0], etcd: ports[1], etcd_peer: ports[2] })
    }
}
