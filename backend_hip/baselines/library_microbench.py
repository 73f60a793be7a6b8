#!/usr/bin/env python3
"""What the vendor's libraries take for single calls: GEMMs (cuBLAS, hipBLASLt) and all-gathers (NCCL, RCCL) through PyTorch.

GEMMs run on one GPU, all-gathers on as many as asked for. `kernels` names what the library launched, so that its tile and any split
of K can be read. Medians, 10 % and 90 % quantiles in microseconds:

  kernel_us  the kernels' own time, as the profiler gives it; of an all-gather that of the rank which came last
  wall_us    host clock, from the last rank's start until the last rank's synchronisation, launches included

`operands` says what the caches hold: `cold`, they were flushed; `warm`, what the call before left; `loop`, a GEMM after 0.3 s of
the same without a pause, kernel_us and wall_us being the time per call of 30 more.

    python3 library_microbench.py --gpus 1,2,4 --output microbench.csv
    python3 library_microbench.py --gpus 1 --gemms 4096x4097x4096,1024x1024x4095 --dtypes bf16,fp32 --output odd-rows.csv
"""

import argparse
import os
import sys

import harness as base
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

COLUMNS = (
    "what,launch,operands,gpus,m,n,k,dtype,bytes_per_rank,repeats,kernel_us,kernel_p10_us,kernel_p90_us,wall_us,wall_p10_us,"
    "wall_p90_us,kernels"
)

DECODE = ((1280, 8192), (2048, 8192), (8192, 2048), (8192, 8192), (8192, 28672), (28672, 8192))  # (n, k)
# (m, n, k). In order: cubes; depth of K at one tile and at one round of tiles; rounds of tiles; few rows, as in decoding; ragged.
GEMMS = (
    [(size, size, size) for size in (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384)]
    + [(128, 256, k) for k in (64, 256, 1024, 4096, 16384)]
    + [(1536, 2816, k) for k in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)]
    + [(1536 * rounds, 2816, k) for rounds in (2, 3, 4, 6) for k in (256, 1024, 4096)]
    + [(m, n, k) for m in (16, 64, 128, 256, 512) for n, k in DECODE]
    + [(1000, 1000, 1000), (4095, 4095, 4095), (2049, 4097, 4096), (1024, 2145, 1024)]
)
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}
KIB = 1024


def gemm_call(m, n, k, dtype):
    drawn = torch.float64 if dtype == "fp64" else torch.float32
    draw = lambda rows, cols: torch.rand(rows, cols, device="cuda", dtype=drawn) * 2 - 1
    if dtype == "fp8":
        a = draw(m, k).to(torch.float8_e4m3fn)
        b = draw(n, k).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    a, b = draw(m, k).to(DTYPES[dtype]), draw(k, n).to(DTYPES[dtype])
    c = torch.empty(m, n, device="cuda", dtype=DTYPES[dtype])
    return lambda: torch.mm(a, b, out=c)


CUDA = torch.autograd.DeviceType.CUDA


