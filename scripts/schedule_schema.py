"""The schema of tile schedules, by docs/schedule-format.md and the reader of model/schedule/json_read.cpp."""
from schema_parts import NUMBER, SHARE, SIZE, TEXT, WHOLE, YES_NO, closed, ref, several, top


def schedule_schema():
    place, shape = several(SIZE) | {"minItems": 2, "maxItems": 2}, several(SIZE) | {"minItems": 2, "maxItems": 2}
    dtype = {"enum": ["fp32", "fp16", "bf16", "fp8", "fp64"]}
    name = {"type": ["string", "integer"]}  # or its number
    region = closed({"buffer": name}, {"rank": SIZE, "at": place, "shape": shape})
    flag = {"flag": name, "index": SIZE, "value": SIZE, "scope": {"enum": ["gpu", "system"]},
            "protocol": {"enum": ["load-store", "exchange", "compare-and-swap"]}}
    tile = {"buffer": name, "at": place, "shape": shape}
    copy = {"to": SIZE, **tile, "from": closed({}, {"rank": SIZE, "buffer": name, "at": place})}

    group = {"with_previous": YES_NO}
    multimem = {"multimem": YES_NO}

    def op(kind, optional=None, **required):
        return closed({"op": {"const": kind} if isinstance(kind, str) else {"enum": kind}, **required}, optional)
    operation = {"oneOf": [
        op("matmul", {"at": place, "owner": SIZE}, a=name, b=name, shape=shape, k=shape),
        op("load", {"from": SIZE, "at": place, **multimem}, buffer=name, shape=shape),
        op(["rms_norm", "row_dot"], {"from": SIZE, "at": place}, buffer=name, shape=shape),
        op("reduce", {"from": SIZE, "at": place, **group, **multimem}, buffer=name, shape=shape),
        op("combine", {"from": SIZE, "at": place, **group}, buffer=name, shape=shape),
        op("store", {"to": SIZE, "at": place, **group, **multimem}, buffer=name, shape=shape),
        op("atomic_add", {"to": SIZE, "at": place, **group}, buffer=name, shape=shape),
        op("copy", {key: copy[key] for key in ("to", "at", "from")} | group | {"by_engine": YES_NO}, buffer=name, shape=shape),
        op("signal", {**{key: flag[key] for key in ("index", "value", "scope", "protocol")}, "rank": SIZE,
                      "change": {"enum": ["add", "set"]}, "order": {"enum": ["release", "relaxed"]}, **group}, flag=name),
        op("wait", {key: flag[key] for key in ("index", "value", "scope", "protocol")} | group, flag=name),
        op("barrier"),
        op("claim", {"index": SIZE, "items": shape, "limit": SIZE, "skip": SIZE}, flag=name),
        op("attend", {"at": place, "column": SIZE, "limit": SIZE, "group": SIZE}, queries=name, keys=name, values=name,
           shape=shape, k=shape),
        op("attend_backward", {"at": place, "column": SIZE, "limit": SIZE}, queries=name, keys_values=name,
           result_gradients=name, statistics=name, query_gradients=name, shape=shape, k=shape),
        op("sparse_product", {"at": place, "sparse": SIZE, "lanes": WHOLE}, values=name, x=name, columns=WHOLE, shape=shape,
           k=shape, sharing={"enum": ["row", "vector", "group", "even"]})]}
    stream = {"stream": SIZE}
    host = {"oneOf": [
        op("launch", stream, kernel=name), op("graph_launch", stream, graph=SIZE), op("stream_synchronize", stream),
        op(["device_synchronize", "barrier", "collective_call", "framework_sync", "framework_gather"]),
        op("copy", {**stream, **{key: copy[key] for key in ("to", "at", "from")}}, buffer=name, shape=shape),
        op(["event_record", "event_wait"], stream, event=SIZE),
        op("host_work", {"duration_ns": NUMBER}, label=TEXT)]}
    reference = {"oneOf": [
        op(["product", "rms_norm", "row_dot"], {"add": YES_NO}, to=ref("region"), a=ref("region"), b=ref("region")),
        op("sparse_product", {"add": YES_NO, "sparse": SIZE}, to=ref("region"), a=ref("region"), b=ref("region")),
        op(["copy", "sum"], {"add": YES_NO}, to=ref("region"), a=ref("region")),
        op("attention", {"add": YES_NO, "limit": SIZE, "group": SIZE}, to=ref("region"), a=ref("region"), b=ref("region"),
           c=ref("region")),
        op("attention_backward", {"add": YES_NO, "limit": SIZE}, to=ref("region"), a=ref("region"), b=ref("region"),
           c=ref("region"), d=ref("region"))]}
    agent = closed({"ops": several(ref("operation"))})
    kernel = closed({"name": TEXT, "workgroups": several(ref("agent"))}, {
        "rank": SIZE, "threads": SIZE, "registers_per_thread": SIZE, "lds_bytes": SIZE,
        "tile": closed({"m": SIZE, "n": SIZE, "k": SIZE, "waves": SIZE},
                       {"pipeline": {"enum": ["serial", "overlapped", "ping-pong", "interleaved", "specialised"]},
                        "producers": SIZE}),
        "profile": {"enum": ["interpreter", "triton", "vendor", "mma-sync"]}, "placement": {"enum": ["dispatch", "persistent", "gang"]},
        "cus": shape, "payload_share": SHARE, "start_ns": NUMBER, "clk_per_stored_byte": NUMBER,
        "library": closed({"routine": {"enum": ["none", "plain", "gemm", "gemm-even-rows", "gemm-odd-rows", "block-copy",
                                                "all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all",
                                                "vllm-all-reduce", "sglang-all-reduce", "trtllm-all-reduce",
                                                "all-pairs", "posts", "dispatches", "lookup"]}},
                          {"bytes": NUMBER, "ranks": SIZE, "channels": SIZE, "chunks": SIZE, "flags": SIZE, "crossings": SIZE, "accesses": SIZE,
                           "rows": SIZE, "columns": SIZE, "depth": SIZE, "dtype": {"enum": ["fp32", "fp16", "bf16", "fp8", "fp64"]}}),
        "registers_filled": YES_NO, "items": several(ref("agent"))})
    return top("Tile schedule", "What `tritax schedule` writes and `check`, `simulate` and tritax-gpu read; "
               "docs/schedule-format.md says what it means.", closed(
        {"schema": {"const": "tritax.schedule/1"}, "ranks": {"type": "integer", "minimum": 1},
         "host": several(several(ref("host_operation")))},
        {"name": TEXT, "processes": {"enum": ["per-gpu", "one"]}, "result": name, "vendor": YES_NO,
         "buffers": several(closed({"name": TEXT, "dtype": dtype, "shape": shape}, {"tile": shape, "codec": {"enum": ["same", "fp8", "int8", "int6", "int4"]}})),
         "flags": several(closed({"name": TEXT, "count": {"type": "integer", "minimum": 1, "maximum": 1 << 24}})),
         "sparse": several(closed({"shape": shape, "offsets": several(SIZE), "columns": several(SIZE)}, {"name": TEXT})),
         "inputs": several(closed({"buffer": name}, {"rank": SIZE, "at": place, "shape": shape, "group": SIZE,
                                                     "values": {"enum": ["own", "same", "zero"]}})),
         "reference": several(reference), "kernels": several(ref("kernel")),
         "graphs": several(closed({"nodes": several(closed({"kernel": name}, {"stream": SIZE}))}, {"rank": SIZE}))}),
        {"region": region, "operation": operation, "host_operation": host, "agent": agent, "kernel": kernel})
