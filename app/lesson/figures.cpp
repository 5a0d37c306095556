// Answers scenes, evaluates expressions over them, writes figures into texts.
#include "app/lesson/figures.h"

#include "app/report/row_text.h"
#include "core/base/text.h"
#include "core/forward/family/model_config.h"
#include "core/forward/model/expected_tensors.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "core/io/system_memory.h"
#include "core/load/request/load_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace loadline::lesson {

// --- Answers scenes, and evaluates expressions over them.

namespace {

assets::Datum bytes_datum(std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(INT64_MAX))
    throw Error(ErrorCode::limit, "{} bytes are too many", bytes);
  return assets::Datum(static_cast<std::int64_t>(bytes));
}

load::RowPeak peak_of(const load::LoadRow& row, std::string_view space) {
  return space.empty() ? row.deciding_peak : report::find_row_space(space).peak(row);
}

std::uint64_t selected_bytes(const graph::MetaGraph& graph, const std::string& filter) {
  return graph::sum(graph::shares(graph, graph::TensorFilter(filter).select(graph))).bytes;
}

const forward::ForwardFigures& pass_of(const SceneAnswer& scene) {
  if (!scene.forward || !scene.forward->figures())
    throw Error(ErrorCode::usage, "the scene has no forward pass");
  return *scene.forward->figures();
}

}  // namespace

struct Figures::Work {
  std::vector<std::optional<SceneAnswer>> scenes;
  std::map<std::string, assets::Datum, std::less<>> named;
  std::set<std::string, std::less<>> open;                 // figures being evaluated
  std::map<std::string, load::LoadRow, std::less<>> rows;  // of methods and orders that scenes do not ask for
  RunFigures run;
};

Figures::Figures(const Lesson& lesson, load::LoadEnvironment environment, Progress& progress)
    : lesson_(lesson),
      environment_(std::move(environment)),
      progress_(progress),
      work_(std::make_unique<Work>()) {
  work_->scenes.resize(lesson.scenes.size());
}
Figures::~Figures() = default;

void Figures::set_run(RunFigures figures) {
  work_->run = std::move(figures);
  work_->named.clear();  // some may quote the run
}

namespace {

SceneAnswer answer_scene(const graph::MetaGraphPtr& graph, const load::LoadRequest& request,
                         const load::LoadEnvironment& environment, Progress& progress) {
  constexpr std::size_t kAlive = 8, kSlices = 48;
  SceneAnswer scene;
  scene.graph = graph;
  scene.forward = std::make_shared<const load::RequestPass>(*graph, request, environment.assets);
  report::CurveOptions curve;
  curve.slices = kSlices;
  if (scene.forward->pass() != nullptr) curve.axis = view::RunAxis::steps;
  load::AnswerOptions options;
  options.alive = kAlive;
  options.advise = false;
  auto bound = std::make_shared<const load::BoundRequest>(load::bind_request(*graph, request, environment));
  scene.answered =
      report::answer_with_curves(*graph, std::move(bound), options, curve, scene.forward, progress);
  return scene;
}

}  // namespace

const SceneAnswer& Figures::scene(std::size_t at) {
  std::optional<SceneAnswer>& slot = work_->scenes[at];
  if (slot) return *slot;
  const Scene& scene = lesson_.scenes[at];
  graph::MetaGraphPtr graph;
  for (std::size_t i = 0; i < lesson_.scenes.size() && !graph; ++i)  // another scene may have the same model
    if (lesson_.scenes[i].model == scene.model && work_->scenes[i]) graph = work_->scenes[i]->graph;
  if (!graph) graph = model_shapes(scene.model, *environment_.assets);
  slot = answer_scene(graph, scene.request, environment_, progress_);
  return *slot;
}

SceneAnswer Figures::changed_scene(std::size_t at, std::string_view option, const std::string& value) {
  load::LoadRequest request = lesson_.scenes[at].request;
  load::set_load_option(request, option, value);
  return answer_scene(scene(at).graph, request, environment_, progress_);
}

namespace {

// The row of a scene's own answer; null if the scene does not ask for it.
const load::LoadRow* find_scene_row(const SceneAnswer& scene, std::string_view method,
                                    std::string_view order) {
  for (const load::LoadRow& row : scene.answered.answer.rows)
    if (row.method->id == method && (order.empty() || row.order == order)) return &row;
  return nullptr;
}

}  // namespace

