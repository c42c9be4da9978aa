"""The interpreter inside the sandbox: one namespace for all cells of a conversation.

Each line of standard input is a JSON object: {"code": TEXT, "cell": ID} runs a cell,
{"interrupt": true} raises KeyboardInterrupt in the one that runs. Each line of standard output is
one too: {"out": TEXT} as the cell prints, {"done": true, "cell": ID, "files": [...]} at its end.
What must stay true: whatever the cell writes to file descriptors 1 and 2, by itself or through a
child, comes as "out"; the value of a last expression is printed; an error is a traceback in "out"
and ends nothing but its cell.
"""
import ast
import codecs
import json
import os
import queue
import signal
import site
import sys
import threading
import traceback

settings = json.loads(sys.argv[1])
for folder in settings["sites"] or []:
    site.addsitedir(folder)
try:
    import resource

    for name, value in settings["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]  # nobody may raise it: one that is lower stays
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
except ImportError:  # Windows has no such limits
    pass


def restrict():
    """Lets this process and its children write to their own folders alone (Landlock), whatever
    else a mistake would mount. A kernel without it has version -1."""
    try:
        import ctypes
    except ImportError:
        return
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(444, None, 0, 1)
    if version < 1:
        return
    read, write = 0b1101, 0b1111111110010  # execute, read, list; write, remove, make
    write |= (version > 1) << 13 | (version > 2) << 14  # rename, truncate
    rights = (ctypes.c_uint64 * 3)(read | write, 0, 3 if version > 5 else 0)  # 3: scopes
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = call(444, ctypes.byref(rights), size, 0)
    everything = read | write & ~(1 << 6 | 1 << 11)  # but devices
    for path, may in (("/", read), ("/dev/null", read & ~8 | 2), ("/tmp", everything),
                      ("/dev/shm", everything), ("/mnt/data", everything)):
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = may.to_bytes(8, sys.byteorder) + folder.to_bytes(4, sys.byteorder)
        if call(445, rules, 1, rule, 0):
            raise OSError(ctypes.get_errno(), "landlock_add_rule " + path)
        os.close(folder)
    if call(446, rules, 0):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(rules)


def keep_children():
    """What a cell's processes leave behind becomes this process's (PR_SET_CHILD_SUBREAPER)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (ImportError, AttributeError):
        pass


def end_children():
    """No process outlives its cell."""
    while True:
        found = []
        for thread in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{thread}/children") as file:
                    found += map(int, file.read().split())
            except OSError:  # it has ended
                pass
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:  # it was waited for
                pass


if settings["restrict"]:
    restrict()
keep_children()
frames = os.fdopen(os.dup(1), "wb", buffering=0)
requests = os.fdopen(os.dup(0), "rb")
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
reading, writing = os.pipe()
os.dup2(writing, 1)
os.dup2(writing, 2)
lock = threading.Lock()
cells = queue.Queue()
MARK = os.urandom(16)  # ends the output of a cell in the pipe
flushed = threading.Event()
running = False


def send(message):
    with lock:
        frames.write(json.dumps(message).encode() + b"\n")


def pass_output():
    decoder, left = codecs.getincrementaldecoder("utf-8")("replace"), b""
    while True:
        left += os.read(reading, 65536)
        before, mark, behind = left.partition(MARK)
        if mark:
            text, left = decoder.decode(before, True), behind
        else:  # the start of a mark may be at the end
            keep = next((n for n in range(len(MARK) - 1, 0, -1) if left.endswith(MARK[:n])), 0)
            text, left = decoder.decode(left[: len(left) - keep]), left[len(left) - keep :]
        if text:
            send({"out": text})
        if mark:
            decoder.reset()
            flushed.set()


def take_requests():
    for line in requests:
        request = json.loads(line)
        if "code" in request:
            cells.put(request)
        elif running:
            os.kill(os.getpid(), signal.SIGINT)
    os._exit(0)


def run(code, names):
    try:
        tree = ast.parse(code, "<cell>")
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(last, "<cell>", "eval"), names)
            if value is not None:
                names["_"] = value
                print(repr(value))
    except SystemExit:
        pass
    except BaseException as error:
        shown = error.__traceback__
        while shown is not None and shown.tb_frame.f_code.co_filename != "<cell>":
            shown = shown.tb_next
        traceback.print_exception(type(error), error, shown)


def pictures(count):
    """Saves what matplotlib has drawn and not shown."""
    plots, names = sys.modules.get("matplotlib.pyplot"), []
    if plots is None:
        return names
    try:
        for number in plots.get_fignums():
            name = f"figure-{count + len(names) + 1}.png"
            plots.figure(number).savefig(name)
            names.append(name)
        plots.close("all")
    except Exception as error:
        print(f"the figures could not be saved: {error}")
    return names


def main():
    global running
    threading.Thread(target=pass_output, daemon=True).start()
    threading.Thread(target=take_requests, daemon=True).start()
    names, drawn, cell = {"__name__": "__main__"}, 0, ""
    send({"ready": True})
    while True:
        try:
            request = cells.get()
            cell = request["cell"]
            running = True
            try:
                run(request["code"], names)
                files = pictures(drawn)
                if os.path.exists("/proc/self/task"):
                    end_children()
            finally:
                running = False
            drawn += len(files)
            sys.stdout.flush()
            sys.stderr.flush()
            flushed.clear()
            os.write(writing, MARK)
            flushed.wait()
            send({"done": True, "cell": cell, "files": files})
        except KeyboardInterrupt:  # it came when the cell had just ended
            send({"done": True, "cell": cell, "files": []})


main()
