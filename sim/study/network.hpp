// The weights of a neural network: the products of every layer, for rooflines.
//
// A file is TOML with one table per kind of layer, for convolutions and linear layers:
//
//   source = "arXiv:1512.03385 table 1"
//
//   [[layer]]
//   name = "layer2.0.conv2"
//   inputs = 128        # channels that it reads
//   outputs = 128       # channels that it writes
//   kernel = 3          # 3x3; left out: 1
//   groups = 1          # of channels that do not mix; left out: 1
//   from = 3136         # positions (pixels, tokens) that it reads; left out: as many as it writes
//   positions = 784     # that it writes, of one sample
//   count = 1           # layers like this; left out: 1
//   dense = false       # true: its weights are never pruned
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

struct NetworkLayer {
  std::string name;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t kernel = 1;
  std::int64_t groups = 1;
  std::int64_t from = 0;       // positions of one sample that the layer reads
  std::int64_t positions = 0;  // … and that it writes
  std::int64_t count = 1;
  bool dense = false;

  // Number of weights summed for one output.
  std::int64_t depth() const { return inputs / groups * kernel * kernel; }
  std::int64_t weights() const { return depth() * outputs; }
};

struct Network {
  std::string name;  // name of the file, without its ending
  std::string source;
  std::vector<NetworkLayer> layers;
};

// Names of the shipped networks, in order.
std::vector<std::string> shipped_networks();

// A shipped network, a shipped language model (language_model.hpp; one position per sample, a token) or the
// network of a file. Throws UserError: with the nearest name, with file:line for errors in a file, and for
// language models with experts or latent attention, whose layers are not all of one kind.
Network find_network(const std::string& name_or_path);

// `origin` appears in messages.
Network parse_network(std::string_view text, const std::string& name, const std::string& origin);

}  // namespace tritax
