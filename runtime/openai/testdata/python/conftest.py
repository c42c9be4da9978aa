import os

import pytest


def pytest_addoption(parser):
    parser.addoption("--base-url", default=os.environ.get("BASE_URL", "http://127.0.0.1:8000/v1"), help="the server's /v1")
    parser.addoption("--api-key", default=os.environ.get("API_KEY", ""), help="the server's key; without one, keys are not tested")
    parser.addoption("--model", default=os.environ.get("MODEL", ""), help="default: the first one the server lists")


@pytest.fixture(scope="session")
def base_url(request):
    return request.config.getoption("--base-url")


@pytest.fixture(scope="session")
def api_key(request):
    return request.config.getoption("--api-key")


@pytest.fixture(scope="session")
def client(base_url, api_key):
    import openai
    from open_responses import Watch

    watch = Watch()
    with openai.OpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=120,
                       http_client=openai.DefaultHttpxClient(transport=watch)) as c:
        c.watch = watch
        yield c


@pytest.fixture(autouse=True)
def open_responses(client):
    """Every response and event that a test's client receives is what the Open Responses document says."""
    yield
    faults = list(client.watch.faults)
    client.watch.faults.clear()
    assert not faults, "\n".join(faults)


@pytest.fixture(scope="session")
def model(request, client):
    return request.config.getoption("--model") or client.models.list().data[0].id
