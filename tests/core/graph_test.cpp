// The dtype table, the structural law and the relations over a MetaGraph.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "tests/support/graph_json.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Two tensors tied on one storage, one alone.
MetaGraph small_graph() {
  MetaGraph graph;
  graph.format = "test";
  graph.files = {{"/somewhere/model.bin", 200}};
  graph.storages = {plain_storage(FileId{0}, 0, 64), plain_storage(FileId{0}, 64, 32)};
  graph.tensors = {{"embed.weight", DType::f32, {4, 4}, {}, StorageId{0}, 0},
                   {"layers.0.w", DType::f16, {16}, {}, StorageId{1}, 0},
                   {"head.weight", DType::f32, {4, 4}, {}, StorageId{0}, 0}};
  return graph;
}

TEST(DTypes, CodesAreUniquePerFormat) {
  std::set<std::string_view> names, safetensors, torch;
  std::set<int> ggml, onnx, executorch, tflite, pt2;
  for (const DTypeInfo& info : dtype_table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    if (!info.safetensors.empty()) EXPECT_TRUE(safetensors.insert(info.safetensors).second) << info.name;
    if (!info.torch.empty()) EXPECT_TRUE(torch.insert(info.torch).second) << info.name;
    for (auto [set, code] : {std::pair(&ggml, info.ggml),
                             {&onnx, info.onnx},
                             {&executorch, info.executorch},
                             {&tflite, info.tflite},
                             {&pt2, info.pt2}})
      if (code >= 0) EXPECT_TRUE(set->insert(code).second) << info.name << " " << code;
  }
  EXPECT_EQ(safetensors.size(), 22u);  // the enum of safetensors 0.8
  EXPECT_EQ(ggml.size(), 36u);         // 0..42 less the eight removed ids, and the other layout of 42
  for (const int removed : {4, 5, 31, 32, 33, 36, 37, 38}) EXPECT_EQ(ggml.count(removed), 0u);
  EXPECT_EQ(onnx.size(), 28u);  // 1..28
}

TEST(DTypes, SizesAreThoseOfTheFormats) {
  EXPECT_EQ(byte_size(DType::f32, 3), 12u);
  EXPECT_EQ(byte_size(DType::f4_e2m1, 6), 3u);
  EXPECT_FALSE(byte_size(DType::f4_e2m1, 5));
  EXPECT_EQ(byte_size(DType::f6_e2m3, 8), 6u);
  EXPECT_EQ(byte_size(DType::q4_k, 512), 288u);
  EXPECT_EQ(byte_size(DType::q6_k, 256), 210u);
  EXPECT_FALSE(byte_size(DType::q4_0, 31));
  EXPECT_FALSE(byte_size(DType::f64, std::uint64_t{1} << 61));
  EXPECT_FALSE(byte_size(DType::opaque, 1));
  // bits per weight as ggml prints them
  const std::pair<DType, double> bits[] = {
      {DType::q4_0, 4.5},     {DType::q5_1, 6},     {DType::q2_k, 2.625},   {DType::q3_k, 3.4375},
      {DType::iq1_s, 1.5625}, {DType::iq1_m, 1.75}, {DType::tq1_0, 1.6875}, {DType::mxfp4, 4.25},
      {DType::nvfp4, 4.5},    {DType::q1_0, 1.125}, {DType::iq2_s, 2.5625}, {DType::q8_k, 9.125}};
  for (const auto& [dtype, expected] : bits) {
    const DTypeInfo& info = dtype_info(dtype);
    EXPECT_DOUBLE_EQ(8.0 * info.block_bytes / info.block_elements, expected) << info.name;
  }
}

