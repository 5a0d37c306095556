// Applies the rules to one model; numbers of scaled rotary embeddings.
#include "core/forward/gguf/gguf_map.h"

#include "core/assets/expression.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/operators.h"
#include "core/forward/family/settings.h"
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
#include <utility>
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

double yarn_scale(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

// llama.cpp scales attention by yarn_scale(factor, 1) times this number.
assets::Datum yarn_attention(std::span<const assets::Datum> arguments) {
  const double factor = number(arguments[0], 1e-6, kMost, "the factor");
  double scale = yarn_scale(factor, 1);
  if (!arguments[1].null()) {
    scale = number(arguments[1], 0, kMost, "the attention factor");
  } else if (arguments[2].truth() && arguments[3].truth()) {
    scale = yarn_scale(factor, number(arguments[2], 0, kMost, "mscale")) /
            yarn_scale(factor, number(arguments[3], 0, kMost, "mscale_all_dim"));
  }
  const double ratio = scale / yarn_scale(factor, 1);
  return ratio == 1 ? assets::Datum() : assets::Datum(ratio);
}

// Whether exactly each n-th item is another than `value`; with n = 0 none is.
bool has_period(const std::vector<assets::Datum>& list, const assets::Datum& value, std::size_t n) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if ((list[i] == value) != (n == 0 || (i + 1) % n != 0)) return false;
  return true;
}

assets::Datum period(const std::vector<assets::Datum>& list, const assets::Datum& value) {
  const auto other = std::ranges::find_if(list, [&](const assets::Datum& one) { return !(one == value); });
  const auto n = other == list.end() ? 0 : static_cast<std::size_t>(other - list.begin()) + 1;
  return has_period(list, value, n) ? assets::Datum(static_cast<std::int64_t>(n)) : assets::Datum();
}

