// Not benchmark_main: in Ubuntu 22.04 that is a static library of LTO bytecode, which later updates of its
// own GCC 11 refuse to link.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
