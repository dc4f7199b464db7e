"""scripts/packaging/sbom: a valid SPDX document that names what the front door loads and what is compiled into it."""

import json
import re
import shutil
import subprocess
import sys
import unittest

from support import SCALEMARK, SOURCE, ProgramTest, main

try:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
except ImportError:
    parse_file = None

SBOM = SOURCE / "scripts/packaging/sbom"


@unittest.skipUnless(parse_file, "no spdx_tools; scripts/setup --tests fetches it")
@unittest.skipUnless(shutil.which("dpkg"), "no dpkg here")
class Sbom(ProgramTest):
    def parts(self, *programs, **variables):
        """{name: (relationship, package)}"""
        self.run_program(sys.executable, SBOM, "--output", "made.spdx.json", *programs, env=self.environment(**variables))
        self.assertEqual(validate_full_spdx_document(parse_file(str(self.folder / "made.spdx.json"))), [])
        made = json.loads((self.folder / "made.spdx.json").read_text())
        self.assertEqual(made["spdxVersion"], "SPDX-2.3")
        packages = {package["SPDXID"]: package for package in made["packages"]}
        return {packages[relation["relatedSpdxElement"]]["name"]: (relation["relationshipType"], packages[relation["relatedSpdxElement"]])
                for relation in made["relationships"]}

    def test_what_is_loaded_compiled_in_and_contained(self):
        library = re.search(r"libhwloc\S+ => (\S+)", subprocess.check_output(["ldd", SCALEMARK], text=True))[1]
        parts = self.parts(SCALEMARK, library)
        relations = {name: relation for name, (relation, _) in parts.items()}
        self.assertEqual(relations["scalemark"], "DESCRIBES")
        self.assertEqual(parts["scalemark"][1]["licenseDeclared"], "Apache-2.0")
        self.assertEqual(relations["libc6"], "DEPENDS_ON")
        self.assertEqual(relations["libfmt-dev"], "STATIC_LINK")
        version = subprocess.check_output(["dpkg-query", "-W", "-f", "${Version}", "libc6"], text=True)
        self.assertEqual(parts["libc6"][1]["versionInfo"], version)
        self.assertRegex(parts["libc6"][1]["externalRefs"][0]["referenceLocator"], r"^pkg:deb/\w+/libc6@[\w.:%~-]+\?arch=\w+$")
        hwloc, = (name for name in parts if name.startswith("libhwloc"))
        self.assertEqual(relations[hwloc], "CONTAINS")

    def test_a_library_of_no_package_is_listed_by_its_hash(self):
        library = re.search(r"libhwloc\S+ => (\S+)", subprocess.check_output(["ldd", SCALEMARK], text=True))[1]
        copy = self.folder / library.split("/")[-1]
        shutil.copy(library, copy)
        relation, package = self.parts(SCALEMARK, LD_LIBRARY_PATH=str(self.folder))[copy.name]
        self.assertEqual(relation, "DEPENDS_ON")
        self.assertRegex(package["checksums"][0]["checksumValue"], "^[0-9a-f]{64}$")

    def test_the_same_is_written_again(self):
        texts = []
        for _ in range(2):
            self.parts(SCALEMARK, SOURCE_DATE_EPOCH="1700000000")
            texts.append((self.folder / "made.spdx.json").read_text())
        self.assertEqual(*texts)
        self.assertEqual(json.loads(texts[0])["creationInfo"]["created"], "2023-11-14T22:13:20Z")

    def test_what_is_no_scalemark(self):
        _, err = self.run_program(sys.executable, SBOM, "--output", "made.spdx.json", "/bin/true", expect=7)
        self.assertIn("does not say that it is scalemark", err)


if __name__ == "__main__":
    main()
