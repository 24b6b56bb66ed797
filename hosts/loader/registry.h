// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Registering a BPF congestion control with the kernel, and taking it away again.
#ifndef FAIRLANE_REGISTRY_H
#define FAIRLANE_REGISTRY_H

#include <bpf/libbpf.h>
#include <stdbool.h>

#define NAME_MAX_BYTES 16 // TCP_CA_NAME_MAX

struct registered {
	char name[NAME_MAX_BYTES];
	char tag[80]; // the caller's: which build of the object this is
	struct bpf_object *object;
	struct bpf_link *link; // libbpf's
	int link_fd;           // the BPF link that an old libbpf does not make itself, or -1
	bool has_bpf_link;     // 6.4 and newer: the kernel unregisters when we die; otherwise the name would outlive us
};

// 0, or a negative errno after one sentence on standard error. Nothing stays registered on failure.
int registry_register(struct registered *out, const char *name, const char *path, const char *tag);
void registry_unregister(struct registered *r);

// Takes away the registration `name` that a killed process left (kernels before 6.4).
// 1: removed, 0: there was none, negative errno with one sentence on standard error otherwise.
int registry_remove_leftover(const char *name);

#endif
