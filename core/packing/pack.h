// Offsets for the buffers of a problem: from fast heuristics to proof, as far as time goes.
#pragma once

#include "core/base/progress.h"
#include "core/packing/problem.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline {

// How far up the ladder. What is below `full` hangs on the problem and the seed alone, unless time is short.
enum class Effort : std::uint8_t {
  greedy,   // the plain orders: a fraction of a second for 100,000 buffers
  bounded,  // then some rounds of the squeaky wheel and some attempts of exact search
  full      // until it is decided
};

struct PackOptions {
  std::vector<std::optional<std::uint64_t>> capacity = {};  // by arena; nothing: unbounded
  // Look for the least height, and for proof, also where there is no capacity; else the first packing within
  // it ends the search.
  bool minimize = false;
  Effort effort = Effort::full;
  std::optional<double> seconds = {};  // of the clock; nothing: as long as it takes
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

struct ArenaPacking {
  static constexpr std::uint64_t kNotPacked = UINT64_MAX;
  std::uint64_t height = 0;       // the highest end; kNotPacked where no packing below 2^62 is known
  std::uint64_t lower_bound = 0;  // what no packing undercuts; raised by proofs
  Lifespan bound_ticks = {};      // in which the bound is attained; empty once a proof has raised it
  bool proven_optimal = false;    // height == lower_bound
};

struct Packing {
  Verdict verdict = Verdict::undecided;
  // By buffer; of every rule but perhaps the capacity. Empty where an arena is not packed.
  std::vector<std::uint64_t> offsets = {};
  std::vector<ArenaPacking> arenas = {};  // at least one
  // The rung of the ladder that gave the highest component its height; empty where pins are the highest.
  std::string algorithm = {};
  std::uint64_t nodes = 0;  // decisions of exact search; with several threads they hang on the clock
  double seconds = 0;

  std::uint64_t height() const;       // the highest of all arenas
  std::uint64_t lower_bound() const;  // likewise
  bool proven_optimal() const;        // of all
};

// The problem is checked first (check_problem(), normal_form()). The same problem, options and seed give the
// same packing unless the clock ends the search. Takes about 500 bytes for each buffer or range of one; exact
// search takes 512 MiB at most, and 128 MiB for each thread on top. Throws Error{cancelled}.
Packing pack(const Problem& problem, const PackOptions& options, Progress& progress);

}  // namespace loadline
