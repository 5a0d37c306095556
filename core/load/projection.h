// What `plan` and the window show: a method's plan run on the dry machine, and how it fits budgets.
#pragma once

#include "core/load/methods.h"
#include "core/plan/forward_pass.h"
#include "core/plan/read_pattern.h"
#include "core/plan/run.h"

#include <optional>
#include <string>
#include <vector>

namespace loadline {

struct Projection {
  const Method* method = nullptr;
  std::string order;  // the id of an order, or what a custom one is called
  // Of an order that depends on the method: whether none has a lower peak (optimal_order.h). Set by who made
  // the order.
  std::optional<bool> order_proven = {};
  Plan plan;
  Timeline timeline;
  ReadPattern reads;
  double seconds = 0;  // the timeline's, and a seek for every jump: its clock knows no places on a disk
};

// Makes the plan, checks it and runs it on a DryMachine; with `pass`, the load and then a forward pass, whose
// values are allocated one by one behind the load, or in one block where the method allocates activations.
// Throws Error{usage} for absurd options, Error{limit} for sizes that no memory can hold, Error{cancelled}.
Projection project(const MetaGraph& graph, const Method& method, const Order& order, const LoadInputs& inputs,
                   Progress& progress, const ForwardPass* pass = nullptr);
// The same for `storages`, an order called `order`: a custom one, or for who projects several methods.
Projection project(const MetaGraph& graph, const Method& method, std::string order,
                   const StorageOrder& storages, const LoadInputs& inputs, Progress& progress,
                   const ForwardPass* pass = nullptr);
Projection project(const MetaGraph& graph, const Method& method, const Order& order,
                   const LoadInputs& inputs);

// Why a plan with page_cache blocks cannot be run on the model's files, although it can be projected: what is
// encoded must be decoded. Empty if all of them can be mapped.
std::string mapping_refusal(const MetaGraph& graph);
// Whether the load needs files that can be mapped.
bool maps_files(const Projection& projection);

// What no method that keeps the weights on the device can go below: every storage placed there, as it is once
// loaded, with the activations or what the pass needs at most. Throws Error{limit} where that has no sum.
std::uint64_t device_lower_bound(const MetaGraph& graph, const LoadInputs& inputs,
                                 const ForwardPass* pass = nullptr);

// Absent = unlimited. The host's budget covers host and staging, that of unified memory device, host and
// staging; the page cache can be dropped and does not count.
struct Budget {
  std::optional<std::uint64_t> device = {};
  std::optional<std::uint64_t> host = {};
  std::optional<std::uint64_t> unified = {};
};

struct BudgetVerdict {
  bool device_fits = true;
  bool host_fits = true;
  bool unified_fits = true;
  // By how much the peak of what a budget covers is over it.
  std::uint64_t device_over = 0;
  std::uint64_t host_over = 0;
  std::uint64_t unified_over = 0;
  // The highest that a budget was held against.
  std::uint64_t device_peak = 0;
  std::uint64_t host_peak = 0;
  std::uint64_t unified_peak = 0;
  // The first allocation that breaks a budget.
  std::optional<std::size_t> step = {};
  std::optional<BlockId> block = {};

  bool fits() const { return device_fits && host_fits && unified_fits; }
};

// The peak of what budgets of unified memory cover: device, host and staging together.
std::uint64_t held_peak(const Timeline& timeline);

// What budgets are held against after usage[i]: what the allocator reserves where its books are kept, else
// what is asked.
const PerSpace<std::uint64_t>& judged_bytes(const Timeline& timeline, std::size_t i);

BudgetVerdict check_budget(const Projection& projection, const Budget& budget);

}  // namespace loadline
