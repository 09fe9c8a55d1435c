#!/bin/sh
# Measures on a board over ssh: HOST PROGRAM COUNT.
# The board needs a login without questions (ssh keys) and `perf`.
host=$1 program=$2 count=$3
place=/tmp/isamap.$$.$(basename "$program")

scp -q "$program" "$host:$place" </dev/null || exit 1

# Standard input and output go through ssh; perf writes into a file of its own.
ssh "$host" "perf stat -x, -e cycles:u -o $place.cycles $place"
status=$?

# The first field of the line about cycles; comments and empty lines are perf's own.
ssh -n "$host" "cat $place.cycles; rm -f $place $place.cycles" | sed -n 's/^\([0-9][0-9]*\),.*/\1/p' >"$count"
exit $status
