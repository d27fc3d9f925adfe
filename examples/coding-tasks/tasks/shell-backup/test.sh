#!/bin/sh
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/my files"
echo one > "$work/my files/plain.txt"
echo two > "$work/my files/with space.txt"
echo three > "$work/my files/star*.txt"
sh backup.sh "$work/my files" "$work/the copies"
for name in plain.txt 'with space.txt' 'star*.txt'; do
  cmp "$work/my files/$name" "$work/the copies/$name.bak"
done
mkdir "$work/empty"
sh backup.sh "$work/empty" "$work/nothing"
[ -z "$(ls "$work/nothing")" ]
echo ok
