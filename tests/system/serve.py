"""The page of `polyphony serve`, used in Chromium as a person would: the whole journey, and what goes wrong on the way.

Screenshots are kept in BUILD/serve_screenshots, for a person to look at.
"""
import base64
import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import BUILD, CACHE, POLYPHONY, ROOT

PYTHON = CACHE / "python/bin/python"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if PYTHON.exists() and not sys.prefix.startswith(str(PYTHON.parents[1].resolve())) and "POLYPHONY_SERVE_TEST" not in os.environ:
    os.environ["POLYPHONY_SERVE_TEST"] = "1"  # Selenium is in this environment.
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
if not (PYTHON.exists() and CHROMIUM and DRIVER):
    print("skipped: chromium, chromium-driver or `scripts/setup python` is missing")
    sys.exit(77)

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

LLAVA = (ROOT / "tests/system/imported/llava_config.json").read_text()
SMALL = {"models": ["llama-3.2-1b"], "gpus": "1x2xH100", "seq": "2k"}
LARGE = {"models": ["llama-3.1-70b"], "gpus": "64x8xH100", "seq": "8k", "thorough": True}
PICTURES = BUILD / "serve_screenshots"


class Page(harness.SystemTest):
    def setUp(self):
        super().setUp()
        PICTURES.mkdir(exist_ok=True)
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()
        self.server = self.start(PYTHON, "-m", "polyphony", "serve", "--no-browser", "--port", "0",
                                 env=harness.environment(PYTHONPATH=ROOT / "sim/python", POLYPHONY_COMMAND=POLYPHONY,
                                                         PYTHONDONTWRITEBYTECODE=1, TMPDIR=self.temporary))
        self.address = self.server.stdout.readline().split()[2]
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000", f"--user-data-dir={self.folder}/chromium"):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.folder)})
        self.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(self.folder)})
        self.open()

    def tearDown(self):
        self.browser.quit()
        self.server.send_signal(signal.SIGINT)
        self.finish(self.server, 20)
        self.assertEqual([each.name for each in self.temporary.iterdir() if each.name.startswith("polyphony-serve-")], [])
        super().tearDown()

    def open(self):
        self.browser.get(self.address)
        self.wait(lambda: self.all("#preset option")[1:])

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def wait(self, condition, seconds=90):
        return WebDriverWait(self.browser, seconds, poll_frequency=0.1).until(lambda browser: condition())

    def text(self, selector):
        return self.browser.execute_script("return document.querySelector(arguments[0]).innerText", selector)

    def write(self, name, value):
        self.browser.execute_script("const e = document.getElementById(arguments[0]); e.value = arguments[1];"
                                    " e.dispatchEvent(new Event('input', {bubbles: true}))", name, value)

    def ended(self):
        """Waits until the search of the page has ended and its rows are shown, and returns its id."""
        return self.wait(lambda: self.browser.execute_script(
            "return state.job && ['done', 'stopped', 'failed'].includes(state.status?.state) && seen === state.status.answers && state.job"))

    def picture(self, name):
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        width = self.browser.get_window_size()["width"]
        self.browser.set_window_size(width, min(4000, max(1000, height + 100)))
        time.sleep(0.3)
        self.browser.save_screenshot(str(PICTURES / f"{name}.png"))
        self.browser.set_window_size(width, 1000)

    def ask(self, path, body=None, address=None):
        """Returns the status and the JSON answer of a request."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request((address or self.address) + path, data), timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def test_the_journey(self):
        # A config.json: parameters and memory at once.
        self.write("seq", "2k")
        self.write("images", "1x336px")
        self.write("model", LLAVA)
        self.wait(lambda: self.all("#preview [data-parameters]"))
        parameters = sum(int(each.get_attribute("data-parameters")) for each in self.all("#preview [data-parameters]"))
        self.assertAlmostEqual(parameters / 7.06e9, 1, delta=0.02)  # llava-1.5-7b
        self.assertGreaterEqual(len(self.all("#preview [data-bytes]")), 2)
        self.picture("1_question")
        # The ranked layouts are those of the command.
        self.one("#form button[type=submit]").click()
        id = self.ended()
        answer = self.ask(f"api/jobs/{id}/answer")[1]
        config = self.folder / "config.json"
        config.write_text(LLAVA)
        whole = harness.answer("ask", f"--model={config}", "--gpus=1x8xH100", "--seq=2k", "--images=1x336px")
        self.assertEqual([row["step_seconds"] for row in answer["ranked"]], [row["step_seconds"] for row in whole["ranked"]])
        rows = self.all("#list tbody tr")
        self.assertIn(f"{whole['ranked'][0]['step_seconds']:.4g}"[:5], rows[0].text)
        self.picture("2_layouts")
        # One layout, one change, and two layouts side by side.
        self.all("#list button.link")[1].click()
        self.wait(lambda: self.all("#detail .figures"))
        self.assertEqual(float(self.one("#detail .figures").get_attribute("data-step")), whole["ranked"][1]["step_seconds"])
        self.wait(lambda: len(self.all("#detail .chart .main-svg")) >= 3)
        self.write("value", "1024")
        self.write("key", "data.global_batch")
        self.one("#change button").click()
        self.wait(lambda: self.all("#pair [data-key=step_seconds] [data-value]"))
        before, after = (float(each.get_attribute("data-value")) for each in self.all("#pair [data-key=step_seconds] [data-value]"))
        self.assertEqual(before, whole["ranked"][1]["step_seconds"])
        self.assertLess(after, before)
        self.picture("3_one_change")
        for box in self.all("#list tbody input")[:2]:
            box.click()
        self.one("#compare").click()
        self.wait(lambda: "row 1 and row 2" in self.text("#pair"))
        self.picture("4_two_layouts")
        # Exports.
        self.one("#scenario").click()
        self.wait(lambda: self.all("#files details"))
        saved = self.wait(lambda: [each for each in self.folder.iterdir() if each.name.startswith("polyphony-scenario") and each.suffix == ".zip"])
        self.assertGreater(saved[0].stat().st_size, 100)
        self.one("#emit").click()
        self.wait(lambda: "--micro-batch-size" in self.browser.execute_script("return document.getElementById('files').textContent")
                  or self.all("#files .bad"))
        # A reload finds the search and the row again.
        self.browser.refresh()
        self.wait(lambda: self.all("#detail .figures"))
        # One HTML page to send on: read without the server, and read back by the page.
        self.one("#html").click()
        page = self.folder / "polyphony.html"
        self.wait(page.exists)
        self.wait(lambda: page.exists() and page.read_text().rstrip().endswith("</html>"))
        self.browser.get(page.as_uri())
        self.wait(lambda: len(self.all("#list tbody tr")) >= 3)
        self.assertEqual(float(self.wait(lambda: self.one("#detail .figures")).get_attribute("data-step")), whole["ranked"][1]["step_seconds"])
        self.picture("5_exported")
        self.open()
        self.one("#file").send_keys(str(page))
        self.wait(lambda: "Read back" in self.text("#status"))
        self.assertEqual(self.browser.execute_script("return state.answer.ranked.map(row => row.step_seconds)"),
                         [row["step_seconds"] for row in whole["ranked"]])

    def test_the_keyboard_alone_and_all_widths(self):
        self.one("#model").send_keys("llama-3.2-1b")
        self.browser.switch_to.active_element.send_keys(Keys.TAB)
        self.write("per", "2")
        self.write("seq", "2k")
        self.one("#seq").send_keys(Keys.CONTROL, Keys.ENTER)
        self.ended()
        first = self.one("#list button.link")
        first.send_keys(Keys.ARROW_DOWN)
        self.assertEqual(self.browser.execute_script("return [...document.querySelectorAll('#list button.link')].indexOf(document.activeElement)"), 1)
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        self.wait(lambda: self.all("#detail .figures"))
        self.assertEqual(self.browser.execute_script("return document.activeElement.tagName"), "H2")
        for width, theme in ((1600, "light"), (800, "dark"), (400, "dark")):
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
            time.sleep(0.5)
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), width)
            self.assertEqual(self.browser.execute_script("return document.documentElement.dataset.theme"), theme)
            shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
            (PICTURES / f"6_{width}_{theme}.png").write_bytes(base64.b64decode(shot["data"]))

    def test_a_stopped_search_and_a_second_one(self):
        # Two tabs: the second one's search waits, and the page says so; then the first is stopped.
        self.browser.get(f"{self.address}#job={self.ask('api/jobs', LARGE)[1]['id']}")
        self.browser.refresh()
        self.wait(lambda: self.browser.execute_script("return ['rough', 'searching'].includes(state.status?.state)"))
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.browser.get(f"{self.address}#job={self.ask('api/jobs', SMALL)[1]['id']}")
        self.browser.refresh()
        self.wait(lambda: "wait" in self.text("#status").lower())
        self.assertEqual(self.browser.execute_script("return state.status.ahead"), 1)
        self.picture("7_waiting")
        second = self.browser.current_window_handle
        self.browser.switch_to.window(first)
        self.wait(lambda: self.one("#stop").is_displayed())
        self.one("#stop").click()
        self.ended()
        self.assertEqual(self.browser.execute_script("return state.status.state"), "stopped")
        self.picture("8_stopped")
        self.browser.switch_to.window(second)
        self.ended()
        self.assertEqual(self.browser.execute_script("return state.status.state"), "done")

    def test_bad_and_huge_requests_are_answered(self):
        self.write("model", '{"model_type": "llama", "hidden_size": "many"}')
        self.wait(lambda: self.all("#preview .bad"))
        self.assertIn("num_hidden_layers", self.text("#preview .bad"))
        self.picture("9_broken_config")
        self.one("#form button[type=submit]").click()
        self.wait(lambda: self.all("#error .bad"))
        self.assertIn("num_hidden_layers", self.text("#error .bad"))
        server = urllib.parse.urlsplit(self.address)
        whole = f"http://{server.netloc}/"
        for path in ("", "wrong/", "api/choices", "wrong/api/jobs"):
            self.assertEqual(self.ask(path, address=whole)[0], 403)
        self.assertEqual(self.ask("api/jobs", b"x" * (2**24))[0], 413)
        for body in (b"no JSON", b"[]", b"[" * 100000, b"\xff\xfe"):
            self.assertEqual(self.ask("api/jobs", body)[0], 400)
        for wrong in ({}, {"models": []}, {"models": ["llama-3.1-8b"], "gpus": "8xH100 --out=/tmp/x"}, {"models": ["llama-3.1-8b"], "other": 1}):
            status, answer = self.ask("api/preview", wrong)
            self.assertEqual(status, 400, answer)
            self.assertTrue(answer["error"]["what"])
        self.assertEqual(self.ask("api/layout", {"scenario": {"extends": "/etc/passwd"}})[0], 400)
        self.assertEqual(self.ask("api/jobs/unknown")[0], 404)
        connection = http.client.HTTPConnection(server.netloc)
        connection.request("GET", server.path, headers={"Host": "other.example"})
        self.assertEqual(connection.getresponse().status, 403)
        connection.close()
        self.assertEqual(self.ask("api/choices")[0], 200)  # it still answers


if __name__ == "__main__":
    harness.main()
