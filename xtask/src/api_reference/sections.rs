//! Which objects of a resource have a section of their own, in reading order: each before what is in it.

use serde_json::Value;

use super::markdown::{code, prose};

/// Every resource has these, and they mean the same in all.
const OF_ALL_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];

#[derive(Debug)]
pub(super) struct Section<'a> {
    /// Empty for the resource itself.
    path: String,
    /// Of the field and of its type, if they say different things.
    pub(super) descriptions: Vec<&'a str>,
    node: &'a Value,
}

/// What is at a field, seen from the object that has it.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Value,
    pub(super) required: bool,
    /// The path of the section that describes what is in it.
    pub(super) section: Option<String>,
}

pub(super) fn of(root: &Value) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    // The description of the resource is at the top of the page.
    collect(Section { path: String::new(), descriptions: Vec::new(), node: root }, &mut sections);
    sections
}

fn collect<'a>(section: Section<'a>, sections: &mut Vec<Section<'a>>) {
    let inside: Vec<_> = section.properties().filter_map(|(name, node)| section.inside(name, node)).collect();
    sections.push(section);
    for section in inside {
        collect(section, sections);
    }
}

/// A Kubernetes type that is embedded whole. Of its properties those are ours to explain that have a description.
pub(super) fn is_embedded(node: &Value) -> bool {
    node["x-kubernetes-embedded-resource"] == true
        || (node["x-kubernetes-preserve-unknown-fields"] == true && node["type"] == "object")
}

impl<'a> Section<'a> {
    /// What the section is linked to by, and what its heading says.
    pub(super) fn heading(&self) -> &str {
        if self.path.is_empty() { "Fields" } else { &self.path }
    }

    /// The heading as Markdown. Two levels are enough: the path says where one is.
    pub(super) fn title(&self) -> String {
        match self.path.as_str() {
            "" => format!("## {}", self.heading()),
            path if path.contains('.') => format!("### {}", code(path)),
            path => format!("## {}", code(path)),
        }
    }

    /// Whether it has the fields of a Kubernetes type beside those that are described.
    pub(super) fn is_embedded(&self) -> bool {
        is_embedded(self.node)
    }

    pub(super) fn fields(&self) -> Vec<Field<'a>> {
        let required = |name: &str| {
            self.node["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
        };
        let field = |(name, node)| {
            let section = self.inside(name, node).map(|section| section.path);
            Field { name, node, required: required(name), section }
        };
        self.properties().map(field).collect()
    }

    /// What the API server checks beyond single values, of this object and of those of its fields that have
    /// no section.
    pub(super) fn rules(&self) -> Option<String> {
        let mut lines: Vec<_> = rules(self.node).iter().map(|rule| format!("- {rule}")).collect();
        for (name, node) in self.properties() {
            let mut path = name.to_owned();
            let mut next = Some(node);
            while let Some(node) = next.filter(|node| !has_section(node)) {
                lines.extend(rules(node).iter().map(|rule| format!("- {}: {rule}", code(&path))));
                next = element(node).map(|(suffix, node)| {
                    path.push_str(suffix);
                    node
                });
            }
        }
        (!lines.is_empty()).then(|| format!("Rules:\n\n{}", lines.join("\n")))
    }

    fn properties(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let of_resource = self.path.is_empty();
        properties(self.node).filter(move |(name, _)| !of_resource || !OF_ALL_RESOURCES.contains(name))
    }

    /// The section of the object that is at a field, or in a list or a map there.
    fn inside(&self, name: &str, field: &'a Value) -> Option<Self> {
        let mut path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let mut node = field;
        while !has_section(node) {
            let (suffix, inner) = element(node)?;
            path.push_str(suffix);
            node = inner;
        }
        let mut descriptions: Vec<_> =
            [field, node].iter().filter_map(|node| node["description"].as_str()).collect();
        descriptions.dedup();
        Some(Self { path, descriptions, node })
    }
}

pub(super) fn has_section(node: &Value) -> bool {
    properties(node).next().is_some()
}

/// What a list or a map has in it, and how a path says so.
fn element(node: &Value) -> Option<(&'static str, &Value)> {
    if is_embedded(node) {
        return None;
    }
    let of = |name, suffix| node.get(name).filter(|inner| inner.is_object()).map(|inner| (suffix, inner));
    of("items", "[]").or_else(|| of("additionalProperties", "{}"))
}

