// SPDX-License-Identifier: Apache-2.0
//! Table entries through a client: one file for each idea.

mod direct;
mod entries;
mod reads;
mod refusals;

use crate::common::*;
use p4rt::proto::p4rt::TableEntry;

fn table(ids: &Ids, alias: &str) -> TableEntry {
    TableEntry {
        table_id: ids.tables(alias),
        ..Default::default()
    }
}

fn ternary_entry(ids: &Ids, priority: i32) -> TableEntry {
    TableEntry {
        r#match: vec![
            ternary(1, &[0x0a, 0, 0, 0], &[0xff, 0, 0, 0]),
            range(2, &[1], &[0x0f, 0xfe]),
            optional(3, &[4]),
            exact(4, &[1]),
        ],
        action: ids.action("rewrite", &[&[2, 0, 0, 0, 0, 7], &[0x0a, 0xbc]]),
        priority,
        ..table(ids, "ternary_table")
    }
}
