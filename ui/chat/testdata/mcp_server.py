"""An MCP server that misbehaves, for the tests:  python3 mcp_server.py [PORT]

It is written against the protocol with Python's own library only. Without a port it speaks over
its pipes, with one streamable HTTP at /mcp of 127.0.0.1; port 0 is any, printed on stdout.
"""
import http.server
import json
import os
import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it does not end when it is asked to
changed = False


def slow(until):
    while not os.path.exists(until):
        time.sleep(.02)
    return "slow is done"


def hang(until=None):
    while True:
        time.sleep(1000)


def die(until):
    os._exit(3)


def change(until):
    """Says that the tools are others now, and does not list them any more."""
    global changed
    changed = True
    tell({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return "changed"


tools = {f.__name__: f for f in (slow, hang, die, change)}


def answer(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "bad", "version": "1"}}
    if method == "tools/list":
        if changed:
            hang()
        return {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}}
                          for name in tools]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": tools[params["name"]](params["arguments"]["until"])}]}
    return {}


def tell(message):
    print(json.dumps(message), flush=True)


def reply(request):
    return {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}


class Port(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(reply(request)).encode() if "id" in request else b""
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", "one")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def do_DELETE(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


if len(sys.argv) > 1:
    port = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Port)
    print(port.server_port, flush=True)
    port.serve_forever()
else:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            tell(reply(message))
