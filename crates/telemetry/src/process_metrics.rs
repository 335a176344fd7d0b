//! What this process uses, read from `/proc` at scrape time, under the names that every Prometheus client library
//! gives them. A value that cannot be read is left out: a zero would be a lie.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// `/proc` counts time in ticks of USER_HZ, which the Linux ABI fixes at 100 per second on every platform Rust
/// has a Linux target with a current kernel for.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct ProcessCollector {
    /// Seconds since the epoch; it cannot change, so it is read once.
    started: Option<f64>,
}

impl ProcessCollector {
    pub(crate) fn new() -> Self {
        let since_boot = own_stat().map(|stat| stat.started_after_boot);
        let boot = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot_time);
        Self { started: boot.zip(since_boot).map(|(boot, since)| boot + since) }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let memory = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes);
        let mut metric = |name, help, value: &dyn EncodeMetric| {
            value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)
        };
        if let Some(bytes) = memory {
            metric("process_resident_memory_bytes", "Resident memory in bytes.", &ConstGauge::new(bytes))?;
        }
        if let Some(stat) = own_stat() {
            let help = "User and system CPU time in seconds.";
            metric("process_cpu_seconds", help, &ConstCounter::new(stat.cpu_seconds))?;
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // The listing itself holds one descriptor.
            let open = entries.count().saturating_sub(1) as u64;
            metric("process_open_fds", "Open file descriptors.", &ConstGauge::new(open))?;
        }
        if let Some(started) = self.started {
            let help = "Start of the process in seconds since the epoch.";
            metric("process_start_time_seconds", help, &ConstGauge::new(started))?;
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    started_after_boot: f64,
}

fn own_stat() -> Option<Stat> {
    parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// See proc_pid_stat(5). The second field is the program's name in brackets, and may itself hold spaces and
/// brackets, so counting starts behind the last one: what follows is field 3.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
    let (user, system, started) = (field(14)?, field(15)?, field(22)?);
    Some(Stat {
        cpu_seconds: (user + system) as f64 / TICKS_PER_SECOND,
        started_after_boot: started as f64 / TICKS_PER_SECOND,
    })
}

/// `VmRSS` is in kB here, while `/proc/self/statm` counts pages, whose size is not in `/proc`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn boot_time(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_a_name_with_spaces_and_brackets() {
        let text = "42 (odd) name (x)) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 12345 1000 200";
        assert_eq!(parse_stat(text), Some(Stat { cpu_seconds: 2.0, started_after_boot: 123.45 }));
    }

    #[test]
    fn cut_off_or_foreign_text_gives_no_value() {
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_stat("42 (name) S 1 42"), None);
        assert_eq!(resident_bytes("VmSize: 10 kB\n"), None);
        assert_eq!(resident_bytes("VmRSS: much kB\n"), None);
        assert_eq!(boot_time("cpu 1 2 3\n"), None);
    }

    #[test]
    fn resident_memory_is_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\nRssAnon: 1 kB\n"), Some(2 * 1024 * 1024));
    }

    #[test]
    fn boot_time_is_found_among_the_counters() {
        assert_eq!(boot_time("cpu  1 2\nctxt 5\nbtime 1700000000\nprocesses 9\n"), Some(1_700_000_000.0));
    }

    #[test]
    fn this_process_started_in_the_last_day_and_not_in_the_future() {
        let now = jiff::Timestamp::now().as_second() as f64;
        let started = ProcessCollector::new().started.unwrap();
        assert!(started <= now + 1.0 && started > now - 86_400.0, "started {started}, now {now}");
    }
}
