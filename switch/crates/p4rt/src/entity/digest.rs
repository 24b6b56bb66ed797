// SPDX-License-Identifier: Apache-2.0
//! Switching digests on and off (P4Runtime 1.5 §9.8); the lists themselves are made in `digests`.

use super::array::number;
use super::{Op, Verb};
use crate::binding::Binding;
use crate::error::{refusal, refuse, At, Refusal};
use crate::proto::p4rt::digest_entry::Config;
use crate::proto::p4rt::DigestEntry;
use crate::target::Target;

/// # Errors
/// NOT_FOUND for an unknown digest, INVALID_ARGUMENT for a missing or negative configuration; when it is applied
/// ALREADY_EXISTS and NOT_FOUND.
pub fn plan(binding: &Binding, verb: Verb, entry: &DigestEntry) -> Result<Op, Refusal> {
    let digest = binding.digests.get(entry.digest_id)?;
    let place = format!("digest {}", digest.name);
    let config = match (verb, entry.config) {
        (Verb::Delete, _) => None,
        (_, Some(config)) => Some(config),
        (_, None) => refuse!(invalid, "{place}: the config is unset"),
    };
    let Config {
        max_timeout_ns,
        max_list_size,
        ack_timeout_ns,
    } = config.unwrap_or_default();
    for (field, value) in [
        ("max_timeout_ns", max_timeout_ns),
        ("max_list_size", i64::from(max_list_size)),
        ("ack_timeout_ns", ack_timeout_ns),
    ] {
        number(field, value).at(&place)?;
    }
    let id = digest.id;
    Ok(Op::new(1, move |target: &mut Target| {
        let is_on = target.soft.digests.contains_key(&id);
        match (verb, is_on) {
            (Verb::Insert, true) => {
                return Err(refusal!(
                    exists,
                    "{place} is switched on already; use MODIFY"
                ))
            }
            (Verb::Modify | Verb::Delete, false) => {
                return Err(refusal!(
                    not_found,
                    "{place} is not switched on; use INSERT"
                ))
            }
            _ => {}
        }
        match config {
            Some(config) => target.soft.digests.insert(id, config),
            None => target.soft.digests.remove(&id),
        };
        target.set_digest(id, config.as_ref());
        Ok(())
    }))
}
