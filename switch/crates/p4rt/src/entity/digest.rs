// SPDX-License-Identifier: Apache-2.0
//! Switching digests on and off (P4Runtime 1.5 §9.8); the lists themselves are made in `digests`.

use super::array::number;
use super::Verb;
use crate::binding::Binding;
use crate::error::Refusal;
use crate::proto::p4rt::digest_entry::Config;
use crate::proto::p4rt::DigestEntry;
use crate::soft::Soft;
use crate::target::Target;

/// A checked update of a digest's configuration.
pub struct DigestOp {
    verb: Verb,
    id: u32,
    name: String,
    config: Config,
}

/// # Errors
/// NOT_FOUND for an unknown digest, INVALID_ARGUMENT for a missing or negative configuration.
pub fn plan(binding: &Binding, verb: Verb, entry: &DigestEntry) -> Result<DigestOp, Refusal> {
    let digest = binding.digests.get(entry.digest_id)?;
    let name = digest.name.clone();
    if verb == Verb::Delete {
        return Ok(DigestOp {
            verb,
            id: digest.id,
            name,
            config: Config::default(),
        });
    }
    let place = format!("digest {name}");
    let config = entry
        .config
        .ok_or_else(|| Refusal::invalid(format!("{place}: the config is unset")))?;
    for (field, value) in [
        ("max_timeout_ns", config.max_timeout_ns),
        ("max_list_size", i64::from(config.max_list_size)),
        ("ack_timeout_ns", config.ack_timeout_ns),
    ] {
        number(field, value).map_err(|e| e.with_place(&place))?;
    }
    Ok(DigestOp {
        verb,
        id: digest.id,
        name,
        config,
    })
}

impl DigestOp {
    /// # Errors
    /// ALREADY_EXISTS and NOT_FOUND.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let on = soft.digests.contains_key(&self.id);
        match (self.verb, on) {
            (Verb::Insert, true) => {
                return Err(Refusal::exists(format!(
                    "digest {} is switched on already; use MODIFY",
                    self.name
                )))
            }
            (Verb::Modify | Verb::Delete, false) => {
                return Err(Refusal::not_found(format!(
                    "digest {} is not switched on; use INSERT",
                    self.name
                )))
            }
            (Verb::Delete, true) => {
                soft.digests.remove(&self.id);
                target.set_digest(self.id, None);
            }
            (Verb::Insert | Verb::Modify, _) => {
                target.set_digest(self.id, Some(&self.config));
                soft.digests.insert(self.id, self.config);
            }
        }
        Ok(())
    }
}
