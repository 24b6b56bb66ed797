// SPDX-License-Identifier: Apache-2.0
//! Action profile members, groups with watched ports, and one-shots, which are entries with their own hidden group and
//! members (P4Runtime 1.5 §9.2).

use std::collections::HashSet;

use bytes::Bytes;
use v1model::{ActionCall, GroupMember, Pipeline};

use super::{matches, Planner, Verb};
use crate::binding::{Binding, Bound, Profile, Table};
use crate::bytestring;
use crate::error::{in_range, refusal, refuse, At, Checked, ErrorKind, Refusal};
use crate::proto::p4rt::action_profile_action::WatchKind as ActionWatch;
use crate::proto::p4rt::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use crate::proto::p4rt::action_profile_group::member::WatchKind as MemberWatch;
use crate::proto::p4rt::{ActionProfileActionSet, ActionProfileGroup, ActionProfileMember};
use crate::soft::{Group, Soft, Target};

/// Max members of a group: all of them are checked in one piece.
const MEMBERS_OF_GROUP_MAX: usize = 512;
/// Max actions of a set: all of them are installed in one piece.
const ACTIONS_MAX: usize = 256;

/// # Errors
/// INVALID_ARGUMENT for the id that means none.
pub fn check_id(what: &str, id: u32) -> Checked<u32> {
    in_range(what, id, 1..=u32::MAX)
}

/// A group's members with the port that each one watches.
#[derive(Debug, Clone)]
pub struct WatchedGroup {
    /// P4Info's id of the action profile: the next program may have it in another place, or not at all.
    pub profile: u32,
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

    /// # Errors
    /// INVALID_ARGUMENT for a watched port that does not exist.
    fn check_ports(&self, target: &Target) -> Checked {
        let mut ports = self.members.iter().filter_map(|(_, port)| *port);
        match ports.find(|port| !target.has_port(*port)) {
            None => Ok(()),
            Some(port) => refuse!("watched port {port} does not exist"),
        }
    }

    /// Puts it into the pipeline, where it is new or takes the place of the one with its id: all members are in use, also
    /// those whose port is down.
    fn put(
        &self,
        profile: &mut v1model::Profile,
        is_new: bool,
        ports_down: &HashSet<u32>,
    ) -> Checked {
        let (id, all) = (self.group_id, self.live(&HashSet::new()));
        match is_new {
            true => profile.insert_group(id, &all)?,
            false => profile.modify_group(id, &all)?,
        }
        match self.watches(|port| ports_down.contains(&port)) {
            true => profile.set_live(id, &self.live(ports_down)),
            false => Ok(()),
        }
    }

    /// Has it a member that watches such a port?
    pub fn watches(&self, is_wanted: impl Fn(u32) -> bool) -> bool {
        self.members
            .iter()
            .filter_map(|(_, port)| *port)
            .any(is_wanted)
    }
}

/// A group with the members that it is to have now.
pub type Live = (u32, u32, Vec<GroupMember>);

/// Takes the members that watch `port` out of their groups, or puts them back: the groups that are to be changed in the
/// pipeline.
pub fn port_changed(soft: &mut Soft, port: u32, up: bool) -> Vec<Live> {
    let changed = match up {
        true => soft.ports_down.remove(&port),
        false => soft.ports_down.insert(port),
    };
    live_groups(soft, |own| changed && own == port)
}

/// Those of all groups that watch such a port.
pub fn live_groups(soft: &Soft, is_wanted: impl Fn(u32) -> bool) -> Vec<Live> {
    let one_shots = soft.extras().filter_map(|e| e.one_shot.as_ref());
    let groups = soft.groups.values().map(|g| &g.watched);
    let groups = groups.chain(one_shots.map(|o| &o.watched));
    let live = |g: &WatchedGroup| (g.profile, g.group_id, g.live(&soft.ports_down));
    groups.filter(|g| g.watches(&is_wanted)).map(live).collect()
}

