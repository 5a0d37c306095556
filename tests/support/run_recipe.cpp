// run_recipe MODEL RECIPE.json OUT MEMORY PIECE: computes a recipe for the interop tests, in pieces of so
// many bytes. RECIPE.json is the list of steps: {"kind": "slice", "inputs": [0], "axis": 1, "first": 2,
// "count": 3}. A step names its tensor, or its packed weight, in "name"; "importance" is a list of numbers.
#include "core/base/error.h"
#include "core/convert/recipe/recipe.h"
#include "importers/resolve.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include <nlohmann/json.hpp>

namespace {

using namespace loadline;
using Json = nlohmann::json;

template <typename Rows>
std::uint32_t position_of(const Rows& rows, const std::string& name) {
  const auto found = std::ranges::find_if(rows, [&](const auto& row) { return row.name == name; });
  if (found == rows.end()) throw Error(ErrorCode::usage, "there is no '{}'", name);
  return static_cast<std::uint32_t>(found - rows.begin());
}

convert::RecipeStep step_of(const Json& json, const graph::MetaGraph& graph) {
  convert::RecipeStep step;
  const auto name = json.at("kind").get<std::string>();
  while (convert::step_name(step.kind) != name)
    step.kind = static_cast<convert::StepKind>(static_cast<int>(step.kind) + 1);
  step.inputs = json.value("inputs", std::vector<std::uint32_t>());
  if (step.kind == convert::StepKind::take)
    step.tensor = graph::TensorId{position_of(graph.tensors, json.at("name"))};
  if (step.kind == convert::StepKind::unpack) step.packed = position_of(graph.logical, json.at("name"));
  step.axis = json.value("axis", std::uint64_t{0});
  step.first = json.value("first", std::uint64_t{0});
  step.count = json.value("count", std::uint64_t{0});
  step.a = json.value("a", std::uint64_t{1});
  step.b = json.value("b", std::uint64_t{1});
  step.value = json.value("value", 0.0);
  step.shape = graph::Shape(json.value("shape", std::vector<std::uint64_t>()));
  if (json.contains("dtype")) step.dtype = *graph::dtype_named(json["dtype"].get<std::string>());
  if (json.contains("importance"))
    step.importance = std::make_shared<const graph::TensorImportance>(
        graph::TensorImportance{"", json["importance"].get<std::vector<float>>()});
  return step;
}

void run(char** argv) {
  const auto graph = std::make_shared<const graph::MetaGraph>(importers::open_model(argv[1], {}));
  std::ifstream file(argv[2]);
  convert::Recipe recipe;
  for (const Json& step : Json::parse(file)) recipe.steps.push_back(step_of(step, *graph));
  const io::StorageReader storages(graph);
  const io::TensorReader tensors(storages);
  const io::ReadTensor read = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> bytes) {
    tensors.read(id, offset, bytes);
  };
  convert::RecipeReader reader(*graph, read, recipe, std::strtoull(argv[4], nullptr, 10));
  const graph::DTypeInfo& type = graph::dtype_info(reader.form().dtype);
  const auto piece =
      std::max<std::uint64_t>(std::strtoull(argv[5], nullptr, 10) / type.block_bytes, 1) * type.block_bytes;
  std::vector<std::byte> buffer;
  std::ofstream out(argv[3], std::ios::binary);
  for (std::uint64_t at = 0; at < reader.bytes(); at += buffer.size()) {
    buffer.resize(static_cast<std::size_t>(std::min(piece, reader.bytes() - at)));
    reader.read(at, buffer);
    out.write(reinterpret_cast<const char*>(buffer.data()), static_cast<std::streamsize>(buffer.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: run_recipe MODEL RECIPE.json OUT MEMORY PIECE\n", stderr);
    return 2;
  }
  try {
    run(argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
