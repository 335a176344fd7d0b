//! The definitions of one file or folder, by name. Read as plain values and not as types, which would drop
//! what they do not know.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Number, Value};

/// All definitions of one place.
#[derive(Debug, Clone)]
pub(crate) struct CrdSet {
    /// Where they are from, as the user named it.
    pub(super) source: String,
    pub(super) crds: BTreeMap<String, Crd>,
}

/// One definition.
#[derive(Debug, Clone)]
pub(super) struct Crd {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) spec: Map<String, Value>,
}

impl CrdSet {
    /// A YAML file with one or more documents, or a folder of *.yaml files.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let source = path.display().to_string();
        if !path.is_dir() {
            return Self::new(&source, documents(path)?);
        }
        let mut objects = Vec::new();
        for file in entries(path)?.iter().filter(|file| is_yaml(file)) {
            objects.extend(documents(file)?);
        }
        Self::new(&source, objects)
    }

    /// The same, and a folder may hold further folders, each a set of its own: the same CRD in several releases.
    /// What else lies there, charts and manifests, is passed over.
    pub(crate) fn read_all(path: &Path) -> Result<Vec<Self>> {
        let mut sets = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
            let entries = entries(&folder)?;
            if entries.iter().filter(|file| is_yaml(file)).any(|file| defines(file)) {
                sets.push(Self::read(&folder)?);
            }
            folders.extend(entries.into_iter().rev().filter(|entry| entry.is_dir()));
        }
        // A file, or an error that says what is missing.
        if sets.is_empty() {
            sets.push(Self::read(path)?);
        }
        Ok(sets)
    }

    /// Of these objects those that are definitions; an error if none is. `source` is where they are from.
    pub(crate) fn new(source: &str, objects: Vec<Value>) -> Result<Self> {
        let mut crds = BTreeMap::new();
        for object in objects.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
            let crd = Crd::of(source, object)?;
            if let Some(twice) = crds.insert(crd.name.clone(), crd) {
                bail!("read {source}: the CRD {} is there twice", twice.name);
            }
        }
        ensure!(!crds.is_empty(), "read {source}: there is no CustomResourceDefinition");
        Ok(Self { source: source.to_owned(), crds })
    }
}

impl Crd {
    pub(super) fn of(source: &str, mut object: Value) -> Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let name = text("/metadata/name").with_context(|| format!("read {source}: a CRD has no name"))?;
        let attempt = || format!("read {source}: the CRD {name}");
        let version = text("/apiVersion").unwrap_or_default();
        ensure!(
            version == "apiextensions.k8s.io/v1",
            "{}: its apiVersion is `{version}`, only apiextensions.k8s.io/v1 can be compared",
            attempt()
        );
        let group = text("/spec/group").with_context(|| format!("{} has no spec.group", attempt()))?;
        let kind =
            text("/spec/names/kind").with_context(|| format!("{} has no spec.names.kind", attempt()))?;
        let Value::Object(spec) = with_plain_numbers(object["spec"].take()) else {
            bail!("{} has no spec", attempt());
        };
        Ok(Self { name, group, kind, spec })
    }
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let attempt = || format!("list {}", folder.display());
    let entries = fs::read_dir(folder).with_context(attempt)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<std::io::Result<Vec<_>>>().with_context(attempt)?;
    entries.sort();
    Ok(entries)
}

fn is_yaml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "yaml")
}

/// Whether a file looks like one with definitions. Templates of charts cannot be read as YAML.
fn defines(file: &Path) -> bool {
    fs::read_to_string(file)
        .is_ok_and(|text| text.lines().any(|line| line == "kind: CustomResourceDefinition"))
}

fn documents(file: &Path) -> Result<Vec<Value>> {
    let attempt = || format!("read {}", file.display());
    let text = fs::read_to_string(file).with_context(attempt)?;
    serde_saphyr::from_multiple(&text).with_context(attempt)
}

/// `1.0` as `1`: some generators write every bound as a float, and to the API server both are the same.
pub(super) fn with_plain_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(plain(number)),
        Value::Array(list) => list.into_iter().map(with_plain_numbers).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, with_plain_numbers(value))).collect()
        }
        other => other,
    }
}

/// Only where the float is exact: above 2^53 it would say more than it knows.
fn plain(number: Number) -> Number {
    let exact = |float: &f64| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    match number.as_f64().filter(|float| number.is_f64() && exact(float)) {
        Some(float) => Number::from(float as i64),
        None => number,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOAT: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec: {group: example.org, names: {kind: Boat}}
";

    fn error_of(yaml: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crd.yaml");
        fs::write(&file, yaml).unwrap();
        format!("{:#}", CrdSet::read(&file).unwrap_err())
    }

    #[test]
    fn a_file_may_have_several_documents_and_a_folder_several_files() {
        let folder = tempfile::tempdir().unwrap();
        let ship = BOAT.replace("boats", "ships");
        let raft = BOAT.replace("boats", "rafts");
        let two = format!("---{BOAT}---\n# nothing\n---\nkind: Service\n---{ship}");
        fs::write(folder.path().join("two.yaml"), two).unwrap();
        fs::write(folder.path().join("one.yaml"), raft).unwrap();
        fs::write(folder.path().join("README.md"), "not: [yaml").unwrap();
        let of = |path: &Path| CrdSet::read(path).unwrap().crds.into_keys().collect::<Vec<_>>();
        assert_eq!(of(&folder.path().join("two.yaml")), ["boats.example.org", "ships.example.org"]);
        assert_eq!(of(folder.path()), ["boats.example.org", "rafts.example.org", "ships.example.org"]);
    }

    #[test]
    fn folders_below_a_folder_are_sets_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        for release in ["old", "new"] {
            fs::create_dir(folder.path().join(release)).unwrap();
            fs::write(folder.path().join(release).join("boats.yaml"), BOAT).unwrap();
        }
        fs::create_dir(folder.path().join("chart")).unwrap();
        fs::write(folder.path().join("chart/boat.yaml"), "{{ not yaml }}").unwrap();
        let sources = |path: &Path| -> Vec<String> {
            let sets = CrdSet::read_all(path).unwrap();
            let below = |source: String| source.replace(&folder.path().display().to_string(), "");
            sets.into_iter().map(|set| below(set.source)).collect()
        };
        assert_eq!(sources(folder.path()), ["/new", "/old"]);
        assert_eq!(sources(&folder.path().join("old/boats.yaml")), ["/old/boats.yaml"]);
        assert!(CrdSet::read_all(&folder.path().join("nowhere")).is_err());
    }

    #[test]
    fn what_cannot_be_compared_is_an_error_that_says_why() {
        assert!(error_of("kind: Service").contains("there is no CustomResourceDefinition"));
        assert!(error_of(&format!("{BOAT}---{BOAT}")).contains("boats.example.org is there twice"));
        assert!(error_of(&BOAT.replace("/v1", "/v1beta1")).contains("its apiVersion is"));
        assert!(error_of(&BOAT.replace("group", "gruppe")).contains("boats.example.org has no spec.group"));
        assert!(error_of("a: [").starts_with("read /"));
        let error = format!("{:#}", CrdSet::read(Path::new("/nowhere.yaml")).unwrap_err());
        assert!(error.starts_with("read /nowhere.yaml: "), "{error}");
    }

    #[test]
    fn a_whole_float_is_a_whole_number() {
        assert_eq!(with_plain_numbers(json!({"a": [1.0, -2.0, 0.5, 3]})), json!({"a": [1, -2, 0.5, 3]}));
        assert_eq!(with_plain_numbers(json!(1e300)), json!(1e300));
    }
}
