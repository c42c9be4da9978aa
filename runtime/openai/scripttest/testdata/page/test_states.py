"""What a person meets on the chat page of the real `ossrun serve` with its demo model, on a desktop and on a phone.

  OSSRUN=./ossrun BASE_URL=... API_KEY=... pytest     SHOTS=folder keeps a picture of each state

axe-core looks at every state. Errors of the console, exceptions and requests to another server fail the test.
"""

import base64
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import threading

import pytest
from playwright.sync_api import expect
from test_page import HANGS, ROOT as SCRIPTED, SHOTS, keep, unlock

HERE = pathlib.Path(__file__).parent
AXE = (HERE / "node_modules/axe-core/axe.min.js").read_text()
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


class Server:
    """ossrun serve demo; it can be killed, and started again at the same address."""

    def __init__(self, folder, *more):
        self.folder, self.more, self.port = folder, more, 0
        self.start()

    def start(self):
        env = {**os.environ, **{f"XDG_{k}_HOME": f"{self.folder}/{k}" for k in ("STATE", "DATA", "CACHE", "CONFIG")}}
        self.process = subprocess.Popen([os.environ["OSSRUN"], "serve", "demo", "--port", str(self.port), *self.more],
                                        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        while "startup complete" not in said:
            line = self.process.stderr.readline()
            assert line, said
            said += line
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/v1", said)[1])
        self.root = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    (folder / "sums.py").write_text('from mcp.server.mcpserver import MCPServer\nm = MCPServer("sums")\n@m.tool()\n'
                                    'def add(a: int, b: int) -> int:\n    return a + b\nm.run()\n')
    s = Server(folder)
    yield s
    s.kill()


@pytest.fixture(params=["desktop", "phone"])
def size(request):
    return request.param


def visit(browser, root, size="desktop", **more):
    context = browser.new_context(viewport=SIZES[size], **more)
    # The demo's likeliest answers: one of a hundred others says something else.
    context.add_init_script('try { localStorage["ossrun.settings"] ??= "{\\"temperature\\": 0}" } catch { }')
    page = context.new_page()
    page.set_default_timeout(HANGS)
    wrong = page.wrong = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith((root, "data:", "blob:")) else wrong.append(r.url))
    page.name_of_size = size
    page.goto(root)
    return page


@pytest.fixture
def page(browser, server, size):
    page = visit(browser, server.root, size)
    expect(page.locator("#model option").first).to_be_attached()
    yield page
    assert not page.wrong
    page.context.close()


