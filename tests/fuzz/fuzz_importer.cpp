// One libFuzzer target per importer (LOADLINE_IMPORTER): whatever the bytes are, reading them gives a
// valid graph or an Error.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "importers/importer.h"
#include "tests/support/graph_json.h"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loadline;
  static const importers::Importer& importer =
      *std::find_if(importers::importers().begin(), importers::importers().end(),
                    [](const importers::Importer& row) { return row.id == LOADLINE_IMPORTER; });
  const auto bytes = std::as_bytes(std::span(data, size));
  importers::Source source;
  source.file = std::make_shared<const io::SourceFile>(
      io::SourceFile::from_memory("input", std::vector<std::byte>(bytes.begin(), bytes.end())));
  // every sibling is the input itself: an index then meets shards that are no safetensors and some that are
  source.open_sibling = [&](const std::string&) { return source.file; };
  try {
    graph::MetaGraph graph = importer.read(source);
    graph::validate(graph);
    const auto read_small = [&](graph::TensorId id) -> std::optional<std::string> {
      const graph::Tensor& tensor = graph.tensor(id);
      const graph::Storage& storage = graph.storage(tensor.storage);
      if (storage.file == graph::kNoFile || storage.encoding != graph::Encoding::plain) return std::nullopt;
      return source.file->text_at(storage.offset + tensor.offset, graph::tensor_bytes(graph, tensor));
    };
    graph.logical = graph::find_logical_tensors(graph, read_small).tensors;
    graph::validate(graph);
    std::uint64_t owned = 0;
    const auto owners = graph::first_owner(graph);
    for (std::size_t i = 0; i < owners.size(); ++i) owned += owners[i] ? graph.storages[i].bytes : 0;
    if (graph::module_tree(graph).root().bytes != owned) std::abort();
    tests::graph_json(graph);
  } catch (const Error&) {
  }
  return 0;
}
