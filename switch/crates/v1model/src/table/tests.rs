// SPDX-License-Identifier: Apache-2.0
//! Tables against naive models: every match kind, entry life, errors, ageing, and 65,536 entries.

mod ageing;
mod errors;
mod model;
mod scale;

use super::records::EntryIndex;
use super::*;
use crate::bits::{ActionCall, Bits, Entry, EntryKey, KeyMatch};
use crate::error::{ControlError, ErrorKind};
use crate::schema::{ActionId, DirectMeterSchema, KeySchema, MeterUnit, ParamSchema, TableId};

/// Two actions: `set(bit<32> value)` and `drop()`.
pub fn actions() -> Vec<ActionSchema> {
    vec![
        ActionSchema {
            id: ActionId(0),
            name: "MyIngress.set".into(),
            params: vec![ParamSchema {
                name: "value".into(),
                width: 32,
            }],
        },
        ActionSchema {
            id: ActionId(1),
            name: "MyIngress.drop".into(),
            params: vec![],
        },
    ]
}

pub fn schema(keys: &[(&str, MatchKind, u32)], max_size: u32) -> TableSchema {
    TableSchema {
        id: TableId(0),
        name: "MyIngress.t".into(),
        keys: keys
            .iter()
            .map(|&(name, kind, width)| KeySchema {
                name: name.into(),
                kind,
                width,
            })
            .collect(),
        max_size,
        actions: vec![ActionId(0), ActionId(1)],
        direct_counter: Some("MyIngress.c".into()),
        direct_meter: Some(DirectMeterSchema {
            name: "MyIngress.m".into(),
            unit: MeterUnit::Packets,
        }),
        profile: None,
        support_timeout: true,
        const_entries: None,
        default_action: Some(ActionCall {
            action: ActionId(1),
            args: vec![],
        }),
        const_default_action: false,
    }
}

pub fn set(value: u64) -> ActionCall {
    ActionCall {
        action: ActionId(0),
        args: vec![value],
    }
}

pub fn bits(width: u32, value: u128) -> Bits {
    Bits::from_u128(width, value).unwrap()
}

pub fn entry(matches: Vec<KeyMatch>, priority: i32, value: u64) -> Entry {
    Entry {
        key: EntryKey { matches, priority },
        action: EntryAction::Direct(set(value)),
        idle_timeout: 0,
        cookie: value,
    }
}

/// A table with its schema, used as the control plane uses it.
pub struct Fixture {
    pub table: Table,
}

impl Fixture {
    pub fn new(schema: TableSchema) -> Self {
        let program = Schema {
            tables: vec![schema],
            actions: actions(),
            ..Schema::default()
        };
        let table = Table::new(&Arc::new(program), TableId(0)).unwrap();
        Fixture { table }
    }

    pub fn insert(&mut self, e: &Entry, now: u64) -> Result<EntryIndex, ControlError> {
        let EntryAction::Direct(call) = &e.action else {
            panic!("a direct table")
        };
        let word = self.word(call)?;
        self.table.insert(e, word, &call.args, now)
    }

    pub fn modify(&mut self, e: &Entry, now: u64) -> Result<(), ControlError> {
        let EntryAction::Direct(call) = &e.action else {
            panic!("a direct table")
        };
        let word = self.word(call)?;
        self.table.modify(e, word, &call.args, now).map(|_| ())
    }

    pub fn word(&self, call: &ActionCall) -> Result<ActionWord, ControlError> {
        let own = &self.table.schema().actions;
        check_call(own, &actions(), call).at("table MyIngress.t")
    }

    pub fn is_empty(&self) -> bool {
        self.table.entries() == 0
    }

    /// The argument of `set` for this key; `None` on a miss.
    pub fn look(&mut self, key: &[u64], now: u64) -> Option<u64> {
        let lookup = self.table.lookup(key, now, 100);
        match (lookup.hit, lookup.target) {
            (true, Target::Action(ActionId(0), args)) => Some(args[0]),
            (false, Target::Action(ActionId(1), [])) => None,
            other => panic!("unexpected {other:?}"),
        }
    }
}
