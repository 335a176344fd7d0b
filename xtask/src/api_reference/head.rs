//! The top of a page: what the resource is called and how one looks at it.

use serde_json::Value;

use super::markdown::{cell, code, table};

pub(super) const COLUMNS: &str = "Columns";

pub(super) fn title(crd: &Value, version: &Value) -> String {
    format!("{} ({})", text(&crd["spec"]["names"]["kind"]), api_version(crd, version))
}

/// A list of what one can do with it. The group is always written out: kinds of two groups may share a name.
pub(super) fn how_to_look(crd: &Value, version: &Value) -> String {
    let (spec, names) = (&crd["spec"], &crd["spec"]["names"]);
    let plural = text(&names["plural"]);
    let resource = format!("{plural}.{}", text(&spec["group"]));
    let mut lines = vec![if spec["scope"] == "Cluster" {
        "Belongs to no namespace.".to_owned()
    } else {
        "Belongs to a namespace.".to_owned()
    }];
    let short = match codes(&names["shortNames"]) {
        names if names.is_empty() => String::new(),
        names => format!(", or with a short name: {}", names.join(", ")),
    };
    lines.push(format!("`kubectl get {resource}`{short}"));
    if let (Some(first), categories) = (names["categories"][0].as_str(), codes(&names["categories"])) {
        let word = if categories.len() == 1 { "category" } else { "categories" };
        lines.push(format!("In the {word} {}: `kubectl get {first}` shows it too.", categories.join(", ")));
    }
    let api_version = api_version(crd, version);
    lines.push(format!(
        "`kubectl explain {plural}.spec --api-version={api_version}` shows what is below, from the cluster."
    ));
    lines.extend(subresources(&resource, &version["subresources"]));
    let others = spec["versions"].as_array().into_iter().flatten();
    let others: Vec<_> = others
        .filter(|other| other["served"] == true && other["name"] != version["name"])
        .map(|other| code(text(&other["name"])))
        .collect();
    if !others.is_empty() {
        lines.push(format!("Also served: {}", others.join(", ")));
    }
    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

/// What `kubectl get` shows beside the name; None if that is up to the API server.
pub(super) fn columns(version: &Value) -> Option<String> {
    let columns = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty())?;
    let rows = columns.iter().map(|column| {
        let wide = if column["priority"].as_i64().unwrap_or_default() > 0 { " (with `-o wide`)" } else { "" };
        vec![
            format!("{}{wide}", cell(text(&column["name"]))),
            cell(&code(text(&column["jsonPath"]))),
            cell(text(&column["description"])),
        ]
    });
    Some(table(&["Column", "From", "Description"], rows))
}

fn subresources(resource: &str, subresources: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let scale = &subresources["scale"];
    if scale.is_object() {
        let selector = match text(&scale["labelSelectorPath"]) {
            "" => String::new(),
            path => format!(", {} selects the pods", code(path)),
        };
        lines.push(format!(
            "`kubectl scale {resource} NAME --replicas=N` sets {}; {} is how many there are{selector}.",
            code(text(&scale["specReplicasPath"])),
            code(text(&scale["statusReplicasPath"])),
        ));
    }
    if subresources["status"].is_object() {
        let line =
            "The status is a subresource: a write of the object does not change it, and the other way round.";
        lines.push(line.to_owned());
    }
    lines
}

fn api_version(crd: &Value, version: &Value) -> String {
    format!("{}/{}", text(&crd["spec"]["group"]), text(&version["name"]))
}

fn codes(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(code).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_resource_has_is_named() {
        let crd = json!({"spec": {"group": "example.org", "scope": "Cluster", "names": {"plural": "boats"}}});
        let lines = how_to_look(&crd, &json!({"name": "v1"}));
        assert_eq!(
            lines,
            "- Belongs to no namespace.\n- `kubectl get boats.example.org`\n\
             - `kubectl explain boats.spec --api-version=example.org/v1` shows what is below, from the cluster."
        );
    }

    #[test]
    fn scaling_names_the_selector_that_an_autoscaler_needs() {
        let scale = json!({"scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }});
        assert_eq!(
            subresources("boats.example.org", &scale),
            [
                "`kubectl scale boats.example.org NAME --replicas=N` sets `.spec.replicas`; `.status.replicas` is how many \
              there are, `.status.selector` selects the pods."
            ]
        );
    }

    #[test]
    fn a_resource_without_columns_of_its_own_has_no_table_of_them() {
        assert_eq!(columns(&json!({"additionalPrinterColumns": []})), None);
        assert_eq!(columns(&json!({})), None);
    }
}
