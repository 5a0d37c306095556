// Views as tables; pictures, drawings and plays.
#include "app/gui/frame/export.h"

#include "app/gui/panels/forward/forward.h"
#include "app/gui/state/load/arena.h"
#include "app/gui/state/model/file_data.h"
#include "app/gui/state/workspace.h"
#include "app/gui/window/picture.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/view/file_strips.h"
#include "core/view/operator_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- One function for each view.

namespace {

class Csv {
 public:
  explicit Csv(std::string_view titles) : text_(fmt::format("{}\r\n", titles)) {}

  template <typename... Cells>
  void row(const Cells&... cells) {
    first_ = true;
    (cell(cells), ...);
    text_ += "\r\n";
  }
  std::string take() { return std::move(text_); }

 private:
  template <typename Cell>
  void cell(const Cell& value) {
    if (!first_) text_ += ',';
    first_ = false;
    if constexpr (std::is_arithmetic_v<Cell>)
      text_ += fmt::format("{}", value);
    else
      quote(safe_display(std::string_view(value)));
  }
  void quote(const std::string& words) {
    if (words.find_first_of(",\"") == std::string::npos) {
      text_ += words;
      return;
    }
    text_ += '"';
    for (const char c : words) {
      text_ += c;
      if (c == '"') text_ += '"';
    }
    text_ += '"';
  }

  std::string text_;
  bool first_ = true;
};

std::string file_of(const Model& model, graph::TensorId id) {
  const graph::FileId file = model.graph->storage(model.tensor(id).storage).file;
  return file == graph::kNoFile ? "" : model.graph->file(file).path;
}

std::string tensors(const Document& document) {
  const Model& model = *document.model;
  Csv csv("tensor,dtype,shape,bytes,role,layer,file,offset");
  for (const graph::TensorId id : document.table.view().rows) {
    const graph::Tensor& tensor = model.tensor(id);
    const graph::Storage& storage = model.graph->storage(tensor.storage);
    std::string shape;
    for (const std::uint64_t size : tensor.shape)
      shape += fmt::format("{}{}", shape.empty() ? "" : "x", size);
    const std::int32_t layer = model.layers[graph::index(id)];
    csv.row(tensor.name.view(), graph::dtype_info(tensor.dtype).name, shape, model.bytes[graph::index(id)],
            graph::role_name(model.roles[graph::index(id)]),
            layer < 0 ? std::string() : std::to_string(layer), file_of(model, id),
            storage.offset + tensor.offset);
  }
  return csv.take();
}

std::string blocks(const Document& document) {
  if (!document.load.projection.value()) throw Error(ErrorCode::usage, "no load is projected yet");
  const load::Projection& projection = *document.load.projection.value();
  Csv csv("block,space,bytes,from_step,to_step,from_seconds,to_seconds");
  for (std::size_t i = 0; i < projection.plan.blocks.size(); ++i) {
    const plan::Block& block = projection.plan.blocks[i];
    const plan::Lifetime& life = projection.timeline.lifetimes[i];
    if (life.from_step == plan::kNever) continue;
    csv.row(plan::block_label(block, *document.model->graph, document.model->owners),
            plan::space_name(block.space), block.bytes, life.from_step,
            life.to_step == plan::kNever ? std::string() : std::to_string(life.to_step),
            plan::seconds_at(projection.timeline, life.from_step),
            plan::seconds_at(projection.timeline, life.to_step));
  }
  return csv.take();
}

std::string methods_table(const Document& document) {
  const auto& rows = document.load.comparison.value()->answer.rows;
  if (rows.empty()) throw Error(ErrorCode::usage, "the methods are not compared yet");
  Csv csv("method,order,device,host,staging,page_cache,held,seconds,fits,over,refusal");
  for (const load::LoadRow& row : rows) {
    const auto peak = [&](plan::Space space) { return row.peaks[plan::index(space)].bytes; };
    csv.row(row.method->id, row.order, peak(plan::Space::device), peak(plan::Space::host),
            peak(plan::Space::staging), peak(plan::Space::page_cache), row.held_peak, row.seconds,
            row.fits() ? "yes" : "no", row.refusal ? std::uint64_t{0} : row.most_over(),
            row.refusal ? std::string(row.refusal->what()) : std::string());
  }
  return csv.take();
}

const graph::ForwardGraph& pass_of(const Document& document) {
  const auto& scene = document.forward.scene.value();
  if (!scene || scene->forward() == nullptr)
    throw Error(ErrorCode::usage, "the operators of this model are unknown");
  return *scene->forward();
}

std::string operators(const Document& document) {
  const graph::ForwardGraph& graph = pass_of(document);
  Csv csv("operator,kind,name,weights,inputs,outputs");
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const graph::Op& op = graph.ops[i];
    std::string weights, inputs, outputs;
    for (const graph::TensorId id : op.weights)
      weights += (weights.empty() ? "" : " ") + document.model->tensor(id).name.str();
    for (const graph::ValueId id : op.inputs)
      inputs += (inputs.empty() ? "" : " ") + graph.values[graph::index(id)].name;
    for (const graph::ValueId id : op.outputs)
      outputs += (outputs.empty() ? "" : " ") + graph.values[graph::index(id)].name;
    csv.row(i, op.kind, op.name, weights, inputs, outputs);
  }
  return csv.take();
}