/// Puts them into the pipeline.
pub fn follow(binding: &Binding, pipeline: &mut Pipeline, groups: impl IntoIterator<Item = Live>) {
    for (profile, group, live) in groups {
        let profile = binding.profile_mut(pipeline, profile);
        if let Err(error) = profile.and_then(|own| own.set_live(group, &live)) {
            tracing::warn!(%error, group, "a group could not follow its watched ports");
        }
    }
}

/// The port that a member watches, as a byte string, which becomes the shortest one.
macro_rules! watch {
    ($kind:ident, $given:expr) => {
        match &mut $given {
            None | Some($kind::Watch(0)) => Bytes::new(),
            Some($kind::Watch(port)) => Bytes::copy_from_slice(&port.to_be_bytes()),
            Some($kind::WatchPort(port)) => {
                *port = bytestring::encode_be(port);
                port.clone()
            }
        }
    };
}

/// A member, and the port that it watches.
fn watched(
    profile: &Profile,
    member: u32,
    weight: i32,
    port: &[u8],
) -> Checked<(GroupMember, Option<u32>)> {
    let weight = match (profile.weights_disallowed, profile.max_member_weight) {
        (true, _) => in_range("weight", weight, 0..=0)? + 1,
        (false, 0) => in_range("weight", weight, 1..=i32::MAX as u32)?,
        (false, max) => in_range("weight", weight, 1..=max)?,
    };
    let port = match port.is_empty() {
        true => None,
        false => Some(bytestring::decode_port(port).map_err(|e| refusal!("watched {e}"))?),
    };
    Ok((GroupMember { member, weight }, port))
}

fn check_size(profile: &Profile, group: &WatchedGroup, max: u32, kind: ErrorKind) -> Checked {
    let weight = |(member, _): &(GroupMember, _)| match profile.size_counts_members {
        true => 1,
        false => u64::from(member.weight),
    };
    let size: u64 = group.members.iter().map(weight).sum();
    match max > 0 && size > max.into() {
        true => Err(Refusal::new(
            kind,
            format!("a group of size {size} is above the limit of {max}"),
        )),
        false => Ok(()),
    }
}

/// # Errors
/// RESOURCE_EXHAUSTED for more than `max`.
fn check_count(what: &str, count: usize, max: usize) -> Checked {
    match count > max {
        true => refuse!(
            ResourceExhausted,
            "{count} {what}; at most {max} are possible"
        ),
        false => Ok(()),
    }
}

/// # Errors
/// INVALID_ARGUMENT when others are there already.
pub fn refuse_mixing(others: usize, have: &str, want: &str) -> Checked {
    match others {
        0 => Ok(()),
        _ => refuse!(
            "it has {others} {have}, so {want} cannot be added: a profile takes either one-shots or members and groups"
        ),
    }
}

/// While a profile has one-shots, all its members and groups are theirs, and no client knows them.
///
/// # Errors
/// INVALID_ARGUMENT for an INSERT, NOT_FOUND for all else.
fn refuse_hidden(one_shots: usize, verb: Verb, what: &str, id: u32) -> Checked {
    match verb {
        _ if one_shots == 0 => Ok(()),
        Verb::Insert => refuse_mixing(one_shots, "one-shot entries", &format!("a {what}")),
        _ => refuse!(NotFound, "there is no {what} {id}"),
    }
}

