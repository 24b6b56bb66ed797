// SPDX-License-Identifier: Apache-2.0
//! Action profile members, and groups with watched ports (P4Runtime 1.5 §9.2).

use std::collections::HashSet;

use tonic::Code;
use v1model::{ActionCall, GroupMember, Pipeline, ProfileId};

use super::action::{self, Place};
use super::Verb;
use crate::binding::{Binding, ProfileBinding};
use crate::bytestring;
use crate::error::Refusal;
use crate::proto::p4rt::action_profile_group::member::WatchKind as MemberWatch;
use crate::proto::p4rt::{ActionProfileGroup, ActionProfileMember};
use crate::soft::{Group, Soft};
use crate::target::Target;

/// # Errors
/// INVALID_ARGUMENT for the id that means none.
pub fn check_id(what: &str, id: u32) -> Result<(), Refusal> {
    match id {
        0 => Err(Refusal::invalid(format!(
            "{what} id 0 is not within 1 to {}",
            u32::MAX
        ))),
        _ => Ok(()),
    }
}

/// Most members of a group: all of them are checked in one piece.
const MEMBERS_OF_GROUP_MAX: usize = 512;

/// # Errors
/// RESOURCE_EXHAUSTED for more than `most`.
pub(super) fn check_count(what: &str, count: usize, most: usize) -> Result<(), Refusal> {
    match count <= most {
        true => Ok(()),
        false => Err(Refusal::new(
            Code::ResourceExhausted,
            format!("{count} {what}; at most {most} are possible"),
        )),
    }
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
        let up = |port: &Option<u32>| port.is_none_or(|p| !ports_down.contains(&p));
        self.members
            .iter()
            .filter(|(_, port)| up(port))
            .map(|(member, _)| *member)
            .collect()
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
        if let Err(error) = pipeline.profile_group_modify(profile, group, &live) {
            tracing::warn!(%error, group, "a group could not follow its watched ports");
        }
    }
}

/// A checked update of a member.
pub struct MemberOp {
    verb: Verb,
    profile_id: u32,
    name: String,
    profile: ProfileId,
    member_id: u32,
    call: Option<ActionCall>,
}

/// # Errors
/// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for a bad id or action.
pub fn plan_member(
    binding: &Binding,
    verb: Verb,
    entry: &ActionProfileMember,
) -> Result<MemberOp, Refusal> {
    let profile = binding.profiles.get(entry.action_profile_id)?;
    let place = format!("action profile {}", profile.name);
    check_id("member", entry.member_id).map_err(|e| e.with_place(&place))?;
    let call = match (verb, &entry.action) {
        (Verb::Delete, _) => None,
        (_, None) => {
            return Err(Refusal::invalid(format!(
                "{place}: member {}: the action is unset",
                entry.member_id
            )))
        }
        (_, Some(action)) => {
            let table = binding.tables.get(profile.table_id)?;
            Some(action::decode(table, action, Place::Entry).map_err(|e| e.with_place(&place))?)
        }
    };
    Ok(MemberOp {
        verb,
        profile_id: profile.id,
        name: profile.name.clone(),
        profile: profile.profile,
        member_id: entry.member_id,
        call,
    })
}

impl MemberOp {
    /// # Errors
    /// The pipeline's refusal; INVALID_ARGUMENT when the profile is programmed by one-shots.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let pipeline = target.pipeline()?;
        let place = format!("action profile {}", self.name);
        let count = soft.members.entry(self.profile_id).or_default();
        match (self.verb, self.call) {
            (Verb::Insert, Some(call)) => {
                refuse_mixing(
                    soft.one_shots.get(&self.profile_id),
                    "one-shot entries",
                    "a member",
                )
                .map_err(|e| e.with_place(&place))?;
                pipeline.profile_member_insert(self.profile, self.member_id, &call)?;
                *count += 1;
            }
            (Verb::Modify, Some(call)) => {
                pipeline.profile_member_modify(self.profile, self.member_id, &call)?
            }
            _ => {
                pipeline.profile_member_delete(self.profile, self.member_id)?;
                *count = count.saturating_sub(1);
            }
        }
        Ok(())
    }
}

pub(super) fn refuse_mixing(others: Option<&usize>, have: &str, want: &str) -> Result<(), Refusal> {
    match others {
        Some(n) if *n > 0 => Err(Refusal::invalid(format!(
            "it has {n} {have}, so {want} cannot be added: a profile takes either one-shots or members and groups"
        ))),
        _ => Ok(()),
    }
}

/// A checked update of a group.
pub struct GroupOp {
    verb: Verb,
    profile_id: u32,
    name: String,
    watched: WatchedGroup,
    message: ActionProfileGroup,
}

/// # Errors
/// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for bad ids, weights and sizes.
pub fn plan_group(
    binding: &Binding,
    verb: Verb,
    entry: &ActionProfileGroup,
) -> Result<GroupOp, Refusal> {
    let profile = binding.profiles.get(entry.action_profile_id)?;
    let place = format!("action profile {}", profile.name);
    plan_group_in(profile, verb, entry).map_err(|e| e.with_place(&place))
}

