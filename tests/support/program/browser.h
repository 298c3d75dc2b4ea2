#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_directory.h"

namespace systole::test {

/// Chromium, or empty if this computer has none: CHROMIUM names another one.
inline std::string chromium_path() {
  const char* const named = std::getenv("CHROMIUM");
  const std::string path = named != nullptr ? named : "/usr/bin/chromium";
  return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

/// A headless Chromium that shows one page, driven by its DevTools protocol over two pipes:
/// messages are JSON texts that end with a zero byte (chromedevtools.github.io/devtools-protocol).
class Browser {
 public:
  using Json = nlohmann::json;

  /// `width` and `height` of the window in px.
  explicit Browser(int width = 1400, int height = 1000) {
    std::array<int, 2> to{}, from{};
    if (::pipe(to.data()) != 0 || ::pipe(from.data()) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      // Out of the way of 3 and 4, which are the browser's.
      const int in = ::fcntl(to[0], F_DUPFD, 10), out = ::fcntl(from[1], F_DUPFD, 10);
      ::dup2(in, 3);
      ::dup2(out, 4);
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 1);
      ::dup2(null, 2);
      for (int file = 5; file < 64; ++file) ::close(file);
      ::setpgid(0, 0);
      const std::string path = chromium_path(), data = "--user-data-dir=" + profile_.path(),
                        size =
                            "--window-size=" + std::to_string(width) + "," + std::to_string(height);
      ::execl(path.c_str(), path.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
              "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", data.c_str(),
              size.c_str(), "about:blank", nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    write_ = to[1];
    read_ = from[0];
    const Json target = call("Target.createTarget", {{"url", "about:blank"}});
    session_ =
        call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
            .at("sessionId");
    for (const char* domain : {"Page", "Runtime", "Log", "Network"}) {
      call(std::string(domain) + ".enable");
    }
  }
  ~Browser() {
    ::close(write_);
    ::close(read_);
    ::kill(-child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Opens a file and waits until the page says that it is drawn, or why not. The ms that it took
  /// from the beginning of the navigation.
  double open(const std::string& path) {
    errors_.clear();
    requests_.clear();
    call("Page.navigate", {{"url", "file://" + std::filesystem::absolute(path).string()}});
    for (;;) {
      const Json state = evaluate(
          "((root) => root && (root.dataset.failure || +root.dataset.ready))"
          "(document.documentElement)");
      if (state.is_string()) throw std::runtime_error("page: " + state.dump());
      if (state.is_number()) return state.get<double>();
      ::usleep(10000);
    }
  }

  /// The value of an expression, a promise's when it is fulfilled.
  Json evaluate(const std::string& expression) {
    const Json answer =
        call("Runtime.evaluate",
             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (answer.contains("exceptionDetails")) {
      throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
    }
    return answer.at("result").value("value", Json(nullptr));
  }

  /// The page on paper, base64 of a PDF.
  std::string print() {
    return call("Page.printToPDF", {{"preferCSSPageSize", true}, {"printBackground", true}})
        .at("data");
  }

  /// Processor time of the page's process so far, all its threads.
  double processor_seconds() {
    call("Performance.enable", {{"timeDomain", "threadTicks"}});
    const Json metrics = call("Performance.getMetrics").at("metrics");
    for (const Json& metric : metrics) {
      if (metric.at("name") == "ProcessTime") return metric.at("value");
    }
    throw std::runtime_error("no ProcessTime: " + metrics.dump());
  }

  /// What the console showed as an error, and exceptions, since open().
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }
  /// Addresses that the page asked for, itself aside.
  [[nodiscard]] std::vector<std::string> requests() const {
    std::vector<std::string> others;
    for (std::size_t i = 1; i < requests_.size(); ++i) others.push_back(requests_[i]);
    return others;
  }

 private:
  Json call(const std::string& method, Json parameters = Json::object()) {
    Json message{{"id", ++id_}, {"method", method}, {"params", std::move(parameters)}};
    if (!session_.empty()) message["sessionId"] = session_;
    const std::string text = message.dump() + '\0';
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t sent = ::write(write_, text.data() + at, text.size() - at);
      if (sent <= 0) throw std::runtime_error("Chromium does not listen");
      at += static_cast<std::size_t>(sent);
    }
    for (;;) {
      const Json answer = next();
      if (answer.value("id", 0) != id_) {
        note(answer);
        continue;
      }
      if (answer.contains("error")) throw std::runtime_error(method + ": " + answer.dump());
      return answer.at("result");
    }
  }

  Json next() {
    constexpr int kPatience = 60000;  // ms
    for (;;) {
      const std::size_t end = buffer_.find('\0', seen_);
      if (end != std::string::npos) {
        const Json message = Json::parse(buffer_.substr(0, end));
        buffer_.erase(0, end + 1);
        seen_ = 0;
        return message;
      }
      seen_ = buffer_.size();
      pollfd file{read_, POLLIN, 0};
      if (::poll(&file, 1, kPatience) <= 0) throw std::runtime_error("Chromium does not answer");
      std::array<char, 1 << 16> chunk{};
      const ssize_t got = ::read(read_, chunk.data(), chunk.size());
      if (got <= 0) throw std::runtime_error("Chromium has ended");
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  void note(const Json& event) {
    const std::string method = event.value("method", "");
    const Json parameters = event.value("params", Json::object());
    if (method == "Runtime.exceptionThrown" ||
        (method == "Runtime.consoleAPICalled" && parameters["type"] == "error") ||
        (method == "Log.entryAdded" && parameters["entry"]["level"] == "error")) {
      errors_.push_back(parameters.dump());
    } else if (method == "Network.requestWillBeSent") {
      requests_.push_back(parameters["request"]["url"]);
    }
  }

  TempDirectory profile_;
  pid_t child_ = -1;
  int write_ = -1, read_ = -1;
  int id_ = 0;
  std::string session_, buffer_;
  std::size_t seen_ = 0;
  std::vector<std::string> errors_, requests_;
};

}  // namespace systole::test
