#include "sim/study/model_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "sim/study/sparsity_roofline.hpp"

namespace tritax {

namespace {

void add_times(TimeAccount& sum, const TimeAccount& one, double times) {
  for (double TimeAccount::*part :
       {&TimeAccount::compute_ns, &TimeAccount::memory_ns, &TimeAccount::wire_ns, &TimeAccount::launch_ns,
        &TimeAccount::bulk_synchronous_ns, &TimeAccount::locality_ns, &TimeAccount::contention_ns}) {
    sum.*part += times * one.*part;
  }
}

// A stream that a host fills and GPUs empty; see the header.
class StreamClock {
 public:
  explicit StreamClock(const HostCosts& host) : host_(host) {}

  void run(const BlockRun& run, double share) {
    const double gpu_ns = run.gpu_ns() * share;
    const double calls_ns = run.calls_ns;
    const double first_call_ns = host_ns_ + calls_ns * run.last_share + host_.launch_latency_ns;
    host_ns_ += calls_ns;
    gpu_ns_ = std::max(std::max(gpu_ns_, first_call_ns) + gpu_ns + run.gaps_ns,
                       host_ns_ + host_.launch_latency_ns + run.last_share * gpu_ns);
    if (run.holds_host) host_ns_ = gpu_ns_ + host_.synchronize_ns;
  }
  double end_ns() const { return std::max(host_ns_, gpu_ns_) + host_.synchronize_ns; }

 private:
  const HostCosts& host_;
  double host_ns_ = 0;
  double gpu_ns_ = 0;
};

double stream_ns(const ModelPass& pass, const std::vector<const BlockRun*>& runs, const Machine& machine) {
  StreamClock clock(machine.host);
  for (const PassSection& section : pass.sections) {
    for (std::int64_t i = 0; i < section.repeats; ++i) {
      for (const std::size_t block : section.blocks) clock.run(*runs[block], pass.blocks[block].share);
    }
  }
  return clock.end_ns() + pass.engine_ns;
}

double graph_ns(const ModelPass& pass, const std::vector<const BlockRun*>& runs, const Machine& machine) {
  const HostCosts& host = machine.host;
  const double launch_ns = host.graph_launch_call_ns + host.launch_latency_ns + host.synchronize_ns;
  double sum_ns = launch_ns + pass.engine_ns;
  for (std::size_t i = 0; i < pass.blocks.size(); ++i) {
    const PassBlock& block = pass.blocks[i];
    const BlockRun& run = *runs[i];
    const double cut_ns = run.holds_host ? launch_ns : 0;
    sum_ns += static_cast<double>(block.times) * (run.gpu_ns() * block.share + run.graph_gaps_ns + cut_ns);
  }
  return sum_ns;
}

double ns_of(const ModelPass& pass, const std::vector<const BlockRun*>& runs, LaunchForm form,
             const Machine& machine) {
  return form == LaunchForm::graph ? graph_ns(pass, runs, machine) : stream_ns(pass, runs, machine);
}

// The problems of a question, each evaluated once.
class BlockCache {
 public:
  BlockCache(const ModelQuestion& question) : question_(question) {}

  using Found = std::shared_ptr<const BlockRuns>;

  // Nothing if the run was stopped.
  Found runs(const PassBlock& block, Phase phase) {
    if (!block.problem) return stream(block);
    const Selector& selector = selector_of(phase);
    std::string key = key_of_problem(*block.problem, selector, phase);
    const auto known = known_.find(key);
    if (known != known_.end()) {
      if (!known->second.refusal.empty()) throw UserError(known->second.refusal);
      return known->second.found;
    }
    if (question_.progress) question_.progress(done_, all_);
    Entry entry;
    try {
      const BlockOptions options{&selector, question_.seed, question_.threads, question_.stop,
                                 phase == Phase::decode};
      entry.found = std::make_shared<BlockRuns>(runs_of(*block.problem, question_.machine, options));
      if (stopped()) return nullptr;  // patterns may be missing
      entry.found->of(block.usual);
    } catch (const UserError& error) {
      entry.refusal = fmt::format("{}: {}", block.name, error.what());
    }
    if (stopped()) return nullptr;
    ++done_;
    const auto& kept = known_.emplace(std::move(key), std::move(entry)).first->second;
    if (!kept.refusal.empty()) throw UserError(kept.refusal);
    return kept.found;
  }

  void expect(const ModelPass& pass, Phase phase) {
    for (const PassBlock& block : pass.blocks) {
      if (block.problem && keys_.insert(key_of_problem(*block.problem, selector_of(phase), phase)).second)
        ++all_;
    }
  }

  bool stopped() const { return question_.stop != nullptr && question_.stop->load(); }
  std::size_t done() const { return done_; }

 private:
  struct Entry {
    std::shared_ptr<BlockRuns> found;
    std::string refusal;
  };

