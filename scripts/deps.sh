#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing of scripts/packages.txt for the purposes named: deps.sh build run test lint.
# Says what it will install first. With nothing missing it asks dpkg once and is done.
set -eu

folder=$(dirname "$0")
wanted=$(for purpose in "${@:-build}"; do
	awk -v purpose="$purpose" '$1 == purpose { print $2 }' "$folder/packages.txt"
done)

if ! command -v dpkg-query >/dev/null; then
	echo "deps: not a Debian system; please install what stands in scripts/packages.txt" >&2
	exit 0
fi

# shellcheck disable=SC2086 # package names have no spaces
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
	awk '$1 == "installed" { print $2 }' || true)
missing=
for package in $wanted; do
	if ! echo "$installed" | grep -qxF "$package"; then
		missing="$missing $package"
	fi
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=$(command -v sudo || echo none)
fi
if [ "$as_root" = none ]; then
	echo "deps: these packages of the distribution are missing:"
else
	echo "deps: will install these packages of the distribution:"
fi
for package in $missing; do
	awk -v package="$package" '$2 == package {
		what = $0
		sub(/^[^ ]+ +[^ ]+ +/, "", what)
		printf "  %-22s %s\n", package, what
		exit
	}' "$folder/packages.txt"
done

if [ "$as_root" = none ]; then
	echo "deps: neither root nor sudo; please have root run: apt-get install$missing" >&2
	exit 1
fi
$as_root apt-get update -q
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -q -y --no-install-recommends $missing

# The tests start their own knotd on their own ports; the packaged service is not wanted.
case " $missing " in
*" knot "*)
	if [ -d /run/systemd/system ]; then
		$as_root systemctl disable --now knot >/dev/null 2>&1 || true
	fi
	;;
esac
