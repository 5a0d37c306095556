// The settings that change nothing in any family, each with its reason; follows names back to settings.
#include "core/forward/family/settings.h"

#include "core/base/text.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {

// --- Settings without effect wherever they stand. A family that gives one of them a meaning reads it.

namespace {

struct OfModels {
  std::string_view pattern;  // a glob over dotted names
  Reach reach;
  std::string_view why;
};

constexpr std::string_view kNames = "says which model this is, or who wrote it",
                           kTraining = "is used in training alone",
                           kOutputs = "says what else a call returns, or how its results are kept",
                           kGeneration = "chooses tokens from the results",
                           kTokens = "names tokens: the tokenizer's files say which are in the texts",
                           kLabels = "names the classes of a head, whose weights tell how many there are",
                           kStorage = "says how weights are stored: what unpacks them reads it",
                           kPart = "is of a part of the model that stands beside the text model",
                           kSameNumbers = "chooses another way to the same numbers",
                           kPositions = "turns queries and keys, or scales them: no size depends on it",
                           kScale = "scales or limits numbers: no size depends on it";

constexpr OfModels kUnused[] = {
    {"_name_or_path", Reach::nothing, kNames},
    {"_commit_hash", Reach::nothing, kNames},
    {"_diffusers_version", Reach::nothing, kNames},
    {"architectures", Reach::nothing, kNames},
    {"is_encoder_decoder", Reach::nothing, kNames},
    {"auto_map*", Reach::nothing, "names code beside the weights, which runs only for those who trust it"},
    {"finetuning_task", Reach::nothing, kNames},
    {"library_name", Reach::nothing, kNames},
    {"model_name", Reach::nothing, kNames},
    {"model_type", Reach::nothing, kNames},
    {"tokenizer", Reach::nothing, kNames},
    {"tokenizer_class", Reach::nothing, kNames},
    {"transformers.js_config*", Reach::nothing, kNames},
    {"transformers_version", Reach::nothing, kNames},
    {"unsloth_*", Reach::nothing, kNames},

    {"*_dropout", Reach::nothing, kTraining},
    {"*_dropout_prob", Reach::nothing, kTraining},
    {"*_pdrop", Reach::nothing, kTraining},
    {"*_layerdrop", Reach::nothing, kTraining},
    {"apply_spec_augment", Reach::nothing, kTraining},
    {"aux_loss_alpha", Reach::nothing, kTraining},
    {"dropout", Reach::nothing, kTraining},
    {"dropout_rate", Reach::nothing, kTraining},
    {"gradient_checkpointing", Reach::nothing, kTraining},
    {"init_std", Reach::nothing, kTraining},
    {"initializer_*", Reach::nothing, kTraining},
    {"layerdrop", Reach::nothing, kTraining},
    {"logit_scale_init_value", Reach::nothing, kTraining},
    {"mask_feature_*", Reach::nothing, kTraining},
    {"mask_time_*", Reach::nothing, kTraining},
    {"rescale_prenorm_residual", Reach::nothing, kTraining},
    {"router_aux_loss_coef", Reach::nothing, kTraining},
    {"router_jitter_noise", Reach::nothing, kTraining},
    {"router_z_loss_coef", Reach::nothing, kTraining},
    {"seq_aux", Reach::nothing, kTraining},
    {"summary_first_dropout", Reach::nothing, kTraining},
    {"tf_legacy_loss", Reach::nothing, kTraining},

    {"_attn_implementation*", Reach::nothing, kSameNumbers},
    {"attn_implementation", Reach::nothing, kSameNumbers},
    {"cache_implementation", Reach::nothing, kSameNumbers},
    {"chunk_size_feed_forward", Reach::nothing, kSameNumbers},
    {"ep_size", Reach::nothing, kSameNumbers},
    {"pretraining_tp", Reach::nothing, kSameNumbers},
    {"torchscript", Reach::nothing, kSameNumbers},
    {"use_bfloat16", Reach::nothing, kSameNumbers},

    {"output_attentions", Reach::sizes, kOutputs},
    {"output_hidden_states", Reach::sizes, kOutputs},
    {"output_past", Reach::nothing, kOutputs},
    {"output_router_logits", Reach::nothing, kOutputs},
    {"output_scores", Reach::nothing, kOutputs},
    {"return_dict", Reach::nothing, kOutputs},
    {"return_dict_in_generate", Reach::nothing, kOutputs},
    {"use_cache", Reach::nothing, kOutputs},

    {"bad_words_ids", Reach::nothing, kGeneration},
    {"begin_suppress_tokens", Reach::nothing, kGeneration},
    {"diversity_penalty", Reach::nothing, kGeneration},
    {"do_sample", Reach::nothing, kGeneration},
    {"early_stopping", Reach::nothing, kGeneration},
    {"encoder_no_repeat_ngram_size", Reach::nothing, kGeneration},
    {"exponential_decay_length_penalty", Reach::nothing, kGeneration},
    {"forced_*_token_id", Reach::nothing, kGeneration},
    {"forced_decoder_ids", Reach::nothing, kGeneration},
    {"length_penalty", Reach::nothing, kGeneration},
    {"max_length", Reach::nothing, kGeneration},
    {"max_new_tokens", Reach::nothing, kGeneration},
    {"min_length", Reach::nothing, kGeneration},
    {"no_repeat_ngram_size", Reach::nothing, kGeneration},
    {"num_beam_groups", Reach::nothing, kGeneration},
    {"num_beams", Reach::nothing, kGeneration},
    {"num_return_sequences", Reach::nothing, kGeneration},
    {"prefix", Reach::nothing, kGeneration},
    {"remove_invalid_values", Reach::nothing, kGeneration},
    {"repetition_penalty", Reach::nothing, kGeneration},
    {"suppress_tokens", Reach::nothing, kGeneration},
    {"task_specific_params*", Reach::nothing, kGeneration},
    {"temperature", Reach::nothing, kGeneration},
    {"top_k", Reach::nothing, kGeneration},
    {"top_p", Reach::nothing, kGeneration},
    {"typical_p", Reach::nothing, kGeneration},

    {"bos_token_id", Reach::nothing, kTokens},
    {"cls_token_id", Reach::nothing, kTokens},
    {"decoder_start_token_id", Reach::nothing, kTokens},
    {"eos_token_id", Reach::nothing, kTokens},
    {"mask_token_id", Reach::nothing, kTokens},
    {"pad_token_id", Reach::nothing, kTokens},
    {"sep_token_id", Reach::nothing, kTokens},
    {"unk_token_id", Reach::nothing, kTokens},

    {"id2label*", Reach::nothing, kLabels},
    {"label2id*", Reach::nothing, kLabels},
    {"num_labels", Reach::nothing, kLabels},
    {"problem_type", Reach::nothing, kLabels},
    {"summary_*", Reach::nothing, kLabels},

    {"compression_config*", Reach::nothing, kStorage},
    {"dtype", Reach::nothing, kStorage},
    {"loadline_stored_buffers", Reach::nothing, kStorage},
    {"quantization*", Reach::nothing, kStorage},
    {"tie_word_embeddings", Reach::nothing, "is seen in the weights: which head there is"},
    {"torch_dtype", Reach::nothing, kStorage},
    {"vocab_size", Reach::nothing, "is seen in the embedding's weight"},

    {"*_token_index", Reach::nothing, kPart},
    {"mm_tokens_per_image", Reach::nothing, kPart},
    {"audio_config*", Reach::nothing, kPart},
    {"image_token_id", Reach::nothing, kPart},
    {"vision_config*", Reach::nothing, kPart},

    {"*_act", Reach::numbers, kScale},
    {"*_act_fn", Reach::numbers, kScale},
    {"*_activation", Reach::numbers, kScale},
    {"*_eps", Reach::numbers, kScale},
    {"*_epsilon", Reach::numbers, kScale},
    {"*_multiplier", Reach::numbers, kScale},
    {"*_softcapping", Reach::numbers, kScale},
    {"activation", Reach::numbers, kScale},
    {"activation_function", Reach::numbers, kScale},
    {"logits_scaling", Reach::numbers, kScale},
    {"norm_topk_prob", Reach::numbers, kScale},
    {"query_pre_attn_scalar", Reach::numbers, kScale},
    {"routed_scaling_factor", Reach::numbers, kScale},
    {"scoring_func", Reach::numbers, kScale},
    {"max_position_embeddings", Reach::numbers, kPositions},
    {"original_max_position_embeddings", Reach::numbers, kPositions},
    {"partial_rotary_factor", Reach::numbers, kPositions},
    {"rope_interleave", Reach::numbers, kPositions},
    {"rope_local_base_freq", Reach::numbers, kPositions},
    {"rope_parameters.*", Reach::numbers, kPositions},
    {"rope_scaling.*", Reach::numbers, kPositions},
    {"rope_theta", Reach::numbers, kPositions},
    {"rotary_emb_*", Reach::numbers, kPositions},
    {"swiglu_*", Reach::numbers, kScale},
};

// What no class does unless its configuration says so: off, it is as if it were not there. A class that does
// it by default gives it a row of its own.
constexpr std::string_view kOff[] = {"*_bias",
                                     "add_*",
                                     "alibi",
                                     "bias",
                                     "is_decoder",
                                     "is_encoder_decoder",
                                     "new_decoder_architecture",
                                     "norm_topk_prob",
                                     "reorder_*",
                                     "scale_attn_by_*",
                                     "tie_*",
                                     "use_absolute_*",
                                     "use_bidirectional_*",
                                     "use_mrope",
                                     "use_sliding_window"};

bool is_off(const Setting& setting, Reach reach) {
  if (setting.shown != "false") return false;
  std::string_view name = setting.name;
  if (name.starts_with("root.")) name.remove_prefix(5);
  // no size grows by what is turned off
  return reach == Reach::numbers ||
         std::ranges::any_of(kOff, [&](std::string_view off) { return graph::glob_matches(off, name); });
}

}  // namespace

