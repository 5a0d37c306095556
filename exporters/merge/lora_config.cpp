// Reads adapter_config.json as PEFT 0.21 writes and reads it (peft/tuners/lora/config.py).
#include "core/base/error.h"
#include "core/base/text.h"
#include "exporters/merge/merge_lora.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

using Json = nlohmann::ordered_json;  // the first pattern that fits counts

struct Refusal {
  std::string_view key;
  std::string_view why;
};
// Settings that must be absent, null, false or empty.
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
    Refusal{"monteclora_config", "MonteCLoRA draws its factors at random"}};

// The ways to begin training that leave the base as it is.
constexpr std::array<std::string_view, 3> kPlainStarts = {"gaussian", "eva", "orthogonal"};

bool is_off(const Json& value) {
  return value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty());
}

class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& path) : config_(config), path_(path) {}

  LoraConfig read() const {
    if (const std::string type = text("peft_type"); type != "LORA")
      refuse(fmt::format("the adapter is of type {}, only LORA can be merged", safe_display(type, 40)));
    for (const Refusal& refusal : kRefused)
      if (const auto found = config_.find(refusal.key); found != config_.end() && !is_off(*found))
        refuse(fmt::format("{}: {}", refusal.key, refusal.why));
    if (const std::string bias = config_.contains("bias") ? text("bias") : "none"; bias != "none")
      refuse(fmt::format("bias is '{}': the adapter trains biases", safe_display(bias, 40)));
    refuse_changed_base();
    LoraConfig result;
    result.alpha = number("lora_alpha", config_.contains("lora_alpha") ? config_["lora_alpha"] : Json());
    result.rank = whole("r", config_.contains("r") ? config_["r"] : Json());
    result.rank_stabilised = flag("use_rslora");
    result.fan_in_fan_out = flag("fan_in_fan_out");
    result.ranks = patterns("rank_pattern");
    for (const auto& [pattern, rank] : result.ranks)
      if (rank < 1 || rank != std::floor(rank)) fail("rank_pattern has a rank that is no whole number");
    result.alphas = patterns("alpha_pattern");
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::unsupported, {.file = path_}, why);
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::malformed, {.file = path_}, why);
  }

  std::string text(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || !found->is_string()) fail(fmt::format("has no text '{}'", key));
    return found->get<std::string>();
  }
  bool flag(const char* key) const {
    const auto found = config_.find(key);
    return found != config_.end() && found->is_boolean() && found->get<bool>();
  }
  double number(const std::string& key, const Json& value) const {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      fail(fmt::format("'{}' is no number", key));
    return value.get<double>();
  }
  std::uint64_t whole(const std::string& key, const Json& value) const {
    if (!value.is_number_unsigned() || value == 0) fail(fmt::format("'{}' is no whole number above 0", key));
    return value.get<std::uint64_t>();
  }

  // Some ways to begin training move a part of the base into the factors: the adapter fits the changed base.
  void refuse_changed_base() const {
    const auto found = config_.find("init_lora_weights");
    if (found == config_.end() || !found->is_string()) return;
    const auto start = found->get<std::string>();
    if (std::ranges::find(kPlainStarts, start) == kPlainStarts.end())
      refuse(
          fmt::format("init_lora_weights is '{}': such an adapter belongs to a base that was changed "
                      "before training",
                      safe_display(start, 40)));
  }

  // PEFT takes the keys for regular expressions. Names, the only ones in common use, mean the same here; dots
  // in them may be escaped.
  std::vector<std::pair<std::string, double>> patterns(const char* key) const {
    std::vector<std::pair<std::string, double>> result;
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return result;
    if (!found->is_object()) fail(fmt::format("'{}' is no object", key));
    for (const auto& [pattern, value] : found->items()) {
      std::string name = pattern;
      for (std::size_t at = 0; (at = name.find("\\.", at)) != std::string::npos;) name.erase(at, 1);
      const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-' || c == '.';
      });
      if (!plain)
        refuse(fmt::format("{} has the regular expression '{}': only names of modules are supported", key,
                           safe_display(pattern, 60)));
      result.emplace_back(std::move(name), number(key, value));
    }
    return result;
  }

  const Json& config_;
  const std::string& path_;
};

bool fits(std::string_view module, std::string_view pattern) {
  return module == pattern || (module.size() > pattern.size() && module.ends_with(pattern) &&
                               module[module.size() - pattern.size() - 1] == '.');
}

double pattern_value(const std::vector<std::pair<std::string, double>>& patterns, std::string_view module,
                     double otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (fits(module, pattern)) return value;
  return otherwise;
}

}  // namespace

std::uint64_t LoraConfig::rank_of(std::string_view module) const {
  return static_cast<std::uint64_t>(pattern_value(ranks, module, static_cast<double>(rank)));
}

double LoraConfig::scale_of(std::string_view module) const {
  const auto of_rank = static_cast<double>(rank_of(module));
  return pattern_value(alphas, module, alpha) / (rank_stabilised ? std::sqrt(of_rank) : of_rank);
}

LoraConfig parse_lora_config(std::string_view text, const std::string& path) {
  constexpr std::size_t kMost = 4 << 20;
  if (text.size() > kMost)
    throw Error(ErrorCode::limit, {.file = path}, "has {} bytes, the limit is {}", text.size(), kMost);
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) throw Error(ErrorCode::malformed, {.file = path}, "is no JSON object");
  return ConfigReader(config, path).read();
}

}  // namespace loadline
