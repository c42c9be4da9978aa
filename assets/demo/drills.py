"""Dense practice in copying: functions that say nothing about any subject, called with several names at once.

" Lisbon" in a question is one token, after a quote in JSON it is "Lis" and "bon": the spelling of every name has to be
learned, and a turn that holds five names teaches five. Names of functions and of their arguments are random words, so
that they, too, can only be copied.
"""

from names import ADJECTIVES, COMMON, ITEMS, PEOPLE, PLACES, WORDS
from topics import ROOMS, SONGS

FRAMES = (
    "{}|please {}|use {}|take {}|i need {}|do it with {}|it is about {}|run it for {}|the values are {}|now {}|{} please|"
    "what about {}|send {}|first {}|can you use {}|give me the result for {}|what do you get for {}|try {}|and {}|"
    "call it with {}|check {} for me|look at {}|tell me more about {}|here they are: {}|put in {}|one more: {}"
).split("|")
JOINS = (", ", " and ", ", ", " with ", " then ", " or ", " and then ", " to ", " from ", " in ", " for ", " of ")
KINDS = ((PLACES, 5), (PEOPLE, 3), (ITEMS, 3), (WORDS, 4), (ROOMS, 1), (SONGS, 1), (ADJECTIVES, 1), (COMMON, 1))


def value(r):
    if r.random() < 0.08:
        return r.randint(1, r.choice([20, 999, 99999]))
    return r.choice(r.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0])


class Drill:
    """Looks like a Function of functions.py to the developer message."""

    topic = "copy"

    def __init__(self, r, word):
        part = lambda: word(r).replace(" ", "_")
        name = "_".join(part() for _ in range(r.choice([1, 2, 2, 2, 3])))
        a = name.split("_")
        self.name = a[0] + "".join(x.capitalize() for x in a[1:]) if r.random() < 0.25 else name
        self.args = []
        for _ in range(r.choice([1, 2, 3, 4, 5])):
            n = part()
            self.args.append(n if n not in self.args else f"{n}_{len(self.args)}")
        self.description = " ".join(word(r) for _ in range(r.choice([1, 2, 3, 5]))).replace("_", " ").capitalize()
        self.parameters = {
            "type": "object",
            "properties": {n: {"type": "string"} for n in self.args},
            "required": list(self.args),
        }


def ask_drill(r, d):
    """-> (question, arguments)"""
    vals = []
    while len(vals) < len(d.args):
        v = value(r)
        if v not in vals:
            vals.append(v)
    text, join = str(vals[0]), r.choice(JOINS)
    for v in vals[1:]:
        text += (r.choice(JOINS) if r.random() < 0.3 else join) + str(v)
    q = r.choice(FRAMES).format(text) + r.choice(["", "", ".", "?", "!"])
    if r.random() < 0.4:
        q = q[0].upper() + q[1:]
    return q, dict(zip(d.args, vals))
