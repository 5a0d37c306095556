// Reads adapter_config.json as PEFT 0.21 writes and reads it (peft/tuners/lora/config.py, tuners_utils.py).
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/tokenizer/text_stages.h"
#include "exporters/merge/merge_lora.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline::exporters {
namespace {

using Json = nlohmann::ordered_json;  // the first pattern that fits counts

struct Refusal {
  std::string_view key;
  std::string_view why;
};
// Settings that must be absent, null, false or an empty list.
constexpr std::array kRefused = {
    Refusal{"use_dora", "DoRA scales each row of a weight by a learned length, which is not a sum"},
    Refusal{"use_qalora", "QALoRA pools the inputs, which no weight of the base can hold"},
    Refusal{"lora_bias", "it trains biases of the factors"},
    Refusal{"alora_invocation_tokens", "it is active only after certain tokens, so it cannot be merged"},
    Refusal{"layer_replication", "it repeats layers of the base"},
    Refusal{"trainable_token_indices", "it trains rows of the embedding by themselves"},
    Refusal{"target_parameters", "it targets parameters of experts, not modules"},
    Refusal{"use_bdlora", "block-diagonal factors are not supported"},
    Refusal{"arrow_config", "Arrow chooses among adapters for each token"},
    Refusal{"kasa_config", "KaSA also changes the base's weights"},
    Refusal{"monteclora_config", "MonteCLoRA draws its factors at random"},
    Refusal{"megatron_config", "Megatron splits the weights of a module"},
    Refusal{"ensure_weight_tying", "it trains weights that are tied to each other"}};

// The ways to begin training that leave the base as it is.
constexpr std::array<std::string_view, 4> kPlainStarts = {"gaussian", "eva", "orthogonal", "mica"};

constexpr std::string_view kNames = "says what the adapter is, or where it comes from",
                           kTraining = "is used in training alone",
                           kStart = "describes a start of the training, which init_lora_weights chooses";
constexpr std::array kUnused = {forward::Unused{"auto_mapping*", kNames},
                                forward::Unused{"base_model_name_or_path", kNames},
                                forward::Unused{"peft_version", kNames},
                                forward::Unused{"revision", kNames},
                                forward::Unused{"task_type", kNames},
                                forward::Unused{"inference_mode", kTraining},
                                forward::Unused{"lora_dropout", kTraining},
                                forward::Unused{"runtime_config*", kTraining},
                                forward::Unused{"velora_config*", kTraining},
                                forward::Unused{"corda_config*", kStart},
                                forward::Unused{"eva_config*", kStart},
                                forward::Unused{"loftq_config*", kStart},
                                forward::Unused{"lora_ga_config*", kStart},
                                forward::Unused{"megatron_core", "goes with megatron_config"},
                                forward::Unused{"qalora_group_size", "goes with use_qalora"},
                                forward::Unused{"modules_to_save*", "the adapter holds such modules whole"}};

// An object without fields has the defaults of a class.
bool is_off(const Json& value) {
  return value.is_null() || value == false || (value.is_array() && value.empty());
}

bool is_plain(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool ends_with_name(std::string_view module, std::string_view name) {
  return module == name || (module.size() > name.size() && module.ends_with(name) &&
                            module[module.size() - name.size() - 1] == '.');
}

// Whether a regular expression, as Python writes them, fits the whole text.
bool fits(std::string_view text, const std::string& expression) {
  const tokenizer::Pattern pattern({.regex = true, .text = "\\A(?:" + expression + ")\\z"},
                                   fmt::format("'{}'", safe_display(expression, 60)));
  const auto parts = pattern.parts(text);
  return parts.size() == 1 && parts.front().match;
}

class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  LoraConfig read() {
    if (const std::string type = text("peft_type"); type != "LORA")
      refuse(fmt::format("peft_type is '{}', only LORA can be merged", safe_display(type, 40)));
    for (const Refusal& refusal : kRefused)
      if (!is_off(value(refusal.key))) refuse(fmt::format("{}: {}", refusal.key, refusal.why));
    if (const std::string bias = value("bias").is_null() ? "none" : text("bias"); bias != "none")
      refuse(fmt::format("bias is '{}': the adapter trains biases", safe_display(bias, 40)));
    refuse_changed_base();
    LoraConfig result;
    result.alpha = number("lora_alpha", value("lora_alpha"));
    result.rank = whole("r", value("r"));
    result.rank_stabilized = flag("use_rslora");
    result.fan_in_fan_out = flag("fan_in_fan_out");
    result.ranks = patterns("rank_pattern");
    for (const auto& [pattern, rank] : result.ranks)
      if (rank < 1 || rank != std::floor(rank)) fail("rank_pattern has a rank that is not a whole number");
    result.alphas = patterns("alpha_pattern");
    result.targets = modules("target_modules");
    if (result.targets && result.targets->expression == "all-linear") result.targets.reset();
    if (auto excluded = modules("exclude_modules")) result.excluded = std::move(*excluded);
    read_layers(result);
    result.unaccounted = forward::unaccounted(config_, read_, kUnused);
    std::erase_if(result.unaccounted, [](const forward::Setting& setting) {
      return setting.name.starts_with("use_") &&
             setting.shown == "false";  // a way of newer versions, not taken
    });
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::unsupported, {.file = path_}, why);
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::malformed, {.file = path_}, why);
  }

  // Null if there is none.
  const Json& value(std::string_view key) {
    static const Json kNone;
    read_.emplace(key);
    const auto found = config_.find(key);
    return found == config_.end() ? kNone : *found;
  }
  std::string text(const char* key) {
    const Json& found = value(key);
    if (!found.is_string()) fail(fmt::format("has no text '{}'", key));
    return found.get<std::string>();
  }
  bool flag(const char* key) {
    const Json& found = value(key);
    if (!found.is_null() && !found.is_boolean()) fail(fmt::format("'{}' is neither true nor false", key));
    return found == true;
  }
  double number(const std::string& key, const Json& value) const {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      fail(fmt::format("'{}' is not a number", key));
    return value.get<double>();
  }
  std::uint64_t whole(const std::string& key, const Json& value) const {
    if (!value.is_number_unsigned() || value == 0)
      fail(fmt::format("'{}' is not a whole number above 0", key));
    return value.get<std::uint64_t>();
  }

  // Some ways to begin training move a part of the base into the factors: the adapter fits the changed base.
  void refuse_changed_base() {
    const Json& found = value("init_lora_weights");
    if (!found.is_string()) return;
    const auto start = found.get<std::string>();
    if (std::ranges::find(kPlainStarts, start) == kPlainStarts.end())
      refuse(
          fmt::format("init_lora_weights is '{}': such an adapter belongs to a base that was changed "
                      "before training",
                      safe_display(start, 40)));
  }

  // A regular expression that compiles.
  std::string expression(const char* key, std::string found) const {
    try {
      if (!is_plain(found)) (void)fits("", found);
    } catch (const Error& error) {
      refuse(fmt::format("{}: {}", key, error.what()));
    }
    return found;
  }

  std::vector<std::pair<std::string, double>> patterns(const char* key) {
    std::vector<std::pair<std::string, double>> result;
    const Json& found = value(key);
    if (found.is_null()) return result;
    if (!found.is_object()) fail(fmt::format("'{}' is not an object", key));
    for (const auto& [pattern, one] : found.items())
      result.emplace_back(expression(key, pattern), number(key, one));
    return result;
  }

  std::vector<std::string> texts(const char* key, const Json& list) const {
    std::vector<std::string> result;
    for (const Json& one : list) {
      if (!one.is_string()) fail(fmt::format("'{}' is neither a text nor a list of texts", key));
      result.push_back(one.get<std::string>());
    }
    return result;
  }

  std::optional<LoraModules> modules(const char* key) {
    const Json& found = value(key);
    if (found.is_null()) return std::nullopt;
    if (found.is_string()) return LoraModules{{}, expression(key, found.get<std::string>())};
    if (!found.is_array()) fail(fmt::format("'{}' is neither a text nor a list of texts", key));
    return LoraModules{texts(key, found), {}};
  }

  void read_layers(LoraConfig& result) {
    const Json& layers = value("layers_to_transform");
    const Json list = layers.is_null() ? Json::array() : layers.is_array() ? layers : Json::array({layers});
    for (const Json& layer : list) {
      if (!layer.is_number_unsigned())
        fail("'layers_to_transform' is neither a number nor a list of numbers");
      result.layers.push_back(layer.get<std::uint64_t>());
    }
    const Json& lists = value("layers_pattern");
    if (is_off(lists)) return;
    result.layer_lists = texts("layers_pattern", lists.is_array() ? lists : Json::array({lists}));
    for (const std::string& name : result.layer_lists)
      if (!is_plain(name))
        refuse(fmt::format("layers_pattern has the regular expression '{}': only names are supported",
                           safe_display(name, 60)));
  }

  const Json& config_;
  const std::string& path_;
  std::set<std::string, std::less<>> read_;
};