impl Planner<'_> {
    /// # Errors
    /// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for a bad id or action; when it is applied the pipeline's
    /// refusal, and as [`refuse_hidden`].
    pub(super) fn member(&mut self, entry: &ActionProfileMember) -> Checked {
        let own = self.binding.profiles.get(entry.action_profile_id)?;
        let member = check_id("member id", entry.member_id).at(own)?;
        let call = match &entry.action {
            _ if self.verb == Verb::Delete => None,
            None => refuse!("{own}: member {member}: the action is unset"),
            Some(action) => {
                let table = self.binding.tables.get(own.table_id)?;
                Some(matches::decode_call(table, action, false).at(own)?)
            }
        };
        let (id, place, profile, verb) = (own.id, own.to_string(), own.profile, self.verb);
        self.op(1, move |target: &mut Target| {
            let (pipeline, soft) = target.parts()?;
            refuse_hidden(soft.one_shots(id), verb, "member", member).at(place)?;
            let profile = pipeline.profile_mut(profile);
            match call {
                Some(call) if verb == Verb::Insert => profile.insert_member(member, &call),
                Some(call) => profile.modify_member(member, &call),
                None => profile.delete_member(member),
            }
        })
    }

    /// # Errors
    /// NOT_FOUND for an unknown profile, INVALID_ARGUMENT for bad ids, weights and sizes; when it is applied the
    /// pipeline's refusal, INVALID_ARGUMENT for a changed `max_size`, and as [`refuse_hidden`].
    pub(super) fn group(&mut self, entry: &ActionProfileGroup) -> Checked {
        let own = self.binding.profiles.get(entry.action_profile_id)?;
        let (verb, of) = (self.verb, own.to_string());
        let place = format!("{own}: group {}", entry.group_id);
        let group = plan_group(own, verb, entry).at(&place)?;
        let key = (own.id, entry.group_id);
        let work = 1 + group.watched.members.len() / 4;
        self.op(work, move |target: &mut Target| {
            group.watched.check_ports(target).at(&place)?;
            let (binding, (pipeline, soft)) = (target.binding, target.parts()?);
            let profile = binding.profile_mut(pipeline, key.0)?;
            let (id, new) = (key.1, group.message.max_size);
            refuse_hidden(soft.one_shots(key.0), verb, "group", id).at(of)?;
            match verb {
                Verb::Insert => {}
                Verb::Modify => {
                    let old = soft.groups.get(&key);
                    let old = old.map_or(new, |group| group.message.max_size);
                    if old != new {
                        refuse!("{place}: max_size {new} differs from the {old} it was made with");
                    }
                }
                _ => {
                    profile.delete_group(id)?;
                    soft.groups.remove(&key);
                    return Ok(());
                }
            }
            let is_new = verb == Verb::Insert;
            group.watched.put(profile, is_new, &soft.ports_down)?;
            soft.groups.insert(key, group);
            Ok(())
        })
    }
}

/// A group as it is kept; of a DELETE its id.
#[allow(deprecated)]
fn plan_group(profile: &Bound<Profile>, verb: Verb, entry: &ActionProfileGroup) -> Checked<Group> {
    if !profile.selector {
        refuse!("the action profile has no selector, so no groups");
    }
    let mut group = Group {
        message: ActionProfileGroup::default(),
        watched: WatchedGroup {
            profile: profile.id,
            group_id: check_id("group id", entry.group_id)?,
            members: Vec::new(),
        },
    };
    if verb == Verb::Delete {
        return Ok(group);
    }
    let max = match profile.max_group_size {
        0 => in_range("max_size", entry.max_size, 0..=i32::MAX as u32)?,
        limit => in_range("max_size", entry.max_size, 1..=limit)?,
    };
    check_count("members", entry.members.len(), MEMBERS_OF_GROUP_MAX)?;
    group.message = entry.clone();
    for member in &mut group.message.members {
        let id = check_id("member id", member.member_id)?;
        let port = watch!(MemberWatch, member.watch_kind);
        let own = watched(profile, id, member.weight, &port)?;
        group.watched.members.push(own);
    }
    let kind = ErrorKind::ResourceExhausted;
    check_size(profile, &group.watched, max, kind)?;
    Ok(group)
}

/// A one-shot: the message to read back, and the hidden objects behind it, which have no ids before it is installed.
#[derive(Debug, Clone)]
pub struct OneShot {
    pub message: ActionProfileActionSet,
    pub watched: WatchedGroup,
    /// What its members do; empty once they are installed.
    calls: Vec<ActionCall>,
}

