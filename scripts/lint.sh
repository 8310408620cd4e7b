#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make lint`: everything that reads the code without running it. Names each finding, counts, and
# ends with 1 if there was any. `lint.sh format` checks the layout alone.
set -u

cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
failures=0
mapfile -t files < <(git ls-files '*.c' '*.h')
mapfile -t product < <(git ls-files 'base/*.c' 'feeds/*.c' 'policies/*.c' 'core/*.c' 'plugins/*.c')
flags=(-I. -Icore/include -D_GNU_SOURCE '-DBALEEN_VERSION="lint"' '-DBALEEN_PREFIX="/usr/local"' -std=gnu11)

step() { # name command...
	local name=$1
	shift
	if "$@"; then
		echo "ok   lint: $name"
	else
		echo "FAIL lint: $name"
		failures=$((failures + 1))
	fi
}

layout() {
	clang-format --dry-run -Werror "${files[@]}"
}

# core -> policies -> feeds -> base; plugins see plugin.h alone (and their own folder).
arrows() {
	local bad
	bad=$(
		grep -nE '^#include "(core|policies|feeds|plugins)/' base/*.[ch]
		grep -rnE --include='*.[ch]' '^#include "(core|policies|plugins)/' feeds
		grep -rnE --include='*.[ch]' '^#include "(core|plugins)/' policies
		grep -rnE --include='*.[ch]' '^#include "plugins/' core
		grep -rnE --include='*.[ch]' '^#include "' plugins |
			grep -vE '"baleen/plugin\.h"|"[a-z_]+\.h"'
	)
	[ -z "$bad" ] || { echo "$bad"; return 1; }
}

# What every C file of the product begins with, and what none contains (CONTRIBUTING.md).
habits() {
	local file bad=0
	for file in "${files[@]}"; do
		[ "$(head -n 1 "$file")" = '/* SPDX-License-Identifier: Apache-2.0 */' ] ||
			{ echo "$file:1: no SPDX line"; bad=1; }
	done
	grep -nE '\b(TODO|FIXME|XXX)\b|\balloca\(|\bgets\(|\bsystem\(|\bpopen\(' "${product[@]}" && bad=1
	return $bad
}

# A warning is an error, here too. The second compiler builds everything once.
second_compiler() {
	make -s -k B="$B/clang" CC=clang all units replays >"$B/lint-clang.log" 2>&1 ||
		{ tail -n 40 "$B/lint-clang.log"; return 1; }
}

# unusedFunction and the like want the whole program; what is left is about mistakes.
#   missingIncludeSystem    the system's headers are not read
#   uninitvar               does not follow arrays that a loop fills; gcc, clang and ASan do
#   nullPointer...Redundant reads the test of a pointer as doubt about the line before it
run_cppcheck() {
	cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -j 2 \
		--enable=warning,performance,portability \
		--suppress=missingIncludeSystem --suppress=uninitvar \
		--suppress=nullPointerRedundantCheck --suppress=nullPointerArithmeticRedundantCheck \
		'-DcJSON_ArrayForEach(e,a)=while((e=cJSON_step(e,a)))' \
		-I. -Icore/include -D_GNU_SOURCE -DBALEEN_VERSION='"lint"' -DBALEEN_PREFIX='"/usr/local"' \
		base feeds policies core plugins
}

tidy_some() {
	clang-tidy --quiet --warnings-as-errors='*' "$@" -- "${flags[@]}" 2>/dev/null
}

run_tidy() {
	local half=$(((${#product[@]} + 1) / 2)) first second
	tidy_some "${product[@]:0:half}" >"$B/lint-tidy.1" & first=$!
	tidy_some "${product[@]:half}" >"$B/lint-tidy.2" & second=$!
	wait $first; first=$?
	wait $second; second=$?
	cat "$B/lint-tidy.1" "$B/lint-tidy.2"
	[ $first = 0 ] && [ $second = 0 ]
}

if [ "${1:-}" = format ]; then
	step layout layout
	exit $failures
fi
mkdir -p "$B"
step layout layout
step arrows arrows
step habits habits
step "clang, every warning an error" second_compiler
step cppcheck run_cppcheck
step clang-tidy run_tidy
[ $failures = 0 ]
