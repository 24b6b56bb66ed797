// SPDX-License-Identifier: Apache-2.0
//! The entities but tables through a client: one file for each family.

mod arrays;
mod others;
pub mod profiles;
mod replication;

use p4rt::proto::p4rt::{p4_data::Data, Index, P4Data};

fn index(index: i64) -> Option<Index> {
    Some(Index { index })
}

fn bits(value: &[u8]) -> Option<P4Data> {
    Some(P4Data {
        data: Some(Data::Bitstring(value.to_vec().into())),
    })
}
