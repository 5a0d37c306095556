// Applies the rules to one model; numbers of scaled rotary embeddings.
#include "core/forward/gguf/gguf_map.h"

#include "core/assets/expression.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/operators.h"
#include "core/forward/family/tensor_names.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::forward {

// --- Numbers that a GGUF file holds of a model's scaled rotary embedding.

namespace {

double number(const assets::Datum& value, double least, double most, const char* what) {
  double found = std::nan("");
  if (value.number() != nullptr) found = static_cast<double>(*value.number());
  if (value.real() != nullptr) found = *value.real();
  if (!(found >= least && found <= most))
    throw Error(ErrorCode::malformed, "{} of the rotary embedding is {}: a number from {} to {} expected",
                what, value.shown(), least, most);
  return found;
}

constexpr double kMost = 1e12;

assets::Datum llama3_factors(std::span<const assets::Datum> arguments) {
  const auto dimension = static_cast<std::size_t>(number(arguments[0], 2, 65536, "the dimension"));
  const auto base = static_cast<float>(number(arguments[1], 1, kMost, "the base"));
  const auto factor = static_cast<float>(number(arguments[2], 1e-6, kMost, "the factor"));
  const auto low = static_cast<float>(number(arguments[3], 1e-6, kMost, "the low frequency factor"));
  const auto high = static_cast<float>(number(arguments[4], 1e-6, kMost, "the high frequency factor"));
  const auto context = static_cast<float>(number(arguments[5], 1, kMost, "the original context"));
  std::vector<assets::Datum> factors;
  for (std::size_t i = 0; i < dimension; i += 2) {
    const float frequency = 1.0f / std::pow(base, static_cast<float>(i) / static_cast<float>(dimension));
    const float wavelength = 2.0f * std::numbers::pi_v<float> / frequency;
    if (wavelength < context / high) {
      factors.emplace_back(1.0);
    } else if (wavelength > context / low) {
      factors.emplace_back(static_cast<double>(factor));
    } else {
      const float smooth = (context / wavelength - low) / (high - low);
      factors.emplace_back(static_cast<double>(1.0f / ((1.0f - smooth) / factor + smooth)));
    }
  }
  return assets::Datum(std::move(factors));
}

assets::Datum long_attention(std::span<const assets::Datum> arguments) {
  const std::string type = arguments[0].text() == nullptr ? "" : *arguments[0].text();
  const double original = number(arguments[2], 2, kMost, "the original context");
  const double scale = number(arguments[1], 1, kMost, "the context") / original;
  if (scale <= 1) return assets::Datum(1.0);
  if (type == "yarn") return assets::Datum(0.1 * std::log(scale) + 1.0);
  return assets::Datum(std::sqrt(1 + std::log(scale) / std::log(original)));
}

// llama3_factors(dimension, theta, factor, low, high, context): the divisor of each frequency.
// long_attention(type, context, original context): what attention is scaled by, of the types longrope and
// yarn. Nothing for any other function. Throws Error{malformed} for arguments that are no numbers in their
// ranges. Source: the rope initializers of transformers (modeling_rope_utils).
std::optional<assets::Datum> call_rope(std::string_view function, std::span<const assets::Datum> arguments) {
  if (function == "llama3_factors" && arguments.size() == 6) return llama3_factors(arguments);
  if (function == "long_attention" && arguments.size() == 3) return long_attention(arguments);
  return std::nullopt;
}

}  // namespace

// --- Goes through the rules in order and claims the tensors that they take.

namespace {

constexpr std::int64_t kMostTurns = 100'000;
constexpr std::size_t kMostTensors = 1'000'000;

class Mapper {
 public:
  Mapper(const GgufFamily& family, const ModelConfig& config, const graph::MetaGraph& graph)
      : family_(family), config_(config), header_(graph, {family.prefixes, family.spellings}) {
    scope_.name = [this](std::string_view name) { return value_of(name); };
    scope_.call = [this](std::string_view function, std::span<const assets::Datum> arguments) {
      return call(function, arguments);
    };
  }

