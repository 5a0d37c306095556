// Every importer against the samples of all formats, cut at every byte.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "importers/importer.h"
#include "tests/support/builders.h"
#include "tests/support/flat_builder.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/samples.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::memory_source;

// Whether the importer reads the bytes; anything but a graph or an Error fails the test.
bool reads(const Importer& importer, std::string_view bytes) {
  try {
    validate(importer.read(memory_source("x", bytes)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Table, SmokeEveryImporterReadsEveryPrefixOfEverySample) {
  std::vector<std::string> samples = testing::format_samples();
  samples.push_back(testing::onnx::sample_onnx());
  samples.push_back(testing::sample_gguf().substr(0, 2400));
  samples.push_back(
      testing::tflite_bytes({.tensors = {{"w", {4}, 0, 1}}, .buffers = {"", "0123456789abcdef"}}));
  samples.push_back(testing::ptd_bytes({{0, 4}}, {{"t", 0, 6, {1}, {0}}}, 4));
  samples.push_back(testing::pte_bytes({.tensors = {{1, {2}}}, .inline_constants = {"", "01234567"}}));
  samples.push_back(testing::sample_safetensors().substr(0, 600));
  samples.push_back(
      R"({"metadata":{"total_size":12},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})");
  samples.push_back(
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100})");
  for (const Importer& importer : importers())
    for (const std::string& sample : samples)
      for (std::size_t length = 0; length < sample.size(); ++length)
        reads(importer, std::string_view(sample).substr(0, length));
  int whole = 0;
  for (const std::string& sample : samples)
    for (const Importer& importer : importers()) whole += reads(importer, sample) ? 1 : 0;
  EXPECT_GE(whole, static_cast<int>(samples.size()) - 2) << "two samples are cut, every other is read";
}

}  // namespace
}  // namespace loadline
