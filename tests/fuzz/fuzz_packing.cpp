// libFuzzer target for files of buffers: whatever the bytes are, reading and packing them gives offsets that
// keep every rule, or an Error; what fits is never called infeasible, and what is written reads back alike.
#include "core/base/error.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "tests/support/packing.h"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace loadline;
using namespace loadline::tests;

constexpr double kSeconds = 0.05;
constexpr double kMostSeconds = 2;  // sanitizers are slow

packing::Packing packed(const packing::Problem& problem, std::vector<std::optional<std::uint64_t>> capacity) {
  packing::PackOptions options;
  options.capacity = std::move(capacity);
  options.effort = packing::Effort::bounded;
  options.seconds = kSeconds;
  packing::Packing packing = pack(problem, options);
  if (packing.seconds > kMostSeconds) std::abort();  // the clock is not heard
  if (packing::packing_fault(problem, packing, options.capacity)) std::abort();
  return packing;
}

// With its offsets every buffer is pinned: there is nothing left to decide.
void read_back(const packing::Problem& problem, const packing::Packing& packing) {
  const packing::Problem again =
      packing::read_packing_csv(packing::packing_csv(problem, packing.offsets), "output");
  if (again.buffers.size() != problem.buffers.size()) std::abort();
  std::vector<std::uint64_t> offsets;
  for (const packing::Buffer& buffer : again.buffers) offsets.push_back(buffer.offset.value());
  if (offsets != packing.offsets || packing::find_fault(again, offsets)) std::abort();
}

void run(std::string_view text) {
  const packing::Problem problem = packing::read_packing_csv(text, "input");
  const packing::Packing any = packed(problem, {});
  if (any.offsets.size() != problem.buffers.size()) return;
  if (any.verdict != packing::Verdict::feasible) std::abort();  // without a capacity there is always room
  read_back(problem, any);
  std::vector<std::optional<std::uint64_t>> heights, less;
  for (const packing::ArenaPacking& arena : any.arenas) {
    heights.emplace_back(arena.height);
    less.emplace_back(arena.lower_bound == 0 ? std::nullopt : std::optional(arena.lower_bound - 1));
  }
  if (packed(problem, heights).verdict == packing::Verdict::infeasible) std::abort();
  if (any.lower_bound() > 0 && packed(problem, less).verdict == packing::Verdict::feasible) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    run({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
  }
  return 0;
}
