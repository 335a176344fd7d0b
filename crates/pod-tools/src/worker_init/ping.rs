//! What `scontrol ping --json` answers. Fields come and go with the version of the data parser: up to v0.0.44 there
//! are `pinged` and `responding`, from v0.0.45 on `responding` and `status`. What cannot be read is no answer.

use serde_json::Value;

use super::pod::Ran;
use super::wait::Probe;

/// Ready when there is at least one controller and all of them answer. The exit code is not asked: it sums up what the
/// answer says of every controller by itself, in a way that is the business of each version.
pub(super) fn read(ran: &Ran) -> Probe<()> {
    let Ok(answer) = serde_json::from_str::<Value>(&ran.stdout) else {
        return Probe::NotYet(format!("scontrol ping gave no answer that can be read: {}", ran.complaint()));
    };
    let controllers = answer.get("pings").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if controllers.is_empty() {
        return Probe::NotYet(format!("scontrol ping names no controller: {}", ran.complaint()));
    }
    let silent: Vec<_> =
        controllers.iter().filter(|controller| !responds(controller)).map(describe).collect();
    if silent.is_empty() { Probe::Ready(()) } else { Probe::NotYet(silent.join(", ")) }
}

fn responds(controller: &Value) -> bool {
    match controller.get("responding") {
        Some(responding) => responding.as_bool() == Some(true),
        None => controller.get("pinged").and_then(Value::as_str) == Some("UP"),
    }
}

fn describe(controller: &Value) -> String {
    let text = |field| controller.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = text("hostname").unwrap_or("a controller without a name");
    match text("status").or_else(|| text("pinged")) {
        Some(status) => format!("{name} does not respond ({status})"),
        None => format!("{name} does not respond"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pings: &str) -> Probe<()> {
        let stdout = format!(r#"{{"pings": {pings}, "meta": {{}}, "errors": [], "warnings": []}}"#);
        read(&Ran { ok: true, stdout, stderr: String::new() })
    }

    fn not_yet(text: &str) -> Probe<()> {
        Probe::NotYet(text.to_owned())
    }

    #[test]
    fn answers_of_all_versions_are_understood() {
        for up in [
            r#"[{"hostname":"c","pinged":"UP","responding":true,"latency":544,"mode":"primary","primary":true}]"#,
            r#"[{"hostname":"c","responding":true,"latency":420,"primary":true,"status":"No error"}]"#,
            r#"[{"hostname":"c","pinged":"UP","mode":"primary"}]"#,
        ] {
            assert_eq!(answer(up), Probe::Ready(()), "{up}");
        }
        let old = r#"[{"hostname":"c","pinged":"DOWN","responding":false,"latency":10653,"mode":"primary"}]"#;
        assert_eq!(answer(old), not_yet("c does not respond (DOWN)"));
        let new = r#"[{"hostname":"c","responding":false,"status":"Protocol authentication error"}]"#;
        assert_eq!(answer(new), not_yet("c does not respond (Protocol authentication error)"));
    }

    #[test]
    fn one_silent_controller_is_enough_to_wait() {
        let two = r#"[{"hostname":"a","responding":true},{"hostname":"b","responding":false}]"#;
        assert_eq!(answer(two), not_yet("b does not respond"));
    }

    #[test]
    fn what_cannot_be_read_is_no_answer() {
        for odd in ["[{}]", r#"[{"responding":"yes"}]"#, "[null]", r#"[{"hostname":7,"status":[]}]"#] {
            assert_eq!(answer(odd), not_yet("a controller without a name does not respond"), "{odd}");
        }
        for odd in ["[]", "{}", "null", "3"] {
            let Probe::NotYet(why) = answer(odd) else { panic!("{odd} counts as an answer") };
            assert!(why.starts_with("scontrol ping names no controller"), "{why}");
        }
        let ran = Ran { ok: false, stdout: "oops".into(), stderr: "scontrol: error: no config\nmore".into() };
        assert_eq!(
            read(&ran),
            not_yet("scontrol ping gave no answer that can be read: scontrol: error: no config")
        );
    }
}
