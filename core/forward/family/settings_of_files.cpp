// Which settings of packed weights, and of generate(), are accounted for, with the values that change
// nothing.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::forward {

// --- Settings of packed weights. Most are seen in the parts that the files hold, which the layouts of
// core/graph/packed know: the settings then add nothing, and without files nothing follows from them.

namespace {

struct OfPacking {
  std::string_view pattern;  // behind "quantization_config."
  std::string_view values;   // those accounted for, between bars; empty: all
  PackedUse least, most;     // the uses that account for it
  std::string_view why;
};

constexpr std::string_view kParts = "is seen in the stored parts: their names, types and shapes",
                           kMaking = "tells how the weights were packed, or by whom",
                           kKernel = "chooses how they are multiplied",
                           kActivations = "is of activations, not of weights",
                           kRunning = "is of the cache, which the numbers of weights do not depend on";

constexpr PackedUse kUnpack = PackedUse::unpack, kStored = PackedUse::stored, kForetell = PackedUse::foretell;

constexpr OfPacking kPacking[] = {
    {"quant_method", "fp8|mxfp4", kForetell, kForetell,
     "says which: those whose sizes follow from the settings"},
    {"quant_method",
     "auto-round|awq|bitsandbytes|compressed-tensors|fbgemm_fp8|fp8|gptq|intel/"
     "auto-round|mlx|modelopt|mxfp4|nvfp4",
     kUnpack, kStored, kParts},
    {"weight_block_size", "", kUnpack, kForetell, kParts},
    {"modules_to_not_convert", "", kUnpack, kForetell, kParts},
    {"fmt", "", kUnpack, kForetell, kParts},
    {"scale_fmt", "", kUnpack, kForetell, kParts},
    {"activation_scheme", "dynamic", kUnpack, kForetell, kActivations},
    {"dequantize", "", kUnpack, kUnpack, kKernel},
    {"dequantize", "false", kUnpack, kForetell, kKernel},
    {"version", "gemm|GEMM|exllama", kUnpack, kStored, kParts},
    {"checkpoint_format", "gptq|gptq_v2", kUnpack, kStored, kParts},
    {"packing_format", "auto_round:auto_gptq|auto_round:gptq|auto_round:auto_awq", kUnpack, kStored, kParts},
    {"format",
     "dense|float-quantized|gptq|int-quantized|mixed-precision|mxfp4-pack-quantized|naive-quantized|nvfp4-"
     "pack-quantized|"
     "pack-quantized",
     kUnpack, kStored, kParts},
    {"config_groups.*.format",
     "dense|float-quantized|int-quantized|mxfp4-pack-quantized|naive-quantized|nvfp4-pack-quantized|pack-"
     "quantized",
     kUnpack, kStored, kParts},
    {"sparsity_config.format", "dense", kUnpack, kStored, kParts},
    {"sparsity_config.global_sparsity", "", kUnpack, kStored, kMaking},
    {"sparsity_config.ignore", "", kUnpack, kStored, kMaking},
    {"sparsity_config.registry_requires_subclass", "", kUnpack, kStored, kMaking},
    {"sparsity_config.sparsity_structure", "", kUnpack, kStored, kMaking},
    {"sparsity_config.targets", "", kUnpack, kStored, kMaking},
    {"mode", "affine|mxfp4|mxfp8|nvfp4", kUnpack, kStored, kParts},
    {"*.mode", "affine|mxfp4|mxfp8|nvfp4", kUnpack, kStored, kParts},
    {"is_marlin_format", "false", kUnpack, kStored, kParts},
    {"activation_scheme", "", kUnpack, kStored, kActivations},
    {"activation_scale_ub", "", kUnpack, kStored, kActivations},
    {"config_groups.*.input_activations*", "", kUnpack, kStored, kActivations},
    {"config_groups.*.output_activations*", "", kUnpack, kStored, kActivations},
    {"config_groups.*.targets", "", kUnpack, kStored, kParts},
    {"config_groups.*.weights.*", "", kUnpack, kStored, kParts},
    {"kv_cache_scheme*", "", kUnpack, kUnpack, kRunning},
    {"kv_cache_quant_algo", "", kUnpack, kUnpack, kRunning},
    {"quantized_layers*", "", kUnpack, kStored, kParts},
    {"quant_algo", "", kUnpack, kStored, kParts},
    {"moe_quant_algo", "", kUnpack, kStored, kParts},
    {"bits", "", kUnpack, kStored, kParts},
    {"*.bits", "", kUnpack, kStored, kParts},
    {"w_bit", "", kUnpack, kStored, kParts},
    {"group_size", "", kUnpack, kStored, kParts},
    {"*.group_size", "", kUnpack, kStored, kParts},
    {"q_group_size", "", kUnpack, kStored, kParts},
    {"act_group_aware", "", kUnpack, kStored, kParts},
    {"desc_act", "", kUnpack, kStored, kParts},
    {"dynamic*", "", kUnpack, kStored, kParts},
    {"exclude_modules", "", kUnpack, kStored, kParts},
    {"extra_config*", "", kUnpack, kStored, kParts},
    {"ignore", "", kUnpack, kStored, kParts},
    {"ignored_layers", "", kUnpack, kStored, kParts},
    {"lm_head", "", kUnpack, kStored, kParts},
    {"modules_in_block_to_quantize", "", kUnpack, kStored, kParts},
    {"modules_to_convert", "", kUnpack, kStored, kParts},
    {"expert_dtype", "", kUnpack, kStored, kParts},
    {"static_groups", "", kUnpack, kStored, kParts},
    {"sym", "", kUnpack, kStored, kParts},
    {"zero_point", "", kUnpack, kStored, kParts},
    {"bnb_4bit_*", "", kUnpack, kStored, kParts},
    {"llm_int8_*", "", kUnpack, kStored, kParts},
    {"load_in_4bit", "", kUnpack, kStored, kParts},
    {"load_in_8bit", "", kUnpack, kStored, kParts},
    {"_load_in_4bit", "", kUnpack, kStored, kParts},
    {"_load_in_8bit", "", kUnpack, kStored, kParts},
    {"autoround_version", "", kUnpack, kForetell, kMaking},
    {"batch_size", "", kUnpack, kForetell, kMaking},
    {"block_name_to_quantize", "", kUnpack, kStored, kMaking},
    {"cache_block_outputs", "", kUnpack, kForetell, kMaking},
    {"damp_*", "", kUnpack, kForetell, kMaking},
    {"data_type", "int", kUnpack, kStored, kMaking},
    {"dataset", "", kUnpack, kForetell, kMaking},
    {"enable_minmax_tuning", "", kUnpack, kForetell, kMaking},
    {"enable_norm_bias_tuning", "", kUnpack, kForetell, kMaking},
    {"enable_quanted_input", "", kUnpack, kForetell, kMaking},
    {"global_compression_ratio", "", kUnpack, kForetell, kMaking},
    {"gradient_accumulate_steps", "", kUnpack, kForetell, kMaking},
    {"iters", "", kUnpack, kForetell, kMaking},
    {"low_gpu_mem_usage", "", kUnpack, kForetell, kMaking},
    {"lr", "", kUnpack, kForetell, kMaking},
    {"meta.*", "", kUnpack, kForetell, kMaking},
    {"minmax_lr", "", kUnpack, kForetell, kMaking},
    {"model_file_base_name", "", kUnpack, kForetell, kMaking},
    {"model_name_or_path", "", kUnpack, kForetell, kMaking},
    {"model_seqlen", "", kUnpack, kForetell, kMaking},
    {"module_name_preceding_first_block", "", kUnpack, kForetell, kMaking},
    {"mse", "", kUnpack, kForetell, kMaking},
    {"nsamples", "", kUnpack, kForetell, kMaking},
    {"pad_token_id", "", kUnpack, kForetell, kMaking},
    {"producer.*", "", kUnpack, kForetell, kMaking},
    {"quantization_status", "compressed|frozen|calibration|initialized", kUnpack, kForetell, kMaking},
    {"quantizer", "", kUnpack, kForetell, kMaking},
    {"seqlen", "", kUnpack, kForetell, kMaking},
    {"tokenizer", "", kUnpack, kForetell, kMaking},
    {"true_sequential", "", kUnpack, kForetell, kMaking},
    {"backend", "", kUnpack, kForetell, kKernel},
    {"do_fuse", "false", kUnpack, kForetell, kKernel},
    {"exllama_config.*", "", kUnpack, kForetell, kKernel},
    {"max_input_length", "", kUnpack, kForetell, kKernel},
    {"run_compressed", "", kUnpack, kUnpack, kKernel},
    {"run_compressed", "true", kUnpack, kForetell, kKernel},
    {"use_cuda_fp16", "", kUnpack, kForetell, kKernel},
    {"use_exllama", "", kUnpack, kForetell, kKernel},
    {"use_optimized_inference", "", kUnpack, kForetell, kKernel},
};

// Whether one of the values between bars is shown as that: a text with its quotes.
bool is_among(std::string_view values, std::string_view shown) {
  if (shown.size() >= 2 && shown.front() == '"' && shown.back() == '"')
    shown = shown.substr(1, shown.size() - 2);
  for (const std::string_view value : split(values, '|'))
    if (value == shown) return true;
  return false;
}

// The name behind that of the object; nothing for a setting of none of them.
std::optional<std::string_view> behind(std::string_view name, std::string_view object) {
  if (name.starts_with("root.")) name.remove_prefix(5);
  if (name == object) return std::string_view();
  if (!name.starts_with(object) || name[object.size()] != '.') return std::nullopt;
  return name.substr(object.size() + 1);
}

std::optional<std::string_view> of_packing(std::string_view name) {
  for (const std::string_view object : {"quantization_config", "quantization", "compression_config"})
    if (const auto inner = behind(name, object)) return inner;
  return std::nullopt;
}

}  // namespace

