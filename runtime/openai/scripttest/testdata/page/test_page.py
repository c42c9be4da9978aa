"""The chat page and the document's page in headless Chromium, against the scripted model.

What a person meets on the real server is in test_states.py; here answers must be certain ones.

  BASE_URL=http://127.0.0.1:8000/v1 API_KEY=test pytest        SHOTS=folder keeps pictures

Every test fails on any message of the console that is an error, on any exception of the page, and on any request to
another server.
"""

import os
import random
import re

import pytest
from playwright.sync_api import expect

ROOT = os.environ["BASE_URL"].removesuffix("/v1") + "/"
KEY = os.environ.get("API_KEY", "")
SHOTS = os.environ.get("SHOTS", "")
HANGS = 120_000  # every limit: what is waited for is an event
expect.set_options(timeout=HANGS)


@pytest.fixture(params=[{}])
def page(browser, request):
    context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **request.param})
    page = context.new_page()
    page.set_default_timeout(HANGS)
    wrong = page.wrong = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" and "401" not in m.text else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith((ROOT, "data:")) else wrong.append(r.url))
    page.goto(ROOT)
    if KEY:
        unlock(page)
    yield page
    context.close()
    assert not wrong


def unlock(page):
    page.get_by_role("textbox", name="API key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#model option").first).to_be_attached()


def ask(page, text):
    page.locator("#text").fill(text)
    page.keyboard.press("Enter")


def answer(page):
    expect(page.locator("#send")).to_have_text("Send")
    return page.locator("article").last


def keep(page, *answers):
    """Puts a conversation with these answers into the browser."""
    page.wait_for_function("database")
    turns = [{"id": f"t{i}", "parent": f"t{i - 1}" if i else None, "text": "Show me.", "ended": True,
              "items": [{"type": "message", "id": "m", "content": [{"type": "output_text", "text": t}]}]} for i, t in enumerate(answers)]
    page.evaluate("c => written((all) => all.put(c))", {"id": "c", "title": "Samples", "used": 1, "leaf": turns[-1]["id"], "turns": turns})


def shot(page, name):
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


MARKDOWN = """# Title

Some *soft*, **strong** and `code` text, [a link](https://example.org/x), [a bad one](javascript:alert(1)).

- one
- two
  - inner
1. first
2. second

| a | b |
|---|---|
| 1 | 2 |

> quoted

```go
func main() { println("<b>") }
```

<img src=x onerror="window.broken = 1"><script>window.broken = 1</script>"""


def test_markdown_is_nodes(page):
    ask(page, f"[[think They want a sample.]] [[say {MARKDOWN}]]")
    a = answer(page)
    expect(a.locator(".text h2")).to_have_text("Title")
    expect(a.locator("em")).to_have_text("soft")
    expect(a.locator("strong")).to_have_text("strong")
    expect(a.locator("ul ul li")).to_have_text("inner")
    expect(a.locator("ol > li")).to_have_count(2)
    expect(a.locator("td")).to_have_text(["1", "2"])
    expect(a.locator("blockquote")).to_have_text("quoted")
    expect(a.locator("pre code")).to_have_text('func main() { println("<b>") }')
    expect(a.locator("a")).to_have_count(1)
    assert a.locator("a").get_attribute("href") == "https://example.org/x"
    assert "noopener" in a.locator("a").get_attribute("rel")
    expect(a).to_contain_text('<img src=x onerror="window.broken = 1">')
    assert a.locator("img, script").count() == 0 and page.evaluate("window.broken") is None
    expect(a.locator("details summary")).to_have_text("Thought")
    expect(a.locator(".facts")).to_have_text(re.compile(r"^\d+ tokens"))
    assert re.search(r"\d+ tokens read, \d+ of them from the cache", a.locator(".facts").get_attribute("title"))
    expect(a.locator("pre span.k")).to_have_text("func")
    expect(a.locator(".bar span")).to_have_text("go")
    shot(page, "markdown")


