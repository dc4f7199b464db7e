// See container.hpp.
#include "launch/container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "config/keys/own_model.hpp"
#include "config/text.hpp"
#include "json.hpp"
#include "platform/container.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kDigest = "@sha256:";

std::string runtime_of(const ContainerSettings& settings, Launcher launcher) {
  const std::string standard = launcher == Launcher::srun ? "pyxis" : "apptainer";
  return settings.container_runtime.value_or(standard);
}

/// From the root, without a slash at the end.
std::string full_name(const fs::path& folder) {
  const fs::path name = fs::absolute(folder).lexically_normal();
  return (name.has_filename() ? name : name.parent_path()).string();
}

/// Folders that the container shows under their own names.
std::vector<std::string> shown_folders(const LaunchRequest& request, const ContainerView& view) {
  std::vector<std::string> folders{full_name(view.results)};
  if (const std::string cwd = fs::current_path().string(); cwd != folders.front())
    folders.push_back(cwd);
  if (!view.own_program)
    folders.push_back(fs::path(request.program.front()).parent_path().parent_path().string());
  for (const std::string& folder : folders)
    if (folder.find_first_of(",:") != folder.npos)
      refuse_at("--container",
                fmt::format("the folder {} has a comma or a colon in its name, which "
                            "part the folders that a container shows; choose "
                            "another one",
                            quote(folder)));
  return folders;
}

std::vector<std::string> apptainer_words(const std::string& program, const std::string& image,
                                         const std::vector<std::string>& folders, bool gpus) {
  std::vector<std::string> words{program, "exec"};
  if (gpus) words.emplace_back("--nv");
  words.insert(words.end(), {"--bind", join(folders, ","), "--pwd", fs::current_path().string()});
  words.push_back(image);
  return words;
}

/// Flags of srun, which stand where others have a program of their own.
std::vector<std::string> pyxis_words(const std::string& image,
                                     const std::vector<std::string>& folders) {
  std::vector<std::string> mounts;
  for (const std::string& folder : folders) mounts.push_back(folder + ":" + folder);
  return {"--container-image=" + image, "--container-mounts=" + join(mounts, ","),
          "--container-workdir=" + fs::current_path().string()};
}

/// `word` with values in place of names, within which nothing is replaced any more.
std::string filled(const std::string& word,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  std::string made;
  for (std::size_t at = 0; at < word.size();) {
    const auto named = std::ranges::find_if(values, [&](const auto& value) {
      return word.compare(at, value.first.size(), value.first) == 0;
    });
    made += named == values.end() ? word.substr(at, 1) : named->second;
    at += named == values.end() ? 1 : named->first.size();
  }
  return made;
}

/// The user's own words, parted by spaces before anything is put into them: no name becomes two
/// words, and none is read by a shell.
std::vector<std::string> own_words(const std::string& runtime, const std::string& image,
                                   const ContainerView& view) {
  if (runtime.find("{image}") == runtime.npos)
    refuse_at("--container_runtime",
              fmt::format("{} is no runtime (legal: apptainer, singularity, pyxis), and names no "
                          "{{image}}, as \"podman run --rm {{image}}\" does",
                          quote(runtime)));
  std::vector<std::string> words;
  std::istringstream text(runtime);
  for (std::string word; text >> word;)
    words.push_back(filled(word, {{"{image}", image},
                                  {"{results}", full_name(view.results)},
                                  {"{cwd}", fs::current_path().string()}}));
  return words;
}

/// Of a file its SHA-256, of a name what it says itself.
ContainerFacts facts_of(const std::string& image, const std::string& runtime) {
  ContainerFacts facts{image, runtime, {}, {}, "outside"};
  std::error_code error;
  const std::size_t at = image.find(kDigest);
  const std::string said = at == image.npos ? "" : image.substr(at + kDigest.size());
  if (said.size() == 64 && said.find_first_not_of("0123456789abcdef") == said.npos)
    facts.digest = said;
  else if (fs::is_regular_file(image, error))
    facts.digest = digest_of_file("--container", image);
  else if (fs::is_directory(image, error))
    facts.no_digest = "the image is a folder";
  else
    facts.no_digest = "the image's name has none: give NAME@sha256:DIGEST, or a file";
  return facts;
}

}  // namespace

void put_in_container(LaunchRequest& request, const ContainerSettings& settings,
                      const ContainerView& view) {
  unsetenv(kContainerVariable);  // of the launch before
  if (!settings.container) return;
  std::error_code error;
  const bool file = fs::exists(*settings.container, error);
  const std::string image = file ? full_name(*settings.container) : *settings.container;
  const std::string runtime = runtime_of(settings, request.launcher);
  const bool srun = request.launcher == Launcher::srun && !request.direct;
  if (runtime == "pyxis" && !srun)
    refuse_at("--container_runtime",
              "pyxis is a part of srun: give --launcher srun, or another runtime");
  if (runtime == "pyxis")
    request.container = pyxis_words(image, shown_folders(request, view));
  else if (runtime == "apptainer" || runtime == "singularity")
    request.container = apptainer_words(runtime, image, shown_folders(request, view), view.gpus);
  else
    request.container = own_words(runtime, image, view);
  if (view.own_program) request.program.front() = settings.container_program;
  setenv(kContainerVariable, facts_of(image, runtime).text().c_str(), 1);
}

void refuse_outside_container(const ContainerSettings& settings, bool is_launched) {
  if (!settings.container || std::getenv(kContainerVariable)) return;
  throw ConfigError(
      is_launched
          ? "--container: ranks that a launcher has started are not put into one any more; leave "
            "mpirun or srun away (--ranks N), or write it before the program: mpirun ... apptainer "
            "exec IMAGE scalemark ..."
          : "--container is for ranks that scalemark starts itself: give --ranks N");
}

}  // namespace scalemark
