// SPDX-License-Identifier: Apache-2.0
//! Action profiles and selectors: members (action calls) and groups of weighted members that table entries point to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::call::{check_call, ActionWord, Callee};
use crate::control::{ControlResult, GroupMember};
use crate::entry::ActionCall;
use crate::error::{ControlError, ErrorKind};
use crate::schema::{ActionId, ProfileId, ProfileSchema, Schema};

/// Members of a profile that has no size of its own.
const MEMBERS_MAX: usize = 1 << 20;
/// Groups of a profile.
const GROUPS_MAX: usize = 1 << 16;

#[derive(Clone)]
struct Member {
    id: u32,
    action: ActionId,
    args: Vec<u64>,
    /// Entries and groups that point here.
    users: u32,
}

impl Member {
    fn call(&self) -> ActionCall {
        ActionCall {
            action: self.action,
            args: self.args.clone(),
        }
    }
}

#[derive(Clone)]
struct Group {
    id: u32,
    members: Vec<GroupMember>,
    /// Place of each member, by place, with the sum of the weights up to and including it.
    shares: Vec<(u64, u32)>,
    /// 0: no limit.
    max_size: u32,
    /// Entries that point here.
    users: u32,
}

/// Things with a client's id and a dense place, the lowest free one first (as BMv2's handles).
#[derive(Clone)]
struct Places<T> {
    at: Vec<Option<T>>,
    by_id: BTreeMap<u32, u32>,
    /// The places that are `None`.
    free: BinaryHeap<Reverse<u32>>,
}

impl<T> Places<T> {
    fn new() -> Self {
        Places {
            at: Vec::new(),
            by_id: BTreeMap::new(),
            free: BinaryHeap::new(),
        }
    }

    fn add(&mut self, id: u32, item: T) {
        let place = match self.free.pop() {
            Some(Reverse(place)) => place,
            None => {
                self.at.push(None);
                self.at.len() as u32 - 1
            }
        };
        self.at[place as usize] = Some(item);
        self.by_id.insert(id, place);
    }

    fn remove(&mut self, id: u32) {
        if let Some(place) = self.by_id.remove(&id) {
            self.at[place as usize] = None;
            self.free.push(Reverse(place));
        }
    }

    /// Up to `max` things from the id `from` on, by their ids, and the next id if there is one.
    fn scan(&self, from: u32, max: usize) -> (impl Iterator<Item = &T>, Option<u32>) {
        let next = self.by_id.range(from..).nth(max).map(|(id, _)| *id);
        let some = self.by_id.range(from..).take(max);
        (some.filter_map(|(_, place)| self.get(*place)), next)
    }

    fn place(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    #[inline]
    fn get(&self, place: u32) -> Option<&T> {
        self.at.get(place as usize)?.as_ref()
    }

    fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.at.get_mut(place as usize)?.as_mut()
    }

    fn by_id(&self, id: u32) -> Option<&T> {
        self.get(self.place(id)?)
    }

    fn by_id_mut(&mut self, id: u32) -> Option<&mut T> {
        self.get_mut(self.place(id)?)
    }
}

/// The members and groups of one action profile.
#[derive(Clone)]
pub struct Profile {
    program: Arc<Schema>,
    id: ProfileId,
    members: Places<Member>,
    groups: Places<Group>,
}

impl Profile {
    /// An empty profile of this program.
    pub fn new(program: &Arc<Schema>, id: ProfileId) -> Self {
        Profile {
            program: program.clone(),
            id,
            members: Places::new(),
            groups: Places::new(),
        }
    }

    pub(crate) fn schema(&self) -> &ProfileSchema {
        &self.program.profiles[self.id.index()]
    }

    /// The place of the member that a group chooses for a hash: members share by weight. `None` for an empty group.
    #[inline]
    pub(crate) fn select(&self, group: u32, hash: u64) -> Option<u32> {
        let group = self.groups.get(group)?;
        let total = group.shares.last()?.0;
        let point = hash % total;
        if total == group.shares.len() as u64 {
            return Some(group.shares[point as usize].1);
        }
        let i = group.shares.partition_point(|&(until, _)| until <= point);
        Some(group.shares[i].1)
    }

    /// The action of the member at a place, with its argument limbs.
    #[inline]
    pub(crate) fn member(&self, place: u32) -> Option<(ActionId, &[u64])> {
        self.members
            .get(place)
            .map(|m| (m.action, m.args.as_slice()))
    }