TEST(DTypes, LookupsFindOnlyKnownCodes) {
  EXPECT_EQ(dtype_from(&DTypeInfo::safetensors, "F8_E4M3"), DType::f8_e4m3);
  EXPECT_FALSE(dtype_from(&DTypeInfo::safetensors, ""));
  EXPECT_FALSE(dtype_from(&DTypeInfo::safetensors, "f32"));
  EXPECT_EQ(dtype_from(&DTypeInfo::ggml, 30), DType::bf16);
  EXPECT_FALSE(dtype_from(&DTypeInfo::ggml, -1));
  EXPECT_FALSE(dtype_from(&DTypeInfo::ggml, 65536));  // would be 0 in 16 bits
  EXPECT_EQ(dtype_from(&DTypeInfo::torch, "bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_from(&DTypeInfo::onnx, 16), DType::bf16);
}

TEST(Shapes, ProductsAreChecked) {
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(element_count(Shape{}), 1u);
  EXPECT_EQ(element_count(Shape{3, 0, 5}), 0u);
  EXPECT_FALSE(element_count(Shape{std::uint64_t{1} << 40, 0, std::uint64_t{1} << 40}));
  EXPECT_FALSE(element_count(Shape{std::uint64_t{1} << 32, std::uint64_t{1} << 32}));
}

TEST(MetaGraph, TiesCountOnce) {
  const MetaGraph graph = small_graph();
  EXPECT_NO_THROW(validate(graph));
  EXPECT_EQ(storage_bytes(graph), 96u);
  EXPECT_EQ(parameter_count(graph), 32u);
  const auto ties = tied_groups(graph);
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(ties[0], (std::vector<TensorId>{TensorId{0}, TensorId{2}}));
  EXPECT_EQ(first_owner(graph)[0], TensorId{0});
}

TEST(MetaGraph, TiesAreSeenAmongViews) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(64), shapes_only_storage(64)};
  const auto view = [](const char* name, std::uint32_t storage, std::uint64_t offset,
                       std::vector<std::uint64_t> strides) {
    return Tensor{name, DType::u8, {4, 4}, std::move(strides), StorageId{storage}, offset};
  };
  graph.tensors = {view("whole", 0, 0, {}),        view("a", 1, 16, {}),          view("t", 0, 0, {1, 4}),
                   view("b", 0, 16, {}),           view("t again", 0, 0, {1, 4}), view("b again", 0, 16, {}),
                   view("a elsewhere", 1, 32, {}), view("b once more", 0, 16, {})};
  using Ids = std::vector<TensorId>;
  EXPECT_EQ(tied_groups(graph),
            (std::vector<Ids>{Ids{TensorId{2}, TensorId{4}}, Ids{TensorId{3}, TensorId{5}, TensorId{7}}}));
  EXPECT_EQ(parameter_count(graph), 4u * 16);  // "t" is "whole" once more
}

TEST(Shares, ViewsOfOneStorageCountOnce) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(100), shapes_only_storage(16), shapes_only_storage(8)};
  const auto add = [&](const char* name, Shape shape, Strides strides, std::uint32_t storage,
                       std::uint64_t offset) {
    graph.tensors.push_back(
        {name, DType::f16, std::move(shape), std::move(strides), StorageId{storage}, offset});
  };
  add("slice", {4}, {}, 0, 8);               // inside "whole", though it comes first
  add("whole", {5, 4}, {}, 0, 0);            // bytes 0 to 40
  add("transposed", {4, 5}, {1, 4}, 0, 0);   // the same
  add("overlapping", {10}, {}, 0, 30);       // ten bytes of its own
  add("apart", {10}, {}, 0, 60);             // 80 to 100 and 50 to 60 nobody uses
  add("alone", {3}, {}, 1, 0);               // takes its whole storage
  add("repeated", {1000, 4}, {0, 1}, 2, 0);  // four elements
  EXPECT_NO_THROW(validate(graph));
  const std::vector<Share> parts = shares(graph);
  std::vector<std::uint64_t> bytes, counted;
  for (const Share& part : parts) bytes.push_back(part.bytes), counted.push_back(part.elements);
  EXPECT_EQ(counted, (std::vector<std::uint64_t>{0, 20, 0, 10, 10, 3, 4}));
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{30, 40, 0, 10, 20, 16, 8}));
  EXPECT_EQ(parameter_count(graph), 47u);
  EXPECT_EQ(sum(parts).bytes, storage_bytes(graph));
  // of a selection: what was another's is its own, and what nobody uses stays with the storage's first
  const std::vector<TensorId> some = {TensorId{2}, TensorId{3}};
  EXPECT_EQ(sum(shares(graph, some)).elements, 30u);
  EXPECT_EQ(sum(shares(graph, some)).bytes, 50u);
  const ModuleTree tree = module_tree(graph, some);
  EXPECT_EQ(tree.root().tensors, 2u);
  EXPECT_EQ(tree.root().bytes, 50u);
  EXPECT_EQ(module_tree(graph).root().parameters, 47u);
}

