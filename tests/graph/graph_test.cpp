// A model as data: types, names, filters, relations, forward graphs.

#include "core/base/error.h"
#include "core/graph/dtype_and_shape.h"
#include "core/graph/forward_graph.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- The dtype table, the structural law and the relations over a MetaGraph.

namespace {

// Two tensors tied on one storage, one alone.
graph::MetaGraph small_graph() {
  graph::MetaGraph graph;
  graph.format = "test";
  graph.files = {{"/somewhere/model.bin", 200}};
  graph.storages = {graph::plain_storage(graph::FileId{0}, 0, 64),
                    graph::plain_storage(graph::FileId{0}, 64, 32)};
  graph.tensors = {{"embed.weight", graph::DType::f32, {4, 4}, {}, graph::StorageId{0}, 0},
                   {"layers.0.w", graph::DType::f16, {16}, {}, graph::StorageId{1}, 0},
                   {"head.weight", graph::DType::f32, {4, 4}, {}, graph::StorageId{0}, 0}};
  return graph;
}

TEST(DTypes, CodesAreUniquePerFormat) {
  std::set<std::string_view> names, safetensors, torch;
  std::set<int> ggml, onnx, executorch, tflite, pt2;
  for (const graph::DTypeInfo& info : graph::dtype_table()) {
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
  EXPECT_EQ(graph::byte_size(graph::DType::f32, 3), 12u);
  EXPECT_EQ(graph::byte_size(graph::DType::f4_e2m1, 6), 3u);
  EXPECT_FALSE(graph::byte_size(graph::DType::f4_e2m1, 5));
  EXPECT_EQ(graph::byte_size(graph::DType::f6_e2m3, 8), 6u);
  EXPECT_EQ(graph::byte_size(graph::DType::q4_k, 512), 288u);
  EXPECT_EQ(graph::byte_size(graph::DType::q6_k, 256), 210u);
  EXPECT_FALSE(graph::byte_size(graph::DType::q4_0, 31));
  EXPECT_FALSE(graph::byte_size(graph::DType::f64, std::uint64_t{1} << 61));
  EXPECT_FALSE(graph::byte_size(graph::DType::opaque, 1));
  // bits per weight as ggml prints them
  const std::pair<graph::DType, double> bits[] = {
      {graph::DType::q4_0, 4.5},     {graph::DType::q5_1, 6},       {graph::DType::q2_k, 2.625},
      {graph::DType::q3_k, 3.4375},  {graph::DType::iq1_s, 1.5625}, {graph::DType::iq1_m, 1.75},
      {graph::DType::tq1_0, 1.6875}, {graph::DType::mxfp4, 4.25},   {graph::DType::nvfp4, 4.5},
      {graph::DType::q1_0, 1.125},   {graph::DType::iq2_s, 2.5625}, {graph::DType::q8_k, 9.125}};
  for (const auto& [dtype, expected] : bits) {
    const graph::DTypeInfo& info = graph::dtype_info(dtype);
    EXPECT_DOUBLE_EQ(8.0 * info.block_bytes / info.block_elements, expected) << info.name;
  }
}

TEST(DTypes, LookupsFindOnlyKnownCodes) {
  EXPECT_EQ(graph::dtype_from(&graph::DTypeInfo::safetensors, "F8_E4M3"), graph::DType::f8_e4m3);
  EXPECT_FALSE(graph::dtype_from(&graph::DTypeInfo::safetensors, ""));
  EXPECT_FALSE(graph::dtype_from(&graph::DTypeInfo::safetensors, "f32"));
  EXPECT_EQ(graph::dtype_from(&graph::DTypeInfo::ggml, 30), graph::DType::bf16);
  EXPECT_FALSE(graph::dtype_from(&graph::DTypeInfo::ggml, -1));
  EXPECT_FALSE(graph::dtype_from(&graph::DTypeInfo::ggml, 65536));  // would be 0 in 16 bits
  EXPECT_EQ(graph::dtype_from(&graph::DTypeInfo::torch, "bfloat16"), graph::DType::bf16);
  EXPECT_EQ(graph::dtype_from(&graph::DTypeInfo::onnx, 16), graph::DType::bf16);
}

TEST(DTypes, HavePyTorchsNamesToo) {
  for (const char* const name : {"bf16", "BF16", "bfloat16", "torch.bfloat16", "Torch.BFloat16"})
    EXPECT_EQ(graph::dtype_named(name), graph::DType::bf16) << name;
  EXPECT_EQ(graph::dtype_named("float16"), graph::DType::f16);
  EXPECT_EQ(graph::dtype_named("torch.float8_e4m3fn"), graph::DType::f8_e4m3);
  for (const char* const name : {"", "torch.", "torch", "torch.bf16", "numpy.float16", "q9_z"})
    EXPECT_FALSE(graph::dtype_named(name)) << name;
  EXPECT_EQ(graph::spelled_dtype("torch.float32"), "f32");
  EXPECT_EQ(graph::spelled_dtype("F32"), "F32") << "a spelling of its own";
  EXPECT_EQ(graph::spelled_dtype("q4_k_m"), "q4_k_m");
}

TEST(Shapes, ProductsAreChecked) {
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(graph::element_count(Shape{}), 1u);
  EXPECT_EQ(graph::element_count(Shape{3, 0, 5}), 0u);
  EXPECT_FALSE(graph::element_count(Shape{std::uint64_t{1} << 40, 0, std::uint64_t{1} << 40}));
  EXPECT_FALSE(graph::element_count(Shape{std::uint64_t{1} << 32, std::uint64_t{1} << 32}));
}

TEST(MetaGraph, TiesCountOnce) {
  const graph::MetaGraph graph = small_graph();
  EXPECT_NO_THROW(graph::validate(graph));
  EXPECT_EQ(graph::storage_bytes(graph), 96u);
  EXPECT_EQ(graph::parameter_count(graph), 32u);
  const auto ties = graph::tied_groups(graph);
  ASSERT_EQ(ties.size(), 1u);
  EXPECT_EQ(ties[0], (std::vector<graph::TensorId>{graph::TensorId{0}, graph::TensorId{2}}));
  EXPECT_EQ(graph::first_owner(graph)[0], graph::TensorId{0});
}

TEST(MetaGraph, TiesAreSeenAmongViews) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(64), graph::shapes_only_storage(64)};
  const auto view = [](const char* name, std::uint32_t storage, std::uint64_t offset,
                       std::vector<std::uint64_t> strides) {
    return graph::Tensor{name,  graph::DType::u8, {4, 4}, std::move(strides), graph::StorageId{storage},
                         offset};
  };
  graph.tensors = {view("whole", 0, 0, {}),        view("a", 1, 16, {}),          view("t", 0, 0, {1, 4}),
                   view("b", 0, 16, {}),           view("t again", 0, 0, {1, 4}), view("b again", 0, 16, {}),
                   view("a elsewhere", 1, 32, {}), view("b once more", 0, 16, {})};
  using Ids = std::vector<graph::TensorId>;
  EXPECT_EQ(graph::tied_groups(graph),
            (std::vector<Ids>{Ids{graph::TensorId{2}, graph::TensorId{4}},
                              Ids{graph::TensorId{3}, graph::TensorId{5}, graph::TensorId{7}}}));
  EXPECT_EQ(graph::parameter_count(graph), 4u * 16);  // "t" is "whole" once more
}

