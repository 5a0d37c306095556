// Stacked columns in eighths of a line; without colors each space has its own shade.
#include "app/cli/plan/plan_display.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace loadline::cli {
namespace {

using report::CurveBand;
using report::RowCurve;

constexpr std::size_t kGutter = 11;  // fits "306.74 MiB "
constexpr std::size_t kEighths = 8;

struct Ink {
  std::string_view shade;  // a full cell without colors
  std::string_view ascii;
  int color;  // ANSI foreground color; background is 10 more
};

// By space: host, page cache, staging, device.
constexpr plan::PerSpace<Ink> kInks = {{{"▓", "o", 33}, {"░", ".", 35}, {"▒", "=", 32}, {"█", "#", 34}}};

std::string_view lower_part(std::size_t eighths) {
  constexpr std::array<std::string_view, kEighths + 1> kParts = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return kParts[std::min(eighths, kEighths)];
}

// The upper end of each space in a column, in eighths of a line from the axis.
struct Stack {
  std::vector<plan::Space> spaces = {};
  std::vector<std::size_t> tops = {};
  std::size_t top() const { return tops.empty() ? 0 : tops.back(); }
};

Stack stack_in(const plan::PerSpace<std::uint64_t>& bytes, unsigned mask, std::uint64_t scale,
               std::size_t lines) {
  Stack stack;
  const double eighth = static_cast<double>(scale) / static_cast<double>(lines * kEighths);
  double sum = 0;
  for (const plan::Space space : plan::spaces_in(mask)) {
    if (bytes[plan::index(space)] == 0) continue;
    sum += static_cast<double>(bytes[plan::index(space)]);
    // at least one eighth for any bytes, so that they are visible
    const auto least = stack.top() + (stack.tops.empty() ? 1 : 0);
    stack.spaces.push_back(space);
    stack.tops.push_back(std::max(least, static_cast<std::size_t>(std::lround(sum / eighth))));
  }
  return stack;
}

// One character and its ANSI colors; empty: the terminal's own.
struct Cell {
  std::string colors = {};
  std::string glyph = {};
};

// The cell of a column that covers the eight eighths from `floor` on.
Cell cell(const Stack& stack, std::size_t floor, const PlotStyle& style, std::string_view empty) {
  if (stack.top() <= floor) return {"", std::string(empty)};
  std::size_t at = 0;
  while (stack.tops[at] <= floor) ++at;
  const std::size_t filled = std::min(stack.tops[at] - floor, kEighths);
  const Ink ink = kInks[plan::index(stack.spaces[at])];
  const bool more = filled < kEighths && stack.top() > stack.tops[at];
  const Ink next = kInks[plan::index(stack.spaces[std::min(at + 1, stack.spaces.size() - 1)])];
  if (style.color && style.unicode)
    return {more ? fmt::format("{};{}", ink.color, next.color + 10) : std::to_string(ink.color),
            std::string(lower_part(filled))};
  const bool mostly = filled >= kEighths / 2;
  const std::string colors = style.color ? std::to_string(more && !mostly ? next.color : ink.color) : "";
  const Ink shown = more && !mostly ? next : ink;
  if (!style.unicode) return {colors, std::string(mostly || more || floor == 0 ? shown.ascii : empty)};
  // a stack that ends in this cell is drawn in eighths, except shades, which have no partial blocks
  const bool eighths = !more && (!mostly || stack.spaces[at] == plan::Space::device);
  return {colors, std::string(eighths ? lower_part(filled) : shown.shade)};
}

// Joins cells; changes colors only where they differ, and drops trailing blanks.
std::string joined(const std::vector<Cell>& cells) {
  std::size_t count = cells.size();
  while (count > 0 && cells[count - 1].glyph == " ") --count;
  std::string text, colors;
  for (std::size_t i = 0; i < count; ++i) {
    if (cells[i].colors != colors) {
      colors = cells[i].colors;
      text += colors.empty() ? "\033[0m" : fmt::format("\033[0;{}m", colors);
    }
    text += cells[i].glyph;
  }
  return colors.empty() ? text : text + "\033[0m";
}

class Plot {
 public:
  Plot(const load::LoadRow& row, const RowCurve& curve, std::uint64_t scale, const PlotStyle& style)
      : row_(row), curve_(curve), scale_(scale), style_(style) {
    constexpr std::size_t kLeast = 20;
    width_ = std::min(std::max(style.columns, kGutter + 2 + kLeast) - kGutter - 2, most_columns());
  }

  std::string text() const {
    std::string text = head();
    if (std::ranges::all_of(curve_.bands, [](const CurveBand& band) { return band.most == 0; }))
      return text + "  nothing is loaded\n";
    for (const CurveBand& band : curve_.bands) text += band_text(band, &band == &curve_.bands.front());
    return text + axis_text();
  }

 private:
  std::size_t most_columns() const { return curve_.bands.front().columns.size(); }
  std::size_t column_of(double place) const {
    return std::min(static_cast<std::size_t>(place * static_cast<double>(width_)), width_ - 1);
  }

  std::string head() const {
    const std::string title = fmt::format("{} ({})", row_.method->id, safe_display(row_.order, 40));
    return style_.color ? fmt::format("\033[1m{}\033[0m\n", title) : title + "\n";
  }

