#include "sim/study/model_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/workloads/layer_blocks.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/layer.hpp"

namespace tritax {

namespace {

double product(std::int64_t a, std::int64_t b, std::int64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

void check_deployment(const LanguageModel& model, const ModelDeployment& deployment,
                      const FieldPlace& place) {
  const auto [tp, ep] = deployment;
  if (ep == 1) return;
  if (model.experts == 0)
    throw UserError(fmt::format("{}: {} has no experts; give 1", place("ep"), model.name));
  if (ep % tp != 0) {
    throw UserError(
        fmt::format("{}: {} GPUs share the experts and {} every product; give 1 or a multiple of {}",
                    place("ep"), ep, tp, tp));
  }
  if (model.experts % ep == 0) return;
  throw UserError(
      fmt::format("{}: {} does not divide the {} experts of {}", place("ep"), ep, model.experts, model.name));
}

// Sizes of the products of one pass.
struct PassSize {
  Phase phase = Phase::decode;
  std::int64_t sequences = 1;  // per replica
  std::int64_t rows = 1;       // tokens per replica
  std::int64_t context = 1;
  std::int64_t prompts = 1;        // per attention problem
  double attention_share = 1;      // share of the problem that belongs to the pass
  std::int64_t expert_tokens = 1;  // per GPU that shares experts
};

class PassWalk {
 public:
  PassWalk(const LanguageModel& model, const ModelDeployment& deployment, const PassSize& size, DType dtype,
           const FieldPlace& place)
      : model_(model), deployment_(deployment), size_(size), dtype_(dtype), place_(place) {}

  ModelPass pass() {
    pass_.gpus = deployment_.gpus();
    pass_.sequences = size_.sequences;
    pass_.tokens = size_.rows;
    if (model_.vocabulary > 0)
      section(1, [&] { add_rows_stream("embedding", 1, size_.rows, 2 * model_.hidden); });
    const Deployment layer{deployment_.tp, size_.phase, size_.rows, false};
    const Layers layers = layers_of(model_, layer, place_("tp"));
    for (const LayerKind& kind : layers.kinds) {
      section(kind.count, [&] { add_layer(layers, kind, layer); });
    }
    section(1, [&] { add_head(); });
    return std::move(pass_);
  }

 private:
  template <typename Add>
  void section(std::int64_t repeats, const Add& add) {
    pass_.sections.push_back({repeats, {}});
    add();
  }

  void add_layer(const Layers& layers, const LayerKind& kind, const Deployment& layer) {
    add_norm("attention-norm");
    for (const std::size_t index : kind.steps) {
      const Step& step = layers.steps[index];
      const bool out = step.name == "attention-out";
      if (out) add_attention();
      const bool experts_follow = out && !has_dense_part(layers, kind);
      add_product(step, layer);
      if (out) add_norm("ffn-norm");
      if (experts_follow) add_router();
      if (step.name == "gate-up" || step.name == "shared-gate-up") {
        add_rows_stream(step.name == "gate-up" ? "activation" : "shared-activation", 1, size_.rows,
                        step.columns / 2 * 3);
      }
    }
    if (!has_dense_part(layers, kind)) add_experts();
  }

  static bool has_dense_part(const Layers& layers, const LayerKind& kind) {
    return std::any_of(kind.steps.begin(), kind.steps.end(),
                       [&](std::size_t step) { return layers.steps[step].name == "gate-up"; });
  }

  // A product on one GPU, or whose sum waits for the sum of the routed experts, is the library's.
  void add_product(Step step, const Deployment& layer) {
    const bool sums_later = step.name == "shared-down" && deployment_.ep == 1;
    if (deployment_.tp == 1 || sums_later) step.projection = Projection::columns;
    PassBlock block;
    block.name = step.name;
    block.problem = problem_of(step, layer, dtype_, row_places());
    block.usual = baseline_of(*block.problem->workload)->name;
    block.least_bytes = product(step.columns, step.depth) * bytes_of(dtype_);
    block.least_flops = 2 * product(step.rows, step.columns, step.depth);
    add(std::move(block));
  }

  void add_head() {
    add_rows_stream("final-norm", 1, size_.sequences, 4 * model_.hidden);
    if (model_.vocabulary == 0) return;
    const std::int64_t part = (model_.vocabulary + deployment_.tp - 1) / deployment_.tp;
    const Deployment layer{deployment_.tp, size_.phase, size_.sequences, false};
    add_product({"head", Projection::columns, size_.sequences, part, model_.hidden, 1}, layer);
    add_rows_stream("sampling", 1, size_.sequences, part);
  }

  void add_norm(std::string_view name) { add_rows_stream(name, 1, size_.rows, 4 * model_.hidden); }

  // A stream that reads and writes `elements` elements per row in total.
  void add_rows_stream(std::string_view name, int kernels, std::int64_t rows, std::int64_t elements) {
    PassBlock block;
    block.name = name;
    block.kernels = kernels;
    block.stream_bytes = product(rows, elements) * bytes_of(dtype_between(dtype_));
    add(std::move(block));
  }

  std::int64_t heads() const { return model_.heads / deployment_.tp; }
  std::int64_t own_kv_heads() const {
    return std::max<std::int64_t>(1, model_.grouped.key_value_heads / deployment_.tp);
  }

  void add_attention() {
    const LatentAttention* latent = model_.latent ? &*model_.latent : nullptr;
    const std::int64_t turned =
        latent != nullptr ? heads() * latent->rotary_dim + latent->key_value_rank + latent->rotary_dim
                          : (heads() + 2 * own_kv_heads()) * model_.grouped.head_dim;
    add_rows_stream("rotary", 1, size_.rows, 2 * turned);
    if (latent != nullptr && size_.phase == Phase::decode) return add_latent_decode(*latent);
    AttentionSizes sizes{size_.prompts, size_.context, heads(), heads(), 0, dtype_between(dtype_)};
    if (latent != nullptr) {
      sizes.head_dim = (latent->plain_dim + latent->rotary_dim + latent->value_dim) / 2;
    } else {
      sizes.head_dim = model_.grouped.head_dim;
      sizes.kv_heads = own_kv_heads();
    }
    const bool decodes = size_.phase == Phase::decode;
    const std::string where = place_("batch") + " " + place_("context");
    LayerBlock found = decodes ? cached_attention(sizes, where) : prompt_attention(sizes, where);
    PassBlock block;
    block.name = "attention";
    block.share = size_.attention_share;
    block.least_flops = work_of(found.problem).flops * size_.attention_share;
    if (decodes) {
      block.least_bytes = 2 * product(sizes.sequences, sizes.context, sizes.kv_heads * sizes.head_dim) *
                          bytes_of(sizes.dtype);
    }
    block.problem = std::move(found.problem);
    block.usual = found.usual;
    add(std::move(block));
  }

  void add_latent_decode(const LatentAttention& latent) {
    constexpr int kKernels = 4;
    const std::int64_t cached = latent.key_value_rank + latent.rotary_dim;
    const double bytes = bytes_of(dtype_between(dtype_));
    const double weights = product(heads(), latent.plain_dim + latent.value_dim, latent.key_value_rank);
    const double keys = product(size_.sequences, size_.context);
    PassBlock block;
    block.name = "attention";
    block.kernels = kKernels;
    block.stream_bytes = (keys * static_cast<double>(cached) + weights) * bytes;
    block.stream_flops = 2 * keys * product(heads(), cached + latent.key_value_rank) +
                         2 * static_cast<double>(size_.sequences) * weights;
    block.least_bytes = block.stream_bytes;
    block.least_flops = block.stream_flops;
    add(std::move(block));
  }

  void add_router() {
    const Deployment layer{deployment_.tp, size_.phase, size_.rows, false};
    add_product({"router", Projection::columns, size_.rows, model_.experts, model_.hidden, 1}, layer);
    add_rows_stream("top-k", 1, size_.rows, model_.experts);
  }

  void add_experts() {
    const bool split = deployment_.ep == 1;  // every expert is split over the GPUs
    const std::int64_t tp = deployment_.tp;
    if (split && model_.expert_intermediate % tp != 0) {
      throw UserError(fmt::format("{}: {} does not divide the {} columns of an expert of {}", place_("tp"),
                                  tp, model_.expert_intermediate, model_.name));
    }
    const std::int64_t part = model_.expert_intermediate / (split ? tp : 1);
    const std::int64_t tokens = split ? size_.rows : size_.expert_tokens;
    LayerBlock found = routed_experts(
        {tokens, model_.experts, model_.experts_per_token, model_.hidden, part, dtype_, deployment_.ep},
        row_places());
    PassBlock block;
    block.name = "experts";
    block.least_bytes = product(experts_in_use(found), 3 * part, model_.hidden) * bytes_of(dtype_);
    block.least_flops = work_of(found.problem).flops / deployment_.ep;
    block.problem = std::move(found.problem);
    block.usual = found.usual;
    add(std::move(block));
    if (tp == 1) return;
    const DType between = dtype_between(dtype_);
    const std::string where = row_places();
    LayerBlock after = split ? summed_rows(size_.rows, model_.hidden, between, deployment_.tp, where)
                             : gathered_rows(tokens, model_.hidden, between, deployment_.tp, where);
    PassBlock exchange;
    exchange.name = split ? "expert-sum" : "expert-gather";
    exchange.problem = std::move(after.problem);
    exchange.usual = after.usual;
    add(std::move(exchange));
  }

  std::string row_places() const {
    if (size_.phase == Phase::decode) return place_("batch");
    return fmt::format("{} {} {}", place_("batch"), place_("context"), place_("pass_tokens"));
  }

  // Adds a block; equal blocks are kept once.
  void add(PassBlock block) {
    PassSection& current = pass_.sections.back();
    auto same = std::find_if(pass_.blocks.begin(), pass_.blocks.end(),
                             [&](const PassBlock& one) { return one.name == block.name; });
    if (same == pass_.blocks.end()) same = pass_.blocks.insert(same, std::move(block));
    same->times += current.repeats;
    current.blocks.push_back(static_cast<std::size_t>(same - pass_.blocks.begin()));
  }

  const LanguageModel& model_;
  const ModelDeployment& deployment_;
  const PassSize& size_;
  const DType dtype_;
  const FieldPlace& place_;
  ModelPass pass_;
};

std::int64_t ceil_share(std::int64_t all, std::int64_t parts) { return (all + parts - 1) / parts; }

}  // namespace

ModelPass decode_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                      std::int64_t context, DType dtype, const FieldPlace& place) {
  check_deployment(model, deployment, place);
  const std::int64_t least = deployment.ep > 1 ? deployment.ep : deployment.replicas();
  if (batch < least) {
    throw UserError(
        fmt::format("{}: {} sequences leave some of the {} GPUs that share the experts without a token; "
                    "give {} or more",
                    place("batch"), batch, deployment.ep, least));
  }
  PassSize size;
  size.sequences = size.rows = size.prompts = ceil_share(batch, deployment.replicas());
  size.context = context;
  size.expert_tokens = ceil_share(batch, deployment.ep);
  return PassWalk(model, deployment, size, dtype, place).pass();
}

ModelPass prefill_pass(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                       std::int64_t context, std::int64_t most_tokens, DType dtype, const FieldPlace& place) {
  check_deployment(model, deployment, place);
  const std::int64_t sequences = ceil_share(batch, deployment.replicas());
  PassSize size;
  size.phase = Phase::prefill;
  size.context = context;
  std::int64_t passes = 1;
  if (context > most_tokens) {
    const std::int64_t chunks = ceil_share(context, most_tokens);
    size.rows = ceil_share(context, chunks);
    size.attention_share = 1 / static_cast<double>(chunks);
    passes = sequences * chunks;
  } else {
    passes = ceil_share(sequences, most_tokens / context);
    size.sequences = size.prompts = ceil_share(sequences, passes);
    size.rows = size.sequences * context;
  }
  size.expert_tokens = ceil_share(size.rows, deployment.tp);
  ModelPass pass = PassWalk(model, deployment, size, dtype, place).pass();
  pass.passes = passes;
  return pass;
}

std::vector<std::string> left_out_of(const LanguageModel& model, bool engine, const FieldPlace& place) {
  std::vector<std::string> left_out;
  if (!engine)
    left_out.push_back(fmt::format("host work of a serving engine between steps ({})", place("engine_us")));
  left_out.emplace_back("the exchange of logits");
  if (model.experts > 0) {
    left_out.emplace_back("activations of routed experts");
    left_out.emplace_back("uneven choice of experts");
  }
  if (model.vocabulary == 0) left_out.emplace_back("embedding and head (the model file has no vocab_size)");
  left_out.emplace_back("workspace and activations in memory");
  return left_out;
}

ModelMemory memory_of(const LanguageModel& model, const ModelDeployment& deployment, std::int64_t batch,
                      std::int64_t context, DType dtype, const Gpu& gpu, const FieldPlace& place) {
  check_deployment(model, deployment, place);
  const Layers layers = layers_of(model, {deployment.tp, Phase::prefill, 1, false}, place("tp"));
  const double element = bytes_of(dtype);
  const double between = bytes_of(dtype_between(dtype));
  ModelMemory memory;
  memory.capacity_bytes = gpu.hbm_bytes;
  for (const Step& step : layers.steps)
    memory.weight_bytes += product(step.columns, step.depth, step.layers) * element;
  if (model.experts > 0) {
    const std::int64_t with_experts = model.layers - model.dense_layers;
    memory.weight_bytes += product(with_experts, model.experts, 3 * model.hidden) *
                           static_cast<double>(model.expert_intermediate) / deployment.gpus() * element;
    memory.weight_bytes += product(with_experts, model.experts, model.hidden) * element;
  }
  const std::int64_t tokens = (model.vocabulary + deployment.tp - 1) / deployment.tp;
  memory.weight_bytes += 2 * product(tokens, model.hidden) * element;
  memory.weight_bytes += product(2 * model.layers + 1, model.hidden) * between;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model.grouped.key_value_heads / deployment.tp);
  const std::int64_t columns = model.latent ? model.latent->key_value_rank + model.latent->rotary_dim
                                            : 2 * kv_heads * model.grouped.head_dim;
  memory.cache_bytes = product(ceil_share(batch, deployment.replicas()), context, model.layers) *
                       static_cast<double>(columns) * between;
  return memory;
}

}  // namespace tritax
