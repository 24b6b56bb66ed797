// SPDX-License-Identifier: Apache-2.0
//! `Pipeline`: a compiled program with its state, and the packet path that the device drives.

use crate::effects::Effects;
use crate::entry::Nanos;
use crate::error::LoadError;
use crate::packet::Packet;
use crate::schema::{FieldListId, Schema};
use crate::state::State;

/// Fields of `standard_metadata` that the switch itself reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Std {
    /// `ingress_port`
    IngressPort,
    /// `egress_spec`
    EgressSpec,
    /// `egress_port`
    EgressPort,
    /// `instance_type`
    InstanceType,
    /// `packet_length`
    PacketLength,
    /// `enq_timestamp`, µs
    EnqTimestamp,
    /// `enq_qdepth`, packets
    EnqQdepth,
    /// `deq_timedelta`, µs
    DeqTimedelta,
    /// `deq_qdepth`, packets
    DeqQdepth,
    /// `ingress_global_timestamp`, µs
    IngressGlobalTimestamp,
    /// `egress_global_timestamp`, µs
    EgressGlobalTimestamp,
    /// `mcast_grp`
    McastGrp,
    /// `egress_rid`
    EgressRid,
    /// `checksum_error`
    ChecksumError,
    /// `parser_error`
    ParserError,
    /// `priority`
    Priority,
    /// `qid` (queueing_metadata of older programs)
    Qid,
}

/// A field resolved by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub(crate) slot: u32,
    /// Width in bits.
    pub width: u32,
}

/// A program, compiled, and its state.
pub struct Pipeline {
    pub(crate) schema: Schema,
    pub(crate) state: State,
}

impl Pipeline {
    /// Loads p4c's BMv2 JSON of a v1model program. Anything unsupported is refused here, naming the JSON path.
    pub fn from_json(json: &[u8]) -> Result<Pipeline, LoadError> {
        let _ = json;
        todo!()
    }

    /// A packet for this pipeline, reset.
    pub fn new_packet(&self) -> Box<Packet> {
        todo!()
    }

    /// Metadata to zero, headers invalid; keeps capacity and the frame.
    pub fn reset(&self, pkt: &mut Packet) {
        let _ = pkt;
        todo!()
    }

    /// Metadata to zero; headers stay (an E2E clone, before its field list is copied).
    pub fn reset_metadata(&self, pkt: &mut Packet) {
        let _ = pkt;
        todo!()
    }

    /// Parser and verification of checksums; sets `parser_error` and `checksum_error`.
    pub fn parse(&mut self, pkt: &mut Packet, fx: &mut Effects) {
        let _ = (pkt, fx);
        todo!()
    }

    /// The ingress control. Digests are sampled at its end.
    pub fn ingress(&mut self, pkt: &mut Packet, now: Nanos, fx: &mut Effects) {
        let _ = (pkt, now, fx);
        todo!()
    }

    /// The egress control.
    pub fn egress(&mut self, pkt: &mut Packet, now: Nanos, fx: &mut Effects) {
        let _ = (pkt, now, fx);
        todo!()
    }

    /// Updates checksums and emits headers: `pkt.frame()` is then the frame to send, truncated where asked.
    pub fn deparse(&mut self, pkt: &mut Packet) {
        let _ = pkt;
        todo!()
    }

    /// Reads a field of `standard_metadata`; 0 when the program has none.
    #[inline]
    pub fn std_get(&self, pkt: &Packet, field: Std) -> u64 {
        let _ = (pkt, field);
        todo!()
    }

    /// Writes a field of `standard_metadata`, cut to its width; nothing when the program has none.
    #[inline]
    pub fn std_set(&self, pkt: &mut Packet, field: Std, value: u64) {
        let _ = (pkt, field, value);
        todo!()
    }

    /// True when the program has this field.
    pub fn has_std(&self, field: Std) -> bool {
        let _ = field;
        todo!()
    }

    /// Copies the fields of a list (preserved across clone, resubmit, recirculate).
    pub fn copy_field_list(&self, from: &Packet, to: &mut Packet, list: FieldListId) {
        let _ = (from, to, list);
        todo!()
    }

    /// Resolves a field, e.g. `scalars.userMetadata.queue_id` or `ipv4.ttl`; also by the last component
    /// of a user metadata field's name, as in `queue_id`, when exactly one has it.
    pub fn field_by_name(&self, name: &str) -> Option<FieldRef> {
        let _ = name;
        todo!()
    }

    /// Low 64 bits of a field.
    #[inline]
    pub fn field_get(&self, pkt: &Packet, field: FieldRef) -> u64 {
        let _ = (pkt, field);
        todo!()
    }

    /// Sets the low 64 bits of a field, cut to its width.
    #[inline]
    pub fn field_set(&self, pkt: &mut Packet, field: FieldRef, value: u64) {
        let _ = (pkt, field, value);
        todo!()
    }

    /// The egress_spec that means drop; 511 unless set.
    pub fn drop_port(&self) -> u32 {
        todo!()
    }

    /// Seeds the program's `random` and selectors.
    pub fn seed(&mut self, seed: u64) {
        let _ = seed;
        todo!()
    }

    /// Names and shapes of everything that the control plane can reach.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}
