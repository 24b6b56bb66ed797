// SPDX-License-Identifier: GPL-2.0-only OR MIT
// fairlane-cc: registers congestion controls, attaches hosts' programs, and holds both for as long as somebody uses them.
//
//   fairlane-cc serve SOCKET NAME=OBJECT=TAG...   register all, print "ready", serve; exit when no reference is left
//   fairlane-cc remove NAME...                    unregister what a killed holder left (kernels before 6.4)
//
// A reference is an open connection to SOCKET, or a process named with "hold PID" (until it ends). So killing a user,
// in whatever way, gives its reference back, and killing the holder takes the names away where the kernel has
// struct_ops links (6.4). Sockets that run an algorithm keep it to their end. What a reference has attached goes with
// its last reference. Requests, one a line, fields of "attach" separated by tabs:
//   hold PID    -> "ok" | "error TEXT"; the process then holds what this connection has attached until now as well
//   list        -> "NAME TAG link|nolink" lines, "attached ID PROGRAM CGROUP TAG link|nolink" lines, "pid PID", "ok"
//   attach PROGRAM OBJECT TAG CGROUP ORIGIN NETNS INTERFACE SYSCTLS   -> "id ID", "ok" | "error TEXT"
//   detach ID   -> "ok" | "error TEXT"
//   counters ID -> one line of numbers, "ok" | "error TEXT"
#include "host_programs.h"
#include "registry.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ALGORITHMS 32
#define MAX_REFERENCES 512
#define FIRST_USER_TIMEOUT_MS 10000
#define LINE_BYTES 8192
#define ATTACH_FIELDS 9

static struct registered algorithms[MAX_ALGORITHMS];
static int algorithm_count;
static volatile sig_atomic_t stopping;

struct reference {
	bool is_process; // a pidfd; otherwise a client's connection
	char *line;	 // of a client: LINE_BYTES
	size_t used;
	unsigned char attached[MAX_ATTACHMENTS]; // how often it holds each
};
static struct pollfd polled[MAX_REFERENCES + 1]; // [0] is the listening socket
static struct reference references[MAX_REFERENCES + 1];
static int polled_count = 1;

static void stop(int signal_number) {
	(void)signal_number;
	stopping = 1;
}

static bool add_reference(int fd, bool is_process) {
	if (polled_count > MAX_REFERENCES)
		return false;
	polled[polled_count] = (struct pollfd){.fd = fd, .events = POLLIN};
	memset(&references[polled_count], 0, sizeof(references[0]));
	references[polled_count].is_process = is_process;
	if (!is_process && !(references[polled_count].line = malloc(LINE_BYTES)))
		return false;
	polled_count++;
	return true;
}

static void drop_reference(int index) {
	for (int id = 0; id < MAX_ATTACHMENTS; id++)
		for (; references[index].attached[id]; references[index].attached[id]--)
			attachment_give_back(id);
	free(references[index].line);
	close(polled[index].fd); // last: who sees the connection closed finds everything gone
	polled_count--;
	polled[index] = polled[polled_count];
	references[index] = references[polled_count];
}

