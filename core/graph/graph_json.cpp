// Writes a MetaGraph as JSON.
#include "core/graph/graph_json.h"

#include "core/base/text.h"

#include <filesystem>

#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view raw) { return is_valid_utf8(raw) ? std::string(raw) : safe_display(raw); }

Json value_json(const MetaValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
          return text(held);
        else
          return held;
      },
      value);
}

Json tensor_json(const Tensor& tensor) {
  Json json = {{"name", text(tensor.name)},
               {"dtype", dtype_info(tensor.dtype).name},
               {"shape", tensor.shape},
               {"storage", index(tensor.storage)}};
  if (!tensor.strides.empty()) json["strides"] = tensor.strides;
  if (tensor.offset != 0) json["offset"] = tensor.offset;
  return json;
}

}  // namespace

std::string graph_json(const MetaGraph& graph) {
  Json json = {{"format", graph.format},   {"files", Json::array()},    {"storages", Json::array()},
               {"tensors", Json::array()}, {"metadata", Json::array()}, {"notes", Json::array()}};
  for (const ModelFile& file : graph.files)
    json["files"].push_back(
        {{"name", text(std::filesystem::path(file.path).filename().string())}, {"bytes", file.bytes}});
  for (const Storage& storage : graph.storages) {
    Json row = {{"offset", storage.offset}, {"bytes", storage.bytes}};
    if (storage.file != kNoFile) row["file"] = index(storage.file);
    json["storages"].push_back(std::move(row));
  }
  for (const Tensor& tensor : graph.tensors) json["tensors"].push_back(tensor_json(tensor));
  for (const MetaEntry& entry : graph.metadata)
    json["metadata"].push_back({{"key", text(entry.key)}, {"value", value_json(entry.value)}});
  for (const Note& note : graph.notes) {
    Json row = {{"severity", severity_name(note.severity)}, {"text", text(note.text)}};
    if (note.tensor) row["tensor"] = text(*note.tensor);
    json["notes"].push_back(std::move(row));
  }
  if (!graph.missing.empty())
    for (const std::string& name : graph.missing) json["missing"].push_back(text(name));
  return json.dump(1) + "\n";
}

}  // namespace loadline
