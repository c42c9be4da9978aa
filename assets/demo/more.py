"""More ways to ask, used in later training phases: looser, more colloquial sentences for every intent.

The same grammar as in the facts_*.py files; parts a to c came with the second phase, d to f with the sixth, g in the
seventh, h in the ninth. Part i, for the tenth, is in asked_*.txt: one way to ask a line, under the intent's name.
"""

import glob
import os

import more_a
import more_b
import more_c
import more_d
import more_e
import more_f
import more_g
import more_h
from intents import INTENTS, MACROS, lines
from phrases import OTHER_Q

MACROS.update(
    {
        "wish": (
            "i want|i'd like|i would like|i need|i wish|we need|i'm hoping for|give me|let me have|i prefer|i could"
            " use"
        ),
        "how": (
            "how|how do i do that|what do i do|any idea|what now|is that possible|can i|what should i do|how does "
            "that go|help"
        ),
        "canit": (
            "can it|could it|can i make it|is it able to|will it|does it know how to|would it|am i able to make "
            "it|can ossrun"
        ),
        "user": (
            "my colleague|my boss|my friend|my wife|my husband|the intern|our team|my brother|a student|the "
            "customer|my son|my daughter|a coworker|my neighbor"
        ),
        "bad": "annoying|terrible|bad|too much|a problem|a pity|not good|no good|stupid|not what i want",
        "doc": "document|pdf|report|book|article|essay|contract|transcript|manual|log file|source file|paper|thesis",
    }
)

PARTS = {"a": more_a, "b": more_b, "c": more_c, "d": more_d, "e": more_e, "f": more_f, "g": more_g, "h": more_h}


def asked():
    """-> intent (or "other") -> its lines in asked_*.txt"""
    found, name = {}, ""
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "asked_*.txt"))):
        with open(path) as f:
            for line in map(str.strip, f):
                if line.startswith("## "):
                    name = line[3:]
                elif line and not line.startswith("# "):
                    found.setdefault(name, []).append(line)
    return found


def add(parts):
    """Add the questions of these parts, for example "abci", to the intents, and those of "other" to OTHER_Q."""
    for p in parts:
        if p == "i":
            for name, text in asked().items():
                (OTHER_Q if name == "other" else INTENTS[name]["q"]).extend(text)
            continue
        for name, text in PARTS[p].MORE.items():
            INTENTS[name]["q"] += lines(text)
