// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host programs that are built into a kernel: arch/um has no BPF JIT, and its interpreter no callbacks, so ../bpf/programs is
// compiled natively and called where BPF would be (fairlane.patch).
//
//   net.ipv4.fairlane_programs   bits: which programs a namespace has
//   net.ipv4.fairlane_counters   COUNTERS numbers a program (host_slot.bpf.h), in the order of the bits
#include <linux/bpf-cgroup.h>
#include <linux/filter.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sysctl.h>
#include <net/bpf_sk_storage.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "programs.h"

#define _license fl_license_mrto
#include "bpf/programs/mrto.bpf.c"
#undef _license
#define _license fl_license_erto
#include "bpf/programs/erto.bpf.c"
#undef _license
#define _license fl_license_ena
#include "bpf/programs/ena.bpf.c"
#undef _license
#define _license fl_license_ena_lowest
#include "bpf/programs/ena_lowest.bpf.c"
#undef _license

struct fl_host {
	unsigned int programs;
	u32 slot; // the first of its programs' slots, which it has from when it gets programs on
	struct ctl_table table[2];
	struct ctl_table_header *header;
};

static unsigned int fl_host_id;
static const struct net *fl_net; // whose program runs
static u32 fl_slot;

static struct fl_host *fl_host_of(const struct sock *sk) { return net_generic(sock_net(sk), fl_host_id); }

static void fl_enter(const struct net *net, int program) {
	fl_net = net;
	fl_slot = ((struct fl_host *)net_generic(net, fl_host_id))->slot + program;
}

// ---- maps ------------------------------------------------------------------------------------------------------------

struct fl_array {
	struct fl_array *next;
	const char *name;
	const struct net *net; // NULL: shared by all
	u8 bytes[];
};

struct fl_storage_map {
	const char *name;
	struct bpf_map *map;
};

static struct fl_array *fl_arrays;
static struct fl_storage_map fl_storages[2];

void *fl_element(const char *name, size_t bytes, u32 entries, u32 index) {
	const struct net *net = strstarts(name, "&shared_") ? NULL : fl_net;
	struct fl_array *array;

	if (index >= entries)
		return NULL;
	if (!strcmp(name, "&host_slot"))
		return &fl_slot;
	for (array = fl_arrays; array; array = array->next)
		if (array->net == net && !strcmp(array->name, name))
			return array->bytes + index * bytes;
	array = kzalloc(struct_size(array, bytes, entries * bytes), GFP_ATOMIC);
	if (!array)
		return NULL;
	array->name = name;
	array->net = net;
	array->next = fl_arrays;
	fl_arrays = array;
	return array->bytes + index * bytes;
}

void *fl_storage(const char *name, struct sock *sk, u64 flags) {
	u64 found = 0;
	int i;

	rcu_read_lock();
	for (i = 0; i < ARRAY_SIZE(fl_storages); i++)
		if (fl_storages[i].name && !strcmp(fl_storages[i].name, name))
			found = bpf_sk_storage_get_proto.func(FL_U64(fl_storages[i].map), FL_U64(sk), 0, flags, GFP_ATOMIC);
	rcu_read_unlock();
	return (void *)(unsigned long)found;
}

static int __init fl_make_storage(struct fl_storage_map *storage, const char *name, u32 bytes) {
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_SK_STORAGE, .key_size = sizeof(int), .value_size = bytes,
			       .map_flags = BPF_F_NO_PREALLOC, .numa_node = NUMA_NO_NODE};
	struct bpf_map *map = sk_storage_map_ops.map_alloc(&attr);

	if (IS_ERR(map))
		return PTR_ERR(map);
	map->ops = &sk_storage_map_ops;
	storage->name = name;
	storage->map = map;
	return 0;
}

// ---- helpers ---------------------------------------------------------------------------------------------------------

u64 fl_call(enum bpf_func_id id, u64 a, u64 b, u64 c, u64 d, u64 e) {
	static const struct bpf_func_proto *found[__BPF_FUNC_MAX_ID];
	static struct bpf_prog_aux aux;
	static struct bpf_prog program = {.aux = &aux};

	if (!found[id])
		found[id] = sock_ops_verifier_ops.get_func_proto(id, &program);
	if (!found[id])
		found[id] = tc_cls_act_verifier_ops.get_func_proto(id, &program);
	return found[id] ? found[id]->func(a, b, c, d, e) : (u64)-EINVAL;
}

// ---- where the kernel calls ------------------------------------------------------------------------------------------

// `ip route … cwnd lock`: TCP reads it from the peer's metrics, which there are once a connection has ended
// (tcp_init_metrics()). A run has none before those that it measures.
static void fl_clamp_window(struct sock *sk) {
	const struct dst_entry *dst = __sk_dst_get(sk);

	if (dst && dst_metric_locked(dst, RTAX_CWND))
		tcp_sk(sk)->snd_cwnd_clamp = dst_metric(dst, RTAX_CWND);
}

