// Joins neighbouring symbols, the most important pair first, in n log n steps.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace loadline {

struct MergeRule {
  std::uint32_t rank = 0;  // the lowest joins first; of equal ones the leftmost
  std::uint32_t joined = 0;
};

// `rule(left, right)` gives the rule for a pair of symbols, or nothing. `symbols` becomes what stays.
template <typename Rule>
void merge_pairs(std::vector<std::uint32_t>& symbols, Rule rule) {
  struct Link {
    std::size_t previous, next;
    bool gone;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t left;
    std::uint32_t joined;
    // the queue gives its largest first
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const std::size_t none = symbols.size();
  std::vector<Link> links(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) links[i] = {i == 0 ? none : i - 1, i + 1, false};
  std::vector<Candidate> first;
  const auto candidate = [&](std::size_t left, std::size_t right) -> std::optional<Candidate> {
    if (left == none || right == none) return std::nullopt;
    const std::optional<MergeRule> found = rule(symbols[left], symbols[right]);
    if (!found) return std::nullopt;
    return Candidate{found->rank, left, found->joined};
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    if (const auto found = candidate(i, i + 1)) first.push_back(*found);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(first));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (links[top.left].gone || links[top.left].next == none) continue;
    const std::size_t right = links[top.left].next;
    // either symbol may have changed since the candidate was found
    const std::optional<MergeRule> now = rule(symbols[top.left], symbols[right]);
    if (!now || now->joined != top.joined) continue;
    symbols[top.left] = top.joined;
    links[top.left].next = links[right].next;
    links[right].gone = true;
    if (links[right].next != none) links[links[right].next].previous = top.left;
    if (const auto found = candidate(links[top.left].previous, top.left)) queue.push(*found);
    if (const auto found = candidate(top.left, links[top.left].next)) queue.push(*found);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (!links[i].gone) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace loadline
