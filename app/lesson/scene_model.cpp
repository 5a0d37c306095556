// Derives the shapes of a scene's model.
#include "app/lesson/scene_model.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/lookup.h"
#include "core/base/text.h"
#include "core/forward/model/config_graph.h"
#include "core/forward/model/presets.h"

#include <fmt/format.h>

namespace loadline::lesson {
namespace {

MetaGraph listed_shapes(const std::vector<ListedTensors>& listed) {
  MetaGraph graph;
  std::uint64_t total = 0;
  for (const ListedTensors& some : listed) {
    if (some.count > kMostListedTensors - graph.tensors.size())
      throw Error(ErrorCode::limit, "a scene lists more than {} tensors", kMostListedTensors);
    const auto bytes = checked_mul(some.count, some.bytes);
    const auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
    if (!sum) throw Error(ErrorCode::limit, "the tensors of a scene have more than 2^64 bytes");
    total = *sum;
    for (std::uint64_t i = 0; i < some.count; ++i) {
      const StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
      graph.storages.push_back(shapes_only_storage(some.bytes));
      const std::string name = some.count == 1 ? some.name : fmt::format("{}.{}", some.name, i);
      graph.tensors.push_back({Name(name), DType::i8, {some.bytes}, {}, storage, 0});
    }
  }
  return graph;
}

}  // namespace

MetaGraphPtr model_shapes(const SceneModel& model, const ForwardAssets& assets) {
  return std::make_shared<const MetaGraph>(model.listed.empty()
                                               ? config_graph(model_config(model), model.name, assets)
                                               : listed_shapes(model.listed));
}

std::string_view model_config(const SceneModel& model) {
  if (!model.listed.empty())
    throw Error(ErrorCode::usage, "'{}' is a list of tensors: it has no configuration",
                safe_display(model.name, 60));
  return find_row(presets(), model.name, "model").config_json;
}

}  // namespace loadline::lesson
