//! What most clients have instead: a struct with every field of v0.0.45, as one writes it by hand or generates it. An
//! unknown field is an error, so a field that the recorded answers have and these do not is noticed in every run.

#![expect(dead_code, reason = "what such a client does not read it has all the same")]

use serde::Deserialize;
use serde_json::Value;

macro_rules! record {
    (pub(crate) struct $name:ident { $($field:ident: $type:ty,)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $(pub(crate) $field: $type,)*
        }
    };
}

/// Nearly nothing of an answer stands beside its list.
macro_rules! answer {
    ($name:ident, $list:ident: $record:ty $(, $also:ident)?) => {
        record! {
            pub(crate) struct $name {
                $list: Vec<$record>,
                last_update: Number,
                $($also: Number,)?
                meta: Value,
                errors: Vec<Value>,
                warnings: Vec<Value>,
            }
        }
    };
}

answer!(Nodes, nodes: Node);
answer!(Jobs, jobs: Job, last_backfill);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Number<T = u64> {
    set: bool,
    infinite: bool,
    number: T,
}

impl Number {
    /// Zero where it is not set.
    pub(crate) fn get(&self) -> u64 {
        if self.set { self.number } else { 0 }
    }
}

record! {
    pub(crate) struct Node {
        architecture: String,
        burstbuffer_network_address: String,
        boards: u64,
        boot_time: Number,
        tls_cert_last_renewal: Number,
        cert_flags: Vec<String>,
        cluster_name: String,
        cores: u64,
        specialized_cores: u64,
        cpu_binding: u64,
        cpu_load: u64,
        free_mem: Number,
        cpus: u64,
        effective_cpus: u64,
        specialized_cpus: String,
        energy: Energy,
        extra: String,
        features: Vec<String>,
        active_features: Vec<String>,
        gpu_spec: String,
        gres: String,
        gres_drained: String,
        gres_used: String,
        instance_id: String,
        instance_type: String,
        last_busy: Number,
        mcs_label: String,
        specialized_memory: u64,
        name: String,
        next_state_after_reboot: Vec<String>,
        address: String,
        hostname: String,
        state: Vec<String>,
        operating_system: String,
        owner: String,
        partitions: Vec<String>,
        port: u64,
        real_memory: u64,
        res_cores_per_gpu: u64,
        comment: String,
        reason: String,
        reason_changed_at: Number,
        reason_set_by_user: String,
        resume_after: Number,
        reservation: String,
        suspend_time: Number,
        alloc_memory: u64,
        alloc_cpus: u64,
        alloc_idle_cpus: u64,
        tres_used: String,
        slurmd_start_time: Number,
        sockets: u64,
        threads: u64,
        temporary_disk: u64,
        weight: u64,
        topology: String,
        tres: String,
        version: String,
    }
}

record! {
    pub(crate) struct Energy {
        average_watts: u64,
        base_consumed_energy: u64,
        consumed_energy: u64,
        current_watts: Number,
        previous_consumed_energy: u64,
        last_collected: u64,
    }
}

