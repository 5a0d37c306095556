// libFuzzer target for ONNX: as fuzz_importer.cpp, without the process that infers shapes, and with decoding
// of what small tensors hold.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/graph_reader.h"
#include "importers/onnx/onnx.h"
#include "tests/support/graph_json.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace {

// A prefix of every encoded storage.
void decode(const loadline::graph::MetaGraph& graph, const loadline::io::SourceFile& file) {
  for (const loadline::graph::Storage& storage : graph.storages) {
    if (storage.encoding == loadline::graph::Encoding::plain) continue;
    std::array<std::byte, 64> start;
    try {
      loadline::io::make_decoder(file, storage)
          ->read(std::span(start).first(std::min<std::size_t>(start.size(), storage.bytes)));
    } catch (const loadline::Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loadline;
  const auto bytes = std::as_bytes(std::span(data, size));
  importers::Source source;
  source.file = std::make_shared<const io::SourceFile>(
      io::SourceFile::from_memory("input.onnx", std::vector<std::byte>(bytes.begin(), bytes.end())));
  // external data lies in the input itself
  source.open_sibling = [&](const std::string&) { return source.file; };
  try {
    importers::sniff_onnx({reinterpret_cast<const char*>(data), std::min(size, importers::kSniffBytes)},
                          "input.onnx");
    const graph::MetaGraph graph = importers::read_onnx(source, {.infer_shapes = false});
    graph::validate(graph);
    if (graph::module_tree(graph).root().bytes != graph::storage_bytes(graph)) std::abort();
    tests::graph_json(graph);
    decode(graph, *source.file);
  } catch (const Error&) {
  }
  return 0;
}
