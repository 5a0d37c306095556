// What every format makes of names, ranks and sizes that others use, or that were made to do harm.

#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/convert.h"
#include "exporters/exporter.h"
#include "exporters/preflight.h"
#include "exporters/writer/forecast.h"
#include "tests/exporters/export_support.h"
#include "tests/support/builders.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/samples.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline::tests {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// Names that programs really write.
const std::vector<std::string> kForeign = {"plain",
                                           "model.layers.0.self_attn.q_proj.weight",
                                           "/layers.0/Constant_output_0",
                                           "onnx::MatMul_12",
                                           "dense/kernel:0",
                                           "encoder/layer_._0/output/dense/bias/Adam_v",
                                           "m/code/w",
                                           "archive/data.pkl",
                                           "data/0",
                                           "StatefulPartitionedCall/a;b",
                                           "x.npy",
                                           "with space",
                                           "\xC3\xA9t\xC3\xA9",
                                           "\xF0\x9F\x92\xA9",
                                           "a'b",
                                           "a\"b",
                                           "__dict__",
                                           "10",
                                           "con",
                                           "nul.txt"};

// Names that lead out of a folder, end early, or mislead a reader.
std::vector<std::string> hostile_names() {
  using namespace std::string_literals;
  return {"",
          ".",
          "..",
          "../x",
          "../../etc/passwd",
          "a/../b",
          "a//b",
          "a/",
          "/",
          "//",
          "C:\\x",
          "C:/x",
          "\\\\server\\x",
          "a\0b"s,
          "\0"s,
          "a\nb",
          "\r",
          "\t",
          " ",
          "  a ",
          "\x1b[31mred",
          "\xE2\x80\xAE"
          "evil",
          "\xEF\xBB\xBF"
          "a",
          "\x7F",
          "\xC2\x9B"
          "2J",
          "\xFF\xFE",
          "a\x80",
          "-rf",
          "%s%n",
          "a%2Fb",
          ".hidden",
          "__metadata__",
          "<script>",
          std::string(64, 'n'),
          std::string(255, 'n'),
          std::string(300, 'n'),
          std::string(65'531, 'n'),
          std::string(65'532, 'n'),
          std::string(65'536, 'n'),
          std::string(65'537, 'n'),
          std::string(1'000'000, 'n')};
}

// One tensor of four bytes for each name, after each other in a file.
graph::MetaGraphPtr raw_model(const TemporaryFolder& folder, const std::vector<std::string>& names,
                              const graph::Shape& shape = {1}) {
  graph::MetaGraph graph;
  std::string bytes;
  for (const std::string& name : names) {
    const graph::StorageId storage =
        graph.add_storage(graph::plain_storage(graph::FileId{0}, bytes.size(), 4));
    graph.tensors.push_back({name, graph::DType::f32, shape, {}, storage, 0});
    bytes += testing::little_endian(0x3F800000u + graph.tensors.size(), 4);
  }
  testing::write_file(folder / "raw", bytes);
  graph.files = {{folder / "raw", bytes.size()}};
  return std::make_shared<const graph::MetaGraph>(std::move(graph));
}

// An ONNX file, which alone becomes one.
graph::MetaGraphPtr onnx_model(const TemporaryFolder& folder, const std::vector<std::string>& names,
                               const graph::Shape& shape = {1}) {
  std::vector<testing::Proto> tensors;
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.push_back(testing::onnx::raw_tensor(names[i], testing::onnx::kFloat, shape.vector(),
                                                testing::little_endian(0x3F800000u + i, 4)));
  testing::write_file(folder / "in.onnx", testing::onnx::weights_model(tensors));
  return export_tests::open(folder / "in.onnx");
}

class ForeignModels : public ::testing::TestWithParam<std::string_view> {
 protected:
  const exporters::Exporter& exporter() const { return exporters::find_exporter(GetParam()); }
  std::string out(std::string_view name) const {
    return folder_ / (std::string(name) + std::string(exporter().extension));
  }

  // A model that this format can be written from; null if its own importer refuses it.
  graph::MetaGraphPtr model(const std::vector<std::string>& names, const graph::Shape& shape = {1}) const {
    if (exporter().id != "onnx") return raw_model(folder_, names, shape);
    try {
      return onnx_model(folder_, names, shape);
    } catch (const Error&) {
      return nullptr;
    }
  }

  // Whether the format takes the model; a refusal comes before anything is written, and can be shown.
  bool takes(const graph::MetaGraphPtr& graph) const {
    if (graph == nullptr) return false;
    exporters::ExportOptions options;
    if (exporters::takes_option(exporter(), "names")) options.keep_names = true;
    try {
      const auto planned = exporters::preflight({graph, &exporter(), out("refused"), options});
      exporters::check_output(planned.layout, *graph, {});
      return true;
    } catch (const Error& error) {
      const std::string_view message = error.what();
      EXPECT_EQ(safe_display(message), message);
      EXPECT_LT(message.size(), 1000u);
      EXPECT_TRUE(error.code() == ErrorCode::unsupported || error.code() == ErrorCode::limit) << message;
      return false;
    }
  }

  TemporaryFolder folder_;
};

TEST_P(ForeignModels, NamesAreReadAsTheyWereWrittenOrRefusedBefore) {
  std::vector<std::string> names = kForeign;
  for (std::string& name : hostile_names()) names.push_back(std::move(name));
  std::vector<std::string> taken;
  for (const std::string& name : names)
    if (takes(model({name}))) taken.push_back(name);
  // what the file's first bytes are must not depend on a name
  for (const std::string name : {"m/code/w", "archive/data.pkl", "data/0", "/layers.0/Constant_output_0"})
    export_tests::expect_law(model({name}), out(fmt::format("{}", std::hash<std::string>()(name))), {},
                             GetParam());
  export_tests::expect_law(model(taken), out("all"), {}, GetParam());
  EXPECT_TRUE(fs::exists(out("all")));
  for (const std::string& name : kForeign) EXPECT_TRUE(std::ranges::find(taken, name) != taken.end()) << name;
}

TEST_P(ForeignModels, ShapesAreReadAsTheyWereWrittenOrRefusedBefore) {
  for (const std::size_t rank : {0u, 1u, 4u, 5u, 16u, 17u, 32u, 33u, 64u, 65u, 255u, 256u, 1000u}) {
    const auto graph = model({"a"}, graph::Shape(std::vector<std::uint64_t>(rank, 1)));
    if (takes(graph)) export_tests::expect_law(graph, out(std::to_string(rank)), {}, GetParam());
    EXPECT_TRUE(rank > 4 || fs::exists(out(std::to_string(rank)))) << rank;
  }
}

TEST_P(ForeignModels, NothingIsReadAsNothingOrRefusedBefore) {
  const auto graph = model({});
  if (takes(graph)) {
    export_tests::expect_law(graph, out("nothing"), {}, GetParam());
    EXPECT_TRUE(fs::exists(out("nothing")));
  }
  EXPECT_FALSE(fs::exists(out("refused")));
}

INSTANTIATE_TEST_SUITE_P(Table, ForeignModels, ::testing::ValuesIn([] {
                           std::vector<std::string_view> ids;
                           for (const exporters::Exporter& exporter : exporters::exporters())
                             ids.push_back(exporter.id);
                           return ids;
                         }()),
                         [](const auto& row) { return std::string(row.param); });

std::string refusal(const std::vector<std::string>& names, std::string_view to) {
  const TemporaryFolder folder;
  const auto graph = raw_model(folder, names);
  return testing::facts_of([&] {
    exporters::preflight({graph, &exporters::find_exporter(to), folder / "o"});
  });
}

TEST(NamesOfOutputs, RefusalsSayWhy) {
  EXPECT_EQ(refusal({std::string("a\0b", 3)}, "npz"), "unsupported 'a\\x00b' UTF-8");
  EXPECT_TRUE(refusal({std::string(65'532, 'n')}, "npz").ends_with("' 65532 65531"));
  EXPECT_EQ(refusal({""}, "torch"), "unsupported '' 0 state_dict 1 65536");
  EXPECT_EQ(refusal({}, "npy"), "unsupported");
  const TemporaryFolder folder;
  graph::MetaGraph texts = *raw_model(folder, {"s"});
  texts.tensors[0].dtype = graph::DType::string;
  for (const exporters::Exporter& exporter : exporters::exporters())
    if (exporter.id != "onnx")
      EXPECT_EQ(testing::facts_of([&] { exporter.layout(texts, {}, folder / "o"); }), "unsupported 's'")
          << exporter.id;
  // numpy.load("o.npz")["x.npy"] is x
  EXPECT_EQ(refusal({"x.npy", "x"}, "npz"), "unsupported 'x.npy' .npy");
  EXPECT_EQ(refusal({"x.npy", "y"}, "npz"), "");
}

TEST(NamesOfOutputs, TooLongOnesAreRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto graph = raw_model(folder, {"a"});
  const auto refused = [&](const std::string& out) {
    return testing::facts_of([&] {
      exporters::check_output(
          exporters::preflight({graph, &exporters::find_exporter("npz"), folder / out}).layout, *graph,
          {.overwrite = true});
    });
  };
  const std::string longest(251, 'n');
  EXPECT_EQ(refused(longest + ".npz"), "");
  EXPECT_EQ(refused(longest + "n.npz"), "usage " + longest + "n.npz 256 255");
  EXPECT_EQ(refused("new/" + longest + "n.npz"), "usage " + longest + "n.npz 256 255");
  std::string deep;
  while (deep.size() < 4096) deep += "folder/";
  EXPECT_TRUE(refused(deep + "a.npz").starts_with("io "));
}

TEST(NamesOfOutputs, NothingThatIsReadIsWrittenOver) {
  const TemporaryFolder folder;
  testing::write_file(folder / "in/m.safetensors", testing::sample_safetensors());
  const auto graph = export_tests::open(folder / "in/m.safetensors");
  const auto refused = [&](const std::string& out, const exporters::ConvertRequest& request = {}) {
    return testing::facts_of([&] {
      exporters::ConvertRequest asked = request;
      asked.to = "npz";
      asked.outtype = "f32";
      exporters::ConvertEnvironment environment;
      environment.order = [](const graph::MetaGraph&, const std::string&) {
        return std::vector<graph::StorageId>();
      };
      const auto bound = exporters::bind_conversion(graph, asked, folder / out, environment);
      exporters::Layout layout;
      layout.files.emplace_back().path = bound.out;
      exporters::WriteOptions write = bound.write;
      write.overwrite = true;
      exporters::check_output(layout, *graph, write);
    });
  };
  for (const char* name : {"in/tokenizer.json", "in/adapter_config.json", "in/merges.txt", "out/old.npz",
                           "in/old.npz", "order.txt"})
    testing::write_file(folder / name, "precious");
  for (const char* name : {"in/tokenizer.json", "in/adapter_config.json", "in/merges.txt"})
    EXPECT_EQ(refused(name), "usage " + fs::path(name).filename().string());
  EXPECT_EQ(refused("in/old.npz"), "");
  EXPECT_EQ(refused("out/old.npz"), "");
  exporters::ConvertRequest ordered;
  ordered.order = folder / "order.txt";
  EXPECT_EQ(refused("order.txt", ordered), "usage order.txt");
}

}  // namespace
}  // namespace loadline::tests
