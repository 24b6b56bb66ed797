// SPDX-License-Identifier: Apache-2.0
//! JSON ⇄ `google.protobuf.Struct`, in which numbers are doubles.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Number};

/// A JSON object as a message; anything else is an empty one.
pub fn encode(json: serde_json::Value) -> Struct {
    match value(json).kind {
        Some(Kind::StructValue(message)) => message,
        _ => Struct::default(),
    }
}

fn value(json: serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(b) => Kind::BoolValue(b),
        serde_json::Value::Number(n) => Kind::NumberValue(n.as_f64().unwrap_or_default()),
        serde_json::Value::String(s) => Kind::StringValue(s),
        serde_json::Value::Array(all) => Kind::ListValue(ListValue {
            values: all.into_iter().map(value).collect(),
        }),
        serde_json::Value::Object(all) => Kind::StructValue(Struct {
            fields: all.into_iter().map(|(k, v)| (k, value(v))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}

/// A message as JSON; whole numbers are integers.
pub fn decode(message: Struct) -> Map<String, serde_json::Value> {
    let fields = message.fields.into_iter();
    fields.map(|(key, value)| (key, json(value))).collect()
}

fn json(value: Value) -> serde_json::Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(b)) => b.into(),
        Some(Kind::NumberValue(n)) if n.fract() == 0.0 && n.abs() < 9e15 => (n as i64).into(),
        Some(Kind::NumberValue(n)) => {
            Number::from_f64(n).map_or(serde_json::Value::Null, Into::into)
        }
        Some(Kind::StringValue(s)) => s.into(),
        Some(Kind::ListValue(all)) => all.values.into_iter().map(json).collect(),
        Some(Kind::StructValue(s)) => decode(s).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back() {
        let json = serde_json::json!({"a": [1, 2.5, null, "x", true, {"b": -3}], "c": {}});
        let back = serde_json::Value::Object(decode(encode(json.clone())));
        assert_eq!(back, json);
    }
}
