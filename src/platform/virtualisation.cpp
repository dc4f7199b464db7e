// Virtual machine, container or bare metal.
#include <array>

#include "platform/sources.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

bool contains(const std::optional<std::string>& text, std::string_view word) {
  return text && text->find(word) != std::string::npos;
}

bool in_container(const fs::path& root) {
  std::error_code error;
  if (fs::exists(root / ".dockerenv", error) || fs::exists(root / "run/.containerenv", error) ||
      fs::exists(root / "run/systemd/container", error) ||
      fs::exists(root / "singularity", error) || fs::exists(root / ".singularity.d", error))
    return true;
  const auto init_group = read_text(root / "proc/1/cgroup");
  for (const char* hint : {"docker", "kubepods", "containerd", "libpod", "/lxc", "/garden"})
    if (contains(init_group, hint)) return true;
  return false;
}

std::optional<std::string> hypervisor_of(const fs::path& root) {
  // Product and vendor strings of DMI, as systemd-detect-virt knows them.
  struct Sign {
    std::string_view word, name;
  };
  constexpr std::array signs{Sign{"KVM", "KVM"},
                             Sign{"QEMU", "QEMU/KVM"},
                             Sign{"VMware", "VMware"},
                             Sign{"VirtualBox", "VirtualBox"},
                             Sign{"innotek", "VirtualBox"},
                             Sign{"Xen", "Xen"},
                             Sign{"OpenStack", "KVM"},
                             Sign{"Amazon EC2", "Amazon EC2"},
                             Sign{"Google Compute Engine", "Google Compute Engine"},
                             Sign{"BHYVE", "bhyve"},
                             Sign{"Virtual Machine", "Hyper-V"},
                             Sign{"Parallels", "Parallels"}};
  const bool flag = contains(read_text(root / "proc/cpuinfo"), " hypervisor");
  if (const auto type = read_text(root / "sys/hypervisor/type"); type && !type->empty())
    return type;
  for (const char* field : {"product_name", "sys_vendor", "board_vendor", "bios_vendor"}) {
    const auto text = read_text(root / "sys/class/dmi/id" / field);
    for (const Sign& sign : signs) {
      if (!contains(text, sign.word)) continue;
      // EC2's bare-metal instances carry the same vendor; only the CPU flag tells them apart.
      if (sign.word == "Amazon EC2" && !flag) continue;
      return std::string(sign.name);
    }
  }
  if (flag) return "unknown";
  return std::nullopt;
}
}  // namespace

Virtualisation read_virtualisation(const fs::path& root) {
  Virtualisation found;
  found.hypervisor = hypervisor_of(root);
  if (in_container(root)) {
    found.kind = "container";
  } else if (found.hypervisor) {
    found.kind = "virtual";
  } else if (read_text(root / "proc/cpuinfo")) {
    found.kind = "bare metal";
  }
  return found;
}

}  // namespace scalemark