TEST(Shares, ViewsOfOneStorageCountOnce) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(100), graph::shapes_only_storage(16),
                    graph::shapes_only_storage(8)};
  const auto add = [&](const char* name, graph::Shape shape, graph::Strides strides, std::uint32_t storage,
                       std::uint64_t offset) {
    graph.tensors.push_back(
        {name, graph::DType::f16, std::move(shape), std::move(strides), graph::StorageId{storage}, offset});
  };
  add("slice", {4}, {}, 0, 8);               // inside "whole", though it comes first
  add("whole", {5, 4}, {}, 0, 0);            // bytes 0 to 40
  add("transposed", {4, 5}, {1, 4}, 0, 0);   // the same
  add("overlapping", {10}, {}, 0, 30);       // ten bytes of its own
  add("apart", {10}, {}, 0, 60);             // 80 to 100 and 50 to 60 nobody uses
  add("alone", {3}, {}, 1, 0);               // takes its whole storage
  add("repeated", {1000, 4}, {0, 1}, 2, 0);  // four elements
  EXPECT_NO_THROW(graph::validate(graph));
  const std::vector<graph::Share> parts = graph::shares(graph);
  std::vector<std::uint64_t> bytes, counted;
  for (const graph::Share& part : parts) bytes.push_back(part.bytes), counted.push_back(part.elements);
  EXPECT_EQ(counted, (std::vector<std::uint64_t>{0, 20, 0, 10, 10, 3, 4}));
  EXPECT_EQ(bytes, (std::vector<std::uint64_t>{30, 40, 0, 10, 20, 16, 8}));
  EXPECT_EQ(graph::parameter_count(graph), 47u);
  EXPECT_EQ(graph::sum(parts).bytes, graph::storage_bytes(graph));
  // of a selection: what was another's is its own, and what nobody uses stays with the storage's first
  const std::vector<graph::TensorId> some = {graph::TensorId{2}, graph::TensorId{3}};
  EXPECT_EQ(graph::sum(graph::shares(graph, some)).elements, 30u);
  EXPECT_EQ(graph::sum(graph::shares(graph, some)).bytes, 50u);
  const graph::ModuleTree tree = graph::module_tree(graph, some);
  EXPECT_EQ(tree.root().tensors, 2u);
  EXPECT_EQ(tree.root().bytes, 50u);
  EXPECT_EQ(graph::module_tree(graph).root().parameters, 47u);
}

