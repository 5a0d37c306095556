// What mends a fault must exist: every remedy names an option of one of the three tables and a value for it.
#include "core/base/error.h"
#include "core/inspect/doctor.h"
#include "core/io/atomic_file.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// Throws Error{usage} where the option does not take the value; false where there is no such option.
bool takes(const Remedy& remedy) {
  for (const auto& option : open_options())
    if (option.id == remedy.option) {
      ResolveOptions values;
      set_option(option, values, remedy.value);
      return true;
    }
  if (const auto* const option = find_option(convert_options(), remedy.option)) {
    ConvertRequest values;
    set_option(*option, values, remedy.value);
    return true;
  }
  if (find_load_option(remedy.option) == nullptr) return false;
  LoadRequest values;
  set_load_option(values, remedy.option, remedy.value);
  return true;
}

// Each {"id", "value"} in the sources of the core that stands where a remedy does.
std::set<std::pair<std::string, std::string>> remedies_in_sources() {
  namespace fs = std::filesystem;
  std::set<std::pair<std::string, std::string>> found;
  const std::regex with(R"re(\.with\(\{"([a-z_]+)", "([^"]*)"\}\))re");
  const std::regex settings(R"re(\.settings = \{(.*)\})re");
  const std::regex pair(R"re(\{"([a-z_]+)", "([^"]*)"\})re");
  for (const char* folder : {"core", "importers", "exporters"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(LOADLINE_SOURCES) / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      std::stringstream stream;
      stream << std::ifstream(entry.path()).rdbuf();
      const std::string text = stream.str();
      for (std::sregex_iterator at(text.begin(), text.end(), with), end; at != end; ++at)
        found.emplace((*at)[1], (*at)[2]);
      for (std::sregex_iterator at(text.begin(), text.end(), settings), end; at != end; ++at) {
        const std::string list = (*at)[1];
        for (std::sregex_iterator one(list.begin(), list.end(), pair); one != end; ++one)
          found.emplace((*one)[1], (*one)[2]);
      }
    }
  return found;
}

TEST(Remedies, NameOptionsThatThereAre) {
  const auto found = remedies_in_sources();
  EXPECT_GE(found.size(), 7u);
  for (const auto& [option, value] : found) {
    SCOPED_TRACE(option + " " + value);
    EXPECT_TRUE(takes({option, value}));
  }
  EXPECT_FALSE(takes({"nothing", "on"}));
  EXPECT_TRUE(found.contains({"follow_links", "on"}));
  EXPECT_TRUE(found.contains({"force", "on"}));
  EXPECT_TRUE(found.contains({"align", "64"}));
}

TEST(Remedies, GoWithTheError) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "there", "x");
  AtomicFile file(folder / "there");
  file.sync();
  try {
    file.rename_into_place(false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.remedy(), (Remedy{"force", "on"}));
    EXPECT_EQ(std::string(error.what()).find("--"), std::string::npos);
  }
  try {
    (void)exporter_for_output("model.xyz");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.remedy(), (Remedy{"to", "safetensors"}));
  }
}

}  // namespace
}  // namespace loadline
