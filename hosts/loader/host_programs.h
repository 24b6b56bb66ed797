// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Programs of one host: loaded, attached to its cgroup and its interface, and taken away again with everything they set.
#ifndef FAIRLANE_HOST_PROGRAMS_H
#define FAIRLANE_HOST_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_ATTACHMENTS 256
#define COUNTERS 16 // of a host

struct attach_request {
	const char *program;   // name, for messages and sharing
	const char *object;    // path of the BPF object
	const char *tag;       // which build
	const char *cgroup;    // folder of cgroup v2
	const char *origin;    // the cgroup folder to which its processes go back
	const char *netns;     // path of its network namespace
	const char *interface; // where tc programs go
	const char *sysctls;   // "name=value,…" below net.ipv4, put back when the program goes; or "-"
};

// The number of the attachment, one use of it taken; or a negative errno with one sentence in `said`.
// The same program of the same build on the same host is shared. All or nothing.
int attachment_take(const struct attach_request *request, char *said, size_t said_bytes);

// Another use of one that there is.
void attachment_share(int id);

// Gives one use back; with the last one the program goes, and with a cgroup's last program the cgroup folder.
void attachment_give_back(int id);

// Writes "name cgroup tag link|nolink" of attachment `id`; false when there is none.
bool attachment_describe(int id, char *text, size_t text_bytes);

// Reads its counters; false when there is none.
bool attachment_counters(int id, unsigned long long values[COUNTERS]);

#endif
