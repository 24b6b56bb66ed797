// SPDX-License-Identifier: Apache-2.0
//! Action profiles and selectors: members (action calls) and groups of weighted members that table entries point to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::key::{check_call, ActionWord, Callee};
use crate::bits::ActionCall;
use crate::control::GroupMember;
use crate::error::{At, ControlResult};
use crate::schema::{ActionId, ProfileId, ProfileSchema, Schema};
use crate::{refusal, refuse};

/// Members of a profile that has no size of its own.
const MEMBERS_MAX: usize = 1 << 20;
/// Groups of a profile.
const GROUPS_MAX: usize = 1 << 16;

#[derive(Clone)]
struct Group {
    /// As they were given.
    members: Box<[GroupMember]>,
    /// Where they are: the group is a user of each of them.
    places: Box<[u32]>,
    /// Those that packets go to by place, each with the sum of the weights up to its own.
    shares: Vec<(u64, u32)>,
}

fn places(shares: &[(u64, u32)]) -> Box<[u32]> {
    shares.iter().map(|(_, place)| *place).collect()
}

/// What has an id and a place, and is in use.
#[derive(Clone)]
struct Item<T> {
    id: u32,
    /// How many point here.
    users: u32,
    is: T,
}

/// Members, or groups. A place stays with its item until that is deleted; the lowest free one is next.
#[derive(Clone)]
struct Places<T> {
    /// What an item is called, and what points to it.
    names: [&'static str; 2],
    at: Vec<Option<Item<T>>>,
    by_id: BTreeMap<u32, u32>,
    free: BinaryHeap<Reverse<u32>>,
}

impl<T> Places<T> {
    fn new(name: &'static str, users: &'static str) -> Self {
        Places {
            names: [name, users],
            at: Vec::new(),
            by_id: BTreeMap::new(),
            free: BinaryHeap::new(),
        }
    }

    /// Whether there is room for one more, with this id.
    fn check_new(&self, id: u32, most: usize) -> ControlResult {
        let ([name, _], len) = (self.names, self.by_id.len());
        if self.by_id.contains_key(&id) {
            refuse!(AlreadyExists, "{name} {id} exists");
        }
        if len >= most {
            refuse!(
                ResourceExhausted,
                "it is full: {len} {name}s of at most {most}"
            );
        }
        Ok(())
    }

    fn add(&mut self, id: u32, is: T) {
        let place = match self.free.pop() {
            Some(Reverse(place)) => place,
            None => {
                self.at.push(None);
                self.at.len() as u32 - 1
            }
        };
        self.at[place as usize] = Some(Item { id, users: 0, is });
        self.by_id.insert(id, place);
    }

    /// Takes one away that nothing points to.
    fn remove(&mut self, id: u32) -> ControlResult<T> {
        let place = self.place(id)?;
        let [name, users] = self.names;
        let item = &mut self.at[place as usize];
        if let Some(Item { users: n @ 1.., .. }) = item {
            refuse!(
                FailedPrecondition,
                "{name} {id} is in use by {n} {users}; delete these first"
            );
        }
        let item = item.take().expect("an id has an item");
        self.by_id.remove(&id);
        self.free.push(Reverse(place));
        Ok(item.is)
    }

    /// Up to `max` from the id `from` on, by their ids, and the id to go on from.
    fn scan(&self, from: u32, max: usize) -> (impl Iterator<Item = &Item<T>>, Option<u32>) {
        let next = self.by_id.range(from..).nth(max).map(|(id, _)| *id);
        let some = self.by_id.range(from..).take(max);
        (some.filter_map(|(_, place)| self.get(*place)), next)
    }

    fn place(&self, id: u32) -> ControlResult<u32> {
        let no_such = || refusal!(NotFound, "there is no {} {id}", self.names[0]);
        self.by_id.get(&id).copied().ok_or_else(no_such)
    }

    #[inline]
    fn get(&self, place: u32) -> Option<&Item<T>> {
        self.at.get(place as usize)?.as_ref()
    }

    fn by_id(&self, id: u32) -> Option<&T> {
        Some(&self.get(*self.by_id.get(&id)?)?.is)
    }