static void answer(int fd, const char *text) {
	// A client that does not read its answer is closed by its own end; nothing to do here.
	if (send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void answer_error(int fd, const char *text) {
	char line[1024];

	snprintf(line, sizeof(line), "error %s\n", text);
	answer(fd, line);
}

static void share_attachments(const struct reference *from, struct reference *to) {
	for (int id = 0; id < MAX_ATTACHMENTS; id++) {
		if (from->attached[id]) {
			attachment_share(id);
			to->attached[id] = 1;
		}
	}
}

static void hold_process(int index, const char *argument) {
	int fd = polled[index].fd;
	char *end, text[128];
	long pid = strtol(argument, &end, 10);
	int pidfd;

	if (end == argument || *end || pid <= 0) {
		answer(fd, "error hold: want a process id, a positive number\n");
		return;
	}
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (pidfd < 0) {
		snprintf(text, sizeof(text), "error hold: process %ld: %s\n", pid, strerror(errno));
		answer(fd, text);
	} else if (!add_reference(pidfd, true)) {
		close(pidfd);
		answer(fd, "error hold: too many references\n");
	} else {
		share_attachments(&references[index], &references[polled_count - 1]);
		answer(fd, "ok\n");
	}
}

static void attach_programs(int index, char *fields) {
	char *field[ATTACH_FIELDS], said[960] = "";
	int fd = polled[index].fd, count = 0, id;

	while (count < ATTACH_FIELDS && (field[count] = strsep(&fields, "\t")))
		count++;
	if (count != ATTACH_FIELDS - 1) {
		answer(fd, "error attach: want PROGRAM OBJECT TAG CGROUP ORIGIN NETNS INTERFACE SYSCTLS, separated by tabs\n");
		return;
	}
	id = attachment_take(&(struct attach_request){.program = field[0],
						      .object = field[1],
						      .tag = field[2],
						      .cgroup = field[3],
						      .origin = field[4],
						      .netns = field[5],
						      .interface = field[6],
						      .sysctls = field[7]},
			     said, sizeof(said));
	if (id < 0) {
		answer_error(fd, said);
	} else if (references[index].attached[id] == UCHAR_MAX) {
		attachment_give_back(id);
		answer(fd, "error attach: this connection holds it 255 times already\n");
	} else {
		references[index].attached[id]++;
		snprintf(said, sizeof(said), "id %d\nok\n", id);
		answer(fd, said);
	}
}

// The attachment that the argument names and this connection holds, or -1 after an answer.
static int held_attachment(int index, const char *argument) {
	char *end;
	long id = strtol(argument, &end, 10);

	if (end != argument && !*end && id >= 0 && id < MAX_ATTACHMENTS && references[index].attached[id])
		return (int)id;
	answer(polled[index].fd, "error this connection holds no such attachment\n");
	return -1;
}

static void detach_programs(int index, const char *argument) {
	int id = held_attachment(index, argument);

	if (id < 0)
		return;
	references[index].attached[id]--;
	attachment_give_back(id);
	answer(polled[index].fd, "ok\n");
}

static void tell_counters(int index, const char *argument) {
	unsigned long long values[COUNTERS];
	char text[COUNTERS * 21 + 8];
	int id = held_attachment(index, argument);
	size_t used = 0;

	if (id < 0)
		return;
	attachment_counters(id, values);
	for (int i = 0; i < COUNTERS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%llu%c", values[i], i + 1 < COUNTERS ? ' ' : '\n');
	snprintf(text + used, sizeof(text) - used, "ok\n");
	answer(polled[index].fd, text);
}

static void list_attachments(int fd) {
	char text[PATH_MAX + 256], line[sizeof(text) + 32];

	for (int id = 0; id < MAX_ATTACHMENTS; id++) {
		if (!attachment_describe(id, text, sizeof(text)))
			continue;
		snprintf(line, sizeof(line), "attached %d %s\n", id, text);
		answer(fd, line);
	}
}

static void list_algorithms(int fd) {
	static char text[MAX_ALGORITHMS * 128 + 64];
	size_t used = 0;

	for (int i = 0; i < algorithm_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s\n", algorithms[i].name, algorithms[i].tag,
					 algorithms[i].has_bpf_link ? "link" : "nolink");
	answer(fd, text);
	list_attachments(fd);
	snprintf(text, sizeof(text), "pid %d\nok\n", (int)getpid());
	answer(fd, text);
}

static void execute(int index, char *line) {
	if (strncmp(line, "hold ", 5) == 0)
		hold_process(index, line + 5);
	else if (strcmp(line, "list") == 0)
		list_algorithms(polled[index].fd);
	else if (strncmp(line, "attach ", 7) == 0)
		attach_programs(index, line + 7);
	else if (strncmp(line, "detach ", 7) == 0)
		detach_programs(index, line + 7);
	else if (strncmp(line, "counters ", 9) == 0)
		tell_counters(index, line + 9);
	else
		answer(polled[index].fd, "error unknown request: want \"hold PID\", \"list\", \"attach …\", \"detach ID\" or \"counters ID\"\n");
}

// False when the client is gone.
static bool read_requests(int index) {
	struct reference *r = &references[index];
	int fd = polled[index].fd;
	ssize_t n = recv(fd, r->line + r->used, LINE_BYTES - 1 - r->used, MSG_DONTWAIT);
	char *newline;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	r->used += (size_t)n;
	r->line[r->used] = '\0';
	while ((newline = strchr(r->line, '\n'))) {
		*newline = '\0';
		execute(index, r->line);
		r->used -= (size_t)(newline + 1 - r->line);
		memmove(r->line, newline + 1, r->used + 1);
	}
	return r->used < LINE_BYTES - 1;
}

static void serve(int listener) {
	bool had_user = false;

	polled[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	while (!stopping && (!had_user || polled_count > 1)) {
		int ready = poll(polled, (nfds_t)polled_count, had_user ? -1 : FIRST_USER_TIMEOUT_MS);

		if (ready == 0)
			return;
		if (ready < 0)
			continue;
		for (int i = polled_count - 1; i > 0; i--) {
			if (polled[i].revents && (references[i].is_process || !read_requests(i)))
				drop_reference(i);
		}
		if (polled[0].revents) {
			int client = accept(listener, NULL, NULL);
			if (client >= 0) {
				had_user = true;
				if (!add_reference(client, false)) {
					answer(client, "error too many references\n");
					close(client);
				}
			}
		}
	}
}

static int listen_at(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "fairlane-cc: socket path longer than %zu bytes: %s\n", sizeof(address.sun_path) - 1, path);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	unlink(path); // the caller holds the lock: nobody serves here
	umask(0177);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64)) {
		fprintf(stderr, "fairlane-cc: cannot listen at %s: %s\n", path, strerror(errno));
		return -1;
	}
	return fd;
}

static int register_all(char **specs, int count) {
	for (int i = 0; i < count; i++) {
		char *path = strchr(specs[i], '='), *tag = path ? strchr(path + 1, '=') : NULL;

		if (!tag || i >= MAX_ALGORITHMS) {
			fprintf(stderr, "fairlane-cc: want at most %d of NAME=OBJECT=TAG, got %s\n", MAX_ALGORITHMS, specs[i]);
			return -1;
		}
		*path++ = '\0';
		*tag++ = '\0';
		if (registry_register(&algorithms[algorithm_count], specs[i], path, tag))
			return -1;
		algorithm_count++;
	}
	return 0;
}

static void unregister_all(void) {
	while (algorithm_count > 0)
		registry_unregister(&algorithms[--algorithm_count]);
}

static int serve_main(const char *path, char **specs, int count) {
	struct sigaction action = {.sa_handler = stop};
	int listener;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (register_all(specs, count) == 0 && (listener = listen_at(path)) >= 0) {
		printf("ready\n");
		fflush(stdout);
		serve(listener);
		// Names first: who finds the socket gone, or closed before its answer, may register at once.
		unregister_all();
		unlink(path);
		close(listener);
		return 0;
	}
	unregister_all();
	return 1;
}

int main(int argc, char **argv) {
	if (argc >= 4 && strcmp(argv[1], "serve") == 0)
		return serve_main(argv[2], argv + 3, argc - 3);
	if (argc >= 3 && strcmp(argv[1], "remove") == 0) {
		int status = 0;
		for (int i = 2; i < argc; i++) {
			int removed = registry_remove_leftover(argv[i]);
			if (removed > 0)
				printf("%s\n", argv[i]);
			status |= removed < 0;
		}
		return status;
	}
	fprintf(stderr, "usage: fairlane-cc serve SOCKET NAME=OBJECT=TAG... | fairlane-cc remove NAME...\n");
	return 2;
}
