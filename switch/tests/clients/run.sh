#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other projects' clients, unchanged, against fairlane-switch: `run.sh TREES [client...]`; docs/clients.md has the results. The folder TREES has
#   finsy                github.com/byllyfish/finsy            uv venv && uv pip install --compile-bytecode . pytest pytest-asyncio shellous prometheus-client
#   up4                  github.com/omec-project/up4           uv venv && uv pip install ptf 'scapy<2.6' p4runtime==1.3.0 'protobuf<3.21' p4runtime-shell
#   p4runtime-shell      github.com/p4lang/p4runtime-shell     uv venv && uv pip install p4runtime==1.4.1 'protobuf<3.21' grpcio 'ipython==7.31.*' jedi==0.17.2 setuptools
#   testvectors          github.com/stratum/testvectors
#   testvectors-runner   github.com/stratum/testvectors-runner go build -mod=mod -o tvrunner ./cmd/main
#   p4runtime-go-client  github.com/antoninbas/p4runtime-go-client  go build -o bin/ ./cmd/...
#   gnmic                github.com/openconfig/gnmic           go build
# The runner of the test vectors is from 2020. In pkg/test/test.go replace testing.MainStart by testing.Main(match.MatchString, testSuite, nil, nil)
# without the os.Exit below it; in cmd/main/testvectors-runner.go call testing.Init() before flag.Parse(); in pkg/framework/p4rt/p4_oper.go change
# the election id (1, 5) of packet-outs to (0, 4): since P4Runtime 1.2 (section 5.3) a client whose election id falls becomes a backup.
# Each runs as root in namespaces of its own, with eight pairs veth0-veth1 … veth14-veth15; what it says is in TREES/log.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
export HERE SWITCH=${FAIRLANE_SWITCH:-$HERE/../../target/release/fairlane-switch}
export TREES=${1:-}
if [ -z "$TREES" ] || [ ! -d "$TREES" ]; then
    echo "name the folder that holds the clients' trees: make clients CLIENTS=../clients (switch/tests/clients/run.sh lists them)"; exit 2
fi
[ -x "$SWITCH" ] || { echo "$SWITCH is not built: setup/setup.sh binaries"; exit 2; }
TREES=$(cd "$TREES" && pwd); shift
mkdir -p "$TREES/log"

# Tests of theirs that fail; docs/clients.md gives the reasons.
declare -A KNOWN=(
    [finsy]='test_int.py::test_read_tables test_mtls3_expired_client test_tls_no_client_cert test_ngsdn_actionprofile'
    [up4]='GtpuDdnDigestTest'
    [testvectors]='config_expectation_1 config_expectation_2 config_expectation_9 config_expectation_10 config_expectation_11
        config_expectation_13 config_expectation_15 config_expectation_18 config_expectation_33 config_expectation_34
        config_expectation_35 config_expectation_36 Subscribe_Health_Indicator SubRedirectDataplaneToDataplane'
)

# veth pairs; `switch` starts the switch on their even or odd ends, the gRPC port and the CPU port.
inside() {
    ip link set lo up
    mount -t sysfs sysfs /sys
    local i end feature
    for i in 0 2 4 6 8 10 12 14; do
        ip link add "veth$i" type veth peer name "veth$((i + 1))"
        for end in "veth$i" "veth$((i + 1))"; do
            sysctl -qw "net.ipv6.conf.$end.disable_ipv6=1"
            for feature in rx tx sg tso gso gro; do ethtool -K "$end" $feature off > /dev/null 2>&1 || true; done
            ip link set "$end" mtu 9500 up
        done
    done
}
switch() { # first interface, gRPC port, CPU port
    local ports=() i
    for i in 0 1 2 3 4 5 6 7; do ports+=(-i "$((i + 1))@veth$((2 * i + $1))"); done
    "$SWITCH" --device-id 1 --grpc "127.0.0.1:$2" --cpu-port "$3" "${ports[@]}" > "$TREES/log/switch.txt" 2>&1 &
    for i in $(seq 100); do grep -q ': ready ' "$TREES/log/switch.txt" && return; sleep 0.1; done
    return 1
}

finsy() { # its own Mininet, with our switch under its image's name
    ip link add up0 type veth peer name up1
    ip addr add 192.0.2.1/24 dev up0 && ip link set up0 up && ip link set up1 up && ip route add default dev up0
    mount -t tmpfs none /usr/local
    mkdir -p /usr/local/mininet/custom /usr/local/bin && cp "$HERE/p4switch.py" /usr/local/mininet/custom/
    # For its bridges it installs bridge-utils; `ip` is enough.
    printf '#!/bin/sh\n' > /usr/local/bin/apt-get
    cat > /usr/local/bin/brctl <<'BRCTL'
#!/bin/sh
case $1 in
    addbr) exec ip link add "$2" type bridge ;;
    delbr) exec ip link delete "$2" ;;
    addif) exec ip link set "$3" master "$2" ;;