// Against every pair of tensors and every byte.
TEST(Shares, AreThoseOfABruteCount) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    graph::MetaGraph graph;
    for (int i = 0; i < 3; ++i) graph.storages.push_back(graph::shapes_only_storage(40));
    const std::uint64_t count = 1 + below(12);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t offset = below(30), size = below(41 - offset);
      graph.tensors.push_back({std::to_string(i),
                               graph::DType::u8,
                               {size},
                               {},
                               graph::StorageId{static_cast<std::uint32_t>(below(3))},
                               offset});
    }
    std::vector<graph::TensorId> some;
    for (const graph::TensorId id : graph::all_tensors(graph))
      if (below(3) > 0) some.push_back(id);
    const std::vector<graph::Share> parts = graph::shares(graph, some);
    std::uint64_t bytes = 0, every = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const graph::Tensor& tensor = graph.tensor(some[i]);
      const bool within = std::any_of(some.begin(), some.end(), [&](graph::TensorId id) {
        const graph::Tensor& other = graph.tensor(id);
        const bool same = other.offset == tensor.offset && other.shape == tensor.shape;
        return id != some[i] && other.storage == tensor.storage && other.offset <= tensor.offset &&
               other.offset + other.shape[0] >= tensor.offset + tensor.shape[0] && (!same || id < some[i]);
      });
      EXPECT_EQ(parts[i].elements, within ? 0 : tensor.shape[0]) << round;
    }
    std::set<graph::StorageId> used;
    for (const graph::Tensor& tensor : graph.tensors) used.insert(tensor.storage);
    for (const graph::StorageId storage : used) {
      std::array<bool, 40> chosen = {}, covered = {};
      for (const graph::TensorId id : graph::all_tensors(graph)) {
        const graph::Tensor& tensor = graph.tensor(id);
        if (tensor.storage != storage) continue;
        const bool asked = std::find(some.begin(), some.end(), id) != some.end();
        for (std::uint64_t at = tensor.offset; at < tensor.offset + tensor.shape[0]; ++at) {
          covered[at] = true;
          chosen[at] |= asked;
        }
      }
      bytes += static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), true));
      const graph::TensorId owner = *graph::first_owner(graph)[graph::index(storage)];
      if (std::find(some.begin(), some.end(), owner) != some.end())
        bytes += static_cast<std::uint64_t>(std::count(covered.begin(), covered.end(), false));
      every += 40;
    }
    EXPECT_EQ(graph::sum(parts).bytes, bytes) << round;
    EXPECT_EQ(graph::sum(graph::shares(graph)).bytes, every) << round;
  }
}

TEST(ModelName, OfASplitSetIsTheWholeOnes) {
  graph::MetaGraph graph;
  graph.format = "gguf";
  graph.files = {{"/models/phi-2-q4-00001-of-00003.gguf", 1}};
  EXPECT_EQ(graph::model_name(graph), "phi-2-q4");
  graph.metadata = {{"general.name", std::string("Phi 2-00001-of-00003")}};
  EXPECT_EQ(graph::model_name(graph), "Phi 2");
  graph.metadata = {{"general.name", std::string()}};
  graph.files[0].path = "/models/phi/model-00001-of-00003.gguf";
  EXPECT_EQ(graph::model_name(graph), "phi");
  graph.files[0].path = "/models/phi-0001-of-0003.gguf";
  EXPECT_EQ(graph::model_name(graph), "phi-0001-of-0003");
}

TEST(Validate, RefusesEveryBrokenLaw) {
  const auto broken = [](auto change) {
    graph::MetaGraph graph = small_graph();
    change(graph);
    return graph;
  };
  const graph::MetaGraph cases[] = {
      broken([](graph::MetaGraph& g) { g.tensors[0].storage = graph::StorageId{9}; }),
      broken([](graph::MetaGraph& g) { g.storages[1].offset = 190; }),
      broken([](graph::MetaGraph& g) { g.storages[1].file = graph::FileId{3}; }),
      broken([](graph::MetaGraph& g) { g.tensors[1].shape = {17}; }),
      broken([](graph::MetaGraph& g) { g.tensors[1].offset = 2; }),
      broken([](graph::MetaGraph& g) { g.tensors[1].offset = ~std::uint64_t{0}; }),
      broken([](graph::MetaGraph& g) { g.tensors[2].name = "embed.weight"; }),
      broken([](graph::MetaGraph& g) { g.tensors[0].strides = {4}; }),
      broken([](graph::MetaGraph& g) {
        g.tensors[0].strides = {8, 1};
      }),
      broken([](graph::MetaGraph& g) {
        g.tensors[0].strides = {std::uint64_t{1} << 63, 1};
      }),
      broken([](graph::MetaGraph& g) {
        g.tensors[0].shape = {std::uint64_t{1} << 62, 4};
      }),
      broken([](graph::MetaGraph& g) { g.storages[0] = graph::shapes_only_storage(std::uint64_t{1} << 63); }),
      broken(
          [](graph::MetaGraph& g) { g.tensors[1].dtype = graph::DType::opaque, g.tensors[1].offset = 33; }),
  };
  for (std::size_t i = 0; i < std::size(cases); ++i)
    EXPECT_THROW(graph::validate(cases[i]), Error) << "case " << i;
}

TEST(Validate, StridedViewsMayCoverTheirStorageExactly) {
  graph::MetaGraph graph = small_graph();
  graph.tensors[0].strides = {1, 4};  // transposed
  EXPECT_NO_THROW(graph::validate(graph));
  EXPECT_FALSE(graph::is_contiguous(graph.tensors[0]));
  graph.tensors[0].strides = {4, 1};
  EXPECT_TRUE(graph::is_contiguous(graph.tensors[0]));
}