#[allow(deprecated)]
fn plan_group_in(
    profile: &ProfileBinding,
    verb: Verb,
    entry: &ActionProfileGroup,
) -> Result<GroupOp, Refusal> {
    if !profile.selector {
        return Err(Refusal::invalid("it has no selector, so no groups"));
    }
    check_id("group", entry.group_id)?;
    let mut watched = WatchedGroup {
        profile: profile.profile,
        group_id: entry.group_id,
        members: Vec::new(),
    };
    if verb != Verb::Delete {
        let limit = profile.max_group_size;
        if entry.max_size < 0
            || (limit > 0 && !(1..=i64::from(limit)).contains(&i64::from(entry.max_size)))
        {
            let allowed = if limit > 0 {
                format!("1 to {limit}")
            } else {
                "0 or more".to_owned()
            };
            return Err(Refusal::invalid(format!(
                "group {}: max_size {} is not allowed: {allowed}",
                entry.group_id, entry.max_size
            )));
        }
        check_count(
            "members of a group",
            entry.members.len(),
            MEMBERS_OF_GROUP_MAX,
        )?;
        let mut seen = HashSet::with_capacity(entry.members.len());
        for member in &entry.members {
            check_id("member", member.member_id)?;
            let weight = weight(profile, member.weight)?;
            let port = match &member.watch_kind {
                None => None,
                Some(MemberWatch::Watch(port)) => watch_number(*port)?,
                Some(MemberWatch::WatchPort(port)) => watch_port(port)?,
            };
            if !seen.insert(member.member_id) {
                return Err(Refusal::invalid(format!(
                    "group {}: member {} is given twice",
                    entry.group_id, member.member_id
                )));
            }
            watched.members.push((
                GroupMember {
                    member: member.member_id,
                    weight,
                },
                port,
            ));
        }
        let max = if entry.max_size > 0 {
            entry.max_size as u32
        } else {
            limit
        };
        check_size(profile, &watched, max, Code::ResourceExhausted)?;
    }
    Ok(GroupOp {
        verb,
        profile_id: profile.id,
        name: profile.name.clone(),
        watched,
        message: entry.clone(),
    })
}

pub(super) fn weight(profile: &ProfileBinding, weight: i32) -> Result<u32, Refusal> {
    if profile.weights_disallowed {
        return match weight {
            0 => Ok(1),
            _ => Err(Refusal::invalid(format!(
                "weight {weight} is not allowed: this profile takes no weights"
            ))),
        };
    }
    let limit = if profile.size_counts_members {
        profile.max_member_weight
    } else {
        0
    };
    match u32::try_from(weight) {
        Ok(w) if w > 0 && (limit == 0 || w <= limit) => Ok(w),
        _ if limit > 0 => Err(Refusal::invalid(format!(
            "weight {weight} is not within 1 to {limit}"
        ))),
        _ => Err(Refusal::invalid(format!(
            "weight {weight} is not allowed: it must be 1 or more"
        ))),
    }
}

pub(super) fn watch_number(port: i32) -> Result<Option<u32>, Refusal> {
    match port {
        0 => Ok(None),
        _ => u32::try_from(port)
            .map(Some)
            .map_err(|_| Refusal::invalid(format!("watch {port} is no port"))),
    }
}

pub(super) fn watch_port(port: &[u8]) -> Result<Option<u32>, Refusal> {
    match port.is_empty() {
        true => Ok(None),
        false => bytestring::decode_port(port)
            .map(Some)
            .map_err(|e| Refusal::invalid(e.message).with_place("watch_port")),
    }
}

pub(super) fn check_size(
    profile: &ProfileBinding,
    group: &WatchedGroup,
    max: u32,
    code: Code,
) -> Result<(), Refusal> {
    let size: u64 = match profile.size_counts_members {
        true => group.members.len() as u64,
        false => group.members.iter().map(|(m, _)| u64::from(m.weight)).sum(),
    };
    if max > 0 && size > u64::from(max) {
        let what = if profile.size_counts_members {
            "members"
        } else {
            "as the sum of weights"
        };
        return Err(Refusal::new(
            code,
            format!("a group of {size} {what} is above the limit of {max}"),
        ));
    }
    Ok(())
}

impl GroupOp {
    pub fn work(&self) -> usize {
        1 + self.watched.members.len() / 4
    }

    /// # Errors
    /// The pipeline's refusal; INVALID_ARGUMENT for a changed `max_size` and when the profile is programmed by one-shots.
    pub fn apply(self, target: &mut Target, soft: &mut Soft) -> Result<(), Refusal> {
        let place = format!("action profile {}", self.name);
        let key = (self.profile_id, self.watched.group_id);
        if let Some((_, Some(port))) = self
            .watched
            .members
            .iter()
            .find(|(_, p)| p.is_some_and(|p| !target.has_port(p)))
        {
            return Err(Refusal::invalid(format!(
                "{place}: watched port {port} does not exist"
            )));
        }
        let pipeline = target.pipeline()?;
        let WatchedGroup {
            profile, group_id, ..
        } = self.watched;
        // Checked with all members: a member that is out now must exist as well.
        let all = self.watched.live(&HashSet::new());
        match self.verb {
            Verb::Insert => {
                refuse_mixing(
                    soft.one_shots.get(&self.profile_id),
                    "one-shot entries",
                    "a group",
                )
                .map_err(|e| e.with_place(&place))?;
                pipeline.profile_group_insert(
                    profile,
                    group_id,
                    &all,
                    self.message.max_size as u32,
                )?;
            }
            Verb::Modify => {
                if let Some(old) = soft.groups.get(&key) {
                    let (old, new) = (old.message.max_size, self.message.max_size);
                    if old != new {
                        return Err(Refusal::invalid(format!(
                            "{place}: group {group_id}: max_size {new} differs from the {old} it was made with"
                        )));
                    }
                }
                pipeline.profile_group_modify(profile, group_id, &all)?;
            }
            Verb::Delete => {
                pipeline.profile_group_delete(profile, group_id)?;
                soft.groups.remove(&key);
                return Ok(());
            }
        }
        let live = self.watched.live(&soft.ports_down);
        if live.len() != all.len() {
            pipeline.profile_group_modify(profile, group_id, &live)?;
        }
        soft.groups.insert(
            key,
            Group {
                message: self.message,
                watched: self.watched,
            },
        );
        Ok(())
    }
}
