// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Programs of one host: see host_programs.h.
//
// Every program of an object is attached by its type: sockops and cgroup_skb to the cgroup by BPF links, SEC("tc") to
// the interface by tcx links (6.6), elsewhere by a clsact filter; a tc program's name ends in _ingress or _egress.
// Links end with this process. The map "host_slot" of an object, where it has one, gets the number of the attachment,
// and its counters are shared_count[COUNTERS * number + i].
#include "host_programs.h"

#include "host_undo.h"
#include "shared_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PROGRAMS 8 // of one object
#define LINK_CREATE 28u // BPF_LINK_CREATE
#define TCX_INGRESS 46u // BPF_TCX_INGRESS, 6.6
#define TCX_EGRESS 47u
#define TC_HANDLE 0xfa1u
#define TC_PRIORITY 0xfa1u

struct attached_program {
	int fd;      // a BPF link, or -1
	bool is_tc;  // a clsact filter instead
	bool egress; // of a clsact filter
};

struct attachment {
	bool in_use;
	unsigned uses;
	char program[32], tag[80];
	char cgroup[PATH_MAX], origin[PATH_MAX], interface[IF_NAMESIZE];
	ino_t netns_inode;
	int netns_fd;
	unsigned ifindex;
	bool made_clsact;
	struct bpf_object *object;
	struct attached_program programs[MAX_PROGRAMS];
	int program_count;
	struct changed_sysctls sysctls;
};
static struct attachment attachments[MAX_ATTACHMENTS];
static char libbpf_said[512];

static int keep_libbpf_words(enum libbpf_print_level level, const char *format, va_list words) {
	return level == LIBBPF_WARN ? vsnprintf(libbpf_said, sizeof(libbpf_said), format, words) : 0;
}

static int fail(char *said, size_t bytes, int error, const char *format, ...) {
	va_list words;
	int used;

	va_start(words, format);
	used = vsnprintf(said, bytes, format, words);
	va_end(words);
	libbpf_said[strcspn(libbpf_said, "\n")] = '\0';
	if (used >= 0 && (size_t)used < bytes)
		snprintf(said + used, bytes - (size_t)used, ": %s%s%s%s", strerror(-error), libbpf_said[0] ? " (" : "",
			 libbpf_said, libbpf_said[0] ? ")" : "");
	return error;
}

static bool wants_classic(void) { return getenv("FAIRLANE_CC_CLASSIC") != NULL; } // for tests: as on a kernel before 6.4

static int create_tcx_link(int program_fd, unsigned ifindex, bool egress) {
	struct {
		__u32 prog_fd, target_ifindex, attach_type, flags;
		__u64 padding[6];
	} attr = {.prog_fd = (__u32)program_fd, .target_ifindex = ifindex, .attach_type = egress ? TCX_EGRESS : TCX_INGRESS};
	int fd = (int)syscall(SYS_bpf, LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static int create_cgroup_link(int program_fd, int cgroup_fd, enum bpf_attach_type type) {
	int fd = bpf_link_create(program_fd, cgroup_fd, type, NULL);

	return fd < 0 ? (fd == -1 ? -errno : fd) : fd;
}

// The hook is the caller's namespace's.
static int attach_filter(struct attachment *a, int program_fd, bool egress) {
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)a->ifindex, .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program_fd, .flags = BPF_TC_F_REPLACE, .handle = TC_HANDLE, .priority = TC_PRIORITY);
	int error = bpf_tc_hook_create(&hook);

	if (error && error != -EEXIST)
		return error;
	a->made_clsact |= !error;
	hook.attach_point = egress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
	return bpf_tc_attach(&hook, &options);
}

static void detach_filters(struct attachment *a) {
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)a->ifindex);

	for (int i = 0; i < a->program_count; i++) {
		LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);

		if (!a->programs[i].is_tc)
			continue;
		hook.attach_point = a->programs[i].egress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
		bpf_tc_detach(&hook, &options); // the interface may be gone: then so is the filter
	}
	if (a->made_clsact) {
		hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&hook);
	}
}

static bool ends_with(const char *text, const char *ending) {
	size_t n = strlen(text), m = strlen(ending);

	return n >= m && strcmp(text + n - m, ending) == 0;
}

