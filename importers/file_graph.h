// Helpers for importers: the graph of one file, and graphs joined from several files.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/source_file.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace loadline {

// A graph without tensors; FileId{0} is the file.
inline MetaGraph file_graph(const SourceFile& file, std::string_view format) {
  MetaGraph graph;
  graph.format = format;
  graph.files.push_back({file.path(), file.size()});
  return graph;
}

// Base of readers of one file: the graph that they fill, and errors that name the file.
class GraphReader {
 protected:
  GraphReader(const SourceFile& file, std::string_view format)
      : file_(file), graph_(file_graph(file, format)) {}

  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path()}, detail, values...);
  }
  template <typename... Values>
  Error at_tensor(const std::string& name, fmt::format_string<Values...> detail,
                  const Values&... values) const {
    return Error(ErrorCode::malformed, {.file = file_.path(), .tensor = name}, detail, values...);
  }

  const SourceFile& file_;
  MetaGraph graph_;
};

// Appends the storages, tensors and notes of `from` to `graph`. Storages that lie in a file get `file`.
inline void append_weights(MetaGraph& graph, MetaGraph& from, FileId file) {
  const std::size_t first = graph.storages.size();
  for (const Storage& storage : from.storages) {
    graph.storages.push_back(storage);
    if (storage.file != kNoFile) graph.storages.back().file = file;
  }
  for (Tensor& tensor : from.tensors) {
    tensor.storage = StorageId{static_cast<std::uint32_t>(first + index(tensor.storage))};
    graph.tensors.push_back(std::move(tensor));
  }
  for (Note& note : from.notes) graph.notes.push_back(std::move(note));
}

}  // namespace loadline