def state(page, name):
    """Keeps a picture, and lets axe and the width be looked at."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{page.name_of_size}.png")
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    assert not found, [(v["id"], v["help"], [n["html"] + " " + n["failureSummary"] for n in v["nodes"][:3]]) for v in found]
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def ask(page, text):
    page.locator("#text").fill(text)
    page.locator("#text").press("Enter")
    expect(page.locator("#send")).to_have_text("Send")


def drawer(page):
    if page.name_of_size == "phone":
        page.locator("#menu").click()
        expect(page.locator("#search")).to_be_focused()


def actions(page, title):
    drawer(page)
    page.get_by_role("button", name="Actions for " + title).click()


def test_a_conversation(page):
    expect(page.get_by_text("16,384 tokens of context")).to_be_visible()
    state(page, "empty")
    offered = page.locator("#examples button")
    expect(offered).to_have_text(["What is ossrun?", "How do I serve an OpenAI API?", "How much memory does gpt-oss-20b need?"])
    offered.first.click()
    expect(page.locator("#send")).to_have_text("Send")
    a = page.locator("article").last
    expect(a.locator(".model .text")).to_contain_text("gpt-oss")
    expect(a.locator(".facts.end")).to_have_text(re.compile(r"^\d+ tokens, [\d.]+/s$"))
    heard = page.locator("#heard").text_content()
    assert heard == a.locator(".model .text").text_content(), heard
    state(page, "answer")
    a.locator("summary").click()
    expect(a.locator(".thought")).to_be_visible()
    ask(page, "How do I download a model?")
    expect(page.locator("article")).to_have_count(2)
    page.locator("#log").evaluate("e => { e.scrollTop = 0; }")
    state(page, "two turns")


def test_conversations_beside(page):
    ask(page, "hello there")
    # The answer is drawn by chance: a word is taken from the one that came.
    word = max(re.findall(r"[a-z]+", page.locator(".model .text").text_content()), key=len)
    page.keyboard.press("Control+Shift+O")
    ask(page, "How do I set the effort?")
    drawer(page)
    expect(page.locator("#list li")).to_have_count(2)
    state(page, "list")
    page.locator("#search").fill("THERE")
    expect(page.locator("#list .open")).to_have_text(["hello there"])
    page.locator("#search").fill(word)
    expect(page.locator("#list .open").last).to_have_text("hello there")
    page.locator("#search").fill("nothing has this")
    expect(page.locator("#list")).to_have_text("Nothing found.")
    page.locator("#search").fill("")
    page.get_by_role("button", name="Actions for hello there").click()
    expect(page.get_by_role("button", name="Rename")).to_be_focused()
    state(page, "actions")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Name of the conversation").fill("Greetings")
    state(page, "rename")
    page.keyboard.press("Enter")
    expect(page.locator("#list .open").last).to_have_text("Greetings")
    page.reload()
    expect(page.locator("#list .open")).to_have_text(["How do I set the effort?", "Greetings"])

    actions(page, "Greetings")
    with page.expect_download() as text:
        page.get_by_role("button", name="Export text").click()
    said = pathlib.Path(text.value.path()).read_text()
    assert text.value.suggested_filename == "Greetings.md"
    assert said.startswith("# Greetings\n\n## You\n\nhello there\n\n## Answer\n\n") and word in said
    with page.expect_download() as whole:
        page.get_by_role("button", name="Export JSON").click()
    assert [t["text"] for t in json.loads(pathlib.Path(whole.value.path()).read_text())["turns"]] == ["hello there"]

    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#toast")).to_contain_text("Deleted: Greetings")
    expect(page.locator("#list li")).to_have_count(1)
    state(page, "deleted")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".user")).to_have_text("hello there")
    page.reload()
    expect(page.locator("#list li")).to_have_count(2)
    actions(page, "Greetings")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#list li")).to_have_count(1)
    page.reload()
    expect(page.locator("#list .open")).to_have_text(["How do I set the effort?"])


def test_conversations_are_shared_with_the_terminal(browser, tmp_path):
    """With --share-sessions page and terminal have one list, and neither loses what the other adds."""
    shares = Server(tmp_path, "--share-sessions")
    env = {**os.environ, **{f"XDG_{k}_HOME": f"{tmp_path}/{k}" for k in ("STATE", "DATA", "CACHE", "CONFIG")}, "TERM": "xterm"}
    sessions = lambda *args: subprocess.run([os.environ["OSSRUN"], "sessions", *args], env=env, capture_output=True, text=True, check=True).stdout
    listed = lambda: [(s["name"], s["questions"]) for s in json.loads(sessions("list", "--json"))]
    page = visit(browser, shares.root)
    expect(page.locator("#where")).to_have_text("Conversations are kept with those of ossrun chat.")
    ask(page, "What is ossrun?")
    page.wait_for_function("chat.version && pathOf(chat).at(-1).ended")
    page.evaluate("uploads.get(chat)")
    assert listed() == [("What is ossrun?", 1)]
    assert "ossrun is one program" in sessions("show", page.evaluate("chat.id"))

    inside, outside = pty.openpty()  # the same person continues in a terminal
    chat = subprocess.Popen([os.environ["OSSRUN"], "chat", "--plain", "--resume", page.evaluate("chat.id")], env=env, stdin=outside, stdout=outside, stderr=outside)
    os.close(outside)
    screen = lambda until: until in read_until(inside, until)
    os.write(inside, b"How do I set the effort?\n")
    assert screen("--effort")
    page.wait_for_function("sync().then(() => pathOf(chat).length === 2 && textOf(pathOf(chat)[1]))")
    expect(page.locator(".user")).to_have_text(["What is ossrun?", "How do I set the effort?"])
    page.wrong.clear()
    ask(page, "How much memory does gpt-oss-20b need?")
    expect(page.locator("#toast")).to_contain_text("A terminal has this conversation open. It continues here in a copy.")
    page.evaluate("uploads.get(chat)")
    page.wrong[:] = [w for w in page.wrong if "409" not in w]
    assert sorted(listed()) == [("What is ossrun?", 2), ("What is ossrun? (copy)", 3)]
    chat.terminate()
    chat.wait()
    os.close(inside)

    other = visit(browser, shares.root)  # another browser
    other.get_by_role("button", name="What is ossrun? (copy)", exact=True).click()  # which is newer is chance
    expect(other.locator(".user")).to_have_count(3)
    ask(other, "What is ossrun?")
    page.get_by_role("button", name="Regenerate").last.click()
    expect(page.locator("#send")).to_have_text("Send")
    page.wait_for_function("uploads.get(chat).then(() => chat.turns.length === 5)")
    page.reload()
    expect(page.locator("#list .open")).to_have_text(["What is ossrun? (copy)", "What is ossrun?"])
    page.locator("[aria-current] + .more").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#list li")).to_have_count(1)
    assert listed() == [("What is ossrun?", 2)]
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#list li")).to_have_count(2)
    page.evaluate("uploads.get(chat)")
    assert len(listed()) == 2
    state(page, "shared")
    assert not [w for w in page.wrong + other.wrong if "409" not in w]
    page.context.close()
    other.context.close()
    shares.kill()


def read_until(terminal, mark):
    said = b""
    while mark.encode() not in said:
        said += os.read(terminal, 4096)
    return said.decode(errors="replace")


def test_two_tabs(page):
    ask(page, "hello")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".user")).to_have_text("hello")
    ask(other, "from the other tab")
    expect(page.locator("#list li")).to_have_count(1)
    ask(page, "from this tab")
    other.locator("#fresh").evaluate("b => b.click()")
    ask(other, "another conversation")
    page.reload()
    expect(page.locator("#list li")).to_have_count(2)
    turns = page.evaluate("chats.flatMap((c) => c.turns.map((t) => t.text)).sort()")
    assert turns == ["another conversation", "from the other tab", "from this tab", "hello"]
    other.close()


def pdf(text):
    """A document of one page."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
               b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
               b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream), b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    out, at = b"%PDF-1.4\n", []
    for n, o in enumerate(objects, 1):
        at.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (n, o)
    table = b"".join(b"%010d 00000 n \n" % a for a in at)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(out)