def test_tables_tasks_and_directions(page):
    word = "w" * 60
    ask(page, f"""[[say | a | b | c |
|:--|:-:|--:|
| {word} {word} | 2 | 3 |

- [x] done
- [ ] open

שלום

- פריט]]""")
    a = answer(page)
    styles = a.locator("td").evaluate_all("all => all.map((e) => getComputedStyle(e).textAlign)")
    assert styles == ["start", "center", "end"]
    wide = a.locator(".wide")
    assert wide.evaluate("e => e.scrollWidth > e.clientWidth"), "the table does not scroll"
    lines = a.locator("td").first.evaluate("e => { const r = document.createRange(); r.selectNodeContents(e); return r.getClientRects().length; }")
    assert lines == 2, "a word is broken"
    expect(a.locator("li")).to_have_text(["☑ done", "☐ open", "פריט"])
    assert a.locator("p").evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert a.locator("li").evaluate_all("all => all.map((e) => getComputedStyle(e).direction)") == ["ltr", "ltr", "rtl"]
    for name in "text", "search", "title", "system":
        assert page.locator("#" + name).get_attribute("dir") == "auto"


def test_an_answer_continues_after_a_reload(page):
    ask(page, "[[think Hm.]] [[slow 20ms]] [[say " + "la " * 150 + "end.]]")
    expect(page.locator(".model .text")).to_contain_text("la la")
    page.reload()
    expect(page.locator(".foot")).to_contain_text("The server continued this answer while the page was closed.")
    expect(page.locator("#send")).to_have_text("Stop")
    ask(page, "[[say Next.]]")
    expect(page.locator(".model .text")).to_have_text([re.compile("^(la )+end.$"), "Next."])
    expect(page.locator("#send")).to_have_text("Send")
    turns = page.evaluate("chat.turns.map((t) => [t.ended, t.response ?? null])")
    assert turns == [[True, None]] * 2, turns
    ask(page, "[[slow 20ms]] [[loop la]]")
    expect(page.locator(".model .text").last).to_contain_text("la la")
    page.reload()
    expect(page.locator("#send")).to_have_text("Stop")
    with page.expect_request(lambda r: r.method == "DELETE"):  # a resumed answer stops on the server too
        page.keyboard.press("Escape")
    expect(answer(page)).to_contain_text("Stopped.")


def test_a_deleted_conversation_ends_an_answer_that_was_cut(page):
    ask(page, "[[slow 20ms]] [[loop la]]")
    expect(page.locator(".model .text")).to_contain_text("la la")
    page.route("**/v1/responses/*", lambda r: r.abort())
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    page.unroute("**/v1/responses/*")
    page.locator(".more").first.click()
    with page.expect_response(lambda r: r.request.method == "DELETE") as ended:
        page.get_by_role("button", name="Delete").click()
    assert ended.value.ok
    page.wrong.clear()  # the aborted request


@pytest.mark.parametrize("key,said,runs,again", [("y", "allowed once", True, False), ("a", "allowed in this chat", True, True),
                                                 ("n", "refused", False, False), ("d", "refused in this chat", False, True),
                                                 ("Escape", "refused", False, False)])
def test_keys_answer_a_call_that_asks(page, key, said, runs, again):
    page.get_by_label("sums").check()
    ask(page, '[[call sums_add {"a":1,"b":2}]] [[say Done.]]')
    asks = page.locator(".asks")
    expect(asks.locator("summary")).to_have_text("sums: add wants to run")
    expect(asks.locator("dl")).to_have_text("a1b2")
    page.wait_for_timeout(500)
    page.locator("#text").press_sequentially("May ")
    page.wait_for_timeout(500)
    page.keyboard.press("y")  # a letter of a text answers nothing
    expect(page.locator("#text")).to_have_value("May y")
    page.locator("#text").fill("")
    page.keyboard.press("Shift")
    page.keyboard.press("y")  # nor does one that follows another at once
    expect(asks).to_have_count(1)
    page.locator("#text").fill("")
    page.wait_for_timeout(500)
    page.keyboard.press(key)
    expect(page.locator(".model .text")).to_have_text("Done.")
    shown = ["sums: add · " + said] + (["sums: add · 3"] if runs else [])
    expect(page.locator("summary")).to_have_text(shown)
    assert ("    → sums: add · refused" in page.evaluate("exported(chat)")) != runs
    page.reload()
    expect(page.locator("summary")).to_have_text(shown)
    ask(page, '[[call sums_add {"a":1,"b":2}]] [[say Again.]]')
    if again:
        expect(page.locator(".model .text").last).to_have_text("Again.")
        expect(page.locator("summary")).to_have_text(shown * 2)
    else:
        expect(asks).to_have_count(1)


