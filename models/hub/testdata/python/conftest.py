"""Programs that the tests need: OSSRUN is the built ossrun, HUB the built models/hub/testdata/server."""

import os
import subprocess

import pytest


class Hub:
    """The test server, and a cache of its own for who asks."""

    def __init__(self, size):
        self.process = subprocess.Popen(
            [os.environ["HUB"], f"-size={size}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def sent(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def env(self, cache):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        return kept | {"HF_ENDPOINT": self.url, "HF_HOME": str(cache), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    def ossrun(self, cache, *args):
        return subprocess.run(
            [os.environ["OSSRUN"], *args], env=self.env(cache), capture_output=True, text=True, timeout=120
        )

    def python(self, cache, code):
        import sys

        done = subprocess.run(
            [sys.executable, "-c", code], env=self.env(cache), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="session")
def hub():
    server = Hub(1 << 20)
    yield server
    server.process.stdin.close()
    assert server.process.wait(timeout=100) == 0
