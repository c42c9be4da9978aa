"""Judges sampled turns by openai-harmony, OpenAI's own parser, in its strict mode.

Input: a line with the path of o200k_base.tiktoken, then lines of token ids, what followed <|start|>assistant. Prints the first faults and exits 1 if it refuses one. Exits 3
where openai-harmony is not there.
"""
import json
import os
import sys

try:
    import openai_harmony
except ImportError:
    sys.exit(3)

lines = open(sys.argv[1], encoding="utf-8")
os.environ["TIKTOKEN_ENCODINGS_BASE"] = os.path.dirname(json.loads(next(lines)))
encoding = openai_harmony.load_harmony_encoding(openai_harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
turns = faults = 0
for line in lines:
    turns += 1
    ids = json.loads(line)
    try:
        messages = encoding.parse_messages_from_completion_tokens(ids, openai_harmony.Role.ASSISTANT)
        for m in messages:
            if m.author.role != openai_harmony.Role.ASSISTANT or m.channel not in ("analysis", "commentary", "final"):
                raise ValueError(f"a message of {m.author.role} on {m.channel}")
    except Exception as e:
        faults += 1
        if faults <= 10:
            print(e, encoding.decode(ids)[:300], sep="\n  ")
print(f"{turns} turns, {faults} refused")
sys.exit(1 if faults else 0)