def test_arguments_hide_nothing(page):
    page.get_by_label("sums").check()
    rows = lambda text: page.evaluate("(text) => { const e = given(text); return [e.nodeName, e.innerText ?? e.text, e.text ?? '']; }", text)
    assert rows('{"a": {"b": [1, "two"]}, "c": ""}')[0] == "DL"
    for text in '{"a":1,"a":2}', "rm -rf /", '{"a":1} rm', '{"a":12345678901234567890}':
        assert rows(text)[2] == text, text
    assert "\\u202e" in page.evaluate("given('{\"a\":\"\u202ehidden\"}').textContent")


def test_notices_cover_no_text(page):
    page.locator("#pick").set_input_files([{"name": "p.png", "mimeType": "image/png", "buffer": b"\x89PNG\xff"}])
    expect(page.locator("#toast")).to_contain_text("p.png is neither text nor a PDF.")
    main, toast = page.locator("main").bounding_box(), page.locator("#toast").bounding_box()
    assert toast["y"] >= main["y"] + main["height"]


def test_streams_and_stops(page):
    # Neither ends by itself.
    for script, shown in {"[[loop I think]] [[say Never.]]": "details[open] .thought", "[[loop I think]]": ".model .text"}.items():
        ask(page, "[[slow 20ms]] " + script)
        expect(page.locator(shown).last).to_contain_text("I think I think")
        expect(page.locator("#send")).to_have_text("Stop")
        shot(page, "streaming")
        page.keyboard.press("Escape")
        expect(answer(page)).to_contain_text("Stopped.")


def test_conversation_goes_on_and_is_kept(page):
    ask(page, "[[think One.]] [[say First.]]")
    expect(answer(page)).to_contain_text("First.")
    ask(page, "[[think Two.]] [[say Second.]]")
    expect(answer(page)).to_contain_text("Second.")
    page.reload()
    expect(page.locator(".user")).to_have_count(2)
    expect(page.locator(".model").last).to_contain_text("Second.")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("article")).to_have_count(0)
    page.locator("#list .open").click()
    expect(page.locator("article")).to_have_count(2)


def branch(page, n):
    """The version that a turn shows, as 1/2."""
    expect(page.locator("article").last.locator(".row .facts").first).to_have_text(n)


STORED = "asked(database.transaction('chats').objectStore('chats').getAll()).then((all) => all[0].turns.length)"
# A page that is left takes back what is still being stored.
SHOWN = "asked(database.transaction('chats').objectStore('chats').getAll()).then((all) => all[0].leaf === chat.leaf)"


