"""Function calling in the training dialogues: random names and schemas, questions, results and answers."""

import json

from intents import lines
from names import ADJECTIVES, ITEMS, WORDS
from phrases import expand
from topics import CITY, FREE_NAMES, FUNCS, ITEM, NO_DESCRIPTION, NUMERIC, PERSON, UNITS, VALUE

VERBS = (
    "get fetch find lookup query read show check load request search retrieve obtain give tell ask display look_up"
    .split()
)
ACTIONS = "set start control change make switch turn run create begin do".split()
ENDS = [
    "info",
    "data",
    "now",
    "tool",
    "service",
    "lookup",
    "api",
    "for",
    "in",
    "by_name",
    "of",
    "today",
    "current",
    "status",
    "v2",
    "at",
]


def camel(s):
    a = s.split("_")
    return a[0] + "".join(x.capitalize() for x in a[1:])


def free_word(r):
    return r.choice(
        r.choice([WORDS, WORDS, ITEMS, ADJECTIVES, ENDS, CITY + PERSON + ITEM, FUNCS[r.choice(list(FUNCS))][0]])
    )


def function_name(r, topic):
    if FREE_NAMES[0] and r.random() < FREE_NAMES[0]:  # can only be copied, never guessed
        parts = [r.choice(VERBS + ACTIONS + WORDS[:120])] + [free_word(r) for _ in range(r.choice([1, 1, 1, 2, 2]))]
        if r.random() < 0.3:
            parts[-1] = r.choice(FUNCS[topic][0])
        name = "_".join(parts).replace(" ", "_")
        return camel(name) if r.random() < 0.3 else name
    noun, verb = r.choice(FUNCS[topic][0]), r.choice(ACTIONS if topic in ("timer", "light", "play") else VERBS)
    if r.random() < 0.12:
        noun = (
            r.choice(["current", "local", "my", "new", "simple", "fast", "city", "best", "item", "home"]) + "_" + noun
        )
    if topic in ("weather", "time", "population") and r.random() < 0.08:
        noun = r.choice(["city", "town", "place", "current"]) + "_" + noun
    name = r.choice(
        [f"{verb}_{noun}"] * 6
        + [
            noun,
            f"{noun}_{r.choice(ENDS)}",
            f"{verb}_{noun}_{r.choice(ENDS)}",
            f"{noun}_{verb}",
            f"{r.choice(WORDS)}_{noun}",
        ]
    )
    x = r.random()
    return camel(name) if x < 0.25 else name if x < 0.95 else name.replace("_", "-")


class Function:
    """A function as the developer message offers it."""

    def __init__(self, r, topic, held_names):
        self.topic, args = topic, FUNCS[topic][1]
        self.name = function_name(r, topic)
        while self.name in held_names:
            self.name = function_name(r, topic)
        self.args = []
        for _, names in args:
            n = r.choice([n for n in names if n not in self.args])
            if FREE_NAMES[0] and r.random() < FREE_NAMES[0] * 0.7:
                n = r.choice(
                    [free_word(r), free_word(r), r.choice(ADJECTIVES) + "_" + n, n + "_" + free_word(r)]
                ).replace(" ", "_")
            self.args.append(n if n not in self.args else n + "_2")
        props = {}
        for (kind, _), n in zip(args, self.args):
            props[n] = {
                "type": (
                    "number" if kind in NUMERIC and r.random() < 0.6 else "integer" if kind in NUMERIC else "string"
                )
            }
            if kind == "onoff" and r.random() < 0.6:
                props[n]["enum"] = ["on", "off"]
            if r.random() < 0.5:
                what = n.replace("_", " ")
                props[n]["description"] = r.choice(
                    [
                        f"The {what}.",
                        f"The {what}",
                        what.capitalize(),
                        f"{what} to use",
                        f"Name of the {what}",
                        f"the name of the {what}",
                        f"for example {VALUE[kind](r)}",
                        f"The {what}, e.g. {VALUE[kind](r)}",
                        "What to look for",
                        "How many",
                        f"The {what} name",
                        f"The city and state, e.g. {VALUE[kind](r)}, CA",
                    ]
                )
        self.unit = None
        if topic == "weather" and r.random() < 0.3:
            self.unit = r.choice(["unit", "format", "units", "scale"])
            props[self.unit] = {"type": "string", "enum": ["celsius", "fahrenheit"]}
            if r.random() < 0.5:
                props[self.unit]["default"] = "celsius"
            if r.random() < 0.3:
                props[self.unit]["description"] = r.choice(
                    ["The unit of the temperature", "Temperature unit", "celsius or fahrenheit"]
                )
        self.parameters = {"type": "object", "properties": props, "required": list(self.args)}
        plain = any(n in self.name.lower() for n in FUNCS[topic][0])  # the name alone says what it does
        self.description = "" if plain and r.random() < NO_DESCRIPTION[0] else r.choice(lines(FUNCS[topic][3]))


