// What a conversion is said to lose.
#include "exporters/preflight.h"
#include "tests/support/hostile.h"
#include "tests/support/samples.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

using Sentences = std::vector<std::string>;

MetaGraph graph_of(std::string format, std::vector<DType> dtypes) {
  MetaGraph graph;
  graph.format = std::move(format);
  for (const DType dtype : dtypes) {
    const auto number = static_cast<std::uint32_t>(graph.tensors.size());
    graph.storages.push_back(shapes_only_storage(*byte_size(dtype, 256)));
    graph.tensors.push_back({"t" + std::to_string(number), dtype, {256}, {}, StorageId{number}, 0});
  }
  return graph;
}

Sentences left_out(const MetaGraph& graph, std::string_view format, std::optional<DType> outtype = {}) {
  return loadline::left_out(graph, find_exporter(format),
                            {.outtype = outtype, .alignment = 0, .max_shard_bytes = 0});
}

TEST(LeftOut, NothingIsSaidWhereNothingIsLost) {
  MetaGraph graph = graph_of("safetensors", {DType::f32, DType::i8, DType::f16});
  graph.metadata = {{"note", std::string("text")}, {std::string(kConfigKey), std::string("{}")}};
  EXPECT_EQ(left_out(graph, "safetensors", DType::bf16), Sentences());
  graph.format = "gguf";
  graph.metadata = {{"n", std::uint32_t{1}}, {"a", MetaArray{}}};
  EXPECT_EQ(left_out(graph, "gguf"), Sentences());
}

TEST(LeftOut, TiesAndKeys) {
  MetaGraph graph = graph_of("gguf", {DType::f32, DType::f32});
  graph.tensors[1].storage = StorageId{0};
  graph.metadata = {{"n", std::uint32_t{1}}, {"a\x1b", MetaArray{}}, {"text", std::string("kept")}};
  EXPECT_EQ(left_out(graph, "safetensors"),
            (Sentences{"1 tensor is tied to another and written once: 't1'",
                       "2 metadata keys are not written, safetensors has no place for them: 'n', 'a\\x1b'"}));
}

TEST(LeftOut, WhatTheOuttypeCannotChange) {
  const MetaGraph graph = graph_of(
      "gguf", {DType::f4_e2m1, DType::f8_e8m0, DType::f8_e8m0, DType::f32, DType::f6_e2m3, DType::i32});
  EXPECT_EQ(left_out(graph, "gguf", DType::f16),
            (Sentences{"4 tensors are not cast to F16: F4, F6_E2M3, F8_E8M0 stay as stored"}));
  EXPECT_EQ(left_out(graph_of("gguf", {DType::iq2_xxs, DType::iq1_m}), "gguf", DType::f16), Sentences());
  EXPECT_EQ(left_out(graph_of("x", {DType::f8_e8m0}), "safetensors", DType::f32),
            (Sentences{"1 tensor is not cast to F32: F8_E8M0 stays as stored"}));
  EXPECT_EQ(left_out(graph, "gguf"), Sentences());
}

TEST(LeftOut, ScalesOfQuantisedTensors) {
  // torch: a number beside the tensor; what became a tensor itself is written too
  const MetaGraph torch = testing::import_bytes("m.pt", testing::sample_torch());
  bool told = false;
  for (const std::string& sentence : left_out(torch, "safetensors"))
    told |=
        sentence == "1 quantised tensor is written as integers, without scale and zero point: 'quantised'";
  EXPECT_TRUE(told);
  MetaGraph graph = graph_of("tflite", {DType::i8, DType::i32, DType::u8, DType::i4, DType::i16, DType::f32});
  EXPECT_EQ(
      left_out(graph, "safetensors"),
      (Sentences{"4 integer tensors are written without the scale and zero point that LiteRT keeps beside "
                 "quantised ones: 't0', 't2', 't3' and 1 more"}));
}

}  // namespace
}  // namespace loadline
