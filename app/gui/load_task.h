// A load of a model with all that it refers to: enough for a job.
#pragma once

#include "app/gui/asked.h"
#include "app/report/pictured_answer.h"
#include "core/load/bind_request.h"
#include "core/load/request_pass.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace loadline::gui {

// The forward passes of one model's loads: the last one is bound once for all jobs that ask for it.
class PassMemo {
 public:
  // Throws as RequestPass does.
  std::shared_ptr<const RequestPass> find(const MetaGraph& graph, const LoadRequest& request,
                                          const std::shared_ptr<const ForwardAssets>& assets);

 private:
  std::mutex mutex_;
  LoadRequest of_;  // what else it asks does not matter
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

// All throw as bind_request(). What it returns refers to the task's targets.
BoundRequest bind(const LoadTask& task);
// The first method in the first order.
StorageOrder first_order(const LoadTask& task, const Progress& progress);
Projection project_load(const LoadTask& task, Progress& progress);
// Every method and order, with curves.
report::PicturedAnswer compare_loads(const LoadTask& task, Progress& progress);

}  // namespace loadline::gui
