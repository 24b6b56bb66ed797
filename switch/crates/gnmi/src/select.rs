// SPDX-License-Identifier: Apache-2.0
//! The leaves of a picture that a pattern names: one walk for Get, Set and Subscribe.

use crate::path::Pattern;
use crate::schema::{nodes, Key, List, Node};
use crate::value::Value;
use crate::view::{View, Wants};
use device::PORT_REFUSALS;
use p4rt::proto::gnmi::{Path, PathElem};
use std::borrow::Cow;

/// One instance of a leaf: its port, and its queue or reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Index in `nodes()`.
    node: usize,
    /// Index in the picture; 0 for the switch's own leaves.
    pub port: usize,
    /// Number of the queue, or index of the reason.
    pub member: usize,
}

impl Instance {
    pub fn node(self) -> &'static Node {
        &nodes()[self.node]
    }

    /// The value of a list's key.
    pub fn key(self, view: &View, key: Key) -> Option<Cow<'_, str>> {
        Some(match key {
            Key::Port => Cow::Borrowed(&*view.ports.get(self.port)?.interface.name),
            Key::Sequence => Cow::Borrowed("1"),
            Key::Queue => Cow::Owned(self.member.to_string()),
            Key::PortReason => Cow::Borrowed(PORT_REFUSALS.get(self.member)?.name()),
            Key::SwitchReason => Cow::Borrowed(view.drops.get(self.member)?.0.name()),
        })
    }

    /// None where it has no value.
    pub fn value(self, view: &View) -> Option<Value> {
        self.node().leaf.value(view, self)
    }

    /// The first `depth` elements of its path.
    pub fn path(self, view: &View, depth: usize) -> Path {
        let elem = self.node().steps.iter().take(depth).map(|step| {
            let key = step
                .key
                .and_then(|(name, of)| Some((name.to_owned(), self.key(view, of)?.into_owned())));
            PathElem {
                name: step.name.to_owned(),
                key: key.into_iter().collect(),
            }
        });
        Path {
            elem: elem.collect(),
            ..Path::default()
        }
    }
}

/// A leaf with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub at: Instance,
    pub value: Value,
}

/// The leaves of the schema that a pattern may name.
#[derive(Debug, Clone)]
pub struct Selection {
    pub pattern: Pattern,
    /// Indices in `nodes()`, by list.
    nodes: Vec<usize>,
}

impl Selection {
    /// Those for which `wanted` is true.
    pub fn new(pattern: Pattern, wanted: impl Fn(&Node) -> bool) -> Selection {
        let all = nodes();
        let is_wanted = |index: &usize| wanted(&all[*index]) && pattern.may_match(&all[*index]);
        let mut nodes: Vec<usize> = (0..all.len()).filter(is_wanted).collect();
        nodes.sort_by_key(|index| all[*index].list);
        Selection { pattern, nodes }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The leaves of the schema.
    pub fn nodes(&self) -> impl Iterator<Item = &'static Node> + '_ {
        self.nodes.iter().map(|index| &nodes()[*index])
    }

    /// What must be read for it.
    pub fn wants(&self) -> Wants {
        let wants = self.nodes().map(|node| node.leaf.wants);
        wants.fold(Wants::default(), Wants::or)
    }

    /// Calls `each` for every instance, whether it has a value or not. Queues are as many as `queues` says of a port of
    /// the picture, or one more that the pattern names. The CPU port is there for those who give its name: who asks for
    /// all ports means those that have an interface, and floods to them.
    pub fn each(
        &self,
        view: &View,
        queues: impl Fn(usize) -> usize,
        mut each: impl FnMut(Instance),
    ) {
        let list = |index: usize| nodes()[index].list;
        let switch = self
            .nodes
            .partition_point(|index| list(*index) < List::Switch);
        let (of_ports, of_switch) = self.nodes.split_at(switch);
        let is_one_list = |a: &usize, b: &usize| list(*a) == list(*b);
        let mut walk = |some: &[usize], port: usize| {
            let node = &nodes()[some[0]];
            let members = match node.list {
                List::Ports | List::Switch => 0..1,
                List::PortReasons => 0..PORT_REFUSALS.len(),
                List::SwitchReasons => 0..view.drops.len(),
                List::Queues | List::Inputs => match self.pattern.key(node, Key::Queue) {
                    None => 0..queues(port),
                    Some(queue) => queue
                        .parse()
                        .map_or(0..0, |q: usize| q..q.saturating_add(1)),
                },
            };
            for member in members {
                let all = some.iter().map(|node| Instance {
                    node: *node,
                    port,
                    member,
                });
                all.filter(|at| self.names(view, *at)).for_each(&mut each);
            }
        };
        for (port, its) in view.ports.iter().enumerate() {
            for some in of_ports.chunk_by(is_one_list) {
                let named = self.pattern.key(&nodes()[some[0]], Key::Port);
                if named.is_none_or(|name| name == its.interface.name) {
                    walk(some, port);
                }
            }
        }
        let of_switch = of_switch.chunk_by(is_one_list);
        of_switch.for_each(|some| walk(some, 0));
    }

    fn names(&self, view: &View, at: Instance) -> bool {
        let key = |key| at.key(view, key);
        // Nothing is named so: what matches all the same does not give the key.
        let no_port = |of| match of {
            Key::Port => Some(Cow::Borrowed("\0")),
            _ => key(of),
        };
        let node = at.node();
        let is_cpu = node.list < List::Switch && view.ports[at.port].interface.cpu;
        self.pattern.matches(node, &key) && !(is_cpu && self.pattern.matches(node, &no_port))
    }

    /// The leaves that have a value; None when these are more than `max`.
    pub fn read(&self, view: &View, max: usize) -> Option<Vec<Found>> {
        let (mut found, mut more) = (Vec::new(), false);
        self.each_read(view, |at| {
            if more {
                return;
            }
            if let Some(value) = at.value(view) {
                more = found.len() == max;
                if !more {
                    found.push(Found { at, value });
                }
            }
        });
        (!more).then_some(found)
    }

    /// How many leaves have a value; where these are more than `max`, any number above it.
    pub fn count(&self, view: &View, max: usize) -> usize {
        let mut count = 0;
        self.each_read(view, |at| {
            count += usize::from(count <= max && at.value(view).is_some());
        });
        count
    }

    /// Whether one of the instances is there, value or not.
    pub fn is_there(&self, view: &View) -> bool {
        let mut there = false;
        self.each_read(view, |at| {
            let is_queue = |queues| at.member < queues;
            there |= !at.node().is_of_queue() || is_queue(view.ports[at.port].config.queues);
        });
        there
    }

    fn each_read(&self, view: &View, each: impl FnMut(Instance)) {
        self.each(view, |port| view.ports[port].config.queues, each);
    }
}
