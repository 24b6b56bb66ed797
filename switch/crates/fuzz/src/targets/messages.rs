// SPDX-License-Identifier: Apache-2.0
//! Protobuf messages as JSON (protobuf's own mapping), with bytes also as `{"$hex": "0a0b"}` and `{"$json": …}`.

use base64::prelude::{Engine, BASE64_STANDARD};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use super::seeds;

/// From JSON to messages and back.
pub struct Messages(DescriptorPool);

impl Messages {
    pub fn new() -> Messages {
        Messages(p4rt::proto::descriptors())
    }

    /// The message `name` of this JSON; None when it is none.
    pub fn read<M: Message + Default>(&self, name: &str, json: &Value) -> Option<M> {
        let descriptor = self.0.get_message_by_name(name).expect("a known message");
        let message = DynamicMessage::deserialize(descriptor, plain(json)).ok()?;
        M::decode(message.encode_to_vec().as_slice()).ok()
    }

    /// A message as JSON.
    pub fn write<M: Message>(&self, name: &str, message: &M) -> Value {
        let descriptor = self.0.get_message_by_name(name).expect("a known message");
        let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice());
        let options = SerializeOptions::new().use_proto_field_name(true);
        dynamic
            .expect("the message's own bytes")
            .serialize_with_options(serde_json::value::Serializer, &options)
            .expect("a message is JSON")
    }
}

/// The same with bytes in base64, as protobuf's JSON has them.
fn plain(json: &Value) -> Value {
    match json {
        Value::Object(members) => {
            if let Some(Value::String(hex)) = members.get("$hex") {
                return BASE64_STANDARD.encode(seeds::bytes(hex)).into();
            }
            if let Some(value) = members.get("$json") {
                return BASE64_STANDARD.encode(value.to_string()).into();
            }
            members.iter().map(|(k, v)| (k.clone(), plain(v))).collect()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rt::proto::p4rt::TableEntry;
    use serde_json::json;

    #[test]
    fn bytes_are_base64_or_hexadecimal() {
        let messages = Messages::new();
        let name = "p4.v1.TableEntry";
        let json = json!({"table_id": 7, "metadata": {"$hex": "0aff"}, "priority": 1});
        let entry: TableEntry = messages.read(name, &json).unwrap();
        assert_eq!(
            (entry.table_id, &entry.metadata[..], entry.priority),
            (7, &[10, 255][..], 1)
        );
        let again = messages.write(name, &entry);
        assert_eq!(
            again,
            json!({"table_id": 7, "metadata": "Cv8=", "priority": 1})
        );
        assert!(messages
            .read::<TableEntry>(name, &json!({"table": 7}))
            .is_none());
    }
}
