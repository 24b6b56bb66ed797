// SPDX-License-Identifier: Apache-2.0
//! `Unique`: names and ids that may be declared once, and where they were.

use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Display;
use std::hash::Hash;

use super::{shorten, Json, Load};

/// The names or ids of one kind of objects.
pub(crate) struct Unique<'a, K> {
    /// "header", "action id".
    what: &'static str,
    places: HashMap<K, Json<'a>>,
}

impl<'a, K: Eq + Hash + Copy + Display> Unique<'a, K> {
    pub fn new(what: &'static str) -> Self {
        Unique {
            what,
            places: HashMap::new(),
        }
    }

    /// Declares `key` at `json`.
    pub fn add(&mut self, key: K, json: &Json<'a>) -> Load<()> {
        match self.places.entry(key) {
            Entry::Vacant(place) => {
                place.insert(json.clone());
                Ok(())
            }
            Entry::Occupied(first) => json.fail(format!(
                "{} {} is declared a second time; the first is {}",
                self.what,
                shorten(&key.to_string()),
                first.get().path()
            )),
        }
    }
}

impl<'a> Unique<'a, &'a str> {
    /// Declares the name of the object `json`.
    pub fn add_name_of(&mut self, json: &Json<'a>) -> Load<&'a str> {
        let name_json = json.get("name")?;
        let name = name_json.str()?;
        self.add(name, &name_json)?;
        Ok(name)
    }
}

impl<'a> Unique<'a, i64> {
    /// Declares the id of the object `json`.
    pub fn numbered(&mut self, json: &Json<'a>) -> Load<i64> {
        let id_json = json.get("id")?;
        let id = id_json.i64()?;
        self.add(id, &id_json)?;
        Ok(id)
    }
}

impl<'a> Unique<'a, u64> {
    /// Declares the id, which is not negative, of the object `json`.
    pub fn counted(&mut self, json: &Json<'a>) -> Load<u64> {
        let id_json = json.get("id")?;
        let id = id_json.u64()?;
        self.add(id, &id_json)?;
        Ok(id)
    }
}
