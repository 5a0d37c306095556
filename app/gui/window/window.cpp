// The ImGui context, and the desktop's theme over D-Bus.
#include "app/gui/window/window.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include <dbus/dbus.h>
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

bool Window::wait_events(double seconds) {
  // nothing but a job can change what a still window shows
  if (seconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return false;
}

// --- One call of the portal's Settings interface.

namespace {

struct Close {
  void operator()(DBusConnection* connection) const {
    dbus_connection_close(connection);
    dbus_connection_unref(connection);
  }
};
struct Drop {
  void operator()(DBusMessage* message) const { dbus_message_unref(message); }
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
std::optional<std::uint32_t> number_in(DBusMessage* reply) {
  DBusMessageIter at;
  if (dbus_message_iter_init(reply, &at) == 0) return std::nullopt;
  while (dbus_message_iter_get_arg_type(&at) == DBUS_TYPE_VARIANT) {
    DBusMessageIter inside;
    dbus_message_iter_recurse(&at, &inside);
    at = inside;
  }
  if (dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_UINT32) return std::nullopt;
  dbus_uint32_t number = 0;
  dbus_message_iter_get_basic(&at, &number);
  return number;
}

}  // namespace

std::optional<bool> desktop_prefers_dark() {
  constexpr int kMostMilliseconds = 500;
  if (!has_session_bus()) return std::nullopt;
  const Connection connection(dbus_bus_get_private(DBUS_BUS_SESSION, nullptr));
  if (!connection) return std::nullopt;
  dbus_connection_set_exit_on_disconnect(connection.get(), 0);
  const Message call(dbus_message_new_method_call("org.freedesktop.portal.Desktop",
                                                  "/org/freedesktop/portal/desktop",
                                                  "org.freedesktop.portal.Settings", "Read"));
  const char* const space = "org.freedesktop.appearance";
  const char* const key = "color-scheme";
  if (!call || dbus_message_append_args(call.get(), DBUS_TYPE_STRING, &space, DBUS_TYPE_STRING, &key,
                                        DBUS_TYPE_INVALID) == 0)
    return std::nullopt;
  const Message reply(
      dbus_connection_send_with_reply_and_block(connection.get(), call.get(), kMostMilliseconds, nullptr));
  if (!reply) return std::nullopt;
  switch (number_in(reply.get()).value_or(0)) {
    case 1:
      return true;
    case 2:
      return false;
    default:
      return std::nullopt;
  }
}

}  // namespace loadline::gui