  const Selector& selector_of(Phase phase) const {
    const Selector* asked = phase == Phase::decode ? question_.decode_selector : question_.prefill_selector;
    return asked == nullptr ? usual_selector(phase) : *asked;
  }
  static std::string key_of_problem(const Problem& problem, const Selector& selector, Phase phase) {
    return fmt::format("{} {} {} {}", selector.name, static_cast<int>(phase), problem.workload->name,
                       key_of(problem.values));
  }

  Found stream(const PassBlock& block) const {
    auto found = std::make_shared<BlockRuns>();
    found->runs.push_back(stream_run(question_.machine, dtype_between(question_.dtype), block.kernels,
                                     block.stream_bytes, block.stream_flops));
    return found;
  }

  const ModelQuestion& question_;
  std::map<std::string, Entry> known_;
  std::set<std::string> keys_;
  std::size_t done_ = 0;
  std::size_t all_ = 0;
};

double taken_ns(const BlockRun& run, double share, LaunchForm form) {
  return run.gpu_ns() * share + (form == LaunchForm::graph ? run.graph_gaps_ns : run.gaps_ns);
}

// The verdict on one execution of the block, in the form of the phase.
Verdict verdict_of(const BlockAnswer& answer) {
  if (answer.best == answer.usual) return answer.found->runs.size() > 1 ? Verdict::leave_it : Verdict::alone;
  const Trust& trust = answer.found->trust;
  Contest contest;
  // A pass may gain nothing from a faster block if its host takes longer for it.
  contest.own_ns = answer.change >= 0 ? std::max(answer.best_ns, answer.usual_ns) : answer.best_ns;
  contest.there_ns = answer.usual_ns;
  contest.band =
      trust.between(*answer.best->pattern, contest.own_ns, *answer.usual->pattern, contest.there_ns);
  contest.compared = trust.cautions.empty();
  contest.own_doubted = answer.best->doubted;
  contest.library_doubted = answer.usual->doubted;
  contest.searched = answer.best->searched;
  return verdict_on(contest);
}

// Fills the rest of a phase whose blocks have their usual runs.
class PhaseJudge {
 public:
  PhaseJudge(PhaseAnswer& answer, const ModelQuestion& question)
      : answer_(answer), machine_(question.machine) {
    for (const BlockAnswer& block : answer.blocks) usual_.push_back(block.usual);
  }

  void judge(const RooflinePeaks& peaks) {
    const double usual_ns = ns_of(answer_.pass, usual_, answer_.form, machine_);
    std::vector<const BlockRun*> fused = usual_;
    for (std::size_t i = 0; i < answer_.blocks.size(); ++i) {
      find_best(i, usual_ns);
      if (answer_.blocks[i].verdict == Verdict::pays) fused[i] = answer_.blocks[i].best;
    }
    const auto passes = static_cast<double>(answer_.pass.passes);
    for (const LaunchForm form : {LaunchForm::graph, LaunchForm::stream}) {
      add_times(answer_.usual[static_cast<std::size_t>(form)],
                account_of(answer_.pass, usual_, form, machine_), passes);
    }
    add_times(answer_.fused, account_of(answer_.pass, fused, answer_.form, machine_), passes);
    for (const PassBlock& block : answer_.pass.blocks) {
      answer_.least_ns += passes * static_cast<double>(block.times) *
                          std::max(block.least_bytes / peaks.gb_per_s, block.least_flops / peaks.gflop_per_s);
    }
  }

 private:
  void find_best(std::size_t index, double usual_ns) {
    BlockAnswer& block = answer_.blocks[index];
    const double share = answer_.pass.blocks[index].share;
    std::vector<const BlockRun*> runs = usual_;
    double best_ns = 0;
    block.best = block.usual;
    for (const BlockRun& run : block.found->runs) {
      if (&run == block.usual) continue;
      if (answer_.form == LaunchForm::graph && run.holds_host) continue;
      runs[index] = &run;
      const double ns = ns_of(answer_.pass, runs, answer_.form, machine_);
      if (block.best != block.usual && ns >= best_ns) continue;
      block.best = &run;
      best_ns = ns;
    }
    if (block.best != block.usual) block.change = best_ns / usual_ns - 1;
    block.usual_ns = taken_ns(*block.usual, share, answer_.form);
    block.best_ns = taken_ns(*block.best, share, answer_.form);
    block.verdict = verdict_of(block);
  }

