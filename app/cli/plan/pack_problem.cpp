// Makes packing problems from files and runs.
#include "app/cli/plan/pack.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/packing/greedy_by_size.h"
#include "core/plan/packing_file.h"
#include "core/plan/space_problem.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace loadline::cli {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// Lists spaces: "device 549 blocks, host 3 blocks".
std::string spaces_with_blocks(const PackRun& run) {
  std::string text;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto count = std::ranges::count_if(
        run.plan.blocks, [&](const Block& block) { return index(block.space) == i && block.bytes > 0; });
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", space_name(static_cast<Space>(i)),
                          counted(static_cast<std::uint64_t>(count), "block"));
  }
  return text.empty() ? "no blocks anywhere" : text;
}

// The labels of the blocks; of equal labels the second gets " #2", and so on.
std::vector<std::string> unique_labels(const PackRun& run, const std::vector<BlockId>& blocks) {
  const auto owners = first_owner(*run.graph);
  std::vector<std::string> labels;
  std::unordered_set<std::string> taken;
  for (const BlockId id : blocks) {
    labels.push_back(safe_display(block_label(run.plan.block(id), *run.graph, owners)));
    taken.insert(labels.back());
  }
  std::unordered_map<std::string, std::uint64_t> seen;
  for (std::string& label : labels) {
    std::uint64_t& count = seen[label];
    if (++count == 1) continue;
    std::string other;
    do {
      other = fmt::format("{} #{}", label, count++);
    } while (!taken.insert(other).second);
    --count;
    label = std::move(other);
  }
  return labels;
}

std::uint64_t& sum_of(BytesByUse& bytes, const Block& block) {
  if (block.use == BlockUse::storage) return bytes.weights;
  if (block.use == BlockUse::ring_slot) return bytes.ring_slots;
  if (block.use == BlockUse::value) return bytes.values;
  return block.storage ? bytes.weight_copies : bytes.temporaries;
}

void add_bytes(BytesByUse& bytes, const Block& block) {
  const auto together = checked_add(bytes.sum(), block.bytes);
  if (!together || *together > kMostBytes)
    throw Error(ErrorCode::limit, "the blocks of the run take more than 2^62 bytes together");
  sum_of(bytes, block) += block.bytes;
}

}  // namespace

Problem file_problem(const std::string& path, std::uint64_t alignment) {
  Problem problem = read_packing_file(path);
  // combines each buffer's own alignment with --align
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    Buffer& buffer = problem.buffers[i];
    const auto both = checked_mul(buffer.alignment / std::gcd(buffer.alignment, alignment), alignment);
    if (!both || *both > kMostBytes)
      throw Error(ErrorCode::limit, {.file = path},
                  "buffer '{}': alignment {} and --align {} have no common multiple below 2^62",
                  safe_display(problem.id_of(i)), buffer.alignment, alignment);
    buffer.alignment = *both;
  }
  return problem;
}

RunProblem run_problem(const PackRun& run, std::uint64_t alignment, const StopRule& rule) {
  SpaceProblem space = space_problem(run.plan, run.timeline, run.space, alignment);
  if (space.blocks.empty())
    throw Error(ErrorCode::usage, "--space {}: {} has no blocks there, but {}", space_name(run.space),
                run.text, spaces_with_blocks(run));
  RunProblem result;
  for (const BlockId id : space.blocks) add_bytes(result.bytes, run.plan.block(id));
  space.problem.ids = unique_labels(run, space.blocks);
  result.problem = std::move(space.problem);
  result.alive = run.timeline.peaks[index(run.space)].bytes;
  result.greedy = greedy_by_size_height(result.problem, rule);
  return result;
}

}  // namespace loadline::cli