    fn by_id_mut(&mut self, id: u32) -> ControlResult<&mut T> {
        let place = self.place(id)?;
        let item = self.at[place as usize].as_mut();
        Ok(&mut item.expect("an id has an item").is)
    }

    fn count_users(&mut self, place: u32, change: i32) {
        if let Some(Some(item)) = self.at.get_mut(place as usize) {
            item.users = item.users.wrapping_add_signed(change);
        }
    }
}

/// The members and groups of one action profile.
#[derive(Clone)]
pub struct Profile {
    program: Arc<Schema>,
    id: ProfileId,
    members: Places<ActionCall>,
    groups: Places<Group>,
}

impl Profile {
    /// An empty profile of this program.
    pub fn new(program: &Arc<Schema>, id: ProfileId) -> Self {
        Profile {
            program: program.clone(),
            id,
            members: Places::new("member", "entries and groups"),
            groups: Places::new("group", "entries"),
        }
    }

    pub(crate) fn schema(&self) -> &ProfileSchema {
        &self.program.profiles[self.id.index()]
    }

    /// The place of the member that a group chooses for a hash: members share by weight. `None` for an empty group.
    #[inline]
    pub(crate) fn select(&self, group: u32, hash: u64) -> Option<u32> {
        let shares = &self.groups.get(group)?.is.shares;
        let total = shares.last()?.0;
        let point = hash % total;
        if total == shares.len() as u64 {
            return Some(shares[point as usize].1);
        }
        let i = shares.partition_point(|&(until, _)| until <= point);
        Some(shares[i].1)
    }

    /// The action of the member at a place, with its argument limbs.
    #[inline]
    pub(crate) fn member(&self, place: u32) -> Option<(ActionId, &[u64])> {
        let call = &self.members.get(place)?.is;
        Some((call.action, &call.args))
    }

    /// Adds a member.
    pub fn insert_member(&mut self, id: u32, call: &ActionCall) -> ControlResult {
        let call = self.check_member(id, call)?;
        let most = match self.schema().max_size {
            0 => MEMBERS_MAX,
            size => size as usize,
        };
        self.placed(self.members.check_new(id, most))?;
        self.members.add(id, call);
        Ok(())
    }

    /// Changes what a member does.
    pub fn modify_member(&mut self, id: u32, call: &ActionCall) -> ControlResult {
        let call = self.check_member(id, call)?;
        let changed = self.members.by_id_mut(id).map(|member| *member = call);
        self.placed(changed)
    }

    /// Deletes a member that nothing points to.
    pub fn delete_member(&mut self, id: u32) -> ControlResult {
        let removed = self.members.remove(id);
        self.placed(removed).map(drop)
    }

    /// What a member does.
    pub fn get_member(&self, id: u32) -> Option<ActionCall> {
        self.members.by_id(id).cloned()
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
        out.extend(some.map(|m| (m.id, m.is.clone())));
        next
    }

    /// The same of groups, with their members.
    pub fn scan_groups(
        &self,
        cursor: u32,
        max: usize,
        out: &mut Vec<(u32, Vec<GroupMember>)>,
    ) -> Option<u32> {
        let (some, next) = self.groups.scan(cursor, max);
        out.extend(some.map(|g| (g.id, g.is.members.to_vec())));
        next
    }

    /// Adds a group whose members are all live.
    pub fn insert_group(&mut self, id: u32, members: &[GroupMember]) -> ControlResult {
        if !self.schema().selector {
            let text = "it has no selector, so it has no groups";
            return self.placed(Err(refusal!("group {id}: {text}")));
        }
        self.placed(self.groups.check_new(id, GROUPS_MAX))?;
        let shares = self.check_shares(id, members)?;
        let places = places(&shares);
        self.add_users(&places, 1);
        let members = members.into();
        self.groups.add(
            id,
            Group {
                members,
                places,
                shares,
            },
        );
        Ok(())
    }