def ask_function(r, f, held):
    """-> (question, arguments, values). `held` holds (topic, value) pairs that are kept for the test."""
    kinds = [k for k, _ in FUNCS[f.topic][1]]
    while True:
        vals = [VALUE[k](r) for k in kinds]
        if len(set(map(str, vals))) == len(vals) and not any(
            (f.topic, str(v)) in held for v in vals if not isinstance(v, int)
        ):
            break
    q = expand(r, r.choice(lines(FUNCS[f.topic][2])))
    for i, v in enumerate(vals):
        q = q.replace(f"${i}", str(v))
    args = dict(zip(f.args, vals))
    if f.unit and r.random() < 0.35:
        args[f.unit] = r.choice(list(UNITS))
        q = q.rstrip("?.!") + " in " + args[f.unit]
    if r.random() < 0.55:
        q += (
            "?"
            if q.split()[0].lower()
            in ("what", "how", "is", "do", "will", "can", "where", "which", "what's", "does", "could", "should")
            else r.choice([".", "", "!", "?"])
        )
    return q, args, vals


def show(v):
    return {True: "yes", False: "no", None: "none"}.get(v, v) if isinstance(v, bool) or v is None else v


def function_result(r, f, vals):
    """-> (what the tool returns, the answer built from it). JSON becomes `key value, key value`."""
    start = FUNCS[f.topic][5]
    for i, v in enumerate(vals):
        start = start.replace(f"${i}", str(v))
    what = f"The {r.choice(FUNCS[f.topic][0][:1]).replace('_', ' ')} for {vals[0]}:"
    if r.random() < 0.04:
        d = {
            r.choice(["error", "message"]): r.choice(
                [
                    "not found",
                    "no network",
                    "service not available",
                    "unknown place",
                    "timeout",
                    "try again later",
                    "server is down",
                    "not available",
                ]
            )
        }
        return (
            json.dumps(d),
            (start if start.endswith(":") else what) + " " + ", ".join(f"{k} {v}" for k, v in d.items()) + ".",
        )
    if FUNCS[f.topic][4] is None:
        d = r.choice(
            [{"ok": True}, {"done": True}, {"status": "done"}, {"status": "ok"}, {"success": True}, {"result": "ok"}]
        )
        return (
            r.choice(
                [
                    json.dumps(d),
                    json.dumps(d),
                    "ok",
                    "done",
                    "OK",
                    '"ok"',
                    "success",
                    json.dumps(d, separators=(",", ":")),
                    "started",
                    "true",
                ]
            ),
            start,
        )
    d, plain = FUNCS[f.topic][4](r)
    x = r.random()
    if x < 0.3:
        text, say = r.choice([plain, plain, plain, json.dumps(plain), plain + "."]), plain
    else:
        d = list(d.items())
        if r.random() < 0.25:
            d.insert(r.choice([0, len(d)]), (f.args[0], vals[0]))
        if r.random() < 0.08:
            d.append((r.choice(["ok", "success"]), True))
        if r.random() < 0.3:
            r.shuffle(d)
        text = json.dumps(dict(d), ensure_ascii=False, separators=(",", ":") if r.random() < 0.25 else None)
        say = ", ".join(f"{k} {show(v)}" for k, v in dict(d).items())
    return text, f"{start} {say}."