const load::LoadRow& Figures::row(std::size_t at, const std::string& method, const std::string& order) {
  const SceneAnswer& asked = scene(at);
  const load::LoadRow* row = find_scene_row(asked, method, order);
  if (row == nullptr) {
    const std::string key = fmt::format("{} {} {}", at, method, order);
    auto known = work_->rows.find(key);
    if (known == work_->rows.end()) {
      load::LoadRequest request = lesson_.scenes[at].request;
      request.methods = {method};
      if (!order.empty()) request.orders = {order};
      load::AnswerOptions options;
      options.advise = false;
      auto bound =
          std::make_shared<const load::BoundRequest>(load::bind_request(*asked.graph, request, environment_));
      load::LoadAnswer answered =
          load::answer(*asked.graph, std::move(bound), options, asked.forward, progress_);
      known = work_->rows.emplace(key, std::move(answered.rows.at(0))).first;
    }
    row = &known->second;
  }
  if (row->refusal) throw *row->refusal;
  return *row;
}

assets::Datum Figures::run_figure(std::string_view key) const {
  const auto found = work_->run.find(key);
  return found == work_->run.end() ? assets::Datum() : found->second;
}

namespace {

// The method with the least or the greatest peak in a space.
assets::Datum extreme(const SceneAnswer& scene, std::string_view space, bool greatest) {
  const load::LoadRow* best = nullptr;
  for (const load::LoadRow& row : scene.answered.answer.rows) {
    if (row.refusal) continue;
    const auto bytes = [&](const load::LoadRow& one) { return peak_of(one, space).bytes; };
    if (best == nullptr || (greatest ? bytes(row) > bytes(*best) : bytes(row) < bytes(*best))) best = &row;
  }
  if (best == nullptr) throw Error(ErrorCode::usage, "no method of the scene is possible");
  return assets::Datum(std::string(best->method->id));
}

assets::Datum widest(const SceneAnswer& scene) {
  std::vector<const load::LoadRow*> rows;
  for (const load::LoadRow& row : scene.answered.answer.rows) rows.push_back(&row);
  return assets::Datum(std::string(report::widest_space(rows).id));
}

assets::Datum final_bytes(const load::LoadRow& row, std::string_view space) {
  for (const plan::Space one : plan::kSpaceOrder)
    if (plan::space_name(one) == space) return bytes_datum(row.final_bytes[plan::index(one)]);
  (void)report::find_row_space(space);
  throw Error(ErrorCode::usage, "final: '{}' is not a single space", space);
}

// A call of a function over a scene. Its arguments are checked as they are taken.
class Call {
 public:
  Call(Figures& figures, std::size_t at, std::string_view function, std::span<const assets::Datum> given)
      : figures_(figures), at_(at), function_(function), given_(given) {}

  // A text; empty if it is not given.
  const std::string& text(std::size_t at) const {
    static const std::string none;
    if (at >= given_.size()) return none;
    if (given_[at].text() == nullptr)
      throw Error(ErrorCode::usage, "{}: argument {} is not text: {}", function_, at + 1, given_[at].shown());
    return *given_[at].text();
  }
  const SceneAnswer& scene() const { return figures_.scene(at_); }
  const load::LoadRow& row() const { return figures_.row(at_, text(0)); }
  load::RowPeak peak() const { return peak_of(figures_.row(at_, text(0), text(2)), text(1)); }
  assets::Datum ratio(double scale) const {
    if (number(1) == 0) throw Error(ErrorCode::usage, "{}: divides by 0", function_);
    return assets::Datum(number(0) / number(1) * scale);
  }
  assets::Datum config() const {
    const SceneModel& model = figures_.lesson().scenes[at_].model;
    return forward::ModelConfig(model_config(model), model.name).get(text(0));
  }
  assets::Datum run() const { return figures_.run_figure(text(0)); }
  // What a row may lack. Throws Error{usage} that says why.
  assets::Datum bytes(const std::optional<std::uint64_t>& figure, std::string_view why) const {
    if (!figure) throw Error(ErrorCode::usage, "{}: the scene{}", function_, why);
    return bytes_datum(*figure);
  }

 private:
  double number(std::size_t at) const {
    if (const std::int64_t* const whole = given_[at].number()) return static_cast<double>(*whole);
    if (const double* const real = given_[at].real()) return *real;
    throw Error(ErrorCode::usage, "{}: argument {} is not a number: {}", function_, at + 1,
                given_[at].shown());
  }