    /// Replaces the members of a group; all are live.
    pub fn modify_group(&mut self, id: u32, members: &[GroupMember]) -> ControlResult {
        self.placed(self.groups.place(id))?;
        let shares = self.check_shares(id, members)?;
        let places = places(&shares);
        self.add_users(&places, 1);
        let group = self.groups.by_id_mut(id)?;
        (group.members, group.shares) = (members.into(), shares);
        let before = std::mem::replace(&mut group.places, places);
        self.add_users(&before, -1);
        Ok(())
    }

    /// Has packets go to the `live` of a group's members alone, given in the order that they have there. The others are its
    /// members all the same.
    pub fn set_live(&mut self, id: u32, live: &[GroupMember]) -> ControlResult {
        let place = self.placed(self.groups.place(id))?;
        let group = self.groups.get(place);
        let mut all = group.into_iter().flat_map(|group| group.is.members.iter());
        if !live.iter().all(|own| all.any(|member| member == own)) {
            let text = "those to be live must be its members, in their order";
            return self.placed(Err(refusal!("group {id}: {text}")));
        }
        let shares = self.check_shares(id, live)?;
        self.groups.by_id_mut(id)?.shares = shares;
        Ok(())
    }

    /// Deletes a group that no entry points to.
    pub fn delete_group(&mut self, id: u32) -> ControlResult {
        let removed = self.groups.remove(id);
        let group = self.placed(removed)?;
        self.add_users(&group.places, -1);
        Ok(())
    }

    /// The members of a group, as they were given.
    pub fn get_group(&self, id: u32) -> Option<Vec<GroupMember>> {
        Some(self.groups.by_id(id)?.members.to_vec())
    }

    /// The word of an entry that points to a member.
    pub(crate) fn member_word(&self, id: u32) -> ControlResult<ActionWord> {
        self.placed(self.members.place(id).map(ActionWord::member))
    }

    /// The word of an entry that points to a group.
    pub(crate) fn group_word(&self, id: u32) -> ControlResult<ActionWord> {
        self.placed(self.groups.place(id).map(ActionWord::group))
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
        match word.callee() {
            Callee::Action(_) => {}
            Callee::Member(place) => self.members.count_users(place, change),
            Callee::Group(place) => self.groups.count_users(place, change),
        }
    }

    fn add_users(&mut self, places: &[u32], change: i32) {
        for place in places {
            self.members.count_users(*place, change);
        }
    }

    fn check_shares(&self, id: u32, members: &[GroupMember]) -> ControlResult<Vec<(u64, u32)>> {
        let shares = || {
            let mut weights = Vec::with_capacity(members.len());
            for &GroupMember { member, weight } in members {
                let place = self.members.place(member)?;
                if weight == 0 {
                    refuse!("member {member} has weight 0; a weight is at least 1");
                }
                weights.push((place, weight));
            }
            weights.sort_unstable();
            if let Some(pair) = weights.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let twice = self.members.get(pair[0].0).map_or(0, |m| m.id);
                refuse!("member {twice} is listed twice");
            }
            let mut sum = 0u64;
            let share = |(place, weight)| {
                sum += u64::from(weight);
                (sum, place)
            };
            Ok(weights.into_iter().map(share).collect())
        };
        let shares: ControlResult<_> = shares();
        self.placed(shares.at(format_args!("group {id}")))
    }

    /// What a member calls.
    fn check_member(&self, id: u32, call: &ActionCall) -> ControlResult<ActionCall> {
        let (schema, actions) = (self.schema(), &self.program.actions);
        // Each table that shares the profile has its own copy of an action: any of them may be named.
        let same = |&a: &ActionId| {
            let (named, own) = (actions.get(call.action.index())?, &actions[a.index()]);
            (named.name == own.name && named.params == own.params).then_some(a)
        };
        let action = schema.actions.iter().find_map(same);
        let action = action.unwrap_or(call.action);
        let args = call.args.clone();
        let call = ActionCall { action, args };
        let place = format_args!("action profile {}: member {id}", schema.name);
        check_call(&schema.actions, actions, &call).at(place)?;
        Ok(call)
    }

    /// A result whose error names this profile.
    fn placed<T>(&self, result: ControlResult<T>) -> ControlResult<T> {
        result.at(format_args!("action profile {}", self.schema().name))
    }
}
