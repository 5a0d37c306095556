// What the names in a request stand for: order files, targets, and the request bound to one model.
#pragma once

#include "core/base/progress.h"
#include "core/forward/model/assets_loader.h"
#include "core/load/request/casts.h"
#include "core/load/request/method.h"
#include "core/load/request/rates.h"
#include "core/plan/run.h"
#include "core/plan/timeline.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::forward {
class ClaimsOnce;  // core/forward/model/expected_tensors.h
}

namespace loadline::load {

// --- Load orders in a text file: one tensor name per line.

// Lines end with \n or \r\n. Blank lines, lines that begin with '#' and a leading byte order mark are
// ignored. Every other line is exactly one tensor name of the model, blanks included. A storage takes the
// position of its first listed name; further names of it (ties) change nothing. Storages that are not listed
// follow in file order. Throws Error that names `file` and the line: malformed for an unknown name, a name
// listed twice, a NUL byte or a text without names; limit for a line over 64 KiB.
StorageOrder parse_order(const graph::MetaGraph& graph, std::string_view text, const std::string& file);
// Reads the same from a file. Also throws Error{limit} for a file over 256 MiB, Error{unsupported} for a
// folder or a pipe, Error{io}.
StorageOrder read_order(const graph::MetaGraph& graph, const std::string& path);

// A text from which parse_order() restores `order`: the first name of each storage. `order` holds storages of
// this graph that a tensor uses, as make_order() returns them. Throws Error{unsupported} for names that a
// line cannot hold.
std::string order_text(const graph::MetaGraph& graph, const StorageOrder& order);

// A requested order: a row of the table, or the storages that a file lists.
struct OrderChoice {
  std::string name;            // as written in the request
  const Order* row = nullptr;  // null: use `listed`
  std::shared_ptr<const StorageOrder> listed = nullptr;
};
// Throws Error{usage} unless `name` is the id of an order or the path of an existing file.
void check_order_choice(const std::string& name);
// The order with this id, else the order in the file at this path. Throws as check_order_choice() and
// read_order().
OrderChoice choose_order(const graph::MetaGraph& graph, const std::string& name);

// --- What a load has to fit into.

// Absent = unlimited. The host budget covers host and staging; the unified budget covers device, host and
// staging. The page cache can be dropped and does not count, but for weights that a forward pass behind the
// load reads from their mapping: those are needed for every token.
struct Budget {
  std::optional<std::uint64_t> device = {};
  std::optional<std::uint64_t> host = {};
  std::optional<std::uint64_t> unified = {};
  std::optional<std::uint64_t> committed = {};  // the commit charge
  // Mapped pages that are copied from may turn into anonymous memory: a load whose peak with all its pages is
  // above the unified budget is at risk.
  bool pages_may_stay = false;
};

// --- Data sheets of devices: the size and kind of their memory. Read from assets/targets/*.json, one file
// each:
//
//   {"id": "rtx-4060-8gb", "name": "NVIDIA GeForce RTX 4060",
//    "class": "desktop",              phone, laptop, desktop, server or board
//    "memory": "discrete",            or "unified": one memory for host and device
//    "device_bytes": "8GiB",          the device's own memory; if memory is unified, the part of it that
//                                     the device may use, if not all
//    "host_bytes": "16GiB",           the host's memory and so its budget; optional, as a card's data sheet
//                                     does not name its host. If memory is unified, the size of that memory
//    "device_bandwidth": 272000000000,  of the memory, bytes per second; optional
//    "link_bandwidth": 15750000000,   of the bus, bytes per second in one direction; optional
//    "options": {"allocator": "vulkan"},  load options for requests that do not set them; optional
//    "source": "..."}                 the data sheet, and the source of the options
//

struct Target {
  std::string id = {};
  std::string name = {};
  std::string device_class = {};
  plan::MemoryKind memory = plan::MemoryKind::discrete;
  std::optional<std::uint64_t> device_bytes = {};  // required if memory is discrete
  std::optional<std::uint64_t> host_bytes = {};    // required if memory is unified, else optional
  std::optional<std::uint64_t> device_bandwidth = {};
  std::optional<std::uint64_t> link_bandwidth = {};
  // Ids and values of load options that apply on this device unless a request sets them.
  std::vector<std::pair<std::string, std::string>> options = {};
  std::string source = {};
};

// Throws Error{malformed | limit} naming `path`, line, column and key.
Target parse_target(std::string_view json, const std::string& path);

// --- This machine as a target: no data sheet, but what it can give now.

inline constexpr std::string_view kThisMachine = "this";  // its id

struct MachineMemory {
  std::uint64_t system = 0;  // bytes that the system can give
  struct Device {
    std::string name;
    std::uint64_t bytes = 0;  // that it can give
    bool unified = false;     // they are the system's own
  };
  std::optional<Device> device = {};  // absent: models run on the processor
};

// A device with memory of its own has that for its budget, and the system's for the host. Otherwise all is
// one memory.
Target machine_target(const MachineMemory& machine);

struct Targets {
  std::vector<Target> rows = {};
  std::vector<std::string> faults = {};  // errors in files that were skipped
};
// Throws Error{usage} that lists the known ids.
const Target& find_target(std::span<const Target> targets, std::string_view id);

// The built-in targets, by file name.
std::span<const Target> built_in_targets();
// The built-in targets and those in folder/targets/*.json; a file replaces the built-in target with the same
// id. An empty `folder` gives the built-in targets only.
Targets load_targets(const std::string& folder);

// The budget that the device allows, with its memory treated as kind `memory`.
Budget target_budget(const Target& target, plan::MemoryKind memory);
// Replaces rates of `costs` with those that the device's data sheet gives, and leaves out those at which
// another device's driver gives memory.
plan::CostModel target_costs(const Target& target, plan::CostModel costs);

// --- Resolves a request for one model: looks up methods, orders, placements, budgets and rates.

// What a front end supplies besides the model and the request.
struct LoadEnvironment {
  std::shared_ptr<const forward::ForwardAssets> assets = nullptr;  // null: the built-in ones
  std::span<const Target> targets = built_in_targets();
  std::optional<MeasuredRates> measured_rates = {};         // of this machine
  std::shared_ptr<const StorageOrder> own_order = nullptr;  // the order that kOwnOrder names
  // Of the model that requests are bound to; null: it is compared with its architecture for each.
  std::shared_ptr<const forward::ClaimsOnce> claims = nullptr;
};

// The name of an order that the user arranged by hand.
inline constexpr std::string_view kOwnOrder = "custom";

// The memory that a load has to fit into, from the request and its target.
struct LoadMemory {
  plan::MemoryKind kind = plan::MemoryKind::discrete;
  Budget budget = {};
  std::optional<Target> target = {};
  std::uint64_t reserved = 0;           // bytes that were taken off the deciding budget
  std::vector<std::string> notes = {};  // sentences on which budgets apply

