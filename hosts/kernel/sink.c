// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A receiver that throws away what it reads, in a thread of the kernel: setsockopt(TCP_ULP, "fl_sink").
// A process would be woken for each segment, and to wake one costs User-mode Linux ten times what the segment costs.
#include <net/tcp.h>

struct fl_sink {
	struct work_struct work;
	struct sock *sk;
	refcount_t users; // the socket, and the work that waits
};

static void fl_put(struct fl_sink *sink) {
	if (refcount_dec_and_test(&sink->users))
		kfree(sink);
}

static int fl_throw_away(read_descriptor_t *descriptor, struct sk_buff *skb, unsigned int offset, size_t len) { return len; }

static void fl_read(struct work_struct *work) {
	struct fl_sink *sink = container_of(work, struct fl_sink, work);
	read_descriptor_t descriptor = {.count = 1};
	struct sock *sk = sink->sk;

	lock_sock(sk);
	tcp_read_sock(sk, &descriptor, fl_throw_away);
	release_sock(sk);
	sock_put(sk);
	fl_put(sink);
}

static void fl_data_ready(struct sock *sk) {
	struct fl_sink *sink = inet_csk(sk)->icsk_ulp_data;

	if (!sink)
		return;
	sock_hold(sk);
	refcount_inc(&sink->users);
	if (queue_work(system_highpri_wq, &sink->work))
		return;
	__sock_put(sk);
	refcount_dec(&sink->users);
}

static int fl_begin(struct sock *sk) {
	struct fl_sink *sink = kzalloc(sizeof(*sink), GFP_ATOMIC);

	if (!sink)
		return -ENOMEM;
	INIT_WORK(&sink->work, fl_read);
	sink->sk = sk;
	refcount_set(&sink->users, 1);
	inet_csk(sk)->icsk_ulp_data = sink;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_data_ready = fl_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	fl_data_ready(sk); // what has come already
	return 0;
}

static void fl_end(struct sock *sk) {
	struct fl_sink *sink = inet_csk(sk)->icsk_ulp_data;

	inet_csk(sk)->icsk_ulp_data = NULL;
	fl_put(sink);
}

static struct tcp_ulp_ops fl_sink_ops = {.name = "fl_sink", .owner = THIS_MODULE, .init = fl_begin, .release = fl_end};

static int __init fl_register_sink(void) { return tcp_register_ulp(&fl_sink_ops); }
late_initcall(fl_register_sink);
