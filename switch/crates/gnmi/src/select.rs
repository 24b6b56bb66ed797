// SPDX-License-Identifier: Apache-2.0
//! The leaves of a picture that a pattern names: one walk for Get, Set and Subscribe.

use std::borrow::Cow;
use std::ops::Range;

use device::PORT_REFUSALS;
use p4rt::bail;
use p4rt::proto::gnmi::{Encoding, Path, PathElem, TypedValue};
use serde_json::Value as Json;
use tonic::Status;

use crate::path::{nodes, Key, Node, Pattern};
use crate::view::{View, Wants};

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
    pub fn value(self, view: &View) -> Option<Json> {
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
    pub value: Json,
}

impl Found {
    pub fn encode(&self, encoding: Encoding) -> TypedValue {
        self.at.node().leaf.kind.encode(&self.value, encoding)
    }
}

/// The leaves of the schema that a pattern may name.
#[derive(Debug, Clone)]
pub struct Selection {
    pub pattern: Pattern,
    /// Indices in `nodes()`.
    nodes: Vec<usize>,
}

impl Selection {
    /// Those for which `wanted` is true.
    pub fn new(pattern: Pattern, wanted: impl Fn(&Node) -> bool) -> Selection {
        let is_wanted = |(_, node): &(usize, &Node)| wanted(node) && pattern.may_match(node);
        let nodes = nodes().iter().enumerate().filter(is_wanted);
        Selection {
            nodes: nodes.map(|(index, _)| index).collect(),
            pattern,
        }
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

    /// Calls `each` for every instance, whether it has a value or not: port by port, and list by list. Queues are as many
    /// as `queues` says of a port of the picture, or one more that the pattern names. The CPU port is there for those who
    /// give its name: who asks for all ports means those that have an interface, and floods to them.
    pub fn each(
        &self,
        view: &View,
        queues: impl Fn(usize) -> usize,
        mut each: impl FnMut(Instance),
    ) {
        let node = |index: &usize| &nodes()[*index];
        let is_alike = |a: &usize, b: &usize| node(a).is_of_port == node(b).is_of_port;
        for some in self.nodes.chunk_by(is_alike) {
            let ports = match node(&some[0]).is_of_port {
                true => view.ports.len(),
                false => 1,
            };
            for port in 0..ports {
                for list in some.chunk_by(|a, b| node(a).list == node(b).list) {
                    for member in self.members(view, node(&list[0]), port, &queues) {
                        let all = list.iter().map(|node| Instance {
                            node: *node,
                            port,
                            member,
                        });
                        all.filter(|at| self.names(view, *at)).for_each(&mut each);
                    }
                }
            }
        }
    }

    /// The members of the list that a leaf is in, as far as the pattern says which.
    fn members(
        &self,
        view: &View,
        node: &Node,
        port: usize,
        queues: impl Fn(usize) -> usize,
    ) -> Range<usize> {
        let is_other = |name: &str| view.ports[port].interface.name != name;
        if self.pattern.key(node, Key::Port).is_some_and(is_other) {
            return 0..0;
        }
        match node.member {
            Some(Key::Queue) => match self.pattern.key(node, Key::Queue).map(str::parse) {
                None => 0..queues(port),
                Some(Ok(queue)) => queue..usize::saturating_add(queue, 1),
                Some(Err(_)) => 0..0,
            },
            Some(Key::PortReason) => 0..PORT_REFUSALS.len(),
            Some(Key::SwitchReason) => 0..view.drops.len(),
            Some(Key::Port | Key::Sequence) | None => 0..1,
        }
    }

    fn names(&self, view: &View, at: Instance) -> bool {
        let key = |key| at.key(view, key);
        // Nothing is named so: what matches all the same does not give the key.
        let no_port = |of| match of {
            Key::Port => Some(Cow::Borrowed("\0")),
            _ => key(of),
        };
        let node = at.node();
        let is_cpu = node.is_of_port && view.ports[at.port].interface.cpu;
        self.pattern.matches(node, &key) && !(is_cpu && self.pattern.matches(node, &no_port))
    }

    /// The leaves that have a value; None when these are more than `max`.
    pub fn read(&self, view: &View, max: usize) -> Option<Vec<Found>> {
        let mut found = Vec::new();
        self.each_read(view, |at| {
            if found.len() <= max {
                found.extend(at.value(view).map(|value| Found { at, value }));
            }
        });
        (found.len() <= max).then_some(found)
    }

    /// How many leaves have a value; where these are more than `max`, any number above it.
    pub fn count(&self, view: &View, max: usize) -> usize {
        let mut count = 0;
        self.each_read(view, |at| {
            count += usize::from(count <= max && at.value(view).is_some());
        });
        count
    }

    /// # Errors
    /// NOT_FOUND when a key names nothing.
    pub fn check_there(&self, view: &View) -> Result<(), Status> {
        let mut is_there = !self.pattern.is_exact() || self.is_empty();
        self.each_read(view, |at| {
            let queues = view.ports.get(at.port).map_or(0, |port| port.config.queues);
            is_there |= at.node().member != Some(Key::Queue) || at.member < queues;
        });
        if is_there {
            return Ok(());
        }
        let names: Vec<&str> = view.ports.iter().map(|p| &*p.interface.name).collect();
        bail!(
            not_found,
            "{}: there is nothing of this name; interfaces are {}, queues have numbers from 0 on",
            self.pattern.text(),
            names.join(", ")
        )
    }

    fn each_read(&self, view: &View, each: impl FnMut(Instance)) {
        self.each(view, |port| view.ports[port].config.queues, each);
    }
}