int fairlane_sock_ops(struct bpf_sock_ops_kern *kernel) {
	struct sock *sk = kernel->sk ? sk_to_full_sk(kernel->sk) : NULL;
	const struct net *net = fl_net;
	struct fl_sock_ops ops;
	struct fl_host *host;
	u32 slot = fl_slot;

	if (!sk || !sk_fullsock(sk))
		return 0;
	if (kernel->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		fl_clamp_window(sk);
	host = fl_host_of(sk);
	if (!host->programs)
		return 0;
	ops = (struct fl_sock_ops){
		.op = kernel->op,
		.sk = sk,
		.skb_data = kernel->skb ? kernel->skb->data : NULL,
		.skb_data_end = kernel->skb_data_end,
		.skb_len = kernel->skb ? kernel->skb->len : 0,
		.rcv_nxt = tcp_sk(sk)->rcv_nxt,
		.bpf_sock_ops_cb_flags = tcp_sk(sk)->bpf_sock_ops_cb_flags,
		.kernel = kernel,
	};
	memcpy(ops.args, kernel->args, sizeof(ops.args));
	if (host->programs & BIT(PROGRAM_MRTO)) {
		fl_enter(sock_net(sk), PROGRAM_MRTO);
		mrto(&ops);
	}
	if (host->programs & BIT(PROGRAM_ERTO)) {
		fl_enter(sock_net(sk), PROGRAM_ERTO);
		erto_sockops(&ops);
	}
	if (host->programs & BIT(PROGRAM_ENA)) {
		ops.bpf_sock_ops_cb_flags = tcp_sk(sk)->bpf_sock_ops_cb_flags;
		fl_enter(sock_net(sk), PROGRAM_ENA);
		ena(&ops);
	}
	if (host->programs & BIT(PROGRAM_ENA_LOWEST))
		ena_names_lowest(&ops);
	fl_net = net; // a program may have sent, and so let another one run
	fl_slot = slot;
	return 0;
}

// The packet has no Ethernet header yet; tc programs count from one.
static void fl_run_tc(struct sk_buff *skb, int (*program)(struct sk_buff *)) {
	if (skb_headroom(skb) < ETH_HLEN)
		return;
	skb_push(skb, ETH_HLEN);
	program(skb);
	skb_pull(skb, ETH_HLEN);
}

int fairlane_egress(struct sock *sk, struct sk_buff *skb) {
	const struct net *net = fl_net;
	struct fl_host *host;
	u32 slot = fl_slot;
	int passes = 1;

	sk = sk ? sk_to_full_sk(sk) : NULL;
	if (!sk || !sk_fullsock(sk))
		return 0;
	host = fl_host_of(sk);
	if (host->programs & BIT(PROGRAM_ERTO)) {
		fl_enter(sock_net(sk), PROGRAM_ERTO);
		passes = erto_egress(skb);
	}
	if (passes && host->programs & BIT(PROGRAM_ENA)) {
		fl_enter(sock_net(sk), PROGRAM_ENA);
		fl_run_tc(skb, ena_egress);
	}
	fl_net = net;
	fl_slot = slot;
	return passes ? 0 : -EPERM;
}

static rx_handler_result_t fl_ingress(struct sk_buff **pskb) {
	struct sk_buff *skb = skb_share_check(*pskb, GFP_ATOMIC);
	const struct net *net = fl_net;
	u32 slot = fl_slot;

	*pskb = skb;
	if (!skb)
		return RX_HANDLER_CONSUMED;
	fl_enter(dev_net(skb->dev), PROGRAM_ENA);
	fl_run_tc(skb, ena_ingress);
	fl_net = net;
	fl_slot = slot;
	return RX_HANDLER_PASS;
}

// ---- a namespace's programs ------------------------------------------------------------------------------------------

static unsigned long fl_no_counters[PROGRAMS * HOST_COUNTERS]; // of a host without programs

static int fl_take_slots(struct fl_host *host) {
	struct ctl_table *counters = &host->table[1];
	static u32 taken;
	u64 *all;

	if (counters->data != fl_no_counters)
		return 0;
	all = fl_element("&shared_count", sizeof(*all), HOST_SLOTS * HOST_COUNTERS, 0);
	if (!all)
		return -ENOMEM;
	if (taken + PROGRAMS > HOST_SLOTS)
		return -ENOSPC;
	host->slot = taken;
	taken += PROGRAMS;
	counters->data = all + host->slot * HOST_COUNTERS;
	return 0;
}

static int fl_set_programs(const struct ctl_table *table, int write, void *buffer, size_t *len, loff_t *at) {
	struct net *net = table->extra1;
	struct fl_host *host = net_generic(net, fl_host_id);
	int result = proc_douintvec(table, write, buffer, len, at);
	struct net_device *device;

	if (!result && write && host->programs)
		result = fl_take_slots(host);
	if (result || !write || !(host->programs & BIT(PROGRAM_ENA)))
		return result;
	rtnl_lock();
	for_each_netdev(net, device)
		if (!(device->flags & IFF_LOOPBACK) && !netdev_is_rx_handler_busy(device))
			result = netdev_rx_handler_register(device, fl_ingress, NULL);
	rtnl_unlock();
	return result;
}

static int __net_init fl_begin(struct net *net) {
	struct fl_host *host = net_generic(net, fl_host_id);

	host->table[0] = (struct ctl_table){.procname = "fairlane_programs", .data = &host->programs, .maxlen = sizeof(host->programs),
					    .mode = 0644, .proc_handler = fl_set_programs, .extra1 = net};
	host->table[1] = (struct ctl_table){.procname = "fairlane_counters", .data = fl_no_counters, .maxlen = sizeof(fl_no_counters),
					    .mode = 0444, .proc_handler = proc_doulongvec_minmax};
	host->header = register_net_sysctl_sz(net, "net/ipv4", host->table, ARRAY_SIZE(host->table));
	return host->header ? 0 : -ENOMEM;
}

static void __net_exit fl_end(struct net *net) {
	unregister_net_sysctl_table(((struct fl_host *)net_generic(net, fl_host_id))->header);
}

static struct pernet_operations fl_operations = {.init = fl_begin, .exit = fl_end, .id = &fl_host_id, .size = sizeof(struct fl_host)};

static int __init fl_init_programs(void) {
	int result = fl_make_storage(&fl_storages[0], "&timeouts", sizeof(*timeouts.value));

	result = result ?: fl_make_storage(&fl_storages[1], "&shared_ena", sizeof(*shared_ena.value));
	return result ?: register_pernet_subsys(&fl_operations);
}
late_initcall(fl_init_programs);
