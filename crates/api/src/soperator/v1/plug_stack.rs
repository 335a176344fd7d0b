//! SPANK plugins: what goes into plugstack.conf.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::default::yes;

/// SPANK plugins beside the one that enters the jail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlugStackConfig {
    /// Plugins of your own. They come after all others. Default: none.
    pub custom_plugins: Vec<CustomPlugin>,
    /// The plugin that sets NCCL's debug output for jobs.
    pub nccl_debug: NcclDebug,
    /// The plugin that turns NCCL's inspector on for jobs. Off if this is not given; on if it is given without `enabled`.
    pub nccl_inspector_pre_conf: NcclInspector,
    /// Pyxis: containers in jobs (`srun --container-image`).
    pub pyxis: Pyxis,
}

impl Default for PlugStackConfig {
    fn default() -> Self {
        Self {
            custom_plugins: Vec::new(),
            nccl_debug: NcclDebug::default(),
            nccl_inspector_pre_conf: NcclInspector { enabled: false, ..NcclInspector::default() },
            pyxis: Pyxis::default(),
        }
    }
}

/// Pyxis.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pyxis {
    /// Where images of containers are kept, in a 1.x object: a directory if it ends in `/`, else a file; empty keeps none.
    /// 5.x has `importerPath`. Default: none (1.x: `/var/cache/enroot-container-images/`).
    pub container_image_save: Option<String>,
    /// Program that fetches images of containers. Default: `/opt/slurm_scripts/pyxis_caching_importer.sh`.
    pub importer_path: String,
    /// Whether a job fails if the plugin cannot be loaded. Default: `true`.
    pub required: bool,
    /// Whether images are mounted with squashfuse and not unpacked. Default: `false`.
    pub use_squashfuse: bool,
}

impl Default for Pyxis {
    fn default() -> Self {
        Self {
            container_image_save: None,
            importer_path: "/opt/slurm_scripts/pyxis_caching_importer.sh".to_owned(),
            required: true,
            use_squashfuse: false,
        }
    }
}

/// NCCL's debug output.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NcclDebug {
    /// Whether jobs get debug output without asking for it. Default: `false`.
    pub enabled: bool,
    /// How much NCCL says (`NCCL_DEBUG`). Default: `INFO`.
    pub log_level: NcclLogLevel,
    /// Directory of the files, inside the jail. Default: `/opt/soperator-outputs/local/nccl_logs` (1.x:
    /// `/opt/soperator-outputs/nccl_logs`).
    pub output_directory: Option<String>,
    /// Whether the output goes to files, one for each worker and step. Default: `true`.
    pub output_to_file: bool,
    /// Whether the output goes to the job's own output. Default: `false`.
    pub output_to_std_out: bool,
    /// Whether a job fails if the plugin cannot be loaded. Default: `false`.
    pub required: bool,
}

impl Default for NcclDebug {
    fn default() -> Self {
        Self {
            enabled: false,
            log_level: NcclLogLevel::Info,
            output_directory: None,
            output_to_file: true,
            output_to_std_out: false,
            required: false,
        }
    }
}

/// A value of `NCCL_DEBUG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NcclLogLevel {
    Version,
    Warn,
    Info,
    Trace,
}

/// NCCL's inspector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NcclInspector {
    /// Where profiles are written, inside the jail; `%j` is the job, `%s` the step.
    /// Default: `/opt/soperator-outputs/shared/nccl_profiles/%j/%s`.
    pub dump_dir: String,
    /// How often profiles are written, in microseconds. Default: 1000000, one second.
    pub dump_thread_interval_microseconds: i64,
    /// Whether each operation is written and not only summaries. Default: `false`.
    pub dump_verbose: bool,
    /// Whether the inspector is on. Default: `true` where `ncclInspectorPreConf` is given, else `false`.
    pub enabled: bool,
    /// Path of the profiler plugin. Default: `/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so`.
    pub profiler_plugin: String,
    /// Whether a job fails if the plugin cannot be loaded. Default: `false`.
    pub required: bool,
}

impl Default for NcclInspector {
    fn default() -> Self {
        Self {
            dump_dir: "/opt/soperator-outputs/shared/nccl_profiles/%j/%s".to_owned(),
            dump_thread_interval_microseconds: 1_000_000,
            dump_verbose: false,
            enabled: yes(),
            profiler_plugin: "/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so".to_owned(),
            required: false,
        }
    }
}

/// A plugin of your own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomPlugin {
    /// Arguments of the plugin, written as `key=value` in the order of their keys. Default: none.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Path of the plugin, for example `/usr/lib/slurm/my_plugin.so`; a bare file name is looked up in Slurm's plugin directory.
    pub path: String,
    /// Whether a job fails if the plugin cannot be loaded. Default: `false`.
    #[serde(default)]
    pub required: bool,
}
