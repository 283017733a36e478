#!/usr/bin/env bash
# Loads `bmcli completion bash` in a bash of its own and presses Tab, as far as a script can.
# Usage: completion.sh BMCLI
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bmcli=$1
. <("$bmcli" completion bash)
handler=$(complete -p bmcli | sed 's/.*-F \([^ ]*\) .*/\1/')

expect() { # expect OFFERED WORD… : the last word is the one under the cursor
  local offered=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "$handler" || true
  [ "${COMPREPLY[*]}" = "$offered" ] || {
    echo "FAILED: '$*' offers '${COMPREPLY[*]}', not '$offered'" >&2
    exit 1
  }
}

expect run bmcli ru
expect drain bmcli nodes dr
expect --network bmcli run --netw
expect 'nat none' bmcli run --network ''
expect 'nat none' bmcli run --network = n
expect 'nat none' bmcli run --network =
expect 'running ended' bmcli wait --for ''
expect tenant bmcli token create --role t
expect token bmcli --config /nowhere tok
expect '' bmcli ps no-such
expect '' bmcli exec order-7 -- ru
expect "$here/completion.sh" bmcli run -f "$here/completion.s"
expect "$here/completion.sh" bmcli cp "$here/completion.s"
echo "completion: all offered"
