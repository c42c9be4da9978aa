"""Compares masks with those of llguidance, an independent implementation.

Input: a line with all tokens in hex, then lines of {"schema", "prefix": ids, "mask": base64 of the bits, "done"}.
Prints what differs for each schema and, at the end, counts. What llguidance allows and we do not is counted only: our
spelling is one of many. One difference is known and left out: it wants DEL (0x7f) escaped in strings, which RFC 8259 does not.
Exits 3 where llguidance is not there, 1 where a mask differs.
"""
import base64
import json
import sys

try:
    from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
except ImportError:
    sys.exit(3)

lines = open(sys.argv[1], encoding="utf-8")
head = json.loads(next(lines))
tokens = [bytes.fromhex(t) for t in head]


class Vocabulary:
    eos_token_id = len(tokens)
    bos_token_id = None
    special_token_ids = [len(tokens)]

    def __init__(self):
        self.tokens = tokens + [b"<|end|>"]
        self.ids = {t: i for i, t in enumerate(tokens)}

    def __call__(self, text):
        return [self.ids[bytes([b])] for b in text]


tokenizer = LLTokenizer(TokenizerWrapper(Vocabulary()), n_vocab=len(tokens) + 1, eos_token=len(tokens))
compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
every = (1 << len(tokens)) - 1 - sum(1 << i for i, t in enumerate(tokens) if b"\x7f" in t)
masks = same = forced = inside = faults = refused = 0
seen = {}
for line in lines:
    case = json.loads(line)
    schema = json.dumps({} if case["schema"] is True else case["schema"])
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(schema, overrides=compact), log_level=0)
    if matcher.is_error():
        if schema not in seen:
            print("llguidance refuses", schema[:150], matcher.get_error().splitlines()[0][:150])
            refused += 1
        seen[schema] = "refused"
        continue
    why = ""
    prefix = b"".join(tokens[i] for i in case["prefix"])
    if b"\x7f" in prefix:
        continue
    taken = matcher.try_consume_tokens(case["prefix"])
    masks += 1
    if taken < len(case["prefix"]):
        why = f"after {prefix!r} it takes only {taken} of {len(case['prefix'])} tokens"
    else:
        ours = int.from_bytes(base64.b64decode(case["mask"]), "little") & every
        theirs = int.from_bytes(matcher.compute_bitmask(), "little") & every
        more = []
        if ours & ~theirs:
            # Where bytes are forced its mask holds one spelling of them, but it takes others.
            allowed = bin(ours & ~theirs)[:1:-1]
            more = [i for i, bit in enumerate(allowed) if bit == "1" and matcher.validate_tokens([i]) == 0]
            forced += not more
        if more:
            why = f"after {prefix!r} we alone allow {len(more)} of {ours.bit_count()} tokens: {[tokens[i] for i in more[:4]]}"
        elif case["done"] and not matcher.is_accepting():
            why = f"after {prefix!r} we alone may end"
        elif ours == theirs:
            same += 1
        elif not ours & ~theirs:
            inside += 1
    if why:
        faults += 1
        if not seen.get(schema):
            print("DIFFERS: ", schema[:150], "|", why)
        seen[schema] = why
    seen.setdefault(schema, "")
print(
    f"{len(seen)} schemas, {refused} refused by llguidance; {masks} masks: {same} equal, {inside} inside llguidance's, "
    f"{forced} equal but for other tokens of forced text, {faults} differ"
)
sys.exit(1 if faults else 0)
