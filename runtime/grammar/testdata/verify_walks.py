"""Judges what the grammar generates by jsonschema, an independent implementation.

Input: a line with the formats that are held, then lines of {"schema": ..., "texts": [...]}. Prints the first faults and exits 1 if a text is no JSON or not valid. Exits 3
where jsonschema is not there. Formats are checked as far as jsonschema can without further packages.
"""
import json
import re
import sys

try:
    from jsonschema import Draft202012Validator, FormatChecker
except ImportError:
    sys.exit(3)

texts = faults = unread = 0
lines = open(sys.argv[1], encoding="utf-8")
held = set(json.loads(next(lines)))
formats = FormatChecker(formats=())
formats.checkers = {k: v for k, v in Draft202012Validator.FORMAT_CHECKER.checkers.items() if k in held}
for line in lines:
    case = json.loads(line)
    schema = case["schema"]
    validator = Draft202012Validator(schema, format_checker=formats)
    for text in case["texts"]:
        texts += 1
        try:
            value = json.loads(text)
        except ValueError as e:
            problem = str(e)
        else:
            try:
                problem = next((e.message for e in validator.iter_errors(value)), None)
            except re.error:  # an expression that Python does not know
                unread += 1
                break
        if problem:
            faults += 1
            if faults <= 10:
                print(json.dumps(schema)[:300], text[:300], problem[:200], sep="\n  ")
print(f"{texts} texts, {faults} faults, {unread} schemas that Python cannot read")
sys.exit(1 if faults else 0)
