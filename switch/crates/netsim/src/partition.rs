// SPDX-License-Identifier: Apache-2.0
//! Which region a switch and a host belong to. It follows from the network alone, and so do the bytes of a run.
//!
//! Only a link whose delay is never below [`LOOKAHEAD_MIN_NS`] may lie between two regions: switches with a shorter one stay
//! together. Regions grow by the switch with the most links to them.

use crate::config::{Config, LinkConfig};
use crate::region::Member;
use device::Nanos;
use std::collections::BTreeMap;
use traffic::link::LinkOptions;

/// A window is as long as the least delay between regions; shorter ones cost more than they bring.
const LOOKAHEAD_MIN_NS: Nanos = 10_000;
/// A network with fewer switches is one region, unless it has `FLOWS_MIN`.
const SWITCHES_MIN: usize = 8;
/// So many there are on average in each region, unless there would be more regions than `REGIONS_MAX`.
const SWITCHES_PER_REGION: usize = 4;
/// With so many flows each switch may be a region: connections are most of the work.
const FLOWS_MIN: usize = 2_000;
const REGIONS_MAX: usize = 64;

/// Where everything is, by its place in the configuration.
pub(crate) struct Partition {
    pub(crate) regions: usize,
    pub(crate) switches: Vec<Member>,
    pub(crate) hosts: Vec<Member>,
}

impl Partition {
    /// The regions of a network; `config` was checked.
    pub(crate) fn of(config: &Config) -> Partition {
        let switches = config.switches.len();
        let usual = match switches {
            ..SWITCHES_MIN if config.flows.len() < FLOWS_MIN => 1,
            ..SWITCHES_MIN => switches,
            _ => (switches / SWITCHES_PER_REGION).min(REGIONS_MAX),
        };
        let most = match config.machine {
            Some(_) => 1,
            None => config.regions.unwrap_or(usual),
        };
        let (regions, of_switches) = Graph::of(config).grow(most);
        let names = config.switches.iter().map(|switch| &switch.name);
        let mut by_name: BTreeMap<_, _> = names.zip(of_switches.iter().copied()).collect();
        for link in &config.links {
            let ends = [&link.a.node, &link.b.node];
            if let [Some(region), None] | [None, Some(region)] =
                ends.map(|end| by_name.get(end).copied())
            {
                by_name.extend(ends.map(|end| (end, region)));
            }
        }
        // Two hosts at one link: both are in the first region.
        let of_host = |name| by_name.get(name).copied().unwrap_or_default();
        Partition {
            regions,
            hosts: members(config.hosts.iter().map(|host| of_host(&host.name))),
            switches: members(of_switches.iter().copied()),
        }
    }
}

/// Numbers the members of each region.
fn members(regions: impl Iterator<Item = usize>) -> Vec<Member> {
    let mut counts = BTreeMap::<usize, usize>::new();
    let member = |region| {
        let count = counts.entry(region).or_default();
        *count += 1;
        Member {
            region,
            index: *count - 1,
        }
    };
    regions.map(member).collect()
}

/// Groups of switches that stay together, and the links between groups.
struct Graph {
    /// By switch.
    groups: Vec<usize>,
    /// By group: switches and hosts.
    weights: Vec<usize>,
    links: Vec<[usize; 2]>,
}

impl Graph {
    fn of(config: &Config) -> Graph {
        let places = config.switches.iter().zip(0..).map(|(s, i)| (&s.name, i));
        let places: BTreeMap<&String, usize> = places.collect();
        let mut groups: Vec<usize> = (0..places.len()).collect();
        let mut weights = vec![1; places.len()];
        let mut links = Vec::new();
        for (link, least) in config.links.iter().zip(least_delays(config)) {
            match [&link.a, &link.b].map(|end| places.get(&end.node)) {
                [Some(&a), Some(&b)] if least >= LOOKAHEAD_MIN_NS => links.push([a, b]),
                [Some(&a), Some(&b)] => {
                    let (stays, goes) = (groups[a], groups[b]);
                    let group = groups.iter_mut().filter(|group| **group == goes);
                    group.for_each(|group| *group = stays);
                }
                [Some(&switch), None] | [None, Some(&switch)] => weights[switch] += 1,
                [None, None] => {}
            }
        }
        let mut together = vec![0; groups.len()];
        for (group, weight) in groups.iter().zip(weights) {
            together[*group] += weight;
        }
        Graph {
            links: links.iter().map(|ends| ends.map(|s| groups[s])).collect(),
            weights: together,
            groups,
        }
    }

