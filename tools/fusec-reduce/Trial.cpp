#include "Trial.h"

#include "Support/Diag.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace fusec::reduce {

Result<bool> Trial::isInteresting(const std::string &text) {
  ++tried;
  std::ofstream out(candidate(), std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, candidate(), "cannot be written"};
  FUSEC_TRY(bool interesting, runCommand());
  if (interesting && std::rename(candidate().c_str(), output.c_str()) != 0)
    return Diagnostic{Diag::CannotWrite, output, "cannot be written"};
  return interesting;
}

Status Trial::finish() const {
  std::error_code error;
  std::filesystem::remove(candidate(), error);
  return success();
}

std::string Trial::commandText() const {
  std::string out;
  for (const std::string &word : command)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

Result<bool> Trial::runCommand() const {
  std::string path = candidate();
  std::vector<char *> words;
  for (const std::string &word : command)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(path.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
  // A group of its own: at a time-out its children go with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  int error = posix_spawnp(&child, words[0], &files, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error)
    return Diagnostic{Diag::ToolMissing, command[0], "the command cannot be started"};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace fusec::reduce
