// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Host program `ena-lowest`: beside `ena`, every ACK names the lowest corrupted segment that is missing, as ENA+ wants it,
// instead of the one that it answers.
#include "../kernel.bpf.h"

#include "ena_socket.bpf.h"

SEC("license") char _license[] = "Dual MIT/GPL";

SEC("sockops")
int ena_names_lowest(struct bpf_sock_ops *skops) {
	struct bpf_sock *sk = skops->sk;
	struct ena_socket *socket;

	if (skops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && skops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	socket = sk ? bpf_sk_storage_get(&shared_ena, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	if (socket)
		socket->names_lowest = 1;
	return 1;
}
