// SPDX-License-Identifier: Apache-2.0
//! gNMI paths: patterns with `*` and `...` matched against the schema, and the sentences for those that do not match.
//!
//! The tree of leaves: each row of [`crate::leaf`] with the steps of its path.

use std::borrow::Cow;
use std::sync::OnceLock;

use p4rt::bail;
use p4rt::proto::gnmi::{Path, PathElem};
use tonic::Status;

use crate::leaf::{self, Leaf, Row};

/// Most elements of a path; a longer one is no path of ours.
const ELEMS_MAX: usize = 32;

/// A path that may name several leaves: all below it, and all that its wildcards allow. `...` is any number of elements,
/// `*` is any name or key.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern(Vec<PathElem>);

impl Pattern {
    /// Reads prefix and path.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: another origin, the deprecated `element`, a path that the schema does not have.
    pub fn parse(prefix: Option<&Path>, path: &Path) -> Result<Pattern, Status> {
        let mut elems: Vec<PathElem> = Vec::new();
        for part in prefix.into_iter().chain([path]) {
            check_form(part)?;
            for elem in &part.elem {
                // Several in a row name what one does, and would cost time without end.
                if !(is_deep(elem) && elems.last().is_some_and(is_deep)) {
                    elems.push(elem.clone());
                }
            }
        }
        if elems.len() > ELEMS_MAX {
            bail!(
                invalid_argument,
                "a path of {} elements; at most {ELEMS_MAX} are allowed",
                elems.len()
            );
        }
        let pattern = Pattern(elems);
        match nodes().iter().any(|node| pattern.may_match(node)) {
            true => Ok(pattern),
            false => Err(Status::invalid_argument(pattern.why_unknown())),
        }
    }

    /// As it was given, for error texts.
    pub fn text(&self) -> String {
        match self.0.is_empty() {
            true => "/".to_owned(),
            false => format(&self.0),
        }
    }

    pub fn elems(&self) -> &[PathElem] {
        &self.0
    }

    /// True when all leaves of one subtree are meant: no `*`, no `...`, no key left out.
    pub fn is_exact(&self) -> bool {
        let node = nodes().iter().find(|node| self.may_match(node));
        let is_exact = |(elem, step): (&PathElem, &Step)| {
            let is_name = !is_deep(elem) && elem.name != "*";
            is_name && (step.key.is_none() || keys(elem).next().is_some())
        };
        node.is_some_and(|node| self.0.iter().zip(&node.steps).all(is_exact))
    }

    /// The elements below which a leaf lies: None for a pattern with `...`.
    pub fn depth(&self) -> Option<usize> {
        (!self.0.iter().any(is_deep)).then_some(self.0.len())
    }

    /// True for a leaf of the schema that lies at or below this path, whatever its keys are.
    pub fn may_match(&self, node: &Node) -> bool {
        below(&self.0, &node.steps, &|_| None)
    }

    /// True for the leaf whose keys `key` names.
    pub fn matches(&self, node: &Node, key: &Keys) -> bool {
        below(&self.0, &node.steps, key)
    }

    /// The key that the pattern gives for a list, when it gives one and no `...` stands before.
    pub fn key(&self, node: &Node, wanted: Key) -> Option<&str> {
        let elems = self.0.iter().take_while(|elem| !is_deep(elem));
        let mut keys = elems
            .zip(&node.steps)
            .filter(|(_, step)| step.key.is_some_and(|(_, key)| key == wanted))
            .flat_map(|(elem, _)| keys(elem));
        keys.next().map(|(_, value)| value.as_str())
    }

    /// Why no leaf is at this path.
    fn why_unknown(&self) -> String {
        let below = |depth: usize| {
            let elems = &self.0[..depth];
            let nodes = nodes().iter();
            nodes.filter(move |n| below(elems, &n.steps, &|_| None))
        };
        // The first element that no leaf has.
        let known = (0..self.0.len()).find(|known| below(known + 1).next().is_none());
        let known = known.unwrap_or_default();
        let there: Vec<&Step> = below(known)
            .filter_map(|node| node.steps.get(known))
            .collect();
        format!("{}: element {} {}", self.text(), known + 1, one_of(&there))
    }
}

fn is_deep(elem: &PathElem) -> bool {
    elem.name == "..."
}

/// The keys that are given and are not `*`.
fn keys(elem: &PathElem) -> impl Iterator<Item = (&String, &String)> {
    elem.key.iter().filter(|(_, value)| *value != "*")
}

/// What an element may be.
pub fn one_of(steps: &[&Step]) -> String {
    let mut there: Vec<String> = Vec::new();
    for step in steps {
        let key = step
            .key
            .map(|(key, _)| format!("[{key}]"))
            .unwrap_or_default();
        let element = format!("{}{key}", step.name);
        if !there.contains(&element) {
            there.push(element);
        }
    }
    match there.is_empty() {
        true => "is below a leaf, where nothing is".to_owned(),
        false => format!("is unknown; known: {}", there.join(", ")),
    }
}

fn check_form(path: &Path) -> Result<(), Status> {
    #[allow(deprecated)]
    let old = !path.element.is_empty();
    if old {
        bail!(
            invalid_argument,
            "the deprecated field `element` of a path is not read; use `elem`"
        );
    }
    match path.origin.as_str() {
        "" | "openconfig" => Ok(()),
        other => bail!(
            invalid_argument,
            "origin \"{other}\" is not served; \"openconfig\" is"
        ),
    }
}

