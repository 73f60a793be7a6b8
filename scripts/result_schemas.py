"""Schemas of the JSON of all commands but simulate, advise, explain and validate, and commands that test them."""
import json
import re
import subprocess
import tempfile
from pathlib import Path

from schema_parts import (NUMBER, RECORD, RUN_RECORD, SHARE, SIZE, TEXT, TEXTS, WHOLE, YES_NO, closed, defs, fields, nullable, record,
                          ref, several, top)

VERSION = {"version": TEXT}
INTERRUPTED = {"interrupted": YES_NO}
ANY_RECORD = {**RECORD, **RUN_RECORD}  # of a schedule file or a workload, with a machine or without
STANDING = {"description": "how far predictions of this kind were off: of the time of the best, and of its ratio to the rival; "
                           "null: nothing comparable was measured",
            **closed({"band": nullable(NUMBER), "ratio_band": nullable(NUMBER), "source": TEXT, "cautions": TEXTS})}
COMPARED = {"description": "as a line of scenarios/compared.csv", **closed(
    {"set": TEXT, "gpu": TEXT, "workload": TEXT, "of": {"enum": ["own", "library", "own/library"]}, "count": SIZE,
     "off": several(NUMBER), "problems": TEXT})}


def schema(name, /, **keys):
    return closed({"schema": {"const": f"tritax.{name}"}, **keys})


def taxonomy():
    pattern = record("taxonomy", optional=ANY_RECORD)
    point = closed({"workload": ref("values"), "patterns": several(pattern), "left_out": TEXTS, "standing": STANDING,
                    **fields("answered")},
                   {"at": TEXT, "refusal": TEXT})
    crossover = closed({"above": TEXT, "up_to": TEXT, "equal_at": nullable(NUMBER), "from": TEXT, "to": TEXT, "tie_before": YES_NO,
                        "tie_behind": YES_NO})
    return top("tritax taxonomy --json", "What every pattern pays, at one problem or along a sweep.", schema(
        "taxonomy/1", **VERSION, selector=TEXT, sweep=nullable(TEXT), points=several(point), crossovers=several(crossover),
        **INTERRUPTED), defs("values"))


def layer():
    step = record("layer_step", optional={"patterns": several(closed({"pattern": TEXT, "time_us": NUMBER})), "standing": STANDING,
                                          **ANY_RECORD})
    sums = record("layer_sum")
    return top("tritax layer --json", "The products of a layer of a language model, with their communication.", schema(
        "layer/1", **VERSION, model=TEXT, source=TEXT, machine=TEXT, phase=TEXT, tokens=SIZE, dtype=TEXT, tp=SIZE,
        sequence_parallel=YES_NO, selector=TEXT, steps=several(step), sums=several(sums), not_modelled=TEXTS, **INTERRUPTED),
        defs("values"))


def compare():
    file = closed({"file": TEXT, "schema": TEXT})
    value = {"type": ["string", "number", "boolean", "null"]}
    row = closed({"id": TEXT, "before_us": NUMBER, "after_us": NUMBER, "change": NUMBER, "equal": YES_NO,
                  "parts": several(closed({"part": TEXT, "before_us": NUMBER, "after_us": NUMBER, "change_us": NUMBER})),
                  "differences": several(closed({"name": TEXT, "before": value, "after": value}))})
    return top("tritax compare --json", "Two results, row by row.", schema(
        "compare/1", **VERSION, before=file, after=file, rows=several(row), only_before=TEXTS, only_after=TEXTS))


def check():
    finding = closed({"kind": TEXT, "where": TEXT, "message": TEXT, "count": SIZE})
    return top("tritax check --json", "Whether schedules are sound.", schema("check/1", schedules=several(closed(
        {"id": TEXT, "sound": YES_NO, "findings": several(finding)},
        {"launch_orders": {"enum": ["one", "every", "alike", "some"]}, **ANY_RECORD}))), defs("values"))


def reproduce():
    row = closed({"id": TEXT, "group": TEXT, "metric": TEXT, "unit": TEXT, "published": NUMBER, "predicted": nullable(NUMBER),
                  "error": nullable(NUMBER), "calibration": YES_NO, "source": TEXT, "low": nullable(NUMBER),
                  "high": nullable(NUMBER), "confidence": TEXT, "chosen": TEXT, "notes": TEXT, **VERSION,
                  "scenarios": several(closed({}, ANY_RECORD))}, {"failure": TEXT})
    verdict = record("verdict", {"verdict": {"enum": ["right", "tie", "wrong", "failed"]}})
    score = record("score", {"tie_difference": NUMBER, "clear_difference": NUMBER, "families": several(record("score"))})
    return top("tritax reproduce --json", "Published numbers beside predictions, and which of two ways is faster.", schema(
        "reproduce/1", **VERSION, rows=several(row), verdicts=several(verdict), score=score,
        compared=several(COMPARED), **INTERRUPTED), defs("values"))


