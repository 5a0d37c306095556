// Lays the shares of types out as tables and as JSON.
#include "app/cli/convert/type_tables.h"

#include "app/cli/base/terminal.h"
#include "core/base/text.h"
#include "exporters/common.h"
#include "exporters/type_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

// "0-3, 6, 9-12"
std::string ranges_text(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string bits_text(const TypeShare& share) {
  return fmt::format("{:.2f}", bits_per_weight(share.bytes, share.weights));
}

TypeShare together(const std::vector<TypeShare>& shares) {
  TypeShare sum;
  for (const TypeShare& share : shares) {
    sum.tensors += share.tensors;
    sum.weights += share.weights;
    sum.bytes += share.bytes;
  }
  return sum;
}

Json share_json(const TypeShare& share) {
  return {{"type", dtype_info(share.type).name},
          {"tensors", share.tensors},
          {"weights", share.weights},
          {"bytes", share.bytes},
          {"bits_per_weight", bits_per_weight(share.bytes, share.weights)}};
}

}  // namespace

void print_type_tables(const Context& context, const MetaGraph& graph, const Layout& layout) {
  const std::vector<TypeShare> shares = type_shares(layout);
  const TypeShare all = together(shares);
  Table types({"type", "tensors", "weights", "bits a weight", "bytes"},
              {kLeft, kRight, kRight, kRight, kRight});
  const auto row = [&](std::string name, const TypeShare& share) {
    types.row({std::move(name), format_grouped(share.tensors), format_grouped(share.weights),
               bits_text(share), format_grouped(share.bytes)});
  };
  for (const TypeShare& share : shares) row(std::string(dtype_info(share.type).name), share);
  row("together", all);
  fmt::print("{}", types.text(context.colour));
  Table kinds({"tensors", "number", "from", "to", "bytes", "layers"},
              {kLeft, kRight, kLeft, kLeft, kRight, kLeft});
  for (const TensorGroup& group : tensor_groups(graph, layout))
    kinds.row({safe_display(group.pattern, 60), format_grouped(group.share.tensors),
               std::string(dtype_info(group.from).name), std::string(dtype_info(group.share.type).name),
               format_grouped(group.share.bytes), group.alone ? "" : ranges_text(group.layers)});
  fmt::print("{}", kinds.text(context.colour));
}

Json type_tables_json(const MetaGraph& graph, const Layout& layout) {
  Json json = {{"types", Json::array()}, {"groups", Json::array()}, {"tensor_types", Json::array()}};
  const std::vector<TypeShare> shares = type_shares(layout);
  const TypeShare all = together(shares);
  json["bits_per_weight"] = bits_per_weight(all.bytes, all.weights);
  for (const TypeShare& share : shares) json["types"].push_back(share_json(share));
  for (const TensorGroup& group : tensor_groups(graph, layout)) {
    Json row = {{"pattern", json_text(group.pattern)},
                {"from", dtype_info(group.from).name},
                {"layers", group.layers}};
    row.update(share_json(group.share));
    json["groups"].push_back(std::move(row));
  }
  for (const LayoutFile& file : layout.files)
    for (const Slot& slot : file.slots)
      json["tensor_types"].push_back({{"name", json_text(slot.name.view())},
                                      {"from", dtype_info(stored_dtype(graph, slot)).name},
                                      {"type", dtype_info(slot.dtype).name},
                                      {"shape", slot.shape.vector()},
                                      {"bytes", slot.bytes}});
  return json;
}

}  // namespace loadline::cli