TEST(ModuleTree, SumsOnceAndSortsNaturally) {
  graph::MetaGraph graph = small_graph();
  for (const char* name : {"layers.10.w", "layers.2.w", "layers.2.w.scale", "a..b", ""}) {
    const graph::StorageId storage{static_cast<std::uint32_t>(graph.storages.size())};
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, 100, 8));
    graph.tensors.push_back({name, graph::DType::u8, {8}, {}, storage, 0});
  }
  const graph::ModuleTree tree = graph::module_tree(graph);
  EXPECT_EQ(tree.root().bytes, graph::storage_bytes(graph));
  EXPECT_EQ(tree.root().parameters, graph::parameter_count(graph));
  EXPECT_EQ(tree.root().tensors, graph.tensors.size());
  std::vector<std::string> paths;
  std::size_t leaves = 0;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const graph::ModuleNode& node = tree.nodes[i];
    if (node.tensor) {
      ++leaves;
      EXPECT_EQ(graph::module_path(tree, graph::NodeId{static_cast<std::uint32_t>(i)}),
                graph.tensor(*node.tensor).name);
    }
    if (node.name == "layers")
      for (const graph::NodeId child : node.children) paths.push_back(tree.node(child).name);
  }
  EXPECT_EQ(leaves, graph.tensors.size());
  EXPECT_EQ(paths, (std::vector<std::string>{"0", "2", "10"}));
}