def patterns():
    value = {"type": ["string", "number", "boolean", "null"]}
    named = {"name": TEXT, "summary": TEXT}
    all_of_one = schema("patterns/1", **VERSION, patterns=several(closed({**named, "knobs": TEXTS})), workload=TEXT,
                        workloads=several(closed({**named, "title": TEXT}, {"former_name": TEXT})))
    one = schema("pattern/1", **VERSION, **named, workload=TEXT, knobs=several(closed(
        {"knob": TEXT, "option": TEXT, "default": value, "meaning": TEXT})))
    one["properties"] |= {key: ANY_RECORD[key] for key in ("machine", "machine_changes", "sustained")}
    return top("tritax patterns --json", "Patterns of a workload, or of patterns show the knobs of one.",
               {"anyOf": [all_of_one, one]})


def machine():
    parameter = closed({"key": TEXT, "value": NUMBER, "unit": TEXT, "source": TEXT, "serves": TEXT, "residual": NUMBER,
                        "how": {"enum": ["datasheet", "measured", "derived", "calibrated", "assumed"]}})
    return schema("machine/1", name=TEXT, description=TEXT, file=TEXT, nodes=SIZE, gpus_per_node=SIZE, gpu=TEXT, arch=TEXT,
                  parameters=several(parameter))


def machines():
    row = closed({"name": TEXT, "description": TEXT, "gpus": SIZE, "nodes": SIZE, "gpu": TEXT, "arch": TEXT, "cus": SIZE,
                  "xcds": SIZE, "hbm_gb_per_s": NUMBER, "links": TEXT, "link_gb_per_s": NUMBER})
    one = machine()
    table = closed({"name": TEXT, "calls": {"enum": ["products", "collectives", "attention"]}, "rows": SIZE, "remarks": TEXTS})
    one["properties"] |= RECORD | {"library_tables": several(table)}
    one["required"] += [*RECORD, "library_tables"]
    return top("tritax machines --json", "The shipped machines, or of machines show the parameters of one.", {"anyOf": [
        schema("machines/1", **VERSION, machines=several(row)), one]})


def scenarios():
    row = closed({"file": TEXT, "id": TEXT, "title": TEXT, "machine": TEXT, "workload": ref("values"), "patterns": TEXTS})
    return top("tritax scenarios list --json", "Scenarios of files.", schema("scenarios/1", **VERSION, scenarios=several(row)),
               defs("values"))


def calibrate():
    parameter = closed({"key": TEXT, "unit": TEXT, "old": NUMBER, "new": NUMBER, "determined": YES_NO, "rows": SIZE,
                        "residual": NUMBER, "standard_error": nullable(NUMBER), "remark": TEXT})
    row = closed({"group": TEXT, "name": TEXT, "parameters": TEXT, "measured_us": NUMBER, "simulated_us": NUMBER, "fitted": YES_NO})
    return top("tritax calibrate --json", "Parameters of a machine from microbenchmarks.", schema(
        "calibrate/1", **VERSION, machine_changes=TEXTS, machine=TEXT, base=TEXT, microbench=TEXTS, residual=NUMBER,
        parameters=several(parameter), rows=several(row)))


