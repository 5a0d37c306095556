// From an asset's JSON to an Architecture; every line is parsed here, so that a fault shows at once.
#include "core/forward/architecture.h"

#include "core/base/text.h"
#include "core/forward/asset_json.h"
#include "embedded/architectures_files.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline {
namespace {

using Kind = AssetNode::Kind;

constexpr std::size_t kMostSpellings = 8;  // prefixes and endings, each tried for every tensor
constexpr std::size_t kMostLines = 2000;   // of a block

std::vector<std::string> texts(const AssetNode* list, std::string_view what,
                               std::size_t most = kMostAssetNames) {
  return list == nullptr ? std::vector<std::string>() : list->texts(what, most, kMostAssetName);
}

std::vector<std::pair<std::string, std::string>> pairs(const AssetNode* object, std::string_view what,
                                                       std::size_t most = kMostAssetNames) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  return object == nullptr ? Pairs() : object->pairs(what, most, kMostAssetName);
}

Expression expression(const AssetNode& node, std::string_view what) {
  return Expression::parse(node.as(Kind::text, what).text, node.place);
}

// "[B, S]:I64" has the form of a weight's shape.
InputSpec input(const std::string& name, const AssetNode& node) {
  const OpLine line =
      parse_op_line(fmt::format("have @x{}", node.as(Kind::text, "an input").text), node.place);
  if (line.weights.size() != 1 || !line.weights[0].dtype || line.condition.text() != "")
    node.place.fail("a shape and a dtype expected, as in '[B, S]:I64'");
  return {name, node.place, line.weights[0].shape, *line.weights[0].dtype};
}

class AssetParser {
 public:
  AssetParser(std::string_view json, const std::string& path) : root_(parse_asset(json, path)) {
    result_.path = path;
  }

  Architecture parse() {
    const AssetNode* const family = root_.find("family");
    if (family == nullptr) root_.place.fail("'family' is missing");
    result_.family = family->name("'family'", kMostAssetName);
    result_.model_types = texts(root_.find("model_types"), "'model_types'");
    result_.classes = texts(root_.find("classes"), "'classes'");
    if (const AssetNode* const let = root_.find("let")) {
      let->as(Kind::object, "'let'").at_most(kMostAssetNames, "'let'");
      for (std::size_t i = 0; i < let->items.size(); ++i) {
        if (is_pass_size(let->keys[i]))
          let->items[i].place.fail(fmt::format("'{}' stands for a size of the pass", let->keys[i]));
        result_.let.emplace_back(let->keys[i], expression(let->items[i], "'let'"));
      }
    }
    if (const AssetNode* const inputs = root_.find("inputs")) {
      inputs->as(Kind::object, "'inputs'").at_most(kMostSpellings, "'inputs'");
      for (std::size_t i = 0; i < inputs->items.size(); ++i)
        result_.inputs.push_back(input(inputs->keys[i], inputs->items[i]));
    }
    result_.prefixes = texts(root_.find("prefix"), "'prefix'", kMostSpellings);
    result_.spellings = pairs(root_.find("spellings"), "'spellings'", kMostSpellings);
    if (const AssetNode* const tie = root_.find("tie")) result_.tie = expression(*tie, "'tie'");
    result_.tied = pairs(root_.find("tied"), "'tied'");
    result_.ignore = texts(root_.find("ignore"), "'ignore'");
    result_.leaves_out = texts(root_.find("leaves_out"), "'leaves_out'", kMostSpellings);
    blocks();
    check_loops();
    return std::move(result_);
  }

 private:
  void blocks() {
    constexpr std::string_view kOthers[] = {"family", "model_types", "classes",   "let",
                                            "inputs", "prefix",      "spellings", "tie",
                                            "tied",   "ignore",      "about",     "leaves_out"};
    root_.at_most(kMostAssetNames, "an asset");
    for (std::size_t i = 0; i < root_.keys.size(); ++i) {
      const std::string& name = root_.keys[i];
      if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers)) continue;
      std::vector<OpLine>& lines = result_.blocks[name];
      const std::string what = fmt::format("'{}'", safe_display(name, 40));
      root_.items[i].as(Kind::list, what).at_most(kMostLines, what);
      for (const AssetNode& item : root_.items[i].items)
        lines.push_back(parse_op_line(item.as(Kind::text, "a line").text, item.place));
    }
    if (result_.block("main").empty()) root_.place.fail("'main' is missing");
  }

  // Every block that a line names is there, and none reaches itself.
  void check_loops() const {
    for (const auto& [name, lines] : result_.blocks) {
      for (const OpLine& line : lines)
        if (line.kind == OpLine::Kind::each && result_.blocks.find(line.block) == result_.blocks.end())
          line.place.fail(fmt::format("there is no block '{}'", safe_display(line.block, 40)));
    }
    std::map<std::string, int, std::less<>> known;
    for (const auto& [name, lines] : result_.blocks) depth_of(name, 0, known);
  }

  // How deep blocks lie in one another below this one; each is looked at once.
  int depth_of(const std::string& name, int above, std::map<std::string, int, std::less<>>& known) const {
    constexpr int kMostDepth = 6;
    if (const auto found = known.find(name); found != known.end()) return found->second;
    int depth = 0;
    for (const OpLine& line : result_.block(name)) {
      if (line.kind != OpLine::Kind::each) continue;
      // a block that reaches itself is never known before this
      if (above == kMostDepth)
        line.place.fail("blocks within blocks more than 6 levels deep, or without end");
      depth = std::max(depth, 1 + depth_of(line.block, above + 1, known));
      if (depth > kMostDepth) line.place.fail("blocks within blocks more than 6 levels deep, or without end");
    }
    known.emplace(name, depth);
    return depth;
  }

  AssetNode root_;
  Architecture result_;
};

std::vector<Architecture> load_built_in() {
  std::vector<Architecture> rows;
  for (const embedded::File& file : embedded::architectures_files())
    rows.push_back(parse_architecture(file.bytes, std::string(file.name)));
  return rows;
}

}  // namespace

std::span<const OpLine> Architecture::block(std::string_view name) const {
  const auto found = blocks.find(name);
  return found == blocks.end() ? std::span<const OpLine>() : std::span(found->second);
}

Architecture parse_architecture(std::string_view json, const std::string& path) {
  return AssetParser(json, path).parse();
}

std::span<const Architecture> built_in_architectures() {
  static const std::vector<Architecture> rows = load_built_in();
  return rows;
}

const Architecture* find_architecture(const ModelConfig& config, std::span<const Architecture> among) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : config.architectures())
    for (const Architecture& candidate : among)
      if (has(candidate.classes, name)) return &candidate;
  const std::string model_type = config.model_type();
  for (const Architecture& candidate : among)
    if (has(candidate.model_types, model_type)) return &candidate;
  return nullptr;
}

}  // namespace loadline
