// libFuzzer target for verdicts: the bytes are a problem of at most seven buffers with gaps, pins, groups,
// alignments and two arenas, and a capacity, and the answer is that of trying every offset.
#include "core/base/error.h"
#include "core/packing/pack.h"
#include "tests/packing/brute_force.h"
#include "tests/support/packing.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

using namespace loadline;
using namespace loadline::tests;

constexpr std::size_t kMostBuffers = 7;
constexpr std::uint64_t kTicks = 8;
constexpr std::uint64_t kMostPlace = 96;  // above every packing that is compared

// Zeros behind the last byte.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return at_ >= bytes_.size(); }
  std::uint64_t below(std::uint64_t most) { return (empty() ? 0 : bytes_[at_++]) % most; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

packing::Buffer read_buffer(Bytes& bytes) {
  packing::Buffer buffer;
  buffer.lower = bytes.below(kTicks);
  buffer.upper = buffer.lower + bytes.below(kTicks - buffer.lower + 1);
  buffer.size = bytes.below(5);
  const std::uint64_t alignments[] = {1, 1, 2, 3, 4};
  buffer.alignment = alignments[bytes.below(5)];
  const std::uint64_t features = bytes.below(32);
  if ((features & 8) != 0) buffer.arena = 1;
  if ((features & 1) != 0 && buffer.upper - buffer.lower >= 2) {
    const std::uint64_t from = buffer.lower + bytes.below(buffer.upper - buffer.lower);
    buffer.gaps.push_back({from, from + bytes.below(buffer.upper - from + 1)});
  }
  if ((features & 2) != 0)
    buffer.group = 2 * buffer.arena + static_cast<std::uint32_t>(bytes.below(2));
  else if ((features & 4) != 0)
    buffer.offset = bytes.below(6) * buffer.alignment;
  if ((features & 18) == 18) buffer.offset = 12 * bytes.below(2);  // a multiple of every alignment
  return buffer;
}

// The first member says for its group whether and where it is pinned.
void pin_groups(packing::Problem& problem) {
  for (packing::Buffer& buffer : problem.buffers) {
    if (buffer.group == packing::kNoGroup) continue;
    const auto first =
        std::find_if(problem.buffers.begin(), problem.buffers.end(),
                     [&](const packing::Buffer& other) { return other.group == buffer.group; });
    buffer.offset = first->offset;
  }
}

// First those that leave trying every offset the fewest of them: pinned, then alive for long.
packing::Problem read_problem(Bytes& bytes) {
  packing::Problem problem;
  while (!bytes.empty() && problem.buffers.size() < kMostBuffers)
    problem.buffers.push_back(read_buffer(bytes));
  pin_groups(problem);
  std::stable_sort(problem.buffers.begin(), problem.buffers.end(),
                   [](const packing::Buffer& a, const packing::Buffer& b) {
                     if (a.offset.has_value() != b.offset.has_value()) return a.offset.has_value();
                     return a.upper - a.lower > b.upper - b.lower;
                   });
  return problem;
}

bool pins_clash(const packing::Problem& problem) {
  for (const packing::Buffer& a : problem.buffers)
    for (const packing::Buffer& b : problem.buffers)
      if (&a != &b && a.arena == b.arena && (a.group == packing::kNoGroup || a.group != b.group) &&
          a.offset && b.offset && packing::alive_together(a, b) && *a.offset < *b.offset + b.size &&
          *b.offset < *a.offset + a.size)
        return true;
  return false;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void compare(const packing::Problem& problem, std::uint64_t capacity) {
  EveryOffset every(problem, numbers_to(kMostPlace));
  const std::uint64_t alive = most_alive(problem);
  const auto fits = [&](std::uint64_t bytes) { return bytes >= alive && every.fit(bytes); };
  packing::PackOptions options;
  options.capacity = {capacity, capacity};
  const packing::Packing packing = pack(problem, options);
  require(packing.verdict == (fits(capacity) ? packing::Verdict::feasible : packing::Verdict::infeasible));
  if (packing.verdict == packing::Verdict::feasible)
    require(!packing::find_fault(problem, packing.offsets, options.capacity));
  options.capacity.clear();
  options.minimize = true;
  const packing::Packing lowest = pack(problem, options);
  require(lowest.proven_optimal() && !packing::find_fault(problem, lowest.offsets));
  require(lowest.height() == 0 || !fits(lowest.height() - 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  const std::uint64_t capacity = bytes.below(24);
  const packing::Problem problem = read_problem(bytes);
  try {
    compare(problem, capacity);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::malformed || !pins_clash(problem)) std::abort();
  }
  return 0;
}
