// A conversion and its target path.
#pragma once

#include "core/forward/model/known_models.h"
#include "core/load/order/written_order.h"
#include "exporters/convert_options.h"
#include "importers/gguf/importance.h"

#include <string>

namespace loadline::gui {

struct ConvertTask {
  ConvertRequest request = {};  // `to` names an exporter
  std::string out = {};
};

// What the exporter needs to know for this model: the order by name becomes a list, the user's own policy
// replaces a built-in one, and the importance matrix is read.
inline ExportOptions layout_options(const MetaGraph& graph, const ConvertRequest& request,
                                    const ForwardAssets& assets, const Progress& progress) {
  ExportOptions options = request.layout;
  if (options.policy != nullptr)
    options.policy = find_type_policy(assets.type_policies, options.policy->name);
  if (!request.imatrix.empty()) options.importance = read_importance_file(request.imatrix);
  if (!request.order.empty()) options.order = written_order(graph, request.order, progress);
  return options;
}

}  // namespace loadline::gui
