// libFuzzer target for lists of tensors: whatever the bytes are, reading them gives a permutation of the
// storages, or an Error.
#include "core/base/error.h"
#include "core/load/request/bind_request.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loadline;
  static const graph::MetaGraph graph = [] {
    graph::MetaGraph made;
    for (std::uint32_t i = 0; i < 4; ++i) made.storages.push_back(graph::shapes_only_storage(i));
    const std::string_view names[] = {"a", "b.weight", "#c", " d", "e"};
    for (std::uint32_t i = 0; i < 5; ++i)
      made.tensors.push_back(
          {graph::Name(names[i]), graph::DType::u8, {i % 4}, {}, graph::StorageId{i % 4}, 0});
    return made;
  }();
  try {
    load::StorageOrder order = load::parse_order(graph, {reinterpret_cast<const char*>(data), size}, "input");
    std::sort(order.begin(), order.end());
    for (std::uint32_t i = 0; i < 4; ++i)
      if (order.size() != 4 || order[i] != graph::StorageId{i}) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