static int attach_tc(struct attachment *a, struct bpf_program *program, struct attached_program *out) {
	bool egress = ends_with(bpf_program__name(program), "_egress");

	if (!egress && !ends_with(bpf_program__name(program), "_ingress"))
		return -EINVAL;
	out->fd = wants_classic() ? -EINVAL : create_tcx_link(bpf_program__fd(program), a->ifindex, egress);
	if (out->fd >= 0)
		return 0;
	if (out->fd != -EINVAL && out->fd != -EOPNOTSUPP)
		return out->fd;
	out->fd = -1; // a kernel before 6.6
	out->is_tc = true;
	out->egress = egress;
	return attach_filter(a, bpf_program__fd(program), egress);
}

static int attach_one(struct attachment *a, struct bpf_program *program, int cgroup_fd) {
	struct attached_program *out = &a->programs[a->program_count];
	int error = 0;

	*out = (struct attached_program){.fd = -1};
	switch (bpf_program__type(program)) {
	case BPF_PROG_TYPE_SOCK_OPS:
		out->fd = create_cgroup_link(bpf_program__fd(program), cgroup_fd, BPF_CGROUP_SOCK_OPS);
		break;
	case BPF_PROG_TYPE_CGROUP_SKB:
		out->fd = create_cgroup_link(bpf_program__fd(program), cgroup_fd, bpf_program__expected_attach_type(program));
		break;
	case BPF_PROG_TYPE_SCHED_CLS:
		error = attach_tc(a, program, out);
		break;
	default:
		return -EINVAL;
	}
	if (!error && out->fd < 0 && !out->is_tc)
		error = out->fd;
	if (!error || out->is_tc)
		a->program_count++;
	return error;
}

