// Numbers that a GGUF file holds of a model's scaled rotary embedding.
#pragma once

#include "core/assets/datum.h"

#include <optional>
#include <span>
#include <string_view>

namespace loadline {

// llama3_factors(dimension, theta, factor, low, high, context): the divisor of each frequency.
// long_attention(type, context, original context): what attention is scaled by, of the types longrope and
// yarn. Nothing for any other function. Throws Error{malformed} for arguments that are no numbers in their
// ranges. Source: the rope initialisers of transformers (modeling_rope_utils).
std::optional<Datum> call_rope(std::string_view function, std::span<const Datum> arguments);

}  // namespace loadline
