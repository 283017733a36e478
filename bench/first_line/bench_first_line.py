#!/usr/bin/env python3
"""Submit to the job's own first line, against what the container engine itself needs.

Usage: bench_first_line [--json] [--runs N]     (root; N defaults to 21)

Starts a market and one simulated node in a temporary folder, then interleaves, N times each:
  ours_nat, ours_none  PlaceOrder over HTTP; a job that prints CLOCK_BOOTTIME (network nat, none)
  podman_rest          create and start over podman's REST socket, network none, same image
  podman_run           the `podman run` command, network none, same image
Each figure is the BOOTTIME that the job printed minus that of the submit, in milliseconds.
Prints one JSON document: p50 of each, ours above podman_rest, where the rest goes, conditions.
"""

import argparse
import base64
import http.client
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGE = "localhost/bmgpu-bench-boottime:1"
ENGINE = ["podman", "--cgroup-manager=cgroupfs"]
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]


def boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise SystemExit(f"bench_first_line: {what} did not happen within {seconds} s")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Market:
    """A bmd and one bm-agent in `folder`."""

    def __init__(self, folder, store):
        self.folder = folder
        self.store = store
        self.agent_config = os.path.join(folder, "agent.yaml")
        self.processes = []

    def start(self):
        self.start_bmd()
        self.start_node()

    def start_bmd(self):
        config = os.path.join(self.folder, "bmd.yaml")
        state = os.path.join(self.folder, "bmd")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"state_dir: {state}\nlisten: 127.0.0.1:0\nheartbeat_listen: 127.0.0.1:0\n"
                       "tls: {mode: 'off'}\ndrivers_accepted: simulated\n")
        self.spawn("bmd", ["--config", config])
        endpoint = os.path.join(state, "endpoint.json")
        wait_for("the start of bmd", lambda: os.path.exists(endpoint))
        with open(endpoint, encoding="utf-8") as file:
            host, port = json.load(file)["url"].split("//")[1].split(":")
        with open(os.path.join(state, "operator.token"), encoding="utf-8") as file:
            self.token = file.read().strip()
        self.address = (host, int(port))
        self.http = http.client.HTTPConnection(*self.address)

    def start_node(self):
        state = os.path.join(self.folder, "agent")
        profile = os.path.join(self.folder, "gpus.yaml")
        shutil.copy(os.path.join(BUILD, "share", "a100-8.yaml"), profile)
        with open(self.agent_config, "w", encoding="utf-8") as file:
            file.write(f"state_dir: {state}\nruntime: {{image_stores: [{self.store}]}}\n"
                       f"nvml: {{library: {BUILD}/lib/libnvml-sim.so, sim_profile: {profile}}}\n")
        secret = self.call("CreateToken", {"role": "ROLE_NODE_JOIN", "name": "join", "node": "bench"})["secret"]
        subprocess.run([f"{BUILD}/bin/bm-agent", "join", "--config", self.agent_config, "--token", secret],
                       check=True, stdout=subprocess.DEVNULL)
        self.spawn("bm-agent", ["run", "--config", self.agent_config])
        wait_for("the offering of the node", self.offered)

    def spawn(self, name, arguments):
        log = open(os.path.join(self.folder, name + ".log"), "wb")
        self.processes.append(subprocess.Popen([f"{BUILD}/bin/{name}", *arguments], stdout=log, stderr=log,
                                               stdin=subprocess.DEVNULL, start_new_session=True))

    def offered(self):
        return any(o["gpusFree"] == 8 for o in self.call("ListOffers", {})["offers"])

    def call(self, method, body):
        self.http.request("POST", "/bmgpu.v1.Market/" + method, json.dumps(body), {
            "Content-Type": "application/json", "Authorization": "Bearer " + self.token,
            "Idempotency-Key": uuid.uuid4().hex})
        response = self.http.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"bench_first_line: {method}: {answer}")
        return answer

    def first_line(self, order):
        """The order's log from its start, until the line that the job printed."""
        body = json.dumps({"id": order, "follow": True}).encode()
        stream = http.client.HTTPConnection(*self.address, timeout=60)
        stream.request("POST", "/bmgpu.v1.Market/StreamLogs", struct.pack(">BI", 0, len(body)) + body, {
            "Content-Type": "application/connect+json", "Authorization": "Bearer " + self.token})
        response = stream.getresponse()
        while True:
            flags, size = struct.unpack(">BI", response.read(5))
            chunk = json.loads(response.read(size))
            for line in chunk.get("lines", []):
                text = base64.b64decode(line["text"]).decode()
                if text.startswith("BOOTTIME "):
                    stream.close()
                    return int(text.split()[1])
            if flags & 2:
                raise SystemExit(f"bench_first_line: the log ended without the line: {chunk}")

    def run(self, network):
        submitted = boottime_ns()
        order = self.call("PlaceOrder", {
            "resources": {"gpus": 2}, "durationMs": 3600000, "refuseIfUnavailable": True,
            "job": {"image": IMAGE, "command": ["/boottime"], "network": network}})
        answered = boottime_ns()
        printed = self.first_line(order["id"])
        ended = wait_for("the end of the job", lambda: self.ended(order["id"]))
        wait_for("the cleaning of the GPUs", self.offered)
        return {
            "total": (printed - submitted) / 1e6, "answer": (answered - submitted) / 1e6,
            "placed_to_device_check": int(ended["billedFromUnixMs"]) - int(ended["createdUnixMs"])}

    def ended(self, order):
        answer = self.call("GetOrder", {"id": order})
        return answer if answer["state"] == "ORDER_STATE_ENDED" else None

    def close(self):
        subprocess.run([f"{BUILD}/bin/bm-agent", "leave", "--config", self.agent_config],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait()


class Engine:
    """The same image started by podman alone."""

    def __init__(self, folder, store):
        self.podman = ENGINE + ["--root", store, "--runroot", store + ".run", "--runtime", "runc"]
        self.socket = os.path.join(folder, "podman.sock")
        self.service = subprocess.Popen(self.podman + ["system", "service", "--time=0", "unix://" + self.socket],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the start of podman's service", lambda: os.path.exists(self.socket))
        self.log = os.path.join(folder, "engine.log")

    def rest(self):
        connection = UnixConnection(self.socket)

        def call(verb, path, body=None):
            connection.request(verb, "/v4.0.0/libpod/containers/" + path, body and json.dumps(body),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read()
            if response.status >= 300:
                raise SystemExit(f"bench_first_line: podman {path}: {data[:300]!r}")
            return data

        if os.path.exists(self.log):
            os.unlink(self.log)
        began = boottime_ns()
        name = json.loads(call("POST", "create", {
            "image": IMAGE, "command": ["/boottime"], "netns": {"nsmode": "none"}, "read_only_filesystem": True,
            "log_configuration": {"driver": "k8s-file", "path": self.log},
            "r_limits": [{"type": "nofile", "soft": 1024, "hard": 1024},
                         {"type": "nproc", "soft": 1000, "hard": 1000}]}))["Id"]
        call("POST", name + "/start")
        call("POST", name + "/wait")
        call("DELETE", name + "?force=true")
        with open(self.log, encoding="utf-8") as file:
            return (int(file.read().split("BOOTTIME ")[1].split()[0]) - began) / 1e6

    def run(self):
        began = boottime_ns()
        out = subprocess.run(self.podman + ["run", "--rm", "--network=none", *LIMITS, IMAGE, "/boottime"],
                             capture_output=True, text=True, check=True).stdout
        return (int(out.split()[1]) - began) / 1e6

    def close(self):
        self.service.terminate()
        self.service.wait()


def import_image(folder, store):
    tree = os.path.join(folder, "tree")
    for name in ("proc", "dev", "sys", "tmp", "etc", "workspace"):
        os.makedirs(os.path.join(tree, name))
    shutil.copy(os.path.join(BUILD, "bench", "boottime"), tree)
    archive = subprocess.run(["tar", "-C", tree, "-c", "."], capture_output=True, check=True).stdout
    subprocess.run(ENGINE + ["--root", store, "--runroot", store + ".run", "import", "-", IMAGE], input=archive,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(folder, runs):
    store = os.path.join(folder, "images")
    import_image(folder, store)
    engine, market = Engine(folder, store), Market(folder, store)
    figures = {"ours_nat": [], "ours_none": [], "podman_rest": [], "podman_run": []}
    try:
        market.start()
        for run in range(runs + 2):  # the first two warm everything and are not counted
            one = {"ours_nat": market.run("NETWORK_MODE_NAT"), "podman_rest": engine.rest(),
                   "ours_none": market.run("NETWORK_MODE_NONE"), "podman_run": engine.run()}
            if run >= 2:
                for name, value in one.items():
                    figures[name].append(value)
            print(f"\rbench_first_line: {run + 1}/{runs + 2}", end="", file=sys.stderr)
        print(file=sys.stderr)
    finally:
        market.close()
        engine.close()
    return figures


def p50(values):
    return round(statistics.median(values), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="accepted for uniformity: output is always JSON")
    parser.add_argument("--runs", type=int, default=21)
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("bench_first_line: needs root (containers, scratch file systems, device nodes)")
    folder = tempfile.mkdtemp(prefix="bmfl-")
    try:
        figures = measure(folder, options.runs)
    finally:
        subprocess.run(ENGINE + ["--root", folder + "/images", "--runroot", folder + "/images.run", "system", "reset",
                                 "--force"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    nat, none = figures["ours_nat"], figures["ours_none"]
    print(json.dumps({
        "benchmark": "first_line",
        "ours_nat_p50_ms": p50([r["total"] for r in nat]), "ours_none_p50_ms": p50([r["total"] for r in none]),
        "podman_rest_p50_ms": p50(figures["podman_rest"]), "podman_run_p50_ms": p50(figures["podman_run"]),
        "ours_nat_above_rest_p50_ms": p50([a["total"] - b for a, b in zip(nat, figures["podman_rest"])]),
        "ours_nat_max_ms": round(max(r["total"] for r in nat), 1),
        "answer_p50_ms": p50([r["answer"] for r in nat]),
        "placed_to_device_check_p50_ms": p50([r["placed_to_device_check"] for r in nat]),
        "conditions": {"runs": options.runs, "cores": os.cpu_count(), "kernel": platform.release(),
                       "podman": subprocess.run(["podman", "--version"], capture_output=True,
                                                text=True, check=True).stdout.split()[-1]},
    }))


if __name__ == "__main__":
    main()