// Against every pair of tensors and every byte.
TEST(Shares, AreThoseOfABruteCount) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    MetaGraph graph;
    for (int i = 0; i < 3; ++i) graph.storages.push_back(shapes_only_storage(40));
    const std::uint64_t count = 1 + below(12);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t offset = below(30), size = below(41 - offset);
      graph.tensors.push_back({std::to_string(i),
                               DType::u8,
                               {size},
                               {},
                               StorageId{static_cast<std::uint32_t>(below(3))},
                               offset});
    }
    std::vector<TensorId> some;
    for (const TensorId id : all_tensors(graph))
      if (below(3) > 0) some.push_back(id);
    const std::vector<Share> parts = shares(graph, some);
    std::uint64_t bytes = 0, every = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Tensor& tensor = graph.tensor(some[i]);
      const bool within = std::any_of(some.begin(), some.end(), [&](TensorId id) {
        const Tensor& other = graph.tensor(id);
        const bool same = other.offset == tensor.offset && other.shape == tensor.shape;
        return id != some[i] && other.storage == tensor.storage && other.offset <= tensor.offset &&
               other.offset + other.shape[0] >= tensor.offset + tensor.shape[0] && (!same || id < some[i]);
      });
      EXPECT_EQ(parts[i].elements, within ? 0 : tensor.shape[0]) << round;
    }
    std::set<StorageId> used;
    for (const Tensor& tensor : graph.tensors) used.insert(tensor.storage);
    for (const StorageId storage : used) {
      std::array<bool, 40> chosen = {}, covered = {};
      for (const TensorId id : all_tensors(graph)) {
        const Tensor& tensor = graph.tensor(id);
        if (tensor.storage != storage) continue;
        const bool asked = std::find(some.begin(), some.end(), id) != some.end();
        for (std::uint64_t at = tensor.offset; at < tensor.offset + tensor.shape[0]; ++at) {
          covered[at] = true;
          chosen[at] |= asked;
        }
      }
      bytes += static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), true));
      const TensorId owner = *first_owner(graph)[index(storage)];
      if (std::find(some.begin(), some.end(), owner) != some.end())
        bytes += static_cast<std::uint64_t>(std::count(covered.begin(), covered.end(), false));
      every += 40;
    }
    EXPECT_EQ(sum(parts).bytes, bytes) << round;
    EXPECT_EQ(sum(shares(graph)).bytes, every) << round;
  }
}

TEST(ModelName, OfASplitSetIsTheWholeOnes) {
  MetaGraph graph;
  graph.format = "gguf";
  graph.files = {{"/models/phi-2-q4-00001-of-00003.gguf", 1}};
  EXPECT_EQ(model_name(graph), "phi-2-q4");
  graph.metadata = {{"general.name", std::string("Phi 2-00001-of-00003")}};
  EXPECT_EQ(model_name(graph), "Phi 2");
  graph.metadata = {{"general.name", std::string()}};
  graph.files[0].path = "/models/phi/model-00001-of-00003.gguf";
  EXPECT_EQ(model_name(graph), "phi");
  graph.files[0].path = "/models/phi-0001-of-0003.gguf";
  EXPECT_EQ(model_name(graph), "phi-0001-of-0003");
}

