// A load of a model with everything that it refers to, so that a job can run it.
#pragma once

#include "app/gui/state/load/asked.h"
#include "app/report/pictured_answer.h"
#include "core/load/answer/answer.h"
#include "core/load/answer/rows.h"
#include "core/load/request/bind_request_2.h"
#include "core/load/request/pass.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace loadline::gui {

// Caches the last forward pass of one model's loads, so that several jobs bind it only once.
class PassMemo {
 public:
  // Throws the Errors of RequestPass.
  std::shared_ptr<const RequestPass> find(const MetaGraph& graph, const LoadRequest& request,
                                          const std::shared_ptr<const ForwardAssets>& assets);

 private:
  std::mutex mutex_;
  LoadRequest of_;  // the options of last_; only those of the pass matter
  std::shared_ptr<const RequestPass> last_;
};

struct LoadTask {
  MetaGraphPtr graph;
  LoadQuestion question;
  std::shared_ptr<const ForwardAssets> assets;
  std::shared_ptr<const std::vector<Target>> targets;
  std::optional<MeasuredRates> rates;
  std::shared_ptr<PassMemo> passes;
};

// This function and those below throw the Errors of bind_request(). The result refers to the task's targets.
BoundRequest bind(const LoadTask& task);
// The storage order of the first method in the first order.
StorageOrder first_order(const LoadTask& task, const Progress& progress);
Projection project_load(const LoadTask& task, Progress& progress);
// A projection against the budgets of the question.
struct JudgedLoad {
  BoundRequest bound;
  LoadRow row;
};
JudgedLoad judge_load(const LoadTask& task, const Projection& projection);
// The comparison of all methods and orders of the question, with curves.
report::PicturedAnswer compare_loads(const LoadTask& task, Progress& progress);
// Changes that make the load fit its budgets (core/load/advice.h); none if it fits.
LoadAnswer advise_load(const LoadTask& task, Progress& progress);

}  // namespace loadline::gui
