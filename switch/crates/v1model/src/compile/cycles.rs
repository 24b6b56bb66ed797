// SPDX-License-Identifier: Apache-2.0
//! Where code may come back to: parsers may go round, at the cost of a step each time; controls may not.

/// For each node whether a search from node 0 on comes back to it on its way: every cycle goes through such a node.
/// `next` appends the nodes that may follow one.
pub(super) fn loop_heads(nodes: usize, mut next: impl FnMut(usize, &mut Vec<usize>)) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnTheWay,
        Done,
    }
    let (mut seen, mut heads) = (vec![Seen::Not; nodes], vec![false; nodes]);
    // Nodes on the way, each with where its waiting followers begin. No recursion: a program may be long.
    let (mut way, mut waiting): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for start in 0..nodes {
        if seen[start] != Seen::Not {
            continue;
        }
        waiting.push(start);
        way.push((usize::MAX, 0));
        while let Some(&(node, first)) = way.last() {
            if waiting.len() == first {
                way.pop();
                if let Some(seen) = seen.get_mut(node) {
                    *seen = Seen::Done;
                }
                continue;
            }
            let Some(to) = waiting.pop() else { break };
            match seen[to] {
                Seen::Done => {}
                Seen::OnTheWay => heads[to] = true,
                Seen::Not => {
                    seen[to] = Seen::OnTheWay;
                    way.push((to, waiting.len()));
                    next(to, &mut waiting);
                }
            }
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::loop_heads;

    fn heads(edges: &[&[usize]]) -> Vec<usize> {
        let heads = loop_heads(edges.len(), |node, next| next.extend(edges[node]));
        (0..edges.len()).filter(|&node| heads[node]).collect()
    }

    #[test]
    fn only_what_comes_back_is_a_head() {
        assert_eq!(heads(&[&[1, 2], &[3], &[3], &[]]), [0; 0]);
        assert_eq!(heads(&[&[1], &[2], &[1, 3], &[]]), [1]);
        assert_eq!(heads(&[&[0]]), [0]);
        // Unreachable from the first node.
        assert_eq!(heads(&[&[], &[2], &[1]]), [1]);
        // Two loops through one node, one of them inside the other.
        assert_eq!(heads(&[&[1], &[2], &[1, 0], &[]]), [0, 1]);
    }

    #[test]
    fn a_long_way_needs_no_stack() {
        let last = 1_000_000;
        let heads = loop_heads(last + 1, |node, next| {
            next.push(if node == last { 0 } else { node + 1 })
        });
        assert_eq!(heads.iter().filter(|head| **head).count(), 1);
        assert!(heads[0]);
    }
}