// PEFT takes the keys for regular expressions; dots in names may be escaped.
double pattern_value(const std::vector<std::pair<std::string, double>>& patterns, std::string_view module,
                     double otherwise) {
  for (const auto& [pattern, value] : patterns) {
    std::string name = pattern;
    for (std::size_t at = 0; (at = name.find("\\.", at)) != std::string::npos;) name.erase(at, 1);
    if (is_plain(name) ? ends_with_name(module, name) : fits(module, "(?:.*\\.)?(?:" + pattern + ")"))
      return value;
  }
  return otherwise;
}

// The number of the layer that the module is in: the first one behind one of these names, or, without names,
// behind a name that is not the path's first. Nothing if it is in none.
std::optional<std::uint64_t> layer_of(std::string_view module, const std::vector<std::string>& lists) {
  for (std::size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
    const std::string_view before = module.substr(0, dot), behind = module.substr(dot + 1);
    const std::size_t end = behind.find('.');
    if (end == std::string_view::npos) return std::nullopt;
    const auto number = text_as<std::uint64_t>(behind.substr(0, end));
    const bool named = lists.empty() ? before.find('.') != std::string_view::npos
                                     : std::ranges::any_of(lists, [&](const std::string& name) {
                                         return ends_with_name(before, name);
                                       });
    if (number && named) return number;
  }
  return std::nullopt;
}

}  // namespace