/// A name without its module.
pub fn bare(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// The value of each key of an instance; None matches every value.
type Keys<'k> = dyn Fn(Key) -> Option<Cow<'k, str>> + 'k;

fn below(elems: &[PathElem], steps: &[Step], key: &Keys) -> bool {
    let Some((elem, rest)) = elems.split_first() else {
        return true;
    };
    if is_deep(elem) {
        return (0..=steps.len()).any(|skip| below(rest, &steps[skip..], key));
    }
    let Some((step, steps)) = steps.split_first() else {
        return false;
    };
    (elem.name == "*" || step.is_named(&elem.name))
        && keys(elem).all(|(name, value)| match step.key {
            Some((its, of)) if bare(name) == its => key(of).is_none_or(|there| there == *value),
            _ => false,
        })
        && below(rest, steps, key)
}

/// For error texts.
pub fn format(elems: &[PathElem]) -> String {
    let elem = |elem: &PathElem| {
        let mut keys: Vec<_> = elem.key.iter().collect();
        keys.sort();
        let keys = keys.iter().map(|(name, value)| format!("[{name}={value}]"));
        format!("/{}{}", elem.name, keys.collect::<String>())
    };
    elems.iter().map(elem).collect()
}

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
pub fn parse(text: &str) -> Path {
    let elem = text.split('/').filter(|part| !part.is_empty()).map(|part| {
        let mut pieces = part.split('[');
        let name = pieces.next().unwrap_or_default().to_owned();
        let key = pieces.filter_map(|piece| piece.trim_end_matches(']').split_once('='));
        PathElem {
            name,
            key: key.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        }
    });
    Path {
        elem: elem.collect(),
        ..Path::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let pattern = Pattern::parse(None, &parse(text)).unwrap();
        nodes().iter().filter(|n| pattern.may_match(n)).count()
    }

    fn why(text: &str) -> String {
        let error = Pattern::parse(None, &parse(text)).unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument);
        error.message().to_owned()
    }

    #[test]
    fn a_path_names_all_below_it() {
        assert_eq!(count("/"), nodes().len());
        assert_eq!(count("/interfaces/interface[name=x]/state/oper-status"), 1);
        assert_eq!(count("/interfaces/interface/state/counters"), 17);
        assert_eq!(
            count("/openconfig-interfaces:interfaces/interface/fairlane-port:port/config"),
            7
        );
    }

    #[test]
    fn wildcards_name_one_element_or_many() {
        assert_eq!(count("/interfaces/*/state/counters/*"), 17);
        assert_eq!(count(".../counters/in-pkts"), 1);
        assert_eq!(count("/qos/.../weight"), 2);
        assert_eq!(count("/interfaces/interface[name=*]/config/enabled"), 1);
        assert_eq!(count("..."), nodes().len());
    }

    #[test]
    fn any_number_of_wildcards_costs_no_more_than_one() {
        // Tried one way after the other these are 10^8 ways a leaf.
        let many = format!("{}x", ".../".repeat(31));
        assert!(why(&many).contains(": element 2 is unknown"));
        assert_eq!(count(&format!("{}weight", ".../".repeat(30))), 2);
        assert!(!why(&format!("{}x", ".../*/".repeat(15))).is_empty());
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        assert_eq!(
            why("/interfaces/interface[name=x]/state/oper-statu"),
            "/interfaces/interface[name=x]/state/oper-statu: element 4 is unknown; known: name, type, enabled, ifindex, id, \
             admin-status, oper-status, cpu, forwarding-viable, counters"
        );
        assert_eq!(
            why("/interfaces/interface[interface-id=x]"),
            "/interfaces/interface[interface-id=x]: element 2 is unknown; known: interface[name]"
        );
        assert_eq!(
            why("/interfaces[name=x]"),
            "/interfaces[name=x]: element 1 is unknown; known: interfaces, qos, switch"
        );
        assert!(why("/interfaces/interface/name/x").ends_with("below a leaf, where nothing is"));
        let deep = "/x".repeat(40);
        assert!(why(&deep).contains("a path of 40 elements; at most 32"));
    }

    #[test]
    fn keys_are_compared() {
        let pattern = Pattern::parse(None, &parse("/interfaces/interface[name=s1-eth3]")).unwrap();
        let node = &nodes()[0];
        let key = |name: &'static str| move |_| Some(Cow::Borrowed(name));
        assert!(pattern.matches(node, &key("s1-eth3")));
        assert!(!pattern.matches(node, &key("s1-eth1")));
        assert_eq!(pattern.key(node, Key::Port), Some("s1-eth3"));
        assert!(pattern.is_exact());
        assert!(!Pattern::parse(None, &parse("/interfaces/interface"))
            .unwrap()
            .is_exact());
    }

    #[test]
    fn origin_and_old_forms_are_refused() {
        let path = Path {
            origin: "cli".to_owned(),
            ..Path::default()
        };
        let error = Pattern::parse(None, &path).unwrap_err();
        assert!(error.message().contains("origin \"cli\" is not served"));
        #[allow(deprecated)]
        let path = Path {
            element: vec!["interfaces".to_owned()],
            ..Path::default()
        };
        assert!(Pattern::parse(None, &path)
            .unwrap_err()
            .message()
            .contains("`elem`"));
    }
}

#[cfg(test)]
mod schema_tests {
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
            include_str!("path.rs"),
            include_str!("select.rs"),
            include_str!("value.rs"),
            include_str!("view.rs"),
            include_str!("get.rs"),
            include_str!("set.rs"),
            include_str!("subscribe.rs"),
            include_str!("lib.rs"),
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
