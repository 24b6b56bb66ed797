// SPDX-License-Identifier: Apache-2.0
//! Action profile members, and groups with watched ports (P4Runtime 1.5 §9.2).

use std::collections::HashSet;

use tonic::Code;
use v1model::{GroupMember, Pipeline, ProfileId};

use super::action::{self, Place};
use super::{Op, Verb};
use crate::binding::{Binding, ProfileBinding};
use crate::bytestring;
use crate::error::{refuse, At, Refusal};
use crate::proto::p4rt::action_profile_group::member::WatchKind as MemberWatch;
use crate::proto::p4rt::{ActionProfileGroup, ActionProfileMember};
use crate::soft::{Group, Soft};
use crate::target::Target;

/// # Errors
/// INVALID_ARGUMENT for the id that means none.
pub fn check_id(what: &str, id: u32) -> Result<(), Refusal> {
    match id {
        0 => refuse!(invalid, "{what} id 0 is not within 1 to {}", u32::MAX),
        _ => Ok(()),
    }
}

/// Most members of a group: all of them are checked in one piece.
const MEMBERS_OF_GROUP_MAX: usize = 512;

/// # Errors
/// RESOURCE_EXHAUSTED for more than `max`.
pub(super) fn check_count(what: &str, count: usize, max: usize) -> Result<(), Refusal> {
    if count > max {
        refuse!(exhausted, "{count} {what}; at most {max} are possible");
    }
    Ok(())
}

/// A group's members with the port that each one watches.
#[derive(Debug, Clone)]
pub struct WatchedGroup {
    pub profile: ProfileId,
    pub group_id: u32,
    pub members: Vec<(GroupMember, Option<u32>)>,
}

impl WatchedGroup {
    /// The members whose port is up, or that watch none.
    pub fn live(&self, ports_down: &HashSet<u32>) -> Vec<GroupMember> {
        let members = self.members.iter();
        let is_up = |port: &Option<u32>| port.is_none_or(|p| !ports_down.contains(&p));
        let live = members.filter(|(_, port)| is_up(port));
        live.map(|(member, _)| *member).collect()
    }

    /// Has it a member that watches any of these ports?
    pub fn watches_any(&self, ports: &HashSet<u32>) -> bool {
        let down = |port: &Option<u32>| port.is_some_and(|p| ports.contains(&p));
        self.members.iter().any(|(_, port)| down(port))
    }

    fn watches(&self, port: u32) -> bool {
        self.members.iter().any(|(_, p)| *p == Some(port))
    }
}

/// A group with the members that it is to have now.
pub type Live = (ProfileId, u32, Vec<GroupMember>);

/// Takes the members that watch `port` out of their groups, or puts them back: the groups that are to be changed in the
/// pipeline.
pub fn port_changed(soft: &mut Soft, port: u32, up: bool) -> Vec<Live> {
    let changed = match up {
        true => soft.ports_down.remove(&port),
        false => soft.ports_down.insert(port),
    };
    match changed {
        true => live_groups(soft, |group| group.watches(port)),
        false => Vec::new(),
    }
}

/// Those of all groups for which `wanted` is true.
pub fn live_groups(soft: &Soft, wanted: impl Fn(&WatchedGroup) -> bool) -> Vec<Live> {
    let one_shots = soft.extras().filter_map(|e| e.one_shot.as_ref());
    let groups = soft.groups.values().map(|g| &g.watched);
    let groups = groups.chain(one_shots.map(|o| &o.watched));
    let live = |g: &WatchedGroup| (g.profile, g.group_id, g.live(&soft.ports_down));
    groups.filter(|g| wanted(g)).map(live).collect()
}

/// Puts them into the pipeline.
pub fn follow(pipeline: &mut Pipeline, groups: Vec<Live>) {
    for (profile, group, live) in groups {
        if let Err(error) = pipeline.profile_mut(profile).modify_group(group, &live) {
            tracing::warn!(%error, group, "a group could not follow its watched ports");
        }
    }
}