def test_files(page):
    page.locator("#pick").set_input_files([{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Lisbon in May"},
                                           {"name": "paper.pdf", "mimeType": "application/pdf", "buffer": pdf("Porto in June")},
                                           {"name": "photo.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n\x00\xff"}])
    expect(page.locator("#toast")).to_have_text("photo.png is neither text nor a PDF. The model reads text only.")
    for how, name in ("drop", "dropped.md"), ("paste", "pasted.md"):
        page.evaluate("""([how, name]) => {
          const t = new DataTransfer();
          t.items.add(new File(["x"], name));
          document.getElementById("text").dispatchEvent(how === "drop" ? new DragEvent("drop", { dataTransfer: t, bubbles: true })
            : new ClipboardEvent("paste", { clipboardData: t, bubbles: true }));
        }""", [how, name])
        expect(page.locator("#files .file")).to_contain_text([name])
    state(page, "attached")
    page.get_by_role("button", name="Remove dropped.md").click()
    with page.expect_request(lambda r: r.method == "POST") as sent:
        ask(page, "What do they say?")
    *parts, text = sent.value.post_data_json["input"][0]["content"]
    assert [p["filename"] for p in parts] == ["notes.txt", "paper.pdf", "pasted.md"] and text["text"] == "What do they say?"
    assert base64.b64decode(parts[0]["file_data"].split(",")[1]) == b"Lisbon in May"
    expect(page.locator(".model .text")).to_contain_text(re.compile(r"\w"))
    expect(page.locator(".user .file")).to_have_text(["notes.txt", "paper.pdf", "pasted.md"])
    assert page.locator(".error").count() == 0
    state(page, "files")
    page.reload()
    with page.expect_request(lambda r: r.method == "POST") as sent:  # from the browser's storage
        ask(page, "And then?")
    assert len(sent.value.post_data_json["input"][0]["content"]) == 4
    expect(page.locator(".model").last).to_contain_text(re.compile(r"\w"))
    assert page.evaluate("(async () => (await asked(database.transaction('files').objectStore('files').getAllKeys())).length)()") == 3
    actions(page, "What do they say?")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#list li")).to_have_count(0)
    assert page.evaluate("(async () => (await asked(database.transaction('files').objectStore('files').getAllKeys())).length)()") == 0


def test_a_question_that_was_too_large_spoils_no_later_one(page):
    long = [{"name": "long.txt", "mimeType": "text/plain", "buffer": b"word " * (4 << 20)}]
    page.locator("#pick").set_input_files(long)
    expect(page.locator("#toast")).to_contain_text("long.txt is too large. A conversation may have 11 MB of files.")
    expect(page.locator("#files .file")).to_have_count(0)
    page.evaluate("has.body = Infinity")  # as with a server whose limit was lowered since
    page.locator("#pick").set_input_files(long)
    expect(page.locator("#files .file")).to_have_count(1)
    ask(page, "What does it say?")
    expect(page.locator(".error")).to_contain_text("larger than")
    with page.expect_request(lambda r: r.method == "POST") as sent:
        ask(page, "Hello")
    assert [m["content"] for m in sent.value.post_data_json["input"]] == ["Hello"]
    expect(page.locator(".model .text")).to_contain_text(re.compile(r"\w"))
    assert all("status of 413" in text for text in page.wrong)
    page.wrong.clear()


def test_settings(page):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_label("Temperature").fill("0.5")
    page.get_by_label("Most tokens").fill("12")
    state(page, "settings")
    page.get_by_label("Text size").select_option("Large")
    page.get_by_label("Theme").select_option("Dark")
    page.get_by_role("button", name="Done").click()
    page.reload()
    with page.expect_request(lambda r: r.method == "POST") as sent:
        ask(page, "Tell me of your effort.")
    asked = sent.value.post_data_json
    assert (asked["instructions"], asked["temperature"], asked["max_output_tokens"]) == ("Be brief.", 0.5, 12)
    expect(page.locator(".foot")).to_contain_text("Stopped at the limit of tokens. Raise it in Settings.")
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "19px"
    state(page, "dark and large")
    page.locator("#text").press("Control+/")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    state(page, "keys")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()


def test_only_tools_that_the_server_has(page, server):
    listed = page.request.get(server.root + "v1/models").json()["tools"]
    shown = page.locator("#tools label").all_text_contents()
    assert [t["type"] for t in listed] == [{"browser": "web_search", "python": "code_interpreter"}[s.strip()] for s in shown]
    for box in page.locator("#tools input").all():
        box.check()
    with page.expect_response("**/v1/responses") as answered:
        ask(page, "hello")
    assert "X-Ossrun-Ignored" not in answered.value.headers and "x-ossrun-ignored" not in answered.value.headers


def test_a_server_of_tools_is_offered(browser, server, tmp_path):
    go = tmp_path / "go"  # until it is there, the server connects: a page that looked once never has its tools
    starts = f"until [ -e {go} ]; do sleep 0.1; done; exec python3 {server.folder / 'sums.py'}"
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"sums": {"command": "sh", "args": ["-c", starts]},
                                                                  "gone": {"command": "no-such-program"}}}))
    own = Server(tmp_path, "--mcp-config", str(tmp_path / "mcp.json"), "--tools", "none")
    try:
        page = visit(browser, own.root)
        expect(page.locator("#tools span").last).to_have_text("sums: connecting")
        go.touch()
        expect(page.locator("#tools label")).to_have_text([" sums"], timeout=60000)
        expect(page.locator("#tools span")).to_have_text(["gone: failed"])
        page.get_by_role("button", name="Settings").click()
        expect(page.locator("#servers")).to_have_text("gonefailedsumsconnected: add")
        state(page, "servers")
        page.context.close()
    finally:
        own.kill()


