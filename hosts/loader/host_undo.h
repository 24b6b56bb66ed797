// SPDX-License-Identifier: GPL-2.0-only OR MIT
// What a host's programs change beside BPF, and how it is put back: sysctls of its namespace, its cgroup folder.
#ifndef FAIRLANE_HOST_UNDO_H
#define FAIRLANE_HOST_UNDO_H

#include <stddef.h>

#define MAX_SYSCTLS 4

struct changed_sysctls {
	struct {
		char name[48], before[32];
	} items[MAX_SYSCTLS];
	int count;
};

// Enters a network namespace; the descriptor of the one that was left, for undo_leave(), or a negative errno.
int undo_enter(int netns_fd);
void undo_leave(int home_fd);

// "name=value,…" below net.ipv4 of the namespace that we are in; "-" is nothing. 0, or a negative errno with one
// sentence in `said`; what was changed until then is in `out`.
int change_sysctls(struct changed_sysctls *out, const char *wanted, char *said, size_t said_bytes);
void undo_sysctls(struct changed_sysctls *changed);

// Moves the processes of a cgroup to another and removes the folder, and those above it that become empty, up to and
// with one whose name begins with "fairlane".
void undo_cgroup(const char *cgroup, const char *origin);

#endif