esac
BRCTL
    chmod +x /usr/local/bin/apt-get /usr/local/bin/brctl
    cd "$TREES/finsy/examples"
    export PATH=$TREES/finsy/.venv/bin:/usr/local/bin:$PATH FAIRLANE_SWITCH=$SWITCH
    python -m pytest -q -o log_cli=false -p no:cacheprovider tests --ignore tests/test_simple.py
}
up4() {
    switch 0 28000 255
    cd "$TREES/up4/ptf"
    export PATH=$TREES/up4/.venv/bin:$PATH PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python
    python -c 'if 1:
        import sys; from google.protobuf import text_format; from p4.config.v1 import p4info_pb2
        sys.stdout.buffer.write(text_format.Parse(sys.stdin.read(), p4info_pb2.P4Info()).SerializeToString())' \
        < ../p4src/build/p4info.txt > "$TREES/log/p4info.bin"
    python -u lib/runner.py --bmv2-json ../p4src/build/bmv2.json --p4info "$TREES/log/p4info.bin" --grpc-addr localhost:28000 \
        --device-id 1 --ptf-dir tests --cpu-port 255 --port-map lib/port_map.json
}
testvectors() { # counters are expected to be 0: gNMI first
    switch 1 50001 253
    cd "$TREES/testvectors/bmv2"
    local suite
    for suite in 'gnmi --tv-name .*' '. --tv-name PipelineConfig' p4runtime e2e; do
        # shellcheck disable=SC2086
        "$TREES/testvectors-runner/tvrunner" --target target.pb.txt --portmap portmap.pb.txt --log-dir "$TREES/log" --tv-dir $suite || true
    done
}
go() {
    switch 0 9559 255
    cd "$TREES/p4runtime-go-client/bin"
    local program
    for program in wcmp l2_switch; do # they serve until a signal; what goes wrong before is fatal
        timeout -s INT 8 ./$program -addr 127.0.0.1:9559 -device-id 1 > "$TREES/log/$program.txt" 2>&1 || true
        cat "$TREES/log/$program.txt"
        if grep -q level=fatal "$TREES/log/$program.txt"; then echo "FAILED $program"; else echo "PASSED $program"; fi
    done
}
gnmic() {
    switch 0 9559 255
    local asked=(timeout 20 "$TREES/gnmic/gnmic" -a 127.0.0.1:9559 --insecure) interface='/interfaces/interface[name=veth2]'
    try() { if "${asked[@]}" "$@"; then echo "PASSED $1"; else echo "FAILED $*"; fi; }
    try capabilities
    try get --path "$interface/state/counters" --encoding json_ietf
    try set --update-path "$interface/config/enabled" --update-value false
    try sub --mode once --path '/interfaces/interface[name=*]/state/oper-status' --format flat
}
shell() {
    switch 0 9559 510
    PYTHONPATH=$TREES/p4runtime-shell "$TREES/p4runtime-shell/.venv/bin/python" "$HERE/shell_session.py" 127.0.0.1:9559 \
        "$HERE/../../crates/p4rt/tests/p4/entities.p4info.txtpb" "$HERE/../../crates/p4rt/tests/p4/entities.json"
}

if [ "${CLIENT:-}" != "" ]; then inside; "$CLIENT"; exit; fi
failed=0
for client in "${@:-finsy up4 testvectors go gnmic shell}"; do for client in $client; do
    log=$TREES/log/$client.txt
    case $client in
        finsy) needs=finsy/.venv/bin/pytest ;; up4) needs=up4/.venv/bin/ptf ;; testvectors) needs=testvectors-runner/tvrunner ;;
        go) needs=p4runtime-go-client/bin/wcmp ;; gnmic) needs=gnmic/gnmic ;; shell) needs=p4runtime-shell/.venv/bin/python ;;
        *) echo "$client is not known; known: finsy, up4, testvectors, go, gnmic, shell"; exit 2 ;;
    esac
    if [ ! -x "$TREES/$needs" ]; then echo "$client: skipped, there is no $TREES/$needs (switch/tests/clients/run.sh says how to build it)"; failed=1; continue; fi
    CLIENT=$client timeout -k 10 900 unshare --mount --net --pid --fork --mount-proc --kill-child "$0" "$TREES" > "$log" 2>&1 || true
    strange=""
    if grep -q 'outcomes.Exit' "$log"; then strange=" (it was given up before its end)"; fi
    for name in $(sed -nE 's/^(FAILED|ERROR|--- FAIL:|FAIL:) +([A-Za-z][^ ]*).*/\2/p' "$log" | sort -u); do
        known=0
        for one in ${KNOWN[$client]:-}; do case $name in "$one"|*"/$one"|*"::$one"*|*".$one") known=1 ;; esac; done
        [ $known = 1 ] || strange="$strange $name"
    done
    passed=$(grep -cE '^--- PASS:|^PASSED|\.\.\. ok$|^ok$' "$log" || true)
    told=$(grep -E '[0-9]+ passed|^Ran ' "$log" | tail -n 1 || true)
    echo "$client: ${told:-$passed passed}${strange:+; failed that should not:$strange} ($log)"
    if [ -n "$strange" ] || [ -z "$told$passed" ] || [ "$told$passed" = 0 ]; then failed=1; fi
done; done
exit $failed
