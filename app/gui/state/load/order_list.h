// A load order as a list of rows to move: modules, some of them unfolded to their tensors. No ImGui.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/load/request/orders.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace loadline::gui {

// A row: neighbouring storages of one module, or one tensor of an unfolded module.
struct OrderItem {
  std::string module;  // up to the number of a layer: "model.layers.3"
  StorageOrder storages;
  std::uint64_t bytes = 0;
  bool tensor = false;  // one storage, shown by its own name
};

class OrderList {
 public:
  OrderList() = default;
  OrderList(const MetaGraph& graph, const StorageOrder& order);

  const std::vector<OrderItem>& items() const { return items_; }
  // Moves the item at `from` to the position `to`. Does nothing for positions beyond the end.
  void move(std::size_t from, std::size_t to);
  // Replaces a module by its tensors; does nothing for a tensor.
  void unfold(const MetaGraph& graph, std::size_t at);
  // Joins the tensor at `at` and its neighbours of the same module into one item.
  void fold(std::size_t at);
  StorageOrder order() const;

 private:
  std::vector<OrderItem> items_;
};

// The module under which a tensor name is listed.
std::string order_module(std::string_view name);

}  // namespace loadline::gui
