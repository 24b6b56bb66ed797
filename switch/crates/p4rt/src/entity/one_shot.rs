// SPDX-License-Identifier: Apache-2.0
//! One-shot action sets: an entry with its own hidden group and members (P4Runtime 1.5 §9.2.3).

use tonic::Code;
use v1model::{ActionCall, GroupMember, Pipeline, ProfileId};

use super::action::{self, Place};
use super::profile::{
    check_count, check_size, refuse_mixing, watch_number, watch_port, weight, WatchedGroup,
};
use crate::binding::{ProfileBinding, TableBinding};
use crate::error::{refuse, At, Refusal};
use crate::proto::p4rt::action_profile_action::WatchKind;
use crate::proto::p4rt::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use crate::proto::p4rt::{ActionProfileAction, ActionProfileActionSet};
use crate::soft::Soft;

/// Most actions of a set: all of them are installed in one piece.
const ACTIONS_MAX: usize = 256;

/// A one-shot that is installed: the message to read back, and the hidden objects behind it.
#[derive(Debug, Clone)]
pub struct OneShot {
    pub message: ActionProfileActionSet,
    pub group_id: u32,
    profile_id: u32,
    members: Vec<u32>,
    pub watched: WatchedGroup,
}

/// A checked one-shot.
pub struct OneShotPlan {
    message: ActionProfileActionSet,
    profile: ProfileId,
    profile_id: u32,
    calls: Vec<ActionCall>,
    /// With the ports that they watch; their ids are still to be found.
    members: Vec<(GroupMember, Option<u32>)>,
}

/// # Errors
/// INVALID_ARGUMENT for bad actions, weights and sizes, UNIMPLEMENTED for modes that the selector has not.
pub fn plan(
    table: &TableBinding,
    profile: &ProfileBinding,
    set: &ActionProfileActionSet,
) -> Result<OneShotPlan, Refusal> {
    if !profile.selector {
        refuse!(
            invalid,
            "the action profile {} has no selector, so it takes no action sets",
            profile.name
        );
    }
    if set.action_selection_mode() == ActionSelectionMode::Random {
        refuse!(
            unimplemented,
            "the selection mode RANDOM is not supported; the selector hashes"
        );
    }
    let own = match profile.size_counts_members {
        true => SizeSemantics::SumOfMembers,
        false => SizeSemantics::SumOfWeights,
    };
    let semantics = set.size_semantics();
    if semantics != SizeSemantics::DefaultSizeDeterminedByActionSelector && semantics != own {
        refuse!(
            unimplemented,
            "the size semantics {} are not the selector's",
            semantics.as_str_name()
        );
    }
    let count = set.action_profile_actions.len();
    check_count("actions of an action set", count, ACTIONS_MAX)?;
    let mut calls = Vec::with_capacity(count);
    let mut members = Vec::with_capacity(count);
    for (index, item) in set.action_profile_actions.iter().enumerate() {
        let (call, weight, port) =
            member(table, profile, item).at(format_args!("action set: action {index}"))?;
        calls.push(call);
        members.push((GroupMember { member: 0, weight }, port));
    }
    check_size(
        profile,
        &members,
        profile.max_group_size,
        Code::InvalidArgument,
    )?;
    Ok(OneShotPlan {
        message: set.clone(),
        profile: profile.profile,
        profile_id: profile.id,
        calls,
        members,
    })
}

/// A member's call and weight, and the port that it watches.
#[allow(deprecated)]
fn member(
    table: &TableBinding,
    profile: &ProfileBinding,
    item: &ActionProfileAction,
) -> Result<(ActionCall, u32, Option<u32>), Refusal> {
    let Some(action) = &item.action else {
        refuse!(invalid, "the action is unset");
    };
    let port = match &item.watch_kind {
        None => None,
        Some(WatchKind::Watch(port)) => watch_number(*port)?,
        Some(WatchKind::WatchPort(port)) => watch_port(port)?,
    };
    let call = action::decode(table, action, Place::Entry)?;
    Ok((call, weight(profile, item.weight)?, port))
}

impl OneShotPlan {
    pub fn work(&self) -> usize {
        1 + self.calls.len() / 2
    }

    /// Makes the hidden members and their group; on an error none of them stays.
    ///
    /// # Errors
    /// The pipeline's refusal; INVALID_ARGUMENT when the profile is programmed by members and groups.
    pub fn install(self, pipeline: &mut Pipeline, soft: &mut Soft) -> Result<OneShot, Refusal> {
        let groups = soft.groups_of(self.profile_id);
        refuse_mixing(soft.members.get(&self.profile_id), "members", "a one-shot")?;
        refuse_mixing(Some(&groups), "groups", "a one-shot")?;
        let profile = self.profile;
        let mut members = Vec::with_capacity(self.calls.len());
        let mut watched = self.members;
        let mut install = || {
            for (call, (member, _)) in self.calls.iter().zip(&mut watched) {
                let used = |id| pipeline.profile(profile).get_member(id).is_some();
                member.member = hidden_id(soft, used);
                pipeline
                    .profile_mut(profile)
                    .insert_member(member.member, call)?;
                members.push(member.member);
            }
            let group_id = hidden_id(soft, |id| pipeline.profile(profile).get_group(id).is_some());
            let watched = WatchedGroup {
                profile,
                group_id,
                members: std::mem::take(&mut watched),
            };
            let live = watched.live(&soft.ports_down);
            pipeline
                .profile_mut(profile)
                .insert_group(group_id, &live, 0)?;
            Ok(watched)
        };
        match install() {
            Ok(watched) => {
                *soft.one_shots.entry(self.profile_id).or_default() += 1;
                Ok(OneShot {
                    message: self.message,
                    group_id: watched.group_id,
                    profile_id: self.profile_id,
                    members,
                    watched,
                })
            }
            Err(refusal) => {
                for id in members {
                    pipeline.profile_mut(profile).delete_member(id)?;
                }
                Err(refusal)
            }
        }
    }
}

/// No client sees it: while a profile has one-shots, all its members and groups are theirs.
fn hidden_id(soft: &mut Soft, used: impl Fn(u32) -> bool) -> u32 {
    loop {
        soft.next_hidden_id = soft.next_hidden_id.wrapping_add(1).max(1);
        if !used(soft.next_hidden_id) {
            return soft.next_hidden_id;
        }
    }
}

impl OneShot {
    /// Takes the hidden group and its members away; no entry may point to the group any more.
    pub fn remove(&self, pipeline: &mut Pipeline, soft: &mut Soft) {
        let profile = self.watched.profile;
        let group = pipeline.profile_mut(profile).delete_group(self.group_id);
        let members = self
            .members
            .iter()
            .map(|id| pipeline.profile_mut(profile).delete_member(*id));
        for error in std::iter::once(group)
            .chain(members)
            .filter_map(Result::err)
        {
            tracing::error!(%error, group = self.group_id, "a one-shot left something behind");
        }
        if let Some(count) = soft.one_shots.get_mut(&self.profile_id) {
            *count = count.saturating_sub(1);
        }
    }
}
