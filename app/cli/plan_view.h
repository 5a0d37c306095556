// What `plan` shows, and how: for everything that shows it.
#pragma once

#include "app/report/pictured_answer.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace loadline::cli {

// Refers to what it was made of.
struct PlanView {
  const MetaGraph& graph;
  const std::string& path;  // as the command line named the model
  const report::PicturedAnswer& pictured;
  bool show_times = false;  // rates were asked for
  bool show_laws = false;
  std::size_t alive = 0;             // blocks named for each row; 0: some for the first row alone
  std::size_t hidden_rows = 0;       // left out because they do not fit
  std::uint64_t hidden_methods = 0;  // that the default leaves out

  const LoadAnswer& answer() const { return pictured.answer; }
  const BoundRequest& bound() const { return *pictured.answer.bound; }
  const LoadRequest& request() const { return bound().request(); }
  bool unified() const { return bound().memory == MemoryKind::unified; }
  // "W", "W + Q", "W and the forward pass": what stays where the weights are.
  std::string held_name() const;
};

}  // namespace loadline::cli
