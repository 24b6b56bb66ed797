// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The interfaces eth0, eth1, …, and their frames with their instants, in the memory that the simulator shares with us: two logs, one of
// what arrives, one of what we send (switch/crates/uml/src/frames.rs). Only the one whose turn it is touches it.
//
// An interface with a rate is the line behind a switch's port: what arrives there goes into its queue, whatever qdisc(8) that is, and leaves
// when the line has carried it. The driver stops its queue while the line is busy, so the queue is where packets wait.
//
// Frames end no turn: one that arrives in our turn is in its log before the turn begins, and one that we send lets the turn end when
// the first answer to it can come (time_travel_limit).
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/time-internal.h>
#include <net/dsfield.h>
#include <net/sch_generic.h>

#define FL_MTU_MAX 9000 // as in a topology

struct fl_shared {
	u64 lookahead;		// ns from a frame that we send to the first that can arrive for it
	u32 in_at, out_at;	// where the logs begin, from here
	u32 log_bytes;		// the length of each
	u32 in_len, out_len;	// bytes in them
	u32 in_seen, in_taken;	// of what arrives: whose instant has come, and what the interfaces have got
	u32 links;
	struct fl_interface {
		u8 mac[8];
		u64 rate;	// bit/s; 0: a host's
		u64 waiting, dropped, sent, sent_bytes, marked, waited;	// of a line; ns that the sent ones have waited, together
	} interfaces[];
};

struct fl_frame {
	u64 at;
	u32 link, len;
	u8 bytes[];
};

// Before a frame of a line, where no header is put.
struct fl_arrival {
	u64 at;
	u8 tos;
};

struct fl_link {
	struct net_device *dev;
	struct fl_interface *shared;
	struct sk_buff *on_line;
	struct time_travel_event carried; // what is on the line
	struct napi_struct napi;
	struct sk_buff_head arrived;
	u32 number;
};

static struct fl_shared *shared;
static struct fl_link **links;
static bool is_full; // the log of what we send

static u32 size_of(u32 len) { return ALIGN(sizeof(struct fl_frame) + len, 8); }

static struct fl_frame *frame_at(u32 log, u32 offset) { return (void *)shared + log + offset; }

unsigned long long fairlane_next_frame(void) {
	return shared && shared->in_seen < shared->in_len ? frame_at(shared->in_at, shared->in_seen)->at : ULLONG_MAX;
}

static void fl_take(struct fl_frame *frame) {
	const unsigned int headroom = NET_IP_ALIGN + NET_SKB_PAD + 12, header = ETH_HLEN + VLAN_HLEN;
	const unsigned int room = max(frame->len, header + ETH_DATA_LEN); // only a frame that needs more than usual has more
	const unsigned int size = SKB_DATA_ALIGN(headroom + room) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct fl_link *link = links[frame->link];
	struct sk_buff *skb = NULL;
	void *buffer;

	if (!netif_running(link->dev) || frame->len < ETH_HLEN || frame->len > header + FL_MTU_MAX)
		return;
	buffer = netdev_alloc_frag(size);
	if (buffer)
		skb = build_skb(buffer, size);
	if (!skb) {
		DEV_STATS_INC(link->dev, rx_dropped);
		return;
	}
	skb_reserve(skb, headroom);
	skb_put_data(skb, frame->bytes, frame->len);
	skb->protocol = eth_type_trans(skb, link->dev);
	skb_queue_tail(&link->arrived, skb);
}

static void fl_look(struct time_travel_event *event) {
	u32 i;

	while (shared->in_taken < shared->in_seen) {
		struct fl_frame *frame = frame_at(shared->in_at, shared->in_taken);

		fl_take(frame);
		shared->in_taken += size_of(frame->len);
	}
	for (i = 0; i < shared->links; i++) {
		if (is_full && !links[i]->shared->rate && netif_running(links[i]->dev))
			netif_wake_queue(links[i]->dev);
		if (!skb_queue_empty(&links[i]->arrived))
			napi_schedule(&links[i]->napi);
	}
	is_full = false;
}

static struct time_travel_event look = {.fn = fl_look};

void fairlane_see_frames(void) {
	const u64 now = time_travel_now();
	bool looks = is_full && !shared->out_len;

	for (; fairlane_next_frame() <= now; looks = true)
		shared->in_seen += size_of(frame_at(shared->in_at, shared->in_seen)->len);
	if (looks)
		time_travel_add_event_rel(&look, 0);
}

static u8 tos_of(const struct sk_buff *skb) {
	switch (skb->protocol) {
	case htons(ETH_P_IP):
		return ipv4_get_dsfield(ip_hdr(skb));
	case htons(ETH_P_IPV6):
		return ipv6_get_dsfield(ipv6_hdr(skb));
	default:
		return 0;
	}
}

