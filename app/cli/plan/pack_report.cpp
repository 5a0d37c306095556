// Packings as text and as JSON.
#include "app/cli/plan/pack.h"
#include "app/cli/plan/plan_display.h"
#include "core/base/text.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

// The share of the arena that is unused at the moment of most requested bytes.
double fragmentation_percent(const PackAnswer& answer) {
  const double height = static_cast<double>(answer.packing.height());
  return height == 0 ? 0 : 100 * (height - static_cast<double>(answer.of_run->alive)) / height;
}

// For a run, whose ticks are plan steps: the label of the buffer that begins where the bound's ticks begin.
std::string bound_block(const PackAnswer& answer, const packing::ArenaPacking& arena) {
  for (std::size_t i = 0; i < answer.problem.buffers.size(); ++i)
    if (answer.problem.buffers[i].lower == arena.bound_ticks.lower) return answer.problem.id_of(i);
  return "";
}

std::optional<std::uint64_t> capacity_of(const PackAnswer& answer, std::size_t arena) {
  return arena < answer.asked.capacity.size() ? answer.asked.capacity[arena] : std::nullopt;
}

// Where the bound is attained; null if search has raised it.
Json bound_json(const PackAnswer& answer, const packing::ArenaPacking& arena) {
  if (arena.bound_ticks == packing::Lifespan{}) return {};
  Json json = {{"lower", arena.bound_ticks.lower}, {"upper", arena.bound_ticks.upper}};
  if (answer.run != nullptr) json["block"] = json_text(bound_block(answer, arena));
  return json;
}

bool packed(std::uint64_t height) { return height != packing::ArenaPacking::kNotPacked; }

Json arena_json(const PackAnswer& answer, std::size_t at) {
  const packing::ArenaPacking& arena = answer.packing.arenas[at];
  const bool known = packed(arena.height);
  Json json = {{"height", known ? Json(arena.height) : Json()},
               {"lower_bound", arena.lower_bound},
               {"bound", bound_json(answer, arena)},
               {"gap_percent", known ? Json(packing::percent_over(arena.height, arena.lower_bound)) : Json()},
               {"proven_optimal", arena.proven_optimal}};
  if (const auto capacity = capacity_of(answer, at)) json["capacity"] = *capacity;
  return json;
}

void add_run(Json& json, const PackAnswer& answer) {
  const PackRun& run = *answer.run;
  const BytesByUse& bytes = answer.of_run->bytes;
  json["model"] = json_text(graph::model_name(*run.graph));
  json["space"] = plan::space_name(run.space);
  json["method"] = run.method.empty() ? Json() : Json(run.method);
  json["order"] = run.order.empty() ? Json() : Json(json_text(run.order));
  json["forward"] = run.forward == nullptr ? Json() : forward_json(*run.forward);
  json["alignment"] = answer.alignment;
  json["bytes"] = {{"weights", bytes.weights},
                   {"weight_copies", bytes.weight_copies},
                   {"ring_slots", bytes.ring_slots},
                   {"activations_and_cache", bytes.values},
                   {"temporaries", bytes.temporaries}};
  json["unshared_bytes"] = bytes.sum();
  json["most_alive_bytes"] = answer.of_run->alive;
  json["fragmentation_percent"] =
      packed(answer.packing.height()) ? Json(fragmentation_percent(answer)) : Json();
  json["greedy_by_size_height"] = answer.of_run->greedy ? Json(*answer.of_run->greedy) : Json();
}

std::string run_text(const PackAnswer& answer) {
  const PackRun& run = *answer.run;
  const BytesByUse& bytes = answer.of_run->bytes;
  std::string parts;
  const auto part = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", what, format_bytes(count));
  };
  part(bytes.weights, "weights");
  part(bytes.weight_copies, "copies of weights");
  part(bytes.ring_slots, "ring slots");
  part(bytes.values, run.forward != nullptr ? "activations and cache" : "activations");
  part(bytes.temporaries, "temporaries");
  return fmt::format("{} of {}: {}{}\n  {} for itself: {}\n", plan::space_title(run.space), run.text,
                     counted(answer.problem.buffers.size(), "block"),
                     run.method.empty() ? ", without the weights" : "",
                     answer.problem.buffers.size() == 1 ? "it" : "each", parts);
}

std::string comparison_text(const PackAnswer& answer) {
  const RunProblem& of = *answer.of_run;
  if (!packed(answer.packing.height())) return "";
  const double height = static_cast<double>(answer.packing.height());
  std::string text = fmt::format(
      "  fragmentation {:.2f} %: at most {} are live at once\n"
      "  without sharing {}, {:.2f} times as much\n",
      fragmentation_percent(answer), format_bytes(of.alive), format_bytes(of.bytes.sum()),
      height == 0 ? 0.0 : static_cast<double>(of.bytes.sum()) / height);
  if (of.greedy)
    text += fmt::format("  greedy by size, as TensorFlow Lite plans: {}, {:.3f} % above the lower bound\n",
                        format_bytes(*of.greedy),
                        packing::percent_over(*of.greedy, answer.packing.lower_bound()));
  return text;
}

