"""What the scripts of this folder share: timing of calls on all ranks, rows of CSV, and the loop over scenarios.

A script gives its workload's name, the fields that tell its shapes apart, its forms, and a class of problems:

  Problem(shape, rank, world)   operands on one rank; ValueError for shapes that it cannot split
  Problem.run(form)             its work
  Problem.check()               relative error of the result
  Problem.fits(form)            optional: whether the form takes the shape

Times in microseconds, over ranks the maximum of every repetition, then median, p10 and p90:

  device_us  events on the stream, ranks aligned on the device, launches hidden behind the alignment
  wall_us    host clock, from the last rank's start until the last rank's synchronisation, launches included
"""

import argparse
import datetime
import math
import os
import statistics
import subprocess
import sys
import time
import tomllib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def shapes_of(paths, workload, fields, former_name=None):
    """Every different shape of the workload's scenarios in the files, in order; `fields`: name -> usual value."""
    shapes = {}
    for path in paths:
        with open(path, "rb") as file:
            scenarios = tomllib.load(file)
        defaults = scenarios.get("defaults", {})
        for scenario in scenarios.get("scenario", []):
            full = {"workload": workload, **fields, **defaults, **scenario}
            for name in [name for name, value in full.items() if isinstance(value, list) and f"{name}_count" in fields]:
                full.update(zip((f"{name}_count", f"{name}_query", f"{name}_context"), full[name]))
            if full["workload"] in (workload, former_name) and full["dtype"] in DTYPES:
                shapes[tuple(full[field] for field in fields)] = True
    return [dict(zip(fields, shape)) for shape in shapes]


def random_matrix(rows, cols, dtype, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return (torch.rand(rows, cols, device="cuda", generator=generator) * 2 - 1).to(DTYPES[dtype])


def capture(problem, form):
    """The form as a graph, or None where it cannot be captured."""
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                problem.run(form)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            problem.run(form)
        return graph
    except RuntimeError as error:
        if dist.get_rank() == 0:
            print(f"  {form}: no graph: {error}", file=sys.stderr)
        return None


def time_calls(call, flush, token, repeats, warmup):
    """(device, wall) in microseconds of every repetition, the maximum over ranks."""
    world = dist.get_world_size()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    rows = []
    for i in range(warmup + repeats):
        flush.fill_(1)
        dist.all_reduce(token)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        device = begin.elapsed_time(end) * 1e3

        flush.fill_(1)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        started = time.monotonic_ns()
        call()
        torch.cuda.synchronize()
        ended = time.monotonic_ns()
        if i >= warmup:
            rows.append((device, float(started), float(ended)))
    own = torch.tensor(rows, dtype=torch.float64, device="cuda")
    everyone = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(everyone, own)
    table = torch.stack(everyone).cpu()
    device = table[:, :, 0].amax(0)
    wall = (table[:, :, 2].amax(0) - table[:, :, 1].amax(0)) * 1e-3
    return device.tolist(), wall.tolist()


def worst(errors):
    """The largest; NaN if one is NaN, which max() may drop."""
    return math.nan if any(math.isnan(error) for error in errors) else max(errors)


def spread(samples):
    quantiles = statistics.quantiles(samples, n=10, method="inclusive")
    return f"{statistics.median(samples):.2f},{quantiles[0]:.2f},{quantiles[8]:.2f}"


def origin(commit):
    """The first lines of a file of results: where, with what and how they were measured."""
    nccl = ".".join(str(part) for part in torch.cuda.nccl.version())
    tool = ["rocm-smi", "--showdriverversion", "--csv"] if torch.version.hip else [
        "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.CalledProcessError):
        driver = "unknown"
    return (
        f"# {datetime.date.today()}, {torch.cuda.get_device_name(0)} x {torch.cuda.device_count()}, driver {driver}, PyTorch "
        f"{torch.__version__}, NCCL/RCCL {nccl}; NVLink multicast off\n# commit {commit}; command: {' '.join(sys.argv)}\n"
    )


def worker(rank, world, script, shapes, arguments, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    # NVLink multicast can take GPUs that other machines share out of service; it is never used here.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    flush = torch.empty(int(arguments.flush), dtype=torch.int8, device="cuda")
    token = torch.ones(1, device="cuda")
    for shape in shapes:
        problem = script["problem"](shape, rank, world)
        error = problem.check()
        if not error < 1e-2:
            raise SystemExit(f"{shape}: relative error {error}")
        for form in script["forms"]:
            if hasattr(problem, "fits") and not problem.fits(form):
                continue
            calls = {"eager": lambda form=form: problem.run(form)}
            graph = None if form in script["not_as_graph"] else capture(problem, form)
            if graph is not None:
                calls["graph"] = graph.replay
            for launch, call in calls.items():
                device, wall = time_calls(call, flush, token, arguments.repeat, arguments.warmup)
                if rank == 0:
                    what = ",".join(str(shape[field]) for field in script["fields"])
                    row = f"{form},{launch},{world},{what},{arguments.repeat},{spread(device)},{spread(wall)},{error:.2e}"
                    if script["names_workload"]:
                        row = f"{script['workload']},{row}"
                    print(row, flush=True)
                    with open(arguments.output, "a") as out:
                        out.write(row + "\n")
            calls.clear()
            del graph, call
        del problem
        torch.cuda.empty_cache()
    dist.barrier()
    torch.cuda.synchronize()
    # Destroying a communicator that graphs have captured can wait forever (seen with NCCL 2.28); the process ends here.
    os._exit(0)


def parser_of(description):
    """The options of every script that writes one table."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True)
    parser.add_argument("--commit", default="unknown", help="revision of Tritax, for the file's first lines")
    return parser


def main(description, script):
    """`script`: workload, fields (name -> usual value), forms, not_as_graph, problem, names_workload; may be backends, former_name."""
    parser = parser_of(description)
    parser.add_argument("scenarios", nargs="+", help="TOML files (docs/scenarios.md)")
    parser.add_argument("--gpus", default="2", help="numbers of GPUs, separated by commas")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--flush", type=float, default=256e6, help="bytes written before each repetition")
    if "backends" in script:
        parser.add_argument("--backend", choices=script["backends"], default=script["backends"][0],
                            help="whose kernels the calls take")
    arguments = parser.parse_args()
    if "backends" in script:
        os.environ["TRITAX_BACKEND"] = arguments.backend  # for the processes that run the calls
    if os.path.exists(arguments.output):
        raise SystemExit(f"{arguments.output}: exists already")
    shapes = shapes_of(arguments.scenarios, script["workload"], script["fields"], script.get("former_name"))
    first = "workload," if script["names_workload"] else ""
    with open(arguments.output, "w") as out:
        out.write(
            origin(arguments.commit)
            + f"{first}form,launch,gpus,{','.join(script['fields'])},repeats,"
            + "device_us,device_p10_us,device_p90_us,wall_us,wall_p10_us,wall_p90_us,relative_error\n"
        )
    for i, world in enumerate(int(count) for count in arguments.gpus.split(",")):
        if world > torch.cuda.device_count():
            raise SystemExit(f"--gpus: {world} are asked for, {torch.cuda.device_count()} are there")
        mp.spawn(worker, args=(world, script, shapes, arguments, 29500 + i), nprocs=world)