fn properties(node: &Value) -> impl Iterator<Item = (&str, &Value)> + use<'_> {
    let all = node["properties"].as_object().into_iter().flatten().map(|(name, node)| (name.as_str(), node));
    let every = !is_embedded(node);
    all.filter(move |(_, node)| every || node.get("description").is_some())
}

/// What a user is told when a rule is broken, and of which field; the rule itself if nothing is said.
fn rules(node: &Value) -> Vec<String> {
    let rules = node["x-kubernetes-validations"].as_array().into_iter().flatten();
    let said = |rule: &Value| match rule["message"].as_str() {
        Some(message) => prose(message).join(" "),
        None => code(rule["rule"].as_str().unwrap_or_default()),
    };
    rules
        .map(|rule| match rule["fieldPath"].as_str() {
            Some(path) => format!("{}: {}", code(path.trim_start_matches('.')), said(rule)),
            None => said(rule),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn titles(root: &Value) -> Vec<String> {
        of(root).iter().map(Section::title).collect()
    }

    #[test]
    fn an_object_comes_before_what_is_in_it() {
        let leaf = json!({"properties": {"x": {"type": "string"}}});
        let root = json!({"properties": {
            "metadata": leaf,
            "spec": {"properties": {"a": {"properties": {"deep": leaf}}, "b": leaf}},
            "status": leaf,
        }});
        assert_eq!(
            titles(&root),
            ["## Fields", "## `spec`", "### `spec.a`", "### `spec.a.deep`", "### `spec.b`", "## `status`"]
        );
    }

    #[test]
    fn objects_in_lists_and_maps_have_sections_and_embedded_ones_have_none() {
        let object = json!({"type": "object", "properties": {"x": {}}});
        let embedded =
            json!({"type": "object", "properties": {"x": {}}, "x-kubernetes-preserve-unknown-fields": true});
        let root = json!({"properties": {
            "list": {"items": object},
            "map": {"additionalProperties": {"items": object}},
            "pods": {"items": embedded},
            "pod": embedded,
            "free": {"type": "object", "additionalProperties": true},
        }});
        assert_eq!(titles(&root), ["## Fields", "## `list[]`", "## `map{}[]`"]);
    }

    #[test]
    fn fields_of_our_own_in_a_kubernetes_type_are_described() {
        let volume = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "name": {"type": "string", "description": "How it is called."},
            "emptyDir": {"type": "object", "properties": {"medium": {}}},
        }});
        let root = json!({"properties": {"volumes": {"items": volume}}});
        let sections = of(&root);
        assert_eq!(titles(&root), ["## Fields", "## `volumes[]`"]);
        assert_eq!(sections[1].fields().iter().map(|field| field.name).collect::<Vec<_>>(), ["name"]);
        assert!(sections[1].is_embedded() && !sections[0].is_embedded());
    }

    #[test]
    fn the_descriptions_of_a_list_and_of_its_elements_are_both_said_once() {
        let list = |of_list: &str| {
            json!({"properties": {"list": {"description": of_list, "items": {
                "description": "A mast.", "properties": {"x": {}},
            }}}})
        };
        assert_eq!(of(&list("From bow to stern."))[1].descriptions, ["From bow to stern.", "A mast."]);
        assert_eq!(of(&list("A mast."))[1].descriptions, ["A mast."]);
    }

    #[test]
    fn a_rule_is_said_in_the_section_where_its_field_is() {
        let rule = |message: &str| json!([{"rule": "x", "message": message}]);
        let root = json!({"x-kubernetes-validations": [
            {"rule": "x", "message": "of the object"},
            {"rule": "x", "message": "of its field", "fieldPath": ".list"},
        ], "properties": {
            "list": {"x-kubernetes-validations": rule("of the list"), "items": {
                "x-kubernetes-validations": rule("of each"), "properties": {"x": {}},
            }},
            "names": {"items": {"x-kubernetes-validations": [{"rule": "self != ''"}]}},
        }});
        let sections = of(&root);
        assert_eq!(
            sections[0].rules().unwrap(),
            "Rules:\n\n- of the object\n- `list`: of its field\n- `list`: of the list\n- `names[]`: `self != ''`"
        );
        assert_eq!(sections[1].rules().unwrap(), "Rules:\n\n- of each");
    }
}
