// The type of each tensor of a GGUF file, where a policy, rules of the user or both choose it.
#pragma once

#include "core/forward/gguf/type_policy.h"
#include "exporters/exporter.h"

#include <optional>
#include <vector>

namespace loadline {

// The tensors of a file in two forms, in the same order and without offsets.
struct SlotForms {
  std::vector<Slot> stored;   // as they are written where nothing chooses a type
  std::vector<Slot> numbers;  // in F32; a packed weight is one tensor here
};

struct TypedSlots {
  std::vector<Slot> slots;
  std::vector<MetaEntry> keys = {};  // that the choice adds to the file, or replaces in it
  std::vector<Note> notes = {};
};

// Whether anything chooses types.
bool chooses_types(const ExportOptions& options);

// `names`: what rules ask of a model whose tensors have llama.cpp's names, or nothing. Rules of the user come
// after the policy, the last that matches wins; neither changes vectors, norms and other tensors that a
// policy keeps. Throws Error{unsupported} for a policy that needs llama.cpp's names, Error{malformed} where
// the importance matrix has the wrong number of weights for a tensor.
TypedSlots typed_slots(const MetaGraph& graph, SlotForms forms, const std::optional<PolicyModel>& names,
                       const ExportOptions& options);

// What rules ask of a model, from the keys of its file. Nothing if no tensor has one of llama.cpp's names.
// Reads a few bytes of the source's file where a key has a value for each layer.
std::optional<PolicyModel> policy_model(const MetaGraph& graph, const std::vector<MetaEntry>& keys,
                                        const std::vector<Slot>& slots);

// The value of general.file_type for a file of mostly this type, if llama.cpp has a number for it.
std::optional<std::uint32_t> gguf_file_type(DType dtype);

}  // namespace loadline
