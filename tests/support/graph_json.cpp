// Writes a MetaGraph as JSON.
#include "tests/support/graph_json.h"

#include "core/base/text.h"

#include <filesystem>

#include <nlohmann/json.hpp>

namespace loadline::tests {
namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view raw) { return is_valid_utf8(raw) ? std::string(raw) : safe_display(raw); }

Json value_json(const graph::MetaValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>)
          return text(held);
        else if constexpr (std::is_same_v<Held, graph::MetaArray>)
          return {{"element", graph::meta_type_name(held.element)},
                  {"count", held.count},
                  {"offset", held.offset},
                  {"bytes", held.bytes}};
        else
          return held;
      },
      value);
}

Json tensor_json(const graph::Tensor& tensor) {
  Json json = {{"name", text(tensor.name)},
               {"dtype", graph::dtype_info(tensor.dtype).name},
               {"shape", tensor.shape},
               {"storage", graph::index(tensor.storage)}};
  if (!tensor.strides.empty()) json["strides"] = tensor.strides;
  if (tensor.offset != 0) json["offset"] = tensor.offset;
  return json;
}

Json forward_json(const graph::MetaGraph& graph, const graph::ForwardGraph& forward) {
  const auto names = [&](const std::vector<graph::ValueId>& ids) {
    Json list = Json::array();
    for (const graph::ValueId id : ids) list.push_back(text(forward.value(id).name));
    return list;
  };
  Json json = {{"symbols", Json::array()},
               {"inputs", names(forward.inputs)},
               {"outputs", names(forward.outputs)},
               {"values", Json::array()},
               {"ops", Json::array()}};
  for (const std::string& symbol : forward.symbols) json["symbols"].push_back(text(symbol));
  for (const graph::Value& value : forward.values) {
    Json row = {{"name", text(value.name)}};
    if (value.dtype) row["dtype"] = graph::dtype_info(*value.dtype).name;
    if (value.shape) {
      row["shape"] = Json::array();
      for (const graph::SizePoly& size : *value.shape)
        row["shape"].push_back(text(size.text(forward.symbols)));
    }
    json["values"].push_back(std::move(row));
  }
  for (const graph::NamedSize& size : forward.sizes)
    json["sizes"].push_back({{"name", text(size.name)},
                             {"taken_as", text(size.taken_as.text(forward.symbols))},
                             {"guessed", size.guessed}});
  const auto op_json = [&](const graph::Op& op) {
    Json row = {{"kind", text(op.kind)}, {"name", text(op.name)}, {"inputs", names(op.inputs)}};
    row["weights"] = Json::array();
    for (const graph::TensorId id : op.weights) row["weights"].push_back(text(graph.tensor(id).name));
    row["outputs"] = names(op.outputs);
    for (const std::uint32_t body : op.bodies) row["bodies"].push_back(body);
    return row;
  };
  for (const graph::Op& op : forward.ops) json["ops"].push_back(op_json(op));
  for (const graph::Body& body : forward.bodies) {
    Json row = {{"inputs", names(body.inputs)}, {"outputs", names(body.outputs)}, {"ops", Json::array()}};
    for (const graph::Op& op : body.ops) row["ops"].push_back(op_json(op));
    json["bodies"].push_back(std::move(row));
  }
  return json;
}

Json logical_json(const graph::MetaGraph& graph, const graph::LogicalTensor& weight) {
  Json row = {{"name", text(weight.name)},
              {"packing", graph::packing_name(weight.packing)},
              {"dtype", graph::dtype_info(weight.dtype).name},
              {"shape", weight.shape.vector()},
              {"bits", weight.bits},
              {"block", weight.block.vector()},
              {"codes", text(graph.tensor(weight.codes).name)}};
  for (const graph::CompanionTensor& companion : weight.companions)
    row["companions"][std::string(graph::companion_name(companion.kind))] =
        text(graph.tensor(companion.tensor).name);
  return row;
}

}  // namespace

std::string graph_json(const graph::MetaGraph& graph) {
  Json json = {{"format", graph.format},   {"files", Json::array()},    {"storages", Json::array()},
               {"tensors", Json::array()}, {"metadata", Json::array()}, {"notes", Json::array()}};
  for (const graph::ModelFile& file : graph.files)
    json["files"].push_back(
        {{"name", text(std::filesystem::path(file.path).filename().string())}, {"bytes", file.bytes}});
  for (const graph::Storage& storage : graph.storages) {
    Json row = {{"offset", storage.offset}, {"bytes", storage.bytes}};
    if (storage.file != graph::kNoFile) row["file"] = graph::index(storage.file);
    if (storage.encoding != graph::Encoding::plain) {
      row["encoding"] = graph::encoding_name(storage.encoding);
      row["stored_bytes"] = storage.stored_bytes;
    }
    json["storages"].push_back(std::move(row));
  }
  for (const graph::Tensor& tensor : graph.tensors) json["tensors"].push_back(tensor_json(tensor));
  for (const graph::MetaEntry& entry : graph.metadata)
    json["metadata"].push_back({{"key", text(entry.key)},
                                {"type", graph::meta_type_name(graph::meta_type(entry.value))},
                                {"value", value_json(entry.value)}});
  for (const graph::Note& note : graph.notes) {
    Json row = {{"severity", graph::severity_name(note.severity)}, {"text", text(note.text)}};
    if (note.tensor) row["tensor"] = text(*note.tensor);
    json["notes"].push_back(std::move(row));
  }
  if (!graph.missing.empty())
    for (const std::string& name : graph.missing) json["missing"].push_back(text(name));
  for (const graph::LogicalTensor& weight : graph.logical)
    json["logical"].push_back(logical_json(graph, weight));
  if (graph.forward) json["forward"] = forward_json(graph, *graph.forward);
  return json.dump(1) + "\n";
}

}  // namespace loadline::tests