// A row for each operator that uses a value, of the operators inside the module that the graph shows.
std::string flows(const Document& document) {
  pass_of(document);
  const auto level = graph_level(document.forward.scene.value(), document.forward.inside);
  const graph::ForwardGraph& graph = level->forward();
  const auto number = [&](std::uint32_t op) {
    const graph::OpPlace place = level->place_of(op);
    const auto at = place.at == view::InnerGraph::kNoPosition ? std::nullopt : level->scene->op_at(place);
    return at ? std::to_string(*at) : std::string();
  };
  std::vector<std::string> maker(graph.values.size());
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i)
    for (const graph::ValueId id : graph.ops[i].outputs) maker[graph::index(id)] = number(i);
  Csv csv("from_operator,to_operator,value,shape,bytes");
  for (std::uint32_t i = 0; i < graph.ops.size(); ++i) {
    if (!view::is_inside(level->tree(), level->nodes[i], document.forward.module)) continue;
    for (const graph::ValueId id : graph.ops[i].inputs) {
      const auto& figures = document.forward.figures();
      const auto passed = level->scene->in_pass(id);
      const auto bytes = figures && passed ? figures->sizes[graph::index(*passed)] : std::nullopt;
      csv.row(maker[graph::index(id)], number(i), graph.values[graph::index(id)].name, sides_text(graph, id),
              bytes ? std::to_string(*bytes) : std::string());
    }
  }
  return csv.take();
}

std::string lifetimes(const Document& document) {
  pass_of(document);
  const auto data = pass_data(document.forward.scene.value(), document.forward.figures(), true);
  constexpr std::array<std::string_view, kPassLanes> kLanes = {
      "weight", "cache", "state", "gradient", "kept activation", "activation", "temporary"};
  Csv csv("lane,name,bytes,from_operator,to_operator");
  for (const LaneRows& lane : data->lanes)
    for (const PassRow& row : lane.rows)
      csv.row(kLanes[static_cast<std::size_t>(row.lane)], row_name(*data, row), row.bytes, row.ops.first,
              row.ops.end);
  return csv.take();
}

std::string buffers(const Document& document) {
  if (!document.arena->scene()) throw Error(ErrorCode::usage, "nothing is packed yet");
  const ArenaScene& scene = *document.arena->scene();
  Csv csv("buffer,lower,upper,size,offset");
  for (std::uint32_t i = 0; i < scene.of->problem.buffers.size(); ++i) {
    const packing::Buffer& buffer = scene.of->problem.buffers[i];
    csv.row(scene.of->name(i), buffer.lower, buffer.upper, buffer.size, scene.packing.offsets[i]);
  }
  return csv.take();
}

