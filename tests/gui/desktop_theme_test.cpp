// The desktop's answer to what theme it wants: a bus and a portal of this test's own.
#include "app/gui/window/window.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <dbus/dbus.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::gui {
namespace {

// A session bus, for as long as the object lives; without an address where dbus-daemon is not installed.
class Bus {
 public:
  Bus() {
    std::array<int, 2> ends = {};
    if (pipe(ends.data()) != 0) return;
    daemon_ = fork();
    if (daemon_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
             nullptr);
      _exit(127);
    }
    close(ends[1]);
    char letter = 0;
    while (read(ends[0], &letter, 1) == 1 && letter != '\n') address += letter;
    close(ends[0]);
    if (!address.empty()) setenv("DBUS_SESSION_BUS_ADDRESS", address.c_str(), 1);
  }
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;
  ~Bus() {
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    if (daemon_ <= 0) return;
    kill(daemon_, SIGTERM);
    waitpid(daemon_, nullptr, 0);
  }

  std::string address;

 private:
  pid_t daemon_ = -1;
};

// Answers every call with a number, two variants deep.
class Portal {
 public:
  explicit Portal(std::uint32_t scheme) : scheme_(scheme) {
    connection_ = dbus_bus_get_private(DBUS_BUS_SESSION, nullptr);
    dbus_connection_set_exit_on_disconnect(connection_, 0);
    dbus_bus_request_name(connection_, "org.freedesktop.portal.Desktop", 0, nullptr);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  Portal(const Portal&) = delete;
  Portal& operator=(const Portal&) = delete;
  ~Portal() {
    thread_.request_stop();
    thread_.join();
    dbus_connection_close(connection_);
    dbus_connection_unref(connection_);
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      dbus_connection_read_write(connection_, 20);
      DBusMessage* const call = dbus_connection_pop_message(connection_);
      if (call == nullptr) continue;
      if (dbus_message_is_method_call(call, "org.freedesktop.portal.Settings", "Read") != 0) answer(call);
      dbus_message_unref(call);
    }
  }
  void answer(DBusMessage* call) {
    DBusMessage* const reply = dbus_message_new_method_return(call);
    DBusMessageIter at, outer, inner;
    dbus_message_iter_init_append(reply, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_VARIANT, "v", &outer);
    dbus_message_iter_open_container(&outer, DBUS_TYPE_VARIANT, "u", &inner);
    const dbus_uint32_t number = scheme_;
    dbus_message_iter_append_basic(&inner, DBUS_TYPE_UINT32, &number);
    dbus_message_iter_close_container(&outer, &inner);
    dbus_message_iter_close_container(&at, &outer);
    dbus_connection_send(connection_, reply, nullptr);
    dbus_connection_flush(connection_);
    dbus_message_unref(reply);
  }

  std::uint32_t scheme_;
  DBusConnection* connection_ = nullptr;
  std::jthread thread_;
};

TEST(DesktopTheme, IsWhatThePortalSays) {
  const Bus bus;
  if (bus.address.empty()) GTEST_SKIP() << "dbus-daemon is not installed";
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt) << "there is no portal yet";
  for (const auto& [scheme, dark] :
       {std::pair(0u, std::optional<bool>()), {1u, true}, {2u, false}, {7u, {}}}) {
    const Portal portal(scheme);
    EXPECT_EQ(desktop_prefers_dark(), dark) << scheme;
  }
}

TEST(DesktopTheme, IsUnknownWithoutABus) {
  unsetenv("DBUS_SESSION_BUS_ADDRESS");
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt);
  setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
  EXPECT_EQ(desktop_prefers_dark(), std::nullopt);
}

}  // namespace
}  // namespace loadline::gui
