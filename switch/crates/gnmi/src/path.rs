// SPDX-License-Identifier: Apache-2.0
//! gNMI paths: patterns with `*` and `...` matched against the schema, and the sentences for those that do not match.

use crate::schema::{nodes, Key, Node, Step};
use p4rt::proto::gnmi::{Path, PathElem};
use std::borrow::Cow;
use tonic::Status;

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
            let text = format!(
                "a path of {} elements; at most {ELEMS_MAX} are allowed",
                elems.len()
            );
            return Err(Status::invalid_argument(text));
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
        let text = "the deprecated field `element` of a path is not read; use `elem`";
        return Err(Status::invalid_argument(text));
    }
    match path.origin.as_str() {
        "" | "openconfig" => Ok(()),
        other => Err(Status::invalid_argument(format!(
            "origin \"{other}\" is not served; \"openconfig\" is"
        ))),
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
