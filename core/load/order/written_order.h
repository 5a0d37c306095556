// The order of a model's weights in a file that is to be written.
#pragma once

#include "core/base/tasks.h"
#include "core/load/request/orders.h"

#include <string>

namespace loadline {

// The storages in the order `name`: a row of orders(), or a file of tensor names (order_file.h). `optimal`
// is the order with the lowest peak on the device for a load that takes the tensors as they follow in the
// file and holds each twice for a moment: the method `cast_on_device`. Throws as choose_order() and
// optimal_order().
StorageOrder written_order(const MetaGraph& graph, const std::string& name,
                           const Progress& progress = Progress());

}  // namespace loadline
