// A small folder with every plain type.
#include "tests/exporters/export_support.h"

#include "core/convert/numbers/elements.h"
#include "core/io/graph_reader.h"
#include "exporters/convert.h"
#include "importers/resolve.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

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

MetaGraphPtr sample_model(const testing::TemporaryFolder& folder) {
  testing::write_file(folder / "in/sample.safetensors", testing::sample_safetensors());
  return open(folder / "in/sample.safetensors");
}

std::string tensor_content(const MetaGraphPtr& graph, const Tensor& tensor) {
  const StorageReader reader(graph);
  std::string bytes(tensor_bytes(*graph, tensor), '\0');
  reader.read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

const Tensor& tensor_named(const MetaGraph& graph, const std::string& name) {
  for (const Tensor& tensor : graph.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

void expect_law(const MetaGraphPtr& graph, const std::string& out, const ExportOptions& asked,
                std::string_view to) {
  const Exporter& exporter = to.empty() ? exporter_for_output(out) : find_exporter(to);
  const ExportOptions options = [&] {
    ExportOptions kept = asked;
    if (takes_option(exporter, "names")) kept.keep_names = true;
    return kept;
  }();
  const Layout layout = exporter.layout(*graph, options, out);
  convert(graph, out, options, {}, &exporter);
  std::vector<std::string> written;
  for (const LayoutFile& file : layout.files) written.push_back(testing::read_file(file.path));
  convert(graph, out, options, {.overwrite = true}, &exporter);
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(testing::read_file(layout.files[i].path) == written[i], true) << layout.files[i].path;
  // of a split set, any part opens it whole
  const MetaGraphPtr back = open(std::filesystem::exists(out) ? out : layout.files.back().path);
  EXPECT_EQ(*back, layout.result) << out;
  for (const Tensor& tensor : back->tensors) {
    const Tensor& source = tensor_named(*graph, tensor.name);
    ASSERT_EQ(elements(tensor), elements(source));  // GGUF has no rank 0
    std::string expected = tensor_content(graph, source);
    if (tensor.dtype != source.dtype) {
      std::string cast_bytes(tensor_bytes(*back, tensor), '\0');
      DType from = source.dtype;
      if (is_code_type(from)) {  // floats of 8 bits
        std::string floats(sizeof(float) * expected.size(), '\0');
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto value = static_cast<float>(code_values(from)[static_cast<std::uint8_t>(expected[i])]);
          std::memcpy(floats.data() + i * sizeof value, &value, sizeof value);
        }
        expected = floats;
        from = DType::f32;
      }
      cast(from, std::as_bytes(std::span(expected)), tensor.dtype,
           std::as_writable_bytes(std::span(cast_bytes)));
      expected = cast_bytes;
    }
    EXPECT_EQ(tensor_content(back, tensor), expected) << tensor.name.view();
  }
}

}  // namespace loadline::export_tests