def tune():
    sieve = closed({"key_bits": SIZE, "false_positive_rate": SHARE, "tolerance": SHARE, "bits": SIZE, "trained": SIZE,
                    "held_out": SIZE, "eliminated": SHARE, "false_positives": NUMBER, "false_negatives": SIZE, "best_lost": SIZE,
                    "unknown": NUMBER})
    selector = closed({"selector": TEXT, "choice_us": nullable(NUMBER), **{name: nullable(NUMBER) for name in (
        "left", "within_5_pct", "within_10_pct", "within_20_pct", "mean_ratio", "worst_ratio", "best_gain_pct")}})
    speedup = closed({"against": TEXT, "gemms": SIZE, **{name: nullable(NUMBER) for name in ("mean", "std", "min", "max")}})
    simulated = closed({"schedule": TEXT, "gemms": SIZE, **{name: nullable(NUMBER) for name in (
        "median_error_pct", "p90_error_pct", "median_ratio")}})
    both = {"sieve": sieve, "selectors": several(selector)}
    corpus = closed({"schema": {"const": "tritax.tune/1"}, **VERSION, "corpus": TEXT, "machine": TEXT, "dtype": TEXT,
                     "seed": WHOLE, "gemms": SIZE, "closed_form_s": NUMBER, "speedups": several(speedup), **both},
                    {"against_simulation": several(simulated)})
    problems = closed({"schema": {"const": "tritax.tune/1"}, **VERSION, "file": TEXT, "machine": TEXT, "problems": SIZE,
                       "simulation_us": NUMBER, **both})
    grids = closed({"schema": {"const": "tritax.tune/1"}, **VERSION, "file": TEXT, "models": TEXT, "machine": TEXT,
                    "problems": SIZE, "without_model": SIZE, "selectors": several(selector)})
    return top("tritax tune --json", "A sieve of Bloom filters or grid models, and how good their choices are.",
               {"anyOf": [corpus, problems, grids]})


def tune_tree():
    choice = closed({"choice": TEXT, "problems": SIZE, **{name: nullable(NUMBER) for name in (
        "right", "within_5", "over_best", "worst", "over_baseline", "gathered", "impossible", "sum_ms")}})
    node = {"anyOf": [closed({"feature": TEXT, "most": NUMBER, "yes": SIZE, "no": SIZE}), closed({"answer": TEXT, "examples": SIZE})]}
    tree = {"type": "object", "properties": {"schema": TEXT, "options": TEXTS, "known": TEXTS, "gathered": TEXTS,
                                             "choose_known": several(node)}, "required": ["schema", "options"]}
    return top("tritax tune --selector tree --json", "Decision trees, and how good their choices are.", closed(
        {"schema": {"const": "tritax.tune-tree/1"}, **VERSION, "problems": SIZE, "groups": SIZE, "left_out": SIZE, "machine": TEXT,
         "folds": SIZE, "seed": WHOLE, "choices": several(choice), "options": TEXTS, "confusion": several(several(SIZE)),
         "best_single": TEXT, "tree": tree}))


def validate_library():
    form = closed({"form": TEXT, "rows": SIZE, "median_abs_error": NUMBER, "p90_abs_error": NUMBER, "median_error": NUMBER})
    row = closed({"form": TEXT, "gpus": SIZE, "work": TEXT, "measured_us": NUMBER, "predicted_us": NUMBER, "error": NUMBER,
                  "where": TEXT}, ANY_RECORD)
    return top("tritax validate --library --json", "Calls of vendors' libraries beside predictions.", schema(
        "validate-library/1", machine=TEXT, forms=several(form), rows=several(row), compared=several(COMPARED), **VERSION, machine_changes=TEXTS,
        sustained=YES_NO, **INTERRUPTED), defs("values"))


def validate_ops():
    side = closed({"count": SIZE, **{f"{name}_us": NUMBER for name in ("median", "p10", "p90", "sum")}})
    operation = closed({"operation": TEXT, "side": TEXT, "groups": SIZE, "count": SIZE, **{name: NUMBER for name in (
        "measured_median_us", "predicted_median_us", "median_error", "median_abs_error", "measured_sum_us", "predicted_sum_us",
        "sum_error")}})
    row = closed({"id": TEXT, "pattern": TEXT, "machine": TEXT, "gpus": SIZE, "kernel": TEXT, "operation": TEXT, "side": TEXT,
                  "size": TEXT, "measured": side, "predicted": side, "error": NUMBER, "where": TEXT}, ANY_RECORD)
    return top("tritax validate --ops --json", "Operations of measured runs beside predictions.", closed(
        {"schema": {"const": "tritax.validate-ops/1"}, **VERSION, "stamping_cost": NUMBER, "operations": several(operation),
         "rows": several(row), **INTERRUPTED}), defs("values"))


