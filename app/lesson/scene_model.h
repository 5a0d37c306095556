// The model of a scene, as shapes without a file.
#pragma once

#include "core/forward/model/known_models.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::lesson {

// So many tensors of one size, called NAME, or NAME.0, NAME.1, ... if they are several.
struct ListedTensors {
  std::string name = {};
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;  // of each
  bool operator==(const ListedTensors&) const = default;
};

struct SceneModel {
  std::string name = {};  // of a preset (core/forward/presets.h), or of the lesson's own list
  std::vector<ListedTensors> listed = {};  // in the order of the file; empty for a preset
  bool operator==(const SceneModel&) const = default;
};

inline constexpr std::uint64_t kMostListedTensors = 100'000;

// Throws Error{usage} for a preset that does not exist, Error{limit} for more tensors than kMostListedTensors
// or bytes that overflow.
MetaGraphPtr model_shapes(const SceneModel& model, const ForwardAssets& assets);

// The configuration of a preset. Throws Error{usage} for a model that has none.
std::string_view model_config(const SceneModel& model);

}  // namespace loadline::lesson
