//! The one call that is changed, `POST /containers/create`: which call that is, what a cgroup may be called, and how
//! the body names it. dockerd is written in Go, whose JSON decoder takes keys in any case; so does this.

use http::{HeaderMap, Method};
use serde_json::{Map, Value};

pub(super) const HEADER: &str = "cgroup-parent";

/// Longest path of a cgroup, as of any file.
const LONGEST: usize = 4096;

/// `POST [/v1.47]/containers/create`. The router of dockerd compares the decoded path, so an encoded letter does not
/// make it another call.
pub(super) fn is_create(method: &Method, path: &str) -> bool {
    if method != Method::POST {
        return false;
    }
    let path = decoded(path);
    let Some(path) = path.strip_prefix(b"/") else { return false };
    let version = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    let is_version = version.len() > 1
        && version.starts_with(b"v")
        && version[1..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let path = if is_version { path.get(version.len() + 1..).unwrap_or_default() } else { path };
    path == b"containers/create"
}

fn decoded(path: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = escaped
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    out
}

/// The cgroup that the client asks for, if it asks for one.
pub(super) fn cgroup_parent(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("more than one Cgroup-Parent header".to_owned());
    }
    let value = value.to_str().map_err(|_| "the Cgroup-Parent header is not plain text".to_owned())?;
    check(value)
        .map_err(|problem| format!("the Cgroup-Parent header '{}' {problem}", value.escape_debug()))?;
    Ok(Some(value.to_owned()))
}

fn check(parent: &str) -> Result<(), &'static str> {
    let is_slice = parent.ends_with(".slice") && parent.len() > ".slice".len() && !parent.contains('/');
    match parent {
        _ if parent.len() > LONGEST => Err("is too long"),
        _ if parent.contains(|char: char| char.is_control()) => Err("has control characters"),
        _ if parent.contains("..") => Err("has '..' in it"),
        _ if is_slice => Ok(()),
        _ if !parent.starts_with('/') => Err("is neither an absolute path nor the name of a slice"),
        // A container there would be outside of every job.
        _ if parent.trim_matches('/').is_empty() => Err("is the root of all cgroups"),
        _ => Ok(()),
    }
}

/// The body with `HostConfig.CgroupParent` set, whatever it said before.
pub(super) fn with_cgroup_parent(body: &[u8], parent: &str) -> Result<Vec<u8>, String> {
    let mut container: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| format!("the container to create is not described by a JSON object: {error}"))?;
    let mut host_config = match take(&mut container, "HostConfig")?.unwrap_or_default() {
        Value::Null => Map::new(),
        Value::Object(map) => map,
        _ => return Err("HostConfig of the container to create is not a JSON object".to_owned()),
    };
    take(&mut host_config, "CgroupParent")?;
    host_config.insert("CgroupParent".to_owned(), parent.into());
    container.insert("HostConfig".to_owned(), host_config.into());
    serde_json::to_vec(&container).map_err(|error| error.to_string())
}

/// Removes the entry that Go would decode into the field `name`. Of two of them Go takes parts of both.
fn take(map: &mut Map<String, Value>, name: &str) -> Result<Option<Value>, String> {
    let fold = |text: &str| text.to_lowercase().to_uppercase();
    let wanted = fold(name);
    let mut keys: Vec<_> = map.keys().filter(|key| fold(key) == wanted).cloned().collect();
    match (keys.pop(), keys.is_empty()) {
        (None, _) => Ok(None),
        (Some(key), true) => Ok(map.remove(&key)),
        (Some(_), false) => Err(format!("the container to create has more than one {name}")),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_creation_of_a_container_is_meant() {
        for path in [
            "/containers/create",
            "/v1.47/containers/create",
            "/v1/containers/create",
            "/v1.47/containers/creat%65",
            "/%76%31.47/containers/create",
        ] {
            assert!(is_create(&Method::POST, path), "{path}");
        }
        for path in [
            "/",
            "",
            "*",
            "/v1.47",
            "/containers/create/",
            "/containers/abc/start",
            "/v/containers/create",
            "/vx/containers/create",
            "/images/create",
            "/v1.47/v1.47/containers/create",
            "/containers/create%",
            "/containers/creat%6",
        ] {
            assert!(!is_create(&Method::POST, path), "{path}");
        }
        assert!(!is_create(&Method::GET, "/containers/create"));
    }

    fn parent(values: &[&[u8]]) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_bytes(value).unwrap());
        }
        cgroup_parent(&headers)
    }

    #[test]
    fn cgroups_are_absolute_paths_or_slices() {
        assert_eq!(parent(&[]), Ok(None));
        for good in ["/system.slice/job_7/step_0", "system-job7.slice", "/a"] {
            assert_eq!(parent(&[good.as_bytes()]), Ok(Some(good.to_owned())));
        }
        for (bad, problem) in [
            (&b""[..], "neither an absolute path"),
            (b"job_7", "neither an absolute path"),
            (b"a/b.slice", "neither an absolute path"),
            (b".slice", "neither an absolute path"),
            (b"/", "the root of all cgroups"),
            (b"///", "the root of all cgroups"),
            (b"/job/../other", "has '..'"),
            (b"..slice", "has '..'"),
            (b"/job\t7", "control characters"),
            (b"/job\xff", "not plain text"),
        ] {
            let error = parent(&[bad]).unwrap_err();
            assert!(error.contains(problem), "{bad:?}: {error}");
        }
        assert!(parent(&["/x".repeat(3000).as_bytes()]).unwrap_err().contains("too long"));
        assert!(parent(&[b"/a", b"/b"]).unwrap_err().contains("more than one"));
    }

    fn rewritten(body: &str) -> Result<Value, String> {
        with_cgroup_parent(body.as_bytes(), "/job").map(|body| serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn parent_is_set_and_everything_else_is_kept() {
        let expected = json!({ "HostConfig": { "CgroupParent": "/job" } });
        for body in ["{}", r#"{"HostConfig":null}"#, r#"{"HostConfig":{"CgroupParent":"/elsewhere"}}"#] {
            assert_eq!(rewritten(body).unwrap(), expected, "{body}");
        }
        let body =
            r#"{"Image":"ubuntu","HostConfig":{"Memory":9007199254740993,"Binds":["/a:/b"]},"Env":[]}"#;
        let expected = json!({ "Image": "ubuntu", "Env": [],
            "HostConfig": { "Memory": 9_007_199_254_740_993_u64, "Binds": ["/a:/b"], "CgroupParent": "/job" } });
        assert_eq!(rewritten(body).unwrap(), expected);
    }

    #[test]
    fn spellings_that_go_takes_for_the_same_key_are_the_same() {
        let expected = json!({ "HostConfig": { "CgroupParent": "/job", "Privileged": true } });
        for body in [
            r#"{"hostconfig":{"cgroupparent":"/elsewhere","Privileged":true}}"#,
            "{\"Ho\u{17f}tConfig\":{\"CGROUPPARENT\":\"/elsewhere\",\"Privileged\":true}}",
        ] {
            assert_eq!(rewritten(body).unwrap(), expected, "{body}");
        }
        let two = r#"{"HostConfig":{},"hostConfig":{"CgroupParent":"/elsewhere"}}"#;
        assert!(rewritten(two).unwrap_err().contains("more than one HostConfig"));
    }

    #[test]
    fn what_is_no_container_is_refused() {
        for body in ["", "{", "[]", "null", "7", r#"{"HostConfig":[]}"#, r#"{"HostConfig":"x"}"#] {
            assert!(rewritten(body).unwrap_err().contains("JSON object"), "{body}");
        }
    }
}
