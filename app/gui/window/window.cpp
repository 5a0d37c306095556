// The ImGui context, and the desktop's theme over D-Bus.
#include "app/gui/window/window.h"

#include <algorithm>
#include <cfloat>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include <dbus/dbus.h>  // its types only
#include <dlfcn.h>
#include <imgui.h>

namespace loadline::gui {

// --- The ImGui context.

Window::Window() {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // the layout follows the window, nothing to remember
  io.LogFilename = nullptr;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  // long lists and maps go past 65536 vertices; every renderer here can offset them
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
}

Window::~Window() { ImGui::DestroyContext(); }

void Window::set_mouse(float, float, bool) {}

void Window::prepare_mouse() const {
  if (!mouse_hidden_) return;
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = {-FLT_MAX, -FLT_MAX};
  std::ranges::fill(io.MouseDown, false);
  io.MouseWheel = io.MouseWheelH = 0;
}

bool Window::wait_events(double seconds) {
  // nothing but a job can change what a still window shows
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return false;
}

// --- One call of the portal's Settings interface.

namespace {

// libdbus is opened when it is first asked: linked, it would take a tenth of every start of the program, with
// the libraries that it needs in turn.
struct DBus {
  decltype(&dbus_bus_get_private) get_private = nullptr;
  decltype(&dbus_connection_set_exit_on_disconnect) set_exit_on_disconnect = nullptr;
  decltype(&dbus_connection_send_with_reply_and_block) send_with_reply = nullptr;
  decltype(&dbus_connection_close) close = nullptr;
  decltype(&dbus_connection_unref) drop_connection = nullptr;
  decltype(&dbus_message_new_method_call) new_call = nullptr;
  decltype(&dbus_message_append_args) append = nullptr;
  decltype(&dbus_message_unref) drop_message = nullptr;
  decltype(&dbus_message_iter_init) iterate = nullptr;
  decltype(&dbus_message_iter_get_arg_type) type_at = nullptr;
  decltype(&dbus_message_iter_recurse) enter = nullptr;
  decltype(&dbus_message_iter_get_basic) value_at = nullptr;
};

// Nothing where it is not installed.
std::optional<DBus> open_dbus() {
  void* const library = ::dlopen("libdbus-1.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  DBus bus;
  const auto find = [&]<typename Function>(const char* name, Function& place) {
    place = reinterpret_cast<Function>(::dlsym(library, name));
    return place != nullptr;
  };
  const bool whole =
      find("dbus_bus_get_private", bus.get_private) &&
      find("dbus_connection_set_exit_on_disconnect", bus.set_exit_on_disconnect) &&
      find("dbus_connection_send_with_reply_and_block", bus.send_with_reply) &&
      find("dbus_connection_close", bus.close) && find("dbus_connection_unref", bus.drop_connection) &&
      find("dbus_message_new_method_call", bus.new_call) && find("dbus_message_append_args", bus.append) &&
      find("dbus_message_unref", bus.drop_message) && find("dbus_message_iter_init", bus.iterate) &&
      find("dbus_message_iter_get_arg_type", bus.type_at) && find("dbus_message_iter_recurse", bus.enter) &&
      find("dbus_message_iter_get_basic", bus.value_at);
  return whole ? std::optional(bus) : std::nullopt;
}

struct Close {
  const DBus* bus;
  void operator()(DBusConnection* connection) const {
    bus->close(connection);
    bus->drop_connection(connection);
  }
};
struct Drop {
  const DBus* bus;
  void operator()(DBusMessage* message) const { bus->drop_message(message); }
};
using Connection = std::unique_ptr<DBusConnection, Close>;
using Message = std::unique_ptr<DBusMessage, Drop>;

// libdbus would start a bus where there is none.
bool has_session_bus() {
  if (std::getenv("DBUS_SESSION_BUS_ADDRESS") != nullptr) return true;
  const char* const folder = std::getenv("XDG_RUNTIME_DIR");
  std::error_code failed;
  return folder != nullptr && std::filesystem::exists(std::string(folder) + "/bus", failed);
}

// The number inside of variants inside of variants.
std::optional<std::uint32_t> number_in(const DBus& bus, DBusMessage* reply) {
  DBusMessageIter at;
  if (bus.iterate(reply, &at) == 0) return std::nullopt;
  while (bus.type_at(&at) == DBUS_TYPE_VARIANT) {
    DBusMessageIter inside;
    bus.enter(&at, &inside);
    at = inside;
  }
  if (bus.type_at(&at) != DBUS_TYPE_UINT32) return std::nullopt;
  dbus_uint32_t number = 0;
  bus.value_at(&at, &number);
  return number;
}

}  // namespace

std::optional<bool> desktop_prefers_dark() {
  constexpr int kMostMilliseconds = 500;
  if (!has_session_bus()) return std::nullopt;
  static const std::optional<DBus> bus = open_dbus();
  if (!bus) return std::nullopt;
  const Connection connection(bus->get_private(DBUS_BUS_SESSION, nullptr), Close{&*bus});
  if (!connection) return std::nullopt;
  bus->set_exit_on_disconnect(connection.get(), 0);
  const Message call(bus->new_call("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
                                   "org.freedesktop.portal.Settings", "Read"),
                     Drop{&*bus});
  const char* const space = "org.freedesktop.appearance";
  const char* const key = "color-scheme";
  if (!call ||
      bus->append(call.get(), DBUS_TYPE_STRING, &space, DBUS_TYPE_STRING, &key, DBUS_TYPE_INVALID) == 0)
    return std::nullopt;
  const Message reply(bus->send_with_reply(connection.get(), call.get(), kMostMilliseconds, nullptr),
                      Drop{&*bus});
  if (!reply) return std::nullopt;
  switch (number_in(*bus, reply.get()).value_or(0)) {
    case 1:
      return true;
    case 2:
      return false;
    default:
      return std::nullopt;
  }
}

}  // namespace loadline::gui
