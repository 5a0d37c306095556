// Asks the table of orders for a load whose peak depends on the order.
#include "core/load/order/written_order.h"

#include "core/load/request/order_file.h"

namespace loadline {

StorageOrder written_order(const MetaGraph& graph, const std::string& name, const Progress& progress) {
  return make_order(graph, choose_order(graph, name), find_method("cast_on_device"), {}, progress);
}

}  // namespace loadline