    /// Adds a member.
    pub fn insert_member(&mut self, id: u32, call: &ActionCall) -> ControlResult {
        let action = self.check_member(id, call)?;
        let args = call.args.clone();
        if self.members.place(id).is_some() {
            return Err(self.error(ErrorKind::AlreadyExists, format!("member {id} exists")));
        }
        let len = self.members();
        let most = match self.schema().max_size {
            0 => MEMBERS_MAX,
            size => size as usize,
        };
        if len >= most {
            return Err(self.error(
                ErrorKind::ResourceExhausted,
                format!("it is full: {len} members of at most {most}"),
            ));
        }
        self.members.add(
            id,
            Member {
                id,
                action,
                args,
                users: 0,
            },
        );
        Ok(())
    }

    /// Changes what a member does.
    pub fn modify_member(&mut self, id: u32, call: &ActionCall) -> ControlResult {
        let action = self.check_member(id, call)?;
        let Some(member) = self.members.by_id_mut(id) else {
            return Err(self.no_member(id));
        };
        member.action = action;
        member.args.clone_from(&call.args);
        Ok(())
    }

    /// Deletes a member that nothing points to.
    pub fn delete_member(&mut self, id: u32) -> ControlResult {
        let member = self.members.by_id(id).ok_or_else(|| self.no_member(id))?;
        if member.users > 0 {
            return Err(self.error(
                ErrorKind::FailedPrecondition,
                format!(
                    "member {id} is in use by {} entries and groups; delete these first",
                    member.users
                ),
            ));
        }
        self.members.remove(id);
        Ok(())
    }

    /// What a member does.
    pub fn get_member(&self, id: u32) -> Option<ActionCall> {
        self.members.by_id(id).map(Member::call)
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.members.by_id.len()
    }

    /// Appends up to `max` members from the id `cursor` on (0 to begin), by their ids; returns the next cursor.
    pub fn scan_members(
        &self,
        cursor: u32,
        max: usize,
        out: &mut Vec<(u32, ActionCall)>,
    ) -> Option<u32> {
        let (some, next) = self.members.scan(cursor, max);
        out.extend(some.map(|m| (m.id, m.call())));
        next
    }

    /// The same of groups, with their members and maximal sizes.
    pub fn scan_groups(
        &self,
        cursor: u32,
        max: usize,
        out: &mut Vec<(u32, Vec<GroupMember>, u32)>,
    ) -> Option<u32> {
        let (some, next) = self.groups.scan(cursor, max);
        out.extend(some.map(|g| (g.id, g.members.clone(), g.max_size)));
        next
    }

