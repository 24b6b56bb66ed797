// SPDX-License-Identifier: Apache-2.0
//! Protobuf messages as JSON (protobuf's own mapping), with bytes also as `{"$hex": "0a0b"}` and `{"$json": …}`.

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
                return base64(&seeds::bytes(hex)).into();
            }
            if let Some(value) = members.get("$json") {
                return base64(value.to_string().as_bytes()).into();
            }
            members.iter().map(|(k, v)| (k.clone(), plain(v))).collect()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, i| {
            word << 8 | u32::from(*chunk.get(i).unwrap_or(&0))
        });
        for digit in 0..4 {
            text.push(match digit <= chunk.len() {
                true => DIGITS[(word >> (18 - 6 * digit) & 63) as usize] as char,
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rt::proto::p4rt::TableEntry;
    use serde_json::json;

    #[test]
    fn bytes_in_three_forms() {
        assert_eq!(base64(b""), "");
        assert_eq!(
            (base64(b"a"), base64(b"ab"), base64(b"abc")),
            ("YQ==".into(), "YWI=".into(), "YWJj".into())
        );
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
