// The operators that assets may use, and what their lines may say.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace loadline {

struct OperatorInfo {
  std::string_view name;
  std::string_view attributes;  // what sizes its result, then what only profiles ask; separated by spaces
};

// One row for each; lower.cpp has the rules, in the same order.
//
// What profiles ask for beyond sizes says how transformers' modules are written:
//   freed, stays, kept, inner, local   who refers to a result how long: nobody beyond its use, somebody to
//   the
//                                      end of the pass or of the turn; a norm inside a module; a local name,
//                                      to the next "add" or the operator that it names
//   offset                             rows in front of a table of positions that no position has
//   apart                              the bias is added by an operator of its own
//   upcast, sinks, position_bias, scores, returned, shared_kv   softmax in F32; a column for each head's
//   sink;
//                                      a bias in the place of a mask; how many arrays of the scores' size are
//                                      held; scores that the caller gets; keys that all heads share by views
//   steps                              buffers that an activation written out needs beside its input
//   every_expert, clamped              all rows through all experts; gates that are clamped first
//   chunk                              positions that a scan takes together
inline constexpr std::array<OperatorInfo, 19> kOperators = {{
    {"embed", "freed offset"},
    {"norm", "stays kept inner"},
    {"linear", "rows layout local kept apart"},
    {"table", "cols dims"},
    {"rope", "local"},
    {"cache", "window fixed once"},
    {"attn", "heads kv dim vdim causal upcast sinks position_bias scores returned shared_kv"},
    {"act", "steps kept"},
    {"mul", ""},
    {"add", ""},
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

// Nothing (nullptr) for a name that is no operator's.
const OperatorInfo* find_operator(std::string_view name);

// "embed, norm, ...": for messages.
std::string operator_list();

}  // namespace loadline
