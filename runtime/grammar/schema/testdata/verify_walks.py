"""Judges what the grammar generates by jsonschema, an independent implementation.

Input: a line with the formats that are held, then lines of {"schema": ..., "texts": [...]}. Prints
the first faults and exits 1 if a text is no JSON or not valid. Exits 3 where jsonschema is not
there. Formats are checked as far as jsonschema can without further packages.
"""
import json
import re
import sys
from types import SimpleNamespace
from fractions import Fraction

try:
    from jsonschema import Draft202012Validator, FormatChecker, _keywords
    from jsonschema.validators import validator_for
except ImportError:
    sys.exit(3)


def number(text):
    """A number with a point or an exponent, exact: float would round it, 1e17+0.2 to an integer."""
    exact = Fraction(text)
    return exact.numerator if exact.denominator == 1 else exact


# ECMA 262's \\w, \\d and \\s but for a few spaces; its . and $ see other line ends than Python's
_keywords.re = SimpleNamespace(search=lambda pattern, text: re.search(pattern, text, re.ASCII))
LINE_ENDS = re.compile(r"[\u2028\u2029]|\\[rn]")

texts = faults = unread = 0
lines = open(sys.argv[1], encoding="utf-8")
held = set(json.loads(next(lines)))
formats = FormatChecker(formats=())
formats.checkers = {k: v for k, v in Draft202012Validator.FORMAT_CHECKER.checkers.items() if k in held}
for line in lines:
    case = json.loads(line, parse_float=number)
    schema = case["schema"]
    of = validator_for(schema, default=Draft202012Validator)
    validator = of(schema, format_checker=formats)
    for text in case["texts"]:
        texts += 1
        try:
            value = json.loads(text, parse_float=number)
        except ValueError as e:
            problem = str(e)
        else:
            try:
                problem = next((e.message for e in validator.iter_errors(value)), None)
            except re.error:  # an expression that Python does not know
                unread += 1
                break
        if problem and not LINE_ENDS.search(text):
            faults += 1
            if faults <= 10:
                print(json.dumps(schema, default=str)[:300], text[:300], problem[:200], sep="\n  ")
print(f"{texts} texts, {faults} faults, {unread} schemas that Python cannot read")
sys.exit(1 if faults else 0)
