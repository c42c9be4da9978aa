"""Says which values are valid, as jsonschema (Python) sees it.

Input: lines of {"schema": ..., "values": [...]}. Output: for each a list of true and false. Exits 3 where jsonschema is not there.
"""
import json
import sys

try:
    from jsonschema.validators import Draft202012Validator, validator_for
except ImportError:
    sys.exit(3)

for line in sys.stdin:
    case = json.loads(line)
    validator = validator_for(case["schema"], default=Draft202012Validator)(case["schema"])
    print(json.dumps([validator.is_valid(v) for v in case["values"]]))
