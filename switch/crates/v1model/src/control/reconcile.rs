// SPDX-License-Identifier: Apache-2.0
//! RECONCILE_AND_COMMIT: what a new program takes over from the state of the old one, which forwards meanwhile.
//!
//! A `Takeover` reads the old state in short pieces, where packets wait; each piece is put into the new program where they
//! do not. Cells of counters, meters and registers change hands at the end, whole.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::bits::{ActionCall, Entry, EntryAction, EntryStats};
use crate::error::ControlResult;
use crate::pipeline::Pipeline;
use crate::schema::{ActionId, ProfileId, Schema, TableId, TableSchema};

/// Old actions by the new ones of the same name and parameters.
type Actions = Arc<HashMap<ActionId, ActionId>>;

/// What is still to be read of the old program's state.
pub struct Takeover {
    jobs: VecDeque<Job>,
    /// Places of equal counters, meters and registers: new, old.
    arrays: [Vec<(usize, usize)>; 3],
}

/// What a new program takes over of an old one's state, by its own ids.
#[derive(Default)]
pub struct Kept {
    /// Action profiles, with all members and groups.
    pub profiles: HashSet<ProfileId>,
    /// Tables, with all entries.
    pub entries: HashSet<TableId>,
    /// Tables whose default action is taken over where it may be changed.
    pub defaults: HashSet<TableId>,
}

enum Job {
    Members(ProfileId, ProfileId, Actions, u32),
    Groups(ProfileId, ProfileId, u32),
    Default(TableId, TableId, Actions),
    Entries(TableId, TableId, Actions, u32),
}

/// A piece of the old program's state: what puts it into the new one.
pub struct Piece(Box<dyn FnOnce(&mut Pipeline) -> ControlResult + Send>);

fn mapped(actions: &Actions, ActionCall { action, args }: ActionCall) -> ActionCall {
    let action = actions[&action];
    ActionCall { action, args }
}

impl Piece {
    fn new(put: impl FnOnce(&mut Pipeline) -> ControlResult + Send + 'static) -> Piece {
        Piece(Box::new(put))
    }
}

impl Takeover {
    /// What is taken over: to be asked after `begin` and before `read`.
    pub fn kept(&self) -> Kept {
        let mut kept = Kept::default();
        for job in &self.jobs {
            match job {
                Job::Members(id, ..) => kept.profiles.insert(*id),
                Job::Groups(..) => continue,
                Job::Default(id, ..) => kept.defaults.insert(*id),
                Job::Entries(id, ..) => kept.entries.insert(*id),
            };
        }
        kept
    }

    /// Reads up to `max` more of the old program's state; None when that was all.
    pub fn read(&mut self, old: &Pipeline, max: usize) -> Option<Piece> {
        let (piece, rest) = match self.jobs.pop_front()? {
            Job::Members(id, from, actions, at) => {
                let mut members = Vec::with_capacity(max);
                let next = old.profile(from).scan_members(at, max, &mut members);
                let rest = next.map(|at| Job::Members(id, from, actions.clone(), at));
                let piece = Piece::new(move |new| {
                    let profile = new.profile_mut(id);
                    let put =
                        |(member, call)| profile.insert_member(member, &mapped(&actions, call));
                    members.into_iter().try_for_each(put)
                });
                (piece, rest)
            }
            Job::Groups(id, from, at) => {
                // Each has many members.
                let (mut groups, max) = (Vec::new(), max / 64 + 1);
                let next = old.profile(from).scan_groups(at, max, &mut groups);
                let piece = Piece::new(move |new| {
                    let profile = new.profile_mut(id);
                    let mut groups = groups.iter();
                    groups.try_for_each(|(group, members)| profile.insert_group(*group, members))
                });
                (piece, next.map(|at| Job::Groups(id, from, at)))
            }
            Job::Default(id, from, actions) => {
                let (table, own) = (old.table(from), &old.table_schema(from).default_action);
                let (stats, call) = (table.default_stats(), table.default_call());
                let call =
                    call.filter(|c| Some(c) != own.as_ref() && actions.contains_key(&c.action));
                let call = call.map(|call| mapped(&actions, call));
                let piece = Piece::new(move |new| {
                    let call = call.filter(|_| !new.table_schema(id).const_default_action);
                    let table = new.table_mut(id);
                    table.set_default_count(stats.packets, stats.bytes);
                    call.map_or(Ok(()), |call| table.set_default(Some(&call)))
                });
                (piece, None)
            }
            Job::Entries(id, from, actions, at) => {
                let mut entries = Vec::with_capacity(max);
                let next = old.table_scan(from, at, max, &mut entries);
                let rest = next.map(|at| Job::Entries(id, from, actions.clone(), at));
                let piece = Piece::new(move |new| {
                    if at == 0 {
                        // What the program puts in at the start: the clients of the old one may have changed or deleted it.
                        new.table_mut(id).clear(|_| {})?;
                    }
                    let put = |(entry, stats)| new.take_entry(id, entry, &stats, &actions);
                    entries.into_iter().try_for_each(put)
                });
                (piece, rest)
            }
        };
        rest.into_iter().for_each(|job| self.jobs.push_front(job));
        Some(piece)
    }