bool LoraModules::contain(std::string_view module) const {
  if (!expression.empty()) return fits(module, expression);
  return std::ranges::any_of(names, [&](const std::string& name) { return ends_with_name(module, name); });
}

std::string_view LoraConfig::kept_out_by(std::string_view module) const {
  if (excluded.contain(module)) return "exclude_modules";
  if (!targets) return "";
  if (!targets->contain(module)) return "target_modules";
  if (layers.empty() || !targets->expression.empty()) return "";
  const auto layer = layer_of(module, layer_lists);
  return layer && std::ranges::find(layers, *layer) != layers.end() ? "" : "layers_to_transform";
}

std::uint64_t LoraConfig::rank_of(std::string_view module) const {
  return static_cast<std::uint64_t>(pattern_value(ranks, module, static_cast<double>(rank)));
}

double LoraConfig::scale_of(std::string_view module) const {
  const auto of_rank = static_cast<double>(rank_of(module));
  return pattern_value(alphas, module, alpha) / (rank_stabilized ? std::sqrt(of_rank) : of_rank);
}

LoraConfig parse_lora_config(std::string_view text, const std::string& path) {
  constexpr std::size_t kMost = kMostLoraConfig - 1;
  if (text.size() > kMost)
    throw Error(ErrorCode::limit, {.file = path}, "has {} bytes, the limit is {}", text.size(), kMost);
  const Json config = small_json<Json>(text);
  if (!config.is_object()) throw Error(ErrorCode::malformed, {.file = path}, "is not a JSON object");
  return ConfigReader(config, path).read();
}

}  // namespace loadline::exporters