// llama3_factors(dimension, theta, factor, low, high, context): the divisor of each frequency.
// yarn_attention(factor, attention factor, mscale, mscale_all_dim): nothing for 1.
// period(list, value): the n for which each n-th item and no other is another than the value, 0 if none is,
// or nothing; every(list, value, n): whether it has that period. long_attention(type, context, original
// context): what attention is scaled by, of the types longrope and yarn. Nothing for any other function.
// Throws Error{malformed} for arguments that are no numbers in their ranges. Source: the rope initializers of
// transformers (modeling_rope_utils).
std::optional<assets::Datum> call_rope(std::string_view function, std::span<const assets::Datum> arguments) {
  if (function == "llama3_factors" && arguments.size() == 6) return llama3_factors(arguments);
  if (function == "long_attention" && arguments.size() == 3) return long_attention(arguments);
  if (function == "yarn_attention" && arguments.size() == 4) return yarn_attention(arguments);
  if (function == "period" && arguments.size() == 2 && arguments[0].list() != nullptr)
    return period(*arguments[0].list(), arguments[1]);
  if (function == "every" && arguments.size() == 3 && arguments[0].list() != nullptr &&
      arguments[2].number() != nullptr && *arguments[2].number() >= 0)
    return assets::Datum(std::int64_t{
        has_period(*arguments[0].list(), arguments[1], static_cast<std::size_t>(*arguments[2].number()))});
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
      : family_(family),
        config_(config),
        header_(graph, {config.is_part_of_another() ? prefixes_in(graph, family.prefixes) : family.prefixes,
                        family.spellings}) {
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
    for (const auto& [note, holds] : family_.notes)
      if (holds.evaluate(scope_).truth()) map_.notes.push_back(note);
    const assets::Datum architecture = family_.architecture.evaluate(scope_);
    if (architecture.text() == nullptr)
      family_.architecture.place().fail("the architecture is {}: a text expected", architecture.shown());
    map_.architecture = *architecture.text();
    for (const GgufKeyRule& rule : family_.keys) {
      read_.begin_line();
      if (assets::Datum value = rule.value.evaluate(scope_); !value.null())
        map_.keys.push_back({rule.whole ? rule.name : map_.architecture + "." + rule.name, rule.type,
                             std::move(value), read_.settings()});
    }
    if (!family_.rope.empty()) map_rope();
    for (const NameRule& rule : family_.tensors) apply(rule, "", "");
    check_all_taken();
    account();
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

  // has('NAME'): whether the model holds that tensor. given('KEY'): whether config.json has the key, be it
  // null.
  std::optional<assets::Datum> call(std::string_view function,
                                    std::span<const assets::Datum> arguments) const {
    if (function == "has" && arguments.size() == 1 && arguments[0].text() != nullptr)
      return assets::Datum(std::int64_t{header_.find(*arguments[0].text()).has_value()});
    if (function == "given" && arguments.size() == 1 && arguments[0].text() != nullptr)
      return assets::Datum(std::int64_t{config_.given(*arguments[0].text())});
    return call_rope(function, arguments);
  }

  // What llama.cpp reads of scaled positions for every architecture (llama-context.cpp), but for keys that
  // the asset states itself. llama.cpp takes yarn's borders as 32 and 1, rounded, whatever keys say.
  void map_rope() {
    read_.begin_line();
    // layers with windows may have another one, which the asset looks at
    const bool nested = !value_of("rope.full_attention.rope_type").null();
    const std::string prefix = nested ? "rope.full_attention." : "rope.";
    const assets::Datum type = value_of(prefix + "rope_type");
    const std::string word = type.null() ? "default" : type.text() == nullptr ? "" : *type.text();
    if (std::ranges::find(family_.rope, word) == family_.rope.end()) {
      leave(prefix + "rope_type");
      for (const Setting& setting : all_)  // they go with the type
        if (setting.name.starts_with("rope_")) read_.is_setting(setting.name, true);
      return;
    }
    if (word != "linear" && word != "yarn") return;
    const auto put = [&](const char* name, GgufType key_type, assets::Datum value) {
      const std::string key = std::string("rope.scaling.") + name;
      if (!value.null() && std::ranges::find(family_.keys, key, &GgufKeyRule::name) == family_.keys.end())
        map_.keys.push_back({map_.architecture + "." + key, key_type, std::move(value), {prefix + name}});
    };
    const assets::Datum factor = value_of(prefix + "factor");
    if (factor.null())
      throw Error(ErrorCode::malformed, {.file = config_.path()},
                  "positions are scaled as '{}', but no 'factor' says how far", word);
    put("type", GgufType::text, assets::Datum(word));
    put("factor", GgufType::f32, factor);
    if (word == "linear") return;
    const assets::Datum context = value_of(prefix + "original_max_position_embeddings");
    put("original_context_length", GgufType::u32,
        context.null() ? value_of("max_position_embeddings") : context);
    put("attn_factor", GgufType::f32,
        yarn_attention(std::array{factor, value_of(prefix + "attention_factor"), value_of(prefix + "mscale"),
                                  value_of(prefix + "mscale_all_dim")}));
    constexpr std::pair<const char*, std::int64_t> kOnly[] = {
        {"beta_fast", 32}, {"beta_slow", 1}, {"truncate", 1}, {"extrapolation_factor", 1}};
    for (const auto& [name, expected] : kOnly)
      if (const assets::Datum value = value_of(prefix + name);
          !value.null() && !(value == assets::Datum(expected)))
        leave(prefix + name);
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

  // The setting of that name is not accounted for. A setting of the rotary embedding has the name that the
  // file has.
  void leave(const std::string& name) {
    Setting left{name, "not set"};
    for (const Setting& setting : all_)
      if (setting.name == name || SettingsRead::stands_for(setting.name, name)) left = setting;
    if (std::ranges::find(map_.unaccounted, left.name, &Setting::name) == map_.unaccounted.end())
      map_.unaccounted.push_back(std::move(left));
  }

  void account() {
    read_.begin_line();
    for (const auto& [pattern, holds] : family_.settings) {
      const bool one = pattern.find('*') == std::string::npos;
      names_["value"] = one ? value_of(pattern) : assets::Datum();
      names_["given"] = assets::Datum(std::int64_t{one && config_.given(pattern)});
      const bool accounted = holds.evaluate(scope_).truth();
      if (one && !accounted) leave(pattern);
      if (one || !accounted) continue;
      for (const Setting& setting : all_)
        if (graph::glob_matches(pattern, setting.name)) read_.is_setting(setting.name, true);
    }
    for (const Setting& setting : read_.unaccounted(all_, Reach::nothing)) leave(setting.name);
    if (header_.graph().logical.empty()) return;  // the weights are numbers as they are
    for (const Setting& setting : unaccounted_packing(all_, PackedUse::unpack)) leave(setting.name);
  }

  const GgufFamily& family_;
  const ModelConfig& config_;
  const std::vector<Setting> all_ = config_.settings();
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