record! {
    pub(crate) struct Job {
        account: String,
        accrue_time: Number,
        admin_comment: String,
        allocating_node: String,
        array_job_id: Number,
        array_task_id: Number,
        array_max_tasks: Number,
        array_task_string: String,
        association_id: u64,
        batch_features: String,
        batch_flag: bool,
        batch_host: String,
        flags: Vec<String>,
        burst_buffer: String,
        burst_buffer_state: String,
        cluster: String,
        cluster_features: String,
        command: String,
        comment: String,
        container: String,
        container_id: String,
        container_type: String,
        contiguous: bool,
        core_spec: u64,
        thread_spec: u64,
        cores_per_socket: Number,
        billable_tres: Number<f64>,
        cpus_per_task: Number,
        cpu_frequency_minimum: Number,
        cpu_frequency_maximum: Number,
        cpu_frequency_governor: Number,
        cpus_per_tres: String,
        cron: String,
        deadline: Number,
        delay_boot: Number,
        dependency: String,
        derived_exit_code: ExitCode,
        eligible_time: Number,
        end_time: Number,
        excluded_nodes: String,
        exit_code: ExitCode,
        extra: String,
        failed_node: String,
        features: String,
        federation_origin: String,
        federation_siblings_active: String,
        federation_siblings_viable: String,
        gres_detail: Vec<String>,
        group_id: u64,
        group_name: String,
        het_job_id: Number,
        het_job_id_set: String,
        het_job_offset: Number,
        job_id: u64,
        job_resources: Option<Resources>,
        job_size_str: Vec<String>,
        job_state: Vec<String>,
        last_sched_evaluation: Number,
        licenses: String,
        licenses_allocated: String,
        mail_type: Vec<String>,
        mail_user: String,
        max_cpus: Number,
        max_nodes: Number,
        mcs_label: String,
        memory_per_tres: String,
        memory_update_delay: u64,
        memory_update_margin: u64,
        name: String,
        network: String,
        nodes: String,
        nice: i64,
        tasks_per_core: Number,
        tasks_per_tres: Number,
        tasks_per_node: Number,
        tasks_per_socket: Number,
        tasks_per_board: Number,
        cpus: Number,
        node_count: Number,
        tasks: Number,
        partition: String,
        prefer: String,
        memory_per_cpu: Number,
        memory_per_node: Number,
        minimum_cpus_per_node: Number,
        minimum_tmp_disk_per_node: Number,
        preempt_time: Number,
        preemptable_time: Number,
        pre_sus_time: Number,
        hold: bool,
        priority: Number,
        priority_by_partition: Vec<PartitionPriority>,
        profile: Vec<String>,
        qos: String,
        reboot: bool,
        required_nodes: String,
        required_switches: u64,
        requeue: bool,
        resize_time: Number,
        restart_cnt: u64,
        resv_name: String,
        scheduled_nodes: String,
        segment_size: u64,
        selinux_context: String,
        shared: Vec<String>,
        step_id: StepId,
        sockets_per_board: u64,
        sockets_per_node: Number,
        start_time: Number,
        state_description: String,
        state_reason: String,
        standard_input: String,
        standard_output: String,
        standard_error: String,
        stdin_expanded: String,
        stdout_expanded: String,
        stderr_expanded: String,
        submit_time: Number,
        submit_line: String,
        suspend_time: Number,
        system_comment: String,
        time_limit: Number,
        time_minimum: Number,
        threads_per_core: Number,
        tres_bind: String,
        tres_freq: String,
        tres_per_job: String,
        tres_per_node: String,
        tres_per_socket: String,
        tres_per_task: String,
        tres_req_str: String,
        tres_alloc_str: String,
        user_id: u64,
        user_name: String,
        maximum_switch_wait_time: u64,
        wckey: String,
        current_working_directory: String,
    }
}

record! {
    pub(crate) struct Signal {
        id: Number,
        name: String,
    }
}

record! {
    pub(crate) struct ExitCode {
        status: Vec<String>,
        return_code: Number,
        signal: Signal,
    }
}

record! {
    pub(crate) struct AllocatedCpus {
        count: u64,
        used: u64,
    }
}

record! {
    pub(crate) struct AllocatedMemory {
        used: u64,
        allocated: u64,
    }
}

record! {
    pub(crate) struct Core {
        index: u64,
        status: Vec<String>,
    }
}

record! {
    pub(crate) struct Socket {
        index: u64,
        cores: Vec<Core>,
    }
}

record! {
    pub(crate) struct Allocated {
        index: u64,
        name: String,
        cpus: AllocatedCpus,
        memory: AllocatedMemory,
        sockets: Vec<Socket>,
    }
}

record! {
    pub(crate) struct ResourceNodes {
        count: u64,
        select_type: Vec<String>,
        list: String,
        whole: bool,
        allocation: Vec<Allocated>,
    }
}

record! {
    pub(crate) struct Resources {
        select_type: Vec<String>,
        nodes: ResourceNodes,
        cpus: u64,
        threads_per_core: Number,
    }
}

record! {
    pub(crate) struct StepId {
        sluid: String,
        job_id: Number,
        step_het_component: Number,
        step_id: String,
    }
}

record! {
    pub(crate) struct PartitionPriority {
        partition: String,
        priority: u64,
    }
}
