"""Fixtures of the tests that drive SDKs against the scripted model: BASE_URL is the port's /v1, API_KEY its key.

What the model says stands in the prompt; runtime/openai/scripttest/script.go has the words.
"""

import os
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[3] / "testdata/python"))
from open_responses import Watch

BASE = os.environ["BASE_URL"]
KEY = os.environ.get("API_KEY", "none")


@pytest.fixture(scope="session")
def base_url():
    return BASE


@pytest.fixture(scope="session")
def root_url():
    return BASE.removesuffix("/v1")


@pytest.fixture(scope="session")
def api_key():
    return KEY


@pytest.fixture(scope="session")
def client():
    import openai

    watch = Watch()
    with openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0, timeout=60, http_client=openai.DefaultHttpxClient(transport=watch)) as c:
        yield c
    assert watch.checked > 100 and not watch.faults, "\n".join(watch.faults)
