// Projects several methods in several orders: the rows of a comparison table.
#pragma once

#include "core/base/error.h"
#include "core/load/answer/projection.h"
#include "core/load/request/order_file.h"

#include <cstddef>
#include <functional>
#include <span>

namespace loadline {

// Receives the rows. Row m * orders + o is method m in order o. For each row exactly one of the two functions
// is called, once. Calls come from several threads at once, in no fixed order. An exception ends the
// comparison.
struct RowTaker {
  // The projection is destroyed after the call, because plans and timelines are large.
  std::function<void(std::size_t row, const Projection& projection)> take;
  // The load cannot be done: Error{unsupported | limit}.
  std::function<void(std::size_t row, const Error& refusal)> refuse;
};

// Projects every method in every order. Orders that give the same sequence of storages share one projection.
// At most `threads` projections (at least one) are alive at a time. Progress counts projections. Throws
// Error{usage | cancelled} and whatever `taker` throws.
void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress, std::size_t threads);
// With one thread per core, at most four, and fewer where projections are large: each thread holds one in
// memory.
void compare(const MetaGraph& graph, std::span<const Method* const> methods,
             std::span<const OrderChoice> orders, const LoadInputs& inputs, const ForwardPass* pass,
             const RowTaker& taker, Progress& progress);

}  // namespace loadline