std::vector<Setting> unaccounted_packing(const std::vector<Setting>& settings, PackedUse use) {
  std::vector<Setting> left;
  for (const Setting& setting : settings) {
    const auto name = of_packing(setting.name);
    if (name && std::ranges::none_of(kPacking, [&](const OfPacking& row) {
          return row.least <= use && use <= row.most && graph::glob_matches(row.pattern, *name) &&
                 (row.values.empty() || is_among(row.values, setting.shown));
        }))
      left.push_back(setting);
  }
  return left;
}

// --- Settings of generate(). A pass is counted as asked for: with its sequences, its tokens, and a cache of
// those seen.

namespace {

constexpr std::string_view kOfGenerate = "generation_config.";

struct OfGenerate {
  std::string_view pattern;
  std::string_view values;  // those with which a pass is as counted, between bars; empty: all
};

constexpr OfGenerate kGenerate[] = {
    {"use_cache", "true"},
    {"cache_implementation", "dynamic"},
    {"guidance_scale", "1|1.0"},
    {"num_beams", "1"},
    {"num_beam_groups", "1"},
    {"num_return_sequences", "1"},
    {"output_attentions", "false"},
    {"output_hidden_states", "false"},
    {"output_logits", "false"},
    {"output_scores", "false"},
    {"penalty_alpha", "0|0.0"},
    {"use_mtp", "false"},
    // which tokens are chosen, and when that ends
    {"bad_words_ids", ""},
    {"begin_suppress_tokens", ""},
    {"constraints", ""},
    {"diversity_penalty", ""},
    {"do_sample", ""},
    {"early_stopping", ""},
    {"encoder_no_repeat_ngram_size", ""},
    {"encoder_repetition_penalty", ""},
    {"epsilon_cutoff", ""},
    {"eta_cutoff", ""},
    {"exponential_decay_length_penalty", ""},
    {"force_words_ids", ""},
    {"forced_decoder_ids", ""},
    {"length_penalty", ""},
    {"max_length", ""},
    {"max_new_tokens", ""},
    {"max_time", ""},
    {"min_length", ""},
    {"min_new_tokens", ""},
    {"min_p", ""},
    {"no_repeat_ngram_size", ""},
    {"remove_invalid_values", ""},
    {"renormalize_logits", ""},
    {"repetition_penalty", ""},
    {"sequence_bias*", ""},
    {"stop_strings", ""},
    {"suppress_tokens", ""},
    {"temperature", ""},
    {"token_healing", ""},
    {"top_h", ""},
    {"top_k", ""},
    {"top_p", ""},
    {"typical_p", ""},
    {"watermarking_config*", ""},
    {"*_token_id", ""},
    // only with a second model, which the caller brings
    {"assistant_confidence_threshold", ""},
    {"assistant_ensemble_weight", ""},
    {"assistant_lookbehind", ""},
    {"is_assistant", ""},
    {"max_matching_ngram_size", ""},
    {"num_assistant_tokens", ""},
    {"num_assistant_tokens_schedule", ""},
    {"target_lookbehind", ""},
    // who wrote it, and how results are handed back
    {"_from_model_config", ""},
    {"disable_compile", ""},
    {"low_memory", ""},
    {"max_cache_len", ""},  // of static caches, which are named
    {"return_dict_in_generate", ""},
    {"transformers_version", ""},
    {"trust_remote_code", ""},
    // of Whisper: languages, tasks and times; of older chat models: forms of prompts
    {"alignment_heads", ""},
    {"chat_format", ""},
    {"is_multilingual", ""},
    {"lang_to_id*", ""},
    {"language", ""},
    {"max_initial_timestamp_index", ""},
    {"max_window_size", ""},
    {"median_filter_width", ""},
    {"return_timestamps", ""},
    {"task", ""},
    {"task_to_id*", ""},
};

}  // namespace