std::string histogram(const Document& document) {
  if (!document.values.picture.value()) throw Error(ErrorCode::usage, "no values are read yet");
  const inspect::ValueHistogram& histogram = document.values.picture.value()->histogram;
  const double width = (histogram.high - histogram.low) / static_cast<double>(histogram.counts.size());
  Csv csv("from,to,count");
  for (std::size_t i = 0; i < histogram.counts.size(); ++i)
    csv.row(histogram.low + width * static_cast<double>(i),
            histogram.low + width * static_cast<double>(i + 1), histogram.counts[i]);
  return csv.take();
}

std::string types(const Document& document) {
  Csv csv("dtype,tensors,bytes");
  for (const DTypeShare& share : document.model->dtypes)
    csv.row(graph::dtype_info(share.dtype).name, share.tensors, share.bytes);
  return csv.take();
}

std::string metadata(const Document& document) {
  constexpr std::size_t kMostValue = 1 << 20;
  Csv csv("key,value");
  for (const graph::MetaEntry& entry : document.model->graph->metadata)
    csv.row(entry.key, meta_line(entry.value, kMostValue));
  return csv.take();
}

std::string findings(const Document& document) {
  Csv csv("severity,text,cost,remedy");
  for (const inspect::Finding& finding : document.checks.findings.or_empty())
    csv.row(graph::severity_name(finding.severity), finding.text, finding.cost, finding.remedy);
  for (const graph::Note& note : document.model->graph->notes)
    csv.row(graph::severity_name(note.severity), note.text, "", "");
  return csv.take();
}

// What lies where in the files.
std::string file_parts(const Document& document) {
  constexpr std::array<std::string_view, view::kStripKinds> kKinds = {"header", "tensor", "alignment",
                                                                      "hole",   "record", "trailer"};
  const graph::MetaGraph& graph = *document.model->graph;
  Csv csv("file,kind,offset,bytes,tensor");
  const std::vector<view::FileStrip> strips = view::file_strips(graph);
  for (std::size_t i = 0; i < strips.size(); ++i)
    for (const view::StripPart& part : strips[i].parts)
      csv.row(graph.files[i].path, kKinds[static_cast<std::size_t>(part.kind)], part.offset, part.bytes,
              part.kind == view::StripKind::tensor ? graph.tensor(part.tensor).name.str() : std::string());
  return csv.take();
}

std::string differences(const Document& document) {
  if (!document.diff.result.value()) throw Error(ErrorCode::usage, "no models are compared yet");
  Csv csv("kind,tensor,here_type,here_shape,here_bytes,there_type,there_shape,there_bytes,numbers");
  for (const DiffRow& row : document.diff.result.value()->rows) {
    const DiffSide a = row.a.value_or(DiffSide()), b = row.b.value_or(DiffSide());
    csv.row(diff_kind_name(row.kind), row.name, a.type, a.shape, a.bytes, b.type, b.shape, b.bytes,
            row.detail);
  }
  return csv.take();
}

struct View {
  std::string_view panel;
  std::string (*rows)(const Document&);
};
constexpr auto kViews = std::to_array<View>({{"map", tensors},
                                             {"tensors", tensors},
                                             {"load", blocks},
                                             {"timeline", blocks},
                                             {"methods", methods_table},
                                             {"operators", operators},
                                             {"graph", flows},
                                             {"lifetimes", lifetimes},
                                             {"arena", buffers},
                                             {"values", histogram},
                                             {"model", types},
                                             {"bytes", file_parts},
                                             {"metadata", metadata},
                                             {"findings", findings},
                                             {"diff", differences}});

}  // namespace

std::string view_csv(const Document& document, std::string_view panel) {
  const auto view = std::ranges::find(kViews, panel, &View::panel);
  if (view == kViews.end()) throw Error(ErrorCode::usage, "the view '{}' has no rows", panel);
  const bool needs_model = panel != "arena";
  if (needs_model && !document.model) throw Error(ErrorCode::usage, "no model is open");
  return view->rows(document);
}

