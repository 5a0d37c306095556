// ONNX: weights move out of the file and back, and nothing else changes.
#include "core/base/error.h"
#include "core/load/order/optimal_order.h"
#include "tests/exporters/export_support.h"
#include "tests/support/onnx_builder.h"

#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using export_tests::convert;
using export_tests::expect_law;
using export_tests::open;
using export_tests::plain_model;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

// A branch with an initialiser of its own, weights above and below the size that stays inside, in raw_data
// and in typed fields, two tensors on one external range, and a field that no version knows.
void write_onnx_model(const std::string& path) {
  namespace onnx = testing::onnx;
  std::string big(8192, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 7);
  std::vector<std::uint64_t> numbers(300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i << (i % 40);
  testing::Proto branch, graph;
  branch.text(onnx::kNode, onnx::node("Identity", {"inner"}, {"b"}));
  branch.text(onnx::kInitializer, onnx::raw_tensor("inner", onnx::kFloat, {512}, big.substr(0, 2048)));
  branch.text(onnx::kOutput, onnx::value("b", onnx::kFloat, {"512"}));
  testing::Proto constant = onnx::node("Constant", {}, {"c"}, "constant");
  constant.text(5, onnx::attribute_tensor("value", onnx::raw_tensor("", onnx::kFloat, {2048}, big)));
  testing::Proto choice = onnx::node("If", {"x"}, {"y"}, "choice");
  choice.text(5, onnx::attribute_graph("then_branch", branch));
  choice.text(5, onnx::attribute_graph("else_branch", branch));
  graph.text(onnx::kNode, constant).text(onnx::kNode, choice);
  graph.text(onnx::kInitializer, onnx::raw_tensor("large", onnx::kFloat, {64, 32}, big));
  graph.text(onnx::kInitializer, onnx::raw_tensor("least", onnx::kUint8, {1024}, big.substr(1, 1024)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("small", onnx::kUint8, {1023}, big.substr(1, 1023)));
  graph.text(onnx::kInitializer, onnx::raw_tensor("nothing", onnx::kFloat, {0, 4}, ""));
  graph.text(onnx::kInitializer, onnx::int64_tensor("typed", numbers));
  const auto outside = [&](const char* name, const onnx::Dims& dims, const char* offset, const char* length) {
    graph.text(onnx::kInitializer,
               onnx::external_tensor(name, onnx::kFloat, dims,
                                     {{"location", "./w.bin"}, {"offset", offset}, {"length", length}}));
  };
  outside("tied", {16, 32}, "16", "2048");
  outside("head", {32, 16}, "16", "2048");
  outside("bias", {4}, "4000", "16");
  graph.text(onnx::kInput, onnx::value("x", onnx::kBool, {}));
  graph.text(onnx::kOutput, onnx::value("y", onnx::kFloat, {"512"}));
  graph.text(2000, "of a later version");
  write_file(path, onnx::model(graph));
  write_file(fs::path(path).parent_path() / "w.bin", big);
}

TEST(OnnxExport, ObeysTheRoundTripLaw) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_file(folder / "in/sample.onnx", testing::onnx::sample_onnx());
  write_file(folder / "in/sample.data", testing::onnx::sample_onnx_data());
  write_onnx_model(folder / "in/model.onnx");
  ExportOptions within, aligned;
  within.inline_weights = true;
  aligned.alignment = 65536;
  for (const char* const name : {"sample", "model"}) {
    const MetaGraphPtr source = open(folder / fmt::format("in/{}.onnx", name));
    expect_law(source, folder / fmt::format("out/{}.onnx", name));
    expect_law(source, folder / fmt::format("wide/{}.onnx", name), aligned);
    aligned.order = written_order(*source, "largest");
    expect_law(source, folder / fmt::format("ordered/{}.onnx", name), aligned);
    aligned.order.clear();
    expect_law(source, folder / fmt::format("one/{}.onnx", name), within);
    EXPECT_FALSE(fs::exists(folder / fmt::format("one/{}.onnx.data", name)));
    // and back from there
    expect_law(open(folder / fmt::format("out/{}.onnx", name)), folder / fmt::format("back/{}.onnx", name),
               within);
    expect_law(open(folder / fmt::format("one/{}.onnx", name)), folder / fmt::format("again/{}.onnx", name));
  }
  EXPECT_TRUE(fs::exists(folder / "again/model.onnx.data"));
}

TEST(OnnxExport, MovesWeightsAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const MetaGraphPtr source = open(folder / "in/model.onnx");
  const Layout layout = find_exporter("onnx").layout(*source, {}, folder / "o.onnx");
  std::map<std::string, std::uint64_t> outside;
  for (const Tensor& tensor : layout.result.tensors) {
    const Storage& storage = layout.result.storage(tensor.storage);
    if (storage.file == FileId{1}) outside[tensor.name] = storage.offset;
    if (storage.file == FileId{1}) EXPECT_EQ(storage.offset % 4096, 0u);
  }
  EXPECT_EQ(outside.at("tied"), outside.at("head"));
  std::set<std::string> names;
  for (const auto& [name, offset] : outside) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"choice/else_branch/inner", "choice/then_branch/inner", "head",
                                          "large", "least", "tied", "typed"}));
  EXPECT_LT(layout.files.back().header.size(), 8192u);  // values within the file are copied, not held
  EXPECT_EQ(layout.files.back().slots.size(), 2u);      // the constant's, and the bias that is inside now
  // a model whose weights are all small or inside stays as it is, byte by byte
  write_file(folder / "in/plain.onnx", testing::onnx::weights_model({testing::onnx::raw_tensor(
                                           "w", testing::onnx::kFloat, {2048}, std::string(8192, 'w'))}));
  ExportOptions within;
  within.inline_weights = true;
  expect_law(open(folder / "in/plain.onnx"), folder / "plain.onnx", within);
  EXPECT_EQ(read_file(folder / "plain.onnx"), read_file(folder / "in/plain.onnx"));
  EXPECT_NE(read_file(folder / "in/model.onnx").find("of a later version"), std::string::npos);
  convert(source, folder / "o.onnx");
  EXPECT_NE(read_file(folder / "o.onnx").find("of a later version"), std::string::npos);
}