std::string over_text(std::uint64_t height, std::uint64_t bound) {
  constexpr double kMany = 1000;
  const double percent = packing::percent_over(height, bound);
  return percent < kMany ? fmt::format("{:.3f} % above that", percent)
                         : fmt::format("{:.3g} times that", 1 + percent / 100);
}

std::string arena_text(const PackAnswer& answer, std::size_t at) {
  const packing::ArenaPacking& arena = answer.packing.arenas[at];
  if (!packed(arena.height))
    return fmt::format("no packing below 2^62 bytes is known\n  at least {} ({}) are needed\n",
                       format_bytes(arena.lower_bound), counted(arena.lower_bound, "byte"));
  std::string text = fmt::format("height {} ({})", format_bytes(arena.height), counted(arena.height, "byte"));
  if (const auto capacity = capacity_of(answer, at)) text += fmt::format(" of {}", format_bytes(*capacity));
  if (arena.proven_optimal) return text + ", proved optimal\n";
  const std::string when =
      arena.bound_ticks == packing::Lifespan{} ? "proved by search"
      : answer.run == nullptr
          ? fmt::format("in ticks {} to {}", arena.bound_ticks.lower, arena.bound_ticks.upper)
          : fmt::format("from '{}' on", safe_display(bound_block(answer, arena), 80));
  return text + fmt::format("\n  at least {} ({}) are needed, {}: {}\n", format_bytes(arena.lower_bound),
                            counted(arena.lower_bound, "byte"), when,
                            over_text(arena.height, arena.lower_bound));
}

std::string verdict_text(const PackAnswer& answer) {
  const packing::Verdict verdict = answer.packing.verdict;
  if (verdict == packing::Verdict::feasible) return answer.asked.capacity.empty() ? "" : "Feasible.\n";
  if (verdict == packing::Verdict::infeasible) return "Infeasible (proved): no offsets fit the capacity.\n";
  if (!packed(answer.packing.height())) return "";
  return "Undecided: neither a packing nor a proof was found in the time given.\n";
}

// Without an algorithm there was nothing to decide.
std::string work_text(const PackAnswer& answer) {
  const packing::Packing& packing = answer.packing;
  const std::string buffers = counted(answer.problem.buffers.size(), "buffer");
  const std::string time = format_seconds(packing.seconds);
  if (!packed(packing.height())) return fmt::format("{} not packed in {}", buffers, time);
  if (!packing.algorithm.empty())
    return fmt::format("{} packed in {} by {}", buffers, time, packing.algorithm);
  if (answer.problem.buffers.empty()) return fmt::format("{}: nothing to pack", buffers);
  if (packing.height() == 0) return fmt::format("{}: all buffers are empty", buffers);
  return fmt::format("{} packed in {}: pinned buffers set the height", buffers, time);
}

}  // namespace

Json packing_json(const PackAnswer& answer) {
  const packing::Packing& packing = answer.packing;
  Json json = {{"buffers", answer.problem.buffers.size()},
               {"lower_bound", packing.lower_bound()},
               {"height", packed(packing.height()) ? Json(packing.height()) : Json()},
               {"verdict", packing::verdict_name(packing.verdict)},
               {"proven_optimal", packing.proven_optimal()},
               {"seconds", packing.seconds},
               {"algorithm", packing.algorithm},
               {"seed", answer.asked.seed},
               {"threads", answer.asked.threads},
               {"nodes", packing.nodes},
               {"arenas", Json::array()}};
  for (std::size_t i = 0; i < packing.arenas.size(); ++i) json["arenas"].push_back(arena_json(answer, i));
  if (!answer.out.empty()) json["out"] = json_text(answer.out);
  if (answer.run != nullptr) add_run(json, answer);
  return json;
}

std::string packing_text(const PackAnswer& answer) {
  const packing::Packing& packing = answer.packing;
  std::string text = answer.run == nullptr ? "" : run_text(answer);
  for (std::size_t i = 0; i < packing.arenas.size(); ++i) {
    if (packing.arenas.size() > 1) text += fmt::format("Arena {}: ", i);
    text += arena_text(answer, i);
  }
  if (answer.run != nullptr) text += comparison_text(answer);
  text += verdict_text(answer);
  text += work_text(answer);
  if (packing.nodes > 0) text += fmt::format(", {}", counted(packing.nodes, "decision"));
  text += "\n";
  if (answer.out.empty() && !answer.asked_out.empty())
    text +=
        fmt::format("{} is not written: no offsets fit the capacity\n", safe_display(answer.asked_out, 120));
  if (answer.run != nullptr)
    for (const std::string& note : answer.run->notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace loadline::cli
