// SPDX-License-Identifier: Apache-2.0
//! An input: the name of a document that a target knows, and edits of it; and the next input, by edits that the shape of the
//! document suggests. What it becomes is JSON.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::targets::{named, Base};

/// Most edits of one input.
const EDITS_MAX: usize = 12;
/// Most copies that one edit makes.
const REPEAT_MAX: usize = 64;

/// An input, as a corpus file holds it; a `finding` there is for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
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

    /// With another one's edits too, where both are of one document.
    pub fn joined(mut self, other: Input) -> Input {
        if self.base == other.base {
            self.edits.extend(other.edits);
        }
        self.limited()
    }

    /// The last edits, as many as there may be.
    fn limited(mut self) -> Input {
        let surplus = self.edits.len().saturating_sub(EDITS_MAX);
        self.edits.drain(..surplus);
        self
    }

    /// The document after all edits.
    pub fn document(&self, bases: &[Base]) -> Value {
        let mut document = named(bases, &self.base).clone();
        for edit in &self.edits {
            edit.apply(&mut document);
        }
        document
    }
}

impl Edit {
    /// None where it does not fit.
    fn apply(&self, document: &mut Value) -> Option<()> {
        match self {
            Edit::Set { at, to } => *document.pointer_mut(at)? = to.clone(),
            Edit::Copy { at, from } => {
                let value = document.pointer(from)?.clone();
                *document.pointer_mut(at)? = value;
            }
            Edit::Remove { at } => match parent(document, at)? {
                (Value::Object(members), key) => drop(members.remove(&key)),
                (Value::Array(items), key) => drop(items.remove(index(items, &key)?)),
                _ => {}
            },
            Edit::Repeat { at, times } => {
                if let (Value::Array(items), key) = parent(document, at)? {
                    let index = index(items, &key)?;
                    let copies = vec![items[index].clone(); (*times).min(REPEAT_MAX)];
                    items.splice(index..index, copies);
                }
            }
        }
        Some(())
    }
}

/// What holds the value at a pointer, and its key or index there.
fn parent<'a>(document: &'a mut Value, at: &str) -> Option<(&'a mut Value, String)> {
    let (parent, key) = at.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    Some((document.pointer_mut(parent)?, key))
}

fn index(items: &[Value], key: &str) -> Option<usize> {
    key.parse().ok().filter(|index| *index < items.len())
}

/// The places of one document.
pub struct Places {
    pub name: String,
    /// Each with its value, containers without what is in them.
    all: Vec<(String, Value)>,
    /// Places by the last name on the way to them.
    alike: HashMap<String, Vec<usize>>,
}

impl Places {
    pub fn find(name: &str, document: &Value) -> Places {
        let mut places = Places {
            name: name.to_string(),
            all: Vec::new(),
            alike: HashMap::new(),
        };
        places.collect(String::new(), "", document);
        places
    }

    fn collect(&mut self, at: String, key: &str, value: &Value) {
        let alike = self.alike.entry(key.to_string()).or_default();
        alike.push(self.all.len());
        let shell = match value {
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            other => other.clone(),
        };
        self.all.push((at.clone(), shell));
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.collect(format!("{at}/{i}"), key, item);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    self.collect(format!("{at}/{escaped}"), key, member);
                }
            }
            _ => {}
        }
    }

    /// An edit at a random place.
    fn edit(&self, random: &mut SmallRng) -> Edit {
        let (at, value) = self.all.choose(random).expect("a document has a root");
        let at = at.clone();
        match random.random_range(0..100) {
            0..10 => Edit::Remove { at },
            10..20 => Edit::Repeat {
                at,
                times: [1, 1, 1, 2, 3, 20][random.random_range(0..6)],
            },
            20..50 => Edit::Copy {
                from: self.another(&at, random),
                at,
            },
            _ => Edit::Set {
                to: changed(value, random),
                at,
            },
        }
    }

    /// A place whose value may fit where `at` is: mostly one of the same name.
    fn another(&self, at: &str, random: &mut SmallRng) -> String {
        let mut names = at.rsplit('/');
        let name = names.find(|name| name.parse::<usize>().is_err());
        let alike = self.alike.get(name.unwrap_or_default());
        let index = match alike.and_then(|alike| alike.choose(random)) {
            Some(&index) if random.random_ratio(9, 10) => index,
            _ => random.random_range(0..self.all.len()),
        };
        self.all[index].0.clone()
    }
}

