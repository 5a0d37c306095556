// What real frameworks measured: runs of assets/truth.json, and what they say of each load method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// A peak of one kernel counter: projected, and the median of the runs. Bytes. With `low` and `high` the
// projection is a range.
struct TruthCounter {
  std::string name = {};  // anonymous, file, device
  std::optional<std::uint64_t> projected = {}, low = {}, high = {};
  std::uint64_t measured = 0;
};

// A recipe run by its framework on one checkpoint.
struct TruthRow {
  std::string recipe = {};
  std::string about = {};
  std::string framework = {};
  std::string version = {};
  std::string model = {};
  std::uint64_t model_bytes = 0;
  std::string method = {};  // that claims to be the recipe; may be empty
  std::vector<std::string> options = {};
  std::string law = {};  // of the method when the recipe ran
  std::vector<TruthCounter> counters = {};
  std::optional<double> error_percent = {};  // of the counter that is furthest off
  bool range = false;
  bool ok = false;          // within the tolerance, or inside the range
  std::string reason = {};  // why not, if it is known
};

struct Truth {
  std::string date = {};
  std::uint64_t tolerance_bytes = 0;
  double tolerance_percent = 0;
  std::vector<TruthRow> rows = {};
};
// Throws Error{malformed}.
Truth parse_truth(std::string_view json);
// The runs that the program was built with.
const Truth& built_in_truth();

// What the runs say of a method.
struct Evidence {
  std::vector<std::string> frameworks = {};  // "transformers 5.23.0", each once
  std::size_t pairs = 0;                     // recipes on checkpoints
  std::size_t ranged = 0;                    // of them, those of which only a range is claimed
  double error_percent = 0;                  // the largest among those that are within the tolerance
  std::vector<const TruthRow*> beyond = {};  // those that are not
};
// Absent: by construction, no framework has run it.
std::optional<Evidence> evidence_of(std::string_view method, const Truth& truth = built_in_truth());
// "Held against transformers 5.23.0: 12 loads, at most 0.4 % off.", with a sentence for each row beyond the
// tolerance; or "By construction, not measured."
std::string evidence_text(std::string_view method);
// How far off a row beyond the tolerance is, and why: "5.1 % off (...)".
std::string deviation_text(const TruthRow& row);
// What evidence_text() says, in a few words for a table: "transformers 5.23.0, 0.4 %".
std::string evidence_brief(std::string_view method);

}  // namespace loadline::load
