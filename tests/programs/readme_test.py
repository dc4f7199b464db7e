"""Runs every command of README.md and docs/*.md (```sh blocks) in a folder that looks like the repository's root.

scripts/quickstart and scripts/test are left out (the second is what runs this test), and so are the blocks that only a
cluster, a GPU or a long quiet machine can run: they are marked ```sh cluster, ```sh gpu or ```sh slow.
"""

import re

from support import SCALEMARK, SOURCE, ProgramTest, main

OURS = {"scripts/quickstart", "scripts/test"}
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(document):
    for block in BLOCK.findall(document.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.split(" #")[0].strip()
            if line and line.split()[0] not in OURS:
                yield line


class Documents(ProgramTest):
    def test_every_command_runs(self):
        (self.folder / "scalemark").symlink_to(SCALEMARK)
        for name in ("configs", "lab", "scripts", "docs"):
            (self.folder / name).symlink_to(SOURCE / name)
        (self.folder / "results").mkdir()
        (self.folder / "results/baselines").symlink_to(SOURCE / "results/baselines")
        # Where a command says nothing of repeats and warm-up, one is enough to see that it runs.
        env = self.environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", SCALEMARK_REPEATS="1",
                               SCALEMARK_NUM_WARMUP_BATCHES="1")
        found = 0
        for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
            for command in commands(document):
                found += 1
                with self.subTest(document=document.name, command=command):
                    self.run_program("bash", "-c", command, env=env)
        self.assertGreater(found, 3)


if __name__ == "__main__":
    main()