  GgufMap map() {
    for (const auto& [name, value] : family_.let) {
      read_.begin_line();
      names_[name] = value.evaluate(scope_);
      read_.define(name);
    }
    read_.begin_line();
    for (const auto& [reason, holds] : family_.refuse)
      if (holds.evaluate(scope_).truth())
        throw Error(ErrorCode::unsupported, {.file = config_.path()}, "llama.cpp would run it wrongly: {}",
                    reason);
    for (const auto& [note, holds] : family_.notes)
      if (holds.evaluate(scope_).truth()) map_.notes.push_back(note);
    const assets::Datum architecture = family_.architecture.evaluate(scope_);
    if (architecture.text() == nullptr)
      family_.architecture.place().fail("the architecture is {}: a text expected", architecture.shown());
    map_.architecture = *architecture.text();
    for (const GgufKeyRule& rule : family_.keys) {
      read_.begin_line();
      if (assets::Datum value = rule.value.evaluate(scope_); !value.null())
        map_.keys.push_back(
            {rule.whole ? rule.name : map_.architecture + "." + rule.name, rule.type, std::move(value)});
    }
    for (const NameRule& rule : family_.tensors) apply(rule, "", "");
    check_all_taken();
    return std::move(map_);
  }

  const SettingsRead& settings_read() const { return read_; }

 private:
  assets::Datum value_of(std::string_view name) {
    read_.note(name);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    assets::Datum value = config_.get(name);
    read_.is_setting(name, !value.null());
    return value;
  }

  // has('NAME'): whether the model holds that tensor.
  std::optional<assets::Datum> call(std::string_view function,
                                    std::span<const assets::Datum> arguments) const {
    if (function == "has" && arguments.size() == 1 && arguments[0].text() != nullptr)
      return assets::Datum(std::int64_t{header_.find(*arguments[0].text()).has_value()});
    return call_rope(function, arguments);
  }

  bool holds(const assets::Expression& condition) const {
    return condition.text().empty() || condition.evaluate(scope_).truth();
  }

  void apply(const NameRule& rule, const std::string& to, const std::string& from) {
    read_.begin_line();
    if (!rule.loop()) {
      if (holds(rule.condition)) map_tensor(rule, to, from);
      return;
    }
    const std::int64_t turns = count(rule.count, rule.place);
    for (std::int64_t i = 0; i < turns; ++i) {
      names_[rule.variable] = i;
      if (!holds(rule.condition)) continue;
      const std::string name = expand_name(rule.name, rule.place, scope_) + ".";
      const std::string source = expand_name(rule.source, rule.place, scope_) + ".";
      for (const NameRule& line : family_.blocks.find(rule.block)->second) apply(line, name, source);
    }
    names_.erase(rule.variable);
  }

  std::int64_t count(const assets::Expression& expression, const assets::AssetPlace& place) const {
    const assets::Datum value = expression.evaluate(scope_);
    if (value.number() == nullptr || *value.number() < 0 || *value.number() > kMostTurns)
      place.fail("'{}' is {}: a number up to {} expected", expression.text(), value.shown(), kMostTurns);
    return *value.number();
  }

  void map_tensor(const NameRule& rule, const std::string& to, const std::string& from) {
    const std::string name = to + expand_name(rule.name, rule.place, scope_);
    if (rule.whole) return add(name, steps_of(rule, from, ""));
    for (const char* ending : {".weight", ".bias"}) add(name + ending, steps_of(rule, from, ending));
  }

  void add(const std::string& name, std::optional<std::vector<NameStep>> steps) {
    if (!steps) return;
    if (map_.tensors.size() == kMostTensors)
      throw Error(ErrorCode::limit, {.file = config_.path()}, "more than {} tensors", kMostTensors);
    map_.tensors.push_back({name, std::move(*steps)});
  }

