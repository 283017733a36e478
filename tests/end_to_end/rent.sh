#!/usr/bin/env bash
# The main job as a person does it: real bmd, three real agents, real podman, bmcli typed as documented.
# Usage: rent.sh CHECKOUT BUILD   (root)
# The image is busybox; its `python` is a shell, so train.py here is a shell script.
set -euo pipefail
cd "$1"
build=$2
state=$(mktemp -d "${TMPDIR:-/tmp}/bmgpu-e2e.XXXXXX")
images=$state.images
. tools/demo-lib
export BMCLI_CONFIG=$state/bmcli.yaml NO_COLOR=1
engine=(podman --root "$images" --runroot "$images.run" --cgroup-manager=cgroupfs)

finish() {
  local code=$?
  [ $code -eq 0 ] || tail -n 20 "$state"/bmd.log "$state"/*/agent.log >&2 || true
  stop_demo "$state"
  "${engine[@]}" system reset --force >/dev/null 2>&1 || true
  rm -rf "$images" "$images.run" "$images.tree"
  exit $code
}
trap finish EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
check() { # check WHAT EXPECTED ACTUAL
  [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
  echo "ok: $1"
}
code_of() { local code=0; "$@" >"$state/out" 2>"$state/err" </dev/null || code=$?; echo $code; }

mkdir -p "$images.tree"/{bin,proc,dev,sys,tmp,etc,workspace}
cp /bin/busybox "$images.tree/bin/busybox"
for applet in sh ls cat echo sleep python; do ln -s busybox "$images.tree/bin/$applet"; done
printf '#!/bin/sh\nexec /bin/sh "$@"\n' >"$state/python"
rm "$images.tree/bin/python"
install -m 755 "$state/python" "$images.tree/bin/python"
tar -C "$images.tree" -c . | "${engine[@]}" import - localhost/bmgpu-python:12 >/dev/null 2>&1

start_market "$state"
bmcli login --state-dir "$state/bmd" >/dev/null
start_nodes "$state"
wait_for_nodes >/dev/null

check "three offers" 3 "$(bmcli list --json | jq '.offers | length')"
check "list --gpu=A100 --min-mem=40G" 1 "$(bmcli list --gpu=A100 --min-mem=40G --json | jq '.offers | length')"
check "an unknown filter is an error" 2 "$(code_of bmcli list 'colour=red')"
code_of bmcli list A100 >/dev/null
check "a bare word is led to its field" 1 "$(grep -c 'write gpu=A100' "$state/err")"
check "an unknown command of bm-agent" 2 "$(code_of "$build/bin/bm-agent" nosuch)"
check "is told the known ones" 1 "$(grep -c '^bm-agent: .*there are join, doctor, run, leave' "$state/err")"

mkdir "$state/work"
cat >"$state/work/train.py" <<'JOB'
echo "gpus: $(ls /dev | grep -c '^nvidia[0-9]')"
echo "secret: $SECRET"
JOB
(
  cd "$state/work"
  "$build/bin/bmcli" run -g 2 --duration 2h --image pytorch:2.0 --command "python train.py" --workdir . \
    --env SECRET=xyzzy -y >"$state/job.log" 2>"$state/job.err"
) || fail "run: $(cat "$state/job.err")"
check "the job saw two GPUs" "gpus: 2" "$(sed -n 1p "$state/job.log")"
check "the job's environment" "secret: xyzzy" "$(sed -n 2p "$state/job.log")"
grep -q 'at most' "$state/job.err" || fail "no price was shown before the job"
order=$(bmcli ps --all --json | jq -c '.orders[0]')
check "charged, and not above the quote" true "$(jq '.charge_micros > 0 and .charge_micros <= .quote_micros' <<<"$order")"
if grep -q xyzzy "$state/bmd.log" "$state"/*/agent.log; then fail "a job's secret is in a log"; fi
grep -q order "$state/job.err" || fail "control: the log search would find nothing"

check "a failing job is exit code 6" 6 \
  "$(code_of bmcli run -g 1 --duration 15m --image pytorch:2.0 --command 'sh -c "exit 3"' -y)"
check "its own exit code" 3 "$(bmcli ps --all --json | jq '.orders[0].exit_code')"
check "a command that does not exist is charged nothing" 0 \
  "$(code_of bmcli run -g 1 --duration 15m --image pytorch:2.0 --command no-such-program -y >/dev/null
     bmcli ps --all --json | jq '.orders[0].charge_micros')"

check "an image that cannot be had" 6 \
  "$(code_of bmcli run -g 1 --duration 15m --image pytorch:2 --command ls -y)"
check "names the market's aliases" 1 "$(grep -c 'image aliases: pytorch:2.0' "$state/err")"

check "a detached job" 0 "$(code_of bmcli run -g 1 --gpu H200 --duration 15m --image pytorch:2.0 -y -d \
  --command 'sh -c "echo ready; sleep 600"')"
id=$(bmcli ps --json | jq -r '.orders[0].id')
check "it runs" 0 "$(code_of bmcli wait "$id" --for running --timeout 60s)"
check "exec" hello "$(bmcli exec "$id" -- echo hello </dev/null)"
echo data >"$state/file"
check "cp into the job" 0 "$(code_of bmcli cp "$state/file" "$id:/workspace/file")"
check "what arrived" data "$(bmcli exec "$id" -- cat /workspace/file </dev/null)"
check "exec of a program that is not there" 6 "$(code_of bmcli exec "$id" -- nope)"
check "says so" "bmcli: no such program in the container: nope" "$(head -n 1 "$state/err")"
bmcli exec "$id" -- busybox mkdir /workspace/folder </dev/null
check "cp replaces no folder" 1 "$(code_of bmcli cp "$state/file" "$id:/workspace/folder")"
check "and says what to do" 1 "$(grep -c 'end TO with /' "$state/err")"
check "cp into the folder" 0 "$(code_of bmcli cp "$state/file" "$id:/workspace/folder/")"
check "cp of a path that is not there" 3 "$(code_of bmcli cp "$id:/workspace/none" "$state/")"
bmcli exec "$id" -- busybox mkfifo /workspace/folder/pipe </dev/null
bmcli exec "$id" -- busybox ln /workspace/folder/file /workspace/folder/again </dev/null
check "cp of a folder with a pipe" 0 "$(code_of bmcli cp "$id:/workspace/folder" "$state/")"
check "names the pipe" "left out: folder/pipe (a pipe)" "$(cat "$state/err")"
check "a second name of a file comes too" data "$(cat "$state/folder/again")"
check "cp of the pipe itself" 1 "$(code_of bmcli cp "$id:/workspace/folder/pipe" "$state/")"
check "cp of a device" 1 "$(code_of bmcli cp "$id:/dev/null" "$state/")"
check "extend" 0 "$(code_of bmcli extend "$id" --by 15m)"
check "stop" 0 "$(code_of bmcli stop "$id")"
check "it ends, not by itself" 6 "$(code_of bmcli wait "$id" --for ended --timeout 60s)"
check "its log outlives it" ready "$(bmcli logs "$id")"
check "stop of an ended lease" 0 "$(code_of bmcli stop "$id")"
check "someone else's id is not found" 3 "$(code_of bmcli logs order-999999)"
check "more GPUs than any node has is refused" 1 \
  "$(code_of bmcli run -g 60 --duration 1h --image pytorch:2.0 --command ls -y)"
echo "end to end: all as documented"