    /// What a table or profile that holds too much for the new one leaves behind: its state is not taken over.
    fn leave_out(&mut self, old: &Pipeline, pipeline: &Pipeline) {
        let new = &pipeline.schema;
        let fits = |of: usize, max: u32| max == 0 || of <= max as usize;
        let small = |id: &ProfileId, from: &ProfileId| {
            !fits(
                old.profile(*from).members(),
                new.profiles[id.index()].max_size,
            )
        };
        let profiles: Vec<ProfileId> = self
            .jobs
            .iter()
            .filter_map(|job| match job {
                Job::Members(id, from, ..) if small(id, from) => Some(*id),
                _ => None,
            })
            .collect();
        self.jobs.retain(|job| match job {
            Job::Members(id, ..) | Job::Groups(id, ..) => !profiles.contains(id),
            Job::Default(id, ..) => {
                let profile = new.tables[id.index()].profile;
                !profile.is_some_and(|p| profiles.contains(&p))
            }
            Job::Entries(id, from, ..) => {
                let table = &new.tables[id.index()];
                let left_out = table.profile.is_some_and(|p| profiles.contains(&p));
                !left_out
                    && !old.table(*from).is_const()
                    && old.table(*from).entries() <= pipeline.table(*id).max_size() as usize
            }
        });
    }
}

