#!/bin/sh
# backup.sh FROM TO: copies every file of FROM into TO, with .bak behind its name.
set -eu
from=$1
to=$2
mkdir -p $to
for file in $(ls $from); do
  cp $from/$file $to/$file.bak
done
