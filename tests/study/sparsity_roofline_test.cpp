// The Sparsity Roofline: bytes and flops by hand, its limits, and networks with their published sizes.
#include "sim/study/sparsity_roofline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/core/error.hpp"

namespace tritax {
namespace {

constexpr RooflinePeaks kPeaks{1000, 100};  // flops and bytes by nanosecond

NetworkLayer square(std::int64_t size) {
  NetworkLayer layer;
  layer.name = "square";
  layer.inputs = layer.outputs = size;
  layer.from = layer.positions = 1;
  return layer;
}

SparsityPattern pattern(std::string_view text) { return parse_sparsity_pattern(text, "test: "); }

LayerRoofline of(std::string_view text, SparseFormat format, double density,
                 const NetworkLayer& layer = square(1024)) {
  return roofline_of(layer, pattern(text), format, density, {}, kPeaks);
}

TEST(SparsityRoofline, CountsTheBytesOfEveryFormat) {
  const double weights = 1024 * 1024;
  EXPECT_EQ(of("dense", SparseFormat::csr, 1).value_bytes, 2 * weights);
  EXPECT_EQ(of("dense", SparseFormat::csr, 1).index_bytes, 0);
  EXPECT_EQ(of("dense", SparseFormat::csr, 1).activation_bytes, 2 * 2 * 1024);
  const LayerRoofline csr = of("unstructured", SparseFormat::csr, 0.25);
  EXPECT_EQ(csr.value_bytes, weights / 2);
  EXPECT_EQ(csr.index_bytes, 4 * (weights / 4 + 1025));
  EXPECT_EQ(csr.flops, 2 * weights / 4);
  EXPECT_EQ(of("unstructured", SparseFormat::coo, 0.25).index_bytes, 8 * weights / 4);
  const LayerRoofline blocks = of("block16x32", SparseFormat::csr, 0.25);
  EXPECT_EQ(blocks.value_bytes, weights / 2);
  EXPECT_EQ(blocks.index_bytes, 4 * (weights / 4 / 512 + 65));
  // Two bits say which of four.
  EXPECT_EQ(of("2:4", SparseFormat::bits, 1).value_bytes, weights);
  EXPECT_EQ(of("2:4", SparseFormat::bits, 1).index_bytes, weights / 2 * 2 / 8);
  const LayerRoofline fewer = of("outputs", SparseFormat::bits, 0.25);
  EXPECT_EQ(fewer.index_bytes, 0);
  EXPECT_EQ(fewer.activation_bytes, 2 * (1024 + 256));
}

TEST(SparsityRoofline, RowsOfEllAreAsLongAsTheLongest) {
  const double even = of("unstructured", SparseFormat::csr, 0.25).value_bytes;
  const double padded = of("unstructured", SparseFormat::ell, 0.25).value_bytes;
  EXPECT_GT(padded, even);
  EXPECT_LT(padded, 1.3 * even);
  EXPECT_EQ(of("unstructured", SparseFormat::ell, 1).value_bytes, 2.0 * 1024 * 1024);
}

TEST(SparsityRoofline, BlocksOfOneAreUnstructured) {
  for (const SparseFormat format : {SparseFormat::csr, SparseFormat::coo, SparseFormat::ell}) {
    const LayerRoofline blocks = of("block1x1", format, 0.3);
    const LayerRoofline any = of("unstructured", format, 0.3);
    EXPECT_EQ(blocks.bytes(), any.bytes());
    EXPECT_EQ(blocks.time_ns(), any.time_ns());
  }
}

TEST(SparsityRoofline, BlocksAtTheEdgeAreWhole) {
  EXPECT_EQ(of("block16x16", SparseFormat::csr, 1, square(17)).value_bytes, 2.0 * 32 * 32);
}

TEST(SparsityRoofline, WithoutWeightsOnlyActivationsAreLeft) {
  const LayerRoofline nothing = of("unstructured", SparseFormat::coo, 0);
  EXPECT_EQ(nothing.flops, 0);
  EXPECT_EQ(nothing.bytes(), nothing.activation_bytes);
}

TEST(SparsityRoofline, TheLongerOfFlopsAndBytesIsTheTime) {
  NetworkLayer layer = square(1024);
  layer.from = layer.positions = 4096;
  const LayerRoofline busy = of("dense", SparseFormat::csr, 1, layer);
  EXPECT_EQ(busy.time_ns(), 2.0 * 4096 * 1024 * 1024 / 1000);
  const LayerRoofline idle = of("dense", SparseFormat::csr, 1);
  EXPECT_EQ(idle.time_ns(), idle.bytes() / 100);
}

RC_GTEST_PROP(SparsityRoofline, DenseHasASpeedupOfOneAndFewerWeightsAreNeverSlower, ()) {
  Network network;
  const auto layers = *rc::gen::inRange(1, 4);
  for (int i = 0; i < layers; ++i) {
    NetworkLayer layer = square(*rc::gen::inRange(1, 3000));
    layer.outputs = *rc::gen::inRange(1, 3000);
    layer.kernel = *rc::gen::inRange(1, 4);
    layer.from = layer.positions = *rc::gen::inRange(1, 5000);
    layer.count = *rc::gen::inRange(1, 9);
    layer.dense = *rc::gen::arbitrary<bool>();
    network.layers.push_back(layer);
  }
  const auto at = [&](std::string_view text, double density) {
    const SparsityPattern asked = pattern(text);
    return roofline_of(network, asked, asked.usual_format(), density, {}, kPeaks).speedup;
  };
  RC_ASSERT(at("dense", 1) == 1);
  RC_ASSERT(at("outputs", 1) == 1);
  for (const char* text : {"unstructured", "block8x4", "outputs"}) {
    double before = 0;
    for (const double density : {1.0, 0.7, 0.3, 0.1, 0.0}) {
      const double speedup = at(text, density);
      RC_ASSERT(speedup >= before);
      before = speedup;
    }
  }
}

TEST(Networks, HaveTheSizesThatArePublished) {
  const auto size = [](const char* name) {
    std::pair<double, double> total{0, 0};  // weights and multiply-adds, in millions
    for (const NetworkLayer& layer : find_network(name).layers) {
      const double weights = static_cast<double>(layer.weights() * layer.count) / 1e6;
      total.first += weights;
      total.second += weights * static_cast<double>(layer.positions);
    }
    return total;
  };
  // torchvision: 25.56 M parameters with norms and biases, 4.09 G multiply-adds.
  EXPECT_NEAR(size("resnet-50").first, 25.56, 0.1);
  EXPECT_NEAR(size("resnet-50").second, 4090, 10);
  // torchvision: 28.59 M, 4.46 G.
  EXPECT_NEAR(size("convnext-t").first, 28.59, 0.1);
  EXPECT_NEAR(size("convnext-t").second, 4460, 10);
  // arXiv:2010.11929 table 1: 86 M.
  EXPECT_NEAR(size("vit-b").first, 86, 0.5);
}

TEST(Networks, OfLanguageModelsAreTheirProducts) {
  double weights = 0;
  for (const NetworkLayer& layer : find_network("llama-3-8b").layers)
    weights += static_cast<double>(layer.weights() * layer.count);
  EXPECT_EQ(weights, 32.0 * 4096 * (4096 + 2 * 1024 + 4096 + 3 * 14336));
}

std::string refusal(const std::string& text) {
  try {
    parse_network(text, "mine", "mine.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Networks, SayWhatIsWrongInAFile) {
  EXPECT_THAT(refusal(""), testing::HasSubstr("no [[layer]]"));
  EXPECT_THAT(refusal("[[layer]]\nname = \"a\"\ninputs = 0\noutputs = 1\npositions = 1\n"),
              testing::AllOf(testing::HasSubstr("mine.toml:3"), testing::HasSubstr("inputs")));
  EXPECT_THAT(refusal("[[layer]]\nname = \"a\"\ninputs = 6\noutputs = 4\npositions = 1\ngroups = 4\n"),
              testing::HasSubstr("does not divide"));
  EXPECT_THAT(refusal("[[layer]]\nname = \"a\"\ninput = 6\noutputs = 4\npositions = 1\n"),
              testing::HasSubstr("input"));
  EXPECT_THROW(find_network("resnet-51"), UserError);
}

TEST(SparsityPatterns, AreReadFromTheirNames) {
  EXPECT_EQ(pattern("block16x32").rows, 16);
  EXPECT_EQ(pattern("block16x32").cols, 32);
  EXPECT_EQ(pattern("2:4").m, 4);
  for (const char* wrong : {"", "block", "block0x4", "5:4", "2:", "csr", "block16x"})
    EXPECT_THROW(pattern(wrong), UserError) << wrong;
}

}  // namespace
}  // namespace tritax
