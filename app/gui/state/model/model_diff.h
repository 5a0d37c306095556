// What differs between two open models: their weights, name by name, and their metadata.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/model/model.h"
#include "core/inspect/compare_models.h"
#include "core/inspect/model_differences.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

enum class DiffKind : std::uint8_t { only_here, only_there, shape, type, values, refused, equal };
inline constexpr std::size_t kDiffKinds = 7;
// "only here", ...; and the letter that stands for it on the tree: '+' for only here, none for equal.
std::string_view diff_kind_name(DiffKind kind);
char diff_kind_letter(DiffKind kind);
// Both, as legends say them: "v values"; "equal" alone.
std::string diff_kind_words(DiffKind kind);

// A weight as one of the models has it.
struct DiffSide {
  std::string type;   // weight_type()
  std::string shape;  // "768 x 768"
  std::uint64_t bytes = 0;
};
// A weight of either model. Names are not escaped.
struct DiffRow {
  DiffKind kind = DiffKind::equal;
  std::string name;
  std::optional<graph::TensorId> here;
  std::optional<DiffSide> a, b;  // in this model, in the other
  std::string detail = {};       // how the values differ, or why they cannot be compared
};

struct ModelDiff {
  std::vector<DiffRow> rows;  // in this model's order, then what only the other has
  std::array<std::size_t, kDiffKinds> counts = {};
  std::vector<inspect::MetadataDifference> metadata;
  std::string metadata_problem = {};  // why not all of it could be compared
  bool values = false;                // they were compared
  bool mapped = false;                // under llama.cpp's names: one is the other's GGUF file
  // Of each tensor of this model: how it differs.
  std::vector<DiffKind> of_tensor;
  // Of each node of this model's tree: whether it or anything below it differs.
  std::vector<bool> touched;
};

// Values are compared byte for byte. Where types differ, the detail says by how much the numbers do. Throws
// as compare_models() does.
ModelDiff diff_models(const Model& here, const Model& there, bool values, Progress& progress);

// A model beside another one that was chosen. Used from the thread that owns the jobs.
class DiffView {
 public:
  // `here` is null on the start page.
  DiffView(Jobs& jobs, ModelPtr here) : jobs_(jobs), here_(std::move(here)) {}

  // Compares names, types, shapes and metadata with another model; with `values`, those too. Throws
  // Error{usage} without a model, and where values cannot be read.
  void begin(ModelPtr there, bool values);
  void end();
  const ModelPtr& there() const { return there_; }

  Latest<ModelDiff> result;

 private:
  Jobs& jobs_;
  ModelPtr here_, there_;
};

}  // namespace loadline::gui
