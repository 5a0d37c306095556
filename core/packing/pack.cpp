// Runs arenas and components by turns and combines their results.
#include "core/packing/pack.h"

#include "core/packing/arena_packer.h"

#include <algorithm>
#include <chrono>

namespace loadline {
namespace {

using Clock = std::chrono::steady_clock;

// Gives each arena turns until nothing is left to gain, one is proved too small, or time runs out.
void run(std::vector<ArenaPacker>& packers, bool minimize, const StopRule& rule) {
  for (ArenaPacker& packer : packers) packer.begin(rule);
  const auto refused = [](const ArenaPacker& packer) { return packer.refused(); };
  for (bool more = true; more && !rule.due();) {
    more = false;
    if (!minimize && std::ranges::any_of(packers, refused)) return;
    for (ArenaPacker& packer : packers) more |= !rule.due() && packer.step(rule);
  }
}

Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::infeasible || b == Verdict::infeasible) return Verdict::infeasible;
  return a == Verdict::undecided ? a : b;
}

}  // namespace

std::uint64_t Packing::height() const {
  std::uint64_t most = 0;
  for (const ArenaPacking& arena : arenas) most = std::max(most, arena.height);
  return most;
}

std::uint64_t Packing::lower_bound() const {
  std::uint64_t most = 0;
  for (const ArenaPacking& arena : arenas) most = std::max(most, arena.lower_bound);
  return most;
}

bool Packing::proven_optimal() const {
  return std::ranges::all_of(arenas, [](const ArenaPacking& a) { return a.proven_optimal; });
}

Packing pack(const Problem& problem, const PackOptions& options, Progress& progress) {
  const auto begin = Clock::now();
  check_problem(problem);
  StopRule rule;
  rule.stop = progress.stop_token();
  if (options.seconds)
    rule.deadline =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*options.seconds));
  const std::uint32_t arenas = arena_count(problem);
  std::vector<ArenaPacker> packers;
  for (std::uint32_t arena = 0; arena < arenas; ++arena) packers.emplace_back(problem, arena, options);
  run(packers, options.minimize, rule);
  progress.check_cancelled();
  Packing packing;
  packing.offsets.assign(problem.buffers.size(), 0);
  packing.verdict = Verdict::feasible;
  for (const ArenaPacker& packer : packers) {
    const ArenaPacking arena = packer.result();
    if (packing.arenas.empty() || arena.height > packing.height()) packing.algorithm = packer.algorithm();
    packing.arenas.push_back(arena);
    packing.nodes += packer.nodes();
    packing.verdict = worse(packing.verdict, packer.verdict());
    packer.write(packing.offsets);
  }
  if (packing.height() == ArenaPacking::kNotPacked) packing.offsets.clear();
  packing.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return packing;
}

}  // namespace loadline