std::vector<Setting> unaccounted_generation(const std::vector<Setting>& settings) {
  std::vector<Setting> left;
  for (const Setting& setting : settings) {
    std::string_view name = setting.name;
    const bool own_file = name.starts_with(kOfGenerate);
    if (own_file) name.remove_prefix(kOfGenerate.size());
    if (name.starts_with("root.")) name.remove_prefix(5);
    // config.json has many others
    const auto row = std::ranges::find_if(
        kGenerate, [&](const OfGenerate& one) { return graph::glob_matches(one.pattern, name); });
    const bool known = row != std::end(kGenerate);
    if (known ? !row->values.empty() && !is_among(row->values, setting.shown) : own_file)
      left.push_back(setting);
  }
  return left;
}

std::vector<Setting> generation_settings(std::string_view text) {
  const auto object = small_json<nlohmann::ordered_json>(text);
  if (!object.is_object()) throw Error(ErrorCode::malformed, "is not a JSON object");
  std::vector<Setting> settings = unaccounted(object, {}, {});
  for (Setting& setting : settings) setting.name.insert(0, kOfGenerate);
  return settings;
}

namespace {

constexpr std::string_view kGenerationNote = "generation_config.json: ",
                           kGenerationEnd = ": generate() keeps another cache or runs more than a pass";

}  // namespace

std::string generation_note(const Setting& setting) {
  return fmt::format("{}'{}' is {}{}", kGenerationNote, safe_display(setting.name, 80), setting.shown,
                     kGenerationEnd);
}

std::optional<Setting> setting_of_note(std::string_view note) {
  if (!note.starts_with(kGenerationNote) || !note.ends_with(kGenerationEnd)) return std::nullopt;
  note.remove_prefix(kGenerationNote.size());
  note.remove_suffix(kGenerationEnd.size());
  const std::size_t middle = note.find("' is ");
  if (!note.starts_with('\'') || middle == note.npos) return std::nullopt;
  return Setting{std::string(note.substr(1, middle - 1)), std::string(note.substr(middle + 5))};
}

}  // namespace loadline::forward
