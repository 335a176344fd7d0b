//! What an object says in the words of an older release and no longer gets. It is accepted, and a warning tells the user.

use kube::ResourceExt;

use super::{Controller, LoginSet, NodeSet, ObjectRef, RestApi, Token};

impl Controller {
    /// What in this object is without effect, each with what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        let (spec, own) = (&self.spec, self.namespace());
        let lists = [
            ("configFileRefs", spec.config_file_refs.as_deref()),
            ("epilogScriptRefs", spec.epilog_script_refs.as_deref()),
            ("epilogSlurmctldScriptRefs", spec.epilog_slurmctld_script_refs.as_deref()),
            ("prologScriptRefs", spec.prolog_script_refs.as_deref()),
            ("prologSlurmctldScriptRefs", spec.prolog_slurmctld_script_refs.as_deref()),
            ("accountingRef", Some(spec.accounting_ref.as_slice())),
        ];
        let refs = lists
            .into_iter()
            .flat_map(|(field, refs)| refs.into_iter().flatten().map(move |each| (field, each)));
        refs.filter_map(|(field, each)| other_namespace(field, each.namespace.as_deref(), own.as_deref()))
            .collect()
    }
}

impl NodeSet {
    /// What in this object is without effect, each with what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        let elsewhere = controller_elsewhere(&self.spec.controller_ref, self.namespace().as_deref());
        let taint = self.spec.taint_kube_nodes == Some(true);
        let taint = taint.then(|| {
            "spec.taintKubeNodes is ignored: taint the Kubernetes nodes yourself and remove the field"
                .to_owned()
        });
        elsewhere.into_iter().chain(taint).collect()
    }
}

impl LoginSet {
    /// What in this object is without effect, each with what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        controller_elsewhere(&self.spec.controller_ref, self.namespace().as_deref()).into_iter().collect()
    }
}

impl RestApi {
    /// What in this object is without effect, each with what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        controller_elsewhere(&self.spec.controller_ref, self.namespace().as_deref()).into_iter().collect()
    }
}

impl Token {
    /// What in this object is without effect, each with what to do about it.
    pub fn warnings(&self) -> Vec<String> {
        let named = self.spec.jwt_hs256_key_ref.as_ref().and_then(|key| key.namespace.as_deref());
        other_namespace("jwtHs256KeyRef", named, self.namespace().as_deref()).into_iter().collect()
    }
}

fn controller_elsewhere(reference: &ObjectRef, own: Option<&str>) -> Option<String> {
    other_namespace("controllerRef", reference.namespace.as_deref(), own)
}

fn other_namespace(field: &str, named: Option<&str>, own: Option<&str>) -> Option<String> {
    let named = named.filter(|named| !named.is_empty() && Some(*named) != own)?;
    let own = own.unwrap_or_default();
    Some(format!(
        "spec.{field} names the namespace {named}, but references stay in their own namespace, {own}: move the object there, or remove the namespace"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(kind: &str, spec: &Value) -> K {
        serde_json::from_value(json!({
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": kind,
            "metadata": { "name": "x", "namespace": "slurm" }, "spec": spec,
        }))
        .unwrap()
    }

    fn about_namespace(field: &str) -> String {
        format!(
            "spec.{field} names the namespace other, but references stay in their own namespace, slurm: \
             move the object there, or remove the namespace"
        )
    }

    #[test]
    fn a_reference_to_another_namespace_is_warned_of() {
        let spec = json!({
            "controllerRef": { "name": "slurm", "namespace": "other" },
            "sssdConfRef": { "name": "sssd", "key": "sssd.conf" },
        });
        let warnings = [
            object::<NodeSet>("NodeSet", &spec).warnings(),
            object::<LoginSet>("LoginSet", &spec).warnings(),
            object::<RestApi>("RestApi", &spec).warnings(),
        ];
        assert_eq!(warnings, [(); 3].map(|()| vec![about_namespace("controllerRef")]));
        let spec = json!({ "username": "slurm", "jwtHs256KeyRef": { "name": "k", "key": "k", "namespace": "other" } });
        assert_eq!(object::<Token>("Token", &spec).warnings(), [about_namespace("jwtHs256KeyRef")]);
    }

    #[test]
    fn each_reference_of_a_controller_is_looked_at() {
        let elsewhere = json!({ "name": "x", "namespace": "other" });
        let own = json!({ "name": "y", "namespace": "slurm" });
        let lists = [
            "configFileRefs",
            "epilogScriptRefs",
            "epilogSlurmctldScriptRefs",
            "prologScriptRefs",
            "prologSlurmctldScriptRefs",
        ];
        let mut spec = json!({ "accountingRef": elsewhere });
        for list in lists {
            spec[list] = json!([own, elsewhere]);
        }
        let expected: Vec<String> = lists.into_iter().chain(["accountingRef"]).map(about_namespace).collect();
        assert_eq!(object::<Controller>("Controller", &spec).warnings(), expected);
    }

    #[test]
    fn what_has_an_effect_is_not_warned_of() {
        for reference in [
            json!({ "name": "c" }),
            json!({ "name": "c", "namespace": "slurm" }),
            json!({ "name": "c", "namespace": "" }),
        ] {
            let set: NodeSet =
                object("NodeSet", &json!({ "controllerRef": reference, "taintKubeNodes": false }));
            assert_eq!(set.warnings(), [""; 0]);
        }
    }

    #[test]
    fn taints_that_are_no_longer_set_are_warned_of() {
        let set: NodeSet =
            object("NodeSet", &json!({ "controllerRef": { "name": "c" }, "taintKubeNodes": true }));
        assert_eq!(
            set.warnings(),
            ["spec.taintKubeNodes is ignored: taint the Kubernetes nodes yourself and remove the field"]
        );
    }
}
