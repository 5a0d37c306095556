// Parses type policies, and evaluates their rules tensor by tensor.
#include "core/forward/gguf/type_policy.h"

#include "core/assets/asset_file.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"
#include "embedded/types_files.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace loadline::forward {
namespace {

using Kind = assets::AssetNode::Kind;

constexpr std::string_view kCommon = "common";
constexpr std::string_view kOutput = "output";
constexpr std::string_view kOther = "other";
constexpr std::uint64_t kMostWork = 10'000;  // operations for one tensor

graph::DType dtype_of(const assets::AssetNode& node, std::string_view what) {
  const auto type = graph::dtype_named(node.name(what, assets::kMostAssetName));
  if (!type || graph::dtype_info(*type).block_elements == 0)
    node.place.fail("there is no type '{}'", safe_display(node.text, 40));
  return *type;
}

template <typename Values>
void add_expressions(const assets::AssetNode& root, std::string_view key, Values& values) {
  assets::for_each_field(root, key, assets::kMostAssetNames,
                         [&](const std::string& name, const assets::AssetNode& node) {
                           values.emplace(name, node.expression(fmt::format("'{}'", name)));
                         });
}

// The number behind "blk.".
std::optional<std::int64_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t dot = rest.find('.');
  const auto number =
      dot == std::string_view::npos ? std::nullopt : text_as<std::uint32_t>(rest.substr(0, dot));
  return number ? std::optional(std::int64_t{*number}) : std::nullopt;
}

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return graph::glob_matches(glob, name); });
}

std::string_view kind_of(const TypePolicy& policy, std::string_view name) {
  for (const auto& [kind, globs] : policy.kinds)
    if (matches_any(globs, name)) return kind;
  return kOther;
}

std::uint64_t columns_of(const PolicyTensor& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

bool fits(graph::DType type, std::uint64_t columns) {
  const std::uint32_t block = graph::dtype_info(type).block_elements;
  return block != 0 && columns % block == 0;
}

// A tensor among those of its kind.
struct Counted {
  std::string_view kind;
  std::optional<std::int64_t> layer = {};
  std::int64_t position = 0;
  bool changes = false;
};

// One tensor's names and functions for the expressions of a policy.
class TensorScope {
 public:
  TensorScope(const TypePolicy& policy, const PolicyModel& model, const PolicyTensor& tensor,
              const Counted& counted, std::int64_t number, bool tied)
      : policy_(policy), model_(model), tensor_(tensor), counted_(counted), number_(number), tied_(tied) {
    scope_.name = [this](std::string_view name) { return value(name); };
    scope_.call = [this](std::string_view name, std::span<const assets::Datum> arguments) {
      return call(name, arguments);
    };
    scope_.work = &work_;
  }
  TensorScope(const TensorScope&) = delete;

  graph::DType type() {
    const auto rule = policy_.rules.find(counted_.kind);
    if (rule == policy_.rules.end()) return *policy_.type;
    const assets::Datum given = rule->second.evaluate(scope_);
    const auto type = given.text() == nullptr ? std::nullopt : graph::dtype_named(*given.text());
    if (!type) rule->second.place().fail("{} is not a type", given.shown());
    return *type;
  }

 private:
  assets::Datum value(std::string_view name) {
    if (const auto let = policy_.let.find(name); let != policy_.let.end()) {
      if (!open_.insert(let->first).second)
        let->second.place().fail("'{}' needs itself", safe_display(let->first, 60));
      assets::Datum result = let->second.evaluate(scope_);
      open_.erase(let->first);
      return result;
    }
    if (name == "kind") return assets::Datum(std::string(counted_.kind));
    if (name == "name") return assets::Datum(std::string(tensor_.name));
    if (name == "layer") return counted_.layer ? assets::Datum(*counted_.layer) : assets::Datum();
    if (name == "position") return assets::Datum(counted_.position);
    if (name == "number") return assets::Datum(number_);
    if (name == "columns") return assets::Datum(static_cast<std::int64_t>(columns_of(tensor_)));
    if (name == "depth") {
      const std::size_t rank = tensor_.shape.size();
      return assets::Datum(rank < 3 ? std::int64_t{1} : static_cast<std::int64_t>(tensor_.shape[rank - 3]));
    }
    if (name == "type") return assets::Datum(graph::dtype_word(*policy_.type));
    if (name == "arch") return assets::Datum(model_.architecture);
    if (name == "layers") return assets::Datum(model_.layers);
    if (name == "experts") return assets::Datum(model_.experts);
    if (name == "gqa") return assets::Datum(model_.gqa);
    if (name == "tied") return assets::Datum(std::int64_t{tied_});
    if (name == "imatrix") return assets::Datum(std::int64_t{model_.imatrix});
    return assets::Datum();
  }

  std::optional<assets::Datum> call(std::string_view function,
                                    std::span<const assets::Datum> arguments) const {
    if (function != "fits" || arguments.size() != 1 || arguments[0].text() == nullptr) return std::nullopt;
    const auto type = graph::dtype_named(*arguments[0].text());
    if (!type) return std::nullopt;
    return assets::Datum(std::int64_t{fits(*type, columns_of(tensor_))});
  }

  const TypePolicy& policy_;
  const PolicyModel& model_;
  const PolicyTensor& tensor_;
  const Counted& counted_;
  std::int64_t number_;
  bool tied_;
  assets::Scope scope_;
  std::uint64_t work_ = kMostWork;
  std::set<std::string_view> open_;  // "let" names that are being evaluated
};

// Counts the tensors that change, by layer and name.
std::vector<Counted> counted(const TypePolicy& policy, std::span<const PolicyTensor> tensors) {
  std::vector<Counted> all;
  std::vector<std::size_t> order;
  for (const PolicyTensor& tensor : tensors) {
    all.push_back({kind_of(policy, tensor.name), layer_of(tensor.name), 0, may_change(policy, tensor)});
    if (all.back().changes) order.push_back(all.size() - 1);
  }
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::tuple(all[i].layer.value_or(-1), tensors[i].name); });
  std::map<std::string_view, std::int64_t> so_far;
  for (const std::size_t i : order) all[i].position = so_far[all[i].kind]++;
  return all;
}