    /// Divides the groups among so many regions at most: how many, and the region of each switch.
    fn grow(&self, regions: usize) -> (usize, Vec<usize>) {
        let mut region_of = vec![None; self.weights.len()];
        let mut neighbours = vec![Vec::new(); self.weights.len()];
        for &[a, b] in &self.links {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        let mut left: usize = self.weights.iter().sum();
        let mut count = 0;
        while left > 0 {
            let aim = left / regions.saturating_sub(count).max(1);
            let mut weight = 0;
            // By group: links to this region.
            let mut near = vec![0; region_of.len()];
            loop {
                let free = (0..region_of.len())
                    .filter(|group| self.weights[*group] > 0 && region_of[*group].is_none());
                // The first of equals.
                let next = free.max_by_key(|group| (near[*group], usize::MAX - group));
                let fits =
                    |group: &usize| weight == 0 || 2 * weight + self.weights[*group] <= 2 * aim;
                let Some(group) = next.filter(fits) else {
                    break;
                };
                region_of[group] = Some(count);
                weight += self.weights[group];
                neighbours[group].iter().for_each(|other| near[*other] += 1);
            }
            left -= weight;
            count += 1;
        }
        let of_switch = |group: &usize| region_of[*group].unwrap_or_default();
        (count.max(1), self.groups.iter().map(of_switch).collect())
    }
}

/// The least delay of each link at any instant, in both directions.
fn least_delays(config: &Config) -> Vec<Nanos> {
    let mut changes: Vec<_> = config.changes.iter().collect();
    changes.sort_by_key(|change| change.at_ns);
    let least = |link: &LinkConfig| {
        let mut options = [&link.a_to_b, &link.b_to_a].map(|settings| {
            let options = settings.applied_to(&LinkOptions::default());
            options.unwrap_or_default()
        });
        let mut least = options.each_ref().map(LinkOptions::delay_min_ns);
        for change in &changes {
            let (Some(name), Some(settings)) = (&change.link, &change.set) else {
                continue;
            };
            if *name == link.name {
                for way in change.direction.unwrap_or_default().indices() {
                    let changed = settings.applied_to(&options[way]);
                    options[way] = changed.unwrap_or_default();
                    least[way] = least[way].min(options[way].delay_min_ns());
                }
            }
        }
        least[0].min(least[1])
    };
    config.links.iter().map(least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    /// Switches in a row, a host at the first and two at the last; the links between them have these delays.
    fn row(delays: &[u64]) -> Value {
        let count = delays.len() + 1;
        let switch = |n: usize| json!({"name": format!("s{n}"), "program": null, "ports": [{"port": 1}, {"port": 2}, {"port": 3}]});
        let plug = |n: usize, port: usize| json!({"node": format!("s{n}"), "port": port});
        let host = |n: usize| json!({"name": format!("h{n}"), "ip": format!("10.0.0.{n}"), "mac": "08:00:00:00:00:01", "gateway_mac": "08:00:00:00:00:02"});
        let mut links: Vec<Value> = (0..).zip(delays).map(|(n, delay)| {
            let delay = json!({"delay_ns": delay});
            json!({"name": format!("l{n}"), "a": plug(n, 2), "b": plug(n + 1, 1), "a_to_b": delay, "b_to_a": delay})
        }).collect();
        for (host, at, port) in [(0, 0, 1), (1, count - 1, 2), (2, count - 1, 3)] {
            links.push(json!({"name": format!("a{host}"), "a": {"node": format!("h{host}")}, "b": plug(at, port)}));
        }
        json!({"switches": (0..count).map(switch).collect::<Value>(), "links": links,
               "hosts": (0..3).map(host).collect::<Value>()})
    }

    /// Of each switch.
    fn regions(config: &Value, regions: Option<usize>) -> Vec<usize> {
        let mut config = Config::from_json(&config.to_string()).unwrap();
        config.regions = regions;
        let partition = Partition::of(&config);
        let of = |members: &[Member]| -> Vec<usize> { members.iter().map(|m| m.region).collect() };
        let switches = of(&partition.switches);
        let last = switches[switches.len() - 1];
        assert_eq!(of(&partition.hosts), [switches[0], last, last]);
        assert_eq!(partition.regions, switches.iter().max().unwrap() + 1);
        switches
    }

    const FAR: u64 = LOOKAHEAD_MIN_NS;

    #[test]
    fn a_large_network_is_divided_evenly_and_a_small_one_not() {
        assert_eq!(regions(&row(&[FAR; 6]), None), [0; 7]);
        assert_eq!(regions(&row(&[FAR; 6]), Some(2)), [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(regions(&row(&[FAR; 7]), None), [0, 0, 0, 0, 1, 1, 1, 1]);
        let many = regions(&row(&[FAR; 999]), None);
        let sizes = (0..REGIONS_MAX).map(|region| many.iter().filter(|r| **r == region).count());
        assert!(
            sizes.clone().all(|size| (13..=17).contains(&size)),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_small_network_with_many_flows_is_divided_too() {
        let mut config = row(&[FAR; 2]);
        let flow = |n: usize| json!({"name": format!("f{n}"), "from": "h0", "to": "h1", "app": {"kind": "greedy"}});
        config["flows"] = (1..FLOWS_MIN).map(flow).collect();
        assert_eq!(regions(&config, None), [0; 3]);
        config["flows"] = (0..FLOWS_MIN).map(flow).collect();
        assert_eq!(regions(&config, None), [0, 1, 2]);
    }

    #[test]
    fn switches_that_may_come_near_each_other_stay_together() {
        let near = FAR - 1;
        assert_eq!(
            regions(&row(&[FAR, FAR, near, near, near, FAR, FAR]), None),
            [0, 0, 0, 0, 0, 0, 1, 1]
        );
        assert_eq!(regions(&row(&[near; 7]), None), [0; 8]);
        let mut config = row(&[FAR; 7]);
        config["changes"] = json!([
            {"at_ns": 9, "link": "l3", "direction": "b_to_a", "set": {"delay_ns": 2 * FAR}},
            {"at_ns": 5, "link": "l3", "set": {"jitter_ns": 1}}]);
        assert_eq!(regions(&config, None)[3..5], [0, 0]);
        config["changes"][1]["set"] = json!({"delay_ns": FAR + 1, "jitter_ns": 1});
        assert_eq!(regions(&config, None)[3..5], [0, 1]);
    }
}