def test_the_server_goes_and_comes_back(browser, server, size):
    page = visit(browser, server.root, size)
    ask(page, "hello")
    server.kill()
    ask(page, "are you there?")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The server does not answer.")
    state(page, "gone")
    server.start()
    alert.get_by_role("button", name="Retry").click()
    expect(alert).to_have_count(0)
    expect(page.locator("article").last.locator(".model .text")).to_contain_text(re.compile(r"\w"))
    expect(page.locator("article")).to_have_count(2)
    page.context.close()


def test_a_message_waits_for_the_model(page):
    # The demo loads too fast to be met loading.
    busy = {"status": "loading the model, 4.1 of 13.8 GB"}
    page.route("**/health", lambda r: r.fulfill(status=503, json=busy))
    page.route("**/v1/responses", lambda r: r.fulfill(status=503, json={"error": {"message": "loading"}}))
    page.reload()
    expect(page.get_by_text("Loading the model, 4.1 of 13.8 GB.")).to_be_visible()
    state(page, "loading")
    page.locator("#text").fill("hello")
    page.locator("#text").press("Enter")
    expect(page.locator("#send")).to_have_text("Stop")
    for _ in range(2):  # it asks again, and still waits
        with page.expect_request("**/health"):
            pass
    state(page, "waiting")
    page.unroute("**/v1/responses")
    expect(page.locator(".model .text")).to_contain_text(re.compile(r"\w{3}"))
    page.wrong[:] = [w for w in page.wrong if "503" not in w]


