// The program: the command line, and behind one of its commands the window.
#include "app/cli/base/command.h"
#ifdef LOADLINE_HAS_GUI
#include "app/gui_request.h"
#endif

int main(int argc, char** argv) {
#ifdef LOADLINE_HAS_GUI
  return loadline::cli::run(argc, argv, loadline::gui::run_gui);
#else
  return loadline::cli::run(argc, argv, nullptr);
#endif
}