def profiled(call, flush, token, arguments):
    """Names of the kernels that a call launches, and its kernel time in every repetition: of the rank that came last."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        call()
        torch.cuda.synchronize()
    names = [event.name for event in profile.events() if event.device_type == CUDA]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        for _ in range(arguments.warmup + arguments.repeat):
            flush.fill_(1)
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            call()
            torch.cuda.synchronize()
    events = sorted((event for event in profile.events() if event.device_type == CUDA), key=lambda event: event.time_range.start)
    # Kernels of the same names come with the flush and the barrier too: what counts is the last ones before the next flush.
    runs, current = [], []
    for event in events:
        if "FillFunctor" in event.name or "elementwise_kernel" in event.name:
            runs.append(current)
            current = []
        current.append(event)
    runs.append(current)
    own = [sum(event.time_range.elapsed_us() for event in run[-len(names) :]) for run in runs if len(run) > len(names)]
    times = torch.tensor(own[-arguments.repeat :], dtype=torch.float64, device="cuda")
    dist.all_reduce(times, op=dist.ReduceOp.MIN)
    return " + ".join(name.split("(")[0].replace(",", ";").replace("void ", "") for name in names), times.tolist()


def looped(call, arguments):
    """Microseconds per call of 30 after 0.3 s of calls without a pause, `repeat` times; empty where no graph can be captured."""
    ten = captured(lambda: [call() for _ in range(10)])
    if ten is None:
        return []
    events = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.repeat + 1)]
    events[0].record()
    ten.replay()
    events[1].record()
    torch.cuda.synchronize()
    for _ in range(int(300 / max(events[0].elapsed_time(events[1]), 1e-3))):
        ten.replay()
    for event in events:
        event.record()
        for _ in range(3):
            ten.replay()
    torch.cuda.synchronize()
    return [first.elapsed_time(second) * 1e3 / 30 for first, second in zip(events, events[1:])]


def captured(call):
    """The call as a graph, or None where it cannot be captured."""
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph
    except RuntimeError as error:
        print(f"  no graph: {error}", file=sys.stderr)
        return None


class Writer:
    def __init__(self, rank, path):
        self.rank, self.path = rank, path

    def row(self, fields, kernel, wall, kernels):
        if self.rank != 0:
            return
        text = f"{fields},{base.spread(kernel)},{base.spread(wall)},{kernels}"
        print(text, flush=True)
        with open(self.path, "a") as out:
            out.write(text + "\n")


def measure(call, fields, flushes, token, arguments, writer):
    what, rest = fields
    graph = captured(call)
    for operands, flush in flushes.items():
        names, kernel = profiled(call, flush, token, arguments)
        for launch, run in (("eager", call), ("graph", graph and graph.replay)):
            if run is None:
                continue
            _, wall = base.time_calls(run, flush, token, arguments.repeat, arguments.warmup)
            writer.row(f"{what},{launch},{operands},{rest},{arguments.repeat}", kernel, wall, names)
    if what == "gemm" and (time := looped(call, arguments)):
        writer.row(f"{what},graph,loop,{rest},{arguments.repeat}", time, time, names)
    del graph, run


def measure_gemms(flushes, token, arguments, writer):
    for m, n, k in arguments.gemms:
        for dtype in arguments.dtypes.split(","):
            if dtype == "fp8" and (n % 16 or k % 16):
                continue
            measure(gemm_call(m, n, k, dtype), ("gemm", f"1,{m},{n},{k},{dtype},0"), flushes, token, arguments, writer)
            torch.cuda.empty_cache()


def measure_all_gathers(world, flushes, token, arguments, writer):
    size = 4 * KIB
    while size <= 256 * KIB * KIB:
        own = torch.zeros(size, dtype=torch.uint8, device="cuda")
        everyone = torch.empty(size * world, dtype=torch.uint8, device="cuda")
        call = lambda: dist.all_gather_into_tensor(everyone, own)
        measure(call, ("all_gather", f"{world},0,0,0,,{size}"), {"cold": flushes["cold"]}, token, arguments, writer)
        size *= 2


def shapes(text):
    """MxNxK,… as a list of (m, n, k)."""
    found = [tuple(int(size) for size in shape.split("x")) for shape in text.split(",")]
    if any(len(shape) != 3 or min(shape) < 1 for shape in found):
        raise ValueError(text)
    return found


def worker(rank, world, arguments, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    # NVLink multicast can take GPUs that other machines share out of service; it is never used here.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    flushes = {
        "cold": torch.empty(int(arguments.flush), dtype=torch.int8, device="cuda"),
        "warm": torch.empty(1, dtype=torch.int8, device="cuda"),
    }
    token = torch.ones(1, device="cuda")
    dist.all_reduce(token)
    writer = Writer(rank, arguments.output)
    if world == 1:
        measure_gemms(flushes, token, arguments, writer)
    else:
        measure_all_gathers(world, flushes, token, arguments, writer)
    dist.barrier()
    torch.cuda.synchronize()
    os._exit(0)  # destroying a communicator that graphs have captured can wait forever (seen with NCCL 2.28)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="1,2", help="1: GEMMs; more: all-gathers over so many; separated by commas")
    parser.add_argument("--gemms", type=shapes, default=GEMMS, help="MxNxK of the GEMMs, separated by commas")
    parser.add_argument("--dtypes", default="bf16,fp8", help="of the GEMMs: bf16, fp16, fp8, fp32, fp64")
    parser.add_argument("--output", required=True)
    parser.add_argument("--commit", default="unknown", help="revision of Tritax, for the file's first lines")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--flush", type=float, default=256e6, help="bytes written before each repetition")
    arguments = parser.parse_args()
    if os.path.exists(arguments.output):
        raise SystemExit(f"{arguments.output}: exists already")
    with open(arguments.output, "w") as out:
        out.write(base.origin(arguments.commit) + COLUMNS + "\n")
    for i, world in enumerate(int(count) for count in arguments.gpus.split(",")):
        if world > torch.cuda.device_count():
            raise SystemExit(f"--gpus: {world} are asked for, {torch.cuda.device_count()} are there")
        mp.spawn(worker, args=(world, arguments, 29600 + i), nprocs=world)


if __name__ == "__main__":
    main()