/// # Errors
/// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for a bad id or action; when it is applied the pipeline's refusal,
/// and INVALID_ARGUMENT when the profile is programmed by one-shots.
pub fn plan_member(
    binding: &Binding,
    verb: Verb,
    entry: &ActionProfileMember,
) -> Result<Op, Refusal> {
    let profile = binding.profiles.get(entry.action_profile_id)?;
    let place = format!("action profile {}", profile.name);
    let member = entry.member_id;
    check_id("member", member).at(&place)?;
    let call = match (verb, &entry.action) {
        (Verb::Delete, _) => None,
        (_, None) => refuse!(invalid, "{place}: member {member}: the action is unset"),
        (_, Some(action)) => {
            let table = binding.tables.get(profile.table_id)?;
            Some(action::decode(table, action, Place::Entry).at(&place)?)
        }
    };
    let (id, profile) = (profile.id, profile.profile);
    Ok(Op::new(1, move |target: &mut Target| {
        let (pipeline, soft) = target.parts()?;
        let count = soft.members.entry(id).or_default();
        match call {
            Some(call) if verb == Verb::Insert => {
                let one_shots = soft.one_shots.get(&id);
                refuse_mixing(one_shots, "one-shot entries", "a member").at(place)?;
                pipeline.profile_mut(profile).insert_member(member, &call)?;
                *count += 1;
            }
            Some(call) => pipeline.profile_mut(profile).modify_member(member, &call)?,
            None => {
                pipeline.profile_mut(profile).delete_member(member)?;
                *count = count.saturating_sub(1);
            }
        }
        Ok(())
    }))
}

pub(super) fn refuse_mixing(others: Option<&usize>, have: &str, want: &str) -> Result<(), Refusal> {
    match others {
        Some(n) if *n > 0 => refuse!(
            invalid,
            "it has {n} {have}, so {want} cannot be added: a profile takes either one-shots or members and groups"
        ),
        _ => Ok(()),
    }
}

/// # Errors
/// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for bad ids, weights and sizes; when it is applied the pipeline's
/// refusal, and INVALID_ARGUMENT for a changed `max_size` and when the profile is programmed by one-shots.
pub fn plan_group(
    binding: &Binding,
    verb: Verb,
    entry: &ActionProfileGroup,
) -> Result<Op, Refusal> {
    let profile = binding.profiles.get(entry.action_profile_id)?;
    let place = format!("action profile {}", profile.name);
    let watched = watched_group(profile, verb, entry).at(&place)?;
    let key = (profile.id, entry.group_id);
    let work = 1 + watched.members.len() / 4;
    let message = entry.clone();
    Ok(Op::new(work, move |target: &mut Target| {
        let mut ports = watched.members.iter().filter_map(|(_, port)| *port);
        if let Some(port) = ports.find(|port| !target.has_port(*port)) {
            refuse!(invalid, "{place}: watched port {port} does not exist");
        }
        let (pipeline, soft) = target.parts()?;
        let WatchedGroup {
            profile, group_id, ..
        } = watched;
        // Checked with all members: a member that is out now must exist as well.
        let all = watched.live(&HashSet::new());
        match verb {
            Verb::Insert => {
                let one_shots = soft.one_shots.get(&key.0);
                refuse_mixing(one_shots, "one-shot entries", "a group").at(place)?;
                pipeline.profile_mut(profile).insert_group(
                    group_id,
                    &all,
                    message.max_size as u32,
                )?;
            }
            Verb::Modify => {
                let old = soft.groups.get(&key).map(|group| group.message.max_size);
                let new = message.max_size;
                if let Some(old) = old.filter(|old| *old != new) {
                    refuse!(
                        invalid,
                        "{place}: group {group_id}: max_size {new} differs from the {old} it was made with"
                    );
                }
                pipeline.profile_mut(profile).modify_group(group_id, &all)?;
            }
            Verb::Delete => {
                pipeline.profile_mut(profile).delete_group(group_id)?;
                soft.groups.remove(&key);
                return Ok(());
            }
        }
        let live = watched.live(&soft.ports_down);
        if live.len() != all.len() {
            pipeline
                .profile_mut(profile)
                .modify_group(group_id, &live)?;
        }
        soft.groups.insert(key, Group { message, watched });
        Ok(())
    }))
}

