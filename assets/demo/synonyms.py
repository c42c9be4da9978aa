"""Words that stand for each other in questions: whatever the grammars say, a user may say it with another word.

The grammars are in lower case, people write names and short forms in capitals: `proper` does that.
"""

import re

GROUPS = """
delete, remove, erase, wipe, get rid of, kick out, scrap, nuke, trash
download, fetch, pull, grab, obtain, transfer
show, display, list, print, reveal, give me
stop, halt, cancel, abort, interrupt, end, kill
quit, exit, leave, close, get out of
start, launch, begin, fire up, boot, kick off, spin up, bring up
change, alter, modify, adjust, set, tweak, tune
set up, configure, prepare, get working
choose, pick, select, decide on
limit, cap, restrict, bound, constrain, put a ceiling on
fast, quick, speedy, rapid, snappy
faster, quicker, speedier, more quickly
slow, sluggish, laggy, crawling, sloooow
big, large, huge, giant, bulky, hefty
bigger, larger, greater
small, little, tiny, mini, compact
smaller, lighter, littler
computer, machine, pc, laptop, box, rig, workstation, desktop, notebook
gpu, graphics card, video card, graphics chip, card
cpu, processor
memory, ram
gigabytes, gigs, gb, gig
folder, directory, dir, path, location
file, document
files, documents
disk, drive, ssd, hard drive, hdd, storage
answer, reply, response, output
answers, replies, responses, outputs
question, prompt, query, message, request
think, reason, ponder, reflect, deliberate
thinking, reasoning, pondering, deliberation
thoughts, reasoning, chain of thought, thought process, thinking
conversation, chat, talk, dialog, discussion, session, thread
earlier, previous, old, past, former
shortcut, hotkey, keystroke
flag, option, parameter, setting, argument, knob
command, verb, subcommand, instruction
save, store, keep, preserve, persist
remember, keep in mind, recall
colleagues, coworkers, teammates, workmates
people, users, persons, folks
app, application, program, software
error, failure, problem, issue, trouble
crashes, dies, breaks, fails, goes down
broken, damaged, corrupted, corrupt, faulty
measure, determine, find out, check, test
check, verify, inspect, examine, make sure
use, employ, utilize, work with
want, need, would like, wish, require
wants, needs, would like, demands
permanently, for good, forever, always
automatically, by itself, on its own, without me
enough, sufficient, adequate, plenty
allowed, permitted, ok, possible
possible, feasible, doable, supported, an option
safe, secure, harmless
dangerous, risky, unsafe
private, confidential, secret
difference, distinction
better, superior, smarter, nicer
explain, describe, clarify, tell me about
supports, handles, understands, knows
support, handle, understand, accept
connect, hook up, link, attach, plug in
random, arbitrary, unpredictable
identical, same, equal, unchanged
shorter, briefer, more concise
short, brief, concise
long, lengthy, extended
colors, colours, theme
write, type, enter, compose
wrong, incorrect, bad, false
several, multiple, many, a couple of, a few
at once, simultaneously, in parallel, at the same time, concurrently
after, once, as soon as
look at, view, see, inspect
run, execute, start
again, once more, another time
hide, conceal, suppress
quickly, fast, in a hurry, swiftly
currently, right now, at the moment, at present
website, web page, site
password, secret, key, credential
without, w/o, lacking, minus
maximum, max, upper limit, highest
minimum, min, least, lowest
number of, amount of, count of, how many
phone, mobile, smartphone
default, usual, preset
locally, on my machine, at home, on my own hardware
"""

_TO = {}
for line in GROUPS.strip().split("\n"):
    words = line.split(", ")
    for w in words:
        _TO.setdefault(w, []).extend(x for x in words if x != w)
_ANY = re.compile(r"\b(" + "|".join(re.escape(w) for w in sorted(_TO, key=len, reverse=True)) + r")\b", re.I)


def other_words(r, s, p):
    """Each word of GROUPS becomes another of its group with probability p; those of a
    command or a flag stay."""

    def swap(m):
        part = s[: m.start()].endswith(("-", "/", "_", "`", "@", ".", "ossrun ", "ollama "))
        return m[0] if part or r.random() >= p else r.choice(_TO[m[0].lower()])

    return _ANY.sub(swap, s)


NAMES = """
AI API APIs CPU GPU GPUs RAM VRAM PC HTTP HTTPS URL URLs POST GET CORS TLS SSL JSON YAML CSV PDF SDK CLI IDE MCP LAN
SSD USB WSL AMD NVIDIA Intel Radeon Ubuntu Debian Fedora Linux Windows Mac MacBook Apple Python Docker Podman
Ollama Cursor Codex OpenAI Anthropic Llama Mistral Qwen Gemma DeepSeek Emacs Vim Zed LangChain LlamaIndex Grafana
Prometheus Kubernetes Markdown Metal CUDA ROCm RTX ARM JavaScript Java Rust Bash PowerShell Homebrew GitHub Harmony
Apache TUI GUI UI NAS VPN DNS LLM LLMs ID IDs SQL HTML Esc Enter Tab Ctrl Alt Shift GB MMLU GPQA vLLM GGUF MXFP4 KV FP8
"""
_PROPER = {n.lower(): n for n in NAMES.split()} | {"raspberry pi": "Raspberry Pi", "claude code": "Claude Code"}
_PROPER |= {"hugging face": "Hugging Face", "lm studio": "LM Studio", "open webui": "Open WebUI", "continue.dev": "Continue"}
_NAME = re.compile(r"(?<![-/_`@.{])\b(" + "|".join(re.escape(w) for w in sorted(_PROPER, key=len, reverse=True)) + r")\b(?![-_/=])")


def proper(s):
    """GPU, HTTP, Ubuntu as people who care write them; flags and paths stay."""
    return _NAME.sub(lambda m: _PROPER[m[0]], s)
