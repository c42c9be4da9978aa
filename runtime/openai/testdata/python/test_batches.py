"""openai's files and batches, end to end, with a kill -9 of the server in the middle of 200 requests.

It starts its own server from the program in OSSRUN, with a store of its own.
"""

import collections
import json
import os
import re
import signal
import subprocess
import time

import openai
import pytest

PROGRAM = os.environ.get("OSSRUN")
LINES = 200


class Server:
    def __init__(self, folder, name="log"):
        self.folder, self.name, self.process = folder, name, None

    def start(self):
        log = open(self.folder / self.name, "w+")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--model", "demo", "--port", "0", "--api-key", "batch-test"], stderr=log,
            env={**os.environ, "XDG_STATE_HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder)})
        while not (url := re.search(r"(http://\S*/v1)", (self.folder / self.name).read_text())):
            assert self.process.poll() is None, (self.folder / self.name).read_text()
            time.sleep(0.1)
        return openai.OpenAI(base_url=url[1], api_key="batch-test", timeout=120)

    def answered(self):
        """The ids of the requests that it logged as answered."""
        return re.findall(r"id=(req_\w+) method=POST path=/v1/chat/completions status=200", (self.folder / self.name).read_text())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path):
    if not PROGRAM:
        pytest.skip("OSSRUN names no program")
    s = Server(tmp_path)
    yield s
    s.kill()


def request(i):
    body = {"model": "demo", "max_tokens": 8, "messages": [{"role": "user", "content": f"Tell me of number {i}."}]}
    return json.dumps({"custom_id": f"line-{i}", "method": "POST", "url": "/v1/chat/completions", "body": body})


def test_batch_survives_kill_9(server, tmp_path):
    client = server.start()
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(map(request, range(LINES))) + "\n")
    file = client.files.create(file=path.open("rb"), purpose="batch")
    assert file.bytes == path.stat().st_size and file.purpose == "batch" and file.filename == "in.jsonl"
    assert client.files.content(file.id).read() == path.read_bytes()
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"k": "v"})
    assert batch.status in ("validating", "in_progress") and batch.metadata == {"k": "v"}
    while not 20 < client.batches.retrieve(batch.id).request_counts.completed:
        time.sleep(0.05)
    server.kill()
    answered = server.answered()
    client = server.start()
    before = client.batches.retrieve(batch.id).request_counts.completed
    assert 20 < before < LINES and before >= len(answered) - 1, (before, len(answered))  # each result is stored at once
    while (batch := client.batches.retrieve(batch.id)).status != "completed":
        assert batch.status in ("in_progress", "finalizing"), batch
        time.sleep(0.2)
    assert batch.request_counts.total == batch.request_counts.completed == LINES and batch.error_file_id is None
    lines = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    assert collections.Counter(line["custom_id"] for line in lines) == collections.Counter(f"line-{i}" for i in range(LINES))
    assert len(set(answered) - {line["response"]["request_id"] for line in lines}) <= 1
    for line in lines:
        assert line["response"]["status_code"] == 200 and line["error"] is None
        openai.types.chat.ChatCompletion.model_validate(line["response"]["body"])
    assert [b.id for b in client.batches.list()] == [batch.id]
    assert {f.purpose for f in client.files.list()} == {"batch", "batch_output"}
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_two_servers_on_one_store(server, tmp_path):
    first, other, second = server.start(), Server(tmp_path, "other"), None
    try:
        second = other.start()
        file = first.files.create(file=("in.jsonl", "\n".join(map(request, range(LINES))).encode()), purpose="batch")
        batch = first.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
        while second.batches.retrieve(batch.id).request_counts.completed < LINES // 2:
            time.sleep(0.05)
        assert not other.answered()  # the first runs it
        server.kill()
        while (batch := second.batches.retrieve(batch.id)).status != "completed":
            assert batch.status in ("in_progress", "finalizing"), batch
            time.sleep(0.2)
        lines = [json.loads(line) for line in second.files.content(batch.output_file_id).text.splitlines()]
        assert sorted(line["custom_id"] for line in lines) == sorted(f"line-{i}" for i in range(LINES))
        by = collections.Counter(line["response"]["request_id"] in other.answered() for line in lines)
        assert by[False] >= LINES // 2 and by[True] == len(other.answered()) > 0, by
    finally:
        other.kill()


def test_cancel_and_failure(server, tmp_path):
    client = server.start()
    text = "\n".join(map(request, range(LINES))).encode()
    file = client.files.create(file=("in.jsonl", text), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    client.batches.cancel(batch.id)
    while (batch := client.batches.retrieve(batch.id)).status != "cancelled":
        assert batch.status == "cancelling", batch
        time.sleep(0.1)
    kept = [client.files.content(f).text for f in (batch.output_file_id, batch.error_file_id) if f]
    assert len("".join(kept).splitlines()) == LINES
    file = client.files.create(file=("in.jsonl", text + b"\n" + request(0).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    while (batch := client.batches.retrieve(batch.id)).status != "failed":
        assert batch.status in ("validating", "in_progress"), batch
    assert batch.errors.data[0].code == "duplicate_custom_id" and batch.errors.data[0].line == LINES + 1
    with pytest.raises(openai.BadRequestError, match="purpose"):
        client.files.create(file=("a.txt", b"x"), purpose="assistants")


def test_messages_batches(server):
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=str(server.start().base_url).rstrip("/").removesuffix("/v1"), api_key="batch-test")
    requests = [{"custom_id": f"line-{i}", "params": {"model": "demo", "max_tokens": 8, "messages": [{"role": "user", "content": f"Number {i}"}] if i else []}}
                for i in range(20)]
    batches = client.messages.batches
    batch = batches.create(requests=requests)
    assert batch.processing_status == "in_progress" and batch.request_counts.processing == 20 and batch.results_url is None
    while (batch := batches.retrieve(batch.id)).processing_status != "ended":
        time.sleep(0.1)
    results = {r.custom_id: r.result for r in batches.results(batch.id)}
    assert batch.results_url.startswith("http://127.0.0.1:")
    assert len(results) == 20 and batch.request_counts.succeeded == 19 and batch.request_counts.errored == 1 and batch.request_counts.processing == 0
    assert results["line-0"].type == "errored" and results["line-0"].error.error.type == "invalid_request_error"
    assert results["line-7"].type == "succeeded" and results["line-7"].message.role == "assistant"
    created = [batches.create(requests=requests[1:3]).id for _ in range(3)]
    ids = [b.id for b in batches.list(limit=1000)]
    assert ids == created[::-1] + [batch.id]
    assert [b.id for b in batches.list(limit=2)] == ids  # two pages
    assert [b.id for b in batches.list(before_id=ids[3], limit=2).data] == ids[1:3]
    long = batches.create(requests=[{**requests[1], "custom_id": f"line-{i}"} for i in range(LINES)])
    with pytest.raises(anthropic.BadRequestError, match="has not ended"):
        batches.delete(long.id)
    assert batches.cancel(long.id).processing_status == "canceling"
    while (long := batches.retrieve(long.id)).processing_status != "ended":
        time.sleep(0.1)
    kinds = collections.Counter(r.result.type for r in batches.results(long.id))
    assert kinds.total() == LINES and kinds["canceled"] == long.request_counts.canceled > 0 and kinds["succeeded"] == long.request_counts.succeeded
    assert batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        batches.retrieve(batch.id)
    for wrong, why in ((requests + requests, "custom_id came before"), ([], "0 requests"), ([{**requests[1], "custom_id": "a b"}], "must match")):
        with pytest.raises(anthropic.BadRequestError, match=why):
            batches.create(requests=wrong)
