#!/bin/sh
# Makes sure that the Debian packages that Poblano needs are there: installs what is missing when
# root, else prints the command that does and fails.
set -eu

packages="g++ make perl python3-venv iverilog zlib1g-dev liblz4-dev"

if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: please see to $packages yourself" >&2
    exit 0
fi

missing=
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "these Debian packages are missing:$missing" >&2
    echo "please run: sudo apt-get update && sudo apt-get install -y$missing" >&2
    exit 1
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
