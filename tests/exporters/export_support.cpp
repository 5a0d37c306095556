// A small folder with every plain type.
#include "tests/exporters/export_support.h"

#include "importers/resolve.h"

#include <memory>

namespace loadline::export_tests {

MetaGraphPtr open(const std::string& path) { return std::make_shared<const MetaGraph>(open_model(path, {})); }

MetaGraphPtr plain_model(const testing::TemporaryFolder& folder) {
  testing::SafetensorsHeader header;
  header.add("a.weight", "F32", "4,6", 96);
  header.add("b.weight", "BF16", "3,5", 30);
  header.add("c.weight", "F16", "7", 14);
  header.add("d.ids", "I64", "", 8);
  header.add("e.small", "I8", "5", 5);
  header.add("f.double", "F64", "2,1,1,3", 48);
  testing::write_file(folder / "in/config.json", R"({"model_type":"llama","hidden_size":4})");
  testing::write_file(folder / "in/model.safetensors",
                      testing::safetensors_bytes(header.text(), header.data_bytes()));
  return open(folder / "in/model.safetensors");
}

WriteReport convert(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& options,
                    const WriteOptions& write, const Exporter* exporter) {
  Progress progress;
  return convert_model(graph, exporter == nullptr ? exporter_for_output(out) : *exporter, options, out, write,
                       progress);
}

}  // namespace loadline::export_tests
