#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make run`: say how to try it, then become the daemon in the foreground.
set -eu

config=${1:-examples/baleen.yaml}
program=${B:-build}/baleen
# The example keeps its state in build/run; the folder must be there to be handed to `user:`.
mkdir -p build/run

cat <<TEXT

  Baleen starts in the foreground; Ctrl-C stops it. From another terminal:

    dig @127.0.0.1 -p 5353 doubleclick.net            # listed: NXDOMAIN with an Extended DNS Error
    dig @127.0.0.1 -p 5353 debian.org                 # not listed: answered by your resolvers
    $program explain doubleclick.net -c $config
    $program status -c $config

TEXT
exec "$program" run -c "$config"
