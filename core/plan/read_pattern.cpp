// Follows a plan's reads through the files.
#include "core/plan/read_pattern.h"

#include "core/base/checked_arithmetic.h"

#include <optional>
#include <vector>

namespace loadline {
namespace {

constexpr std::uint64_t kPage = 4096;

// The offset in the stored storage that corresponds to byte `at` of its decoded contents.
std::uint64_t stored_at(const Storage& storage, std::uint64_t at) {
  if (storage.stored_bytes == storage.bytes || storage.bytes == 0) return at;
  const auto exact = static_cast<unsigned __int128>(storage.stored_bytes) * at / storage.bytes;
  return static_cast<std::uint64_t>(exact);  // at <= bytes
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(UINT64_MAX);
}

}  // namespace

ReadPattern read_pattern(const Plan& plan, const MetaGraph& graph) {
  ReadPattern pattern;
  std::vector<std::optional<std::uint64_t>> ends(graph.files.size());  // of the last read in each file
  FileId last = kNoFile;
  for (const Step& step : plan.steps) {
    if (step.verb != Verb::copy || !std::holds_alternative<StorageId>(step.from)) continue;
    const Storage& storage = graph.storage(std::get<StorageId>(step.from));
    const std::uint64_t from = stored_at(storage, step.from_offset);
    const std::uint64_t to = stored_at(storage, step.from_offset + step.bytes);
    pattern.bytes = saturating_add(pattern.bytes, to - from);
    ++pattern.reads;
    if (index(storage.file) >= ends.size()) continue;  // kNoFile
    const std::uint64_t start = storage.offset + from;
    auto& end = ends[index(storage.file)];
    const std::uint64_t skipped = !end ? 0 : start >= *end ? start - *end : *end - start;
    const bool goes_on = storage.file == last && start >= *end && skipped < kPage;
    if (!goes_on && last != kNoFile) ++pattern.jumps;
    pattern.distance = saturating_add(pattern.distance, skipped);
    end = storage.offset + to;
    last = storage.file;
  }
  return pattern;
}

}  // namespace loadline
