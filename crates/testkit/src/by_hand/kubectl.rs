//! kubectl, as a user has it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::process::{bound_command, run};

const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone)]
pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

impl Kubectl {
    pub(super) fn new(cache: &Cache, kubeconfig: &Path, namespace: &str) -> Result<Self> {
        let program = cache.debian_program("kubectl")?;
        Ok(Self { program, kubeconfig: kubeconfig.to_owned(), namespace: namespace.to_owned() })
    }

    /// Runs to the end; gives standard output.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = bound_command(&self.program);
        command.arg("--namespace").arg(&self.namespace).args(arguments);
        self.environment(&mut command)?;
        run(command, LIMIT).await
    }

    /// For scripts that call kubectl by its name.
    pub(super) fn environment(&self, command: &mut Command) -> Result<()> {
        let folder = self.program.parent().context("kubectl is in no folder")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders)?).env("KUBECONFIG", &self.kubeconfig);
        Ok(())
    }
}