def report():
    column = closed({"type": {"enum": ["u8", "u32", "f32"]}, "base64": TEXT})
    timeline = closed({"tick_ns": NUMBER, "end": SIZE, "ranks": SIZE, "ranks_shown": SIZE, "operations": SIZE,
                       "operations_shown": SIZE, "dies": SIZE, "kinds": TEXTS, "names": TEXTS,
                       "tracks": several(closed({"gpu": SIZE, "group": TEXT, "name": TEXT}, {"die": SIZE})),
                       **{name: closed({key: column for key in keys}) for name, keys in (
                           ("intervals", ("track", "begin", "end", "kind", "name", "workgroup")), ("flags", ("signal", "wait")),
                           ("path", ("interval", "begin", "end")))},
                       "path_shares": {"type": "object", "additionalProperties": NUMBER},
                       "links": several(closed({"name": TEXT, "raw_gb_per_s": NUMBER, "mean_gb_per_s": NUMBER, "rates": column}))})
    run = {"description": "as tritax.explain/1, and what the figures show", "type": "object", "properties": {
        "id": TEXT, "title": TEXT, "time_us": NUMBER, "sentences": TEXTS, "critical_path": ref("account"), "timeline": timeline},
        "required": ["id", "time_us", "sentences", "critical_path", "timeline", "overlap", "caches", "with_effect"]}
    on_page = machine()
    on_page["properties"] |= {"title": TEXT, "compared": several(closed(
        {"workload": TEXT, "of": TEXT, "rows": SIZE, "nine_of_ten": NUMBER, "problems": TEXT, "source": TEXT}))}
    result = {"description": "what --json of the command writes", "type": "object", "required": ["schema"]}
    return top("Data of a page of tritax report", "The JSON in the page; docs/report.md.", schema(
        "report/1", **VERSION, command=TEXT, kind={"enum": ["advise", "simulate", "layer", "validate"]}, title=TEXT, result=result,
        sentences=TEXTS, run=nullable(run), machines=several(on_page)), defs("account"))


def evaluate():
    identity = {"type": ["number", "string"]}
    values = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "array"]}}
    line = {"type": "object", "additionalProperties": False, "properties": {
        "id": identity, "workload": TEXT, "pattern": TEXT, "problem": values, "knobs": values, "machine": TEXT, "seed": SIZE,
        "schedule": {"description": "a tile schedule, instead of problem and knobs", "type": "object"}},
        "anyOf": [{"required": ["problem"]}, {"required": ["schedule"]}]}
    answer = {"anyOf": [closed({"time_us": NUMBER, "bound_us": NUMBER, "operations": SIZE, "critical_path": ref("account")},
                               {"id": identity}), closed({"invalid": TEXT}, {"id": identity})]}
    return {"evaluate-line": top("A line for tritax evaluate --stdin", "One candidate; docs/cli.md.", line),
            "evaluate-answer": top("A line of tritax evaluate --stdin", "The answer to one candidate.", answer, defs("account"))}


def imports():
    problem = closed({"id": TEXT, "workload": ref("values"), "count": SIZE, "first": TEXT})
    trace = schema("import-trace/1", **VERSION, file=TEXT, form=TEXT, machine=TEXT, problems=several(problem),
                   left_out=several(closed({"what": TEXT, "count": SIZE})))
    parameter = closed({"key": TEXT, "value": NUMBER, "unit": TEXT, "source": TEXT})
    topology = schema("import-topology/1", **VERSION, file=TEXT, form=TEXT, machine=TEXT, base=TEXT, nodes=SIZE,
                      gpus_per_node=SIZE, links={"enum": ["mesh", "switch"]}, parameters=several(parameter))
    return top("tritax import --json", "What became of a trace or a topology; docs/import.md.", {"anyOf": [trace, topology]},
               defs("values"))


def schemas():
    return {"taxonomy": taxonomy(), "layer": layer(), "compare": compare(), "check": check(), "reproduce": reproduce(),
            "patterns": patterns(), "machines": machines(), "scenarios": scenarios(), "calibrate": calibrate(), "tune": tune(),
            "tune-tree": tune_tree(), "validate-library": validate_library(), "validate-ops": validate_ops(), "report": report(),
            "import": imports(), **evaluate()}


# --- what they are tried on