#[allow(deprecated)]
fn watched_group(
    profile: &ProfileBinding,
    verb: Verb,
    entry: &ActionProfileGroup,
) -> Result<WatchedGroup, Refusal> {
    if !profile.selector {
        refuse!(invalid, "it has no selector, so no groups");
    }
    let (group_id, max_size) = (entry.group_id, entry.max_size);
    check_id("group", group_id)?;
    let mut watched = WatchedGroup {
        profile: profile.profile,
        group_id,
        members: Vec::new(),
    };
    if verb == Verb::Delete {
        return Ok(watched);
    }
    let limit = profile.max_group_size;
    let (least, most, allowed) = match limit {
        0 => (0, u32::MAX, "0 or more".to_owned()),
        limit => (1, limit, format!("1 to {limit}")),
    };
    let max = match u32::try_from(max_size) {
        Ok(size) if (least..=most).contains(&size) => size,
        _ => refuse!(
            invalid,
            "group {group_id}: max_size {max_size} is not allowed: {allowed}"
        ),
    };
    check_count(
        "members of a group",
        entry.members.len(),
        MEMBERS_OF_GROUP_MAX,
    )?;
    let mut seen = HashSet::with_capacity(entry.members.len());
    for member in &entry.members {
        let id = member.member_id;
        check_id("member", id)?;
        let weight = weight(profile, member.weight)?;
        let port = match &member.watch_kind {
            None => None,
            Some(MemberWatch::Watch(port)) => watch_number(*port)?,
            Some(MemberWatch::WatchPort(port)) => watch_port(port)?,
        };
        if !seen.insert(id) {
            refuse!(invalid, "group {group_id}: member {id} is given twice");
        }
        watched
            .members
            .push((GroupMember { member: id, weight }, port));
    }
    check_size(profile, &watched.members, max, Code::ResourceExhausted)?;
    Ok(watched)
}

pub(super) fn weight(profile: &ProfileBinding, weight: i32) -> Result<u32, Refusal> {
    if profile.weights_disallowed {
        return match weight {
            0 => Ok(1),
            _ => refuse!(
                invalid,
                "weight {weight} is not allowed: this profile takes no weights"
            ),
        };
    }
    let limit = profile.max_member_weight;
    match u32::try_from(weight) {
        Ok(w) if w > 0 && (limit == 0 || w <= limit) => Ok(w),
        _ if limit > 0 => refuse!(invalid, "weight {weight} is not within 1 to {limit}"),
        _ => refuse!(
            invalid,
            "weight {weight} is not allowed: it must be 1 or more"
        ),
    }
}

pub(super) fn watch_number(port: i32) -> Result<Option<u32>, Refusal> {
    match u32::try_from(port) {
        Ok(port) => Ok(Some(port).filter(|port| *port > 0)),
        Err(_) => refuse!(invalid, "watch {port} is no port"),
    }
}

pub(super) fn watch_port(port: &[u8]) -> Result<Option<u32>, Refusal> {
    match port.is_empty() {
        true => Ok(None),
        false => match bytestring::decode_port(port) {
            Ok(port) => Ok(Some(port)),
            Err(refusal) => refuse!(invalid, "watch_port: {refusal}"),
        },
    }
}

pub(super) fn check_size(
    profile: &ProfileBinding,
    members: &[(GroupMember, Option<u32>)],
    max: u32,
    code: Code,
) -> Result<(), Refusal> {
    let (size, what) = match profile.size_counts_members {
        true => (members.len() as u64, "members"),
        false => {
            let weights = members.iter().map(|(m, _)| u64::from(m.weight));
            (weights.sum(), "as the sum of weights")
        }
    };
    if max > 0 && size > u64::from(max) {
        let text = format!("a group of {size} {what} is above the limit of {max}");
        return Err(Refusal::new(code, text));
    }
    Ok(())
}
