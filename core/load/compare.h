// Several methods and orders beside each other: what a table of projections is made from.
#pragma once

#include "core/base/error.h"
#include "core/load/order_file.h"
#include "core/load/projection.h"

#include <cstddef>
#include <functional>
#include <span>

namespace loadline {

// Who takes the rows. Row m * orders + o is method m in order o. Both are called from several threads at
// once, in no order, once for each row by one of the two. What they throw ends the comparison.
struct RowTaker {
  // The projection lives as long as the call: plans and timelines are large.
  std::function<void(std::size_t row, const Projection& projection)> take;
  // A load that cannot be done at all: Error{unsupported | limit}.
  std::function<void(std::size_t row, const Error& refusal)> refuse;
};

// Projects every method in every order, each sequence once where several orders give the same. At most
// `threads` projections are alive at a time, at least one. Progress counts projections. Throws Error{usage |
// cancelled} and what `taker` throws.
void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress, std::size_t threads);
// On as many threads as there are cores, at most four: each holds a projection.
void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress);

}  // namespace loadline
