// SPDX-License-Identifier: Apache-2.0
//! Control plane of action profiles and selectors: members and groups by the ids that the client gives them.

use super::{ControlResult, GroupMember};
use crate::entry::ActionCall;
use crate::pipeline::Pipeline;
use crate::schema::ProfileId;

impl Pipeline {
    /// Adds a profile member.
    pub fn profile_member_insert(
        &mut self,
        profile: ProfileId,
        member: u32,
        call: &ActionCall,
    ) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].insert_member(
            schema,
            &self.schema.actions,
            member,
            call,
        )
    }

    /// Changes a profile member.
    pub fn profile_member_modify(
        &mut self,
        profile: ProfileId,
        member: u32,
        call: &ActionCall,
    ) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].modify_member(
            schema,
            &self.schema.actions,
            member,
            call,
        )
    }

    /// Deletes a profile member that no entry and no group uses.
    pub fn profile_member_delete(&mut self, profile: ProfileId, member: u32) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].delete_member(schema, member)
    }

    /// A profile member.
    pub fn profile_member_get(&self, profile: ProfileId, member: u32) -> Option<ActionCall> {
        self.state.profiles[profile.index()].get_member(&self.schema.actions, member)
    }

    /// Ids of all members, ascending.
    pub fn profile_members(&self, profile: ProfileId) -> Vec<u32> {
        self.state.profiles[profile.index()].member_ids()
    }

    /// Number of members.
    pub fn profile_len(&self, profile: ProfileId) -> usize {
        self.state.profiles[profile.index()].members()
    }

    /// Appends up to `max` members from the id `cursor` on (0 to begin), by their ids; returns the next cursor, None at the
    /// end.
    pub fn profile_member_scan(
        &self,
        profile: ProfileId,
        cursor: u32,
        max: usize,
        out: &mut Vec<(u32, ActionCall)>,
    ) -> Option<u32> {
        self.state.profiles[profile.index()].scan_members(&self.schema.actions, cursor, max, out)
    }

    /// The same of groups, with their members and maximal sizes.
    pub fn profile_group_scan(
        &self,
        profile: ProfileId,
        cursor: u32,
        max: usize,
        out: &mut Vec<(u32, Vec<GroupMember>, u32)>,
    ) -> Option<u32> {
        self.state.profiles[profile.index()].scan_groups(cursor, max, out)
    }

    /// Adds a group (selectors only). `max_size` limits the sum of its weights; 0 does not.
    pub fn profile_group_insert(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].insert_group(schema, group, members, max_size)
    }

    /// Replaces the members of a group.
    pub fn profile_group_modify(
        &mut self,
        profile: ProfileId,
        group: u32,
        members: &[GroupMember],
    ) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].modify_group(schema, group, members)
    }

    /// Deletes a group that no entry uses.
    pub fn profile_group_delete(&mut self, profile: ProfileId, group: u32) -> ControlResult {
        let schema = &self.schema.profiles[profile.index()];
        self.state.profiles[profile.index()].delete_group(schema, group)
    }

    /// Members and maximal size of a group.
    pub fn profile_group_get(
        &self,
        profile: ProfileId,
        group: u32,
    ) -> Option<(Vec<GroupMember>, u32)> {
        self.state.profiles[profile.index()].get_group(group)
    }

    /// Ids of all groups, ascending.
    pub fn profile_groups(&self, profile: ProfileId) -> Vec<u32> {
        self.state.profiles[profile.index()].group_ids()
    }
}
