// Groups an order into runs of one module, and moves, unfolds and folds them.
#include "app/gui/state/load/order_list.h"

#include <algorithm>
#include <utility>

namespace loadline::gui {

std::string order_module(std::string_view name) {
  const auto number = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  std::size_t begin = 0;
  std::size_t last = 0;  // begin of the last part
  while (true) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (number(name.substr(begin, end - begin))) return std::string(name.substr(0, end));
    if (end == name.size()) break;
    begin = end + 1;
    last = begin;
  }
  return std::string(last == 0 ? name : name.substr(0, last - 1));
}

OrderList::OrderList(const MetaGraph& graph, const StorageOrder& order) {
  const auto owners = first_owner(graph);
  for (const StorageId id : order) {
    const auto owner = owners[index(id)];
    if (!owner) continue;
    std::string module = order_module(graph.tensor(*owner).name);
    if (items_.empty() || items_.back().module != module) items_.push_back({std::move(module), {}, 0, false});
    items_.back().storages.push_back(id);
    items_.back().bytes += graph.storage(id).bytes;
  }
}

void OrderList::move(std::size_t from, std::size_t to) {
  if (from >= items_.size() || to >= items_.size() || from == to) return;
  const auto at = [&](std::size_t i) { return items_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to)
    std::rotate(at(from), at(from + 1), at(to + 1));
  else
    std::rotate(at(to), at(from), at(from + 1));
}

void OrderList::unfold(const MetaGraph& graph, std::size_t at) {
  if (at >= items_.size() || items_[at].tensor) return;
  const OrderItem item = std::move(items_[at]);
  std::vector<OrderItem> parts;
  for (const StorageId id : item.storages)
    parts.push_back({item.module, {id}, graph.storage(id).bytes, true});
  const auto place = items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
  items_.insert(place, std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
}

void OrderList::fold(std::size_t at) {
  if (at >= items_.size() || !items_[at].tensor) return;
  const auto same = [&](std::size_t i) { return items_[i].tensor && items_[i].module == items_[at].module; };
  std::size_t first = at, end = at + 1;
  while (first > 0 && same(first - 1)) --first;
  while (end < items_.size() && same(end)) ++end;
  OrderItem whole = {items_[at].module, {}, 0, false};
  for (std::size_t i = first; i < end; ++i) {
    whole.storages.push_back(items_[i].storages.front());
    whole.bytes += items_[i].bytes;
  }
  items_[first] = std::move(whole);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(first + 1),
               items_.begin() + static_cast<std::ptrdiff_t>(end));
}

StorageOrder OrderList::order() const {
  StorageOrder order;
  for (const OrderItem& item : items_) order.insert(order.end(), item.storages.begin(), item.storages.end());
  return order;
}

}  // namespace loadline::gui
