// What is to be written to a file of what is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace loadline::gui {

// A file of what is seen; the end of its name says what it holds: .png, .svg, .csv, and for a play .gif or
// the .png of a numbered series.
enum class ViewPart : std::uint8_t { panel, timeline, window };
struct ExportRequest {
  std::string path;
  ViewPart part = ViewPart::panel;
  std::size_t frames = 0;  // of a play from the beginning to the end of the load; 0: what is seen now
  bool operator==(const ExportRequest&) const = default;
};

}  // namespace loadline::gui
