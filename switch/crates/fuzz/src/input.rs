// SPDX-License-Identifier: Apache-2.0
//! An input: the name of a document that a target knows, and edits of it. What it becomes is JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::targets::named;

/// Most copies that one edit makes.
const REPEAT_MAX: usize = 64;

/// An input, as a corpus file holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What was found with it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The document's name; the first one where there is none of this name.
    pub base: String,
    pub edits: Vec<Edit>,
}

/// One change at a place (a JSON pointer). One that does not fit, as an edit before it took the place away, does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// Puts a value there.
    Set { at: String, to: Value },
    /// Puts there what is at another place.
    Copy { at: String, from: String },
    /// Takes a member or an item away.
    Remove { at: String },
    /// Makes further copies of an item behind it.
    Repeat { at: String, times: usize },
}

impl Input {
    /// A document as it is.
    pub fn of(base: &str) -> Input {
        Input {
            base: base.to_string(),
            ..Input::default()
        }
    }

    /// The document after all edits.
    pub fn document(&self, bases: &[(String, Value)]) -> Value {
        let mut document = named(bases, &self.base).clone();
        for edit in &self.edits {
            edit.apply(&mut document);
        }
        document
    }
}

impl Edit {
    fn apply(&self, document: &mut Value) {
        match self {
            Edit::Set { at, to } => {
                if let Some(place) = document.pointer_mut(at) {
                    *place = to.clone();
                }
            }
            Edit::Copy { at, from } => {
                let value = document.pointer(from).cloned();
                if let (Some(value), Some(place)) = (value, document.pointer_mut(at)) {
                    *place = value;
                }
            }
            Edit::Remove { at } => match parent(document, at) {
                Some((Value::Object(members), key)) => {
                    members.remove(&key);
                }
                Some((Value::Array(items), key)) => {
                    if let Some(index) = key.parse().ok().filter(|i| *i < items.len()) {
                        items.remove(index);
                    }
                }
                _ => {}
            },
            Edit::Repeat { at, times } => {
                if let Some((Value::Array(items), key)) = parent(document, at) {
                    if let Some(index) = key.parse::<usize>().ok().filter(|i| *i < items.len()) {
                        let copies = vec![items[index].clone(); (*times).min(REPEAT_MAX)];
                        items.splice(index..index, copies);
                    }
                }
            }
        }
    }
}

/// What holds the value at a pointer, and its key or index there.
fn parent<'a>(document: &'a mut Value, at: &str) -> Option<(&'a mut Value, String)> {
    let (parent, key) = at.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    Some((document.pointer_mut(parent)?, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn edits_apply_in_order_and_those_that_do_not_fit_do_nothing() {
        let bases = [("a".to_string(), json!({"x/y": [1, 2], "z": "t"}))];
        let edits = [
            Edit::Repeat {
                at: "/x~1y/1".into(),
                times: 2,
            },
            Edit::Set {
                at: "/x~1y/0".into(),
                to: json!(-1),
            },
            Edit::Copy {
                at: "/x~1y/3".into(),
                from: "/z".into(),
            },
            Edit::Remove { at: "/z".into() },
            Edit::Remove { at: "/z/0".into() },
            Edit::Set {
                at: "/nowhere".into(),
                to: json!(0),
            },
            Edit::Repeat {
                at: "/x~1y/9".into(),
                times: 2,
            },
        ];
        let input = Input {
            base: "a".into(),
            edits: edits.into(),
            finding: None,
        };
        assert_eq!(input.document(&bases), json!({"x/y": [-1, 2, 2, "t"]}));
        let text = serde_json::to_string(&input).unwrap();
        assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
    }
}