// --- The end of the file's name says what is written.

namespace {

constexpr unsigned kHundredths = 10;       // that a frame of a play is shown
constexpr unsigned kLastHundredths = 150;  // and the last one

FontFace face_of(const Ui& ui, const ImFont& font) {
  constexpr float kInterEm = 1 / 1.2102f, kMonoEm = 1 / 1.32f;  // ascent and descent of their tables
  if (&font == ui.fonts.mono) return {"JetBrains Mono, monospace", 400, kMonoEm};
  const bool strong = &font == ui.fonts.strong || &font == ui.fonts.title || &font == ui.fonts.hero;
  return {"Inter, sans-serif", strong ? 600 : 400, kInterEm};
}

// "play.png" becomes "play-0007.png".
std::string numbered(const std::string& path, std::size_t frame) {
  return fmt::format("{}-{:04}.png", path.substr(0, path.size() - 4), frame);
}

}  // namespace

void ViewExport::before_frame(Workspace& workspace, Window& window) {
  if (!request_)
    if (const auto wanted = workspace.services.requests.take<ExportRequest>())
      workspace.attempt([&] { begin(workspace, window, *wanted); });
  // viewers of drawings smooth edges themselves
  const bool plain = request_ && request_->path.ends_with(".svg");
  ImGuiStyle& style = ImGui::GetStyle();
  style.AntiAliasedLines = style.AntiAliasedFill = !plain;
}

namespace {

// Frames until the sheet is closed, and what depends on the layout, the theme or the scale has found its
// place.
constexpr int kSettle = 5;

}  // namespace

void ViewExport::begin(Workspace& workspace, Window& window, const ExportRequest& asked) {
  Document& document = workspace.document();
  if (asked.frames > 0) {
    if (!document.load.projection.value()) throw Error(ErrorCode::usage, "no load is projected");
    const std::size_t last = document.load.projection.value()->plan.steps.size();
    step_ = document.time.at_peak() ? std::nullopt : std::optional(document.time.step());
    steps_.clear();
    for (std::size_t i = 0; i < asked.frames; ++i)
      steps_.push_back(last * i / std::max<std::size_t>(1, asked.frames - 1));
    document.time.play(false);
    document.time.set_step(steps_.front());
  }
  frame_ = 0;
  gif_.reset();
  tries_ = 0;
  wait_ = kSettle;
  request_ = asked;
  if (!asked.size) return;
  frame_of_ = {asked.size->width, asked.size->height, asked.size->scale};
  if (asked.part != ViewPart::window) {
    frame_of_.width += kLeastWidth / 2;
    frame_of_.height += kLeastHeight / 2;
  }
  if (asked.part == ViewPart::timeline) {  // it takes a share of the window, unless a height is chosen
    height_ = workspace.settings.layout.timeline;
    workspace.settings.layout.timeline = static_cast<float>(asked.size->height);
    frame_of_.height += asked.size->height;
  }
  window.draw_aside(frame_of_);
}

// Makes the frame larger or smaller by what the part lacks of the size asked for; true once it has that.
bool ViewExport::fit(Workspace& workspace, Window& window, const ViewRect& part) {
  constexpr int kMostTries = 6;
  if (!request_->size || request_->part == ViewPart::window || ++tries_ > kMostTries) return true;
  const PictureSize& size = *request_->size;
  const auto lacks = [&](int wanted, float got) {
    return static_cast<int>(std::ceil((static_cast<float>(wanted) * size.scale - got) / size.scale - 0.5f));
  };
  const int wide = lacks(size.width, part.high.x - part.low.x);
  const int high = lacks(size.height, part.high.y - part.low.y);
  if (wide == 0 && high == 0) return true;
  frame_of_.width = std::max(frame_of_.width + wide, size.width);
  if (request_->part == ViewPart::timeline)
    workspace.settings.layout.timeline += static_cast<float>(high);
  else
    frame_of_.height = std::max(frame_of_.height + high, size.height);
  window.draw_aside(frame_of_);
  wait_ = kSettle;
  return false;
}

