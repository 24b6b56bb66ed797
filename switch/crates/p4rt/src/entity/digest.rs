// SPDX-License-Identifier: Apache-2.0
//! Switching digests on and off (P4Runtime 1.5 §9.8); the lists themselves are made in `digests`.

use super::array::number;
use super::{Planner, Verb};
use crate::error::{refuse, At, Checked};
use crate::proto::p4rt::DigestEntry;
use crate::target::Target;

impl Planner<'_> {
    /// # Errors
    /// NOT_FOUND for an unknown digest, INVALID_ARGUMENT for a missing or negative configuration; when it is applied
    /// ALREADY_EXISTS and NOT_FOUND.
    pub(super) fn digest(&mut self, entry: &DigestEntry) -> Checked {
        let digest = self.binding.digests.get(entry.digest_id)?;
        let config = entry.config.filter(|_| self.verb != Verb::Delete);
        match config {
            Some(config) => {
                number("max_timeout_ns", config.max_timeout_ns).at(digest)?;
                number("max_list_size", config.max_list_size.into()).at(digest)?;
                number("ack_timeout_ns", config.ack_timeout_ns).at(digest)?;
            }
            None if self.verb == Verb::Delete => {}
            None => refuse!("{digest}: the config is unset"),
        }
        let (id, verb, place) = (digest.id, self.verb, digest.to_string());
        self.op(1, move |target: &mut Target| {
            match (verb, target.soft.digests.contains_key(&id)) {
                (Verb::Insert, true) => refuse!(AlreadyExists, "{place} is on already; use MODIFY"),
                (Verb::Insert, false) | (_, true) => {}
                _ => refuse!(NotFound, "{place} is off; use INSERT"),
            }
            match config {
                Some(config) => target.soft.digests.insert(id, config),
                None => target.soft.digests.remove(&id),
            };
            target.set_digest(id, config.as_ref());
            Ok(())
        })
    }
}
