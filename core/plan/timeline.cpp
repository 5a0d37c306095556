// Least-recently-used eviction over granules of mapped blocks.
#include "core/plan/cache_limit.h"

#include <algorithm>
#include <list>
#include <variant>
#include <vector>

namespace loadline {
namespace {

// A range of a mapped block that a copy touches.
struct Pass {
  BlockId block{};
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
  bool first = false;  // reads the range for the first time; the plan counts that read
  bool operator==(const Pass& other) const {
    return block == other.block && from == other.from && bytes == other.bytes;
  }
};

bool is_mapped(const Plan& plan, BlockId id) { return plan.block(id).space == Space::page_cache; }

std::vector<Pass> passes_of(const Plan& plan, const Step& step) {
  std::vector<Pass> passes;
  if (step.verb != Verb::copy || step.bytes == 0) return passes;
  if (is_mapped(plan, step.block)) passes.push_back({step.block, step.offset, step.bytes, true});
  if (const BlockId* from = std::get_if<BlockId>(&step.from); from != nullptr && is_mapped(plan, *from))
    passes.push_back({*from, step.from_offset, step.bytes});
  return passes;
}

class Cache {
 public:
  Cache(const Plan& plan, std::uint64_t limit) : plan_(plan), limit_(limit) {
    constexpr std::uint64_t kMostGranules = 1 << 18;
    std::uint64_t passed = 0;
    for (const Step& step : plan.steps)
      for (const Pass& pass : passes_of(plan, step)) passed += pass.bytes / kMostGranules;
    for (const Block& block : plan.blocks)
      if (block.space == Space::page_cache) passed += block.bytes / kMostGranules;
    while (granule_ < passed) granule_ *= 2;
    first_.reserve(plan.blocks.size());
    std::size_t granules = 0;
    for (const Block& block : plan.blocks) {
      first_.push_back(granules);
      if (block.space == Space::page_cache) granules += count(block.bytes);
    }
    kept_.resize(granules);
  }

  // Returns the bytes that were not cached.
  std::uint64_t touch(const Pass& pass) {
    std::uint64_t missed = 0;
    const std::uint64_t end = pass.from + pass.bytes;
    for (std::uint64_t i = pass.from / granule_; i * granule_ < end; ++i) {
      const std::uint64_t from = std::max(pass.from, i * granule_);
      const std::uint64_t to = std::min(end, (i + 1) * granule_);
      if (!keep({pass.block, i})) missed += to - from;
    }
    return missed;
  }

  void drop(BlockId block) {
    for (std::uint64_t i = 0; i < count(plan_.block(block).bytes); ++i) {
      Entry& entry = kept_[first_[index(block)] + i];
      if (entry.kept) forget(*entry.place);
    }
  }

 private:
  struct Granule {
    BlockId block{};
    std::uint64_t number = 0;
  };
  struct Entry {
    bool kept = false;
    std::list<Granule>::iterator place = {};
  };

  std::uint64_t count(std::uint64_t bytes) const { return bytes / granule_ + (bytes % granule_ != 0); }
  Entry& entry(const Granule& granule) { return kept_[first_[index(granule.block)] + granule.number]; }
  std::uint64_t bytes(const Granule& granule) const {
    return std::min(granule_, plan_.block(granule.block).bytes - granule.number * granule_);
  }

  void forget(const Granule& granule) {
    Entry& known = entry(granule);
    held_ -= bytes(granule);
    known.kept = false;
    used_.erase(known.place);
  }

  // Marks a granule as most recently used. Returns whether it was cached.
  bool keep(const Granule& granule) {
    Entry& known = entry(granule);
    if (known.kept) {
      used_.splice(used_.end(), used_, known.place);
      return true;
    }
    const std::uint64_t wanted = bytes(granule);
    if (wanted > limit_) return false;
    while (held_ > limit_ - wanted) forget(used_.front());
    known = {true, used_.insert(used_.end(), granule)};
    held_ += wanted;
    return false;
  }

  const Plan& plan_;
  std::uint64_t limit_;
  std::uint64_t granule_ = 64 << 10;
  std::vector<std::size_t> first_;  // by block: its first granule in kept_
  std::vector<Entry> kept_;
  std::list<Granule> used_;  // least recently used first
  std::uint64_t held_ = 0;
};

}  // namespace

CacheOutcome limit_cache(const Plan& plan, const Timeline& timeline, std::uint64_t limit) {
  const std::uint64_t mapped = timeline.peaks[index(Space::page_cache)].bytes;
  CacheOutcome outcome = {limit, mapped, std::min(mapped, limit), 0};
  if (mapped <= limit) return outcome;
  Cache cache(plan, limit);
  Pass last;
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::free && is_mapped(plan, step.block)) cache.drop(step.block);
    for (const Pass& pass : passes_of(plan, step)) {
      const bool same_pass = !pass.first && last.first && pass == last;
      last = pass;
      if (same_pass) continue;
      const std::uint64_t missed = cache.touch(pass);
      if (!pass.first) outcome.reread_bytes += missed;
    }
  }
  return outcome;
}

}  // namespace loadline
