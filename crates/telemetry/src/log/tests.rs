//! Tests of the log settings and of the lines that come out.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::{debug, error, info, info_span, trace};

use super::*;

fn flags(format: Option<&str>, level: Option<&str>) -> LogArgs {
    LogArgs { log_format: format.map(str::to_owned), log_level: level.map(str::to_owned) }
}

fn no_env(_: &str) -> Option<String> {
    None
}

fn settings(format: LogFormat, level: Level) -> LogSettings {
    LogSettings { format, level, unknown_level: None }
}

const EXPORTER: LogDefaults = LogDefaults {
    format_env: "SLURM_EXPORTER_LOG_FORMAT",
    level_env: "SLURM_EXPORTER_LOG_LEVEL",
    format: LogFormat::Json,
    level: Level::DEBUG,
};

#[test]
fn without_flags_and_environment_the_program_decides() {
    let resolved = LogArgs::default().resolve(no_env, &LogDefaults::OPERATOR);
    assert_eq!(resolved, Ok(settings(LogFormat::Json, Level::INFO)));
    let checks = LogDefaults::OPERATOR.with_level(Level::DEBUG);
    assert_eq!(LogArgs::default().resolve(no_env, &checks), Ok(settings(LogFormat::Json, Level::DEBUG)));
}

#[test]
fn flag_beats_environment_beats_default() {
    let env = |name: &str| match name {
        "SLURM_OPERATOR_LOG_FORMAT" => Some("plain".to_owned()),
        "SLURM_OPERATOR_LOG_LEVEL" => Some("error".to_owned()),
        _ => None,
    };
    let resolved = LogArgs::default().resolve(env, &LogDefaults::OPERATOR);
    assert_eq!(resolved, Ok(settings(LogFormat::Plain, Level::ERROR)));
    let resolved = flags(Some("json"), Some("warn")).resolve(env, &LogDefaults::OPERATOR);
    assert_eq!(resolved, Ok(settings(LogFormat::Json, Level::WARN)));
}

#[test]
fn each_program_listens_to_its_own_variables() {
    let env = |name: &str| (name == "SLURM_EXPORTER_LOG_LEVEL").then(|| "warn".to_owned());
    assert_eq!(LogArgs::default().resolve(env, &EXPORTER).unwrap().level, Level::WARN);
    assert_eq!(LogArgs::default().resolve(env, &LogDefaults::OPERATOR).unwrap().level, Level::INFO);
}

#[test]
fn empty_texts_count_as_not_given() {
    let env = |_: &str| Some(String::new());
    let resolved = flags(Some(""), Some("")).resolve(env, &EXPORTER);
    assert_eq!(resolved, Ok(settings(LogFormat::Json, Level::DEBUG)));
}

#[test]
fn zap_levels_are_understood_in_any_case() {
    for (text, level) in [
        ("trace", Level::TRACE),
        ("debug", Level::DEBUG),
        ("INFO", Level::INFO),
        ("Warn", Level::WARN),
        ("error", Level::ERROR),
        ("dpanic", Level::ERROR),
        ("panic", Level::ERROR),
        ("fatal", Level::ERROR),
    ] {
        let resolved = flags(None, Some(text)).resolve(no_env, &LogDefaults::OPERATOR);
        assert_eq!(resolved, Ok(settings(LogFormat::Json, level)), "{text}");
    }
}

#[test]
fn unknown_level_is_info_even_where_the_default_is_debug() {
    let resolved = flags(None, Some("chatty")).resolve(no_env, &EXPORTER).unwrap();
    assert_eq!(resolved.level, Level::INFO);
    assert_eq!(resolved.unknown_level.as_deref(), Some("chatty"));
}

#[test]
fn text_is_another_name_for_plain() {
    let resolved = flags(Some("text"), None).resolve(no_env, &LogDefaults::OPERATOR);
    assert_eq!(resolved, Ok(settings(LogFormat::Plain, Level::INFO)));
}

#[test]
fn unknown_format_names_its_origin_and_the_choices() {
    let error = flags(Some("xml"), None).resolve(no_env, &LogDefaults::OPERATOR).unwrap_err();
    assert_eq!(error.to_string(), "unknown log format 'xml' in --log-format: choose json or plain");
    let env = |_: &str| Some("yaml".to_owned());
    let error = LogArgs::default().resolve(env, &LogDefaults::OPERATOR).unwrap_err();
    assert!(error.to_string().contains("'yaml' in SLURM_OPERATOR_LOG_FORMAT"), "{error}");
}