  Figures& figures_;
  std::size_t at_;
  std::string_view function_;
  std::span<const assets::Datum> given_;
};

struct Function {
  std::string_view name;
  std::size_t least, most;  // arguments
  assets::Datum (*value)(const Call& call);
};

constexpr std::array<Function, 16> kFunctions = {{
    {"peak", 1, 3, [](const Call& call) { return bytes_datum(call.peak().bytes); }},
    {"blame", 1, 3, [](const Call& call) { return assets::Datum(call.peak().tensor); }},
    {"final", 2, 2, [](const Call& call) { return final_bytes(call.row(), call.text(1)); }},
    {"allocated", 1, 1,
     [](const Call& call) { return call.bytes(call.row().allocated, "'s allocator is not torch"); }},
    {"seconds", 1, 1, [](const Call& call) { return assets::Datum(call.row().seconds); }},
    {"fits", 1, 1, [](const Call& call) { return assets::Datum(std::int64_t{call.row().fits()}); }},
    {"context", 1, 1,
     [](const Call& call) { return call.bytes(call.row().context_max, " does not ask for max_context"); }},
    {"least", 1, 1, [](const Call& call) { return extreme(call.scene(), call.text(0), false); }},
    {"most", 1, 1, [](const Call& call) { return extreme(call.scene(), call.text(0), true); }},
    {"widest", 0, 0, [](const Call& call) { return widest(call.scene()); }},
    {"bytes", 1, 1,
     [](const Call& call) { return bytes_datum(selected_bytes(*call.scene().graph, call.text(0))); }},
    {"number", 1, 1,
     [](const Call& call) {
       return bytes_datum(graph::TensorFilter(call.text(0)).select(*call.scene().graph).size());
     }},
    {"config", 1, 1, [](const Call& call) { return call.config(); }},
    {"ratio", 2, 2, [](const Call& call) { return call.ratio(1); }},
    {"percent", 2, 2, [](const Call& call) { return call.ratio(100); }},
    {"run", 1, 1, [](const Call& call) { return call.run(); }},
}};

}  // namespace

assets::Datum Figures::named(std::string_view name, std::size_t at) {
  const auto figure = std::ranges::find(lesson_.figures, name, &Figure::name);
  if (figure != lesson_.figures.end()) {
    if (const auto known = work_->named.find(name); known != work_->named.end()) return known->second;
    if (!work_->open.emplace(name).second)
      throw Error(ErrorCode::usage, "the figure '{}' refers to itself", safe_display(name, 60));
    // also where it fails: the next to ask may have better luck
    const std::shared_ptr<void> closed(nullptr, [&](void*) { work_->open.erase(figure->name); });
    assets::Datum result = value(figure->value, figure->scene);
    return work_->named.emplace(figure->name, std::move(result)).first->second;
  }
  const graph::MetaGraph& graph = *scene(at).graph;
  if (name == "weights") return bytes_datum(graph::storage_bytes(graph));
  if (name == "largest") {
    std::uint64_t most = 0;
    for (const graph::Storage& storage : graph.storages) most = std::max(most, storage.bytes);
    return bytes_datum(most);
  }
  if (name == "tensors") return bytes_datum(graph.tensors.size());
  if (name == "parameters") return bytes_datum(forward::model_claims(graph, *environment_.assets).parameters);
  if (name == "pass") return bytes_datum(pass_of(scene(at)).peak.bytes);
  if (name == "values") {
    std::uint64_t sum = 0;
    for (const auto& size : pass_of(scene(at)).sizes) sum += size.value_or(0);
    return bytes_datum(sum);
  }
  if (name == "cache") return bytes_datum(pass_of(scene(at)).peak.cache_bytes);
  if (name == "memory") return bytes_datum(io::available_system_memory().value_or(0));
  throw Error(ErrorCode::usage, "unknown figure '{}'", safe_display(name, 60));
}

