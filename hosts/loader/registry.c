// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Registers struct_ops maps through a BPF link where the kernel has them, else the classic way.
//
// libbpf before 1.2 knows no struct_ops links; the link is then made with the bpf() call itself.
// Works with libbpf 0.5 (Ubuntu 22.04) and newer.
#include "registry.h"

#include "shared_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAP_FLAG_LINK (1u << 13)   // BPF_F_LINK, 6.4
#define ATTACH_TYPE_STRUCT_OPS 44u // BPF_STRUCT_OPS, 6.4

static char libbpf_last[512];

static int keep_last_warning(enum libbpf_print_level level, const char *format, va_list args) {
	if (level != LIBBPF_WARN)
		return 0;
	return vsnprintf(libbpf_last, sizeof(libbpf_last), format, args);
}

static int fail(const char *name, const char *what, int error) {
	if (error >= 0)
		error = -EINVAL;
	libbpf_last[strcspn(libbpf_last, "\n")] = '\0';
	fprintf(stderr, "fairlane-cc: %s: %s: %s%s%s%s\n", name, what, strerror(-error), libbpf_last[0] ? " (" : "", libbpf_last,
		libbpf_last[0] ? ")" : "");
	return error;
}

static int create_link(int map_fd) {
	struct {
		__u32 map_fd, target_fd, attach_type, flags;
		__u64 padding[6];
	} attr = {.map_fd = (__u32)map_fd, .attach_type = ATTACH_TYPE_STRUCT_OPS};
	int fd = (int)syscall(SYS_bpf, 28 /* BPF_LINK_CREATE */, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int open_and_load(struct registered *r, const char *path, const char *name, bool with_link, struct bpf_map **map) {
	long error;

	libbpf_last[0] = '\0';
	r->object = bpf_object__open_file(path, NULL);
	error = libbpf_get_error(r->object);
	if (error) {
		r->object = NULL;
		return fail(name, "cannot open the BPF object", (int)error);
	}
	*map = bpf_object__find_map_by_name(r->object, name);
	if (!*map)
		return fail(name, "the BPF object holds no congestion control of this name", -ENOENT);
	if (with_link)
		bpf_map__set_map_flags(*map, bpf_map__map_flags(*map) | MAP_FLAG_LINK);
	error = shared_maps_use(r->object, libbpf_last, sizeof(libbpf_last));
	if (!error)
		error = bpf_object__load(r->object);
	return error ? (int)error : shared_maps_keep(r->object);
}

static void close_all(struct registered *r) {
	if (r->link_fd >= 0)
		close(r->link_fd);
	if (r->link)
		bpf_link__destroy(r->link);
	if (r->object)
		bpf_object__close(r->object);
	r->link_fd = -1;
	r->link = NULL;
	r->object = NULL;
}

static int attach(struct registered *r, struct bpf_map *map, bool with_link) {
	struct bpf_link *link = bpf_map__attach_struct_ops(map);
	long error = libbpf_get_error(link);

	if (error)
		return fail(r->name, error == -EEXIST ? "the name is registered already" : "cannot register", (int)error);
	r->link = link;
	r->has_bpf_link = with_link;
	if (with_link && bpf_link__fd(link) == bpf_map__fd(map)) { // an old libbpf has only filled the map
		r->link_fd = create_link(bpf_map__fd(map));
		if (r->link_fd < 0)
			return fail(r->name, r->link_fd == -EEXIST ? "the name is registered already" : "cannot register",
				    r->link_fd);
	}
	return 0;
}

int registry_register(struct registered *out, const char *name, const char *path, const char *tag) {
	struct bpf_map *map = NULL;
	bool with_link = !getenv("FAIRLANE_CC_CLASSIC"); // for tests: as on a kernel before 6.4
	int error;

	memset(out, 0, sizeof(*out));
	out->link_fd = -1;
	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->tag, sizeof(out->tag), "%s", tag);
	libbpf_set_print(keep_last_warning);
	error = open_and_load(out, path, name, with_link, &map);
	if (error && map && with_link) { // a kernel before 6.4 refuses the flag
		close_all(out);
		with_link = false;
		error = open_and_load(out, path, name, with_link, &map);
	}
	if (error && map)
		fail(name, "the kernel refuses the BPF object", error);
	if (!error)
		error = attach(out, map, with_link);
	if (error)
		close_all(out);
	return error;
}

void registry_unregister(struct registered *r) { close_all(r); }

int registry_remove_leftover(const char *name) {
	__u32 id = 0;

	while (!bpf_map_get_next_id(id, &id)) {
		struct bpf_map_info info = {0};
		__u32 length = sizeof(info), zero = 0;
		int fd = bpf_map_get_fd_by_id(id), error;

		if (fd < 0)
			continue;
		error = bpf_obj_get_info_by_fd(fd, &info, &length);
		if (error || info.type != BPF_MAP_TYPE_STRUCT_OPS || strncmp(info.name, name, sizeof(info.name)) != 0) {
			close(fd);
			continue;
		}
		error = bpf_map_delete_elem(fd, &zero) ? -errno : 0;
		close(fd);
		if (!error)
			return 1;
		if (error != -ENOENT && error != -EOPNOTSUPP && error != -EINPROGRESS)
			return fail(name, "cannot unregister", error);
	}
	return 0;
}
