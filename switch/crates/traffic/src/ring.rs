// SPDX-License-Identifier: Apache-2.0
//! The slab that all queues of a port live in: FIFO lists linked by index, no allocation once it has grown.

const NIL: u32 = u32::MAX;

struct Node<T> {
    item: Option<T>,
    next: u32,
}

/// Nodes of all lists, and those that are free.
pub(crate) struct Slab<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

/// One FIFO list of a slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List {
        head: NIL,
        tail: NIL,
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

impl<T> Slab<T> {
    pub(crate) fn with_capacity(nodes: usize) -> Slab<T> {
        Slab {
            nodes: Vec::with_capacity(nodes),
            free: NIL,
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, item: T) {
        let node = Node {
            item: Some(item),
            next: NIL,
        };
        let index = if self.free == NIL {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            let slot = &mut self.nodes[index as usize];
            self.free = slot.next;
            *slot = node;
            index
        };
        if list.tail == NIL {
            list.head = index;
        } else {
            self.nodes[list.tail as usize].next = index;
        }
        list.tail = index;
    }

    #[inline]
    pub(crate) fn front(&self, list: &List) -> Option<&T> {
        self.nodes.get(list.head as usize)?.item.as_ref()
    }

    /// What is in all lists, in no order.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.nodes.iter().filter_map(|node| node.item.as_ref())
    }

    #[inline]
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<T> {
        let index = list.head;
        let node = self.nodes.get_mut(index as usize)?;
        list.head = node.next;
        if list.head == NIL {
            list.tail = NIL;
        }
        node.next = self.free;
        self.free = index;
        node.item.take()
    }
}