  PhaseAnswer& answer_;
  const Machine& machine_;
  std::vector<const BlockRun*> usual_;
};

// Nothing if the run was stopped.
std::optional<PhaseAnswer> phase_answer(ModelPass pass, Phase phase, const ModelQuestion& question,
                                        BlockCache& cache) {
  PhaseAnswer answer;
  answer.form = phase == Phase::decode ? LaunchForm::graph : LaunchForm::stream;
  answer.pass = std::move(pass);
  for (const PassBlock& block : answer.pass.blocks) {
    BlockAnswer& one = answer.blocks.emplace_back();
    one.found = cache.runs(block, phase);
    if (one.found == nullptr) return std::nullopt;
    one.usual = block.problem ? &one.found->of(block.usual) : &one.found->runs.front();
  }
  PhaseJudge(answer, question).judge(peaks_of(question.machine, question.dtype));
  return answer;
}

// The passes of a point, or the reason why there are none.
struct PlannedPoint {
  ModelAnswer answer;
  ModelPass decode, prefill;
};

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }

PlannedPoint plan_of(const ModelPoint& point, const ModelQuestion& question) {
  PlannedPoint plan;
  plan.answer.point = point;
  const auto& [batch, context, deployment] = point;
  const FieldPlace& place = question.place;
  try {
    const ModelMemory memory =
        memory_of(question.model, deployment, batch, context, question.dtype, question.machine.gpu, place);
    plan.answer.memory = memory;
    if (!memory.fits()) {
      throw UserError(fmt::format(
          "does not fit: {} of weights and {} of cache per GPU, of {} ({:.0f} bytes over); give more GPUs by "
          "{} or {}, or less {} or {}",
          gigabytes(memory.weight_bytes), gigabytes(memory.cache_bytes), gigabytes(memory.capacity_bytes),
          memory.bytes() - memory.capacity_bytes, place("tp"), place("ep"), place("batch"),
          place("context")));
    }
    plan.decode = decode_pass(question.model, deployment, batch, context, question.dtype, place);
    plan.prefill =
        prefill_pass(question.model, deployment, batch, context, question.pass_tokens, question.dtype, place);
    plan.decode.engine_ns = plan.prefill.engine_ns = question.engine_ns;
  } catch (const UserError& error) {
    plan.answer.refusal = error.what();
  }
  return plan;
}

void add_cautions(std::vector<std::string>& cautions, const PhaseAnswer& phase) {
  for (const BlockAnswer& block : phase.blocks) {
    if (block.verdict == Verdict::alone) continue;
    for (const std::string& caution : block.found->trust.cautions) {
      if (std::find(cautions.begin(), cautions.end(), caution) == cautions.end()) cautions.push_back(caution);
    }
  }
}

}  // namespace

TimeAccount account_of(const ModelPass& pass, const std::vector<const BlockRun*>& runs, LaunchForm form,
                       const Machine& machine) {
  TimeAccount account;
  double gpu_ns = 0;
  for (std::size_t i = 0; i < pass.blocks.size(); ++i) {
    const double times = static_cast<double>(pass.blocks[i].times) * pass.blocks[i].share;
    add_times(account, runs[i]->account, times);
    gpu_ns += times * runs[i]->gpu_ns();
  }
  account.launch_ns += ns_of(pass, runs, form, machine) - gpu_ns;
  return account;
}

TimeAccount account_of_block(const PhaseAnswer& phase, std::size_t index) {
  TimeAccount account;
  add_times(account, phase.blocks[index].usual->account, phase.pass.blocks[index].share);
  return account;
}

double ModelAnswer::tokens_per_s() const {
  return decode ? static_cast<double>(point.batch) / (decode->time_ns() * 1e-9) / point.deployment.gpus() : 0;
}

const Selector& usual_selector(Phase phase) {
  return find_selector(phase == Phase::decode ? "bounds" : "defaults", "the default");
}

ModelAnswers answer_model(const ModelQuestion& question) {
  BlockCache cache(question);
  std::vector<PlannedPoint> plans;
  for (const ModelPoint& point : question.points) {
    PlannedPoint& plan = plans.emplace_back(plan_of(point, question));
    if (!plan.answer.refusal.empty()) continue;
    cache.expect(plan.decode, Phase::decode);
    cache.expect(plan.prefill, Phase::prefill);
  }
  ModelAnswers answers;
  for (PlannedPoint& plan : plans) {
    ModelAnswer& answer = plan.answer;
    try {
      if (answer.refusal.empty()) {
        answer.decode = phase_answer(std::move(plan.decode), Phase::decode, question, cache);
        if (answer.decode)
          answer.prefill = phase_answer(std::move(plan.prefill), Phase::prefill, question, cache);
      }
    } catch (const UserError& error) {
      answer.refusal = error.what();
      answer.decode.reset();
    }
    answers.interrupted = cache.stopped();
    if (answers.interrupted && !answer.prefill) break;
    if (answer.decode) add_cautions(answers.cautions, *answer.decode);
    if (answer.prefill) add_cautions(answers.cautions, *answer.prefill);
    answers.points.push_back(std::move(answer));
  }
  answers.problems = cache.done();
  const bool none = !answers.interrupted && std::none_of(answers.points.begin(), answers.points.end(),
                                                         [](const ModelAnswer& one) { return one.prefill; });
  if (none && !answers.points.empty()) throw UserError(answers.points.front().refusal);
  return answers;
}

}  // namespace tritax
