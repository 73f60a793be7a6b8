// The job that the fluid engine and its yardstick carry out: 8 fully connected GPUs, 50 GB/s and 500 ns a
// link, every GPU sends 1024 tiles of 64 KiB to every peer with one tile in flight a pair. 57,344 transfers;
// the makespan is 1024 · (500 + 65536 / 50) ns exactly.
#pragma once

namespace tritax::mesh_job {

constexpr int kGpus = 8;
constexpr int kTiles = 1024;  // of a pair
constexpr int kTileBytes = 65536;
constexpr double kLatencyNs = 500;
constexpr double kLinkGbPerS = 50;
constexpr double kMakespanNs = kTiles * (kLatencyNs + kTileBytes / kLinkGbPerS);

}  // namespace tritax::mesh_job
