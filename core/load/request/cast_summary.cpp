// Counts tensors by the result of storage_casts().
#include "core/load/request/cast_summary.h"

#include "core/base/text.h"
#include "core/load/request/casts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline {
namespace {

// The reason after those of KeptWhy: another tensor on the storage is kept or has another type.
constexpr std::size_t kShared = kKeptWhys;

// Wording after "1 " and after any other count.
struct Words {
  std::string_view one;
  std::string_view many;
};
std::string reason_text(std::size_t why, std::uint64_t count, DType to) {
  constexpr std::array<Words, kKeptWhys + 1> kWords = {
      {{"is {} already", "are {} already"},
       {"is quantised already", "are quantised already"},
       {"does not hold floating point numbers", "do not hold floating point numbers"},
       {"has bytes that are no whole numbers", "have bytes that are no whole numbers"},
       {"is no matrix of rows of whole blocks", "are no matrices of rows of whole blocks"},
       {"would be too large", "would be too large"},
       {"shares its bytes with one that is kept or of another type",
        "share their bytes with ones that are kept or of another type"}}};
  const Words& words = kWords[why];
  return fmt::format(fmt::runtime(count == 1 ? words.one : words.many), dtype_info(to).name);
}

}  // namespace

CastSummary cast_summary(const MetaGraph& graph, DType to) {
  CastSummary summary;
  const auto casts = storage_casts(graph, to);
  std::vector<bool> counted_storage(graph.storages.size(), false);
  std::array<std::uint64_t, kKeptWhys + 1> kept = {};
  const auto reasons = kept_reasons(graph, to);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::size_t at = index(graph.tensors[i].storage);
    if (!casts[at]) {
      const std::optional<KeptWhy> why = reasons[i];
      ++kept[why ? static_cast<std::size_t>(*why) : kShared];
      ++summary.kept;
      continue;
    }
    ++summary.tensors;
    if (counted_storage[at]) continue;
    counted_storage[at] = true;
    summary.bytes_before += graph.storages[at].bytes;
    summary.bytes_after = add_loaded(summary.bytes_after, *cast_bytes(*casts[at], graph.storages[at].bytes));
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i] > 0) summary.reasons.emplace_back(reason_text(i, kept[i], to), kept[i]);
  std::ranges::stable_sort(summary.reasons, [](const auto& a, const auto& b) { return a.second > b.second; });
  return summary;
}

std::string cast_text(const CastSummary& summary, DType to) {
  std::string text = summary.tensors == 0
                         ? fmt::format("The cast to {} changes nothing", dtype_info(to).name)
                         : fmt::format("Cast to {}: {}, {} become {}", dtype_info(to).name,
                                       counted(summary.tensors, "tensor"), format_bytes(summary.bytes_before),
                                       format_bytes(summary.bytes_after));
  if (summary.kept == 0) return text + ".";
  text += fmt::format("{} {} {} as stored: ", summary.tensors == 0 ? ":" : ";",
                      counted(summary.kept, "tensor"), summary.kept == 1 ? "stays" : "stay");
  for (std::size_t i = 0; i < summary.reasons.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", format_grouped(summary.reasons[i].second),
                        summary.reasons[i].first);
  return text + ".";
}

}  // namespace loadline
