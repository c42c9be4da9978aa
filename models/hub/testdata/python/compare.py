"""Throughput and memory of a pull from localhost, ossrun against huggingface_hub in the same run, alternating.

    HUB=/tmp/hub-server OSSRUN=/tmp/hub-ossrun python compare.py [GB] [rounds]
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from conftest import Hub

CODE = 'from huggingface_hub import snapshot_download as s; s("someone/large")'
MIB = 1 << 20


def processes(root):
    """The process and all below it."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as children:
                    todo += [int(child) for child in children.read().split()]
        except OSError:
            pass  # it has ended
    return found


def resident(pids):
    """What the processes have in memory, in bytes: all, and what is theirs alone (no pages of files)."""
    total = private = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status:
                for line in status:
                    if line.startswith("VmRSS:"):
                        total += int(line.split()[1]) << 10
                    elif line.startswith("RssAnon:"):
                        private += int(line.split()[1]) << 10
        except OSError:
            pass
    return total, private


class Sampler(threading.Thread):
    """Looks at a process and its children every 5 ms and keeps the largest of each sum."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.total, self.private, self.ended = pid, 0, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            total, private = resident(processes(self.pid))
            self.total, self.private = max(self.total, total), max(self.private, private)


def run(hub, argv):
    """Seconds, MiB at the peak in all and private, processor seconds of one pull into an empty cache."""
    cache = tempfile.mkdtemp(prefix="hub-compare-")
    try:
        start = time.monotonic()
        process = subprocess.Popen(argv, env=hub.env(cache), stdout=subprocess.DEVNULL)
        sampler = Sampler(process.pid)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        sampler.ended.set()
        sampler.join()
        assert status == 0, argv
        total = max(sampler.total, usage.ru_maxrss << 10)  # the kernel misses no peak of one process
        return seconds, total / MIB, sampler.private / MIB, usage.ru_utime + usage.ru_stime
    finally:
        shutil.rmtree(cache)


def main():
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    size = int(gigabytes * 1e9)
    hub = Hub(size)
    programs = {
        "ossrun": [os.environ["OSSRUN"], "pull", "hf:someone/large"],
        "huggingface_hub": [sys.executable, "-c", CODE],
    }
    taken = {name: [] for name in programs}

    def show(name, rate, total, private, cpu):
        print(f"{name:16} {rate:6.0f} {total:8.1f} {private:12.1f} {cpu:8.2f}", flush=True)

    print("program           MB/s   MiB at the peak, private   cpu s")
    for _ in range(rounds):
        for name, argv in programs.items():
            seconds, total, private, cpu = run(hub, argv)
            taken[name].append((size / 1e6 / seconds, total, private, cpu))
            show(name, *taken[name][-1])
    print("medians")
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in taken.items()}
    for name, columns in medians.items():
        show(name, *columns)
    ratios = [a / b for a, b in zip(*medians.values())]
    print("ratio            %6.2f %8.3f %12.3f %8.3f" % tuple(ratios))
    hub.process.stdin.close()
    hub.process.wait()


if __name__ == "__main__":
    main()
