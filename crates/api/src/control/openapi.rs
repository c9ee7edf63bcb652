//! The OpenAPI document of the control API, made of its types: `docs/openapi.json`.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::*;

/// Where the document is kept.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

/// Line that writes it anew.
const UPDATE: &str = "UPDATE_OPENAPI=1 cargo test -p braid-api openapi";

type Make = fn(&mut SchemaGenerator) -> Schema;

/// A query of a request: name, description and schema.
type Query = (&'static str, &'static str, fn() -> Value);

/// One request of the API.
struct Request {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    query: Option<Query>,
    body: Option<Make>,
    answer: Make,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn get(path: &'static str, summary: &'static str, answer: Make) -> Request {
    Request {
        method: "get",
        path,
        summary,
        query: None,
        body: None,
        answer,
    }
}

const fn put(path: &'static str, summary: &'static str, body: Make, answer: Make) -> Request {
    Request {
        method: "put",
        body: Some(body),
        ..get(path, summary, answer)
    }
}

const REQUESTS: &[Request] = &[
    Request {
        query: Some((
            "connections",
            "Whether the connections at the same moment are told as well",
            || json!({ "type": "boolean" }),
        )),
        ..get(
            "/v1/status",
            "What this end is and has set up",
            of::<Status>,
        )
    },
    get(
        "/v1/connections",
        "Connections of the namespace",
        of::<Connections>,
    ),
    get("/v1/counters", "Counters of the namespace", of::<Counters>),
    Request {
        query: Some((
            "after",
            "Only events that are newer than this number",
            || json!({ "type": "integer", "format": "uint64", "minimum": 0 }),
        )),
        ..get("/v1/events", "Events of paths and links", of::<Events>)
    },
    get(
        "/v1/control",
        "Policy of this end: its estimates, the weights that it has decided, and why",
        of::<ControlStatus>,
    ),
    get(
        "/v1/rules",
        "Rules about hosts behind the device, and what has met them",
        of::<Rules>,
    ),
    put(
        "/v1/accesses/{name}",
        "Changes an access",
        of::<AccessChange>,
        of::<AccessStatus>,
    ),
    put(
        "/v1/scheduler",
        "Changes how this end shares its sending; answers with what holds now",
        of::<SchedulerChange>,
        of::<SchedulerChange>,
    ),
    put(
        "/v1/priorities",
        "Changes the order of the accesses; answers with what holds now",
        of::<Priorities>,
        of::<Priorities>,
    ),
    put(
        "/v1/weights",
        "Changes the shares of the accesses; answers with what holds now",
        of::<Weights>,
        of::<Weights>,
    ),
    put(
        "/v1/weights/down",
        "At the device: has the proxy change the shares of downlinks; answers with what holds now",
        of::<Weights>,
        of::<Weights>,
    ),
    put(
        "/v1/connections/{token}/weights",
        "Gives one connection shares of its own",
        of::<Weights>,
        of::<Weights>,
    ),
    Request {
        method: "delete",
        ..get(
            "/v1/connections/{token}/weights",
            "Gives one connection the shares of all; answers with these",
            of::<Weights>,
        )
    },
];

fn content(schema: &Schema) -> Value {
    json!({ "application/json": { "schema": schema } })
}

impl Request {
    fn parameters(&self) -> Vec<Value> {
        let in_path = self.path.split(['{', '}']).skip(1).step_by(2).map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let in_query = self.query.iter().map(|(name, description, schema)| {
            json!({ "name": name, "in": "query", "description": description, "schema": schema() })
        });
        in_path.chain(in_query).collect()
    }