impl OneShot {
    /// # Errors
    /// INVALID_ARGUMENT for bad actions, weights and sizes, UNIMPLEMENTED for modes that the selector has not.
    #[allow(deprecated)]
    pub fn plan(
        table: &Table,
        profile: &Bound<Profile>,
        set: &ActionProfileActionSet,
    ) -> Checked<OneShot> {
        if !profile.selector {
            refuse!("the {profile} has no selector, so it takes no action sets");
        }
        if set.action_selection_mode() == ActionSelectionMode::Random {
            refuse!(
                Unimplemented,
                "the selection mode RANDOM is not supported; the selector hashes"
            );
        }
        let own = match profile.size_counts_members {
            true => SizeSemantics::SumOfMembers,
            false => SizeSemantics::SumOfWeights,
        };
        let given = set.size_semantics();
        if given != SizeSemantics::DefaultSizeDeterminedByActionSelector && given != own {
            let name = given.as_str_name();
            refuse!(
                Unimplemented,
                "the size semantics {name} are not the selector's"
            );
        }
        let count = set.action_profile_actions.len();
        check_count("actions of an action set", count, ACTIONS_MAX)?;
        let mut one_shot = OneShot {
            message: set.clone(),
            watched: WatchedGroup {
                profile: profile.id,
                group_id: 0,
                members: Vec::with_capacity(count),
            },
            calls: Vec::with_capacity(count),
        };
        let actions = one_shot.message.action_profile_actions.iter_mut();
        for (index, item) in actions.enumerate() {
            let mut add = || {
                let Some(action) = &item.action else {
                    refuse!("the action is unset");
                };
                let call = matches::decode_call(table, action, false)?;
                item.action = matches::encode_call(table, &call);
                one_shot.calls.push(call);
                let port = watch!(ActionWatch, item.watch_kind);
                let member = watched(profile, 0, item.weight, &port)?;
                one_shot.watched.members.push(member);
                Ok::<(), Refusal>(())
            };
            add().at(format_args!("action set: action {index}"))?;
        }
        let (group, max) = (&one_shot.watched, profile.max_group_size);
        check_size(profile, group, max, ErrorKind::InvalidArgument)?;
        Ok(one_shot)
    }

    pub fn work(&self) -> usize {
        1 + self.calls.len() / 2
    }

    /// Makes the hidden members and their group; on an error none of them stays.
    ///
    /// # Errors
    /// The pipeline's refusal; INVALID_ARGUMENT for a port that does not exist, and when the profile is programmed by
    /// members and groups.
    pub fn install(&mut self, target: &mut Target) -> Checked {
        self.watched.check_ports(target)?;
        let (binding, (pipeline, soft)) = (target.binding, target.parts()?);
        let id = self.watched.profile;
        let profile = binding.profile_mut(pipeline, id)?;
        if soft.one_shots(id) == 0 {
            let groups = soft.groups.range((id, 0)..=(id, u32::MAX));
            refuse_mixing(profile.members(), "members", "a one-shot")?;
            refuse_mixing(groups.count(), "groups", "a one-shot")?;
        }
        let mut installed = Vec::new();
        let mut install = || {
            for (call, (own, _)) in self.calls.drain(..).zip(&mut self.watched.members) {
                own.member = soft.hidden_id(|id| profile.get_member(id).is_some());
                profile.insert_member(own.member, &call)?;
                installed.push(own.member);
            }
            self.watched.group_id = soft.hidden_id(|id| profile.get_group(id).is_some());
            self.watched.put(profile, true, &soft.ports_down)
        };
        let done = install();
        if done.is_err() {
            installed
                .into_iter()
                .try_for_each(|id| profile.delete_member(id))?;
        }
        done
    }

    /// Takes the hidden group and its members away; no entry may point to the group any more.
    pub fn remove(&self, binding: &Binding, pipeline: &mut Pipeline) {
        let group = &self.watched;
        let profile = binding.profile_mut(pipeline, group.profile);
        let removed = profile.and_then(|profile| {
            profile.delete_group(group.group_id)?;
            let mut members = group.members.iter();
            members.try_for_each(|(own, _)| profile.delete_member(own.member))
        });
        if let Err(error) = removed {
            tracing::error!(%error, "a one-shot left something behind");
        }
    }
}