  // A line that marks and names the deciding peak above its position.
  std::string peak_line() const {
    const std::string text = fmt::format("{} at {}", format_bytes(row_.deciding_peak.bytes),
                                         safe_display(row_.deciding_peak.tensor, 48));
    const std::string_view arrow = style_.unicode ? "▼" : "v";
    const std::size_t at = column_of(curve_.peak_place), width = display_width(text);
    const std::string gutter(kGutter + 1, ' ');
    if (at + 2 + width <= width_)
      return fmt::format("{}{}{} {}\n", gutter, std::string(at, ' '), arrow, text);
    const std::size_t gap = at > width + 1 ? at - width - 1 : 0;
    return fmt::format("{}{}{} {}\n", gutter, std::string(gap, ' '), text, arrow);
  }

  std::string band_text(const CurveBand& band, bool first) const {
    constexpr std::size_t kFirst = 8, kOther = 5;
    if (band.most == 0) return first ? gutter_line("", "nothing") : "";
    const std::size_t lines = first ? kFirst : kOther;
    const auto columns = view::fewer_columns(band.columns, band.mask, width_);
    std::vector<Stack> stacks;
    for (const view::UsageColumn& column : columns)
      stacks.push_back(stack_in(column.bytes, band.mask, scale_, lines));
    const std::size_t loaded = curve_.has_pass ? column_of(curve_.loaded_place) : width_;
    std::string text = first ? peak_line() : "";
    for (std::size_t line = lines; line-- > 0;) {
      std::vector<Cell> cells;
      for (std::size_t i = 0; i < stacks.size(); ++i)
        cells.push_back(
            cell(stacks[i], line * kEighths, style_, i == loaded ? (style_.unicode ? "┊" : ":") : " "));
      text += gutter_line(label(line, lines), joined(cells));
    }
    std::string rule;
    for (std::size_t i = 0; i < width_; ++i)
      rule += i == loaded ? (style_.unicode ? "┼" : "+") : style_.unicode ? "─" : "-";
    return text +
           fmt::format("{:>{}}{}{}\n", band_name(band.mask), kGutter, style_.unicode ? "└" : "+", rule);
  }

  std::string_view band_name(unsigned mask) const {
    if (mask == plan::kAllSpaces) return "memory ";
    return mask == plan::space_bit(plan::Space::device) ? "device " : "host ";
  }

  // The scale is shown at the top of the first line and in the middle.
  std::string label(std::size_t line, std::size_t lines) const {
    if (line + 1 == lines) return format_bytes(scale_) + " ";
    return line + 1 == lines / 2 && lines % 2 == 0 ? format_bytes(scale_ / 2) + " " : "";
  }

  std::string gutter_line(std::string_view label, std::string_view cells) const {
    return fmt::format("{:>{}}{}{}\n", label, kGutter, style_.unicode ? "│" : "|", cells);
  }

  std::string axis_text() const {
    const bool steps = curve_.axis == view::RunAxis::steps;
    std::string end =
        steps ? counted(static_cast<std::uint64_t>(curve_.end), "step") : format_seconds(curve_.end);
    constexpr std::string_view kLoaded = "loaded", kFirst = "first token, ";
    const std::size_t at = curve_.has_pass ? column_of(curve_.loaded_place) : 0;
    if (curve_.has_pass && at + kFirst.size() + end.size() + 1 < width_) end.insert(0, kFirst);
    std::string line(width_, ' ');
    line.replace(0, 1, "0");
    if (end.size() + 2 < width_) line.replace(width_ - end.size(), end.size(), end);
    if (at > kLoaded.size() + 1 && at + end.size() + 1 < width_)
      line.replace(at - kLoaded.size(), kLoaded.size(), kLoaded);
    line.erase(line.find_last_not_of(' ') + 1);
    return std::string(kGutter + 1, ' ') + line + "\n";
  }

  const load::LoadRow& row_;
  const RowCurve& curve_;
  std::uint64_t scale_;
  PlotStyle style_;
  std::size_t width_ = 0;
};

std::string legend(const PlanDisplay& view, const PlotStyle& style) {
  std::string text;
  for (const plan::Space space : plan::kSpaceOrder) {
    const Ink ink = kInks[plan::index(space)];
    const std::string_view sign = style.unicode ? (style.color ? "█" : ink.shade) : ink.ascii;
    text += text.empty() ? "" : "   ";
    text += style.color ? fmt::format("\033[{}m{}\033[0m {}", ink.color, sign, plan::space_title(space))
                        : fmt::format("{} {}", sign, plan::space_title(space));
  }
  const bool unified = view.unified();
  return text + fmt::format("   {} {}\n", style.unicode ? "▼" : "v",
                            unified ? "unified peak" : "peak on the device");
}

}  // namespace

std::string plan_plots(const PlanDisplay& view, const PlotStyle& style) {
  const auto& curves = view.answered.curves;
  std::uint64_t scale = 1;
  for (const auto& curve : curves)
    if (curve)
      for (const CurveBand& band : curve->bands) scale = std::max(scale, band.most);
  std::string text;
  for (std::size_t i = 0; i < curves.size(); ++i)
    if (curves[i]) text += "\n" + Plot(view.answer().rows[i], *curves[i], scale, style).text();
  return text.empty() ? text : text + "\n" + legend(view, style);
}

}  // namespace loadline::cli