def test_a_model_that_has_loaded_since_is_asked_again(page):
    """The model loads between a 503 and the look at the server's health, which is fine then."""
    page.route("**/v1/responses", lambda r: r.fulfill(status=503, json={"error": {"message": "loading"}}), times=1)
    page.locator("#text").fill("hello")
    page.locator("#text").press("Enter")
    expect(page.locator(".model .text")).to_contain_text(re.compile(r"\w{3}"))
    expect(page.get_by_role("alert")).to_have_count(0)
    page.wrong[:] = [w for w in page.wrong if "503" not in w]


FORMULAS = r"""The roots are $x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$, and it costs $5 or $6.

\[
\sum_{k=1}^{n} k^2 = \frac{n(n+1)(2n+1)}{6}
\]

$$\begin{pmatrix} a & b \\ c & d \end{pmatrix} \vec{v} \in \mathbb{R}^2, \quad f(x) = \begin{cases} 1 & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}$$

What is not known stays: \(\unknown{x}\).

```python
@cache
def fib(n: int) -> int:  # the slow way
    return n if n < 2 else fib(n - 1) + fib(n - 2)

print(f"fib(30) is {fib(30):,} and this line is longer than a phone is wide, so that it scrolls")
```
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_and_formulas(browser, server, size, scheme):
    page = visit(browser, server.root, size, color_scheme=scheme)
    keep(page, FORMULAS)
    page.reload()
    expect(page.locator("math")).to_have_count(3)
    expect(page.locator("math[display=block]")).to_have_count(2)
    expect(page.locator("mtable")).to_have_count(2)
    expect(page.locator(".text p code")).to_have_text(r"\unknown{x}")
    expect(page.locator(".text p").first).to_contain_text("costs $5 or $6.")
    expect(page.locator("pre .k").first).to_have_text("def")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    page.get_by_role("button", name="Wrap").click()
    state(page, "code and formulas-" + scheme)
    # what it says is true where the browser gives no clipboard, as over http in a local network
    page.evaluate("() => { Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false; }")
    page.get_by_role("button", name="Copy", exact=True).first.click()
    expect(page.get_by_role("button", name="Not copied")).to_be_visible()
    page.context.close()


LANGUAGES = sorted((HERE.parents[4] / "ui/chat/highlight/testdata").glob("*.code"))


def test_colours_are_the_terminals(page):
    """The terminal's own samples have the terminal's own tokens."""
    assert len(LANGUAGES) > 20
    for path in LANGUAGES:
        got = page.evaluate("""([name, text]) => {
          const lang = language(name);
          let state = { frames: [] }, found;
          return text.split("\\n").map((line) => {
            [found, state] = coloured(lang, state, line);
            return found.map(([kind, t]) => (kind ? "⟨" + kind + " " + t + "⟩" : t)).join("");
          }).join("\\n");
        }""", [path.stem, path.read_text().removesuffix("\n")])
        want = path.with_suffix(".tokens").read_text().removesuffix("\n")
        assert got.split("\n") == want.split("\n"), path.stem


# The stream of an answer stops after its third line x := 2 until release is called.
HELD = """() => {
  const ask = fetch, released = new Promise((go) => { window.release = go; });
  window.fetch = async (path, init) => {
    const r = await ask(path, init);
    if (path !== "v1/responses") return r;
    let seen = 0;
    const hold = new TransformStream({ async transform(event, to) {
      to.enqueue(event);
      if ((seen += event.split(":=").length - 1) > 2) await released;
    } });
    return new Response(r.body.pipeThrough(new TextDecoderStream()).pipeThrough(hold).pipeThrough(new TextEncoderStream()), r);
  };
}"""


def send(page, text):
    page.locator("#text").fill(text)
    page.locator("#text").press("Enter")


def test_enter_during_an_answer_queues(browser, size):
    page = visit(browser, SCRIPTED, size)
    page.wrong = []
    unlock(page)
    page.evaluate(HELD)
    send(page, "[[slow 20ms]] [[say " + "la := " * 60 + "]]")
    expect(page.locator(".model .text")).to_contain_text("la := la")
    page.locator("#text").fill("[[say Second.]]")
    expect(page.locator("#send")).to_have_text("Queue")
    page.keyboard.press("Enter")
    send(page, "[[say Third.]]")
    send(page, "[[say Not this.]]")
    expect(page.locator("#queued span")).to_have_text(["next: [[say Second.]]", "next: [[say Third.]]", "next: [[say Not this.]]"])
    state(page, "queued")
    page.get_by_role("button", name="Remove the queued message").last.click()
    page.evaluate("release()")
    expect(page.locator("article")).to_have_count(3)
    expect(page.locator("#queued span")).to_have_count(0)
    expect(page.locator(".model .text")).to_have_text([re.compile("la"), "Second.", "Third."])
    send(page, "[[slow 20ms]] [[loop la]]")
    expect(page.locator(".model .text").last).to_contain_text("la la")
    send(page, "[[say Back.]]")
    page.keyboard.press("Escape")  # a stopped answer gives the next messages back
    expect(page.locator("#text")).to_have_value("[[say Back.]]")
    page.context.close()


def test_what_has_been_shown_stays(browser):
    """A scripted answer: its first block, a selection and an opened card stay while more comes."""
    page = visit(browser, SCRIPTED)
    page.wrong = []
    unlock(page)
    page.evaluate(HELD)
    page.locator("#text").fill("[[slow 20ms]] [[think A thought.]] [[say First paragraph.\n\n```go\nvar a = 1\n" + "x := 2\n" * 40 + "```\n\nLast words.]]")
    page.locator("#text").press("Enter")
    expect(page.locator(".model pre")).to_contain_text("x := 2")  # the first line is finished: it stays
    page.locator("summary").click()
    page.evaluate("""() => {
      window.first = document.querySelector(".model p");
      window.line = document.querySelector(".model pre code").firstChild;
      getSelection().selectAllChildren(first);
    }""")
    state(page, "streaming")
    expect(page.locator("#send")).to_have_text("Stop")
    page.evaluate("release()")
    expect(page.locator(".model")).to_contain_text("Last words.")
    expect(page.locator("#send")).to_have_text("Send")
    held = page.evaluate("[first.isConnected, line.isConnected, String(getSelection()).trim(), line.textContent]")
    assert held[:3] == [True, True, "First paragraph."], held
    expect(page.locator(".thought")).to_be_visible()
    page.context.close()


def test_a_call_that_needs_approval(browser):
    """The demo calls no tools."""
    page = visit(browser, SCRIPTED, "phone")
    page.wrong = []
    unlock(page)
    page.get_by_label("sums").check()
    page.locator("#text").fill('[[call sums_add {"a":1,"b":2}]] [[say Done.]]')
    page.locator("#text").press("Enter")
    expect(page.locator(".asks")).to_contain_text("sums: add wants to run")
    state(page, "approval")
    page.get_by_role("button", name="Allow (y)").click()
    expect(page.locator(".model")).to_contain_text("Done.")
    expect(page.locator("summary").last).to_have_text("sums: add · 3")
    page.context.close()


def test_enter_of_a_touch_keyboard_is_a_new_line(browser, server):
    page = visit(browser, server.root, "phone", has_touch=True, is_mobile=True)
    expect(page.locator("#model option").first).to_be_attached()
    page.locator("#text").fill("hello")
    page.locator("#text").press("Enter")
    page.keyboard.type("there")
    expect(page.locator("#text")).to_have_value("hello\nthere")
    expect(page.locator("article")).to_have_count(0)
    page.locator("#send").tap()
    expect(page.locator(".user")).to_have_text("hello\nthere")
    assert not page.wrong
    page.context.close()


def test_the_key_is_asked_for(browser):
    page = visit(browser, SCRIPTED, "phone")
    expect(page.get_by_role("textbox", name="API key")).to_be_visible()
    state(page, "locked")
    unlock(page)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Forget the API key").click()
    page.get_by_role("button", name="Done").click()
    page.reload()
    expect(page.get_by_role("textbox", name="API key")).to_be_visible()
    page.context.close()


def test_reference(page, server):
    """What it says to paste is run in a shell, where the demo has what it asks for."""
    page.goto(server.root + "docs")
    state(page, "docs")
    for route in page.locator("details").all()[:5]:
        route.locator("summary").click()
    state(page, "docs open")
    if page.name_of_size == "phone":
        return
    commands = page.locator("pre", has_text=re.compile("^curl ")).all_text_contents()
    assert len(commands) > 30
    ran = 0
    for command in commands:
        if not re.search(r"gpt-oss:20b|[a-z]_1\b|@", command):
            out = subprocess.run(["bash", "-c", command + " -sS --fail-with-body"], capture_output=True, text=True, timeout=120)
            assert out.returncode == 0 and out.stdout, (command, out)
            ran += 1
    assert ran > 15
