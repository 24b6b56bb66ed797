// SPDX-License-Identifier: Apache-2.0
//! The leaves of a picture that patterns name.

use crate::leaf::{key_at, read, Place};
use crate::path::Pattern;
use crate::schema::{nodes, Key, Node, Part};
use crate::value::Value;
use crate::view::{View, Wants};
use device::PORT_REFUSALS;

/// A leaf with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Index in `nodes()`.
    pub node: usize,
    pub place: Place,
    pub value: Value,
}

impl Found {
    pub fn node(&self) -> &'static Node {
        &nodes()[self.node]
    }
}

/// The leaves of the schema that a pattern may name, sorted by what they belong to.
#[derive(Debug, Clone)]
pub struct Selection {
    pattern: Pattern,
    of_ports: Vec<usize>,
    of_drops: Vec<usize>,
    of_queues: [Vec<usize>; 2],
    of_switch: Vec<usize>,
    /// Without any key.
    of_whole: Vec<usize>,
}

impl Selection {
    /// Those for which `wanted` is true.
    pub fn new(pattern: Pattern, wanted: impl Fn(&Node) -> bool) -> Selection {
        let mut selection = Selection {
            pattern,
            of_ports: Vec::new(),
            of_drops: Vec::new(),
            of_queues: [Vec::new(), Vec::new()],
            of_switch: Vec::new(),
            of_whole: Vec::new(),
        };
        for (index, node) in nodes().iter().enumerate() {
            if !wanted(node) || !selection.pattern.may_match(node) {
                continue;
            }
            let group = if node.has_key(Key::SwitchReason) {
                &mut selection.of_switch
            } else if node.steps.iter().all(|step| step.key.is_none()) {
                &mut selection.of_whole
            } else if node.has_key(Key::PortReason) {
                &mut selection.of_drops
            } else if node.has_key(Key::Queue) {
                // Each of the two lists of queues in one piece.
                &mut selection.of_queues[usize::from(node.has_key(Key::Sequence))]
            } else {
                &mut selection.of_ports
            };
            group.push(index);
        }
        selection
    }

    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    pub fn is_empty(&self) -> bool {
        self.nodes().next().is_none()
    }

    /// The leaves of the schema.
    pub fn nodes(&self) -> impl Iterator<Item = &'static Node> + '_ {
        let groups = [
            &self.of_ports,
            &self.of_drops,
            &self.of_switch,
            &self.of_whole,
        ];
        let groups = groups.into_iter().chain(&self.of_queues);
        groups.flatten().map(|index| &nodes()[*index])
    }

    /// What must be read for it.
    pub fn wants(&self) -> Wants {
        Wants {
            queues: self.of_queues.iter().any(|group| !group.is_empty()),
            ethernet: self.nodes().any(|node| node.leaf.is_ethernet()),
        }
    }

    /// Calls `each` for every place of a leaf, whether it has a value there or not. Queues are those of the picture,
    /// or one more that the pattern names. The CPU port is there for those who give its name: who asks for all ports
    /// means those that have an interface, and floods to them.
    pub fn each_place(&self, view: &View, each: impl FnMut(usize, Place)) {
        self.each_place_of(view, |port| view.ports[port].config.queues, each);
    }

    /// The same with so many queues at a port of the picture.
    pub fn each_place_of(
        &self,
        view: &View,
        queues: impl Fn(usize) -> usize,
        mut each: impl FnMut(usize, Place),
    ) {
        let mut one = |index: usize, place: Place| {
            let node = &nodes()[index];
            let key = |key| key_at(view, place, key);
            if self.pattern.matches(node, &key)
                && (!is_cpu(view, node, place) || self.pattern.gives(node, Key::Port, &key))
            {
                each(index, place);
            }
        };
        for port in 0..view.ports.len() {
            for index in &self.of_ports {
                one(*index, Place { port, member: 0 });
            }
            for group in &self.of_queues {
                let Some(first) = group.first() else {
                    continue;
                };
                let named = self.pattern.key(&nodes()[*first], Key::Port);
                if named.is_some_and(|name| name != view.ports[port].interface.name) {
                    continue;
                }
                let given = self.pattern.key(&nodes()[*first], Key::Queue);
                let members = match given.map(str::parse::<usize>) {
                    Some(Ok(queue)) => queue..queue.saturating_add(1),
                    Some(Err(_)) => 0..0,
                    None => 0..queues(port),
                };
                for member in members {
                    group
                        .iter()
                        .for_each(|index| one(*index, Place { port, member }));
                }
            }
            if !self.of_drops.is_empty() {
                for member in 0..PORT_REFUSALS.len() {
                    let place = Place { port, member };
                    self.of_drops.iter().for_each(|index| one(*index, place));
                }
            }
        }
        let whole = Place { port: 0, member: 0 };
        self.of_whole.iter().for_each(|index| one(*index, whole));
        if !self.of_switch.is_empty() {
            for member in 0..view.drops.len() {
                let place = Place { port: 0, member };
                self.of_switch.iter().for_each(|index| one(*index, place));
            }
        }
    }

    /// The leaves that have a value; None when these are more than `most`.
    pub fn read(&self, view: &View, most: usize) -> Option<Vec<Found>> {
        let (mut found, mut more) = (Vec::new(), false);
        self.each_place(view, |node, place| {
            if more {
                return;
            }
            if let Some(value) = read(&nodes()[node], view, place) {
                more = found.len() == most;
                if !more {
                    found.push(Found { node, place, value });
                }
            }
        });
        (!more).then_some(found)
    }

    /// How many leaves have a value; where these are more than `most`, any number above it.
    pub fn count(&self, view: &View, most: usize) -> usize {
        let mut count = 0;
        self.each_place(view, |node, place| {
            if count <= most && read(&nodes()[node], view, place).is_some() {
                count += 1;
            }
        });
        count
    }

    /// Whether one of the places of the pattern is there, value or not.
    pub fn is_there(&self, view: &View) -> bool {
        let mut there = false;
        self.each_place(view, |node, place| {
            let queues = view.ports.get(place.port).map_or(0, |p| p.config.queues);
            there |= !nodes()[node].has_key(Key::Queue) || place.member < queues;
        });
        there
    }
}

/// Whether a leaf is the CPU port's at this place.
fn is_cpu(view: &View, node: &Node, place: Place) -> bool {
    let port = view.ports.get(place.port);
    node.has_key(Key::Port) && port.is_some_and(|port| port.interface.cpu)
}

/// Whether a leaf is of the part that a Get names.
pub fn is_in_part(node: &Node, part: Option<Part>) -> bool {
    match part {
        None => true,
        Some(Part::Applied) => matches!(node.part, Part::Applied | Part::Operational | Part::Key),
        Some(part) => node.part == part || node.part == Part::Key,
    }
}