const TypePolicy* find_file(std::span<const TypePolicy> files, std::string_view name) {
  const auto found = std::ranges::find(files, name, &TypePolicy::name);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

TypePolicy parse_type_policy(std::string_view json, const std::string& path) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"policy", "about", "file_type", "type", "plain", "weights", "keep", "kinds", "fallback", "let",
              "rules"});
  TypePolicy policy;
  policy.name = root.at("policy").name("'policy'", assets::kMostAssetName);
  if (policy.name.empty()) root.at("policy").place.fail("'policy' is empty");
  if (const assets::AssetNode* const about = root.find("about"))
    policy.about = about->name("'about'", assets::kMostAssetName);
  if (const assets::AssetNode* const number = root.find("file_type")) {
    policy.file_type = text_as<std::uint32_t>(number->as(Kind::text, "'file_type'").text);
    if (!policy.file_type) number->place.fail("'file_type' is not a number of 32 bits");
  }
  if (const assets::AssetNode* const type = root.find("type")) policy.type = dtype_of(*type, "'type'");
  if (const assets::AssetNode* const plain = root.find("plain")) policy.plain = dtype_of(*plain, "'plain'");
  if (policy.name != kCommon && !policy.type) root.place.fail("'type' is missing");
  const auto texts = [](const assets::AssetNode& node, std::string_view what) {
    return node.texts(what, assets::kMostAssetNames, assets::kMostAssetName);
  };
  if (const assets::AssetNode* const globs = root.find("weights"))
    policy.weights = texts(*globs, "'weights'");
  if (const assets::AssetNode* const globs = root.find("keep")) policy.keep = texts(*globs, "'keep'");
  assets::for_each_field(root, "kinds", assets::kMostAssetNames,
                         [&](const std::string& kind, const assets::AssetNode& node) {
                           policy.kinds.emplace_back(kind, texts(node, "a kind"));
                         });
  assets::for_each_field(root, "fallback", assets::kMostAssetNames,
                         [&](const std::string& from, const assets::AssetNode& node) {
                           const auto type = graph::dtype_named(from);
                           if (!type) node.place.fail("there is no type '{}'", safe_display(from, 40));
                           policy.fallback.emplace(*type, dtype_of(node, "'fallback'"));
                         });
  add_expressions(root, "let", policy.let);
  add_expressions(root, "rules", policy.rules);
  return policy;
}