std::string_view why_unused(std::string_view setting, Reach reach) {
  if (setting.starts_with("root.")) setting.remove_prefix(5);
  for (const OfModels& row : kUnused)
    if ((row.reach == Reach::sizes ? reach == Reach::nothing : row.reach <= reach) &&
        graph::glob_matches(row.pattern, setting))
      return row.why;
  return "";
}

std::string settings_text(const std::vector<Setting>& settings) {
  constexpr std::size_t kMostNamed = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(settings.size(), kMostNamed); ++i)
    text += fmt::format("{}'{}' is {}", i == 0 ? "" : ", ", safe_display(settings[i].name, 80),
                        settings[i].shown);
  if (settings.size() > kMostNamed) text += fmt::format(", and {} more", settings.size() - kMostNamed);
  return text;
}

// --- Follows defined names back to the settings that they were made from.

namespace {

constexpr std::size_t kMostRead = 16, kMostSettings = 8;  // of one line

void add_once(std::vector<std::string>& names, std::string_view name, std::size_t most) {
  if (names.size() < most && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

}  // namespace

void SettingsRead::note(std::string_view name) { add_once(read_, name, kMostRead); }

void SettingsRead::define(std::string_view name) {
  defined_by_.insert_or_assign(std::string(name), settings());
}

std::vector<std::string> SettingsRead::settings() const {
  std::vector<std::string> found;
  for (const std::string& name : read_) {
    const auto defined = defined_by_.find(name);
    if (defined != defined_by_.end())
      for (const std::string& setting : defined->second) add_once(found, setting, kMostSettings);
    else if (held_.contains(name))
      add_once(found, name, kMostSettings);
  }
  return found;
}

std::string SettingsRead::misfit(std::string_view message, const std::string& path) const {
  const std::string begin = path + ": line ";
  const std::size_t end = message.starts_with(begin) ? message.find(": ", begin.size()) : message.npos;
  if (end == message.npos) return fmt::format("does not fit the architecture: {}", message);
  std::string held, lacking;
  for (const std::string& setting : settings()) {
    std::string& list = held_.find(setting)->second ? held : lacking;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", safe_display(setting, 60));
  }
  std::string reads = held.empty() ? "" : ", which reads " + held;
  if (!lacking.empty()) reads += "; not set: " + lacking;
  return fmt::format("does not fit the architecture: {} ({}{})", message.substr(end + 2),
                     message.substr(0, end), reads);
}

namespace {

// The name under which ModelConfig::get() finds the setting wherever it is; the name itself for most.
std::string common_name(std::string_view setting) {
  std::string_view inner = setting;
  for (const std::string_view prefix : {"rope_parameters.", "rope_scaling."})
    if (inner.starts_with(prefix)) inner.remove_prefix(prefix.size());
  const bool held = inner.size() < setting.size();
  if (!held && setting != "rope_theta" && setting != "partial_rotary_factor" &&
      setting != "original_max_position_embeddings")
    return std::string(setting);
  std::string name = fmt::format("rope.{}", inner);
  if (held && (inner == "type" || inner.ends_with(".type"))) name.replace(name.size() - 4, 4, "rope_type");
  return name;
}

}  // namespace

bool SettingsRead::stands_for(std::string_view setting, std::string_view name) {
  return common_name(setting) == name;
}

std::vector<Setting> SettingsRead::unaccounted(std::vector<Setting> settings, Reach reach) const {
  std::erase_if(settings, [&](const Setting& setting) {
    return is_off(setting, reach) || reads(setting.name) || !why_unused(setting.name, reach).empty();
  });
  return settings;
}

bool SettingsRead::reads(std::string_view setting) const {
  return held_.contains(setting) || held_.contains(common_name(setting));
}

// --- Settings of other files.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostListed = 10'000, kMostFields = 500;

std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_array() && value.size() > 8) return fmt::format("a list of {}", value.size());
  if (value.is_object() && !value.empty()) return fmt::format("an object of {}", value.size());
  return safe_display(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMost);
}

// Calls `take` with each value that is set.
template <typename Take>
void walk(const Json& object, const std::string& prefix, const Take& take) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && !value.empty() && value.size() <= kMostFields)
      walk(value, prefix + key + ".", take);
    else if (!value.is_null() && !(value.is_array() && value.empty()))
      take(prefix + key, value);
  }
}

bool is_read(std::string_view name, const std::set<std::string, std::less<>>& read) {
  for (std::size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1))
    if (read.contains(name.substr(0, end))) return true;
  return false;
}

}  // namespace

std::vector<Setting> unaccounted(const Json& object, const std::set<std::string, std::less<>>& read,
                                 std::span<const Unused> unused) {
  std::vector<Setting> left;
  walk(object, "", [&](const std::string& name, const Json& value) {
    if (left.size() > kMostListed || is_read(name, read)) return;
    if (std::ranges::any_of(unused,
                            [&](const Unused& row) { return graph::glob_matches(row.pattern, name); }))
      return;
    if (left.size() == kMostListed)
      left.push_back({"...", fmt::format("behind {} others", kMostListed)});
    else
      left.push_back({name, shown(value)});
  });
  return left;
}

}  // namespace loadline::forward
