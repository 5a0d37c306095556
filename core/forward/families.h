// Which tensors a model of a known family has, from its config.json.
#pragma once

#include "core/graph/meta_graph.h"

#include <string>
#include <string_view>

namespace loadline {

// Every tensor in state-dict order, contiguous, one storage each and no file; dtype from
// torch_dtype (F32 if absent). A tied head has no tensor of its own. Families: llama (and mistral,
// which has the same tensors), gpt2, gpt2_separate_qkv (a GPT-2 with separate query, key and
// value, an untied head and causal masks as buffers), deepseek_v2 and deepseek_v3 (FP8 weights with scales
// per block where quantization_config says so). Throws Error{malformed} naming `path` and the
// key for a missing or absurd value, Error{unsupported} for another family.
MetaGraph config_graph(std::string_view config_json, const std::string& path);

}  // namespace loadline
