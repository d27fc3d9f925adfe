#!/bin/sh
# Builds count and compares what it counts.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -Wall -Werror -o "$work/count" count.c
expect() {
  found=$(printf "$1" | "$work/count")
  [ "$found" = "$2" ] || { echo "for '$1' expected $2, found $found"; exit 1; }
}
expect '' 0
expect 'one' 1
expect 'one two' 2
expect '  one   two  ' 2
expect 'one\ttwo\nthree\n' 3
expect '\n\n\n' 0
echo ok