    fn operation(&self, generator: &mut SchemaGenerator) -> Value {
        let answer = (self.answer)(generator);
        let refused = generator.subschema_for::<ApiError>();
        let mut operation = json!({
            "summary": self.summary,
            "responses": {
                "200": { "description": "Done", "content": content(&answer) },
                "default": { "description": "Refused", "content": content(&refused) },
            },
        });
        let parameters = self.parameters();
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = self.body {
            let body = body(generator);
            operation["requestBody"] = json!({ "required": true, "content": content(&body) });
        }
        operation
    }
}

fn document() -> Value {
    // The dialect of OpenAPI 3.1.
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut paths: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    for request in REQUESTS {
        let operation = request.operation(&mut generator);
        let methods = paths.entry(request.path).or_default();
        let before = methods.insert(request.method, operation);
        assert!(
            before.is_none(),
            "{} {} twice",
            request.method,
            request.path
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Braid's control API",
            "version": "1",
            "description": "HTTP/1.1 on a Unix socket, by default /run/braid/control.sock. Times \
                            named t_ns are CLOCK_MONOTONIC, in nanoseconds.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

/// Schema of one of these words.
fn words(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

pub(super) fn access_kind(_: &mut SchemaGenerator) -> Schema {
    words(&braid_core::AccessKind::NAMES)
}

pub(super) fn access_state(_: &mut SchemaGenerator) -> Schema {
    words(&braid_core::AccessState::ALL.map(braid_core::AccessState::as_str))
}

pub(super) fn role(_: &mut SchemaGenerator) -> Schema {
    words(&braid_core::Role::ALL.map(braid_core::Role::as_str))
}

pub(super) fn engine(_: &mut SchemaGenerator) -> Schema {
    words(&braid_core::Engine::ALL.map(braid_core::Engine::as_str))
}

pub(super) fn engines(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": engine(generator) })
}

pub(super) fn optional_engine(_: &mut SchemaGenerator) -> Schema {
    let words = braid_core::Engine::ALL.map(|e| Some(e.as_str()));
    let words: Vec<_> = words.into_iter().chain([None]).collect();
    json_schema!({ "type": ["string", "null"], "enum": words })
}

/// Schema of a rule, as `[[rule]]` has it.
pub(super) fn rule(_: &mut SchemaGenerator) -> Schema {
    let values = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string" },
            "client": values("Hosts behind the device: addresses, prefixes, MAC addresses"),
            "user": values("Users of the device, by name or number"),
            "unit": values("Units of the device, by name, or by the path of their control group"),
            "to": values("Addresses and prefixes of the destination"),
            "domain": values("Names of the destination, or *. and a name for all below it"),
            "protocol": values("Protocols above IP, by name or number"),
            "port": values("Ports of the destination, or ranges of them"),
            "dscp": values("Code points of differentiated services, by name or number"),
            "class": { "type": "string", "description": "Goes over the bond, in this class" },
            "direct": values("Leaves by the first of these accesses that works"),
            "block": { "type": "boolean", "description": "Is refused" },
        },
    })
}

/// Schema of the steering of a class, as `[class.NAME]` has it.
pub(super) fn class(generator: &mut SchemaGenerator) -> Schema {
    let number = |about: &str| json!({ "type": "number", "description": about });
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["mode"],
        "properties": {
            "mode": words(&braid_core::class::MODES),
            "wrr_mode": wrr_mode(generator),
            "weights": {
                "type": "object",
                "additionalProperties": { "type": "number" },
                "description": "Shares by access",
            },
            "order": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Accesses, the preferred first",
            },
            "standby": { "type": "boolean", "description": "Whether others stand by" },
            "primary": { "type": "string", "description": "Access on which every packet leaves" },
            "max_rtt_ms": number("Greatest round-trip time of an access, milliseconds"),
            "max_loss_percent": number("Greatest share of packets that an access loses, percent"),
            "reinject": { "type": "boolean" },
        },
    })
}

pub(super) fn wrr_mode(_: &mut SchemaGenerator) -> Schema {
    use braid_core::sched::WrrMode;
    words(&[WrrMode::Strict, WrrMode::WorkConserving].map(WrrMode::as_str))
}

#[test]
fn the_openapi_document_is_that_of_these_types() {
    let made = document();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
        std::fs::write(FILE, text).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    let kept: Value = serde_json::from_str(&kept).unwrap_or_default();
    assert!(kept == made, "{FILE} is not that of the types: {UPDATE}");
}

/// The schema of a rule is written by hand, and takes no other keys.
#[test]
fn the_schema_of_a_rule_has_all_keys_that_one_may_have() {
    let schema = rule(&mut SchemaGenerator::default()).to_value();
    for text in [
        r#"{"name": "a", "client": "10.0.0.1", "to": "10.0.0.2", "domain": "a.org", "protocol": "tcp",
            "port": 1, "dscp": 1, "class": "default"}"#,
        r#"{"user": "a", "unit": "a.service", "direct": "nr"}"#,
        r#"{"block": true}"#,
    ] {
        let rule: braid_core::rules::Rule = serde_json::from_str(text).unwrap();
        let written = serde_json::to_value(&rule).unwrap();
        for key in written.as_object().unwrap().keys() {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
    }
}

/// Follows `$ref`s: a name that nothing defines would make the document useless.
#[test]
fn every_schema_that_openapi_refers_to_is_there() {
    let document = document();
    let text = document.to_string();
    let mut names: Vec<&str> = text.split("\"$ref\":\"").skip(1).collect();
    assert!(names.len() > 20, "{}", names.len());
    for name in &mut names {
        let pointer = name.split('"').next().unwrap_or_default();
        let pointer = pointer.strip_prefix('#').expect("a reference within");
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}