impl Pipeline {
    /// What can be carried over from a program of this schema: the entries, members, groups, default actions, counters,
    /// meters and registers of every object whose name and shape are equal (P4Runtime RECONCILE_AND_COMMIT).
    /// A table keeps its entries if its keys, actions and direct resources are the same and they fit; const tables have
    /// the new program's. Then call `begin` and `Takeover::read` where the old program is, `take` with each piece, and
    /// `take_arrays` at the end.
    pub fn takeover(&self, old: &Schema) -> Takeover {
        let mut jobs = VecDeque::new();
        let schema = &self.schema;
        let mut kept = HashMap::new();
        for (n, o) in pairs(&schema.profiles, &old.profiles, |p| (&p.name, p.selector)) {
            let (new, from) = (&schema.profiles[n], &old.profiles[o]);
            if let Some(actions) = self.same_actions(old, &new.actions, &from.actions) {
                kept.insert(new.id, from.id);
                jobs.push_back(Job::Members(new.id, from.id, actions, 0));
                jobs.push_back(Job::Groups(new.id, from.id, 0));
            }
        }
        let table = |t: &'_ TableSchema| {
            let meter = t.direct_meter.as_ref().map(|m| m.unit);
            (t.direct_counter.is_some(), meter, t.support_timeout)
        };
        for (n, o) in pairs(&schema.tables, &old.tables, |t| (&t.name, table(t))) {
            let (new, from) = (&schema.tables[n], &old.tables[o]);
            let same_profile = match (new.profile, from.profile) {
                (None, None) => true,
                (Some(n), Some(o)) => kept.get(&n) == Some(&o),
                _ => false,
            };
            let same = new.keys == from.keys && same_profile;
            let actions = self.same_actions(old, &new.actions, &from.actions);
            if let (true, Some(actions)) = (same, actions) {
                jobs.push_back(Job::Default(new.id, from.id, actions.clone()));
                if !self.table(new.id).is_const() {
                    jobs.push_back(Job::Entries(new.id, from.id, actions, 0));
                }
            }
        }
        let arrays = [
            pairs(&schema.counters, &old.counters, |c| (&c.name, c.size)),
            pairs(&schema.meters, &old.meters, |m| (&m.name, (m.size, m.unit))),
            pairs(&schema.registers, &old.registers, |r| {
                (&r.name, (r.size, r.width))
            }),
        ];
        Takeover { jobs, arrays }
    }

    /// Leaves out what does not fit.
    pub fn begin(&self, takeover: &mut Takeover, old: &Pipeline) {
        takeover.leave_out(old, self);
    }

    /// Puts a piece of an old program's state in place.
    pub fn take(&mut self, piece: Piece) -> ControlResult {
        (piece.0)(self)
    }

    fn take_entry(
        &mut self,
        id: TableId,
        mut entry: Entry,
        stats: &EntryStats,
        actions: &Actions,
    ) -> ControlResult {
        if let EntryAction::Direct(call) = entry.action {
            entry.action = EntryAction::Direct(mapped(actions, call));
        }
        let (word, args) = self.check_action(id, &entry.action)?;
        let table = self.table_mut(id);
        let at = table.insert(&entry, word, args, stats.last_hit)?;
        table.restore(at, stats);
        self.use_word(id, word, 1);
        Ok(())
    }

    /// Exchanges the cells of equal counters, meters and registers with the old program, which is not used after that:
    /// whatever packets wrote into them until now counts.
    pub fn take_arrays(&mut self, takeover: &Takeover, old: &mut Pipeline) {
        fn exchange<T>(pairs: &[(usize, usize)], new: &mut [T], old: &mut [T]) {
            for (n, o) in pairs {
                std::mem::swap(&mut new[*n], &mut old[*o]);
            }
        }
        let [counters, meters, registers] = &takeover.arrays;
        let (new, old) = (&mut self.state, &mut old.state);
        exchange(counters, &mut new.counters, &mut old.counters);
        exchange(meters, &mut new.meters, &mut old.meters);
        exchange(registers, &mut new.registers, &mut old.registers);
    }

    /// Each old action with one of the same name and parameters among the new ones; None when one has none.
    fn same_actions(&self, old: &Schema, new: &[ActionId], from: &[ActionId]) -> Option<Actions> {
        let same = |a: &ActionId| {
            let from = &old.actions[a.index()];
            let new = new.iter().copied().find(|&b| {
                let new = self.action_schema(b);
                new.name == from.name && new.params == from.params
            });
            Some((*a, new?))
        };
        let all: Option<HashMap<_, _>> = from.iter().map(same).collect();
        all.map(Arc::new)
    }
}

/// Places of those that have the same name and shape: new, old.
fn pairs<T, S: PartialEq>(
    new: &[T],
    old: &[T],
    of: impl Fn(&T) -> (&String, S),
) -> Vec<(usize, usize)> {
    let old = old.iter().map(&of).enumerate();
    let old: HashMap<&String, (usize, S)> =
        old.map(|(o, (name, shape))| (name, (o, shape))).collect();
    let pair = |(n, new)| {
        let (name, shape) = of(new);
        let (o, own) = old.get(name)?;
        (*own == shape).then_some((n, *o))
    };
    new.iter().enumerate().filter_map(pair).collect()
}
