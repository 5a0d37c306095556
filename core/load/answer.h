// The only road from a question to figures: a request of a model becomes rows and advice.
#pragma once

#include "core/base/progress.h"
#include "core/load/advice.h"
#include "core/load/bind_request.h"
#include "core/load/request_pass.h"
#include "core/load/rows.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace loadline {

// What to do beside the rows.
struct AnswerOptions {
  std::size_t alive = 0;  // blocks named at each peak
  bool advise = true;     // look for changes that fit where rows do not
  // Sees each projection while it is alive; called from several threads at once.
  std::function<void(std::size_t at, const LoadRow& row, const Projection& projection)> projected = {};
};

struct LoadAdvice {
  Advice advice = {};
  bool searched = false;  // false: among the rows that were asked for, some fit
};

struct LoadAnswer {
  std::shared_ptr<const BoundRequest> bound;
  std::shared_ptr<const RequestPass> forward;
  std::vector<LoadRow> rows;  // method by method, in the orders asked for
  // Absent where all rows fit or nothing is to be fitted into.
  std::optional<LoadAdvice> advice = {};
  // Methods that fit where none of those shown by default does; only where the request names none.
  std::vector<const Method*> also_fits = {};

  bool several_orders() const { return bound->orders.size() > 1; }
  // Whether some row has figures, fits its budgets and keeps the required peak.
  bool any_fits() const;
};

// Rows for what cannot be done say so. Throws Error{usage} as bind_request() and RequestPass,
// Error{cancelled}, and where nothing can be done at all the first row's refusal.
LoadAnswer answer(const MetaGraph& graph, const LoadRequest& request, const LoadEnvironment& environment,
                  const AnswerOptions& options, Progress& progress);
// The same with a pass that is bound already (for another request with the same pass).
LoadAnswer answer(const MetaGraph& graph, const LoadRequest& request, const LoadEnvironment& environment,
                  const AnswerOptions& options, std::shared_ptr<const RequestPass> forward,
                  Progress& progress);

}  // namespace loadline
