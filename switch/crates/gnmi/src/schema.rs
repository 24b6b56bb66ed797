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

/// A leaf at its path.
pub struct Node {
    pub steps: Vec<Step>,
    pub leaf: &'static Leaf,
    pub part: Part,
    /// The path of the innermost list that it is in; empty for the switch's own.
    pub list: &'static str,
    /// What that list's key names.
    pub member: Option<Key>,
    /// Whether it is an instance of a port: of its own, or of one of its queues.
    pub is_of_port: bool,
    /// Its changes are reported at once.
    pub on_change: bool,
}

impl Node {
    fn new(row: Row, path: String, leaf: &'static Leaf, part: Part) -> Node {
        let path: &'static str = path.leak();
        let steps = steps_of(path);
        let mut keys = steps.iter().filter_map(|step| step.key);
        let first = keys.next().map(|(_, key)| key);
        Node {
            leaf,
            part,
            list: &path[..path.rfind(']').map_or(0, |end| end + 1)],
            is_of_port: first == Some(Key::Port),
            member: keys.next_back().map(|(_, key)| key).or(first),
            on_change: row != Row::Sampled,
            steps,
        }
    }

    /// A Set may change it.
    pub fn is_writable(&self) -> bool {
        self.part == Part::Config && self.leaf.write.is_some()
    }
}

pub const IF: &str = "openconfig-interfaces";
/// Our own module.
pub const FAIRLANE: &str = "fairlane-port";
const OPENCONFIG: &str = "OpenConfig working group";

/// Modules with their organizations and versions, as Capabilities names them.
pub const MODELS: [(&str, &str, &str); 6] = [
    (IF, OPENCONFIG, "3.8.1"),
    ("openconfig-if-ethernet", OPENCONFIG, "2.13.0"),
    ("openconfig-if-sdn-ext", OPENCONFIG, "0.2.0"),
    ("openconfig-qos", OPENCONFIG, "2.2.0"),
    ("openconfig-p4rt", OPENCONFIG, "1.0.0"),
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

/// Whether a list, given by its path, has this key.
fn is_key(list: &str, name: &str) -> bool {
    let key = list
        .strip_suffix(']')
        .and_then(|list| list.rsplit_once('['));
    key.is_some_and(|(_, key)| key.split('=').next() == Some(name))
}

/// All leaves, made once.
pub fn nodes() -> &'static [Node] {
    static NODES: OnceLock<Vec<Node>> = OnceLock::new();
    NODES.get_or_init(|| {
        let mut nodes = Vec::new();
        for (row, parent, leaves) in leaf::rows() {
            let parts: &[(&str, Part)] = match row {
                Row::Both => &[("config", Part::Config), ("state", Part::Applied)],
                Row::Config => &[("config", Part::Config)],
                Row::Applied => &[("state", Part::Applied)],
                Row::State | Row::Sampled => &[("state", Part::Operational)],
            };
            let list = parent.strip_suffix("/{}").unwrap_or_default();
            for (name, leaf) in leaves {
                let leaf: &'static Leaf = Box::leak(Box::new(leaf));
                let mut add = |parent: &str, part| {
                    nodes.push(Node::new(row, format!("{parent}/{name}"), leaf, part));
                };
                if is_key(list, name) {
                    add(list, Part::Key);
                }
                for (container, part) in parts {
                    add(&parent.replace("{}", container), *part);
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
        for (row, path, leaves) in leaf::rows() {
            let (containers, on_change) = match row {
                Row::Both => ("config, state", "yes"),
                Row::Config => ("config", "yes"),
                Row::Applied | Row::State => ("state", "yes"),
                Row::Sampled => ("state", ""),
            };
            let list = path.trim_end_matches("/{}");
            for (name, leaf) in leaves {
                if is_key(list, name) {
                    lines.push(format!("/{list}/{name}\tlist key\t\tyes\n"));
                }
                let set = if leaf.write.is_some() { "yes" } else { "" };
                lines.push(format!(
                    "/{path}/{name}\t{containers}\t{set}\t{on_change}\n"
                ));
            }
        }
        let (now, file) = (lines.concat(), include_str!("../leaves.tsv"));
        assert_eq!(now, file, "write this into crates/gnmi/leaves.tsv:\n{now}");
    }

    /// A new leaf is a new row, and nothing else: no code names a leaf.
    #[test]
    fn a_leaf_is_in_one_place() {
        let sources = [
            include_str!("leaf.rs"),
            include_str!("schema.rs"),
            include_str!("path.rs"),
            include_str!("select.rs"),
            include_str!("value.rs"),
            include_str!("json.rs"),
            include_str!("view.rs"),
            include_str!("get.rs"),
            include_str!("set.rs"),
            include_str!("subscribe.rs"),
            include_str!("service.rs"),
        ];
        let code = sources.map(|text| text.split("#[cfg(test)]").next().unwrap());
        let rows = leaf::rows();
        let names = rows.iter().flat_map(|(_, _, leaves)| leaves);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        for name in &names {
            let written = code.map(|text| text.matches(&format!("\"{name}\"")).count());
            let rows = names.iter().filter(|other| *other == name).count();
            // Lists have keys of these names.
            let keys = usize::from(["queue", "sequence"].contains(name));
            assert_eq!(written.iter().sum::<usize>(), rows + keys, "{name}");
        }
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
        assert!(node.list.ends_with("interface[name=port]"));
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
