"""MCP servers with one fault each:  python3 zoo.py FAULT [FILE]  or  python3 zoo.py http FAULT...

The first speaks over its pipes; FILE counts how often it was started. The second listens at a port
for each fault, with streamable HTTP at /mcp and the old SSE transport at /sse, and prints
the ports. Every server has the tool echo.
"""
import json
import os
import queue
import sys
import threading
import time
import uuid

ANSWER = "the answer of echo"
NEVER = 3600
JSON, STREAM = "application/json", "text/event-stream"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def tool(name="echo", **more):
    return {"name": name, "description": "d", "inputSchema": SCHEMA, **more}


class Animal:
    """What a server with a fault says, over its pipes or HTTP."""

    def __init__(self, fault, started=1):
        self.fault, self.started, self.starts = fault, started, 0
        self.calls, self.sessions, self.streams = 0, set(), []

    def initialized(self, params):
        version = params.get("protocolVersion", "2025-06-18")
        if self.fault == "php":
            return {"protocolVersion": version, "capabilities": [], "serverInfo": []}
        version = {"old version": "2024-11-05", "strange version": "1.0",
                   "no version": None}.get(self.fault, version)
        return {"protocolVersion": version, "capabilities": {"tools": {}},
                "serverInfo": {"name": "zoo", "version": "1"}}

    def listed(self, params):
        cursor = params.get("cursor")
        echo = [tool()]
        if self.fault == "hangs at the list":
            time.sleep(NEVER)
        return {
            "same cursor": {"tools": echo, "nextCursor": "same"},
            "endless cursors": {"tools": echo, "nextCursor": str(uuid.uuid4())},
            "cursor is a number": {"tools": echo, "nextCursor": None if cursor else 5},
            "two pages": {"tools": [tool("second")]} if cursor else
                         {"tools": echo, "nextCursor": "2"},
            "no schema type": {"tools": [tool(inputSchema={"properties": SCHEMA["properties"]})]},
            "no schema": {"tools": [{"name": "echo"}]},
            "schema is null": {"tools": [tool(inputSchema=None)]},
            "schema of two types": {"tools": [tool(inputSchema={"type": ["object", "null"]})]},
            "php": {"tools": [tool(inputSchema={"type": "object", "properties": [], "required": []},
                                   _meta=[])], "_meta": []},
            "a bad tool": {"tools": [{"description": "no name"}, tool("odd", annotations="none"),
                                     5, tool(description=7)]},
            "no tools": {},
        }.get(self.fault, {"tools": echo})

    def called(self, params):
        text = {"type": "text", "text": ANSWER}
        odd = {"type": "json", "json": {"a": 1}}
        if self.fault == "ends in a call":
            os._exit(3)
        if self.fault == "hangs in a call":
            time.sleep(NEVER)
        return {
            "unknown block": {"content": [odd, text, {"type": "image", "data": "no base64!"}]},
            "large unknown block": {"content": [{"type": "blob", "x": "y" * 5000}, text]},
            "block without type": {"content": [{"text": ANSWER}]},
            "odd annotations": {"content": [{**text, "annotations": {"priority": "high"}}]},
            "text is a number": {"content": [text, {"type": "text", "text": 5}]},
            "content is a string": {"content": ANSWER},
            "content is a block": {"content": text},
            "result is a string": ANSWER,
            "summary": {"content": [{"type": "text", "text": "2 rows"}],
                        "structuredContent": {"rows": [{"id": 9007199254740993}, {"id": "r-78"}]}},
            "told twice": {"content": [{"type": "text", "text": json.dumps({"a": "\u00fc"})}],
                           "structuredContent": {"a": "\u00fc"}},
            "told in a list": {"content": [{"type": "text", "text": "{\"a\": 1}"}, text],
                               "structuredContent": {"result": [{"a": 1}, ANSWER]}},
            "told alone": {"content": [text], "structuredContent": {"result": ANSWER}},
            "only structured": {"structuredContent": [1, 2]},
            "not a number": {"content": [text],
                             "structuredContent": {"x": float("nan"), "y": "NaN"}},
            "is an error": {"content": [{"type": "text", "text": "no such row"}], "isError": True},
            "an error without words": {"content": [], "isError": True},
            "meta is a list": {"content": [text], "_meta": [], "isError": None},
            "huge line": {"content": [{"type": "text", "text": "x" * (17 << 20)}]},
        }.get(self.fault, {"content": [text]})

    def answer(self, m):
        """The message that answers m, None for a notification."""
        method, params = m.get("method"), m.get("params") or {}
        if "id" not in m or not method:
            return None
        reply = {"jsonrpc": "2.0", "id": m["id"]}
        self.calls += method == "tools/call"
        if self.fault == "forgets over its pipes" and self.calls == 1 and self.started < 2:
            return {**reply, "error": {"code": -32000, "message": "gone: never heard of it"}}
        if self.fault == "refuses a call" and method == "tools/call":
            return {**reply, "error": {"code": -32602, "message": "no such thing"}}
        if self.fault == "error is a string" and method == "tools/call":
            return {**reply, "error": "no such thing"}
        if self.fault == "error without an id" and method == "tools/call":
            return {"jsonrpc": "2.0", "id": None,
                    "error": {"code": "E1", "message": "no such thing"}}
        if self.fault == "lists nothing" and method == "tools/list" or method == "server/discover":
            return {**reply, "error": {"code": -32601, "message": "Method not found"}}
        reply["result"] = {"initialize": self.initialized, "tools/list": self.listed,
                           "tools/call": self.called}.get(method, lambda p: {})(params)
        if self.fault == "ids are strings":
            reply["id"] = str(m["id"])
        if self.fault == "no version of JSON-RPC":
            del reply["jsonrpc"]
        if self.fault == "error is null":
            reply["error"] = None
        if self.fault == "method is null":
            reply["method"] = None
        return reply

    def written(self, m, text):
        """How the fault writes a message over the pipes."""
        half = text[:len(text) // 2]
        log = json.dumps({"level": "info", "method": "GET", "id": 3, "error": "none"})
        if self.fault == "half a line" and m.get("method") == "tools/call":
            sys.stdout.write(half)
            sys.stdout.flush()
            os._exit(0)
        if self.fault == "half a line and hangs" and m.get("method") == "tools/call":
            sys.stdout.write(half)
            sys.stdout.flush()
            time.sleep(NEVER)
        if self.fault == "notices before an answer" and m.get("method") != "initialize":
            return "".join(json.dumps(n) + "\n" for n in notices()) + text + "\n"
        return {
            "logs": "%s\n[INFO] got {\"x\": 1}\n\x1b[32mdone\x1b[0m don't {\n%s\n%s\n"
                    % (log, text, log),
            "JSON of another kind": "5\n\"text\"\n[1]\n{}\nnull\n{\"a\":\n%s\n" % text,
            "half a line before": half + "\n" + text + "\n",
            "on the banner's line": "Ready. {now} " + text + " ok\n",
            "two in a line": json.dumps(notices()[0]) + text + "\n",
            "a batch": "[%s,%s]\n" % (json.dumps(notices()[0]), text),
            "byte order mark": "\ufeff" + text + "\r\n",
            "over several lines": json.dumps(json.loads(text), indent=2) + "\n",
            "carriage returns": "loading 1%\rloading 99%\r" + text + "\r",
        }.get(self.fault, text + "\n")


def notices():
    """What a server says before an answer."""
    return [{"jsonrpc": "2.0", "method": "notifications/message",
             "params": {"level": "info", "data": "busy"}},
            {"jsonrpc": "2.0", "method": "notifications/unheard/of", "params": [1]},
            {"jsonrpc": "2.0", "id": "s1", "method": "roots/list"},
            {"jsonrpc": "2.0", "id": "s2", "method": "ping"},
            {"jsonrpc": "2.0", "id": "s3", "method": "sampling/createMessage", "params": {}}]


def over_pipes(animal):
    fault = animal.fault
    if fault == "banner":
        print("Tiny MCP server v1.2.3 is running on stdio", flush=True)
    if fault == "hangs":
        sys.stderr.write("loading\n")
        sys.stderr.flush()
        time.sleep(NEVER)
    if fault == "ends at once" or fault == "comes late" and animal.started < 3:
        sys.exit("Traceback:\n  of many lines\nKeyError: no API_KEY")
    for line in sys.stdin:
        m = json.loads(line)
        a = animal.answer(m)
        if a is not None:
            sys.stdout.write(animal.written(m, json.dumps(a)))
            sys.stdout.flush()
    if fault == "does not end":
        time.sleep(NEVER)


def listen(animal):
    """A port for an animal."""
    import http.server
    fault = animal.fault

    class Far(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *a):
            pass

        def send(self, code, body="", **headers):
            body = body.encode()
            self.send_response(code)
            for name, value in headers.items():
                if value:
                    self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if self.path != "/sse" and fault != "answers elsewhere":
                return self.send(404 if fault == "not found" else 405)
            mine = queue.Queue()
            animal.streams.append(mine)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            if self.path == "/sse":
                event = "" if fault == "old, without names" else "event: endpoint\n"
                mine.put("\ufeff" * (not event) + event + "data: /post?s=%s\n\n" % uuid.uuid4().hex)
            try:
                while True:
                    self.wfile.write(mine.get().encode())
                    self.wfile.flush()
            except OSError:
                pass

        def do_DELETE(self):
            self.send(200)

        def do_POST(self):
            m = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            session, method = self.headers.get("Mcp-Session-Id"), m.get("method")
            if self.path.startswith("/post"):
                if fault == "old, forgets" and method == "tools/call" and animal.calls == 0:
                    animal.calls += 1
                    return self.send(404, "Could not find session")
                if "id" in m and method:
                    animal.streams[-1].put("event: message\ndata: %s\n\n"
                                           % json.dumps(animal.answer(m)))
                return self.send(202, "Accepted")
            headers = {"Content_Type": "application/json"}
            if method == "initialize":
                headers["Mcp_Session_Id"] = uuid.uuid4().hex
                animal.sessions.add(headers["Mcp_Session_Id"])
            if method == "tools/call" and len(animal.sessions) == 1 and fault.startswith("forgets"):
                animal.sessions.add("one was lost")
                animal.sessions.discard(session)
            if method not in ("initialize", None) and fault.startswith("forgets") and \
                    session not in animal.sessions:
                said = {"jsonrpc": "2.0", "id": m.get("id"),
                        "error": {"code": -32001, "message": "kennen wir nicht"}}
                return self.send(*{
                    "forgets with 404": (404, "no such page"),
                    "forgets with 404 and JSON": (404, json.dumps({**said, "id": "server-error"})),
                    "forgets with 400": (400, "Bad Request: No valid session ID provided"),
                    "forgets with 400 and JSON": (400, json.dumps({**said, "id": None})),
                    "forgets with 200": (200, json.dumps(said)),
                    "forgets with 500": (500, json.dumps(said)),
                }[fault], Content_Type="application/json")
            if fault == "a new session each time":
                headers["Mcp_Session_Id"] = uuid.uuid4().hex
            if fault == "wants a key":
                return self.send(401, "<html>\nlog in", Content_Type="text/html")
            animal.starts += method in ("initialize", "server/discover")
            if fault == "comes late" and animal.starts < 4:
                return self.send(503, "starting", Content_Type="text/plain")
            if fault == "is a page":
                return self.send(200, "<html>\n<body>{\"hello\": 1}</body>\n",
                                 Content_Type="text/html")
            if fault == "refuses notices" and "id" not in m:
                return self.send(400, "what?")
            if fault == "hangs" or fault == "hangs in a call" and method == "tools/call":
                time.sleep(NEVER)
            if fault == "fails" and method == "tools/call":
                return self.send(500, json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {
                    "code": -32603, "message": "no such thing"}}), Content_Type="application/json")
            a = animal.answer(m)
            if a is None:
                return self.send(202)
            text = json.dumps(a)
            if fault == "answers elsewhere" and method != "initialize":
                while not animal.streams:
                    time.sleep(.01)
                animal.streams[-1].put("event: message\ndata: %s\n\n" % text)
                return self.send(202)
            if fault == "events that do not end":
                self.send_response(200)
                self.send_header("Content-Type", STREAM)
                self.end_headers()
                self.wfile.write(("data: %s\n" % text).encode())
                self.wfile.flush()
                time.sleep(NEVER)
            if fault == "ends midway" and method == "tools/call":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text[:20].encode())
                self.close_connection = True
                return
            if fault == "wrong ids":
                text = json.dumps({**a, "id": 77})
            if fault == "notices before an answer":
                text = "".join("data: %s\n\n" % json.dumps(n) for n in notices()) + \
                    "data: %s\n\n" % text
                headers["Content_Type"] = "text/event-stream"
            half = text.index(",") + 1
            body, kind = {
                "with a charset": (text, "application/json; charset=UTF-8"),
                "as text": (text, "text/plain"),
                "of no type": (text, None),
                "as a stream, but JSON": (text, STREAM),
                "as JSON, but a stream": ("data: %s\n\n" % text, JSON),
                "byte order mark": ("\ufeff" + text, JSON),
                "over several lines": (json.dumps(a, indent=2), JSON),
                "a batch": ("[%s]" % text, JSON),
                "events with CRLF": ("event: message\r\ndata: %s\r\n\r\n" % text, STREAM),
                "events with CR": ("event: message\rdata: %s\r\r" % text, STREAM),
                "events that are open": ("data: " + text, STREAM),
                "events without a blank": ("data:" + text + "\n\n", STREAM),
                "events of another name": ("event: response\ndata: %s\n\n" % text, STREAM),
                "events with comments": (": hello\n\nretry: 5\nwhat is this\nid: 1\ndata:\n\n"
                                         "data: %s\n\n" % text, STREAM),
                "events over several lines": ("data: %s\ndata: %s\n\n" % (text[:half], text[half:]),
                                              STREAM),
            }.get(fault, (text, headers["Content_Type"]))
            headers["Content_Type"] = kind
            self.send(200, body, **headers)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Far, bind_and_activate=False)
    server.daemon_threads = True
    server.server_bind()

    def serve():
        if fault == "listens late":
            time.sleep(3)
            server.server_activate()
        server.serve_forever()

    if fault != "listens late":
        server.server_activate()
    threading.Thread(target=serve).start()
    return server.server_address[1]


if sys.argv[1] == "http":
    print(*[listen(Animal(fault)) for fault in sys.argv[2:]], flush=True)
    sys.stdin.read()  # until whoever started it is gone
    os._exit(0)
else:
    starts = 1
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a+") as f:
            f.write("x")
            f.seek(0)
            starts = len(f.read())
    over_pipes(Animal(sys.argv[1], starts))
