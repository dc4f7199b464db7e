"""A headless Chromium for the tests of the report, in which no name can be resolved, and axe-core, an accessibility checker."""
import base64
import importlib.util
import json
import os
import pathlib
import shutil
import unittest


def missing():
    """What is not here, in words; empty if nothing."""
    tools = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return tools + [name for name in ("selenium", "axe_playwright_python") if not importlib.util.find_spec(name)]


def axe_source():
    """Of the wheel only the script is used: it comes without Playwright."""
    folder = importlib.util.find_spec("axe_playwright_python").submodule_search_locations[0]
    return (pathlib.Path(folder) / "axe.min.js").read_text(encoding="utf-8")


class Browser:
    def __init__(self):
        from selenium import webdriver
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        words = ["--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"]
        for word in words + (["--no-sandbox"] if os.geteuid() == 0 else []):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        try:
            self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        except Exception as error:  # a kernel or container in which Chromium cannot start
            raise unittest.SkipTest(f"Chromium does not start here: {error}") from error
        self.driver.set_script_timeout(120)

    def close(self):
        self.driver.quit()

    def open(self, page, width=1400, dark=False, media="screen"):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
        self.driver.get(pathlib.Path(page).resolve().as_uri())

    def ask(self, script, *words):
        return self.driver.execute_script(f"return {script}", *words)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that the page asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def violations(self, only=()):
        """What axe-core finds, a line each; of all rules of WCAG 2.2 AA and good practice, or of those named."""
        self.driver.execute_script(axe_source())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run(document, {runOnly: arguments[0]})"
            ".then(result => done(result.violations), error => done([{id: 'axe', help: String(error), nodes: []}]))",
            list(only) or ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"])
        return [f"{rule['id']}: {rule['help']}: " + " | ".join(node["html"][:200] for node in rule["nodes"][:3]) for rule in found]

    def pdf(self):
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