assets::Datum Figures::value(const assets::Expression& expression, std::size_t at) {
  assets::Scope scope;
  std::uint64_t work = 100'000;
  scope.work = &work;
  scope.name = [&](std::string_view name) { return named(name, at); };
  scope.call = [&](std::string_view name,
                   std::span<const assets::Datum> given) -> std::optional<assets::Datum> {
    const auto function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == kFunctions.end()) return std::nullopt;
    if (given.size() < function->least || given.size() > function->most)
      throw Error(ErrorCode::usage, "{} takes {} arguments, not {}", name,
                  function->least == function->most
                      ? fmt::format("{}", function->least)
                      : fmt::format("{} to {}", function->least, function->most),
                  given.size());
    return function->value(Call(*this, at, name, given));
  };
  try {
    return expression.evaluate(scope);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) throw;
    expression.place().fail("{}", error.what());
  }
}

// --- Writes figures, and fills texts with them.

namespace {

constexpr double kKiB = 1024;
constexpr std::array kUnits = {
    UnitName{"bytes", Unit::bytes, 1, 0, " bytes"},
    UnitName{"GiB", Unit::gib, kKiB* kKiB* kKiB, 2, " GiB"},
    UnitName{"MiB", Unit::mib, kKiB* kKiB, 1, " MiB"},
    UnitName{"KiB", Unit::kib, kKiB, 1, " KiB"},
    UnitName{"GB", Unit::gb, 1e9, 2, " GB"},
    UnitName{"MB", Unit::mb, 1e6, 1, " MB"},
    UnitName{"count", Unit::count, 1, 0, ""},
    UnitName{"times", Unit::times, 1, 2, " times"},
    UnitName{"percent", Unit::percent, 1, 1, " %"},
    UnitName{"ms", Unit::milliseconds, 1e-3, 1, " ms"},
    UnitName{"text", Unit::text, 1, 0, ""},
};

double number_of(const assets::Datum& value) {
  if (const std::int64_t* const whole = value.number()) return static_cast<double>(*whole);
  if (const double* const real = value.real()) return *real;
  throw Error(ErrorCode::malformed, "{} is not a number", value.shown());
}

// Without a unit: sizes for whole numbers, two decimals for others, texts as they are.
std::string plain_text(const assets::Datum& value) {
  if (value.text() != nullptr) return safe_display(*value.text());
  if (const std::int64_t* const whole = value.number(); whole != nullptr && *whole >= 0)
    return format_bytes(static_cast<std::uint64_t>(*whole));
  return fmt::format("{:.2f}", number_of(value));
}

}  // namespace

std::span<const UnitName> units() { return kUnits; }
const UnitName& unit_name(Unit unit) { return kUnits[static_cast<std::size_t>(unit)]; }

double figure_number(const assets::Datum& value, Unit unit) {
  return number_of(value) / unit_name(unit).scale;
}

std::string figure_text(const assets::Datum& value, Unit unit) {
  if (unit == Unit::text) return plain_text(value);
  const UnitName& name = unit_name(unit);
  const double number = figure_number(value, unit);
  if (name.digits == 0 && std::abs(number) < 1e18)
    return fmt::format("{}{}{}", number < 0 ? "-" : "",
                       format_grouped(static_cast<std::uint64_t>(std::llround(std::abs(number)))),
                       name.suffix);
  return fmt::format("{:.{}f}{}", number, name.digits, name.suffix);
}

std::string fill(std::string_view markdown, std::size_t scene, Figures& figures) {
  std::string text;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = markdown.find('{', at);
    text += markdown.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) return text;
    const std::size_t close = markdown.find('}', open);
    if (close == std::string_view::npos)
      throw Error(ErrorCode::malformed, "'{{' without '}}': {}", safe_display(markdown.substr(open, 40)));
    const std::string_view inside = markdown.substr(open + 1, close - open - 1);
    const std::size_t bar = inside.find('|');
    const assets::AssetPlace place{
        std::make_shared<const std::string>(figures.lesson().id + ".md: {" + safe_display(inside, 80) + "}"),
        1, 1};
    Unit unit = Unit::text;
    if (bar != std::string_view::npos) {
      const auto row = std::ranges::find(kUnits, inside.substr(bar + 1), &UnitName::id);
      if (row == kUnits.end()) place.fail("unknown unit '{}'", safe_display(inside.substr(bar + 1), 40));
      unit = row->unit;
    }
    const assets::Datum value = figures.value(assets::Expression::parse(inside.substr(0, bar), place), scene);
    if (value.null()) place.fail("has no value");
    text += figure_text(value, unit);
    at = close + 1;
  }
}

}  // namespace loadline::lesson
