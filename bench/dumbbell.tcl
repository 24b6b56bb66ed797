# SPDX-License-Identifier: Apache-2.0
# The dumbbell of the Qthresh paper's Table 2 in ns-2, without Qthresh: ns dumbbell.tcl RATE_BPS DELAY_MS SECONDS [TRACE]
# With a file's name as TRACE, each event of a packet is written to it, which is how ns-2 gives results.
lassign $argv rate_bps delay_ms seconds trace

set ns [new Simulator]
if {$trace ne ""} { $ns trace-all [open $trace w] }
foreach name {h1 h2 h3 s1 s2} { set $name [$ns node] }
foreach {a b} [list $h1 $s1 $h2 $s1 $s2 $h3] { $ns duplex-link $a $b 10Mb 1ms DropTail }
$ns duplex-link $s1 $s2 $rate_bps ${delay_ms}ms DropTail
$ns queue-limit $s1 $s2 50

foreach {variant host} [list Reno $h1 Vegas $h2] {
    set sender [new Agent/TCP/$variant]
    $sender set packetSize_ 960
    $sender set window_ 1000
    set receiver [new Agent/TCPSink/DelAck]
    $ns attach-agent $host $sender
    $ns attach-agent $h3 $receiver
    $ns connect $sender $receiver
    set application [new Application/FTP]
    $application attach-agent $sender
    $ns at 0 "$application start"
    $ns at $seconds "puts \"$variant \[$sender set ack_\]\""
}
$ns at $seconds "exit 0"
$ns run
