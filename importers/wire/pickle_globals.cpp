// The names that a pickle may or may not mention.
#include "importers/wire/pickle_globals.h"

#include "core/graph/word_list.h"

#include <string_view>

namespace loadline {
namespace {

// Modules that only a pickle meant to run something names. Not what makes reading safe, for nothing is ever
// called; it lets such a file be refused by name.
constexpr std::string_view kCodeModules =
    "_posixsubprocess asyncio bdb code codeop commands cProfile ctypes doctest ensurepip idlelib imp "
    "importlib marshal nt operator os pdb pickle pip pkgutil posix profile pty pydoc runpy shelve shutil "
    "socket subprocess sys timeit venv webbrowser";
// What the builtins hold besides functions that run something.
constexpr std::string_view kDataBuiltins =
    "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple Ellipsis";

}  // namespace

PickleGlobal modern_global(PickleGlobal global) {
  if (global.module == "copy_reg") global.module = "copyreg";
  if (global.module == "__builtin__") {
    global.module = "builtins";
    if (global.name == "long") global.name = "int";
    if (global.name == "unicode") global.name = "str";
    if (global.name == "xrange") global.name = "range";
  }
  return global;
}

bool runs_code(const PickleGlobal& global) {
  if (global.module == "builtins") return !has_word(kDataBuiltins, global.name);
  const std::string_view package = std::string_view(global.module).substr(0, global.module.find('.'));
  return has_word(kCodeModules, package);
}

}  // namespace loadline