/// A variation of `input`, or an edit or a few of a document as it is.
pub fn mutate(input: &Input, places: &[Places], random: &mut SmallRng) -> Input {
    let of = places.iter().find(|p| p.name == input.base);
    let (of, edits) = match of {
        Some(of) if random.random_ratio(9, 10) => (of, input.edits.clone()),
        _ => (places.choose(random).expect("a document"), Vec::new()),
    };
    let mut next = Input {
        edits,
        ..Input::of(&of.name)
    };
    for _ in 0..[1, 1, 1, 2, 2, 4][random.random_range(0..6)] {
        match random.random_ratio(1, 10) && !next.edits.is_empty() {
            true => drop(next.edits.remove(random.random_range(0..next.edits.len()))),
            false => next.edits.push(of.edit(random)),
        }
    }
    next.limited()
}

fn changed(value: &Value, random: &mut SmallRng) -> Value {
    if random.random_ratio(1, 12) {
        let other = json!([null, 0, "", [], {}, true]);
        return other[random.random_range(0..6)].clone();
    }
    match value {
        Value::Number(number) => changed_number(number.as_i64().unwrap_or(0), random),
        Value::String(text) => changed_text(text, random).into(),
        Value::Bool(value) => (!value).into(),
        Value::Null => json!([0, "", "0x00", []])[random.random_range(0..4)].clone(),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
    }
}

fn changed_number(number: i64, random: &mut SmallRng) -> Value {
    match random.random_range(0..8) {
        0 => number.wrapping_add(1).into(),
        1 => number.wrapping_sub(1).into(),
        2 => number.wrapping_mul(2).into(),
        3 => (1i64 << random.random_range(0..63)).into(),
        4 => ((1i64 << random.random_range(0..63)) - 1).into(),
        5 => random.random_range(0..=16).into(),
        6 => {
            let edges = json!([-1, u64::MAX, i64::MIN, i64::MAX, u32::MAX, 0.5]);
            edges[random.random_range(0..6)].clone()
        }
        _ => random.random::<u16>().into(),
    }
}

/// Hexadecimal digits stay so, as frames and values are; what may be base64 stays so, as bytes of messages are.
fn changed_text(text: &str, random: &mut SmallRng) -> String {
    if text.starts_with("0x") || text.starts_with("-0x") {
        let start = ["0x", "0x", "0x", "-0x", ""][random.random_range(0..5)];
        let digit = [None, Some('0'), Some('f')][random.random_range(0..3)];
        let any = |random: &mut SmallRng| char::from_digit(random.random_range(0..16), 16);
        let digits = 0..random.random_range(0..=40);
        let digits = digits.map(|_| digit.or_else(|| any(random)).expect("below 16"));
        let digits: String = digits.collect();
        return format!("{start}{digits}");
    }
    if let Some(bytes) = hex::decode(text).ok().filter(|bytes| bytes.len() >= 8) {
        return changed_frame(bytes, random);
    }
    match random.random_range(0..10) {
        0 => String::new(),
        1 => text.repeat(2),
        2 => "x".repeat(1 << random.random_range(0..12)),
        3 => text.chars().take(text.len() / 2).collect(),
        4..6 => random.random_range(-2..300).to_string(),
        _ => [
            "AA==",
            "AQ==",
            "/w==",
            "AAAA",
            "/////w==",
            "AAAAAAAAAAE=",
            "$valid$",
            "*",
            "../0",
            "é",
        ][random.random_range(0..10)]
        .to_string(),
    }
}

/// Bytes of a frame: much longer, or changed a few times.
fn changed_frame(mut bytes: Vec<u8>, random: &mut SmallRng) -> String {
    match random.random_range(0..4) {
        0 => bytes.resize(bytes.len() + random.random_range(0..2000), random.random()),
        _ => {
            for _ in 0..random.random_range(1..8) {
                conformance::mutate::change(random, &mut bytes, &[]);
            }
        }
    }
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

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
        };
        assert_eq!(input.document(&bases), json!({"x/y": [-1, 2, 2, "t"]}));
        let text = serde_json::to_string(&input).unwrap();
        assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
    }

    #[test]
    fn one_seed_gives_one_sequence_of_inputs() {
        let document = json!({"a": [1, {"b": "0x0800"}], "frame": "00112233445566778899"});
        let places = [Places::find("one", &document)];
        let sequence = |seed| -> Vec<Input> {
            let mut random = SmallRng::seed_from_u64(seed);
            let input = Input {
                base: "one".into(),
                ..Input::default()
            };
            (0..200)
                .map(|_| mutate(&input, &places, &mut random))
                .collect()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
        assert!(sequence(1).iter().all(|i| i.edits.len() <= EDITS_MAX));
        let documents: std::collections::HashSet<String> = sequence(3)
            .iter()
            .map(|i| {
                i.document(&[("one".to_string(), document.clone())])
                    .to_string()
            })
            .collect();
        assert!(documents.len() > 50, "{} documents", documents.len());
    }
}
