"""More ways to ask, used from the second training phase on: looser, more colloquial sentences for every intent.

The same grammar as in the facts_*.py files; importing this adds the lines of more_a.py to more_c.py to the whole
questions of the intents.
"""

import more_a
import more_b
import more_c
from intents import INTENTS, MACROS, lines

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

for _part in (more_a, more_b, more_c):
    for _name, _text in _part.MORE.items():
        INTENTS[_name]["q"] += lines(_text)
