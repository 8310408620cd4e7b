#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make fuzz`: every target for FUZZ_SECONDS. New inputs go to $B/corpus, not into the tree; a crash
# stops the run and names the file to add to tests/fuzz/corpus/TARGET.
set -eu

seconds=${FUZZ_SECONDS:-20}
for target in "$@"; do
	corpus=$B/corpus/$target
	mkdir -p "$corpus" "$B/crashes"
	seeds=tests/fuzz/corpus/$target
	[ -d "$seeds" ] || seeds=
	echo "fuzz: $target, $seconds s"
	# shellcheck disable=SC2086 # no seeds, no argument
	"$B/fuzzers/$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 \
		-print_final_stats=0 -verbosity=0 -artifact_prefix="$B/crashes/$target-" \
		"$corpus" $seeds
done
echo "fuzz: $# targets, no crash"
