"""The cache's layout against the real huggingface_hub: what either fetches, the other finds and does not fetch again."""

import json
import os
from pathlib import Path

REPO = "someone/tune"
NEEDED = [
    "config.json",
    "model-00000-of-00001.safetensors",
    "model-00001-of-00001.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
]
SNAPSHOT = """
from huggingface_hub import snapshot_download
print(snapshot_download("someone/tune", allow_patterns={patterns}, local_files_only={local}))
"""


def snapshot(hub, cache, local):
    return hub.python(cache, SNAPSHOT.format(patterns=NEEDED, local=local))


def tree(cache):
    """Every file of the repository's folder with what it links to or holds, without what only one of the programs keeps."""
    root = Path(cache) / "hub" / "models--someone--tune"
    found = {}
    for folder in ("blobs", "refs", "snapshots"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.is_symlink():
                found[name] = "-> " + os.readlink(path)
            elif path.is_file() and not name.endswith(".sha256"):
                found[name] = path.read_bytes()
    return found


def test_same_layout(hub, tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    snapshot(hub, theirs, False)
    done = hub.ossrun(ours, "pull", "hf:" + REPO)
    assert done.returncode == 0, done.stderr
    assert len(tree(ours)) == 2 * len(NEEDED) + 1
    assert tree(ours) == tree(theirs)


def test_they_read_ours(hub, tmp_path):
    done = hub.ossrun(tmp_path, "pull", "hf:" + REPO, "--json")
    assert done.returncode == 0, done.stderr
    path = json.loads(done.stdout.splitlines()[-1])["path"]
    assert snapshot(hub, tmp_path, True) == path
    before = hub.sent()
    assert snapshot(hub, tmp_path, False) == path
    assert hub.sent() == before, "huggingface_hub fetched something again"
    scanned = hub.python(
        tmp_path,
        "from huggingface_hub import scan_cache_dir as s; c = s(); print(len(c.warnings), [(r.repo_id, r.nb_files, sorted(x.refs))"
        " for r in c.repos for x in r.revisions])",
    )
    assert scanned == "0 [('someone/tune', 5, ['main'])]"


def test_we_read_theirs(hub, tmp_path):
    path = snapshot(hub, tmp_path, False)
    before = hub.sent()
    done = hub.ossrun(tmp_path, "pull", "hf:" + REPO, "--json")
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["event"], last["path"]) == ("done", path)
    assert hub.sent() == before, "ossrun fetched something again"
    rows = json.loads(hub.ossrun(tmp_path, "list", "--json").stdout)
    assert [(r["name"], r["where"], r["main"]) for r in rows if r["repository"]] == [("hf:" + REPO, path, True)]


def test_we_delete_theirs(hub, tmp_path):
    snapshot(hub, tmp_path, False)
    done = hub.ossrun(tmp_path, "rm", "hf:" + REPO, "--yes")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "hub" / "models--someone--tune").exists()
    assert hub.python(tmp_path, "from huggingface_hub import scan_cache_dir as s; print(len(s().repos))") == "0"


def test_locks_are_the_same(hub, tmp_path):
    """While huggingface_hub's lock of a blob is held, ossrun leaves that file alone and waits."""
    etag = [n for n in tree_of_blobs(hub, tmp_path / "first")][0]
    code = f"""
import os, subprocess, sys
from pathlib import Path
from huggingface_hub.utils import WeakFileLock
lock = Path({str(tmp_path)!r}) / "hub" / ".locks" / "models--someone--tune" / "{etag}.lock"
lock.parent.mkdir(parents=True)
with WeakFileLock(lock):
    p = subprocess.Popen([os.environ["OSSRUN"], "pull", "hf:someone/tune"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said = ""
    while "waiting for it" not in said:  # however long the other files take
        line = p.stderr.readline()
        assert line, "ossrun did not wait: " + said
        said += line
    assert p.poll() is None, "ossrun did not wait: " + said
    blob = lock.parents[2] / "models--someone--tune" / "blobs" / "{etag}"
    assert not blob.exists(), "ossrun fetched a locked file"
p.communicate(timeout=100)
print(p.returncode, blob.exists())
"""
    assert hub.python(tmp_path, code) == "0 True"


def tree_of_blobs(hub, cache):
    snapshot(hub, cache, False)
    return sorted(p.name for p in (cache / "hub" / "models--someone--tune" / "blobs").iterdir() if len(p.name) == 64)
