// A load order as rows that somebody moves: modules, some of them unfolded to their tensors. No ImGui.
#pragma once

#include "core/graph/meta_graph.h"
#include "core/load/orders.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace loadline::gui {

// Neighbours in the order that belong to one module; or one tensor of an unfolded one.
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
  // Takes the item at `from` out and puts it where the one at `to` is. Positions beyond the end do nothing.
  void move(std::size_t from, std::size_t to);
  // A module becomes its tensors; nothing happens to a tensor.
  void unfold(const MetaGraph& graph, std::size_t at);
  // The tensor at `at` and its neighbours of the same module become one item.
  void fold(std::size_t at);
  StorageOrder order() const;

 private:
  std::vector<OrderItem> items_;
};

// The module that a name is listed under.
std::string order_module(std::string_view name);

}  // namespace loadline::gui
