"""How the demo answers behind the texts of a coding agent:  python behind.py EXCHANGE.jsonl URL TURNS

EXCHANGE.jsonl is a recording of what an agent sends to /v1/responses, one JSON object a line, with
the request's body. URL is a server of the model: ossrun serve --model demo. The text is cut to
several lengths; the question behind it is one of QUESTIONS. A turn is bad if it was cut, failed,
repeats a word three times or does not end as a sentence; one that calls a tool is good.
"""

import collections
import json
import re
import sys
import urllib.request

QUESTIONS = ["What is ossrun?", "How do I start the server?", "Which GPUs are supported?", "Write a poem about the sea.",
             "List the files in this repository.", "How do I use another port?", "Hello!", "What is the capital of France?",
             "Explain what MXFP4 is."]
# (characters of the agent's text, tools); None: as sent
LENGTHS = [(9800, 0), (11900, 0), (9800, 2), (None, None)]


def recorded(path):
    for line in open(path):
        request = json.loads(line).get("request", {})
        body = request.get("body")
        if isinstance(body, dict) and request.get("path") == "/v1/responses":
            return body
    sys.exit(f"{path}: no request to /v1/responses")


def texts(body):
    """All text before the question."""
    parts = [p["text"] for i in body["input"][:-1] for p in i.get("content", []) if isinstance(p, dict) and "text" in p]
    return (body.get("instructions") or "") + "\n\n".join(parts)


def ask(url, body):
    r = urllib.request.Request(url + "/v1/responses", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(r) as answer:
        return json.load(answer)


def bad(a):
    if a["status"] != "completed":
        return a["status"]
    said = "".join(p["text"] for o in a["output"] if o["type"] == "message" for p in o["content"])
    if any(o["type"].endswith("call") for o in a["output"]) and not said:
        return ""
    if re.search(r"\b(\w+)(\W+\1\b){2}", said):
        return "repeats"
    if not re.search(r"[.!?:)`]\W*$", said.strip()):
        return "no sentence"
    return ""


def main():
    body, url, turns = recorded(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    whole = texts(body)
    for cut, tools in LENGTHS:
        faults, tokens = collections.Counter(), 0
        for n in range(turns):
            q = {"role": "user", "content": QUESTIONS[n % len(QUESTIONS)]}
            if cut is None:
                b = body | {"input": body["input"][:-1] + [q]}
            else:
                functions = [t for t in body["tools"] if t["type"] == "function"]
                b = {"instructions": whole[:cut], "input": [q], "tools": functions[:tools]}
            a = ask(url, b | {"model": "demo", "stream": False, "store": False, "temperature": 1,
                              "reasoning": {"effort": "low"}, "max_output_tokens": 400})
            tokens = a["usage"]["input_tokens"]
            if why := bad(a):
                faults[why] += 1
        print(f"about {tokens} tokens before, {tools if tools is not None else 'all'} tools:",
              f"{faults.total()} of {turns} bad", dict(faults), flush=True)


if __name__ == "__main__":
    main()
