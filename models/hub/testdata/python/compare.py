"""Throughput and memory of a pull from localhost, ossrun against huggingface_hub in the same run, alternating.

    HUB=/tmp/hub-server OSSRUN=/tmp/hub-ossrun python compare.py [GB] [rounds]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

from conftest import Hub

CODE = 'from huggingface_hub import snapshot_download as s; s("someone/large")'


def run(hub, argv):
    cache = tempfile.mkdtemp(prefix="hub-compare-")
    try:
        start = time.monotonic()
        process = subprocess.Popen(argv, env=hub.env(cache), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        assert status == 0, argv
        return seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime
    finally:
        shutil.rmtree(cache)


def main():
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    size = int(gigabytes * 1e9)
    hub = Hub(size)
    print("program           MB/s   peak MiB   cpu s")
    for _ in range(rounds):
        for name, argv in (
            ("ossrun", [os.environ["OSSRUN"], "pull", "hf:someone/large"]),
            ("huggingface_hub", [sys.executable, "-c", CODE]),
        ):
            seconds, peak, cpu = run(hub, argv)
            print(f"{name:16} {size / 1e6 / seconds:6.0f} {peak:8.1f} {cpu:8.2f}", flush=True)
    hub.process.stdin.close()
    hub.process.wait()


if __name__ == "__main__":
    main()