GEMM = ["-M", "512", "-N", "512", "-K", "512"]
SEQUENTIAL = ["--pattern", "fused-sequential", *GEMM, "--machine", "mi300x-8"]
QUICK = ["--selector", "defaults"]
DATA = "tests/imports/data"
RUNS = [("taxonomy", ["taxonomy", *GEMM, "--machine", "mi300x-8", *QUICK]),
        ("taxonomy", ["taxonomy", "--workload", "gemm-all-reduce", "--sweep", "M=16:64:x4", "-N", "512", "-K", "512", "--machine",
                      "h200-8", *QUICK]),
        ("layer", ["layer", "--model", "llama-3-8b", "--tp", "2", "--phase", "decode", "--machine", "mi300x-8", *QUICK]),
        ("check", ["check", *SEQUENTIAL, "--execute"]), ("check", ["check", "scenarios/handwritten.json"]),
        ("reproduce", ["reproduce", "--group", "gemm-all-scatter"]),
        ("reproduce", ["reproduce", "scenarios/published/verdicts-custom-all-reduce.toml"]), ("patterns", ["patterns"]),
        ("patterns", ["patterns", "show", "fused-sequential", "--machine", "mi300x-8"]), ("machines", ["machines"]),
        ("machines", ["machines", "show", "mi300x-8", "--set", "fabric.link=32GB/s"]), ("scenarios", ["scenarios", "list"]),
        ("tune", ["tune", "--corpus", "stream-k", "--count", "300", "--simulate", "3"]), ("tune", ["tune", "llm", "--machine", "mi300x-8"]),
        ("validate-library", ["validate", "--library", "scenarios/measured/h200-4-library-2.csv"]),
        ("validate-ops", ["validate", "--ops", "scenarios/measured/h100-2-random-8-ops.csv", "--machine", "h100-4"])]
REPORTS = [["simulate", *SEQUENTIAL, "--fast"], ["layer", *RUNS[2][1][1:]],
           ["validate", "--measured", "scenarios/measured/h200-2-random-13.csv", "--machine", "h200-4"]]
LINES = [{"id": 1, "problem": {"m": 512, "n": 512, "k": 512}, "pattern": "producer-consumer", "knobs": {"tile": "128x128x64"}},
         {"problem": {"m": 512}, "id": "no n"}]


def examples(tritax, root):
    """(schema, what, document) as make-reference tries them."""
    def answer(*arguments, text=None):
        run = subprocess.run([tritax, *arguments], cwd=root, input=text, capture_output=True, text=True, check=False)
        if not run.stdout.strip():
            raise SystemExit(f"make-reference: tritax {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout
    for name, options in RUNS:
        yield name, " ".join(options), json.loads(answer(*options, "--json", "-"))
    answers = answer("evaluate", "--stdin", "--machine", "mi300x-8", text="".join(json.dumps(line) + "\n" for line in LINES))
    for line, text in zip(LINES, answers.splitlines()):
        yield "evaluate-line", str(line), line
        yield "evaluate-answer", str(line), json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        for options in REPORTS:
            subprocess.run([tritax, "report", *options, "-o", f"{folder}/page.html"], cwd=root, capture_output=True, check=True)
            page = Path(folder, "page.html").read_text(encoding="utf-8")
            data = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
            yield "report", " ".join(options), json.loads(data[1])
        for name, tile in (("before", "256x256x64"), ("after", "128x128x64")):
            answer("simulate", *SEQUENTIAL, "--tile", tile, "--json", f"{folder}/{name}.json")
        yield "compare", "compare", json.loads(answer("compare", f"{folder}/before.json", f"{folder}/after.json", "--json", "-"))
        rows = (root / "scenarios/measured/h200-4-microbench.csv").read_text(encoding="utf-8").splitlines()
        kept = [row for row in rows if row.startswith(("#", "group,", "launch,st"))]
        Path(folder, "rows.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
        yield "calibrate", "calibrate", json.loads(answer("calibrate", "-o", f"{folder}/m.toml", "--machine", "h200-4", "--microbench",
                                                          f"{folder}/rows.csv", "--json", "-"))
        table = ["rows,nnz,csr_ms,ell_ms,matrix", *(f"{i + 1},{10 * i + 5},{1 + i / 10:.3f},{3 - i / 20:.3f},m{i}" for i in range(40))]
        Path(folder, "times.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
        yield "tune-tree", "times.csv", json.loads(answer(
            "tune", f"{folder}/times.csv", "--selector", "tree", "--times", "csr_ms,ell_ms", "--features", "rows,nnz", "--group",
            "matrix", "--leaf-examples", "2", "--folds", "4", "--json", "-"))
        for options in (["trace", f"{DATA}/kineto.json", "--machine", "h200-8"],
                        ["topology", f"{DATA}/infragraph.yaml", "--machine", "h200-8"]):
            yield "import", " ".join(options), json.loads(answer("import", *options, "-o", f"{folder}/imported.toml", "--json", "-"))