#[test]
fn help_shows_the_defaults_of_the_program() {
    let help = LogArgs::augment(Command::new("exporter"), &EXPORTER).render_help().to_string();
    assert!(help.contains("[env: SLURM_EXPORTER_LOG_LEVEL] [default: debug]"), "{help}");
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What `act` logs under these settings.
pub(crate) fn logged(format: LogFormat, level: Level, act: impl FnOnce()) -> String {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber = subscriber(&settings(format, level), move || writer.clone());
    tracing::subscriber::with_default(subscriber, act);
    String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
}

fn logged_json(level: Level, act: impl FnOnce()) -> Vec<Value> {
    logged(LogFormat::Json, level, act).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn json_lines_carry_time_level_logger_message_and_flat_fields() {
    let mut lines = logged_json(Level::INFO, || {
        info!(target: "engine", object = "ns/c", writes = 3, ratio = 0.5, ok = true, "reconciled");
    });
    assert_eq!(lines.len(), 1);
    let ts = lines[0].as_object_mut().unwrap().remove("ts").unwrap();
    assert!(ts.as_str().unwrap().ends_with('Z'), "{ts}");
    ts.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(
        lines[0],
        json!({
            "level": "info", "logger": "engine", "msg": "reconciled",
            "object": "ns/c", "writes": 3, "ratio": 0.5, "ok": true
        })
    );
}

#[test]
fn json_line_begins_with_what_people_read_first() {
    let text = logged(LogFormat::Json, Level::INFO, || info!(alpha = 1, "m"));
    let order: Vec<_> = ["\"ts\"", "\"level\"", "\"logger\"", "\"msg\"", "\"alpha\""]
        .iter()
        .map(|key| text.find(key).unwrap())
        .collect();
    assert!(order.is_sorted(), "{text}");
}

#[test]
fn json_stays_one_line_whatever_the_values() {
    let text = logged(LogFormat::Json, Level::INFO, || {
        info!(text = "a\nb\"c", "line\nbreak");
    });
    assert_eq!(text.lines().count(), 1);
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["text"], "a\nb\"c");
    assert_eq!(line["msg"], "line\nbreak");
}

#[test]
fn fields_of_spans_are_part_of_the_line_and_inner_ones_win() {
    let lines = logged_json(Level::INFO, || {
        let outer = info_span!("reconcile", controller = "nodeset", object = "outer").entered();
        let inner = info_span!("step", object = "inner", late = tracing::field::Empty).entered();
        inner.record("late", 7);
        info!("applied");
        drop(inner);
        drop(outer);
    });
    assert_eq!(lines[0]["controller"], "nodeset");
    assert_eq!(lines[0]["object"], "inner");
    assert_eq!(lines[0]["late"], 7);
}

#[test]
fn a_field_never_hides_the_keys_of_the_line() {
    let lines = logged_json(Level::INFO, || info!(level = "high", msg = "shadow", "real"));
    assert_eq!(lines[0]["level"], "info");
    assert_eq!(lines[0]["msg"], "real");
    assert_eq!(lines[0]["level_"], "high");
    assert_eq!(lines[0]["msg_"], "shadow");
}

#[test]
fn errors_are_logged_with_their_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("read the key")]
    struct Outer(#[source] std::io::Error);
    let failure = Outer(std::io::Error::other("disk is gone"));
    let lines = logged_json(Level::INFO, || {
        error!(error = &failure as &dyn std::error::Error, "stopped");
    });
    assert_eq!(lines[0]["error"], "read the key: disk is gone");
}

#[test]
fn level_filters_and_silences_talkative_libraries_until_trace() {
    let speak = || {
        debug!("ours");
        debug!(target: "hyper::client", "theirs");
        trace!("details");
    };
    assert_eq!(logged_json(Level::INFO, speak).len(), 0);
    assert_eq!(logged_json(Level::DEBUG, speak).len(), 1);
    assert_eq!(logged_json(Level::TRACE, speak).len(), 3);
}

#[test]
fn plain_lines_are_for_people() {
    let text = logged(LogFormat::Plain, Level::INFO, || info!(target: "engine", writes = 3, "reconciled"));
    assert!(text.contains("INFO engine: reconciled writes=3"), "{text}");
}

#[test]
fn a_panic_is_one_line_like_any_other() {
    let here = std::thread::current().id();
    let lines = logged_json(Level::INFO, || {
        let previous = Arc::new(std::panic::take_hook());
        let others = Arc::clone(&previous);
        std::panic::set_hook(Box::new(move |panic| {
            // The hook is the process's: other tests keep their own messages.
            if std::thread::current().id() == here { log_panic(panic) } else { others(panic) }
        }));
        let outcome = std::panic::catch_unwind(|| panic!("bug\nin two lines"));
        std::panic::set_hook(Box::new(move |panic| previous(panic)));
        outcome.unwrap_err();
    });
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["level"], &lines[0]["msg"]), (&json!("error"), &json!("panicked")));
    assert_eq!(lines[0]["reason"], "bug\nin two lines");
    assert!(lines[0]["location"].as_str().unwrap().contains("tests.rs:"), "{}", lines[0]);
}
