//! Every rule of every CRD refuses what it is for, with its message, and lets through what it is not for.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::rule_cases::{self, Case};
use crate::server::{answer, api_of, create, merge, ours, sample, workspace};

/// Where a rule stands and what it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    crd: String,
    path: String,
    field: String,
    message: String,
}

fn rules_of(crd: &Value) -> Vec<Rule> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    let mut rules = Vec::new();
    collect(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", name, &mut rules);
    rules
}

fn collect(schema: &Value, path: &str, crd: &str, rules: &mut Vec<Rule>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        rules.push(Rule {
            crd: crd.to_owned(),
            path: path.to_owned(),
            field: text("fieldPath"),
            message: text("message"),
        });
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(property, &path, crd, rules);
    }
    if let Some(items) = schema.get("items") {
        collect(items, &format!("{path}[]"), crd, rules);
    }
}

#[test]
fn every_rule_accepts_and_refuses_with_its_message() -> Result<()> {
    testkit::run(async {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("rules").await?;
        let all: Vec<Rule> = api::crds().iter().flat_map(rules_of).collect();
        let mut covered = BTreeSet::new();
        let mut wrong = Vec::new();
        for case in rule_cases::all() {
            let rule = rule_for(&case, &all)?;
            if let Err(error) = check(&client, &namespace, &case, rule).await {
                wrong.push(format!("{} {} {}: {error:#}", case.sample, case.path, case.rule));
            }
            covered.insert(rule.clone());
        }
        wrong.extend(
            all.iter().filter(|rule| !covered.contains(rule)).map(|rule| format!("no case: {rule:?}")),
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
}

#[test]
fn what_works_with_the_original_is_accepted() -> Result<()> {
    testkit::run(async {
        let (plane, client) = ours().await?;
        let namespace = plane.namespace("odd").await?;
        for (name, patch) in rule_cases::odd_but_working() {
            let mut object = sample(name)?;
            merge(&mut object["spec"], &patch);
            let answer = create(&client, &namespace, &object, true).await?;
            answer.map_err(|refusal| anyhow::anyhow!("{name} with {patch}: {refusal}"))?;
        }
        Ok(())
    })
}

/// The rule that a case is about: the one at its path that has its words in the message or the field.
fn rule_for<'a>(case: &Case, all: &'a [Rule]) -> Result<&'a Rule> {
    let kind = sample(case.sample)?;
    let (group, kind) =
        (case.sample.split('/').next().unwrap_or_default(), kind["kind"].as_str().unwrap_or_default());
    let plural = format!("{}s.{group}", kind.to_lowercase());
    let mut found = all.iter().filter(|rule| {
        rule.crd == plural
            && rule.path == case.path
            && (rule.field == case.rule || rule.message.contains(&case.rule))
    });
    let first =
        found.next().with_context(|| format!("no rule of {plural} at {} has {}", case.path, case.rule))?;
    match found.next() {
        None => Ok(first),
        Some(second) => anyhow::bail!("{} fits two rules: {first:?}, {second:?}", case.rule),
    }
}

async fn check(client: &Client, namespace: &str, case: &Case, rule: &Rule) -> Result<()> {
    let base = sample(case.sample)?;
    let changed = |patch: &Value| {
        let mut object = base.clone();
        merge(&mut object["spec"], patch);
        object
    };
    let (accepted, refused) = if let Some(before) = &case.before {
        let stored = changed(before);
        let name = stored["metadata"]["name"].as_str().unwrap_or_default();
        let api = api_of(client, namespace, &stored)?;
        create(client, namespace, &stored, false).await?.map_err(anyhow::Error::msg)?;
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        let change = async |patch: &Value| {
            let patch = Patch::Merge(serde_json::json!({ "spec": patch }));
            answer(api.patch(name, &parameters, &patch).await)
        };
        let answers = (change(&case.accepted).await?, change(&case.refused).await?);
        api.delete(name, &kube::api::DeleteParams::default()).await?;
        answers
    } else {
        let accepted = create(client, namespace, &changed(&case.accepted), true).await?;
        (accepted, create(client, namespace, &changed(&case.refused), true).await?)
    };
    if let Err(refusal) = accepted {
        anyhow::bail!("should be accepted: {refusal}");
    }
    match refused {
        Ok(_) => anyhow::bail!("should be refused"),
        Err(refusal) if !refusal.contains(&rule.message) => {
            anyhow::bail!("refused without the message {:?}: {refusal}", rule.message)
        }
        Err(refusal) => {
            let field = format!("{}{}", rule.path.split('[').next().unwrap_or_default(), rule.field);
            let named = refusal.contains(&field) || rule.path.contains('[');
            anyhow::ensure!(named, "the refusal does not name {field}: {refusal}");
            Ok(())
        }
    }
}

/// Users read what is stricter than with the original in one place.
#[test]
fn differences_page_lists_every_rule() -> Result<()> {
    let page = std::fs::read_to_string(workspace().join("docs/differences.md"))?;
    let missing: BTreeSet<String> = api::crds()
        .iter()
        .flat_map(rules_of)
        .map(|rule| rule.message)
        .filter(|message| !page.contains(message.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/differences.md does not have: {missing:#?}");
    Ok(())
}
