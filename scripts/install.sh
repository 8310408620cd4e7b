#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make install`: what a user needs, below DESTDIR/PREFIX. Configuration of the site is not touched.
set -eu

top=$DESTDIR$PREFIX

install -D -m 755 "$B/baleen" "$top/sbin/baleen"
for plugin in "$B"/plugins/*.so; do
	install -D -m 644 "$plugin" "$top/lib/baleen/plugins/$(basename "$plugin")"
done
install -D -m 644 core/include/baleen/plugin.h "$top/include/baleen/plugin.h"
for data in feeds/*.yaml feeds/*.txt; do
	[ -e "$data" ] || continue
	install -D -m 644 "$data" "$top/share/baleen/$(basename "$data")"
done

# The example keeps its shape, so that its relative paths hold.
doc=$top/share/doc/baleen
for file in README.md CHANGELOG.md LICENSE $(find examples policies/examples -type f); do
	install -D -m 644 "$file" "$doc/$file"
done
for page in docs/man/*.[1-8]; do
	section=${page##*.}
	install -D -m 644 "$page" "$top/share/man/man$section/$(basename "$page")"
done

mkdir -p "$top/lib/pkgconfig"
cat >"$top/lib/pkgconfig/baleen.pc" <<PC
prefix=$PREFIX
includedir=\${prefix}/include
pluginsdir=\${prefix}/lib/baleen/plugins

Name: Baleen
Description: Header for plugins of the Baleen DNS firewall
Version: $VERSION
Cflags: -I\${includedir}
PC
echo "installed into $top; the example configuration is $doc/examples/baleen.yaml"
