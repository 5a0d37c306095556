// Options, answer and pack(); the check of an answer without knowing how it was made.
#pragma once

#include "core/base/progress.h"
#include "core/packing/problem.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loadline::packing {

// --- Finds offsets for the buffers of a problem: by fast heuristics first, then by exact search as far as
// time allows.

// How many algorithms run. Below `full` the result depends on the problem and the seed only, unless time runs
// out.
enum class Effort : std::uint8_t {
  greedy,   // simple orders: a fraction of a second for 100,000 buffers
  bounded,  // also some rounds of the squeaky wheel and some attempts of exact search
  full      // until the problem is decided
};

struct PackOptions {
  std::vector<std::optional<std::uint64_t>> capacity = {};  // by arena; nothing: unbounded
  // Seek the least height and a proof, with or without a capacity. If false, the first packing within the
  // capacity ends the search.
  bool minimize = false;
  Effort effort = Effort::full;
  std::optional<double> seconds = {};  // time limit; absent: none
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

struct ArenaPacking {
  static constexpr std::uint64_t kNotPacked = UINT64_MAX;
  std::uint64_t height = 0;       // the highest end; kNotPacked if no packing below 2^62 is known
  std::uint64_t lower_bound = 0;  // no packing is lower; raised by proofs
  Lifespan bound_ticks = {};      // where the bound is attained; empty once a proof has raised it
  bool proven_optimal = false;    // height == lower_bound
};

struct Packing {
  Verdict verdict = Verdict::undecided;
  // By buffer; they keep every rule, except possibly the capacity. Empty if an arena is not packed.
  std::vector<std::uint64_t> offsets = {};
  std::vector<ArenaPacking> arenas = {};  // at least one
  // The algorithm that gave the highest component its height; empty if a pinned buffer is the highest.
  std::string algorithm = {};
  std::uint64_t nodes = 0;  // decisions of exact search; with several threads, varies from run to run
  double seconds = 0;

  std::uint64_t height() const;       // the greatest of all arenas
  std::uint64_t lower_bound() const;  // likewise
  bool proven_optimal() const;        // for all arenas
};

// Checks the problem first, as check_problem() and normal_form() do. Equal problem, options and seed give
// equal packings, unless the clock ends the search. Uses about 500 bytes per buffer or part of one; exact
// search uses at most 512 MiB, plus 128 MiB per thread. Throws Error{canceled}.
Packing pack(const Problem& problem, const PackOptions& options, Progress& progress);

// --- Checks a packing without knowing how it was made.

// The first fault of `offsets` (one per buffer), in words; nothing if the packing keeps every rule. Faults
// are: an offset that breaks alignment or pin; a buffer, alive at some tick, that ends past `capacity` (by
// arena; absent: unbounded); members of a group at different offsets; two buffers alive at the same tick that
// share a byte. Sweeps over the ticks: a million buffers take seconds.
std::optional<std::string> find_fault(const Problem& problem, std::span<const std::uint64_t> offsets,
                                      std::span<const std::optional<std::uint64_t>> capacity = {});

// The first fault of a whole answer: offsets that break a rule, a height that is not the highest end, a
// height below its lower bound, or a verdict that contradicts the heights. Nothing if the answer may be
// shown.
std::optional<std::string> packing_fault(const Problem& problem, const Packing& packing,
                                         std::span<const std::optional<std::uint64_t>> capacity = {});

// Whether both buffers are alive at some common tick; a buffer is not alive in its gaps.
bool alive_together(const Buffer& a, const Buffer& b);

}  // namespace loadline::packing