TEST(Validate, RefusesEveryBrokenLaw) {
  const auto broken = [](auto change) {
    MetaGraph graph = small_graph();
    change(graph);
    return graph;
  };
  const MetaGraph cases[] = {
      broken([](MetaGraph& g) { g.tensors[0].storage = StorageId{9}; }),
      broken([](MetaGraph& g) { g.storages[1].offset = 190; }),
      broken([](MetaGraph& g) { g.storages[1].file = FileId{3}; }),
      broken([](MetaGraph& g) { g.tensors[1].shape = {17}; }),
      broken([](MetaGraph& g) { g.tensors[1].offset = 2; }),
      broken([](MetaGraph& g) { g.tensors[1].offset = ~std::uint64_t{0}; }),
      broken([](MetaGraph& g) { g.tensors[2].name = "embed.weight"; }),
      broken([](MetaGraph& g) { g.tensors[0].strides = {4}; }),
      broken([](MetaGraph& g) {
        g.tensors[0].strides = {8, 1};
      }),
      broken([](MetaGraph& g) {
        g.tensors[0].strides = {std::uint64_t{1} << 63, 1};
      }),
      broken([](MetaGraph& g) {
        g.tensors[0].shape = {std::uint64_t{1} << 62, 4};
      }),
      broken([](MetaGraph& g) { g.storages[0] = shapes_only_storage(std::uint64_t{1} << 63); }),
      broken([](MetaGraph& g) { g.tensors[1].dtype = DType::opaque, g.tensors[1].offset = 33; }),
  };
  for (std::size_t i = 0; i < std::size(cases); ++i) EXPECT_THROW(validate(cases[i]), Error) << "case " << i;
}

TEST(Validate, StridedViewsMayCoverTheirStorageExactly) {
  MetaGraph graph = small_graph();
  graph.tensors[0].strides = {1, 4};  // transposed
  EXPECT_NO_THROW(validate(graph));
  EXPECT_FALSE(is_contiguous(graph.tensors[0]));
  graph.tensors[0].strides = {4, 1};
  EXPECT_TRUE(is_contiguous(graph.tensors[0]));
}

TEST(ModuleTree, SumsOnceAndSortsNaturally) {
  MetaGraph graph = small_graph();
  for (const char* name : {"layers.10.w", "layers.2.w", "layers.2.w.scale", "a..b", ""}) {
    const StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(plain_storage(FileId{0}, 100, 8));
    graph.tensors.push_back({name, DType::u8, {8}, {}, storage, 0});
  }
  const ModuleTree tree = module_tree(graph);
  EXPECT_EQ(tree.root().bytes, storage_bytes(graph));
  EXPECT_EQ(tree.root().parameters, parameter_count(graph));
  EXPECT_EQ(tree.root().tensors, graph.tensors.size());
  std::vector<std::string> paths;
  std::size_t leaves = 0;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const ModuleNode& node = tree.nodes[i];
    if (node.tensor) {
      ++leaves;
      EXPECT_EQ(module_path(tree, NodeId{static_cast<std::uint32_t>(i)}), graph.tensor(*node.tensor).name);
    }
    if (node.name == "layers")
      for (const NodeId child : node.children) paths.push_back(tree.node(child).name);
  }
  EXPECT_EQ(leaves, graph.tensors.size());
  EXPECT_EQ(paths, (std::vector<std::string>{"0", "2", "10"}));
}

TEST(ModuleTree, DeepNamesStayBounded) {
  MetaGraph graph;
  graph.storages = {shapes_only_storage(1)};
  graph.tensors = {{std::string(100'000, '.'), DType::u8, {1}, {}, StorageId{0}, 0}};
  EXPECT_LE(module_tree(graph).nodes.size(), kMostDepth + 1);
}

TEST(ModuleTree, LayerNumbersAreWholeSegments) {
  EXPECT_EQ(layer_number("model.layers.12.mlp.weight"), 12u);
  EXPECT_EQ(layer_number("h.0.attn.bias"), 0u);
  EXPECT_FALSE(layer_number("w2.weight"));
  EXPECT_FALSE(layer_number("99999999999999999999.weight"));
}

TEST(GraphJson, EscapesWhatIsNotText) {
  MetaGraph graph = small_graph();
  graph.tensors[1].name = "bad\xFF";
  graph.notes = {{Severity::error, "bad\xFF", "text\xC0"}};
  const std::string json = graph_json(graph);
  EXPECT_NE(json.find(R"(bad\\xff)"), std::string::npos);
  EXPECT_EQ(json.find("/somewhere"), std::string::npos);
}

}  // namespace
}  // namespace loadline
