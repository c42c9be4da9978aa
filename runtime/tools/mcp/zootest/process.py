"""The animals of zoo.json that are processes:  python3 -I -S process.py FAULT"""
import json
import sys
import time

fault = sys.argv[1]
if fault == "hangs":
    print("loading", file=sys.stderr, flush=True)
    time.sleep(3600)
if fault == "ends at once":
    sys.exit("Traceback:\n  of many lines\nKeyError: no API_KEY")
for line in sys.stdin:
    m = json.loads(line)
    method = m.get("method")
    if "id" not in m or not method:
        continue
    if method == "tools/call" and fault == "ends in a call":
        sys.exit(3)
    if method == "tools/call" and fault == "hangs in a call":
        time.sleep(3600)
    reply = {"jsonrpc": "2.0", "id": m["id"], "result": {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "zoo", "version": "1"}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "the answer of echo"}]},
    }.get(method, {})}
    print(json.dumps(reply), flush=True)
if fault == "does not end":
    time.sleep(3600)
