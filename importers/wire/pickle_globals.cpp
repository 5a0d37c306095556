// The lists of names that only serve to run code.
#include "importers/wire/pickle_globals.h"

#include "core/base/word_list.h"

#include <string_view>

namespace loadline {
namespace {

// Modules that only a pickle meant to run code names. Reading is safe without this list, because nothing is
// ever called. The list allows a clear error message.
constexpr std::string_view kCodeModules =
    "_posixsubprocess asyncio bdb code codeop commands cProfile ctypes doctest ensurepip idlelib imp "
    "importlib marshal nt operator os pdb pickle pip pkgutil posix profile pty pydoc runpy shelve shutil "
    "socket subprocess sys timeit venv webbrowser";
// The names in builtins that do not run code.
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