  // Nothing if the model has none of the tensors. Some, but not all, are an Error.
  std::optional<std::vector<NameStep>> steps_of(const NameRule& rule, const std::string& from,
                                                const char* ending) {
    std::vector<NameStep> steps;
    std::vector<std::uint32_t> last;  // by step of the rule: its position in `steps`
    std::vector<graph::TensorId> taken;
    std::string missing;
    const auto source = [&](const NameRuleStep& step) {
      const std::string name = from + expand_name(step.name, step.place, scope_) + (step.whole ? "" : ending);
      const auto id = header_.find(name);
      if (!id)
        missing = name;
      else
        taken.push_back(*id);
      NameStep found{.kind = NameStepKind::source, .name = name, .tensor = id.value_or(graph::TensorId{})};
      steps.push_back(std::move(found));
      return static_cast<std::uint32_t>(steps.size() - 1);
    };
    for (const NameRuleStep& step : rule.steps) {
      NameStep next{.kind = step.kind};
      if (step.kind == NameStepKind::source) {
        last.push_back(source(step));
        continue;
      }
      if (step.kind == NameStepKind::values) {
        next.values = list(step.arguments.front(), step.place);
      } else if (step.kind == NameStepKind::stack) {
        const std::int64_t turns = count(step.arguments.front(), step.place);
        for (std::int64_t e = 0; e < turns; ++e) {
          names_[step.variable] = e;
          next.inputs.push_back(source(step));
          if (taken.empty()) break;
        }
        names_.erase(step.variable);
      } else {
        for (const std::uint32_t input : step.inputs) next.inputs.push_back(last[input]);
        if (step.kind == NameStepKind::add)
          next.values = {real(step.arguments.front().evaluate(scope_), step.place)};
        else
          for (const assets::Expression& number : step.arguments)
            next.arguments.push_back(whole(number, step.place));
      }
      steps.push_back(std::move(next));
      last.push_back(static_cast<std::uint32_t>(steps.size() - 1));
    }
    const bool computed = rule.steps.front().kind == NameStepKind::values;
    if (taken.empty() && !computed) return std::nullopt;
    if (!missing.empty())
      throw Error(ErrorCode::malformed, {.file = config_.path(), .tensor = missing},
                  "is missing: a GGUF file holds it together with '{}'",
                  safe_display(header_.graph().tensor(taken.front()).name, 100));
    for (const graph::TensorId id : taken) header_.claim(id);
    return steps;
  }

  std::int64_t whole(const assets::Expression& expression, const assets::AssetPlace& place) const {
    const assets::Datum value = expression.evaluate(scope_);
    if (value.number() == nullptr || *value.number() < 0)
      place.fail("'{}' is {}: a whole number expected", expression.text(), value.shown());
    return *value.number();
  }
  static double real(const assets::Datum& value, const assets::AssetPlace& place) {
    if (value.number() != nullptr) return static_cast<double>(*value.number());
    if (value.real() == nullptr) place.fail("{} is not a number", value.shown());
    return *value.real();
  }
  std::vector<double> list(const assets::Expression& expression, const assets::AssetPlace& place) const {
    const assets::Datum value = expression.evaluate(scope_);
    if (value.list() == nullptr) place.fail("'{}' is {}: a list expected", expression.text(), value.shown());
    std::vector<double> numbers;
    for (const assets::Datum& item : *value.list()) numbers.push_back(real(item, place));
    return numbers;
  }

  void check_all_taken() {
    const graph::MetaGraph& graph = header_.graph();
    std::vector<bool> ties(graph.tensors.size(), false);
    for (const auto& group : graph::tied_groups(graph))
      if (std::ranges::any_of(group, [&](graph::TensorId id) { return header_.claimed(id); }))
        for (const graph::TensorId id : group) ties[graph::index(id)] = true;
    std::vector<std::string> patterns;
    for (const std::string& pattern : family_.drop)
      patterns.push_back(expand_name(pattern, family_.architecture.place(), scope_));
    std::vector<graph::TensorId> left;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const graph::TensorId id{static_cast<std::uint32_t>(i)};
      if (header_.claimed(id)) continue;
      const bool drops = ties[i] || std::ranges::any_of(patterns, [&](const std::string& pattern) {
                           return graph::glob_matches(pattern, graph.tensors[i].name);
                         });
      if (drops)
        map_.dropped.push_back(graph.tensors[i].name.str());
      else
        left.push_back(id);
    }
    if (left.empty()) return;
    const graph::Tensor& first = graph.tensor(left.front());
    throw Error(ErrorCode::unsupported, {.file = config_.path(), .tensor = first.name},
                "has no place in a GGUF file of '{}'{}", map_.architecture,
                left.size() == 1 ? "" : fmt::format(", nor have {} others", left.size() - 1));
  }

  const GgufFamily& family_;
  const ModelConfig& config_;
  Header header_;
  assets::Scope scope_;
  std::map<std::string, assets::Datum, std::less<>> names_;  // "let" and loop variables
  SettingsRead read_;
  GgufMap map_;
};

}  // namespace

GgufMap map_to_gguf(const GgufFamily& family, const ModelConfig& config, const graph::MetaGraph& graph) {
  Mapper mapper(family, config, graph);
  try {
    return mapper.map();
  } catch (const Error& error) {
    // assets are tested: the configuration is at fault
    if (error.place().file != family.path) throw;
    throw config.fail(mapper.settings_read().misfit(error.what(), family.path), error.code());
  }
}

}  // namespace loadline::forward