void ViewExport::after_frame(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& panel,
                             const ViewRect& timeline) {
  if (!request_ || --wait_ > 0) return;
  ViewRect part = request_->part == ViewPart::panel      ? panel
                  : request_->part == ViewPart::timeline ? timeline
                                                         : ViewRect{{0, 0}, ImGui::GetIO().DisplaySize};
  if (part.high.x <= part.low.x || part.high.y <= part.low.y) {
    workspace.attempt([] { throw Error(ErrorCode::usage, "the part to export is not shown"); });
    return end(workspace, window);
  }
  if (!fit(workspace, window, part)) return;
  if (const auto& size = request_->size; size && request_->part != ViewPart::window) {
    part.low = {std::round(part.low.x), std::round(part.low.y)};
    part.high = part.low + ImVec2{std::round(static_cast<float>(size->width) * size->scale),
                                  std::round(static_cast<float>(size->height) * size->scale)};
  }
  bool done = true;  // also where it fails
  workspace.attempt([&] { done = write(workspace, window, ui, part); });
  if (done) end(workspace, window);
}

// True once all is written.
bool ViewExport::write(Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part) {
  if (request_->frames > 0) {
    if (!write_frame(workspace, window)) return false;
  } else {
    write_view(workspace, window, ui, part);
  }
  // with the folder, which nobody has typed
  std::error_code failed;
  const std::string whole = std::filesystem::absolute(request_->path, failed).string();
  workspace.services.done =
      request_->copies ? "Copied to the clipboard"
                       : fmt::format("Written: {}", safe_display(failed ? request_->path : whole, 120));
  return true;
}

void ViewExport::end(Workspace& workspace, Window& window) {
  if (request_->frames > 0) workspace.document().time.set_step(step_);
  if (height_) workspace.settings.layout.timeline = *height_;
  height_.reset();
  request_.reset();
  gif_.reset();
  window.draw_aside({});
}

void ViewExport::write_view(const Workspace& workspace, Window& window, const Ui& ui, const ViewRect& part) {
  const std::string& path = request_->path;
  const auto put = [&](const std::string& words) {
    if (request_->copies)
      ImGui::SetClipboardText(words.c_str());
    else
      report::write_file(path, words);
  };
  if (path.ends_with(".csv"))
    return put(view_csv(workspace.document(),
                        request_->part == ViewPart::timeline ? "timeline" : workspace.settings.panel));
  if (path.ends_with(".svg"))
    return put(draw_svg(*ImGui::GetDrawData(), part.low, part.high,
                        [&](const ImFont& font) { return face_of(ui, font); }));
  const auto pixel = [](float at) { return static_cast<std::uint32_t>(std::max(0.0f, at)); };
  const Picture picture = cropped(window.picture(), pixel(part.low.x), pixel(part.low.y),
                                  pixel(part.high.x - part.low.x), pixel(part.high.y - part.low.y));
  if (request_->copies)
    copy_picture(picture);
  else
    write_png(picture, path);
}

// One frame of a play, and the cursor on for the next; true after the last.
bool ViewExport::write_frame(Workspace& workspace, Window& window) {
  const Picture picture = window.picture();
  const bool last = frame_ + 1 == steps_.size();
  if (request_->path.ends_with(".png")) {
    write_png(picture, numbered(request_->path, frame_ + 1));
  } else {
    if (!gif_) gif_ = std::make_unique<GifFile>(picture.width, picture.height);
    gif_->add(picture, last ? kLastHundredths : kHundredths);
    if (last) gif_->write(request_->path);
  }
  if (last) return true;
  workspace.document().time.set_step(steps_[++frame_]);
  wait_ = 1;
  return false;
}

}  // namespace loadline::gui
