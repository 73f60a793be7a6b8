"""Building blocks of the schemas of make-reference."""
import json
import re
import subprocess

NUMBER, TEXT, YES_NO, WHOLE = {"type": "number"}, {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
SIZE = {"type": "integer", "minimum": 0}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
TEXTS = {"type": "array", "items": TEXT}


def nullable(schema):
    return {"anyOf": [{"type": "null"}, schema]}


def closed(required, optional=None):
    """An object with these keys and no others."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required),
            "additionalProperties": False}


def several(schema):
    return {"type": "array", "items": schema}


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


def top(title, description, schema, defs=None):
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description, **schema,
            **({"$defs": defs} if defs else {})}


def times(*names):
    return closed({f"{name}_us": NUMBER for name in names})


RECORD = {"version": TEXT, "machine": TEXT, "machine_changes": TEXTS, "sustained": YES_NO}
MOVE = {"track": TEXT, "place": SIZE, "grain": TEXT, "steps": WHOLE, "text": TEXT}
RUN_RECORD = {"seed": WHOLE, "schedule_file": TEXT, "workload": ref("values"), "pattern": TEXT, "knobs": ref("values")}
TYPES = {"number": NUMBER, "share": SHARE, "size": SIZE, "integer": WHOLE, "text": TEXT, "yes_no": YES_NO, "texts": TEXTS}
TABLES = {}  # what `tritax describe fields` says of each record


def use(tritax):
    """Takes the tables of fields of results from the program."""
    run = subprocess.run([tritax, "describe", "fields"], capture_output=True, text=True, check=True)
    TABLES.update({table["record"]: table for table in json.loads(run.stdout)["records"]})


def record(name, required=None, optional=None, place="json"):
    """An object with the fields of a record, and what else stands in it."""
    objects = {}
    for field in TABLES[name]["fields"]:
        if place in field["shows"]:
            schema = TYPES[field["type"]]
            objects.setdefault(field["object"], {})[field["key"]] = field["optional"], {
                "description": field["meaning"], **(nullable(schema) if field["nullable"] else schema)}
    needed, rest = {}, {}
    for key, (may_lack, schema) in objects.pop("", {}).items():
        (rest if may_lack else needed)[key] = schema
    for key, fields in objects.items():
        may_lack = all(one for one, _ in fields.values())
        (rest if may_lack else needed)[key] = closed({field: schema for field, (_, schema) in fields.items()})
    return closed({**needed, **(required or {})}, {**rest, **(optional or {})})


def fields(name):
    """The fields of a record that stand in another object."""
    return record(name)["properties"]


def all_defs():
    return {
        "values": {"description": "fields of a workload or knobs of a pattern, by name; null: the pattern has no such knob",
                   "type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
        "account": {"description": "what the critical path consists of; the parts add up to the time", **record("account")},
        "taxes": record("taxes"),
        "savings": {"description": "what the run would save without each tax; may be negative", **record("savings")},
        "both_accounts": closed({"critical_path": ref("taxes")}, {"counterfactual": ref("savings")}),
        "spread": {"description": "times of other seeds of the arbitration",
                   **closed({"seeds": several(WHOLE), "times_us": several(NUMBER), "relative": NUMBER})},
        "caches": closed({"l2_hit": SHARE, "llc_hit": SHARE, "operand_l2_hit": SHARE, "operand_llc_hit": SHARE, "hbm_bytes": NUMBER, "rows": several(closed(
            {"gpu": SIZE, "die": nullable(SIZE), "buffer": TEXT, "operation": TEXT, "asked": NUMBER, "l2_hit": NUMBER,
             "llc_hit": NUMBER, "hbm_read": NUMBER, "hbm_written": NUMBER}))}),
        "inputs": several(closed({"input": TEXT, "value": TEXT, "effect": NUMBER, "variations": several(closed(
            {"value": TEXT, "time_us": nullable(NUMBER)}, {"obstacle": TEXT}))})),
    }


def defs(*names):
    """These and what they refer to."""
    found = {}
    todo = list(names)
    known = all_defs()
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = known[name]
            todo += re.findall(r'"#/\$defs/(\w+)"', json.dumps(known[name]))
    return dict(sorted(found.items()))
