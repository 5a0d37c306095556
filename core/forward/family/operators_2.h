// The operators that assets may use, and their attributes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace loadline {

struct OperatorInfo {
  std::string_view name;
  std::string_view attributes;  // those that size the result, then those for profiles; separated by spaces
};

// One row for each operator; lower.cpp has the rules, in the same order.
//
//   cols   linear: the width of the result, where each head has its own part of the weight
//   rank   attn: the width of the latent vectors that take the place of keys and values
//
// The attributes for profiles describe how the modules of transformers are written:
//   freed, stays, kept, inner, local   how long a result is referenced: not beyond its use; to the end of the
//                                      loop; to the end of the turn; a norm inside a module; a local name,
//                                      to the next "add" or to the operator that the attribute names
//   offset                             unused rows at the start of a table of positions
//   apart                              an operator of its own adds the bias
//   upcast         attn: softmax in F32
//   sinks          attn: an extra column of scores for each head's sink
//   position_bias  attn: a bias in the place of a mask
//   scores         attn: how many arrays of the scores' size are held
//   returned       attn: the caller gets the scores
//   shared_kv, copied  attn: all heads share the keys by views; sdpa's result is copied to order its heads
//   steps                              buffers beside the input of an activation written as several steps
//   every_expert, clamped              all rows pass through all experts; the gates are clamped first
//   chunk                              positions that a scan processes together
inline constexpr std::array<OperatorInfo, 19> kOperators = {{
    {"embed", "freed offset"},
    {"norm", "stays kept inner local"},
    {"linear", "rows layout cols local kept apart"},
    {"table", "cols dims"},
    {"rope", "local"},
    {"cache", "window fixed once"},
    {"attn", "heads kv dim vdim rank causal upcast sinks position_bias scores returned shared_kv copied"},
    {"act", "steps kept"},
    {"mul", ""},
    {"add", "stays"},
    {"scale", ""},
    {"split", "by"},
    {"concat", "cols rows local"},
    {"route", "k"},
    {"experts", "count k mid every_expert clamped"},
    {"conv", "rows"},
    {"scan", "state states heads chunk"},
    {"take", "rows"},
    {"cap", ""},
}};

// Null if no operator has this name.
const OperatorInfo* find_operator(std::string_view name);

// The names of all operators for messages: "embed, norm, ...".
std::string operator_list();

}  // namespace loadline