  // The budget that decides: of the device, or of the memory that all spaces share.
  std::optional<std::uint64_t>& deciding_budget() {
    return kind == plan::MemoryKind::unified ? budget.unified : budget.device;
  }
  const std::optional<std::uint64_t>& deciding_budget() const {
    return kind == plan::MemoryKind::unified ? budget.unified : budget.device;
  }
};

class NamedParts;  // core/load/methods/framework_sizes.h

// A checked request and its meaning for one model: all that plans, projections and answers are made from.
struct BoundRequest {
  LoadRequest request = {};                                // with the target's own options filled in
  Placement placement = {};                                // the requested placement, by storage
  unsigned spaces = plan::space_bit(plan::Space::device);  // order `optimal` minimizes the peak of their sum
  plan::CostModel costs = {};                              // on the target
  std::vector<const Method*> methods = {};                 // without repeats
  std::vector<OrderChoice> orders = {};
  OwnTypes own_types = {};  // of the model, for methods that take one
  LoadMemory memory = {};
  std::optional<MeasuredRates> rates = {};  // absent: assumed rates
  // Of the model: shared by the plans of many loads. Null: each plan finds its own.
  std::shared_ptr<const NamedParts> parts = nullptr;
  // Why the model is not whole: its first note of severity error. Empty: it is. Not escaped.
  std::string incomplete = {};
  // Of a judged request: settings that the sizes of the weights may depend on and that are not understood, in
  // words. Empty: none.
  std::string unaccounted = {};

  // The type that the method casts weights to: that of the request, else, where the method takes it from
  // there, that of config.json.
  std::optional<graph::DType> cast_of(const Method& method) const;
  plan::CostModel machine_costs() const { return rates ? rates->costs() : plan::CostModel(); }
  // Whether a budget or a required peak is set.
  bool judged() const;
  // Whether the required peak is one of the host: where nothing is placed on a device with its own memory.
  // `on_host`: of a load with a placement of its own.
  bool judges_host() const { return judges_host(computes_on_host(placement)); }
  bool judges_host(bool on_host) const { return on_host && memory.kind == plan::MemoryKind::discrete; }
  // The budgets, with the required peak as a limit of the memory that it is about.
  Budget limits() const { return limits(computes_on_host(placement)); }
  Budget limits(bool on_host) const;
};

// The first stage of bind_request(), for a front end that checks a request before it opens the model. Throws
// Error{usage} for an unknown target, a reserve that leaves nothing, and as check_request().
LoadMemory bind_memory(const LoadRequest& request, std::span<const Target> targets);

// `memory` is that of the request. Throws Error{usage} for unknown ids, and as find_methods(),
// place_by_rules(), choose_order() and read_rates() do.
BoundRequest bind_request(const graph::MetaGraph& graph, const LoadRequest& request, LoadMemory memory,
                          const LoadEnvironment& environment);
// Both stages. Also throws as bind_memory() does.
BoundRequest bind_request(const graph::MetaGraph& graph, const LoadRequest& request,
                          const LoadEnvironment& environment);

// The request with what the method itself adds to it: the cast to the type in config.json, and an automatic
// map for it; all weights on the host, where the framework runs there. Nothing if it adds nothing.
std::optional<BoundRequest> as_called(const graph::MetaGraph& graph, const Method& method,
                                      const BoundRequest& bound);

// Removes repeated ids; the first one counts. "all" stands for every row of the table. Throws Error{usage}.
std::vector<const Method*> find_methods(const std::vector<std::string>& ids);
// The same for a model: "all" and the default set leave out methods that cannot open its files. Also throws
// Error{unsupported} for one that is named.
std::vector<const Method*> find_methods(const std::vector<std::string>& ids, const graph::MetaGraph& graph);

// The bit of `opened` for the model's files; 0 for files that only a loader of one's own reads.
std::uint16_t file_kind(const graph::MetaGraph& graph);
// The kinds in words: "safetensors, PyTorch".
std::string opened_text(std::uint16_t kinds);
bool can_open(const Method& method, const graph::MetaGraph& graph);
// The methods that can, in the order of the table.
std::vector<const Method*> methods_for(const graph::MetaGraph& graph);
// Removes methods that the request does not name: those that attach adapters, unless it says which, and those
// that leave the weights on the host, unless it places weights or nothing else opens the model.
void leave_out_unasked(std::vector<const Method*>& methods, const LoadRequest& request);
// "26 methods cannot open ONNX files"; empty if all can.
std::string unopened_text(const graph::MetaGraph& graph);

std::vector<std::string> order_names(const std::vector<std::string>& names);

}  // namespace loadline::load