@pytest.mark.parametrize("how", ["Edit, reload", "Edit, Escape", "Edit, 503", "Regenerate, 503", "Regenerate, reload", "Regenerate, stop", "Regenerate, break"])
def test_nothing_is_lost_before_another_answer_is_there(page, how):
    ask(page, "[[think One.]] [[say First.]]")
    expect(answer(page)).to_contain_text("First.")
    button, then = how.split(", ")
    if then == "503":
        page.route("**/v1/responses", lambda r: r.fulfill(status=503, json={"error": {"message": "No room now."}}))
    elif then == "break":
        page.route("**/v1/responses", lambda r: r.fulfill(status=200, headers={"Content-Type": "text/event-stream"}, body=""))
    elif button == "Regenerate":  # an answer that does not end by itself
        page.route("**/v1/responses", lambda r: r.continue_(post_data=r.request.post_data.replace("[[say First.]]", "[[slow 20ms]] [[loop la]]")))
    page.get_by_role("button", name=button).click()
    if how == "Edit, 503":
        ask(page, "[[say Second.]]")
    if then in ("reload", "stop") and button == "Regenerate":
        expect(page.locator(".model")).to_contain_text("la la")
        stored = (page.evaluate(STORED) for _ in range(HANGS // 100) if page.wait_for_timeout(100) is None)
        assert any(n > 1 for n in stored)  # what has streamed is stored every two seconds
    if then == "reload":
        page.reload()
    elif then in ("Escape", "stop"):
        page.keyboard.press("Escape")
    a = answer(page)
    expect(page.locator("#text")).to_have_value("")
    if then == "503":
        expect(a.get_by_role("alert")).to_contain_text("No room now.")
        shot(page, "kept-" + button.lower())
    if how == "Edit, 503":  # the question is not lost either
        expect(page.locator(".user")).to_have_text("[[say Second.]]")
        page.unroute_all()
        a.get_by_role("button", name="Retry").click()
        expect(answer(page)).to_contain_text("Second.")
        branch(page, "2 of 2")
    if how in ("Edit, 503", "Regenerate, stop", "Regenerate, reload"):
        page.get_by_role("button", name="Earlier version").click()
        branch(page, "1 of 2")
    expect(page.locator("article")).to_contain_text("First.")
    expect(page.locator(".user")).to_have_text("[[think One.]] [[say First.]]")
    page.unroute_all()
    assert any(page.evaluate(SHOWN) for _ in range(HANGS // 100) if page.wait_for_timeout(100) is None)
    page.reload()
    expect(page.locator(".model")).to_contain_text("First.")
    page.wrong[:] = [w for w in page.wrong if "503" not in w]


def test_any_turn_has_branches(page):
    ask(page, "[[think One.]] [[say First.]]")
    expect(answer(page)).to_contain_text("First.")
    ask(page, "[[say Below the first.]]")
    expect(answer(page)).to_contain_text("Below")
    page.get_by_role("button", name="Edit").first.click()
    expect(page.locator("#editing")).to_be_visible()
    shot(page, "editing")
    ask(page, "[[think Two.]] [[say Other.]]")
    expect(answer(page)).to_contain_text("Other.")
    expect(page.locator("article")).to_have_count(1)
    branch(page, "2 of 2")
    page.get_by_role("button", name="Regenerate").click()
    expect(answer(page)).to_contain_text("Other.")
    branch(page, "3 of 3")
    shot(page, "branches")
    page.get_by_role("button", name="Earlier version").focus()
    page.keyboard.press("Enter")
    branch(page, "2 of 3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Later version")).to_be_focused()
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator(".model").last).to_contain_text("Below the first.")
    with page.expect_request(lambda r: r.method == "POST") as sent:
        ask(page, "[[say On.]]")
    said = [i["content"] for i in sent.value.post_data_json["input"] if i.get("role") == "user"]
    assert said == ["[[think One.]] [[say First.]]", "[[say Below the first.]]", "[[say On.]]"]
    expect(answer(page)).to_contain_text("On.")


def test_tools_have_cards(page):
    page.get_by_label("python").check()
    page.get_by_label("browser", exact=True).check()
    ask(page, '[[think I compute.]] [[call python print(6*7)]] [[call browser.search {"query":"ossrun"}]] [[say It is 42.]]')
    a = answer(page)
    expect(a).to_contain_text("It is 42.")
    expect(a.locator("summary")).to_have_text(["Thought", "python · ran: print(6*7)", "browser: search"])
    a.locator("summary", has_text="python").click()
    expect(a.locator("details[open] pre")).to_have_text(["print(6*7)", "ran: print(6*7)"])
    a.locator("summary", has_text="browser").click()
    expect(a.locator("details[open] dl")).to_have_text("queryossrun")
    exported = page.evaluate("exported(chat)")
    assert "    → python\n    print(6*7)\n    ran: print(6*7)\n\n    → browser: search\n" in exported, exported
    shot(page, "tools")
    ask(page, "[[say And on.]]")
    expect(answer(page)).to_contain_text("And on.")


@pytest.mark.parametrize("text,code", [("```go\nx := 1\n```", "x := 1"), ("```\na\n\nb\n``", "a\n\nb"), ("~~~\n~~~", ""), ("```sh\nls\n", "ls\n"),
                                       ("1. a\n\n   ```py\n   x = 1\n\n   y = 2\n   ```\n2. b", "x = 1\n\ny = 2"), ("~~~\n```\n~~~", "```")])
def test_code_that_ends_an_answer(page, text, code):
    """Whole, and letter by letter."""
    for step in (1, 3, 1000):
        shown = page.evaluate("""([text, step]) => {
          const box = document.createElement("div"), grow = growing(box);
          for (let n = 0; n < text.length; ) grow(text.slice(0, n += step));
          return [...box.querySelectorAll("pre")].map((p) => p.textContent);
        }""", [text, step])
        assert shown == [code], step


BOMBS = {
    "quotes": ">" * 8_000, "backticks": "x " + "`" * 20_000, "pairs of backticks": "`a" * 9_000, "emphasis": "*a" * 9_000,
    "strong": "**a*b" * 4_000, "links": "[a](" * 5_000, "lists": "- " * 8_000, "blanks": "# " + " " * 20_000 + "x",
    "table": "a|\n" + " " * 20_000 + "x", "depth": "\n".join(" " * n + "- a" for n in range(300)), "rules": "- " * 9_000 + "x",
    "a table's rule": "a|\n" + " " * 250_000 + "x", "an item": "- a\n- " + " " * 250_000 + "x" * 200 + "\r", "items": ("- " + " " * 3_990 + "x\r\n") * 65,
    "headings": ("# a" + " " * 3_990 + "b\n") * 65, "hashes": ("# a" + "#" * 3_990 + "b\n") * 65, "rule after rule": ("a|\n" + " " * 3_990 + "x\n") * 65,
    "formulas": "$a{" * 6_000, "open formulas": "$$\n" + "\\frac{" * 3_000, "nested": "$" + "{" * 1_900 + "$ " * 40, "matrices": "\\[\\begin{matrix}" + "a&" * 900 + "\\end{matrix}\\]\n" * 60,
    "code": "```js\n" + "a`${" * 60_000, "shell": "```sh\n" + "$(a=" * 60_000, "rows": "```go\n" + "x\n" * 60_000,
    "addresses": "http://" + "," * 20_000, "fences": "```\n" * 5_000, "long": "a *b* " * 60_000,
}


MOST = 50_000  # elements of an answer; the renderer stops at 20,000


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_answer_bricks_the_page(page, bomb):
    """It is drawn at every load, from the browser's storage; and a text behind it is still laid out."""
    text = BOMBS[bomb]
    keep(page, text, "a **word**")
    page.reload()
    expect(page.locator(".model strong").last).to_have_text("word")
    made = page.evaluate("() => { open(chat); return document.querySelectorAll('.model *').length; }")
    assert made < MOST, made
    assert len(page.locator(".model").first.text_content()) > 100


# Lays so many texts of chance out, or for so many seconds: pieces of Markdown, repeated and nested, cut anywhere, at the lengths where the
# renderer's bounds are. "\u5b57" is only ever a word of the text.
CHANCE = """([seed, texts, seconds, most]) => {
  const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32, below = (n) => Math.floor(next() * n);
  const of = (list) => list[below(list.length)];
  const pieces = ["\u5b57", "\u5b57 \u5b57", "a", " ", "  ", "    ", "\\n", "\\n\\n", "\\t", "\\r", "*", "**", "***", "_", "`", "``", "# ", "###", "> ", ">", "- ", "* ", "1. ",
    "12) ", "|", "\\\\|", "|---|", ":-", "---", "***\\n", "| \u5b57 | a |\\n|---|---|\\n| a | \u5b57 |\\n", "[", "]", "(", ")", "[\u5b57](http://x)", "[a](javascript:a)", "http://",
    "https://x/y", "<img src=x onerror=broken()>", "<b>", "&lt;", "\\0", "\\u202e", "\\ud83d", "\\ud83c\\udf89", "\\u2028", "\\\\", "$", "$$", "$x^2$", "\\\\(", "\\\\)", "\\\\[", "\\\\]", "\\\\frac", "^", "{", "}", "\\n$$\\n", "~", "=", "#", ".", ","];
  const fenced = ["```", "~~~~", "```js\\n", "\\n```\\n"];
  const lengths = [1, 2, 3, 8, 30, 400, 401, 3999, 4000, 4001, 20000, 20001];
  const text = (depth) => {
    const all = next() < 0.3 ? [...pieces, ...fenced] : pieces;
    let s = "";
    for (let n = 1 + below(depth ? 6 : 40); n--; ) {
      const way = next();
      if (way < 0.75) s += of(all);
      else if (way < 0.85) s += of(all).repeat(of(lengths));
      else if (way < 0.93) s += (of(all) + of(all) + of(all)).repeat(of(lengths));
      else if (depth < 3) s += text(depth + 1).split("\\n").map((l) => of(["> ", "- ", "  ", "1. ", ""]) + l).join("\\n").repeat(of([1, 1, 2, 20]));
    }
    return depth ? s.slice(0, 1e5) : s.slice(below(3), 300000);
  };
  const allowed = new Set(["DIV", "P", "H1", "H2", "H3", "H4", "HR", "BLOCKQUOTE", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "UL", "OL", "LI", "PRE", "CODE", "BUTTON", "STRONG", "EM", "A", "SPAN", "H5",
    ..."math mrow mi mo mn mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mtable mtr mtd".split(" ")]);
  const words = (s) => s.split("\u5b57").length;
  let tried = 0, largest = 0;
  for (const end = performance.now() + seconds * 1000; tried < texts || performance.now() < end; tried++) {
    const began = seed, t = text(0), wrong = [], box = el("div"), _ = growing(box)(t), made = box.querySelectorAll("*").length;
    largest = Math.max(largest, made);
    if (made > most) wrong.push(made + " elements");
    for (const e of [box, ...box.querySelectorAll("*")]) {
      if (!allowed.has(e.nodeName)) wrong.push("a " + e.nodeName);
      for (const a of e.attributes) if (!["href", "target", "rel", "class", "dir", "type", "start", "tabindex", "aria-pressed", "display", "width", "accent", "stretchy"].includes(a.name)) wrong.push("the attribute " + a.name);
      if (e.nodeName === "A" && !/^https?:\\/\\//.test(e.getAttribute("href"))) wrong.push("a link to " + e.href);
    }
    let shown = words(box.textContent); // and in addresses, where a link has other text
    for (const a of box.querySelectorAll("a")) if (a.getAttribute("href") !== a.textContent.toWellFormed()) shown += words(a.getAttribute("href")) - 1;
    if (!/```|~~~/.test(t) && shown !== words(t)) wrong.push(words(t) - shown + " words are lost");
    if (t.length < 3000) { // what streams looks like what is loaded
      const grown = document.createElement("div"), more = growing(grown);
      for (let n = 0; n < t.length; ) more(t.slice(0, n += 1 + below(t.length / 10 + 2)));
      more(t);
      if (grown.innerHTML !== box.innerHTML) wrong.push("streams as " + grown.innerHTML.slice(0, 2000) + " and loads as " + box.innerHTML.slice(0, 2000));
    }
    if (wrong.length) return { began, tried, wrong: wrong.slice(0, 5), text: t.length > 600 ? t.slice(0, 300) + " ... " + t.slice(-300) : t, length: t.length };
  }
  return { tried, largest };
}"""


def test_random_answers(page):
    """PAGE_FUZZ=seconds for more. Every text is laid out with few elements, of those that there are, and no word of it is lost."""
    seconds = float(os.environ.get("PAGE_FUZZ", "0"))
    seed = int(os.environ.get("PAGE_SEED", str(random.randrange(2**32)) if seconds else "1"))
    found = page.evaluate(CHANCE, [seed, 100, seconds, MOST])
    print(found)
    assert "wrong" not in found, found
    assert page.evaluate("window.broken") is None


# SECURITY.md: The chat page keeps the key until its tab is closed, unless its user asks for
# more.
def test_the_key_ends_with_the_tab(browser):
    if not KEY:
        pytest.skip("the server has no key")
    for stay in (False, True):
        context = browser.new_context()
        page = context.new_page()
        page.goto(ROOT)
        if stay:
            page.get_by_label("Keep it").check()
        unlock(page)
        page.reload()
        expect(page.locator("#model option").first).to_be_attached()
        assert page.evaluate("JSON.stringify(localStorage)").count(KEY) == stay
        other = context.new_page()  # another tab
        other.goto(ROOT)
        if stay:
            expect(other.locator("#model option").first).to_be_attached()
        else:
            expect(other.get_by_role("textbox", name="API key")).to_be_visible()
        context.close()


def test_effort_is_asked_for_and_kept(page):
    for effort in ("high", "low"):
        page.locator("#effort label", has_text=effort).click()
        with page.expect_request(lambda r: r.method == "POST") as sent:
            ask(page, "[[say Done.]]")
        assert sent.value.post_data_json["reasoning"] == {"effort": effort}
        expect(answer(page)).to_contain_text("Done.")
    page.reload()
    expect(page.get_by_role("radio", name="low")).to_be_checked()


def test_document(page):
    """/docs lists what /openapi.json has, needs no key, and opens without a script."""
    document = page.request.get(ROOT + "openapi.json").json()
    page.goto(ROOT + "docs")
    operations = [(m.upper(), path) for path, of in document["paths"].items() for m in of]
    expect(page.locator("summary")).to_have_count(len(operations))
    for method, path in operations:
        row = page.locator("summary", has=page.locator("code", has_text=re.compile(f"^{re.escape(path)}$"))).filter(has_text=method)
        expect(row).to_have_count(1)
    responses = page.locator("details", has_text="POST /v1/responses ").first
    expect(responses.locator("table")).not_to_be_visible()
    responses.locator("summary").click()
    fields = document["paths"]["/v1/responses"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    shown = responses.locator("td code").all_text_contents()
    assert set(fields) == set(shown) and "reasoning" in shown
    row = responses.locator("tr", has=page.locator("code", has_text=re.compile("^temperature$")))
    expect(row.locator("td")).to_have_text(["temperature", "number", "0 to 2", "1", "Randomness of sampling. 0 always takes the likeliest token."])
    assert page.evaluate("document.scripts.length") == 0
    page.get_by_role("link").first.click()
    assert page.url == ROOT + "openapi.json"


def test_faults_are_told(page):
    ask(page, "[[think Hm.]] [[fail]]")
    expect(answer(page).get_by_role("alert")).to_contain_text("NaN")
    ask(page, "[[loop la]]")
    expect(answer(page).get_by_role("alert")).to_contain_text("repeated")


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_dark(page):
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ask(page, f"Show me. [[think They want a sample.]] [[say {MARKDOWN}]]")
    answer(page)
    shot(page, "dark")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Theme").select_option("Light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_phone(page):
    ask(page, f"Show me. [[think They want a sample.]] [[say {MARKDOWN}]]")
    answer(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shot(page, "phone")


@pytest.mark.parametrize("page", [{"java_script_enabled": True}], indirect=True)
def test_keyboard_alone(page):
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("[[say One]]")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(answer(page)).to_contain_text("One")
    expect(page.locator(".user")).to_have_text("[[say One]]\ntwo")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "effort":
            break
    assert page.evaluate("document.activeElement.name") == "effort"


def test_policy(page):
    """A script that came into the page would not run."""
    page.evaluate("""() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s); }""")
    assert page.evaluate("window.broken") is None
    assert "Content Security Policy" in page.wrong.pop()


def test_foreign_frame(browser):
    """No other page can hold this one."""
    import urllib.request

    with urllib.request.urlopen(ROOT) as r:
        assert "frame-ancestors 'none'" in r.headers["Content-Security-Policy"]
        assert "unsafe" not in r.headers["Content-Security-Policy"]