TEST(OnnxExport, Refuses) {
  const TemporaryFolder folder;
  const MetaGraphPtr plain = plain_model(folder);
  EXPECT_THROW(convert(plain, folder / "o.onnx"), Error);  // has no operators
  fs::create_directories(folder / "in");
  write_onnx_model(folder / "in/model.onnx");
  const MetaGraphPtr source = open(folder / "in/model.onnx");
  EXPECT_THROW(convert(source, folder / "a..b.onnx"), Error);
  EXPECT_THROW(
      convert(source, folder / "o.onnx", {.outtype = DType::f16, .alignment = 0, .max_shard_bytes = 0}),
      Error);
  EXPECT_THROW(
      convert(source, folder / "o.onnx", {.outtype = {}, .alignment = 1 << 17, .max_shard_bytes = 0}), Error);
  // 2^31 bytes within one file
  const std::uint64_t large = std::uint64_t{1} << 30;
  const auto weight = [&](const char* name, std::uint64_t offset) {
    return testing::onnx::external_tensor(
        name, testing::onnx::kUint8, {large},
        {{"location", "w.bin"}, {"offset", std::to_string(offset)}, {"length", std::to_string(large)}});
  };
  write_file(folder / "big/m.onnx", testing::onnx::weights_model({weight("a", 0), weight("b", large)}));
  write_file(folder / "big/w.bin", "");
  fs::resize_file(folder / "big/w.bin", 2 * large);
  ExportOptions within;
  within.inline_weights = true;
  try {
    find_exporter("onnx").layout(*open(folder / "big/m.onnx"), within, folder / "o.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit);
    EXPECT_NE(std::string(error.what()).find("protobuf's limit is 2147483646"), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(find_exporter("onnx").layout(*open(folder / "big/m.onnx"), {}, folder / "o.onnx"));
}

}  // namespace
}  // namespace loadline
