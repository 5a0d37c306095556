// Parses an asset's JSON into an Architecture. Every line is parsed at once, so that any fault is reported.
#include "core/forward/family/architecture.h"

#include "core/assets/asset_file.h"
#include "core/base/text.h"
#include "embedded/architectures_files.h"

#include <algorithm>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

using Kind = assets::AssetNode::Kind;

constexpr std::size_t kMostSpellings = 8;  // prefixes and endings, each tried for every tensor
constexpr std::size_t kMostLines = 2000;   // of a block

std::vector<std::string> texts(const assets::AssetNode& root, std::string_view key,
                               std::size_t most = assets::kMostAssetNames) {
  const assets::AssetNode* const list = root.find(key);
  return list == nullptr ? std::vector<std::string>()
                         : list->texts(fmt::format("'{}'", key), most, assets::kMostAssetName);
}

std::vector<std::pair<std::string, std::string>> pairs(const assets::AssetNode& root, std::string_view key,
                                                       std::size_t most = assets::kMostAssetNames) {
  std::vector<std::pair<std::string, std::string>> found;
  if (const assets::AssetNode* const object = root.find(key))
    found = object->pairs(fmt::format("'{}'", key), most, assets::kMostAssetName);
  return found;
}

// "[B, S]:I64" has the form of a weight's shape.
InputSpec input(const std::string& name, const assets::AssetNode& node) {
  const OpLine line =
      parse_op_line(fmt::format("have @x{}", node.as(Kind::text, "an input").text), node.place);
  if (line.weights.size() != 1 || !line.weights[0].dtype || line.condition.text() != "")
    node.place.fail("a shape and a dtype expected, as in '[B, S]:I64'");
  return {name, node.place, line.weights[0].shape, *line.weights[0].dtype};
}

class AssetParser {
 public:
  AssetParser(std::string_view json, const std::string& path) : root_(assets::parse_asset(json, path)) {
    result_.path = path;
  }

  Architecture parse() {
    result_.family = root_.at("family").name("'family'", assets::kMostAssetName);
    result_.model_types = texts(root_, "model_types");
    result_.classes = texts(root_, "classes");
    assets::for_each_field(root_, "let", assets::kMostAssetNames,
                           [&](const std::string& key, const assets::AssetNode& node) {
                             if (is_pass_size(key))
                               node.place.fail("'{}' stands for a size of the pass", key);
                             result_.let.emplace_back(key, node.expression("'let'"));
                           });
    assets::for_each_field(root_, "inputs", kMostSpellings,
                           [&](const std::string& key, const assets::AssetNode& node) {
                             result_.inputs.push_back(input(key, node));
                           });
    result_.prefixes = texts(root_, "prefix", kMostSpellings);
    result_.spellings = pairs(root_, "spellings", kMostSpellings);
    result_.tie = assets::find_expression(root_, "tie");
    result_.tied = pairs(root_, "tied");
    result_.ignore = texts(root_, "ignore");
    assets::for_each_field(root_, "settings", assets::kMostAssetNames,
                           [&](const std::string& key, const assets::AssetNode& node) {
                             result_.settings.emplace_back(key, node.expression("'settings'"));
                           });
    result_.leaves_out = texts(root_, "leaves_out", kMostSpellings);
    blocks();
    check_loops();
    return std::move(result_);
  }

 private:
  void blocks() {
    constexpr std::string_view kOthers[] = {"family", "model_types", "classes", "let",  "inputs",
                                            "prefix", "spellings",   "tie",     "tied", "ignore",
                                            "about",  "leaves_out",  "settings"};
    root_.at_most(assets::kMostAssetNames, "an asset");
    for (std::size_t i = 0; i < root_.keys.size(); ++i) {
      const std::string& name = root_.keys[i];
      if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers)) continue;
      std::vector<OpLine>& lines = result_.blocks[name];
      const std::string what = fmt::format("'{}'", safe_display(name, 40));
      root_.items[i].as(Kind::list, what).at_most(kMostLines, what);
      for (const assets::AssetNode& item : root_.items[i].items)
        lines.push_back(parse_op_line(item.as(Kind::text, "a line").text, item.place));
    }
    if (result_.block("main").empty()) root_.place.fail("'main' is missing");
  }

  // Checks that every block named by a line exists, and that no block reaches itself.
  void check_loops() const {
    for (const auto& [name, lines] : result_.blocks)
      for (const OpLine& line : lines)
        if (line.kind == OpLine::Kind::each && !result_.blocks.contains(line.block))
          line.place.fail("there is no block '{}'", safe_display(line.block, 40));
    std::map<std::string, int, std::less<>> known;
    for (const auto& [name, lines] : result_.blocks) depth_of(name, 0, known);
  }

  // The depth of nested blocks below this one. Each block is visited once.
  int depth_of(const std::string& name, int above, std::map<std::string, int, std::less<>>& known) const {
    constexpr int kMostDepth = 6;
    if (const auto found = known.find(name); found != known.end()) return found->second;
    int depth = 0;
    for (const OpLine& line : result_.block(name)) {
      if (line.kind != OpLine::Kind::each) continue;
      // a block that reaches itself always ends here
      if (above == kMostDepth)
        line.place.fail("blocks within blocks more than 6 levels deep, or without end");
      depth = std::max(depth, 1 + depth_of(line.block, above + 1, known));
      if (depth > kMostDepth) line.place.fail("blocks within blocks more than 6 levels deep, or without end");
    }
    known.emplace(name, depth);
    return depth;
  }

  assets::AssetNode root_;
  Architecture result_;
};

}  // namespace

std::span<const OpLine> Architecture::block(std::string_view name) const {
  const auto found = blocks.find(name);
  return found == blocks.end() ? std::span<const OpLine>() : std::span(found->second);
}

Architecture parse_architecture(std::string_view json, const std::string& path) {
  return AssetParser(json, path).parse();
}

std::span<const Architecture> built_in_architectures() {
  // never taken apart, as built_in_assets() is not
  static const auto& rows = *new auto(assets::parse_all(embedded::architectures_files(), parse_architecture));
  return rows;
}

const Architecture* find_architecture(const ModelConfig& config, std::span<const Architecture> among) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string& name : config.architectures())
    for (const Architecture& candidate : among)
      if (has(candidate.classes, name)) return &candidate;
  const std::string model_type = config.model_type();
  for (const Architecture& candidate : among)
    if (has(candidate.model_types, model_type)) return &candidate;
  return nullptr;
}

std::vector<std::string> left_out(const Architecture& architecture, const ModelConfig& config) {
  std::vector<std::string> parts;
  for (const std::string& key : architecture.leaves_out)
    if (!config.get("root." + key).null()) parts.push_back(key);
  for (std::string& part : config.other_parts()) {
    const bool read = std::ranges::any_of(architecture.let, [&](const auto& named) {
      return named.second.text().find(part + '.') != std::string::npos;
    });
    if (!read && std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<graph::TensorId> tensors_of(const BoundOp& op) {
  std::vector<graph::TensorId> ids;
  const auto add = [&](graph::TensorId id) {
    constexpr std::size_t kFew = 8;  // of a stack; an expert's own weight never repeats
    const auto begin = ids.size() < kFew ? ids.begin() : ids.end() - kFew;
    if (std::find(begin, ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (const BoundWeight& weight : op.weights) {
    if (weight.tensor) add(*weight.tensor);
    for (const graph::TensorId id : weight.companions) add(id);
  }
  return ids;
}

}  // namespace loadline::forward
