//! Certificates of a throw-away control plane, and kubeconfigs made from them.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::{Value, json};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// A certificate authority, its files in one folder.
#[derive(Debug)]
pub struct Pki {
    folder: PathBuf,
    ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A signed certificate with its key, as PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    certificate: String,
    key: String,
}

impl Pki {
    /// Makes the authority, the API server's certificates and the keys for service account tokens.
    pub fn create(folder: &Path, server_addresses: &[IpAddr]) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "slipway-testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = params.self_signed(&key)?.pem();
        fs::write(folder.join("ca.crt"), &ca_pem)?;
        fs::write(folder.join("ca.key"), key.serialize_pem())?;
        let pki = Self { folder: folder.to_owned(), ca_pem, issuer: Issuer::new(params, key) };

        let service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut names: Vec<String> = service.iter().map(ToString::to_string).collect();
        names.extend(["kubernetes.default.svc.cluster.local".into(), "localhost".into()]);
        pki.issue("kube-apiserver", None, &names, server_addresses)?.write(&pki.folder, "apiserver")?;
        pki.client("kube-apiserver-kubelet-client", MASTERS)?
            .write(&pki.folder, "apiserver-kubelet-client")?;
        let tokens = KeyPair::generate()?;
        fs::write(pki.folder.join("sa.key"), tokens.serialize_pem())?;
        fs::write(pki.folder.join("sa.pub"), tokens.public_key_pem())?;
        Ok(pki)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A certificate for a client; `name` is the user, `group` its group.
    pub fn client(&self, name: &str, group: &str) -> Result<Identity> {
        self.issue(name, Some(group), &[], &[])
    }

    /// A certificate that serves and calls: what a kubelet or a webhook has.
    pub fn issue(
        &self,
        name: &str,
        group: Option<&str>,
        dns: &[String],
        addresses: &[IpAddr],
    ) -> Result<Identity> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(dns.to_vec())?;
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !params.subject_alt_names.is_empty() {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let certificate =
            params.signed_by(&key, &self.issuer).with_context(|| format!("sign a certificate for {name}"))?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// A kubeconfig with everything inside, for `server`. JSON is YAML.
    pub fn kubeconfig(&self, server: &str, identity: &Identity) -> Value {
        let base64 = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "slipway", "cluster": {
                "server": server, "certificate-authority-data": base64(&self.ca_pem) } }],
            "users": [{ "name": "slipway", "user": {
                "client-certificate-data": base64(&identity.certificate),
                "client-key-data": base64(&identity.key) } }],
            "contexts": [{ "name": "slipway", "context": { "cluster": "slipway", "user": "slipway" } }],
            "current-context": "slipway",
        })
    }

    /// Writes a kubeconfig for a client into the folder.
    pub fn write_kubeconfig(&self, file: &str, server: &str, identity: &Identity) -> Result<PathBuf> {
        let path = self.folder.join(file);
        fs::write(&path, serde_json::to_vec_pretty(&self.kubeconfig(server, identity))?)?;
        Ok(path)
    }
}

impl Identity {
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    pub fn key_pem(&self) -> &str {
        &self.key
    }

    /// Writes `NAME.crt` and `NAME.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        fs::write(folder.join(format!("{name}.crt")), &self.certificate)?;
        fs::write(folder.join(format!("{name}.key")), &self.key)?;
        Ok(())
    }
}

/// A client from a kubeconfig in a file.
pub async fn client_from_file(path: &Path) -> Result<kube::Client> {
    let text = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    client_from(serde_json::from_slice(&text).with_context(|| format!("{} is not ours", path.display()))?)
        .await
}

/// A client from a kubeconfig. Retries are off: a test sees what the server said.
pub async fn client_from(kubeconfig: Value) -> Result<kube::Client> {
    crate::install_crypto_provider();
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("kubeconfig")?;
    config.default_retry = false;
    config.connect_timeout = Some(std::time::Duration::from_secs(5));
    Ok(kube::Client::try_from(config)?)
}
