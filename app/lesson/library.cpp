// The built-in lessons, and those of a user's folder.
#include "app/lesson/lesson.h"
#include "core/assets/asset_folder.h"
#include "core/base/lookup.h"
#include "embedded/lessons_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace loadline::lesson {
namespace {

// From the one that needs nothing to those that build on others.
constexpr std::array<std::string_view, 13> kTeachingOrder = {
    "six-ways",  "meta-device",     "mmap",         "anonymous", "lazy-allocation", "order",  "staging-ring",
    "lifetimes", "offline-packing", "quantisation", "sparsity",  "kv-cache",        "experts"};

std::size_t teaching_place(const Lesson& lesson) {
  return static_cast<std::size_t>(std::ranges::find(kTeachingOrder, lesson.id) - kTeachingOrder.begin());
}

std::vector<Lesson> built_in_lessons() {
  std::vector<Lesson> lessons;
  const auto files = embedded::lessons_files();
  for (const embedded::File& file : files) {
    if (!file.name.ends_with(".json")) continue;
    const std::string text_name = std::string(file.name.substr(0, file.name.size() - 5)) + ".md";
    const auto text = std::ranges::find(files, text_name, &embedded::File::name);
    lessons.push_back(parse_lesson(file.bytes, text == files.end() ? std::string_view() : text->bytes,
                                   std::string(file.name)));
  }
  std::ranges::stable_sort(lessons, {}, teaching_place);
  return lessons;
}

}  // namespace

Lesson read_lesson(const std::string& path) {
  const std::string beside = std::filesystem::path(path).replace_extension(".md").string();
  return parse_lesson(asset_text(path), asset_text(beside), path);
}

const Lesson& Lessons::find(std::string_view id) const {
  return find_row(std::span<const Lesson>(all), id, "lesson");
}

Lessons load_lessons(const std::string& folder) {
  Lessons lessons;
  lessons.all = built_in_lessons();
  if (folder.empty()) return lessons;
  for (const std::string& path : json_files(folder)) {
    try {
      Lesson own = read_lesson(path);
      const auto same = std::ranges::find(lessons.all, own.id, &Lesson::id);
      if (same != lessons.all.end())
        *same = std::move(own);
      else
        lessons.all.push_back(std::move(own));
    } catch (const Error& error) {
      lessons.faults.emplace_back(error.what());
    }
  }
  return lessons;
}

}  // namespace loadline::lesson