std::span<const TypePolicy> built_in_type_policies() {
  static const auto rows = assets::parse_all(embedded::types_files(), parse_type_policy);
  return rows;
}

std::vector<std::string> type_policy_names(std::span<const TypePolicy> files) {
  std::vector<std::string> names;
  for (const TypePolicy& file : files)
    if (file.type) names.push_back(file.name);
  return names;
}

TypePolicyPtr common_type_policy(std::span<const TypePolicy> files) {
  const TypePolicy* const common = find_file(files, kCommon);
  return std::make_shared<const TypePolicy>(common == nullptr ? TypePolicy() : *common);
}

TypePolicyPtr find_type_policy(std::span<const TypePolicy> files, std::string_view name) {
  const TypePolicy* const own = find_file(files, name);
  if (own == nullptr || !own->type) {
    const std::vector<std::string> names = type_policy_names(files);
    check_option_choice(name, names);  // throws
  }
  TypePolicy policy = *own;
  const TypePolicyPtr common = common_type_policy(files);
  const auto complete = [](auto& values, const auto& shared) {
    if (values.empty()) values = shared;
  };
  complete(policy.weights, common->weights);
  complete(policy.keep, common->keep);
  complete(policy.kinds, common->kinds);
  policy.fallback.insert(common->fallback.begin(), common->fallback.end());
  policy.let.insert(common->let.begin(), common->let.end());
  policy.rules.insert(common->rules.begin(), common->rules.end());
  return std::make_shared<const TypePolicy>(std::move(policy));
}

bool may_change(const TypePolicy& policy, const PolicyTensor& tensor) {
  const auto first = std::ranges::find_if(tensor.shape, [](std::uint64_t side) { return side != 1; });
  if (tensor.shape.end() - first < 2) return false;
  return matches_any(policy.weights, tensor.name) && !matches_any(policy.keep, tensor.name);
}

std::vector<std::optional<graph::DType>> policy_types(const TypePolicy& policy, const PolicyModel& model,
                                                      std::span<const PolicyTensor> tensors) {
  const std::vector<Counted> all = counted(policy, tensors);
  std::map<std::string_view, std::int64_t> numbers;
  for (const Counted& one : all) ++numbers[one.kind];
  const bool tied = !numbers.contains(kOutput);
  std::vector<std::optional<graph::DType>> types(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (all[i].changes)
      types[i] = TensorScope(policy, model, tensors[i], all[i], numbers[all[i].kind], tied).type();
  return types;
}

graph::DType fitting_type(const TypePolicy& policy, graph::DType type, std::uint64_t columns) {
  if (fits(type, columns)) return type;
  const auto next = policy.fallback.find(type);
  return next != policy.fallback.end() && fits(next->second, columns) ? next->second : graph::DType::f16;
}

std::string quantization_name(const graph::MetaGraph& graph, std::span<const TypePolicy> files) {
  if (graph.format != "gguf") return "";
  const graph::MetaValue* const key = graph::find_metadata(graph, "general.file_type");
  const auto* const number = key == nullptr ? nullptr : std::get_if<std::uint32_t>(key);
  if (number == nullptr) return "";
  for (const TypePolicy& policy : files)
    if (policy.type && policy.file_type == *number &&
        std::ranges::any_of(graph.tensors,
                            [&](const graph::Tensor& tensor) { return tensor.dtype == *policy.type; })) {
      std::string name = policy.name;
      std::ranges::transform(name, name.begin(),
                             [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
      return name;
    }
  return "";
}

}  // namespace loadline::forward