static void fl_count_queue(struct fl_link *link) {
	const struct Qdisc *queue = rcu_dereference_bh(netdev_get_tx_queue(link->dev, 0)->qdisc);

	link->shared->waiting = queue->q.qlen;
	link->shared->dropped = queue->qstats.drops;
}

static void fl_enqueue(struct sk_buff *skb, struct fl_link *link) {
	struct fl_arrival *arrival = (void *)skb->head;

	skb_reset_network_header(skb);
	arrival->at = time_travel_now();
	arrival->tos = tos_of(skb);
	__skb_push(skb, ETH_HLEN);
	dev_queue_xmit(skb);
	fl_count_queue(link);
}

static int fl_poll(struct napi_struct *napi, int budget) {
	struct fl_link *link = container_of(napi, struct fl_link, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&link->arrived))) {
		if (link->shared->rate)
			fl_enqueue(skb, link);
		else
			napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

// Into the log of what we send, now; false: there is no room before the next turn.
static bool fl_log(struct sk_buff *skb, struct fl_link *link) {
	struct fl_frame *frame = frame_at(shared->out_at, shared->out_len);
	const u32 len = skb->len, size = size_of(len);

	if (shared->out_len + size > shared->log_bytes) {
		time_travel_limit(1);
		return false;
	}
	skb_tx_timestamp(skb);
	frame->at = time_travel_now();
	frame->link = link->number;
	frame->len = len;
	skb_copy_bits(skb, 0, frame->bytes, len);
	dev_consume_skb_any(skb);
	shared->out_len += size;
	time_travel_limit(shared->out_len > shared->log_bytes / 2 ? 1 : max_t(u64, shared->lookahead, 1));
	return true;
}

static void fl_carried(struct time_travel_event *event) {
	struct fl_link *link = container_of(event, struct fl_link, carried);
	const u32 len = link->on_line->len;

	if (!fl_log(link->on_line, link)) {
		time_travel_add_event_rel(event, 1);
		return;
	}
	link->shared->sent++;
	link->shared->sent_bytes += len;
	netif_wake_queue(link->dev);
}

static void fl_put_on_line(struct sk_buff *skb, struct fl_link *link) {
	const struct fl_arrival *arrival = (void *)skb->head;

	netif_stop_queue(link->dev);
	link->on_line = skb;
	link->shared->waited += time_travel_now() - arrival->at;
	link->shared->marked += tos_of(skb) != arrival->tos;
	fl_count_queue(link);
	time_travel_add_event_rel(&link->carried, div64_u64(8ULL * NSEC_PER_SEC * skb->len, link->shared->rate));
}

static netdev_tx_t fl_send(struct sk_buff *skb, struct net_device *dev) {
	struct fl_link *link = netdev_priv(dev);

	if (link->shared->rate) {
		fl_put_on_line(skb, link);
	} else if (!fl_log(skb, link)) {
		is_full = true;
		netif_stop_queue(dev);
		return NETDEV_TX_BUSY;
	}
	return NETDEV_TX_OK;
}

static int fl_open(struct net_device *dev) {
	struct fl_link *link = netdev_priv(dev);

	napi_enable(&link->napi);
	netif_start_queue(dev);
	return 0;
}

static int fl_stop(struct net_device *dev) {
	struct fl_link *link = netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&link->napi);
	skb_queue_purge(&link->arrived);
	return 0;
}

static const struct net_device_ops fl_link_ops = {.ndo_open = fl_open, .ndo_stop = fl_stop, .ndo_start_xmit = fl_send};

static int __init fl_make_links(void) {
	struct fl_shared *memory = time_travel_memory(sizeof(*memory));
	u32 i;

	if (!memory)
		return 0;
	links = kcalloc(memory->links, sizeof(*links), GFP_KERNEL);
	if (!links)
		return -ENOMEM;
	for (i = 0; i < memory->links; i++) {
		struct net_device *dev = alloc_etherdev(sizeof(struct fl_link));
		int error;

		if (!dev)
			return -ENOMEM;
		links[i] = netdev_priv(dev);
		links[i]->dev = dev;
		links[i]->number = i;
		links[i]->shared = &memory->interfaces[i];
		links[i]->carried.fn = fl_carried;
		skb_queue_head_init(&links[i]->arrived);
		dev->netdev_ops = &fl_link_ops;
		dev->needed_headroom = 12;
		dev->max_mtu = FL_MTU_MAX;
		eth_hw_addr_set(dev, memory->interfaces[i].mac);
		netif_napi_add(dev, &links[i]->napi, fl_poll);
		error = register_netdev(dev);
		if (error)
			return error;
	}
	shared = memory;
	return 0;
}
late_initcall(fl_make_links);