TEST(ModuleTree, DeepNamesStayBounded) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(1)};
  graph.tensors = {{std::string(100'000, '.'), graph::DType::u8, {1}, {}, graph::StorageId{0}, 0}};
  EXPECT_LE(graph::module_tree(graph).nodes.size(), graph::kMostDepth + 1);
}

TEST(ModuleTree, LayerNumbersAreWholeSegments) {
  EXPECT_EQ(graph::layer_number("model.layers.12.mlp.weight"), 12u);
  EXPECT_EQ(graph::layer_number("h.0.attn.bias"), 0u);
  EXPECT_FALSE(graph::layer_number("w2.weight"));
  EXPECT_FALSE(graph::layer_number("99999999999999999999.weight"));
  EXPECT_EQ(graph::layer_part("model.layers.12.mlp").begin, 13u);
  EXPECT_EQ(graph::layer_part("model.layers.12.mlp").end, 15u);
  EXPECT_TRUE(graph::layer_part("a.b1.").empty());
}

TEST(GraphJson, EscapesWhatIsNotText) {
  graph::MetaGraph graph = small_graph();
  graph.tensors[1].name = "bad\xFF";
  graph.notes = {{graph::Severity::error, "bad\xFF", "text\xC0"}};
  const std::string json = graph_json(graph);
  EXPECT_NE(json.find(R"(bad\\xff)"), std::string::npos);
  EXPECT_EQ(json.find("/somewhere"), std::string::npos);
}

}  // namespace

// --- Names, shapes and the index of names.

namespace {

TEST(Name, HoldsItsText) {
  const std::string long_text(100'000, 'x');
  graph::Name name = long_text;
  const graph::Name copy = name;
  EXPECT_EQ(copy, long_text);
  name = "short";
  EXPECT_EQ(copy.size(), long_text.size());
  EXPECT_EQ(name, "short");
  EXPECT_NE(name, copy);
  EXPECT_LT(name, copy);
  const graph::Name moved = std::move(name);
  EXPECT_EQ(moved.str(), "short");
  EXPECT_TRUE(graph::Name().empty());
  EXPECT_EQ(graph::Name(""), graph::Name());
  EXPECT_EQ(graph::Name(std::string_view("a\0b", 3)).size(), 3u);
}

TEST(Name, ManyShareWithoutDependingOnEachOther) {
  std::vector<std::string> texts;
  for (int i = 0; i < 40'000; ++i)
    texts.push_back(i % 7 == 0 ? "" : std::string(static_cast<std::size_t>(i % 90), 'a') + std::to_string(i));
  std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<graph::Name> names = graph::Name::many(views);
  ASSERT_EQ(names.size(), texts.size());
  const std::vector<graph::Name> kept = {names[1], names[39'999]};
  for (std::size_t i = 0; i < names.size(); ++i) {
    ASSERT_EQ(names[i], texts[i]);
    ASSERT_EQ(names[i].hash(), graph::name_hash(texts[i]));
  }
  names.clear();
  EXPECT_EQ(kept[0], texts[1]);
  EXPECT_EQ(kept[1], texts[39'999]);
}

// Texts that other texts of the list begin with, in the orders of real files and in any other.
TEST(Name, TextsThatAreBeginningsOfOthersAreKept) {
  const auto keeps = [](const std::vector<std::string>& texts) {
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<graph::Name> names = graph::Name::many(views);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (names[i] != texts[i] || names[i].hash() != graph::name_hash(texts[i])) return false;
    const std::vector<graph::Name> last(names.end() - 1, names.end());
    names.clear();
    return last[0] == texts.back();
  };
  std::vector<std::string> weights, scales;
  for (int i = 0; i < 500; ++i) {
    weights.push_back("experts." + std::to_string(i) + ".weight");
    scales.push_back(weights.back() + "_scale_inv");
  }
  const auto joined = [](std::vector<std::string> first, const std::vector<std::string>& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
  };
  EXPECT_TRUE(keeps(joined(scales, weights)));
  EXPECT_TRUE(keeps(joined(weights, scales)));
  std::vector<std::string> nested;  // each begins with all before it, up to names of another kind
  for (std::size_t i = 0; i < 5'000; ++i) nested.emplace_back(i, 'n');
  EXPECT_TRUE(keeps(nested));
  std::ranges::reverse(nested);
  EXPECT_TRUE(keeps(nested));
  std::vector<std::string> mixed = joined(joined(weights, nested), scales);
  std::ranges::shuffle(mixed, std::mt19937(5));
  EXPECT_TRUE(keeps(mixed));
}

// Short lists of texts share memory with those made before and after them, also on other threads.
TEST(Name, ListsMadeOneAfterAnotherAreIndependent) {
  const auto text = [](int list, std::size_t i) {
    return std::to_string(list * 1000) + std::string(i % 300, 'n');
  };
  constexpr std::size_t kEach = 300;
  const auto work = [&](int thread) {
    std::vector<std::pair<int, std::vector<graph::Name>>> kept;
    for (int list = thread; list < 400; list += 2) {
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < kEach; ++i) texts.push_back(text(list, i));
      kept.emplace_back(list, graph::Name::many(std::vector<std::string_view>(texts.begin(), texts.end())));
      if (list % 3 == 0) kept.erase(kept.begin());
    }
    for (const auto& [list, names] : kept)
      for (std::size_t i = 0; i < kEach; ++i)
        if (names[i] != text(list, i)) return false;
    return true;
  };
  bool other = false;
  std::jthread thread([&] { other = work(1); });
  EXPECT_TRUE(work(0));
  thread.join();
  EXPECT_TRUE(other);
}

// A weight and its scales are found whatever their order, whether one kind of companion occurs or several.
TEST(LogicalTensors, PartsAreFoundInAnyOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const bool several = round % 2 == 0;
    std::vector<std::pair<std::string, graph::DType>> parts;
    std::set<std::string> expected;
    for (int m = 0; m < 12; ++m) {
      const std::string base = fmt::format("m.{}", m);
      const bool weight = random() % 6 != 0, scale = random() % 4 != 0, input = several && random() % 2 == 0;
      if (weight) parts.emplace_back(base + ".weight", graph::DType::f8_e4m3);
      if (scale) parts.emplace_back(base + ".weight_scale", graph::DType::f32);
      if (input) parts.emplace_back(base + ".input_scale", graph::DType::f32);
      if (weight && scale)
        expected.insert(
            fmt::format("{0}.weight {0}.weight_scale{1}", base, input ? " " + base + ".input_scale" : ""));
    }
    if (round % 5 != 0) std::ranges::shuffle(parts, random);
    graph::MetaGraph graph;
    for (const auto& [name, dtype] : parts) {
      const bool codes = dtype == graph::DType::f8_e4m3;
      const graph::StorageId id = graph.add_storage(graph::shapes_only_storage(codes ? 16 : 4));
      graph.tensors.push_back({name, dtype, codes ? graph::Shape{4, 4} : graph::Shape{1}, {}, id});
    }
    std::set<std::string> found;
    for (const graph::LogicalTensor& weight : graph::find_logical_tensors(graph, {}).tensors) {
      std::string text = graph.tensor(weight.codes).name;
      for (const graph::CompanionTensor& part : weight.companions)
        text += " " + graph.tensor(part.tensor).name.str();
      EXPECT_EQ(weight.name, graph.tensor(weight.codes).name);
      EXPECT_TRUE(found.insert(text).second) << text;
    }
    EXPECT_EQ(found, expected) << round;
  }
}

TEST(Dimensions, BehavesLikeAVector) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> expected;
    graph::Shape shape;
    graph::Strides strides;
    for (std::size_t n = random() % 6; n-- > 0;) {
      expected.push_back(random());
      shape.push_back(expected.back());
      strides.push_back(expected.back());
    }
    const graph::Shape copy = shape;
    graph::Shape moved = std::move(shape);
    shape = copy;
    graph::Shape& itself = moved;
    moved = itself;
    EXPECT_EQ(copy.vector(), expected);
    EXPECT_EQ(moved, shape);
    EXPECT_EQ(strides.vector(), expected);
    EXPECT_EQ(std::vector<std::uint64_t>(copy.rbegin(), copy.rend()),
              std::vector<std::uint64_t>(expected.rbegin(), expected.rend()));
    if (!expected.empty()) {
      EXPECT_EQ(copy.front(), expected.front());
      EXPECT_EQ(copy.back(), expected.back());
      shape[0] += 1;
      EXPECT_NE(shape, copy);
      EXPECT_EQ(shape < copy, shape.vector() < copy.vector());
    }
  }
}

TEST(NameIndex, AgreesWithAMap) {
  std::mt19937 random(5);
  std::vector<std::string> texts;
  std::unordered_map<std::string, std::uint32_t> expected;
  graph::NameIndex index(10);  // far too few: it grows
  const auto text_of = [&](std::uint32_t i) { return std::string_view(texts[i]); };
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    texts.push_back(std::to_string(random() % 15'000));
    // few hashes, so that names meet in the table
    const auto hash = static_cast<std::uint32_t>(std::stoul(texts.back()) % 512);
    const auto known = index.add(texts.back(), hash, i, text_of);
    const auto [at, fresh] = expected.try_emplace(texts.back(), i);
    ASSERT_EQ(known.has_value(), !fresh);
    if (known) {
      ASSERT_EQ(*known, at->second);
    }
    ASSERT_EQ(index.find(texts.back(), hash, text_of), at->second);
  }
  EXPECT_FALSE(index.find("none", 7, text_of));
}

}  // namespace

// --- The filter grammar.

namespace {

graph::MetaGraph sample() {
  graph::MetaGraph graph;
  graph.files = {{"m.index.json", 10}, {"a.safetensors", 1 << 20}, {"b.safetensors", 1 << 20}};
  const auto add = [&](const char* name, graph::DType dtype, graph::Shape shape, std::uint32_t file) {
    const std::uint64_t bytes = graph::byte_size(dtype, graph::element_count(shape).value()).value();
    graph.storages.push_back(graph::plain_storage(graph::FileId{file}, 0, bytes));
    graph.tensors.push_back({name,
                             dtype,
                             std::move(shape),
                             {},
                             graph::StorageId{static_cast<std::uint32_t>(graph.storages.size() - 1)},
                             0});
  };
  add("embed.weight", graph::DType::bf16, {100, 64}, 1);                     // 0: 12800 bytes
  add("layers.0.self_attn.q_proj.weight", graph::DType::bf16, {64, 64}, 1);  // 1: 8192
  add("layers.7.self_attn.k_proj.weight", graph::DType::f32, {64, 64}, 1);   // 2: 16384
  add("layers.12.mlp.up_proj.weight", graph::DType::q4_k, {4, 256}, 2);      // 3: 576
  add("two words", graph::DType::i64, {}, 2);                                // 4: 8
  return graph;
}

std::vector<int> select(std::string_view text) {
  std::vector<int> positions;
  for (const graph::TensorId id : graph::TensorFilter(text).select(sample()))
    positions.push_back(static_cast<int>(id));
  return positions;
}

using Positions = std::vector<int>;

TEST(Filter, SelectsByEveryKey) {
  EXPECT_EQ(select(""), (Positions{0, 1, 2, 3, 4}));
  EXPECT_EQ(select("  "), (Positions{0, 1, 2, 3, 4}));
  EXPECT_EQ(select("dtype:bf16"), (Positions{0, 1}));
  EXPECT_EQ(select("dtype:BF16,q4_*"), (Positions{0, 1, 3}));
  EXPECT_EQ(select("shape:*x64"), (Positions{0, 1, 2}));
  EXPECT_EQ(select("shape:64x64"), (Positions{1, 2}));
  EXPECT_EQ(select("size:>12.5KiB"), (Positions{2}));
  EXPECT_EQ(select("size:>=12800"), (Positions{0, 2}));
  EXPECT_EQ(select("size:<8KiB"), (Positions{3, 4}));
  EXPECT_EQ(select("size:576-8KiB"), (Positions{1, 3}));
  EXPECT_EQ(select("rank:0"), (Positions{4}));
  EXPECT_EQ(select("layer:0-7"), (Positions{1, 2}));
  EXPECT_EQ(select("layer:12,0"), (Positions{1, 3}));
  EXPECT_EQ(select("layer:>7"), (Positions{3}));
  EXPECT_EQ(select("shard:2"), (Positions{3, 4}));  // the index is no shard
  EXPECT_EQ(select("file:a.*"), (Positions{0, 1, 2}));
  EXPECT_EQ(select("name:*_proj*"), (Positions{1, 2, 3}));
  EXPECT_EQ(select("name:embed"), Positions{});  // the whole name
  EXPECT_EQ(select("proj"), (Positions{1, 2, 3}));
  EXPECT_EQ(select("name:\"two words\""), (Positions{4}));
  EXPECT_EQ(select("dtype:bf16 layer:0"), (Positions{1}));
  EXPECT_EQ(select("proj -attn"), (Positions{3}));
  EXPECT_EQ(select("-dtype:bf16 -rank:0"), (Positions{2, 3}));
}

TEST(Filter, SaysWhatIsWrong) {
  const auto error = [](std::string_view text) {
    return testing::facts_of([&] { graph::TensorFilter{text}; });
  };
  EXPECT_EQ(error("color:red"), "usage 'color:red' 'color'");
  EXPECT_EQ(error("layer:x"), "usage 'layer:x' 'x'");
  EXPECT_EQ(error("layer:3-"), "usage 'layer:3-' ''");
  EXPECT_EQ(error("size:>5G"), "usage 'size:>5G' '5G' 1024 1000");
  EXPECT_EQ(error("name:"), "usage 'name:'");
  EXPECT_EQ(error("name:\"open"), "usage 'name:open'");
  EXPECT_EQ(error("layer:>18446744073709551615 rank:<0"), "");
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(graph::glob_matches("*", ""));
  EXPECT_TRUE(graph::glob_matches("a*b*c", "axxbyyc"));
  EXPECT_FALSE(graph::glob_matches("a*b*c", "axxbyy"));
  EXPECT_TRUE(graph::glob_matches("a?c", "abc"));
  EXPECT_FALSE(graph::glob_matches("a?c", "ac"));
  EXPECT_FALSE(graph::glob_matches("", "a"));
  EXPECT_FALSE(graph::glob_matches(std::string(30, '*') + "b", std::string(100'000, 'a')));
}

}  // namespace

// --- Size polynomials and the laws of forward graphs.

namespace {

const std::vector<std::string> kSymbols = {"B", "S", "P"};

graph::SizePoly sum(const graph::SizePoly& a, const graph::SizePoly& b) {
  return graph::SizePoly::sum(a, b).value();
}
graph::SizePoly product(const graph::SizePoly& a, const graph::SizePoly& b) {
  return graph::SizePoly::product(a, b).value();
}

TEST(SizePoly, WritesWhatItIs) {
  const graph::SizePoly b = graph::SizePoly::symbol(graph::kBatch),
                        s = graph::SizePoly::symbol(graph::kSequence);
  EXPECT_EQ(graph::SizePoly().text(kSymbols), "0");
  EXPECT_EQ(sum(product(graph::SizePoly(2), product(s, b)), graph::SizePoly(64)).text(kSymbols),
            "2*B*S + 64");
  EXPECT_EQ(sum(s, graph::SizePoly(-1)).text(kSymbols), "S - 1");
  EXPECT_EQ(product(graph::SizePoly(-3), s).text(kSymbols), "-3*S");
  EXPECT_EQ(graph::SizePoly::symbol(graph::SymbolId{9}).text(kSymbols), "?");
}

TEST(SizePoly, EqualSizesAreEqual) {
  const graph::SizePoly s = graph::SizePoly::symbol(graph::kSequence),
                        p = graph::SizePoly::symbol(graph::kPast);
  EXPECT_EQ(product(sum(s, p), sum(s, p)),
            sum(sum(product(s, s), product(p, p)), product(graph::SizePoly(2), product(p, s))));
  EXPECT_EQ(sum(s, product(graph::SizePoly(-1), s)), graph::SizePoly());
}

TEST(SizePoly, AgreesWithArithmetic) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::uint64_t> at = {random() % 50, random() % 50, random() % 50};
    graph::SizePoly poly(1);
    std::uint64_t expected = 1;
    for (int i = 0; i < 4; ++i) {
      const auto symbol = static_cast<std::uint16_t>(random() % 3);
      const auto constant = static_cast<std::int64_t>(random() % 100);
      if (random() % 2 == 0) {
        poly =
            product(poly, sum(graph::SizePoly::symbol(graph::SymbolId{symbol}), graph::SizePoly(constant)));
        expected *= at[symbol] + static_cast<std::uint64_t>(constant);
      } else {
        poly = sum(poly, graph::SizePoly(constant));
        expected += static_cast<std::uint64_t>(constant);
      }
    }
    EXPECT_EQ(poly.evaluate(at), expected) << poly.text(kSymbols);
  }
}

TEST(SizePoly, OverflowIsNothing) {
  const graph::SizePoly big(INT64_MAX), s = graph::SizePoly::symbol(graph::kSequence);
  EXPECT_FALSE(graph::SizePoly::sum(big, graph::SizePoly(1)));
  EXPECT_FALSE(graph::SizePoly::product(big, graph::SizePoly(2)));
  EXPECT_FALSE(product(s, s).evaluate(std::vector<std::uint64_t>{0, std::uint64_t{1} << 32, 0}));
  EXPECT_FALSE(sum(s, graph::SizePoly(-1)).evaluate(std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_FALSE(s.evaluate({}));
  std::optional<graph::SizePoly> power = s;
  for (int i = 0; i < 20 && power; ++i) power = graph::SizePoly::product(*power, s);
  EXPECT_FALSE(power);
}

TEST(ValueBytes, CountsElementsAndPacking) {
  const graph::SizePoly s = graph::SizePoly::symbol(graph::kSequence);
  EXPECT_EQ(graph::value_bytes({"v", graph::DType::f16, std::vector{s, graph::SizePoly(8)}})->text(kSymbols),
            "16*S");
  EXPECT_EQ(graph::value_bytes({"v", graph::DType::i4, std::vector{graph::SizePoly(5)}})->constant(), 3);
  EXPECT_FALSE(graph::value_bytes({"v", graph::DType::i4, std::vector{s}}));
  EXPECT_FALSE(graph::value_bytes({"v", std::nullopt, std::vector{s}}));
  EXPECT_FALSE(graph::value_bytes({"v", graph::DType::f32, std::nullopt}));
}

TEST(ForwardLaws, ValuesAreMadeOnceBeforeUse) {
  graph::MetaGraph graph;
  graph.forward = graph::ForwardGraph();
  graph.forward->values = {{"x", {}, {}}, {"y", {}, {}}};
  graph.forward->inputs = {graph::ValueId{0}};
  graph.forward->outputs = {graph::ValueId{1}};
  EXPECT_THROW(graph::validate(graph), Error);  // y is never made
  graph.forward->ops = {{"Relu", "r", {graph::ValueId{0}}, {}, {graph::ValueId{1}}}};
  EXPECT_NO_THROW(graph::validate(graph));
  graph.forward->ops.push_back(graph.forward->ops[0]);
  EXPECT_THROW(graph::validate(graph), Error);  // y is made twice
  graph.forward->ops = {{"Relu", "r", {graph::ValueId{1}}, {}, {graph::ValueId{1}}}};
  EXPECT_THROW(graph::validate(graph), Error);  // y is used before it is made
  graph.forward->ops = {{"Relu", "r", {graph::ValueId{0}}, {graph::TensorId{0}}, {graph::ValueId{1}}}};
  EXPECT_THROW(graph::validate(graph), Error);  // there is no tensor
}

TEST(ForwardLaws, WhatIsHeldIsThere) {
  graph::MetaGraph graph;
  graph.forward = graph::ForwardGraph();
  graph::ForwardGraph& forward = *graph.forward;
  forward.values = {{"x", {}, {}}, {"y", {}, {}}, {"z", {}, {}}, {"t", {}, {}}};
  forward.inputs = {graph::ValueId{0}};
  forward.ops = {{"Relu", "r", {graph::ValueId{0}}, {}, {graph::ValueId{1}}},
                 {"Relu", "s", {graph::ValueId{1}}, {}, {graph::ValueId{2}}}};
  forward.ops[0].temporaries = {graph::ValueId{3}};
  forward.ops[1].held = {graph::ValueId{3},
                         graph::ValueId{2}};  // an earlier one's temporary, and what it makes itself
  EXPECT_NO_THROW(graph::validate(graph));
  forward.ops[0].temporaries.clear();
  EXPECT_THROW(graph::validate(graph), Error);
  forward.ops[1].held.clear();
  forward.ops[0].temporaries = {graph::ValueId{9}};
  EXPECT_THROW(graph::validate(graph), Error);
}

TEST(ForwardLaws, ABodyIsOneOperatorsAndNotTooDeep) {
  graph::MetaGraph graph;
  graph.forward = graph::ForwardGraph();
  graph::ForwardGraph& forward = *graph.forward;
  forward.values = {{"x", {}, {}}, {"y", {}, {}}, {"i", {}, {}}, {"b", {}, {}}};
  forward.inputs = {graph::ValueId{0}};
  forward.outputs = {graph::ValueId{1}};
  forward.ops = {{"Loop", "l", {graph::ValueId{0}}, {}, {graph::ValueId{1}}}};
  forward.ops[0].bodies = {0};
  EXPECT_THROW(graph::validate(graph), Error);  // there is none
  forward.bodies.push_back({{{"Add", "a", {graph::ValueId{0}, graph::ValueId{2}}, {}, {graph::ValueId{3}}}},
                            {graph::ValueId{2}},
                            {graph::ValueId{3}}});
  EXPECT_NO_THROW(graph::validate(graph));
  forward.bodies[0].outputs = {graph::ValueId{1}};
  EXPECT_THROW(graph::validate(graph), Error);  // y is made later
  forward.bodies[0].outputs = {graph::ValueId{3}};
  forward.bodies[0].ops[0].bodies = {0};
  EXPECT_THROW(graph::validate(graph), Error);  // it is in itself
  forward.bodies[0].ops[0].bodies.clear();
  for (std::uint32_t i = 1; i <= graph::kMostBodyDepth; ++i) {
    forward.bodies.push_back({{{"If", "i", {}, {}, {}}}, {}, {}});
    forward.bodies[i - 1].ops[0].bodies = {i};
    EXPECT_EQ(i < graph::kMostBodyDepth, [&] {
      try {
        graph::validate(graph);
        return true;
      } catch (const Error&) {
        return false;
      }
    }());
  }
}

TEST(SizePoly, TellsWhichSymbolsAreInIt) {
  const graph::SizePoly batch = graph::SizePoly::symbol(graph::kBatch),
                        both = *graph::SizePoly::sum(batch, graph::SizePoly::symbol(graph::kPast));
  EXPECT_EQ(batch.as_symbol(), graph::kBatch);
  EXPECT_FALSE(both.as_symbol());
  EXPECT_FALSE(graph::SizePoly::product(batch, graph::SizePoly(2))->as_symbol());
  EXPECT_FALSE(graph::SizePoly(1).as_symbol());
  EXPECT_TRUE(both.mentions(graph::kPast));
  EXPECT_FALSE(both.mentions(graph::kSequence));
}

}  // namespace

}  // namespace loadline::tests
