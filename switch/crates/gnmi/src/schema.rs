// SPDX-License-Identifier: Apache-2.0
//! The tree of leaves: each row of [`crate::leaf`] with the steps of its path.

use crate::leaf::{self, Leaf, Row};
use std::sync::OnceLock;

/// What a list's key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A port, by its interface.
    Port,
    /// The one scheduler of a port.
    Sequence,
    /// A queue of a port, by its number.
    Queue,
    /// A reason why the port refused packets.
    PortReason,
    /// A reason why the switch dropped packets.
    SwitchReason,
}

/// One element of a leaf's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub name: &'static str,
    /// The YANG module that defines it.
    pub module: &'static str,
    /// The list's key, by name.
    pub key: Option<(&'static str, Key)>,
}

impl Step {
    /// Whether a name, which may have a module, is this step's.
    pub fn is_named(&self, name: &str) -> bool {
        match name.split_once(':') {
            Some((module, name)) => name == self.name && module == self.module,
            None => name == self.name,
        }
    }
}

/// Which part of the data a leaf belongs to (gNMI 0.10, GetRequest.type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A list's key: in every part.
    Key,
    Config,
    /// State that follows a config leaf.
    Applied,
    /// State that has no config leaf.
    Operational,
}

/// The list of which a leaf has an instance for each member, in the order in which answers have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    Ports,
    /// Queues of a port.
    Queues,
    /// Inputs of a port's scheduler: its queues.
    Inputs,
    PortReasons,
    /// None: one instance for the switch.
    Switch,
    SwitchReasons,
}

/// A leaf at its path.
pub struct Node {
    pub steps: Vec<Step>,
    pub leaf: &'static Leaf,
    pub part: Part,
    pub list: List,
    /// Its changes are reported at once.
    pub on_change: bool,
}

impl Node {
    /// A Set may change it.
    pub fn is_writable(&self) -> bool {
        self.part == Part::Config && self.leaf.write.is_some()
    }

    /// Whether it is an instance of a queue.
    pub fn is_of_queue(&self) -> bool {
        matches!(self.list, List::Queues | List::Inputs)
    }
}

pub const IF: &str = "openconfig-interfaces";
pub const QOS: &str = "openconfig-qos";
/// Our own module.
pub const FAIRLANE: &str = "fairlane-port";

/// Modules with their organizations and versions, as Capabilities names them.
pub const MODELS: [(&str, &str, &str); 6] = [
    (IF, "OpenConfig working group", "3.8.1"),
    (
        "openconfig-if-ethernet",
        "OpenConfig working group",
        "2.13.0",
    ),
    ("openconfig-if-sdn-ext", "OpenConfig working group", "0.2.0"),
    (QOS, "OpenConfig working group", "2.2.0"),
    ("openconfig-p4rt", "OpenConfig working group", "1.0.0"),
    (FAIRLANE, "fairlane", "1.0.0"),
];

fn steps_of(path: &'static str) -> Vec<Step> {
    let mut module = "";
    let step = |part: &'static str| {
        let (part, key) = match part.split_once('[') {
            Some((part, key)) => (part, key.trim_end_matches(']').split_once('=')),
            None => (part, None),
        };
        let name = part.split_once(':').map_or(part, |(other, name)| {
            module = other;
            name
        });
        let key = key.map(|(name, of)| {
            let of = match of {
                "port" => Key::Port,
                "sequence" => Key::Sequence,
                "queue" => Key::Queue,
                "port-reason" => Key::PortReason,
                _ => Key::SwitchReason,
            };
            (name, of)
        });
        Step { name, module, key }
    };
    path.split('/').map(step).collect()
}

fn list_of(steps: &[Step]) -> List {
    let keys = steps.iter().filter_map(|step| step.key);
    let keys: Vec<Key> = keys.map(|(_, of)| of).collect();
    match keys[..] {
        [] => List::Switch,
        [Key::SwitchReason] => List::SwitchReasons,
        [.., Key::PortReason] => List::PortReasons,
        [_, Key::Queue] => List::Queues,
        [.., Key::Queue] => List::Inputs,
        _ => List::Ports,
    }
}

/// All leaves, made once.
pub fn nodes() -> &'static [Node] {
    static NODES: OnceLock<Vec<Node>> = OnceLock::new();
    NODES.get_or_init(|| {
        let mut nodes = Vec::new();
        for (row, parent, leaves) in leaf::rows() {
            for (name, leaf) in leaves {
                let leaf: &'static Leaf = Box::leak(Box::new(leaf));
                let parts: &[(&str, Part)] = match row {
                    Row::ListKey => &[("", Part::Key)],
                    Row::Both => &[("config", Part::Config), ("state", Part::Applied)],
                    Row::Configured => &[("config", Part::Config)],
                    Row::Applied => &[("state", Part::Applied)],
                    Row::Watched | Row::Sampled => &[("state", Part::Operational)],
                };
                for (container, part) in parts {
                    let parent = parent.replace("{}", container);
                    let steps = steps_of(format!("{parent}/{name}").leak());
                    nodes.push(Node {
                        list: list_of(&steps),
                        steps,
                        leaf,
                        part: *part,
                        on_change: row != Row::Sampled,
                    });
                }
            }
        }
        nodes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation lists the leaves by this file.
    #[test]
    fn the_list_of_leaves_is_that_of_the_rows() {
        let mut lines = Vec::new();
        for (row, path, leaves) in crate::leaf::rows() {
            let (containers, on_change) = match row {
                Row::ListKey => ("list key", "yes"),
                Row::Both => ("config, state", "yes"),
                Row::Configured => ("config", "yes"),
                Row::Applied | Row::Watched => ("state", "yes"),
                Row::Sampled => ("state", ""),
            };
            for (name, leaf) in leaves {
                let set = if leaf.write.is_some() { "yes" } else { "" };
                lines.push(format!(
                    "/{path}/{name}\t{containers}\t{set}\t{on_change}\n"
                ));
            }
        }
        let (now, file) = (lines.concat(), include_str!("../leaves.tsv"));
        assert_eq!(now, file, "write this into crates/gnmi/leaves.tsv:\n{now}");
    }

    #[test]
    fn modules_follow_the_path() {
        let is_it = |node: &&Node| node.steps.last().unwrap().name == "queue-cells";
        let node = nodes().iter().find(is_it).unwrap();
        let modules: Vec<_> = node.steps.iter().map(|s| (s.module, s.name)).collect();
        assert_eq!(modules[0], (IF, "interfaces"));
        assert_eq!(modules[2], (FAIRLANE, "port"));
        assert_eq!(modules[4], (FAIRLANE, "queue-cells"));
        assert!(node.is_writable());
        assert_eq!(node.list, List::Ports);
    }

    #[test]
    fn no_path_is_there_twice() {
        let mut paths: Vec<Vec<&str>> = nodes()
            .iter()
            .map(|node| node.steps.iter().map(|s| s.name).collect())
            .collect();
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}