static int attach_all(struct attachment *a, char *said, size_t bytes) {
	struct bpf_program *program;
	int cgroup_fd = open(a->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (cgroup_fd < 0)
		return fail(said, bytes, -errno, "cannot open cgroup %s", a->cgroup);
	bpf_object__for_each_program(program, a->object) {
		libbpf_said[0] = '\0';
		error = a->program_count < MAX_PROGRAMS ? attach_one(a, program, cgroup_fd) : -E2BIG;
		if (error) {
			fail(said, bytes, error, "cannot attach %s of program %s to %s and %s", bpf_program__name(program),
			     a->program, a->cgroup, a->interface);
			break;
		}
	}
	close(cgroup_fd);
	return error;
}

static int give_slot(struct attachment *a, int id, char *said, size_t bytes) {
	struct bpf_map *map = bpf_object__find_map_by_name(a->object, "host_slot");
	int counters = shared_map_fd("shared_count"), error = 0;
	__u32 zero = 0, slot = (__u32)id;
	__u64 none = 0;

	if (map)
		error = bpf_map_update_elem(bpf_map__fd(map), &zero, &slot, BPF_ANY);
	for (__u32 i = 0; counters >= 0 && i < COUNTERS && !error; i++) {
		__u32 key = slot * COUNTERS + i;
		error = bpf_map_update_elem(counters, &key, &none, BPF_ANY);
	}
	return error ? fail(said, bytes, error, "cannot number program %s", a->program) : 0;
}

static int load(struct attachment *a, const char *path, int id, char *said, size_t bytes) {
	long error;

	libbpf_said[0] = '\0';
	a->object = bpf_object__open_file(path, NULL);
	error = libbpf_get_error(a->object);
	if (error) {
		a->object = NULL;
		return fail(said, bytes, (int)error, "cannot open the BPF object of program %s", a->program);
	}
	error = shared_maps_use(a->object, said, bytes);
	if (error)
		return (int)error;
	error = bpf_object__load(a->object);
	if (error)
		return fail(said, bytes, (int)error, "the kernel refuses program %s", a->program);
	error = shared_maps_keep(a->object);
	if (error)
		return fail(said, bytes, (int)error, "program %s has too many shared maps", a->program);
	return give_slot(a, id, said, bytes);
}

static bool is_last_of_cgroup(const struct attachment *a) {
	for (int i = 0; i < MAX_ATTACHMENTS; i++)
		if (attachments[i].in_use && &attachments[i] != a && strcmp(attachments[i].cgroup, a->cgroup) == 0)
			return false;
	return true;
}

static void remove_all(struct attachment *a) {
	int home = undo_enter(a->netns_fd);

	if (home >= 0) {
		detach_filters(a);
		undo_sysctls(&a->sysctls);
		undo_leave(home);
	}
	for (int i = 0; i < a->program_count; i++)
		if (a->programs[i].fd >= 0)
			close(a->programs[i].fd);
	if (a->object)
		bpf_object__close(a->object);
	if (a->netns_fd >= 0)
		close(a->netns_fd);
	if (is_last_of_cgroup(a))
		undo_cgroup(a->cgroup, a->origin);
	memset(a, 0, sizeof(*a));
}

static int find_same(const struct attach_request *request, ino_t netns_inode) {
	for (int i = 0; i < MAX_ATTACHMENTS; i++) {
		const struct attachment *a = &attachments[i];

		if (a->in_use && a->netns_inode == netns_inode && strcmp(a->program, request->program) == 0 &&
		    strcmp(a->cgroup, request->cgroup) == 0 && strcmp(a->interface, request->interface) == 0)
			return i;
	}
	return -1;
}

static int fill(struct attachment *a, const struct attach_request *request, int id, char *said, size_t bytes) {
	int home, error;

	home = undo_enter(a->netns_fd);
	if (home < 0)
		return fail(said, bytes, home, "cannot enter network namespace %s", request->netns);
	a->ifindex = if_nametoindex(a->interface);
	error = a->ifindex ? 0 : fail(said, bytes, -errno, "there is no interface %s in %s", a->interface, request->netns);
	if (!error)
		error = load(a, request->object, id, said, bytes);
	if (!error)
		error = change_sysctls(&a->sysctls, request->sysctls, said, bytes);
	if (!error)
		error = attach_all(a, said, bytes);
	undo_leave(home);
	return error;
}

int attachment_take(const struct attach_request *request, char *said, size_t said_bytes) {
	struct attachment *a;
	struct stat netns;
	int id = 0, fd = open(request->netns, O_RDONLY | O_CLOEXEC), error;

	libbpf_said[0] = '\0';
	libbpf_set_print(keep_libbpf_words);
	if (fd < 0 || fstat(fd, &netns)) {
		error = fail(said, said_bytes, -errno, "cannot open network namespace %s", request->netns);
		if (fd >= 0)
			close(fd);
		return error;
	}
	id = find_same(request, netns.st_ino);
	if (id >= 0) {
		close(fd);
		if (strcmp(attachments[id].tag, request->tag) != 0)
			return fail(said, said_bytes, -EEXIST, "program %s is in use there from another build (%s, this build is %s)",
				    request->program, attachments[id].tag, request->tag);
		attachments[id].uses++;
		return id;
	}
	for (id = 0; id < MAX_ATTACHMENTS && attachments[id].in_use; id++)
		;
	if (id == MAX_ATTACHMENTS) {
		close(fd);
		return fail(said, said_bytes, -ENOSPC, "there are %d attachments already", MAX_ATTACHMENTS);
	}
	a = &attachments[id];
	*a = (struct attachment){.in_use = true, .uses = 1, .netns_fd = fd, .netns_inode = netns.st_ino};
	snprintf(a->program, sizeof(a->program), "%s", request->program);
	snprintf(a->tag, sizeof(a->tag), "%s", request->tag);
	snprintf(a->cgroup, sizeof(a->cgroup), "%s", request->cgroup);
	snprintf(a->origin, sizeof(a->origin), "%s", request->origin);
	snprintf(a->interface, sizeof(a->interface), "%s", request->interface);
	error = fill(a, request, id, said, said_bytes);
	if (error) {
		remove_all(a);
		return error < 0 ? error : -EINVAL;
	}
	return id;
}

void attachment_share(int id) { attachments[id].uses++; }

void attachment_give_back(int id) {
	if (attachments[id].in_use && --attachments[id].uses == 0)
		remove_all(&attachments[id]);
}

bool attachment_describe(int id, char *text, size_t text_bytes) {
	const struct attachment *a = id >= 0 && id < MAX_ATTACHMENTS ? &attachments[id] : NULL;
	bool links = true;

	if (!a || !a->in_use)
		return false;
	for (int i = 0; i < a->program_count; i++)
		links &= !a->programs[i].is_tc;
	snprintf(text, text_bytes, "%s %s %s %s", a->program, a->cgroup, a->tag, links ? "link" : "nolink");
	return true;
}

bool attachment_counters(int id, unsigned long long values[COUNTERS]) {
	int fd = shared_map_fd("shared_count");

	if (id < 0 || id >= MAX_ATTACHMENTS || !attachments[id].in_use)
		return false;
	for (__u32 i = 0; i < COUNTERS; i++) {
		__u32 key = (__u32)id * COUNTERS + i;

		values[i] = 0;
		if (fd >= 0 && bpf_map_lookup_elem(fd, &key, &values[i]))
			values[i] = 0;
	}
	return true;
}