    /// Adds a group; `max_size` limits the sum of its weights, 0 does not.
    pub fn insert_group(
        &mut self,
        id: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> ControlResult {
        if !self.schema().selector {
            return Err(self.error(
                ErrorKind::InvalidArgument,
                format!("group {id}: it has no selector, so it has no groups"),
            ));
        }
        if self.groups.place(id).is_some() {
            return Err(self.error(ErrorKind::AlreadyExists, format!("group {id} exists")));
        }
        if self.groups.by_id.len() >= GROUPS_MAX {
            return Err(self.error(
                ErrorKind::ResourceExhausted,
                format!("it is full: {GROUPS_MAX} groups"),
            ));
        }
        let shares = self.check_shares(id, members, max_size)?;
        self.add_users(&shares, 1);
        self.groups.add(
            id,
            Group {
                id,
                members: members.to_vec(),
                shares,
                max_size,
                users: 0,
            },
        );
        Ok(())
    }

    /// Replaces the members of a group.
    pub fn modify_group(&mut self, id: u32, members: &[GroupMember]) -> ControlResult {
        let group = self.groups.by_id(id).ok_or_else(|| self.no_group(id))?;
        let shares = self.check_shares(id, members, group.max_size)?;
        self.add_users(&shares, 1);
        let group = self.groups.by_id_mut(id).expect("it was there");
        group.members = members.to_vec();
        let before = std::mem::replace(&mut group.shares, shares);
        self.add_users(&before, -1);
        Ok(())
    }

    /// Deletes a group that no entry points to.
    pub fn delete_group(&mut self, id: u32) -> ControlResult {
        let group = self.groups.by_id(id).ok_or_else(|| self.no_group(id))?;
        if group.users > 0 {
            return Err(self.error(
                ErrorKind::FailedPrecondition,
                format!(
                    "group {id} is in use by {} entries; delete these first",
                    group.users
                ),
            ));
        }
        let shares = group.shares.clone();
        self.add_users(&shares, -1);
        self.groups.remove(id);
        Ok(())
    }

    /// Members, as they were given, and maximal size of a group.
    pub fn get_group(&self, id: u32) -> Option<(Vec<GroupMember>, u32)> {
        self.groups
            .by_id(id)
            .map(|g| (g.members.clone(), g.max_size))
    }

    /// The word of an entry that points to a member.
    pub(crate) fn member_word(&self, id: u32) -> Result<ActionWord, ControlError> {
        self.members
            .place(id)
            .map(ActionWord::member)
            .ok_or_else(|| self.no_member(id))
    }

    /// The word of an entry that points to a group.
    pub(crate) fn group_word(&self, id: u32) -> Result<ActionWord, ControlError> {
        self.groups
            .place(id)
            .map(ActionWord::group)
            .ok_or_else(|| self.no_group(id))
    }

    /// The ids behind places: `Ok` of a member, `Err` of a group.
    pub(crate) fn id_of(&self, callee: Callee) -> Option<Result<u32, u32>> {
        match callee {
            Callee::Action(_) => None,
            Callee::Member(place) => self.members.get(place).map(|m| Ok(m.id)),
            Callee::Group(place) => self.groups.get(place).map(|g| Err(g.id)),
        }
    }

    /// An entry now points to this (`1`) or does no longer (`-1`).
    pub(crate) fn use_word(&mut self, word: ActionWord, change: i32) {
        let users = match word.callee() {
            Callee::Action(_) => return,
            Callee::Member(place) => self.members.get_mut(place).map(|m| &mut m.users),
            Callee::Group(place) => self.groups.get_mut(place).map(|g| &mut g.users),
        };
        if let Some(users) = users {
            *users = users.wrapping_add_signed(change);
        }
    }

    fn add_users(&mut self, shares: &[(u64, u32)], change: i32) {
        for &(_, place) in shares {
            self.use_word(ActionWord::member(place), change);
        }
    }

    fn check_shares(
        &self,
        id: u32,
        members: &[GroupMember],
        max_size: u32,
    ) -> Result<Vec<(u64, u32)>, ControlError> {
        let invalid =
            |text: String| self.error(ErrorKind::InvalidArgument, format!("group {id}: {text}"));
        let mut weights = Vec::with_capacity(members.len());
        for member in members {
            let place = self.members.place(member.member).ok_or_else(|| {
                self.error(
                    ErrorKind::NotFound,
                    format!("group {id}: there is no member {}", member.member),
                )
            })?;
            if member.weight == 0 {
                return Err(invalid(format!(
                    "member {} has weight 0; a weight is at least 1",
                    member.member
                )));
            }
            weights.push((place, member.weight));
        }
        weights.sort_unstable();
        if let Some(pair) = weights.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let twice = self.members.get(pair[0].0).map_or(0, |m| m.id);
            return Err(invalid(format!("member {twice} is listed twice")));
        }
        let mut sum = 0u64;
        let shares: Vec<(u64, u32)> = weights
            .into_iter()
            .map(|(place, weight)| {
                sum += u64::from(weight);
                (sum, place)
            })
            .collect();
        if max_size > 0 && sum > u64::from(max_size) {
            return Err(self.error(
                ErrorKind::ResourceExhausted,
                format!("group {id}: the weights sum up to {sum}; its maximal size is {max_size}"),
            ));
        }
        Ok(shares)
    }

    /// The action that a member calls.
    fn check_member(&self, id: u32, call: &ActionCall) -> ControlResult<ActionId> {
        let (schema, actions) = (self.schema(), &self.program.actions);
        // Each table that shares the profile has its own copy of an action: any of them may be named.
        let same = |&a: &ActionId| {
            let (named, own) = (actions.get(call.action.index())?, &actions[a.index()]);
            (named.name == own.name && named.params == own.params).then_some(a)
        };
        let action = schema.actions.iter().find_map(same);
        let action = action.unwrap_or(call.action);
        let call = ActionCall {
            action,
            args: call.args.clone(),
        };
        let place = format_args!("action profile {}: member {id}", schema.name);
        check_call(&schema.actions, actions, &call, place)?;
        Ok(action)
    }

    fn no_member(&self, id: u32) -> ControlError {
        self.error(ErrorKind::NotFound, format!("there is no member {id}"))
    }

    fn no_group(&self, id: u32) -> ControlError {
        self.error(ErrorKind::NotFound, format!("there is no group {id}"))
    }

    fn error(&self, kind: ErrorKind, text: String) -> ControlError {
        ControlError::new(kind, text).at(format_args!("action profile {}", self.schema().name))
    }
}
